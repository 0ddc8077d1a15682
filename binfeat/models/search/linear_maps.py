"""The search for a linear map of the inputs of a radial kernel, by the gradient of the leave-one-out error."""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Self

import numpy as np

from binfeat._common.arrays import Scratch
from binfeat._common.held_out import is_significantly_less, seen_and_unseen
from binfeat._common.subsets import thinned
from binfeat.length_scales.kernel_sum import Trial
from binfeat.length_scales.leave_one_out import (
    SingularKernelError,
    inverse_root,
    leave_one_out,
    times_square,
    weighted_squares,
)
from binfeat.length_scales.limits import SEARCH
from binfeat.length_scales.matrices import DifferentiableMatrix, differentiable_matrix
from binfeat.length_scales.search import LEAST_ALPHA, MOST_ALPHA, Adam, LengthScaleSearch


class LinearMapSearch:
    """Adam on the entries of a linear map, from the identity, and on the penalty, with new rows in each step.

    The kernel is a function of the distances ``|R' s (x - y)|``. The scales s, roots of gamma, are the result of a
    search, and the leave-one-out error is minimized over all matrices R. R starts as the identity, which is the kernel
    of the search. Categorical inputs are not mapped. The map is validated on rows that no step has used, of other
    groups than the rows of the steps: by their leave-one-out errors, and by predictions from the other rows, which are
    about as dense as the table.
    """

    predicting_rows = 1500  # rows for predicting the unseen rows

    def __init__(self, search: LengthScaleSearch, seed: int) -> None:
        self._search, self._gamma, self.alpha = search, search.standardized_gamma, search.alpha
        self.error = np.nan  # last computed error of the unseen rows
        self._last_errors: np.ndarray | None = None  # leave-one-out errors of the unseen rows since the last step
        n_inputs, used = search.gamma.size, search.used
        self.linear_map = np.eye(n_inputs)
        self._adam, self._alpha_adam = Adam(self.linear_map.shape), Adam(())
        self._rate = min(1.0, float(np.sqrt(8 / n_inputs)))  # because the steps of all entries add up
        self._rng, self._scratch = np.random.default_rng(seed), Scratch()
        n_unseen, groups = min(SEARCH.unseen_rows, used.size // 3), search.groups(slice(None))
        self._seen, self.unseen = seen_and_unseen(used, n_unseen, groups, self._rng)
        self._n_rows = min(SEARCH.map_rows, search.n_rows, max(1, int(SEARCH.row_share * self._seen.size)))

    @staticmethod
    def suits(search: LengthScaleSearch, categorical: np.ndarray) -> bool:
        """Return True if several numeric inputs have positive gammas, and a map has at most as many entries as rows."""
        n_inputs, n_rows = int(np.count_nonzero(search.gamma[~categorical])), search.used.size
        return 1 < n_inputs <= SEARCH.map_inputs and n_rows >= max(SEARCH.map_table_rows, n_inputs**2)

    @property
    def found(self) -> Trial:
        """Return the kernel with the map; its rows have norm 1, so gammas are inverse length scales along inputs."""
        norms, known = np.linalg.norm(self.linear_map, axis=1), self._search.found
        part = known.kernel.main
        part = replace(part, gamma=part.gamma * norms**2, linear_map=self.linear_map / norms[:, np.newaxis])
        return replace(known, kernel=replace(known.kernel, parts=[part], alpha=self.alpha), error=self.error)

    def run(self, n_steps: int, goes_on: Callable[[], bool]) -> Self:
        """Make `n_steps` steps, while `goes_on()`; fewer if the error of unseen rows does not decrease."""
        looks = {math.ceil(n_steps / 4): 1.0, math.ceil(n_steps / 2): 1.5}  # required gains, in standard errors
        for k in range(n_steps):
            if not goes_on() or (k in looks and not self._gains(looks[k])):
                break
            with suppress(SingularKernelError):
                self._step(k / n_steps)
        return self

    def is_better(self) -> bool:
        """Return True if both kinds of errors of unseen rows are lower than before the search."""
        return self._gains(SEARCH.least_gain) and self._predicts_better()

    @property
    def _matrix(self) -> DifferentiableMatrix:
        known = self._search.matrix
        return differentiable_matrix(known.kernel, known.categorical, known.n_jobs, self.linear_map)

    def _step(self, progress: float) -> None:
        """Make a step, when this share of the steps is done."""
        self._last_errors, (first, last) = None, SEARCH.map_rates
        rate = self._rate * (first + (last - first) * progress)
        rows = self._rng.permutation(self._seen)[: self._n_rows]
        given = *self._search.part(rows), self._gamma, self.alpha, self._rng, self._scratch
        left_out = leave_one_out(self._matrix, *given, self._search.groups(rows))
        if not left_out.error > 0:
            return
        self.linear_map = self.linear_map - rate * self._adam.step(left_out.slopes / left_out.error)
        if self._search.learns_alpha:
            step = 4.0 * rate * self._alpha_adam.step(left_out.alpha_slope / left_out.error)
            self.alpha = float(np.clip(self.alpha * np.exp(-step), LEAST_ALPHA, MOST_ALPHA))

    def _gains(self, n_deviations: float) -> bool:
        """Return True if the leave-one-out error of unseen rows is lower by `n_deviations` paired standard errors."""
        with suppress(SingularKernelError):
            if self._last_errors is None:
                self._last_errors = self._errors(self._matrix, self.alpha)
            self.error = float(self._last_errors.mean())
            return is_significantly_less(self._last_errors, self._errors_before, n_deviations)
        return False

    @cached_property
    def _errors_before(self) -> np.ndarray:
        """Return leave-one-out errors of the unseen rows before the search."""
        return self._errors(self._search.matrix, self._search.alpha)

    def _errors(self, matrix: DifferentiableMatrix, alpha: float) -> np.ndarray:
        """Return leave-one-out errors of the unseen rows."""
        X, Y, weights = self._search.part(self.unseen)
        K, groups = matrix(X, X, self._gamma), self._search.groups(self.unseen)
        return weighted_squares(K, alpha, weights, Y, groups=groups).mean(axis=1, dtype=np.float64)

    def _predicts_better(self) -> bool:
        """Return True if, with the map, seen rows predict unseen rows better by a standard error."""
        with suppress(SingularKernelError):
            errors = self._prediction_errors(self._matrix, self.alpha)
            return is_significantly_less(errors, self._prediction_errors(self._search.matrix, self._search.alpha))
        return False

    def _prediction_errors(self, matrix: DifferentiableMatrix, alpha: float) -> np.ndarray:
        """Return errors of the unseen rows, predicted from some seen rows."""
        X, Y, weights = self._search.part(thinned(self._seen, self.predicting_rows))
        X_unseen, Y_unseen, weights_unseen = self._search.part(self.unseen)
        B, _ = inverse_root(matrix(X, X, self._gamma), alpha, weights)
        predicted = (matrix(X_unseen, X, self._gamma) + np.float32(1.0)) @ times_square(B, Y)
        squares = ((Y_unseen - predicted) ** 2).mean(axis=1, dtype=np.float64)
        return squares if weights_unseen is None else weights_unseen * squares
