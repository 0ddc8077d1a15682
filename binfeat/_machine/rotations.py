"""The search for a rotation of the inputs of a radial kernel, by the gradient that length scales are learned by."""

import math
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

import numpy as np

from binfeat._machine.adam import Adam
from binfeat._machine.exact_kernels import kernel_matrix
from binfeat._machine.leave_one_out import SingularKernelError, leave_one_out, residuals
from binfeat._machine.length_scales import LEAST_ALPHA, MOST_ALPHA, SHARE
from binfeat._machine.sample import surely_less
from binfeat._rows.rows import Scratch

_ROWS = 500  # of a step, at most
_JUDGES, _JUDGED, _FEWEST = 1000, 1 / 3, 300  # rows that no step sees, their share at most; rows that are worth it
_RATE, _LAST_RATE = 0.05, 0.003  # of the entries of the rotation
_MOST_INPUTS = 200
_FEW_INPUTS = 8  # up to which the rate is that; of more inputs the steps of all entries add up
_ALPHA_RATE = 4.0  # times that: of the logarithm of the penalty
_SURELY = 2.0  # paired standard errors that it has to gain
_LOOKS = {1 / 4: 1.0, 1 / 2: 1.5}  # parts of the steps, after which it has to gain so many


class RotationSearch:
    """Adam on the entries of a rotation, from none, and on the penalty, each step with fresh rows.

    The kernel is one of distances ``|R' s (x - y)|``. The scales s, roots of gamma, are those that a search has found,
    and the leave-one-out error is minimised in R, which is any matrix: it begins as the identity, where the kernel is
    that of the search. Categorical inputs stay as they are.

    Parameters
    ----------
    search : LengthScaleSearch
        Done, of a radial kernel.
    seed : int

    Attributes
    ----------
    alpha : float
    rotation : ndarray of shape (n_inputs, n_inputs)
    error : float
        Of rows that no step has seen, each left out, when they last judged; NaN before.
    """

    def __init__(self, search, seed):
        self._search, n_inputs = search, search.gamma.size
        self._gamma, self.alpha, self.rotation = search.framed_gamma, search.alpha, np.eye(n_inputs)
        self.error, self._given_up = np.nan, False
        self._adam, self._alpha_adam = Adam(self.rotation.shape), Adam(())
        self._rate = min(1.0, np.sqrt(_FEW_INPUTS / n_inputs))
        self._rng, self._scratch = np.random.default_rng(seed), Scratch()
        self._judges = search.spread(min(_JUDGES, int(_JUDGED * search.rows.size)))
        self._seen = np.setdiff1d(search.rows, self._judges)
        self._n_rows = min(_ROWS, search.n_rows, int(SHARE * self._seen.size))

    @staticmethod
    def suits(search, categorical):
        """Whether more than one number counts, and a rotation has no more entries than there are rows."""
        n_inputs, n_rows = np.count_nonzero(search.gamma[~categorical]), search.rows.size
        return 1 < n_inputs <= _MOST_INPUTS and n_rows >= max(_FEWEST, n_inputs**2)

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
                self._step(self._rate * (_RATE + (_LAST_RATE - _RATE) * k / n_steps))
        return self

    def pays(self):
        """Whether rows that no step has seen are left out with surely less error than without the rotation."""
        return not self._given_up and self._gains(_SURELY)

    def _gains(self, n_deviations=0.0):
        """Whether these rows are left out with less error, by so many paired standard errors."""
        with suppress(SingularKernelError):
            errors = self._errors(self._matrix, self.alpha)
            self.error = float(errors.mean())
            return surely_less(errors, self._errors_before, n_deviations)
        return False

    @cached_property
    def _errors_before(self):
        """Of rows that no step has seen, without the rotation."""
        return self._errors(self._search.matrix, self._search.alpha)

    @property
    def found(self):
        """The length scales of the search with the rotation, whose rows are of norm 1.

        A gamma is then the kernel's inverse length scale along its input.
        """
        norms, known = np.linalg.norm(self.rotation, axis=1), self._search.found
        rotation = self.rotation / norms[:, np.newaxis]
        return replace(known, gamma=known.gamma * norms**2, alpha=self.alpha, error=self.error, rotation=rotation)

    def _errors(self, matrix, alpha):
        """Of rows that no step has seen, each left out."""
        X, Y, weights = self._search.part(self._judges)
        squares = residuals(matrix(X, X, self._gamma), alpha, weights, Y) ** 2
        return (squares if weights is None else weights[:, np.newaxis] * squares).mean(axis=1, dtype=np.float64)

    @property
    def _matrix(self):
        known = self._search.matrix
        return kernel_matrix(known.kernel, known.categorical, known.n_jobs, self.rotation)

    def _step(self, rate):
        X, Y, weights = self._search.part(self._rng.permutation(self._seen)[: self._n_rows])
        found = leave_one_out(self._matrix, X, Y, weights, self._gamma, self.alpha, self._rng, self._scratch)
        if found.error > 0:
            self.rotation = self.rotation - rate * self._adam.step(found.slopes / found.error)
            if self._search.learns_alpha:
                step = _ALPHA_RATE * rate * self._alpha_adam.step(found.alpha_slope / found.error)
                self.alpha = float(np.clip(self.alpha * np.exp(-step), LEAST_ALPHA, MOST_ALPHA))
