"""Ridge from the Gram matrix of dense features: exact, and cheaper than iterations while features are few."""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from binfeat._linear.result import Result, refuse_overflow
from binfeat._rows.features import FeatureBlocks, is_dense

_BLOCK_BYTES = 2**26  # of features converted or computed at a time
# Measured with 250 to 2,000 features, 2 threads, in both types: what one multiplication of the Gram matrix costs beside
# one of an iteration's products, which wait for memory; what each further target adds to those.
_GRAM_COST = 1 / 20
_TARGET_COST = 0.3
_CHOLESKY_COST = 0.5  # of D^3 multiplications
_EIGEN_COST = 8.0
_DIGIT_ITERATIONS = 15  # iterations for a digit of the residual
_COMPUTED_COST = 10  # times that of a product, where features are computed again for each
_MOST_COLUMNS = 8192  # the matrix and its factor then take a gigabyte


def _eigen_pays(n_alphas):
    return n_alphas * _CHOLESKY_COST > _EIGEN_COST


def gram_pays(Z, n_targets, n_alphas, tol):
    """Whether Z is dense, and its Gram matrix expected to cost less than conjugate gradients to this tolerance."""
    n_rows, n_columns = Z.shape
    if not is_dense(Z) or n_columns > _MOST_COLUMNS:
        return False
    factor = min(n_alphas * _CHOLESKY_COST, _EIGEN_COST)
    gram = _GRAM_COST * (n_rows * n_columns**2 + factor * n_columns**3)
    n_iter = _DIGIT_ITERATIONS * max(1.0, -np.log10(max(tol, 1e-16))) * (1 + (n_alphas > 1))
    visit = (1 if isinstance(Z, np.ndarray) else _COMPUTED_COST) * (1 + _TARGET_COST * (n_targets - 1))
    return gram < n_iter * 2 * n_rows * n_columns * visit


@dataclass
class GramSystem:
    """Centred normal equations ``(matrix + alpha) W = right`` in float64.

    Attributes
    ----------
    matrix : ndarray of shape (n_columns, n_columns)
    right : ndarray of shape (n_columns, n_targets)
    means : ndarray of shape (n_columns,)
        Weighted mean row, or 0 without intercept.
    target_means : ndarray of shape (n_targets,)
    dtype : numpy.dtype
        Of solutions.
    total : float
        Weight of all rows.
    """

    matrix: np.ndarray
    right: np.ndarray
    means: np.ndarray
    target_means: np.ndarray
    dtype: np.dtype
    total: float

    def __add__(self, other):
        """The system of the rows of both, none without weight (Chan, Golub & LeVeque 1979)."""
        total = self.total + other.total
        share = other.total / total
        apart, targets_apart = other.means - self.means, other.target_means - self.target_means
        return GramSystem(
            self.matrix + other.matrix + self.total * share * np.outer(apart, apart),
            self.right + other.right + self.total * share * np.outer(apart, targets_apart),
            self.means + share * apart,
            self.target_means + share * targets_apart,
            self.dtype,
            total,
        )

    def intercept(self, W):
        """Intercepts that belong to coefficients W of shape (n_columns, n_targets)."""
        return self.target_means - self.means @ W

    def solve(self, alphas):
        """Solutions for each penalty: an array of shape (n_targets,) with one of them for each target.

        Yields
        ------
        result : Result
        """
        refuse_overflow(np.dtype(np.float64), self.matrix, np.linalg.norm(self.right, axis=0))
        if len(alphas) > 1 and _eigen_pays(len(alphas)):
            values, vectors = linalg.eigh(self.matrix, check_finite=False, driver="evd")
            for alpha in alphas:
                yield self._result(self._by_eigen(values, vectors, alpha), alpha)
            return
        for alpha in alphas:
            yield self._result(self._by_cholesky(alpha), alpha)

    def _by_eigen(self, values, vectors, alpha):
        sums = np.maximum(values, 0.0)[:, None] + alpha
        least = values[-1] * len(values) * np.finfo(float).eps
        projected = vectors.T @ self.right
        return vectors @ np.divide(projected, sums, out=np.zeros_like(projected), where=sums > least)

    def _by_cholesky(self, alpha):
        W = np.empty_like(self.right)
        for own in np.unique(alpha):
            targets = alpha == own
            shifted = self.matrix.copy()
            shifted[np.diag_indices_from(shifted)] += own
            try:
                factor = linalg.cho_factor(shifted, overwrite_a=True, check_finite=False)
                W[:, targets] = linalg.cho_solve(factor, self.right[:, targets], check_finite=False)
            except linalg.LinAlgError:  # singular: the shortest of the solutions
                values, vectors = linalg.eigh(self.matrix, check_finite=False, driver="evd")
                W[:, targets] = self._by_eigen(values, vectors, alpha)[:, targets]
        return W

    def _result(self, W, alpha):
        norms = np.linalg.norm(self.right, axis=0)
        left = np.linalg.norm(self.right - self.matrix @ W - alpha * W, axis=0)
        residual = np.divide(left, norms, out=np.zeros_like(norms), where=norms > 0)
        solution = np.asfortranarray(W, dtype=self.dtype)
        refuse_overflow(self.dtype, solution)
        return Result(solution, 1, np.array([np.ones_like(residual), residual]), "converged")


def _row_blocks(Z):
    """Pairs of rows, as a slice, and their features in an array."""
    if hasattr(Z, "row_blocks"):
        yield from Z.row_blocks()
        return
    step = max(1, _BLOCK_BYTES // (8 * max(1, Z.shape[1])))
    for start in range(0, Z.shape[0], step):
        rows = slice(start, start + step)
        yield rows, Z[rows].toarray() if isinstance(Z, FeatureBlocks) else Z[rows]


def gram_system(Z, Y, weights, fit_intercept):
    """Accumulate the normal equations a block of rows at a time; see `RidgeSystem` for what they are.

    Parameters
    ----------
    Z : ndarray, FeatureRows, StreamedRows, or FeatureBlocks of the first two, of shape (n_rows, n_columns)
    Y : ndarray of shape (n_rows, n_targets)
    weights : ndarray of shape (n_rows, 1), or None for ones
    fit_intercept : bool

    Returns
    -------
    system : GramSystem
    """
    weights = np.ones((Z.shape[0], 1)) if weights is None else weights
    total = weights.sum()
    target_means = (weights * Y).sum(axis=0) / total if fit_intercept else np.zeros(Y.shape[1])
    matrix, right = np.zeros((Z.shape[1], Z.shape[1])), np.zeros((Z.shape[1], Y.shape[1]))
    sums, pivot = np.zeros(Z.shape[1]), None
    for rows, block in _row_blocks(Z):
        if pivot is None:  # a row near the mean, against cancellation when that is subtracted
            pivot = block.mean(axis=0) if fit_intercept else np.zeros(Z.shape[1], block.dtype)
        block = block - pivot
        roots = np.sqrt(weights[rows]).astype(block.dtype)
        targets = (Y[rows] - target_means) * weights[rows]
        right += block.T @ targets
        sums += (block.T @ weights[rows].astype(block.dtype)).ravel()
        block *= roots
        matrix += block.T @ block
    means = sums / total if fit_intercept else np.zeros_like(sums)
    matrix -= total * np.outer(means, means)
    return GramSystem(matrix, right, means + pivot, target_means, np.dtype(block.dtype), total)
