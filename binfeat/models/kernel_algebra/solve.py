"""Solutions of exact models: ``(K + 1 1' + alpha / v) c = Y``, the diagonal of the inverse, and minima of losses."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import blas, lapack

from binfeat._common.arrays import quotients
from binfeat._common.held_out import even_folds
from binfeat._threads import one_blas_thread, side_by_side
from binfeat.length_scales.kernel_sum import KernelValues, PackedKernel, packed_bytes
from binfeat.length_scales.leave_one_out import (
    LEAST_ALPHA,
    Root,
    Solve,
    Weights,
    factor,
    inverse_root,
    needs_precision,
    precise_inverse_root,
    residuals,
    residuals_by,
    solver_by,
    squared_row_norms,
    times_square,
)
from binfeat.models.kernel_algebra.loss import Loss

MOST_FACTORED = 14_000  # rows; the matrix needs 0.8 GB, and iterations need a quarter of the memory per pair
_RANK = 500  # rank of the preconditioner
_LEAST_SHIFT = 3e-5  # penalty of the preconditioner per row; below, it is indefinite in float32
_LEAST_TOL, _MOST_TOL, _MAX_ITER = 1e-3, 1e-2, 100
_PART_OF_ERROR = 0.02  # of the error of predictions, maximum of the residual
_PART_OF_FIT = 0.03  # of the fit's residuals, maximum of the solver's, for correct leave-one-out predictions
_VECTORS = 16  # vectors per target in an iteration, including temporary ones


def cholesky_rows(n_targets: int) -> int:
    """Return the number of rows up to which a Cholesky factor is cheaper than iterations."""
    return min(2000 + 1000 * n_targets, 4500 + 500 * n_targets, MOST_FACTORED)


def solve_bytes(n_rows: int | np.ndarray, n_targets: int) -> np.ndarray:
    """Return the bytes for the kernel matrix of `n_rows` rows (a number or an array), and for its solution."""
    iterations = packed_bytes(n_rows) + 4 * n_rows * (_RANK + _VECTORS * n_targets)
    return np.where(n_rows <= cholesky_rows(n_targets), 4 * n_rows**2, iterations)


def matrix_to_solve(kernel: KernelValues, X: np.ndarray, n_targets: int) -> np.ndarray | PackedKernel:
    """Return the kernel matrix of rows X, (n_inputs, n_rows), as an array or packed, for `solve_kernel`."""
    return kernel(X, X) if X.shape[1] <= cholesky_rows(n_targets) else kernel.packed(X)


def solve_kernel(
    K: np.ndarray | PackedKernel, alpha: float, weights: Weights, Y: np.ndarray, error: float, n_jobs: int | None = 1
) -> tuple[np.ndarray, float]:
    """Return coefficients (n_rows, n_targets), float32 or float64, for targets Y in float32, and the alpha used.

    An array K is overwritten by its Cholesky factor. A packed matrix of rows in random order is solved by iterations,
    which stop at a small part of the `error` of predictions relative to the targets.
    """
    if not isinstance(K, PackedKernel):
        solve, alpha = factored(K, alpha, weights, n_jobs)
        return solve(Y), alpha
    alpha = max(alpha, LEAST_ALPHA * len(K))
    shift = np.full(len(K), alpha, np.float32) if weights is None else (alpha / weights).astype(np.float32)
    tol = np.clip(_PART_OF_ERROR * error, _LEAST_TOL, _MOST_TOL)
    return _conjugate_gradients(K, shift, Y, _nystroem_inverse(K, shift), tol), alpha


def factored(K: np.ndarray, alpha: float, weights: Weights, n_jobs: int | None = 1) -> tuple[Solve, float]:
    """Return a function that solves with a matrix, which is overwritten by its Cholesky factor, and the alpha used."""
    if needs_precision(len(K), alpha):
        B, alpha = inverse_root(K, alpha, weights, np.empty(K.shape))
        return lambda Y: times_square(B, Y), alpha
    U, alpha = factor(K, alpha, weights, K, n_jobs)
    return lambda Y: lapack.spotrs(U.T, Y.astype(np.float32), lower=1)[0], alpha


def _nystroem_inverse(K: PackedKernel, shift: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return the inverse of ``F F' + shift``, or a larger shift; F F' is Nystroem's ``K + 1 1'`` from some columns."""
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
    """Run conjugate gradients with all targets in each product, until all of them have converged."""
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


