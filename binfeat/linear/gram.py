"""Ridge from the Gram matrix of dense features: exact, and cheaper than iterations for few features."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from operator import add

import numpy as np
from scipy import linalg

from binfeat._common.arrays import quotients
from binfeat._common.memory import allowed_bytes
from binfeat._common.subsets import slices
from binfeat._common.validation import float_dtype
from binfeat._rows.products import Features, is_computed
from binfeat._rows.rows import Part, Rows
from binfeat._threads import side_by_side, threads_to_factorize
from binfeat.linear.result import Penalties, Result, SolverOptions, refuse_overflow

_BLOCK_BYTES, _FEWEST_ROWS = 2**26, 2048  # of features per block; sums of blocks are added up in float64
_PANEL = 1024  # columns of a Gram matrix, above which threads multiply columns instead of rows
_MOST_PIECES, _PIECE_WORK = 8, 2**22  # pieces of the rows of a block, and least products of a piece
# Measured with 250 to 2,000 features, 2 threads, both dtypes: the cost of a multiplication in the Gram matrix relative
# to one in an iteration, which is memory-bound; and the share that each further target adds to an iteration.
_GRAM_COST = 1 / 20
_TARGET_COST = 0.3
_CHOLESKY_COST = 0.5  # relative cost of D^3 multiplications
_EIGEN_COST = 8.0
_DIGIT_ITERATIONS = 15  # iterations per digit of the residual
_DEFAULT_DIGITS = 2.8  # for the default stopping rule: 42 iterations in the mean of 15 tables and 4 penalties
_MEMORY_PART = 4  # the matrix and its factor may need a quarter of the memory
_TINY = np.finfo(float).tiny
_CONSTANT = 2.0  # Columns with a smaller standard deviation, in roundings of their mean, count as constant.


def gram_fits(n_columns: int) -> bool:
    """Return True if a Gram matrix and its Cholesky factor need at most a quarter of the memory."""
    return 2 * n_columns**2 * np.dtype(np.float64).itemsize <= allowed_bytes(None, _MEMORY_PART)


def gram_pays(rows: Rows, n_alphas: int, tol: float | None) -> bool:
    """Return True if features are dense, and the Gram matrix should cost less than conjugate gradients."""
    n_rows, n_columns = rows.shape
    if not (rows.dense and gram_fits(n_columns)):
        return False
    factor = min(n_alphas * _CHOLESKY_COST, _EIGEN_COST)
    gram = _GRAM_COST * (n_rows * n_columns**2 + factor * n_columns**3)
    digits = _DEFAULT_DIGITS if tol is None else max(1.0, -np.log10(max(tol, 1e-16)))
    n_iter = _DIGIT_ITERATIONS * digits * (1 + (n_alphas > 1))
    iteration = 2 * (1 + _TARGET_COST * (rows.n_targets - 1)) + rows.visit_cost
    return gram < n_iter * n_rows * n_columns * iteration


@dataclass
class GramSystem:
    """Centered normal equations ``(matrix + alpha) W = right`` in float64."""

    matrix: np.ndarray  # (n_columns, n_columns)
    right: np.ndarray  # (n_columns, n_targets)
    means: np.ndarray  # weighted mean row, (n_columns,), or 0 without intercept
    target_means: np.ndarray  # (n_targets,)
    dtype: np.dtype  # of solutions
    total: float  # weight of all rows

    def __add__(self, other: "GramSystem") -> "GramSystem":
        """Return the system of the rows of both systems (Chan, Golub & LeVeque 1979)."""
        total = self.total + other.total
        share = other.total / max(total, _TINY)
        apart, targets_apart = other.means - self.means, other.target_means - self.target_means
        matrix = np.outer(self.total * share * apart, apart)
        matrix += self.matrix
        matrix += other.matrix
        right = self.right + other.right + self.total * share * np.outer(apart, targets_apart)
        means, target_means = self.means + share * apart, self.target_means + share * targets_apart
        return GramSystem(matrix, right, means, target_means, np.result_type(self.dtype, other.dtype), total)

    @property
    def n_targets(self) -> int:
        return self.right.shape[1]

    @property
    def nbytes(self) -> int:
        return self.matrix.nbytes + self.right.nbytes

    def intercept(self, W: np.ndarray) -> np.ndarray:
        """Return the intercepts for coefficients W of shape (n_columns, n_targets)."""
        return self.target_means - self.means @ W

    def solve(
        self, alphas: Penalties, options: SolverOptions | None = None, start: Result | None = None
    ) -> Iterator[Result]:
        """Yield the exact result for each penalty; see `solve_ridge`. Start and limits are not used."""
        refuse_overflow(np.dtype(np.float64), self.matrix, np.linalg.norm(self.right, axis=0))
        system = self._without_constants()
        factors = system._eigen() if len(alphas) * _CHOLESKY_COST > _EIGEN_COST else None
        for alpha in alphas:
            penalties = np.broadcast_to(alpha, self.right.shape[1:])
            W = system._by_cholesky(penalties) if factors is None else system._by_eigen(*factors, penalties)
            yield system._result(W, penalties)

    def _without_constants(self) -> "GramSystem":
        """Return the system with zeros for constant columns.

        Their diagonal contains only rounding errors, which a small penalty would invert.
        """
        deviations = np.sqrt(np.maximum(np.diag(self.matrix), 0.0) / max(self.total, _TINY))
        varies = deviations >= _CONSTANT * np.finfo(float).eps * np.abs(self.means)
        if varies.all():
            return self
        return replace(self, matrix=self.matrix * np.outer(varies, varies), right=self.right * varies[:, np.newaxis])

    def _eigen(self) -> tuple[np.ndarray, np.ndarray]:
        with threads_to_factorize(len(self.matrix)):
            return linalg.eigh(self.matrix, check_finite=False, driver="evd")

    def _by_eigen(self, values: np.ndarray, vectors: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        sums = np.maximum(values, 0.0)[:, None] + alpha
        least = max(values[-1], 0.0) * len(values) * np.finfo(float).eps
        projected = vectors.T @ self.right
        return vectors @ np.divide(projected, sums, out=np.zeros_like(projected), where=sums > least)

    def _by_cholesky(self, alpha: np.ndarray) -> np.ndarray:
        W = np.empty_like(self.right)
        for penalty in np.unique(alpha):
            targets = alpha == penalty
            shifted = self.matrix.copy().T  # Fortran order, so that LAPACK makes no copy
            shifted[np.diag_indices_from(shifted)] += penalty
            try:
                with threads_to_factorize(len(shifted)):
                    factor = linalg.cho_factor(shifted, overwrite_a=True, check_finite=False)
                W[:, targets] = linalg.cho_solve(factor, self.right[:, targets], check_finite=False)
            except linalg.LinAlgError:  # singular: use the minimum-norm solution
                values, vectors = self._eigen()
                W[:, targets] = self._by_eigen(values, vectors, alpha)[:, targets]
        return W

    def _result(self, W: np.ndarray, alpha: np.ndarray) -> Result:
        norms = np.linalg.norm(self.right, axis=0)
        left = np.linalg.norm(self.right - self.matrix @ W - alpha * W, axis=0)
        residual = quotients(left, norms)
        solution, residuals = np.asfortranarray(W, dtype=self.dtype), np.array([np.ones_like(residual), residual])
        return Result(solution, self.intercept(solution), 1, residuals, "converged", "gram")


def gram_system(rows: Rows, fit_intercept: bool) -> GramSystem:
    """Compute the normal equations of dense features in one pass over the rows; see `NormalEquations`."""
    return rows.sum(_system_of, fit_intercept, join=add, in_blocks=True)


def _system_of(part: Part, fit_intercept: bool) -> GramSystem:
    """Compute the system of a part; blocks of `_filled` are summed in the features' dtype, and added up in float64.

    The error of an entry is at most ``_FEWEST_ROWS`` roundings (or as many as rows in 64 MB) of the sum of magnitudes,
    for any number of rows (Blanchard, Higham & Mary 2020, "A Class of Fast and Accurate
    Summation Algorithms").
    """
    n_columns, weights, total = part.Z.shape[1], part.known_weights, float(part.total_weight[0])
    target_means = (weights * part.Y).sum(axis=0) / total if fit_intercept else np.zeros(part.Y.shape[1])
    matrix, right = np.zeros((n_columns, n_columns)), np.zeros((n_columns, part.Y.shape[1]))
    sums, pivot = np.zeros((n_columns, 1)), np.empty(0)
    for rows, block in _filled(part.Z):
        if not pivot.size:  # a row near the mean, against cancellation when the mean is subtracted
            own = None if part.weights is None else weights[rows, 0]
            pivot = _mean_of(block, own) if fit_intercept else np.zeros(n_columns, block.dtype)
        roots = np.sqrt(weights[rows]).astype(block.dtype)
        targets = ((part.Y[rows] - target_means) * roots).astype(block.dtype)
        pieces = side_by_side(partial(_sums, block, pivot, roots, targets), _pieces(block), part.n_jobs)
        for more in pieces:
            for known, own in zip((right, sums, matrix), more):
                known += own
        if n_columns > _PANEL:
            side_by_side(partial(_add_products, block, matrix), _panels(n_columns), part.n_jobs)
    means = sums[:, 0] / total if fit_intercept else np.zeros(n_columns)
    _complete(matrix, means, total)
    return GramSystem(matrix, right, means + pivot, target_means, np.dtype(pivot.dtype), total)


def _mean_of(block: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the mean row with weights (n_rows,), or without if all are 0; the values of constant columns are exact."""
    if weights is None or not weights.any():
        mean = block.mean(axis=0, dtype=np.float64)
    else:
        mean = np.einsum("i,ij->j", weights / weights.sum(), block)
    return mean.astype(block.dtype)


def _pieces(block: np.ndarray) -> Iterable[slice]:
    """Return slices of the rows of a block, for threads; few, if there is little work."""
    n_pieces = int(np.clip(block.size * block.shape[1] // _PIECE_WORK, 1, _MOST_PIECES))
    return slices(len(block), max(1, -(-len(block) // n_pieces)))


def _sums(
    block: np.ndarray, pivot: np.ndarray, roots: np.ndarray, targets: np.ndarray, rows: slice
) -> list[np.ndarray]:
    """Center and weight some rows in place; return products with targets, sums, and, of few columns, the matrix."""
    own = block[rows]
    own -= pivot
    own *= roots[rows]
    sums = [own.T @ targets[rows], own.T @ roots[rows]]
    return [*sums, own.T @ own] if block.shape[1] <= _PANEL else sums


def _filled(Z: Features) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield slices of rows of equal length (except the last), with their features.

    The caller may overwrite the features; the next step reuses their memory.
    """
    dtype, (n_rows, n_columns) = float_dtype(Z.dtype), Z.shape
    step = min(n_rows, max(_FEWEST_ROWS, _BLOCK_BYTES // (dtype.itemsize * max(1, n_columns))))
    held, start, size = np.empty((step, n_columns), dtype), 0, 0
    blocks = Z.row_blocks() if is_computed(Z) else ((rows, Z[rows]) for rows in slices(n_rows, step))
    for _, block in blocks:
        block = block.toarray() if hasattr(block, "toarray") else np.asarray(block)
        while len(block):
            some, block = block[: step - size], block[step - size :]
            held[size : size + len(some)] = some
            size += len(some)
            if size == step or start + size == n_rows:
                yield slice(start, start + size), held[:size]
                start, size = start + size, 0


def _panels(n_columns: int) -> Iterator[tuple[slice, slice]]:
    """Yield a slice of some columns, and the slice of these and all later columns."""
    for panel in slices(n_columns, -(-_PANEL // 4)):
        yield panel, slice(panel.start, n_columns)


def _add_products(block: np.ndarray, matrix: np.ndarray, panel_and_later: tuple[slice, slice]) -> None:
    """Add ``block.T @ block`` to the matrix, on and above the diagonal of some columns."""
    panel, later = panel_and_later
    matrix[panel, later] += block[:, panel].T @ block[:, later]


def _complete(matrix: np.ndarray, means: np.ndarray, total: float) -> None:
    """Subtract the means from the sums above the diagonal, and copy the result below it."""
    for panel, later in _panels(len(matrix)):
        matrix[panel, later] -= np.multiply.outer(total * means[panel], means[later])
        corner = np.triu(matrix[panel, panel])
        matrix[panel, panel] = corner + np.triu(corner, 1).T
        matrix[panel.stop :, panel] = matrix[panel, panel.stop :].T
