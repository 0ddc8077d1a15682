"""Solutions of ``(K + 1 1' + alpha / v) c = Y`` for many rows, and the diagonal of the inverse."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import blas, lapack, solve_triangular

from binfeat._common.arrays import quotients
from binfeat._threads import one_blas_thread, side_by_side
from binfeat.length_scales.kernel_sum import KernelValues, PackedKernel, packed_bytes
from binfeat.length_scales.leave_one_out import (
    LEAST_ALPHA,
    Solve,
    Weights,
    factor,
    inverse_root,
    needs_precision,
    precise_inverse_root,
    squared_row_norms,
    times_square,
)

MOST_FACTORED = 14_000  # rows; the matrix needs 0.8 GB, and iterations need a quarter of the memory per pair
_RANK = 500  # of the preconditioner
_LEAST_SHIFT = 3e-5  # of the preconditioner, for each row: below, float32 makes it indefinite
_LEAST_TOL, _MOST_TOL, _MAX_ITER = 1e-3, 1e-2, 100
_PART_OF_ERROR = 0.02  # of predictions that the residual may be
_PART_OF_FIT = 0.03  # of the residuals of the fit that it may be, because leave-one-out predictions rest on these
_VECTORS = 16  # of an iteration, for each target, with the temporary ones of a product


def cholesky_rows(n_targets: int) -> int:
    """Return the number of rows up to which a Cholesky factor is cheaper than iterations."""
    return min(2000 + 1000 * n_targets, 4500 + 500 * n_targets, MOST_FACTORED)


def solve_bytes(n_rows: int | np.ndarray, n_targets: int) -> np.ndarray:
    """Memory for the kernel matrix of `n_rows` rows, a number or an array of numbers, and for its solution."""
    iterations = packed_bytes(n_rows) + 4 * n_rows * (_RANK + _VECTORS * n_targets)
    return np.where(n_rows <= cholesky_rows(n_targets), 4 * n_rows**2, iterations)


def matrix_to_solve(kernel: KernelValues, X: np.ndarray, n_targets: int) -> np.ndarray | PackedKernel:
    """Values of a KernelValues for all pairs of rows X, (n_inputs, n_rows), as `solve_kernel` takes them."""
    return kernel(X, X) if X.shape[1] <= cholesky_rows(n_targets) else kernel.packed(X)


def solve_kernel(
    K: np.ndarray | PackedKernel,
    alpha: float,
    weights: Weights,
    Y: np.ndarray,
    error: float,
    n_jobs: int | None = 1,
) -> tuple[np.ndarray, float]:
    """Coefficients (n_rows, n_targets), float32 or float64, of targets Y in float32, and the alpha that they took.

    An array K is overwritten by its Cholesky factor. A packed matrix, of rows in random order, is solved with by
    iterations, which stop at a small part of the `error` of predictions relative to the targets.
    """
    if not isinstance(K, PackedKernel):
        solve, alpha = factored(K, alpha, weights, n_jobs)
        return solve(Y), alpha
    alpha = max(alpha, LEAST_ALPHA * len(K))
    shift = np.full(len(K), alpha, np.float32) if weights is None else (alpha / weights).astype(np.float32)
    tol = np.clip(_PART_OF_ERROR * error, _LEAST_TOL, _MOST_TOL)
    return _conjugate_gradients(K, shift, Y, _nystroem_inverse(K, shift), tol), alpha


def factored(K: np.ndarray, alpha: float, weights: Weights, n_jobs: int | None = 1) -> tuple[Solve, float]:
    """Solves with a matrix, which is overwritten by its Cholesky factor, and the alpha that it took."""
    if needs_precision(len(K), alpha):
        B, alpha = inverse_root(K, alpha, weights, np.empty(K.shape))
        return lambda Y: times_square(B, Y), alpha
    U, alpha = factor(K, alpha, weights, K, n_jobs)
    return lambda Y: lapack.spotrs(U.T, Y.astype(np.float32), lower=1)[0], alpha


def _nystroem_inverse(K: PackedKernel, shift: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Inverse of ``F F' + shift``, or a larger shift; F F' is Nystroem's ``K + 1 1'`` of some columns."""
    shift = np.maximum(shift, np.float32(_LEAST_SHIFT * len(K)))
    columns = K.first_rows(min(_RANK, len(K)))
    U, _ = factor(columns[:, : len(columns)], 1e-3 * float(shift.min()))
    columns += np.float32(1.0)
    F = blas.strsm(1.0, U.T, columns.T, side=1, lower=1, trans_a=1, overwrite_b=1)
    roots = np.sqrt(shift)[:, np.newaxis]
    F /= roots
    inner = F.T @ F
    inner[np.diag_indices_from(inner)] += np.float32(1.0)
    L = lapack.spotrf(inner, lower=1)[0]

    def times(R: np.ndarray) -> np.ndarray:
        scaled = R / roots
        return (scaled - F @ lapack.spotrs(L, F.T @ scaled, lower=1)[0]) / roots

    return times


