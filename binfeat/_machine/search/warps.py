"""The search for a monotone map of each input, by the gradient that length scales are learned by."""

import numpy as np

from binfeat._machine.kernel_algebra.leave_one_out import leave_one_out
from binfeat._machine.kernel_algebra.matrices import MovedLaplacianMatrix
from binfeat._machine.search.adam import Adam
from binfeat._machine.search.judged import JudgedSearch
from binfeat.kernels import Laplacian

_PIECES, _FEWEST_PIECES = 16, 4  # of an input
_ROWS_FOR_EACH = 2  # at least, of a piece
FEWEST_ROWS = 2000  # rows that are worth it: with fewer, judges are few, and a second search is a large part of a fit
_RATE, _LAST_RATE = 0.2, 0.01  # of the logarithms of the slopes
_PRIOR = 3.0  # those of an input lie about their mean: a squared deviation counts as so much of a row's log error
_KNOT_ROWS = 10_000
_WORTH = 0.97  # share of the error, below which a warp is worth a second search for length scales


def _n_pieces(search, categorical):
    """Of an input, for the rows and inputs of a search."""
    n_inputs = max(1, int(np.count_nonzero(search.gamma[~categorical])))
    return min(_PIECES, search.rows.size // (_ROWS_FOR_EACH * n_inputs))


class WarpSearch(JudgedSearch):
    """Adam on the slopes of a monotone piecewise linear map of each input, from none, and on the penalty.

    With a map of its own the distance of two rows along an input is ``gamma_j |w_j(x_j) - w_j(y_j)|``: length scales
    that vary from place to place. The kinks lie at quantiles. Categorical inputs stay as they are.

    Parameters
    ----------
    search : LengthScaleSearch
        Done, of the Laplacian.
    seed : int
    """

    def __init__(self, search, seed):
        super().__init__(search, seed)
        known = search.matrix
        self._matrix = MovedLaplacianMatrix(known.kernel, known.categorical, known.n_jobs)
        columns, n_pieces = search.part(search.spread(_KNOT_ROWS))[0], _n_pieces(search, known.categorical)
        kinks = [_kinks(column, n_pieces) for column in columns]
        self._low = np.concatenate([[-np.inf, *own] for own in kinks]).astype(np.float32)[:, np.newaxis]
        self._high = np.concatenate([[*own, np.inf] for own in kinks]).astype(np.float32)[:, np.newaxis]
        self._n_pieces = np.array([own.size + 1 for own in kinks])
        self._starts = np.cumsum(self._n_pieces) - self._n_pieces
        self._logs = np.zeros(self._n_pieces.sum())
        self._adam = Adam(self._logs.shape)

    @staticmethod
    def suits(search, categorical):
        """Whether the kernel is the Laplacian, and there are rows enough for some pieces."""
        enough = _n_pieces(search, categorical) >= _FEWEST_PIECES
        return isinstance(search.kernel, Laplacian) and bool(search.gamma[~categorical].any()) and enough

    def pays(self):
        """Whether rows that no step has seen are left out with surely, and much, less error than without a warp."""
        return super().pays() and self.error < _WORTH * self._errors_before.mean()

    def __call__(self, X):
        """A table of scaled inputs, mapped."""
        return self._placed(self._pieces(self._search.columns(X))).T

    def _pieces(self, X):
        """The part of each number that lies in each piece of its input, (n_pieces, n)."""
        return np.clip(np.repeat(X, self._n_pieces, axis=0), self._low, self._high)

    def _placed(self, pieces):
        """Columns, mapped."""
        return np.add.reduceat(np.exp(self._logs).astype(np.float32)[:, np.newaxis] * pieces, self._starts, axis=0)

    def _matrix_of(self, X):
        X = self._placed(self._pieces(X))
        return self._matrix(X, X, self._gamma)

    def _step(self, gone):
        rate, (X, Y, weights) = _RATE + (_LAST_RATE - _RATE) * gone, self._draw()
        pieces = self._pieces(X)
        placed = self._placed(pieces)
        found = leave_one_out(self._matrix, placed, Y, weights, self._gamma, self.alpha, self._rng, self._scratch)
        if found.error > 0:
            forces = np.repeat(found.slopes, self._n_pieces, axis=0)
            slopes = np.exp(self._logs) * np.einsum("ij,ij->i", forces, pieces) / found.error
            self._logs = self._logs - rate * self._adam.step(slopes + self._prior_slopes())
            self._move_alpha(found, rate)

    def _prior_slopes(self):
        means = np.add.reduceat(self._logs, self._starts) / self._n_pieces
        return 2 * _PRIOR / self._search.rows.size * (self._logs - np.repeat(means, self._n_pieces))


def _kinks(column, n_pieces):
    """Where pieces of about as many rows end, inside of a column's values."""
    return np.unique(np.quantile(column, np.linspace(0, 1, n_pieces + 1), method="nearest"))[1:-1]
