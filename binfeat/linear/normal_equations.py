"""The normal equations of ridge regression, with one pass over the rows per product."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import issparse

from binfeat._common.validation import float_dtype
from binfeat._engine.vectors import center
from binfeat._rows.products import gram_diagonal, product, transposed_product
from binfeat._rows.rows import Part, Rows
from binfeat._rows.vectors import column_dots, column_sums
from binfeat.linear.path import solve_path
from binfeat.linear.result import Penalties, Result, SolverOptions

_TINY = np.finfo(float).tiny
_CONSTANT = 1e-14  # share of a column's squares that remains by rounding after centering
_LEAST_WEIGHT = 1e-100  # squares of float64 residuals, proportional to the squared weights, would be 0 below 1e-160
_FAR = 100.0  # a column's mean in standard deviations, from which rounding matters


class NormalEquations:
    """Normal equations of ridge regression, with implicit centering for the intercept.

    For rows z_i, targets y_i and weights v_i, the system is ``(A + alpha) w = b`` with
    ``A = sum_i v_i (z_i - m)(z_i - m)'`` and ``b = sum_i v_i (z_i - m)(y_i - mean(y))``, where m is the
    weighted mean row, or 0 without intercept. Features are not copied. Every target may have its own
    weights.

    A product needs one pass over the rows, because the mean of ``Z w`` follows from w and m. The rounding error e in
    the sum of the centered values is corrected at the end, by ``Z'v - m e``. If all rows are one part, the
    mean is computed from the values, and e is corrected if columns are far from zero. The `diagonal` is ones
    if features do not provide it, and has one column if all targets have the same A. `at_zero` is the objective of
    coefficients 0, for each target.
    """

    def __init__(self, rows: Rows, fit_intercept: bool) -> None:
        self._rows, self.dtype = rows, rows.dtype
        weight, targets = rows.totals()
        _require_normal(weight / rows.shape[0], self.dtype)
        total = np.maximum(weight, _TINY)
        self._target_means = targets / total if fit_intercept else np.zeros(rows.n_targets)
        self.right, rest, columns, self.at_zero, *squares = rows.sum(_moments, self._target_means)
        self._means: np.ndarray | None = None  # without intercept
        self._typed_means: np.ndarray | Any = None
        self.diagonal = squares[0] if squares else np.ones((rows.shape[1], weight.size))
        self._recenters, self._constant = False, np.empty(0, np.intp)
        if fit_intercept:
            is_far = True
            if squares:
                of_means = columns**2
                of_means /= total
                self.diagonal -= of_means
                np.maximum(self.diagonal, 0.0, out=self.diagonal)
                is_constant = self.diagonal <= _CONSTANT * of_means
                is_far = bool(((of_means > _FAR**2 * self.diagonal) & ~is_constant).any())
                is_rounding = self.diagonal <= np.finfo(self.dtype).eps ** 2 * of_means
                self._constant = np.flatnonzero((is_rounding & (of_means > 0)).all(axis=1))
            self._recenters = is_far or not rows.whole
            columns /= total
            self._means, self._typed_means = columns, columns.astype(self.dtype, copy=False)
        self._recenter(self.right, rest, slice(None))

    def apply(self, W: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return ``A @ W``; column k of W (Fortran order) belongs to ``targets[k]``. The next call overwrites it."""
        if self._means is None:
            pivot = np.zeros(W.shape[1])
        elif self._rows.whole:
            pivot = None
        else:
            pivot = column_dots(W, self._of(self._typed_means, targets))
        image, rest = self._rows.sum(_product, W, pivot, targets)
        self._recenter(image, rest, targets)
        return image

    def intercept(self, W: np.ndarray) -> np.ndarray:
        """Return the intercepts for coefficients W, one per target; 0 without intercept."""
        return self._target_means - (0.0 if self._means is None else column_dots(W, self._means))

    def solve(self, alphas: Penalties, options: SolverOptions, start: Result | None = None) -> Iterator[Result]:
        """Yield results for descending penalties; the first solve begins at `start`; see `solve_ridge`."""
        return solve_path(self, alphas, options, None if start is None else start.solution)

    def _recenter(self, image: np.ndarray, rest: np.ndarray, targets: np.ndarray | slice) -> None:
        """Correct a product with centered values for the rounding error `rest` of their sum, in place."""
        if self._recenters:
            image -= self._of(self._typed_means, targets) * rest.astype(self.dtype)
        if self._constant.size:
            image[self._constant] = 0.0  # without rounding errors, which a small alpha would multiply

    @staticmethod
    def _of(means: np.ndarray, targets: np.ndarray | slice) -> np.ndarray:
        return means if means.shape[1] == 1 else np.asfortranarray(means[:, targets])