def _conjugate_gradients(
    K: PackedKernel, shift: np.ndarray, Y: np.ndarray, precondition: Callable[[np.ndarray], np.ndarray], tol: float
) -> np.ndarray:
    """Conjugate gradients with all targets in every product, until all of them are done."""
    solution, residual = np.zeros_like(Y), Y.copy()
    direction = preconditioned = precondition(residual)
    square = np.einsum("ij,ij->j", residual, preconditioned, dtype=np.float64)
    most = tol * np.linalg.norm(Y, axis=0)
    for _ in range(_MAX_ITER):
        image = K @ direction + direction.sum(axis=0) + shift[:, np.newaxis] * direction
        curved = np.einsum("ij,ij->j", direction, image, dtype=np.float64)
        step = quotients(square, curved).astype(np.float32)
        solution += step * direction
        residual -= step * image
        enough = np.minimum(most, _PART_OF_FIT * np.linalg.norm(shift[:, np.newaxis] * solution, axis=0))
        if (np.linalg.norm(residual, axis=0) <= enough).all() or not step.any():
            break
        preconditioned = precondition(residual)
        before, square = square, np.einsum("ij,ij->j", residual, preconditioned, dtype=np.float64)
        ratio = quotients(square, before).astype(np.float32)
        direction = preconditioned + ratio * direction
    return solution


_JITTER = 1e-4  # of the mean value of a landmark with itself
_WORK, _FEWEST = 2e10, 1000  # rows times squared rows of a cell, and rows of a cell

CellColumns = tuple[np.ndarray, Weights]  # rows of a cell, (n_inputs, n), and their weights


def rows_of_cell(n_rows: int) -> int:
    """Return the maximum number of rows of a cell, for this number of rows."""
    return max(_FEWEST, int(np.sqrt(_WORK / n_rows)))


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

        def solve(cell: CellColumns) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
            """Rows X of a cell, F, the root of D^-1, and D^-1 F."""
            X, weights = cell
            F = self._features(X)
            # To K is added 1 1', which F F' has.
            root, _ = precise_inverse_root(kernel(X, X) - F @ F.T, alpha, weights)
            return X, F, root, times_square(root, F)

        self._cells = side_by_side(solve, cells, n_jobs)
        with one_blas_thread():
            inner = np.eye(len(landmarks.T) + 1)
            for _, F, _, W in self._cells:
                inner += F.T @ W
            self._inner = np.linalg.cholesky(inner)

    def diagonals(self) -> list[np.ndarray]:
        """Diagonal of the inverse, for the rows of each cell."""
        with one_blas_thread():
            return [squared_row_norms(root) - (self._inner_root(W.T) ** 2).sum(axis=0) for _, _, root, W in self._cells]

    def unknown(self, X: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the known and unknown parts of values at rows X, (n_inputs, n), of a cell, as three arrays.

        Parts known from rows of the cell, (n_cell, n), unknown given landmarks, (n_features, n), and the features F of
        the rows, (n, n_features). With these, T, U and F, the values' covariance is ``K + 1 1' - F F' - T' T + U' U``.
        """
        (known, known_F, root, W), F = self._cells[number], self._features(X)
        own = self._kernel(known, X) + np.float32(1.0) - known_F @ F.T
        return root.T @ own, self._inner_root(F.T - W.T @ own), F

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