_JITTER = 1e-4  # share of the landmarks' mean kernel value that is added to the diagonal
_SHRINKAGE = np.float32(1 - 1e-5)  # factor of features, so that the remainder of equal rows is not negative by rounding
_WORK, _FEWEST = 2e10, 1000  # maximum of rows times squared rows of a cell, and minimum rows of a cell

CellColumns = tuple[np.ndarray, Weights]  # rows of a cell, (n_inputs, n), and their weights
_SolvedColumns = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # rows X of a cell, F, the root of D^-1, D^-1 F


def rows_of_cell(n_rows: int) -> int:
    """Return the maximum number of rows of a cell, for this number of rows."""
    return max(_FEWEST, int(np.sqrt(_WORK / n_rows)))


class CellInverse:
    """``(K + 1 1' + alpha / v)^-1`` of rows in cells.

    Between rows of different cells, K is approximated from landmarks (n_inputs, n_landmarks), Nystroem's ``F F'``;
    within a cell it is exact (partially independent conditionals, Snelson & Ghahramani 2007). With the remainder D in
    the cells, and ones appended to F, the inverse is ``D^-1 - D^-1 F (1 + F' D^-1 F)^-1 F' D^-1`` (Woodbury).
    """

    def __init__(
        self, kernel: KernelValues, cells: list[CellColumns], landmarks: np.ndarray, alpha: float, n_jobs: int | None
    ) -> None:
        self._kernel, self._n_jobs = kernel, n_jobs
        with one_blas_thread():
            self._features = _nystroem(kernel, landmarks)

        def solve(cell: CellColumns) -> tuple[_SolvedColumns, np.ndarray]:
            """Solve a cell; also return F' D^-1 F of its rows."""
            X, weights = cell
            F = self._features(X)
            # Add 1 1' to K, because F F' contains it.
            root, _ = precise_inverse_root(kernel(X, X) - F @ F.T, alpha, weights)
            W = times_square(root, F)
            return (X, F, root, W), F.T @ W

        solved = side_by_side(solve, cells, n_jobs)
        self._cells = [cell for cell, _ in solved]
        with one_blas_thread():
            inner = sum((part for _, part in solved), np.eye(len(landmarks.T) + 1))
            self._inner_root = np.linalg.inv(np.linalg.cholesky(inner))

    def diagonals(self) -> list[np.ndarray]:
        """Return the diagonal of the inverse, for the rows of each cell."""

        def diagonal(cell: _SolvedColumns) -> np.ndarray:
            _, _, root, W = cell
            return squared_row_norms(root) - ((self._inner_root @ W.T) ** 2).sum(axis=0)

        return side_by_side(diagonal, self._cells, self._n_jobs)

    def times(self, parts: list[np.ndarray]) -> list[np.ndarray]:
        """Return the product of the inverse and columns (n, m), for the rows of each cell."""

        def own(number: int) -> tuple[np.ndarray, np.ndarray]:
            _, _, root, W = self._cells[number]
            return times_square(root, parts[number]), W.T @ parts[number]

        each = side_by_side(own, range(len(parts)), self._n_jobs)
        shared = self._inner_root.T @ (self._inner_root @ sum(part for _, part in each))
        return [found - W @ shared for (found, _), (_, _, _, W) in zip(each, self._cells, strict=True)]

    def unknown(self, X: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return arrays T (n_cell, n), U (n_features, n) and F (n, n_features) for rows X, (n_inputs, n), of a cell.

        T: part explained by the rows of the cell. U: part that is uncertain because landmark weights are. F: landmark
        features of X. The covariance of the values is ``K + 1 1' - F F' - T' T + U' U``.
        """
        (known, known_F, root, W), F = self._cells[number], self._features(X)
        own = self._kernel(known, X) + np.float32(1.0) - known_F @ F.T
        return root.T @ own, self._inner_root @ (F.T - W.T @ own), F

    @property
    def n_features(self) -> int:
        return len(self._inner_root)


def _nystroem(kernel: KernelValues, landmarks: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return features of rows (n_inputs, n); their inner products are the landmark kernel plus 1."""
    K = kernel(landmarks, landmarks)
    # Minus 1, because `inverse_root` adds 1 1'.
    precise, _ = inverse_root(K - np.float32(1.0), _JITTER * float(K.diagonal().mean()), out=np.empty(K.shape))
    root = _SHRINKAGE * precise.astype(np.float32)

    def features(X: np.ndarray) -> np.ndarray:
        return np.hstack([kernel(X, landmarks) @ root, np.full((X.shape[1], 1), _SHRINKAGE)])

    return features


_MEMORY = 10  # steps for directions of L-BFGS
_FACTORS, _MOST = 8, 20  # maximum of factors, and of steps with each
_ENOUGH = 1e-4  # steps end if a step should gain less than this share of the objective
_SUFFICIENT = 1e-4  # a line search must reach this share of the linear prediction
_SHORTEST = 1e-6  # shortest part of a step
_FEW_EVENTS, _FOLDS = 100, 5

_Change = tuple[np.ndarray, np.ndarray, np.ndarray]  # changes by a step: coefficients, scores, and gradient


def minimize(
    loss: Loss,
    factored: Callable[[float, np.ndarray], tuple[Solve, float]],  # of K + 1 1' + alpha / weights, and the alpha used
    alpha: float,
    weights: Weights,
    Y: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Minimize the loss by quasi-Newton steps from scores of 0.

    Return the coefficients and the scores of the rows, both (n_rows, n_targets), the relative decrease expected from
    one more step, and the penalty that was used.

    One factor serves all targets and many steps of L-BFGS (Nocedal 1980), in coefficients c. With the gradient
    ``g = alpha c - v pulls`` and curvatures h, the first step is ``r = (K + 1 1' + alpha / (h v))^-1 g / (h v)``. It
    moves scores by ``(g - alpha r) / (h v)``, so no product with K is needed. If these steps are not enough, as with
    small penalties, more follow with a factor for the curvatures at the current scores.
    """
    v = np.ones((len(Y), 1)) if weights is None else weights[:, np.newaxis]
    coef, scores, gain, scale = np.zeros(Y.shape), np.zeros(Y.shape), np.inf, 0.0
    for _ in range(_FACTORS):
        curved = v * loss.steps(Y, scores)[1].mean(axis=1, keepdims=True)
        scale = scale or float(curved.mean())  # the smallest alpha of a factor refers to weights with mean 1
        solve, raised = factored(alpha / scale, curved[:, 0] / scale)
        alpha = raised * scale
        coef, scores, gain = _steps(loss, solve, alpha, v, curved, Y, coef, scores)
        if gain < _ENOUGH:
            break
    return coef, scores, gain, alpha


def _steps(
    loss: Loss,
    solve: Solve,
    alpha: float,
    v: np.ndarray,
    curved: np.ndarray,
    Y: np.ndarray,
    coef: np.ndarray,
    scores: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return coefficients, scores and gain after the steps with one factor."""
    known, gain = list[_Change](), np.inf
    objective, gradient = _objective(loss, alpha, v, Y, coef, scores), alpha * coef - v * loss.pulls(Y, scores)
    for _ in range(_MOST):
        step, change = _direction(solve, known, gradient, alpha, curved)
        slope, length = float((change * gradient).sum()), 1.0
        gain = slope / max(objective, np.finfo(float).eps * curved.sum())
        if gain < _ENOUGH:
            break
        while length > _SHORTEST:
            moved = coef - length * step, scores - length * change
            after = _objective(loss, alpha, v, Y, *moved)
            if after <= objective - _SUFFICIENT * length * slope:
                break
            length /= 2
        else:
            break
        before = coef, scores, gradient
        coef, scores, objective = *moved, after
        gradient = alpha * coef - v * loss.pulls(Y, scores)
        known = [*known, (coef - before[0], scores - before[1], gradient - before[2])][-_MEMORY:]
    return coef, scores, gain


def _direction(
    solve: Solve, known: list[_Change], slopes: np.ndarray, alpha: float, bound: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the step of coefficients and of scores, by two loops over stored steps (Nocedal 1980)."""
    q, parts = slopes, list[float]()
    curves = [float((scores * gradient).sum()) for _, scores, gradient in known]
    for (_, scores, gradient), curve in zip(reversed(known), reversed(curves)):
        parts.append(float((scores * q).sum()) / curve)
        q = q - parts[-1] * gradient
    step = solve(q / bound)
    change = (q - alpha * step) / bound
    for (coef, scores, gradient), curve, part in zip(known, curves, reversed(parts)):
        part -= float((gradient * change).sum()) / curve
        step, change = step + part * coef, change + part * scores
    return step, change


def _objective(loss: Loss, alpha: float, v: np.ndarray, Y: np.ndarray, coef: np.ndarray, scores: np.ndarray) -> float:
    return float(v[:, 0] @ loss.halves(Y, scores) + alpha / 2 * (coef * scores).sum())


def left_out(
    loss: Loss,
    K: np.ndarray,
    alpha: float,
    weights: Weights,
    Y: np.ndarray,
    scores: np.ndarray,
    root: Root,
    groups: np.ndarray | None = None,
) -> np.ndarray:
    """Return leave-one-out (or leave-one-group-out) scores of the quadratic approximation near scores of all rows.

    They equal the scores of the loss to first order (Rad & Maleki 2020). Excluding a row beyond the margin, where
    the loss has slope 0, changes nothing, but other rows of its group can matter.
    """
    steps, curvatures = loss.steps(Y, scores)
    known = curvatures if weights is None else weights[:, np.newaxis] * curvatures
    out = scores.copy()
    for columns, own in zip(np.array_split(np.arange(Y.shape[1]), known.shape[1]), known.T, strict=True):
        live = np.arange(len(Y)) if groups is not None else np.flatnonzero(steps[:, columns].any(axis=1))
        if live.size:
            B, _ = root(np.ascontiguousarray(K[np.ix_(live, live)]), alpha, own[live])
            place = np.ix_(live, columns)
            near = scores[place] + steps[place]
            out[place] = near - residuals_by(B, times_square(B, near), groups)
    return out


def minimum_left_out(
    loss: Loss, K: np.ndarray, alpha: float, weights: Weights, Y: np.ndarray, root: Root, groups: np.ndarray | None
) -> np.ndarray:
    """Return `left_out` at the minimum of the loss.

    If few rows are events, one of them can contribute nearly all of the local curvature, and the minimum without it is
    far away. Then the rows are predicted in folds instead, by models of the other folds.
    """
    if loss.is_squares:
        return Y - residuals(K, alpha, weights, Y.astype(np.float32), root, groups)
    is_event = loss.events(Y)
    if is_event is None or is_event.sum(axis=0).min() >= _FEW_EVENTS:
        _, scores, _, alpha = minimize(loss, solver_by(root, K), alpha, weights, Y)
        return left_out(loss, K, alpha, weights, Y, scores, root, groups)
    folds, out = even_folds(np.asarray(is_event.any(axis=1)), groups, _FOLDS), np.zeros(Y.shape)
    for fold in np.unique(folds):
        own, others = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        if not others.size:  # a single row or group: a model without rows predicts 0
            break
        some = None if weights is None else weights[others]
        coef = coefficients(loss, K[np.ix_(others, others)], alpha, some, Y[others], root)
        out[own] = (K[np.ix_(own, others)] + np.float32(1.0)) @ coef
    return out


def coefficients(loss: Loss, K: np.ndarray, alpha: float, weights: Weights, Y: np.ndarray, root: Root) -> np.ndarray:
    if not loss.is_squares:
        return minimize(loss, solver_by(root, K), alpha, weights, Y)[0]
    solve, _ = solver_by(root, K)(alpha, weights)
    return solve(Y)
