"""A search that goes on from known length scales, and is judged by rows that no step has seen."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Self

import numpy as np

from binfeat._common.arrays import Scratch
from binfeat._common.held_out import surely_less
from binfeat._machine.kernel_algebra.leave_one_out import LeaveOneOut, SingularKernelError, Weights, weighted_squares
from binfeat._machine.search.adam import Adam
from binfeat._machine.search.length_scales import LEAST_ALPHA, MOST_ALPHA, SHARE, LengthScaleSearch

_ROWS = 500  # of a step, at most
_UNSEEN, _UNSEEN_SHARE = 1000, 1 / 3  # rows that no step sees, and their share at most
_LEAST_GAIN = 2.0  # of the search, in paired standard errors
_LOOKS = {1 / 4: 1.0, 1 / 2: 1.5}  # parts of the steps, and the least gain by then


class JudgedSearch(ABC):
    """Steps with fresh rows, from where a search for length scales has ended."""

    def __init__(self, search: LengthScaleSearch, seed: int) -> None:
        self._search, self._gamma, self.alpha = search, search.framed_gamma, search.alpha
        self.error = np.nan  # of the unseen rows, when it was last computed
        self._given_up = False
        self._alpha_adam = Adam(())
        self._rng, self._scratch = np.random.default_rng(seed), Scratch()
        used = search.rows.used
        self._unseen = search.rows.spread(min(_UNSEEN, int(_UNSEEN_SHARE * used.size)))
        self._seen = np.setdiff1d(used, self._unseen)
        self._n_rows = min(_ROWS, search.n_rows, int(SHARE * self._seen.size))

    @abstractmethod
    def _step(self, progress: float) -> None:
        """One step, when this share of the steps is done."""

    @abstractmethod
    def _matrix_of(self, X: np.ndarray) -> np.ndarray:
        """The kernel matrix (n, n) of columns of rows, by the parameters after the steps so far."""

    def run(self, n_steps: int, goes_on: Callable[[], bool]) -> Self:
        """`n_steps` steps, while `goes_on()`; fewer if rows that no step sees do not have less error after some."""
        looks = {math.ceil(part * n_steps): gain for part, gain in _LOOKS.items()}
        for k in range(n_steps):
            if not goes_on():
                break
            if k in looks and not self._gains(looks[k]):
                self._given_up = True
                break
            with suppress(SingularKernelError):
                self._step(k / n_steps)
        return self

    def pays(self) -> bool:
        """Whether rows that no step has seen are left out with surely less error than before the search."""
        return not self._given_up and self._gains(_LEAST_GAIN)

    def _gains(self, n_deviations: float) -> bool:
        """Whether the unseen rows are left out with less error, by `n_deviations` paired standard errors."""
        with suppress(SingularKernelError):
            errors = self._errors(self._matrix_of, self.alpha)
            self.error = float(errors.mean())
            return surely_less(errors, self._errors_before, n_deviations)
        return False

    @cached_property
    def _errors_before(self) -> np.ndarray:
        """Leave-one-out errors of the unseen rows before the search."""
        search = self._search
        return self._errors(lambda X: search.matrix(X, X, self._gamma), search.alpha)

    def _errors(self, matrix_of: Callable[[np.ndarray], np.ndarray], alpha: float) -> np.ndarray:
        """Leave-one-out errors of the unseen rows."""
        X, Y, weights = self._search.rows.part(self._unseen)
        return weighted_squares(matrix_of(X), alpha, weights, Y).mean(axis=1, dtype=np.float64)

    def _draw(self) -> tuple[np.ndarray, np.ndarray, Weights]:
        """Columns, targets and weights of rows for a step."""
        return self._search.rows.part(self._rng.permutation(self._seen)[: self._n_rows])

    def _move_alpha(self, left_out: LeaveOneOut, rate: float) -> None:
        """A step of the logarithm of the penalty, unless the penalty is given."""
        if self._search.learns_alpha:
            step = rate * self._alpha_adam.step(left_out.alpha_slope / left_out.error)
            self.alpha = float(np.clip(self.alpha * np.exp(-step), LEAST_ALPHA, MOST_ALPHA))
