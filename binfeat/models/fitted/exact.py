"""Functions of exact models, and their error bars."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Self

import numpy as np

from binfeat._common.derived import locked_cached_property
from binfeat._common.memory import require_memory
from binfeat._common.saved_values import FLOATS
from binfeat._common.subsets import evenly_spaced, slices
from binfeat._threads import one_blas_thread, side_by_side
from binfeat.length_scales.leave_one_out import (
    MOST_PRECISE_ROWS,
    inverse_root,
    least_alpha,
    left_out_variances,
    precise_inverse_root,
    squared_row_norms,
)
from binfeat.linear.posterior import RidgePosterior
from binfeat.models.fitted.cell_trees import CellTrees, cells_of_columns, rows_by_cell
from binfeat.models.fitted.expansion import ANCHORED_ROWS, Expansion, few_anchors
from binfeat.models.fitted.kernel_function import HeldOutErrors, KernelFunction, normal_samples
from binfeat.models.kernel_algebra.solve import CellInverse, rows_of_cell

MOST_IN_CLOSED_FORM = 4000  # rows; the factor needs 64 MB and half a second (16,000 rows: 1 GB and 20 s)
_ROWS = 512  # rows per block of variances
_LANDMARKS = 400  # rows that couple the cells of many rows
_ROWS_TOGETHER = 1024  # rows of a cell per block of variances
# With a penalty below this multiple of the least one, variances are computed from kernel values in float64. In float32,
# variances of smooth functions with little noise were 0.
_PRECISE = 1e3
_ROUNDING = 1e-9  # rounding of ranks: (1 - 0.9) / 2 is less than 0.05


@dataclass(frozen=True, eq=False, kw_only=True)
class ExactFunction(KernelFunction):
    """A function of all training rows, with a coefficient for each.

    Its values are computed from a few rows, the anchors, if these are enough.
    """

    # Rows of the support, and their coefficients.
    anchors: Annotated[np.ndarray, np.int32, "anchors"] = field(default_factory=partial(np.empty, 0, np.int32))
    anchor_coef: Annotated[np.ndarray, FLOATS, "targets", "anchors"] = field(default_factory=partial(np.empty, (0, 0)))

    @locked_cached_property
    def _expansion(self) -> Expansion:
        return Expansion.of_one_cell(self.kernel(1), self.categorical, self.standardizer, *self.expansion)

    @property
    def expansion(self) -> tuple[np.ndarray, np.ndarray]:
        """Return rows (n_inputs, n) and coefficients (n_targets, n) for computing values."""
        if not self.anchors.size:
            return self.support, self.coef
        return np.ascontiguousarray(self.support[:, self.anchors]), self.anchor_coef

    @property
    def exceeds_cell(self) -> bool:
        return self.n_rows > rows_of_cell(self.n_rows)

    def inverse_root(self, n_jobs: int | None = 1) -> tuple[np.ndarray, float]:
        """Return the root of the inverse of ``K + 1 1' + alpha / v``, and the alpha that was needed."""
        K = self.kernel(n_jobs)(self.support, self.support)
        return precise_inverse_root(K, float(self.alpha), self.weights, n_jobs, overwrite=True)

    def of_rows(self, rows: np.ndarray) -> Self:
        """Return the function with only some of its rows."""
        return replace(
            self,
            support=np.ascontiguousarray(self.support[:, rows]),
            weights=self.weights[rows],
            coef=self.coef[:, rows],
            anchors=np.empty(0, np.int32),
            anchor_coef=np.empty((0, 0)),
        )

    def with_anchors(self, n_jobs: int | None) -> Self:
        """Return the function with anchors, if few rows reproduce its values within a small part of the residuals."""
        if self.n_rows < ANCHORED_ROWS:
            return self
        residuals = np.sqrt(((float(self.alpha) * self.coef) ** 2 / self.weights).mean(axis=1))
        known = self.kernel(1), self.categorical, self.support, self.coef
        found = few_anchors(*known, residuals, n_jobs)
        return self if found is None else replace(self, anchors=found[0], anchor_coef=found[1])

    def posterior(
        self, samples: RidgePosterior | None, errors: HeldOutErrors | None, n_jobs: int | None
    ) -> "ExactPosterior | ManyRowsPosterior":
        return self._posterior_kind(self, n_jobs, errors)

    def robust_errors(self, weights: np.ndarray | None, n_jobs: int | None) -> HeldOutErrors:
        """Return leave-one-out errors of rows that count as often as the given weights, (n_rows,), or equally."""
        return self._posterior_kind(self, n_jobs, weights=weights, is_robust=True).errors

    @property
    def _posterior_kind(self) -> "type[ExactPosterior | ManyRowsPosterior]":
        return ExactPosterior if self.n_rows <= MOST_IN_CLOSED_FORM else ManyRowsPosterior

    def inverse_diagonal(self, n_jobs: int | None) -> np.ndarray:
        """Return the diagonal of ``(K + 1 1' + alpha / v)^-1``, (n_rows,), of many rows approximated by cells."""
        if self.exceeds_cell:
            return RowsInCells.of(self, n_jobs).diagonal()
        with one_blas_thread():
            return squared_row_norms(self.inverse_root(n_jobs)[0])

    def _values(self, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
        return self._expansion(X, n_jobs)


def _counts(function: ExactFunction, weights: np.ndarray | None) -> np.ndarray | None:
    """Return the given weights, or the weights of the function if these count rows."""
    return function.weights if weights is None and function.weights_are_counts else weights


class ExactPosterior:
    """Error bars of an exact model in closed form (Rasmussen & Williams 2006, eq. 2.26 and 5.12).

    Errors are validation errors, if there are validation rows, or leave-one-group-out or leave-one-out errors.
    They are not computed without `needs_errors`.
    """

    errors: HeldOutErrors

    def __init__(
        self,
        function: ExactFunction,
        n_jobs: int | None,
        errors: HeldOutErrors | None = None,
        weights: np.ndarray | None = None,
        is_robust: bool = False,
        needs_errors: bool = True,
    ) -> None:
        self._function, n_rows = function, function.support.shape[1]
        computes_errors = needs_errors and errors is None
        require_memory(8 * n_rows**2, "the standard deviations of an exact model", "Call predict without return_std.")
        with one_blas_thread():
            # Coefficients belong to kernel values in float32, and so do their leave-one-out errors.
            self._is_precise = n_rows <= MOST_PRECISE_ROWS and function.alpha < _PRECISE * least_alpha(n_rows)
            if computes_errors or not self._is_precise:
                self._root, self._alpha = function.inverse_root(n_jobs)
            if computes_errors:
                self.errors = self._left_out(_counts(function, weights), is_robust)
            elif errors is not None:
                self.errors = errors
            if self._is_precise:
                K = function.precise_kernel(function.support, function.support)
                self._root, self._alpha = inverse_root(K, float(function.alpha), function.weights, K, n_jobs)

    def _left_out(self, weights: np.ndarray | None, is_robust: bool) -> HeldOutErrors:
        function, g = self._function, squared_row_norms(self._root)
        variances = left_out_variances(g, self._alpha, function.weights)
        return HeldOutErrors.of((function.coef / g).T, variances, weights=weights, is_robust=is_robust)

    def variances(self, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
        out = np.empty(len(X))

        def fill(place: slice) -> None:
            rows = self._function.standardizer.columns(X[place])
            known = self._known(rows, n_jobs)
            out[place] = self._function.kernel_diagonal(rows) + 1 - np.einsum("ij,ij->j", known, known, dtype=float)

        side_by_side(fill, slices(len(X), _ROWS), n_jobs)
        return np.maximum(out, 0.0) / self._alpha

    def deviations(self, X: np.ndarray, n_samples: int, rng: np.random.Generator, n_jobs: int | None) -> np.ndarray:
        require_memory(32 * len(X) ** 2, "the joint distribution of samples", "Pass fewer rows to sample_y at a time.")
        rows = self._function.standardizer.columns(X)
        known = self._known(rows, n_jobs).astype(np.float64)
        covariance = self._kernel(n_jobs)(rows, rows) + 1.0 - known.T @ known
        return normal_samples(covariance / self._alpha, n_samples, rng)

    def solved(self, X: np.ndarray) -> np.ndarray:
        """Return ``(K + 1 1' + alpha / v)^-1 (k + 1)``, (n_model_rows, n_rows), for rows (n_rows, n_inputs)."""
        return self._root @ self._known(self._function.standardizer.columns(X), 1)

    def _kernel(self, n_jobs: int | None) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        return self._function.precise_kernel if self._is_precise else self._function.kernel(n_jobs)

    def _known(self, rows: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """Return the reduction of the prior variance by each training row, as squares (n_model_rows, n_rows)."""
        return self._root.T @ (self._kernel(n_jobs)(self._function.support, rows) + np.float32(1.0))


@dataclass(frozen=True, eq=False)
class RowsInCells:
    """Many rows of a function in cells, and the inverse of their kernel matrix, approximated by `CellInverse`.

    The inverse is NaN for rows that do not fit into their cell, because too many of them are equal.
    """

    n_rows: int
    tree: CellTrees
    cells: list[np.ndarray]  # row numbers of each cell
    inverse: CellInverse

    @classmethod
    def of(cls, function: KernelFunction, n_jobs: int | None) -> Self:
        n_rows, support = function.n_rows, function.support
        tree, cells = cells_of_columns(support, function.scales, rows_of_cell(n_rows))
        known = [(np.ascontiguousarray(support[:, rows]), function.weights[rows]) for rows in cells]
        landmarks = np.ascontiguousarray(support[:, evenly_spaced(n_rows, _LANDMARKS)])
        inverse = CellInverse(function.kernel(1), known, landmarks, float(function.alpha), n_jobs)
        return cls(n_rows, tree, cells, inverse)

    def diagonal(self) -> np.ndarray:
        return self._in_order(self.inverse.diagonals())

    def times(self, columns: np.ndarray) -> np.ndarray:
        return self._in_order(self.inverse.times([columns[rows] for rows in self.cells]))

    def _in_order(self, parts: list[np.ndarray]) -> np.ndarray:
        out = np.full((self.n_rows, *parts[0].shape[1:]), np.nan)
        out[np.concatenate(self.cells)] = np.concatenate(parts)
        return out


class ManyRowsPosterior:
    """Error bars of an exact model of many rows: rows of different cells are coupled only by landmarks.

    These are partially independent conditionals (Snelson & Ghahramani 2007): a row's variance is exact except for what
    rows of other cells add beyond the landmarks, so variances are too large. A factor that `fit` estimates corrects
    their mean. Leave-one-out residuals are divided by the same deviations, so intervals have the requested coverage.
    `fit` stores these residuals. Files of older versions lack them, so the approximated inverse computes them, a few
    percent too large.
    """

    def __init__(
        self,
        function: ExactFunction,
        n_jobs: int | None,
        errors: HeldOutErrors | None = None,
        weights: np.ndarray | None = None,
        is_robust: bool = False,
    ) -> None:
        self._function, self._alpha = function, float(function.alpha)
        rows = RowsInCells.of(function, n_jobs)
        self._tree, self._inverse = rows.tree, rows.inverse
        if errors is None:
            errors = self._left_out(rows.diagonal(), _counts(function, weights), is_robust)
        self.errors = errors

    def _left_out(self, diagonal: np.ndarray, weights: np.ndarray | None, is_robust: bool) -> HeldOutErrors:
        finite = np.flatnonzero(np.isfinite(diagonal))
        variances = left_out_variances(diagonal[finite], self._alpha, self._function.weights[finite])
        own = None if weights is None else weights[finite]
        residuals = (self._function.coef[:, finite] / diagonal[finite]).T
        return HeldOutErrors.of(residuals, variances, weights=own, is_robust=is_robust)

    def variances(self, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
        columns, out = self._function.standardizer.columns(X), np.empty(len(X))

        def fill(group: tuple[int, np.ndarray]) -> None:
            number, rows = group
            own = np.ascontiguousarray(columns[:, rows])
            explained, shared, F = self._inverse.unknown(own, number)
            more, *less = (np.einsum("ij,ij->j", part, part, dtype=np.float64) for part in (shared, explained, F.T))
            out[rows] = np.maximum(self._function.kernel_diagonal(own) + 1.0 - sum(less), 0.0) + more

        groups = (
            (number, rows[some]) for number, rows in self._groups(columns) for some in slices(len(rows), _ROWS_TOGETHER)
        )
        side_by_side(fill, groups, n_jobs)
        return float(self.errors.variance_factor) * out / self._alpha

    def deviations(self, X: np.ndarray, n_samples: int, rng: np.random.Generator, n_jobs: int | None) -> np.ndarray:
        columns, out = self._function.standardizer.columns(X), np.empty((len(X), n_samples))
        common = rng.standard_normal((self._inverse.n_features, n_samples))
        for number, rows in self._groups(columns):
            own = np.ascontiguousarray(columns[:, rows])
            explained, shared, F = self._inverse.unknown(own, number)
            covariance = self._function.kernel(1)(own, own) + 1.0 - F @ F.T - explained.T @ explained
            out[rows] = normal_samples(covariance.astype(np.float64), n_samples, rng) + shared.T @ common
        return np.sqrt(float(self.errors.variance_factor) / self._alpha) * out

    def _groups(self, columns: np.ndarray) -> list[tuple[int, np.ndarray]]:
        return rows_by_cell(self._tree(columns.T.astype(np.float64))[0])


@dataclass(frozen=True, eq=False, kw_only=True)
class NoiseModel(ExactFunction):
    """Logarithms of the sizes of residuals, and residuals in units of these sizes.

    Residuals are leave-one-out or validation residuals of standardized targets; sizes are predicted for rows that were
    not used to learn sizes.
    """

    intercept: Annotated[np.ndarray, np.float64, "targets"]
    differ: Annotated[np.ndarray, np.bool_]  # True if sizes clearly differ between rows
    residuals: Annotated[np.ndarray, FLOATS, "validated", "targets"]  # divided by their sizes, `sorted_residuals`

    def sizes(self, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """Return the sizes of the residuals of scaled rows, (n_rows, n_targets)."""
        return np.exp(self.scores(X, self.intercept, n_jobs))

    def quantiles(self, levels: np.ndarray) -> np.ndarray:
        """Return conservative quantiles of residuals divided by their sizes, (n_levels, n_targets).

        The quantile is the residual of rank ``level (n + 1)``, rounded down for levels below 1/2 and up for others (Lei
        et al. 2018). ValueError if the rows are too few for a level.
        """
        missing, n_rows = levels[~self._exist(levels)], len(self.residuals)
        if missing.size:
            least = 1 / (n_rows + 1)
            raise ValueError(
                f"{n_rows} residuals determine quantiles from {least:.3g} to {1 - least:.3g}, got "
                f"{np.round(missing, 9).tolist()}. Fit the model to more rows."
            )
        return self.residuals[self._ranks(levels) - 1]

    def has_quantiles(self, levels: np.ndarray) -> bool:
        """Return True if there are enough rows for quantiles of these levels."""
        return bool(self._exist(levels).all())

    def _exist(self, levels: np.ndarray) -> np.ndarray:
        ranks = self._ranks(levels)
        return (ranks >= 1) & (ranks <= len(self.residuals))

    def _ranks(self, levels: np.ndarray) -> np.ndarray:
        """Return ranks among sorted residuals from 1 on, out of range if there is none."""
        places = levels * (len(self.residuals) + 1)
        return np.where(levels < 0.5, np.floor(places + _ROUNDING), np.ceil(places - _ROUNDING)).astype(np.int64)
