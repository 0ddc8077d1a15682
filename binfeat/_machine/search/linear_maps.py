"""The search for a linear map of the inputs of a radial kernel, by the gradient that length scales are learned by."""

from dataclasses import replace

import numpy as np

from binfeat._machine.kernel_algebra.leave_one_out import leave_one_out
from binfeat._machine.kernel_algebra.matrices import kernel_matrix
from binfeat._machine.search.adam import Adam
from binfeat._machine.search.judged import JudgedSearch

_FEWEST = 300  # rows that are worth it
_RATE, _LAST_RATE = 0.05, 0.003  # of the entries of the map
_MOST_INPUTS = 200
_FEW_INPUTS = 8  # up to which the rate is that; of more inputs the steps of all entries add up
_ALPHA_RATE = 4.0  # times that: of the logarithm of the penalty


class LinearMapSearch(JudgedSearch):
    """Adam on the entries of a linear map, from the identity, and on the penalty, each step with fresh rows.

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
    linear_map : ndarray of shape (n_inputs, n_inputs)
    """

    def __init__(self, search, seed):
        super().__init__(search, seed)
        n_inputs = search.gamma.size
        self.linear_map = np.eye(n_inputs)
        self._adam = Adam(self.linear_map.shape)
        self._rate = min(1.0, np.sqrt(_FEW_INPUTS / n_inputs))

    @staticmethod
    def suits(search, categorical):
        """Whether more than one number counts, and a map has no more entries than there are rows."""
        n_inputs, n_rows = np.count_nonzero(search.gamma[~categorical]), search.rows.size
        return 1 < n_inputs <= _MOST_INPUTS and n_rows >= max(_FEWEST, n_inputs**2)

    @property
    def found(self):
        """The length scales of the search with the linear map, whose rows are of norm 1.

        A gamma is then the kernel's inverse length scale along its input.
        """
        norms, known = np.linalg.norm(self.linear_map, axis=1), self._search.found
        linear_map = self.linear_map / norms[:, np.newaxis]
        return replace(known, gamma=known.gamma * norms**2, alpha=self.alpha, error=self.error, linear_map=linear_map)

    @property
    def _matrix(self):
        known = self._search.matrix
        return kernel_matrix(known.kernel, known.categorical, known.n_jobs, self.linear_map)

    def _matrix_of(self, X):
        return self._matrix(X, X, self._gamma)

    def _step(self, gone):
        rate, (X, Y, weights) = self._rate * (_RATE + (_LAST_RATE - _RATE) * gone), self._draw()
        found = leave_one_out(self._matrix, X, Y, weights, self._gamma, self.alpha, self._rng, self._scratch)
        if found.error > 0:
            self.linear_map = self.linear_map - rate * self._adam.step(found.slopes / found.error)
            self._move_alpha(found, _ALPHA_RATE * rate)
