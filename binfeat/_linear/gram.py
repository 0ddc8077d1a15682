"""Ridge from the Gram matrix of dense features: exact, and cheaper than iterations while features are few."""

from dataclasses import dataclass
from operator import add

import numpy as np
from scipy import linalg

from binfeat._engine.policy import threads_to_factorise
from binfeat._linear.result import Result, refuse_overflow

_BLOCK_BYTES = 2**26  # of features converted or computed at a time
# Measured with 250 to 2,000 features, 2 threads, in both types: what one multiplication of the Gram matrix costs beside
# one of an iteration's products, which wait for memory; what each further target adds to those.
_GRAM_COST = 1 / 20
_TARGET_COST = 0.3
_CHOLESKY_COST = 0.5  # of D^3 multiplications
_EIGEN_COST = 8.0
_DIGIT_ITERATIONS = 15  # iterations for a digit of the residual
MOST_COLUMNS = 8192  # the matrix and its factor then take a gigabyte
_TINY = np.finfo(float).tiny


def _eigen_pays(n_alphas):
    return n_alphas * _CHOLESKY_COST > _EIGEN_COST


def gram_pays(rows, n_alphas, tol):
    """Whether features are dense, and their Gram matrix expected to cost less than conjugate gradients."""
    n_rows, n_columns = rows.shape
    if not rows.dense or n_columns > MOST_COLUMNS:
        return False
    factor = min(n_alphas * _CHOLESKY_COST, _EIGEN_COST)
    gram = _GRAM_COST * (n_rows * n_columns**2 + factor * n_columns**3)
    n_iter = _DIGIT_ITERATIONS * max(1.0, -np.log10(max(tol, 1e-16))) * (1 + (n_alphas > 1))
    iteration = 2 * (1 + _TARGET_COST * (rows.n_targets - 1)) + rows.visit_cost
    return gram < n_iter * n_rows * n_columns * iteration


@dataclass
class GramSystem:
    """Centred normal equations ``(matrix + alpha) W = right`` in float64."""

    matrix: np.ndarray  # (n_columns, n_columns)
    right: np.ndarray  # (n_columns, n_targets)
    means: np.ndarray  # weighted mean row, (n_columns,), or 0 without intercept
    target_means: np.ndarray  # (n_targets,)
    dtype: np.dtype  # of solutions
    total: float  # weight of all rows

    def __add__(self, other):
        """The system of the rows of both (Chan, Golub & LeVeque 1979)."""
        total = self.total + other.total
        share = other.total / max(total, _TINY)
        apart, targets_apart = other.means - self.means, other.target_means - self.target_means
        return GramSystem(
            self.matrix + other.matrix + self.total * share * np.outer(apart, apart),
            self.right + other.right + self.total * share * np.outer(apart, targets_apart),
            self.means + share * apart,
            self.target_means + share * targets_apart,
            self.dtype,
            total,
        )

    @property
    def n_targets(self):
        return self.right.shape[1]

    @property
    def nbytes(self):
        """Bytes of the matrix and the right-hand sides."""
        return self.matrix.nbytes + self.right.nbytes

    def intercept(self, W):
        """Intercepts that belong to coefficients W of shape (n_columns, n_targets)."""
        return self.target_means - self.means @ W

    def solve(self, alphas, options=None):
        """Exact results for each penalty; see `solve_ridge`. There are no iterations that options could limit."""
        refuse_overflow(np.dtype(np.float64), self.matrix, np.linalg.norm(self.right, axis=0))
        factors = None
        if len(alphas) > 1 and _eigen_pays(len(alphas)):
            factors = self._eigen()
        for alpha in alphas:
            alpha = np.broadcast_to(alpha, self.right.shape[1:])
            W = self._by_cholesky(alpha) if factors is None else self._by_eigen(factors[0], factors[1], alpha)
            yield self._result(W, alpha)

    def _eigen(self):
        with threads_to_factorise(len(self.matrix)):
            return linalg.eigh(self.matrix, check_finite=False, driver="evd")

    def _by_eigen(self, values, vectors, alpha):
        sums = np.maximum(values, 0.0)[:, None] + alpha
        least = values[-1] * len(values) * np.finfo(float).eps
        projected = vectors.T @ self.right
        return vectors @ np.divide(projected, sums, out=np.zeros_like(projected), where=sums > least)

    def _by_cholesky(self, alpha):
        W = np.empty_like(self.right)
        for penalty in np.unique(alpha):
            targets = alpha == penalty
            shifted = self.matrix.copy()
            shifted[np.diag_indices_from(shifted)] += penalty
            try:
                with threads_to_factorise(len(shifted)):
                    factor = linalg.cho_factor(shifted, overwrite_a=True, check_finite=False)
                W[:, targets] = linalg.cho_solve(factor, self.right[:, targets], check_finite=False)
            except linalg.LinAlgError:  # singular: the shortest of the solutions
                values, vectors = self._eigen()
                W[:, targets] = self._by_eigen(values, vectors, alpha)[:, targets]
        return W

    def _result(self, W, alpha):
        norms = np.linalg.norm(self.right, axis=0)
        left = np.linalg.norm(self.right - self.matrix @ W - alpha * W, axis=0)
        residual = np.divide(left, norms, out=np.zeros_like(norms), where=norms > 0)
        solution, residuals = np.asfortranarray(W, dtype=self.dtype), np.array([np.ones_like(residual), residual])
        return Result(solution, self.intercept(solution), 1, residuals, "converged", "gram")


def gram_system(rows, fit_intercept):
    """The normal equations of rows of dense features, from one pass over the rows; see `NormalEquations`."""
    return rows.sum(_system_of, fit_intercept, join=add)


def _system_of(part, fit_intercept):
    """The system of a part, a block of rows at a time."""
    n_columns, weights, total = part.Z.shape[1], part.known_weights, float(part.total_weight[0])
    target_means = (weights * part.Y).sum(axis=0) / total if fit_intercept else np.zeros(part.Y.shape[1])
    matrix, right = np.zeros((n_columns, n_columns)), np.zeros((n_columns, part.Y.shape[1]))
    sums, pivot = np.zeros(n_columns), np.empty(0)
    for rows, block in _row_blocks(part.Z):
        if not pivot.size:  # a row near the mean, against cancellation when that is subtracted
            pivot = block.mean(axis=0) if fit_intercept else np.zeros(n_columns, block.dtype)
        block = block - pivot
        roots = np.sqrt(weights[rows]).astype(block.dtype)
        targets = (part.Y[rows] - target_means) * weights[rows]
        right += block.T @ targets
        sums += (block.T @ weights[rows].astype(block.dtype)).ravel()
        block *= roots
        matrix += block.T @ block
    means = sums / total if fit_intercept else np.zeros_like(sums)
    matrix -= total * np.outer(means, means)
    return GramSystem(matrix, right, means + pivot, target_means, np.dtype(block.dtype), total)


def _row_blocks(Z):
    """Pairs of rows, as a slice, and their features in an array."""
    step = max(1, _BLOCK_BYTES // (8 * max(1, Z.shape[1])))
    for start in range(0, Z.shape[0], step):
        rows = slice(start, min(start + step, Z.shape[0]))
        yield rows, Z[rows] if isinstance(Z, np.ndarray) else Z[rows].toarray()