def _require_normal(mean_weights: np.ndarray, dtype: np.dtype) -> None:
    """Raise ValueError if weighted values would underflow in `dtype`; a mean of 0 belongs to a target without rows."""
    least, means = max(np.finfo(dtype).tiny, _LEAST_WEIGHT), mean_weights[mean_weights > 0]
    if (means < least).any():
        raise ValueError(
            f"sample_weight must be at least {least:.2g} on average for {dtype} features, got {means.min():.2g}. "
            "Multiply sample_weight and alpha by a constant."
        )


def _moments(part: Part, target_means: np.ndarray) -> list[np.ndarray]:
    """Return the right-hand side, sums of centered targets, columns and squared targets, and the raw diagonal."""
    dtype = float_dtype(part.Z.dtype)
    values = np.array(part.Y - target_means, dtype, order="F")
    at_zero = _squares(values, part.weights)
    right, rest = _back(part, values, np.zeros(values.shape[1]), slice(None))
    weights = part.known_weights if issparse(part.Z) else part.typed_weights  # SciPy sums in the dtype of the result
    columns = np.empty((part.Z.shape[1], weights.shape[1]), weights.dtype, order="F")
    transposed_product(part.Z, weights, columns)
    diagonal = gram_diagonal(part.Z, part.weights)
    moments = [right.copy(order="F"), rest, columns.astype(np.float64, copy=False), at_zero]
    return moments if diagonal is None else [*moments, diagonal]


def _squares(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    if weights is None:
        return np.einsum("ij,ij->j", values, values, dtype=np.float64)
    return np.einsum("ij,ij,ij->j", values, values, np.broadcast_to(weights, values.shape), dtype=np.float64)


def _product(part: Part, W: np.ndarray, pivot: np.ndarray | None, targets: np.ndarray) -> list[np.ndarray]:
    values = part.space("values", (part.Z.shape[0], W.shape[1]), W.dtype)
    product(part.Z, W, values)
    return _back(part, values, pivot, targets)


def _back(part: Part, values: np.ndarray, pivot: np.ndarray | None, targets: np.ndarray | slice) -> list[np.ndarray]:
    """Return ``Z' V (values - pivot)`` and the sums of ``V (values - pivot)``; None is the weighted mean as pivot."""
    if part.weights is None:
        pivot = column_sums(values) / len(values) if pivot is None else pivot
        if pivot.any():
            values -= pivot
    else:
        _center(part, values, pivot, targets)
    out = part.space("image", (part.Z.shape[1], values.shape[1]), values.dtype)
    transposed_product(part.Z, values, out)
    return [out, values.sum(axis=0, dtype=np.float64)]


def _center(part: Part, values: np.ndarray, pivot: np.ndarray | None, targets: np.ndarray | slice) -> None:
    weights, total = part.typed_weights, part.total_weight
    if weights.shape[1] > 1:
        weights, total = np.asfortranarray(weights[:, targets]), total[targets]
    pivot = column_dots(values, weights) / total if pivot is None else pivot
    center(pivot, weights.T, values.T, n_jobs=part.n_jobs)
