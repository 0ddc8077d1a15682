"""Leading eigenvectors of a symmetric matrix that is known by its products, from block Krylov spaces."""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from binfeat._engine.policy import one_blas_thread

_DEPTH = 10  # blocks of a Krylov space before the next one starts from its best vectors
_SPARE = 5  # columns of a block beyond the vectors wanted: the gap that counts is behind them
_FEW_ROWS = 300  # up to which the matrix is made


@dataclass(frozen=True)
class Eigenvectors:
    """Eigenvalues in falling order with their vectors, and how exact they are."""

    values: np.ndarray  # (n_wanted,)
    vectors: np.ndarray  # (n, n_wanted), orthonormal
    residuals: np.ndarray  # (n_wanted,), norms of ``S u - value u``
    n_products: int  # with a block


def leading_eigenvectors(multiply, known, n_wanted, *, tol, max_iter, seed, callback=None):
    """Eigenvectors of the largest eigenvalues of a symmetric matrix S, but for a known one.

    Randomised block Krylov iteration (Musco & Musco, NIPS 2015): from a random block B, the best vectors of the span of
    ``B, S B, ..., S^9 B`` by Rayleigh and Ritz, which begin the next space until they are exact enough. How many
    products it takes does not depend on gaps between the eigenvalues wanted, as it does for single vectors.

    Parameters
    ----------
    multiply : callable
        From V to ``S @ V``, both (n, n_columns) in Fortran order.
    known : ndarray of shape (n,)
        Eigenvector of length 1, which is left out.
    n_wanted : int
        At most n - 1.
    tol : float
        Largest residual norm.
    max_iter : int
        Largest number of products with a block.
    seed : int
    callback : callable, default=None
        Called after each product; True stops.

    Returns
    -------
    found : Eigenvectors
    """
    n, width = known.size, n_wanted + _SPARE
    with one_blas_thread():  # the order of its sums depends on their number
        if n <= max(_FEW_ROWS, 2 * width * (_DEPTH + 1)):
            return _of_few_rows(multiply, known, n_wanted)
        rng = np.random.default_rng(seed)
        space = _KrylovSpace(multiply, known, width)
        block = rng.standard_normal((width, n)).T
        n_products, stops = 0, False
        while True:
            space.start(block)
            for _ in range(_DEPTH):
                space.grow()
                n_products += 1
                stops = callback is not None and callback()
                if stops or n_products == max_iter:
                    break
            values, vectors, residuals = space.best()
            if stops or n_products == max_iter or residuals[:n_wanted].max() <= tol:
                break
            block = vectors
        return Eigenvectors(values[:n_wanted], vectors[:, :n_wanted], residuals[:n_wanted], n_products)


def _of_few_rows(multiply, known, n_wanted):
    """All of them by a dense solver, the known one moved to the end of the spectrum, below -1."""
    matrix = multiply(np.eye(known.size, order="F")) - 3.0 * np.outer(known, known)
    values, vectors = linalg.eigh((matrix + matrix.T) / 2)
    chosen = slice(None, -n_wanted - 1, -1)
    return Eigenvectors(values[chosen], vectors[:, chosen], np.zeros(n_wanted), 1)


class _KrylovSpace:
    """An orthonormal basis that grows by a block, and the matrix S in it."""

    def __init__(self, multiply, known, width):
        self._multiply, self._known, self._width = multiply, known[:, None], width
        self._basis = np.empty((known.size, (_DEPTH + 1) * width), order="F")
        self._projection = np.empty(2 * (self._basis.shape[1],))

    def start(self, block):
        """Begin with the span of a block (n, width)."""
        self._size = 0
        self._append(np.array(block, order="F"))

    def grow(self):
        """Add the product with the newest block."""
        newest = slice(self._size - self._width, self._size)
        image = self._multiply(self._basis[:, newest])
        self._projection[: self._size, newest] = self._basis[:, : self._size].T @ image
        self._append(image.copy(order="F"))
        self._coupling = self._basis[:, self._size - self._width : self._size].T @ image

    def _append(self, block):
        """Add what a block has outside the space; where it has nothing, what rounding leaves serves as well."""
        for _ in range(2):
            for known in (self._known, self._basis[:, : self._size]):
                block -= known @ (known.T @ block)
            block = linalg.qr(block, mode="economic", overwrite_a=True, check_finite=False)[0]
        self._basis[:, self._size : self._size + self._width] = block
        self._size += self._width

    def best(self):
        """The leading Ritz values, as many as a block has columns, their vectors and the norms of their residuals."""
        size = self._size - self._width  # the newest block has no product
        upper = np.triu(self._projection[:size, :size])
        values, shares = linalg.eigh(upper + np.triu(upper, 1).T)
        values, shares = values[: -self._width - 1 : -1], shares[:, : -self._width - 1 : -1]
        residuals = np.linalg.norm(self._coupling @ shares[-self._width :], axis=0)
        return values, self._basis[:, :size] @ shares, residuals
