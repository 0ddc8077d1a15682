"""Kernel values of rows few of whose inputs change: what all inputs say of two rows is computed once."""

from typing import Protocol

import numpy as np

from binfeat._common.subsets import slices
from binfeat._engine.decays import decays
from binfeat._engine.distances import weighted_distances
from binfeat._machine.kernel_algebra.matrices import (
    KernelMatrix,
    LaplacianMatrix,
    LinearMatrix,
    RadialMatrix,
    differences_of,
    has_cusp,
    radial_values,
    squares_of,
)
from binfeat._machine.kernel_algebra.sums import KernelSum

_BLOCK = 512  # rows whose products are in float64 at a time


class _Changed(Protocol):
    """What a kernel knows of rows A and B."""

    def __call__(self, rows: slice, changed: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Values (n_rows, m), float32, of some rows of A, with `own`, (n_changed, n_rows), for the inputs of a mask."""


class ChangedInputs:
    """A KernelSum of rows A and B, (n_inputs, n) and (n_inputs, m), float32, where some inputs of A change.

    What it keeps of the pairs is an array (n, m) in float32 for each kernel. A change takes as long for many inputs as
    for few, but for those that change.
    """

    def __init__(self, kernel: KernelSum, A: np.ndarray, B: np.ndarray) -> None:
        of_kernels = zip(kernel.matrices, kernel.gammas, strict=True)
        self._parts = [_changed(matrix, A, B, gamma.astype(np.float32)) for matrix, gamma in of_kernels]
        self._shares = np.asarray(kernel.shares, np.float32)

    def __call__(self, rows: slice, changed: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Values (n_rows, m), float32, of some rows of A, with `own`, (n_changed, n_rows), for the inputs of a mask."""
        own = np.ascontiguousarray(own, np.float32)
        parts = zip(self._shares, self._parts, strict=True)
        first, *others = (share * part(rows, changed, own) for share, part in parts)
        for values in others:
            first += values
        return first


def _changed(matrix: KernelMatrix, A: np.ndarray, B: np.ndarray, gamma: np.ndarray) -> _Changed:
    if isinstance(matrix, LinearMatrix):
        return _Products(matrix, A, B, gamma, 1.0)
    if isinstance(matrix, RadialMatrix):
        return _Radial(matrix, A, B, gamma)
    assert isinstance(matrix, LaplacianMatrix)  # fitted machines have no other kernel
    return _Laplacian(matrix.categorical, A, B, gamma)


class _Distances:
    """Sums of distances along inputs."""

    def __init__(self, categorical: np.ndarray, A: np.ndarray, B: np.ndarray, gamma: np.ndarray) -> None:
        self._categorical, self._A, self._B, self._gamma = categorical, A, B, gamma
        self._whole = self._along(slice(None), A)

    def __call__(self, rows: slice, changed: np.ndarray, own: np.ndarray) -> np.ndarray:
        distances = self._whole[rows] + self._along(changed, own)
        distances -= self._along(changed, np.ascontiguousarray(self._A[changed, rows]))
        return distances

    def _along(self, some: np.ndarray | slice, A: np.ndarray) -> np.ndarray:
        """The distances of rows A, (n_some, n), along some inputs."""
        out = np.empty((A.shape[1], self._B.shape[1]), np.float32)
        weighted_distances(A, self._B[some], self._gamma[some], self._categorical[some], out, n_jobs=1)
        return out


class _Laplacian(_Distances):
    def __call__(self, rows: slice, changed: np.ndarray, own: np.ndarray) -> np.ndarray:
        values = super().__call__(rows, changed, own)
        decays(values)
        return values


class _Products:
    """Inner products of linearly mapped rows, times a factor; those of changed rows are ``(u + M' d)' v``.

    With mapped rows u and v, the columns M of the map for the changed inputs, and their differences d.
    """

    def __init__(
        self, matrix: LinearMatrix | RadialMatrix, A: np.ndarray, B: np.ndarray, gamma: np.ndarray, factor: float
    ) -> None:
        self._matrix, self._A, self._gamma = matrix, A, gamma
        self.U, self.V = self._mapped(A), factor * self._mapped(B)
        self._whole = np.empty((A.shape[1], B.shape[1]), np.float32)
        for rows in slices(len(self._whole), _BLOCK):
            self._whole[rows] = self.U[:, rows].T @ self.V

    def __call__(self, rows: slice, changed: np.ndarray, own: np.ndarray) -> np.ndarray:
        return self.with_rows(rows, changed, own)[0]

    def with_rows(self, rows: slice, changed: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The products, and the changed rows, mapped."""
        M = self._mapped(np.eye(len(changed), dtype=np.float32)[:, changed])
        differences = own.astype(np.float64) - self._A[changed, rows]
        products = self._whole[rows] + differences.T.astype(np.float32) @ (M.T @ self.V).astype(np.float32)
        return products, self.U[:, rows] + M @ differences

    def _mapped(self, X: np.ndarray) -> np.ndarray:
        return self._matrix.coordinates(X, self._gamma).astype(np.float64)


class _Radial:
    """Of squared distances of mapped rows, and of categories that differ."""

    def __init__(self, matrix: RadialMatrix, A: np.ndarray, B: np.ndarray, gamma: np.ndarray) -> None:
        self._kernel, self._named = matrix.kernel, matrix.categorical
        self._products = _Products(matrix, A, B, gamma, -2.0)
        self._B_mapped = self._products.V / -2.0
        self._B_squares = squares_of(self._kernel, self._B_mapped)
        of_named = A[self._named], B[self._named], gamma[self._named]
        self._mismatches = _Distances(self._named[self._named], *of_named) if self._named.any() else None

    def __call__(self, rows: slice, changed: np.ndarray, own: np.ndarray) -> np.ndarray:
        values, mapped = self._products.with_rows(rows, changed, own)
        if has_cusp(self._kernel):
            values = differences_of(mapped, self._B_mapped, 1)
        if self._mismatches is not None:
            values += self._mismatches(rows, changed[self._named], own[self._named[changed]])
        return radial_values(self._kernel, values, squares_of(self._kernel, mapped), self._B_squares)
