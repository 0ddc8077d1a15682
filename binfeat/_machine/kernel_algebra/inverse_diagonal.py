"""The diagonal of the inverse of a kernel matrix of many rows, in time that is linear in them."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular

from binfeat._engine.policy import one_blas_thread, side_by_side
from binfeat._machine.kernel_algebra.leave_one_out import Weights, inverse_root, precise_inverse_root, squared_row_norms
from binfeat._machine.kernel_algebra.sums import KernelSum

_JITTER = 1e-4  # of the mean value of a landmark with itself

CellColumns = tuple[np.ndarray, Weights]  # rows of a cell, (n_inputs, n), and their weights


def inverse_diagonals(
    kernel: KernelSum, cells: list[CellColumns], landmarks: np.ndarray, alpha: float, n_jobs: int | None
) -> list[np.ndarray]:
    """Of ``(K + 1 1' + alpha / v)^-1``, for the rows of each cell.

    Between rows of different cells K is what landmarks (n_inputs, n_landmarks) tell of it, Nystroem's ``F F'``, and
    within a cell it is itself (partially independent conditionals, Snelson & Ghahramani 2007). With D what is left in
    the cells, and ones beside F, the inverse is ``D^-1 - D^-1 F (1 + F' D^-1 F)^-1 F' D^-1`` (Woodbury).
    """
    if len(cells) == 1:
        X, weights = cells[0]
        return [squared_row_norms(precise_inverse_root(kernel(X, X), alpha, weights)[0])]
    features = _nystroem(kernel, landmarks)
    known = dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]()

    def solve(number: int) -> None:
        X, weights = cells[number]
        F = features(X)
        B, _ = precise_inverse_root(kernel(X, X) - F @ F.T, alpha, weights)  # to which 1 1' is added, which F has
        W = B @ (B.T @ F)
        known[number] = squared_row_norms(B), W, F.T @ W

    side_by_side(solve, range(len(cells)), n_jobs)
    with one_blas_thread():
        inner = np.eye(known[0][2].shape[0])
        for number in range(len(cells)):
            inner += known[number][2]
        root = np.linalg.cholesky(inner)
        return [
            known[number][0] - squared_row_norms(solve_triangular(root, known[number][1].T, lower=True).T)
            for number in range(len(cells))
        ]


def _nystroem(kernel: KernelSum, landmarks: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Features of rows (n_inputs, n), whose inner products are the kernel by landmarks, plus 1."""
    K = kernel(landmarks, landmarks)
    # Less one, since `inverse_root` adds 1 1'.
    precise, _ = inverse_root(K - np.float32(1.0), _JITTER * float(K.diagonal().mean()), out=np.empty(K.shape))
    root = precise.astype(np.float32)

    def features(X: np.ndarray) -> np.ndarray:
        return np.hstack([kernel(X, landmarks) @ root, np.ones((X.shape[1], 1), np.float32)])

    return features
