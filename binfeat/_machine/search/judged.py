"""A search that goes on from known length scales, and is judged by rows that none of its steps has seen."""

import math
from abc import ABC, abstractmethod
from contextlib import suppress
from functools import cached_property

import numpy as np

from binfeat._machine.kernel_algebra.leave_one_out import SingularKernelError, weighted_squares
from binfeat._common.held_out import surely_less
from binfeat._machine.search.adam import Adam
from binfeat._machine.search.length_scales import LEAST_ALPHA, MOST_ALPHA, SHARE
from binfeat._rows.rows import Scratch

_ROWS = 500  # of a step, at most
_JUDGES, _JUDGED = 1000, 1 / 3  # rows that no step sees, and their share at most
_SURELY = 2.0  # paired standard errors that it has to gain
_LOOKS = {1 / 4: 1.0, 1 / 2: 1.5}  # parts of the steps, after which it has to gain so many


class JudgedSearch(ABC):
    """Steps with fresh rows each.

    Parameters
    ----------
    search : LengthScaleSearch
        Done.
    seed : int

    Attributes
    ----------
    alpha : float
    error : float
        Of rows that no step has seen, each left out, when they last judged; NaN before.
    """

    def __init__(self, search, seed):
        self._search, self._gamma, self.alpha = search, search.framed_gamma, search.alpha
        self.error, self._given_up = np.nan, False
        self._alpha_adam = Adam(())
        self._rng, self._scratch = np.random.default_rng(seed), Scratch()
        self._judges = search.spread(min(_JUDGES, int(_JUDGED * search.rows.size)))
        self._seen = np.setdiff1d(search.rows, self._judges)
        self._n_rows = min(_ROWS, search.n_rows, int(SHARE * self._seen.size))

    @abstractmethod
    def _step(self, gone):
        """One step, when this share of them is gone."""

    @abstractmethod
    def _matrix_of(self, X):
        """The kernel matrix (n, n) of columns of rows, as things stand."""

    def run(self, n_steps, goes_on):
        """So many steps, while `goes_on()`; fewer if rows that no step sees do not have less error after some."""
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

    def pays(self):
        """Whether rows that no step has seen are left out with surely less error than before the search."""
        return not self._given_up and self._gains(_SURELY)

    def _gains(self, n_deviations):
        """Whether these rows are left out with less error, by so many paired standard errors."""
        with suppress(SingularKernelError):
            errors = self._errors(self._matrix_of, self.alpha)
            self.error = float(errors.mean())
            return surely_less(errors, self._errors_before, n_deviations)
        return False

    @cached_property
    def _errors_before(self):
        """Of rows that no step has seen, before the search."""
        search = self._search
        return self._errors(lambda X: search.matrix(X, X, self._gamma), search.alpha)

    def _errors(self, matrix_of, alpha):
        """Of rows that no step has seen, each left out."""
        X, Y, weights = self._search.part(self._judges)
        return weighted_squares(matrix_of(X), alpha, weights, Y).mean(axis=1, dtype=np.float64)

    def _draw(self):
        """Columns, targets and weights of rows for a step."""
        return self._search.part(self._rng.permutation(self._seen)[: self._n_rows])

    def _move_alpha(self, found, rate):
        """A step of the logarithm of the penalty, unless that is given."""
        if self._search.learns_alpha:
            step = rate * self._alpha_adam.step(found.alpha_slope / found.error)
            self.alpha = float(np.clip(self.alpha * np.exp(-step), LEAST_ALPHA, MOST_ALPHA))
