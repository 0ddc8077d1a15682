"""The search for a linear map of the inputs of a radial kernel, by the gradient that length scales are learned by."""

from dataclasses import replace

import numpy as np

from binfeat._machine.kernel_algebra.leave_one_out import leave_one_out
from binfeat._machine.kernel_algebra.matrices import DifferentiableMatrix, differentiable_matrix
from binfeat._machine.search.adam import Adam
from binfeat._machine.search.judged import JudgedSearch
from binfeat._machine.search.length_scales import LengthScales, LengthScaleSearch

_FEWEST = 300  # rows, with which the search is worth its time
_RATE, _LAST_RATE = 0.05, 0.003  # of the entries of the map
_MOST_INPUTS = 200
_FEW_INPUTS = 8  # with more inputs the rate is lower, as the steps of all entries add up
_ALPHA_RATE = 4.0  # times the rate of the map: of the logarithm of the penalty


class LinearMapSearch(JudgedSearch):
    """Adam on the entries of a linear map, from the identity, and on the penalty, every step with fresh rows.

    The kernel is a function of the distances ``|R' s (x - y)|``. The scales s, roots of gamma, are the result of a
    search, and the leave-one-out error is minimised in R, which may be any matrix. R begins as the identity, with which
    the kernel is the kernel of the search. Categorical inputs stay as they are.
    """

    def __init__(self, search: LengthScaleSearch, seed: int) -> None:
        super().__init__(search, seed)
        n_inputs = search.gamma.size
        self.linear_map = np.eye(n_inputs)
        self._adam = Adam(self.linear_map.shape)
        self._rate = min(1.0, float(np.sqrt(_FEW_INPUTS / n_inputs)))

    @staticmethod
    def suits(search: LengthScaleSearch, categorical: np.ndarray) -> bool:
        """Whether more than one number has a gamma above 0, and a map has no more entries than there are rows."""
        n_inputs, n_rows = int(np.count_nonzero(search.gamma[~categorical])), search.rows.used.size
        return 1 < n_inputs <= _MOST_INPUTS and n_rows >= max(_FEWEST, n_inputs**2)

    @property
    def scales(self) -> LengthScales:
        """The length scales with the map: its rows get norm 1, so gammas are inverse length scales along inputs."""
        norms, known = np.linalg.norm(self.linear_map, axis=1), self._search.scales
        linear_map = self.linear_map / norms[:, np.newaxis]
        return replace(known, gamma=known.gamma * norms**2, alpha=self.alpha, error=self.error, linear_map=linear_map)

    @property
    def _matrix(self) -> DifferentiableMatrix:
        known = self._search.matrix
        return differentiable_matrix(known.kernel, known.categorical, known.n_jobs, self.linear_map)

    def _matrix_of(self, X: np.ndarray) -> np.ndarray:
        return self._matrix(X, X, self._gamma)

    def _step(self, progress: float) -> None:
        rate = self._rate * (_RATE + (_LAST_RATE - _RATE) * progress)
        left_out = leave_one_out(self._matrix, *self._draw(), self._gamma, self.alpha, self._rng, self._scratch)
        if left_out.error > 0:
            self.linear_map = self.linear_map - rate * self._adam.step(left_out.slopes / left_out.error)
            self._move_alpha(left_out, _ALPHA_RATE * rate)
