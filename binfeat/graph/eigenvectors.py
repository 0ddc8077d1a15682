"""Leading eigenvectors of a symmetric matrix, given its products, by block Lanczos iteration."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
from scipy import linalg

from binfeat._common.memory import require_memory
from binfeat._common.subsets import slices
from binfeat._threads import one_blas_thread, side_by_side

Multiply: TypeAlias = Callable[[np.ndarray], np.ndarray]  # returns the product with (n, n_columns) in Fortran order

_DEPTH = 10  # blocks of a Krylov space before it is reduced to its best part
_KEPT = 3  # blocks that remain after the reduction
_SPARE = 5  # additional columns of a block: convergence depends on the eigenvalue gap after them
_FEW_ROWS = 300  # up to this number of rows the matrix is computed
_MOST_RESIDUAL = 0.03  # of the vector that is not used
_ROWS_AT_A_TIME = 2**15  # rows of a part for a thread
_PARALLEL = 1e-4  # least eigenvalue of the cosines of columns; below, Cholesky loses more than four digits


@dataclass(frozen=True)
class Eigenvectors:
    """Eigenvalues in decreasing order with their vectors, and their accuracy."""

    values: np.ndarray  # (n_wanted + 1,), or n_wanted if there are no more
    vectors: np.ndarray  # (n, n_wanted), orthonormal
    residuals: np.ndarray  # (n_wanted,), norms of ``S u - value u``
    n_products: int  # products with a block

    @classmethod
    def after(
        cls, known: np.ndarray, values: np.ndarray, vectors: np.ndarray, residuals: np.ndarray, n_products: int
    ) -> Self:
        """Insert all known vectors but the first before the computed ones."""
        first, zeros = known[:, 1:], np.zeros(known.shape[1] - 1)
        of_all = np.append(1.0 - zeros, values), np.hstack([first, vectors]), np.append(zeros, residuals)
        return cls(*of_all, n_products)


def leading_eigenvectors(
    multiply: Multiply,
    known: np.ndarray,
    n_wanted: int,
    *,
    tol: float,
    max_iter: int,
    seed: int,
    start: np.ndarray | None = None,
    callback: Callable[[], bool] | None = None,
    n_jobs: int | None = None,
) -> Eigenvectors:
    """Compute the `n_wanted` leading eigenvectors of the symmetric matrix S after the first of the `known` ones.

    `known` (n, n_known) are at most ``1 + n_wanted`` orthonormal eigenvectors with the eigenvalue 1, the largest. All
    but the first are the first ones of the result.

    Block Lanczos iteration with thick restarts (Wu & Simon 2000): the best vectors, by Rayleigh and Ritz, of the span
    of ``B, S B, S^2 B, ...`` for a block B. When the span has ten blocks, its best three are kept, and it grows again.
    Unlike with single vectors, the number of products does not depend on gaps between the wanted eigenvalues (Musco &
    Musco 2015). The first block contains `start`, vectors near the eigenvectors, and random columns.

    `multiply` returns ``S @ V`` for V (n, n_columns), both in Fortran order, at most `max_iter` times; `callback` is
    called after each product, and True stops. The result does not depend on `n_jobs`.
    """
    n, n_wanted = len(known), n_wanted - known.shape[1] + 1
    width = n_wanted + _SPARE
    with one_blas_thread():  # the order of sums depends on their number
        if n <= max(_FEW_ROWS, 2 * width * (_DEPTH + 1)):
            return _of_few_rows(multiply, known, n_wanted)
        near = np.empty((n, 0)) if start is None else start[:, :width]
        random = np.random.default_rng(seed).standard_normal((width - near.shape[1], n)).T
        space = _KrylovSpace(multiply, known, np.column_stack([near, random]), n_jobs)
        n_products, stops = 0, False
        while True:
            space.grow()
            n_products += 1
            stops = callback is not None and callback()
            values, shares, residuals = space.best()
            if stops or n_products == max_iter or _are_exact(residuals[: n_wanted + 1], tol):
                break
            if space.is_full:
                space.cut(values, shares)
        vectors = space.vectors(shares[:, :n_wanted])
        return Eigenvectors.after(known, values[: n_wanted + 1], vectors, residuals[:n_wanted], n_products)


def _are_exact(residuals: np.ndarray, tol: float) -> bool:
    """Return True if residuals are small.

    The last vector is not used, and the error of its eigenvalue, about a squared residual, may be 100 times `tol`.
    """
    return residuals[:-1].max(initial=0.0) <= tol and residuals[-1] <= min(10 * np.sqrt(tol), _MOST_RESIDUAL)


def _of_few_rows(multiply: Multiply, known: np.ndarray, n_wanted: int) -> Eigenvectors:
    """Compute eigenvectors by a dense solver; the known ones are moved to the end of the spectrum, below -1."""
    matrix = multiply(np.eye(len(known), order="F")) - 3.0 * known @ known.T
    values, vectors = linalg.eigh((matrix + matrix.T) / 2)
    values, vectors = values[known.shape[1] :][::-1], vectors[:, known.shape[1] :][:, ::-1]
    return Eigenvectors.after(known, values[: n_wanted + 1], vectors[:, :n_wanted], np.zeros(n_wanted), 1)


class _KrylovSpace:
    """An orthonormal basis that grows by a block, and the matrix S in it."""

    def __init__(self, multiply: Multiply, known: np.ndarray, block: np.ndarray, n_jobs: int | None) -> None:
        self._multiply, self._known, self._width, self._n_jobs = multiply, known, block.shape[1], n_jobs
        self._rows = slices(len(known), _ROWS_AT_A_TIME)
        shape = len(known), (_DEPTH + 1) * self._width
        require_memory(8 * shape[0] * shape[1], "the search for eigenvectors", "Use fewer components or clusters.")
        self._basis = np.empty(shape, order="F")
        self._projection = np.zeros(2 * (self._basis.shape[1],))  # upper triangle of S in the basis
        self._size = 0
        self._append(np.asfortranarray(block))

    @property
    def is_full(self) -> bool:
        return self._size == self._basis.shape[1]

    def grow(self) -> None:
        newest = slice(self._size - self._width, self._size)
        image = self._multiply(self._basis[:, newest])
        space, block = self._basis[:, : self._size], image.copy(order="F")
        self._projection[: self._size, newest] = self._remove(space, block)
        self._append(block)
        self._coupling = self._inner(self._basis[:, self._size - self._width : self._size], image)

    def _append(self, block: np.ndarray) -> None:
        """Add the part of a block outside the space; if nothing remains, the rounding error is used."""
        self._remove(self._known, block)
        block = self._orthonormal(block)
        for known in (self._known, self._basis[:, : self._size]):  # twice, because of rounding
            self._remove(known, block)
        self._basis[:, self._size : self._size + self._width] = self._orthonormal(block)
        self._size += self._width

    def _orthonormal(self, block: np.ndarray) -> np.ndarray:
        """Return orthonormal columns with the same span: by Cholesky, the fastest, unless they are nearly parallel."""
        products = self._inner(block, block)
        lengths = np.sqrt(products.diagonal())
        if not lengths.all() or linalg.eigvalsh(cosines := products / np.outer(lengths, lengths))[0] < _PARALLEL:
            return linalg.qr(block, mode="economic", overwrite_a=True, check_finite=False)[0]
        factor = linalg.solve_triangular(linalg.cholesky(cosines) * lengths, np.eye(self._width))
        self._set(block, block, factor)
        return block

    def _inner(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return ``A' B``, summed over blocks of rows in order."""
        sums = np.empty((len(self._rows), A.shape[1], B.shape[1]))

        def add(k: int) -> None:
            sums[k] = A[self._rows[k]].T @ B[self._rows[k]]

        side_by_side(add, range(len(sums)), self._n_jobs)
        return sums.sum(axis=0)

    def _remove(self, known: np.ndarray, block: np.ndarray) -> np.ndarray:
        """Subtract from a block its projection on orthonormal vectors, and return the projection's coefficients."""
        shares = self._inner(known, block)

        def subtract(rows: slice) -> None:
            block[rows] -= known[rows] @ shares

        side_by_side(subtract, self._rows, self._n_jobs)
        return shares

    def _set(self, out: np.ndarray, vectors: np.ndarray, shares: np.ndarray) -> None:
        """Write ``vectors @ shares`` to `out`, which can be columns of `vectors`."""

        def multiply(rows: slice) -> None:
            out[rows] = vectors[rows] @ shares

        side_by_side(multiply, self._rows, self._n_jobs)

    def best(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return Ritz values in decreasing order, coefficients of their vectors, and norms of their residuals."""
        size = self._size - self._width  # the newest block has no product
        values, shares = linalg.eigh(self._projection[:size, :size], lower=False)
        values, shares = values[::-1], shares[:, ::-1]
        return values, shares, np.linalg.norm(self._coupling @ shares[-self._width :], axis=0)

    def vectors(self, shares: np.ndarray) -> np.ndarray:
        made = np.empty((len(self._basis), shares.shape[1]), order="F")
        self._set(made, self._basis[:, : len(shares)], shares)
        return made

    def cut(self, values: np.ndarray, shares: np.ndarray) -> None:
        """Keep the best Ritz vectors, and the newest block; its span contains their residuals."""
        kept = _KEPT * self._width
        self._set(self._basis[:, :kept], self._basis[:, : len(shares)], shares[:, :kept])
        self._basis[:, kept : kept + self._width] = self._basis[:, -self._width :]
        self._projection[:kept, :kept] = np.diag(values[:kept])
        self._size = kept + self._width
