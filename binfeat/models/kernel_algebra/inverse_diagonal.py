"""The inverse of a kernel matrix of many rows, about, in time that is linear in them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from binfeat._threads import one_blas_thread, side_by_side
from binfeat.length_scales.cholesky import times_square
from binfeat.length_scales.leave_one_out import (
    Weights,
    inverse_root,
    precise_inverse_root,
    squared_row_norms,
)
from binfeat.length_scales.sums import KernelValues

_JITTER = 1e-4  # of the mean value of a landmark with itself
_WORK, _FEWEST = 2e10, 1000  # rows times squared rows of a cell, and rows of a cell

CellColumns = tuple[np.ndarray, Weights]  # rows of a cell, (n_inputs, n), and their weights


def rows_of_cell(n_rows: int) -> int:
    """Return the maximum number of rows of a cell, for this number of rows."""
    return max(_FEWEST, int(np.sqrt(_WORK / n_rows)))


@dataclass(frozen=True, eq=False)
class _KnownCell:
    """Return the part of the inverse for the rows of a cell."""

    X: np.ndarray  # (n_inputs, n)
    F: np.ndarray  # (n, n_features): what landmarks tell
    root: np.ndarray  # (n, n), of D^-1
    W: np.ndarray  # D^-1 F


class CellInverse:
    """``(K + 1 1' + alpha / v)^-1`` of rows in cells.

    Between rows of different cells K is what landmarks (n_inputs, n_landmarks) tell of it, Nystroem's ``F F'``, and
    within a cell it is itself (partially independent conditionals, Snelson & Ghahramani 2007). With D what is left in
    the cells, and ones appended to F, the inverse is ``D^-1 - D^-1 F (1 + F' D^-1 F)^-1 F' D^-1`` (Woodbury).
    """

    def __init__(
        self, kernel: KernelValues, cells: list[CellColumns], landmarks: np.ndarray, alpha: float, n_jobs: int | None
    ) -> None:
        self._kernel = kernel
        with one_blas_thread():
            self._features = _nystroem(kernel, landmarks)

        def solve(cell: CellColumns) -> _KnownCell:
            X, weights = cell
            F = self._features(X)
            # To K is added 1 1', which F F' has.
            root, _ = precise_inverse_root(kernel(X, X) - F @ F.T, alpha, weights)
            return _KnownCell(X, F, root, times_square(root, F))

        self._cells = side_by_side(solve, cells, n_jobs)
        with one_blas_thread():
            inner = np.eye(self._cells[0].F.shape[1])
            for cell in self._cells:
                inner += cell.F.T @ cell.W
            self._inner = np.linalg.cholesky(inner)

    def diagonals(self) -> list[np.ndarray]:
        """Diagonal of the inverse, for the rows of each cell."""
        with one_blas_thread():
            return [
                squared_row_norms(cell.root) - (self._inner_root(cell.W.T) ** 2).sum(axis=0) for cell in self._cells
            ]

    def unknown(self, X: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the known and unknown parts of values at rows X, (n_inputs, n), of a cell, as three arrays.

        Parts known from rows of the cell, (n_cell, n), unknown given landmarks, (n_features, n), and the features F of
        the rows, (n, n_features). With these, T, U and F, the values' covariance is ``K + 1 1' - F F' - T' T + U' U``.
        """
        cell, F = self._cells[number], self._features(X)
        own = self._kernel(cell.X, X) + np.float32(1.0) - cell.F @ F.T
        return cell.root.T @ own, self._inner_root(F.T - cell.W.T @ own), F

    @property
    def n_features(self) -> int:
        return len(self._inner)

    def _inner_root(self, A: np.ndarray) -> np.ndarray:
        return solve_triangular(self._inner, A, lower=True)


def inverse_diagonals(
    kernel: KernelValues, cells: list[CellColumns], landmarks: np.ndarray, alpha: float, n_jobs: int | None
) -> list[np.ndarray]:
    """Diagonal of ``(K + 1 1' + alpha / v)^-1``, for the rows of each cell; of many, by `CellInverse`."""
    if len(cells) == 1:
        X, weights = cells[0]
        with one_blas_thread():
            return [squared_row_norms(precise_inverse_root(kernel(X, X), alpha, weights, n_jobs)[0])]
    return CellInverse(kernel, cells, landmarks, alpha, n_jobs).diagonals()


def _nystroem(kernel: KernelValues, landmarks: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return features of rows (n_inputs, n); their inner products are the landmark kernel plus 1."""
    K = kernel(landmarks, landmarks)
    # Less one, since `inverse_root` adds 1 1'.
    precise, _ = inverse_root(K - np.float32(1.0), _JITTER * float(K.diagonal().mean()), out=np.empty(K.shape))
    root = precise.astype(np.float32)

    def features(X: np.ndarray) -> np.ndarray:
        return np.hstack([kernel(X, landmarks) @ root, np.ones((X.shape[1], 1), np.float32)])

    return features
