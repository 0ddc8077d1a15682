"""The search for a monotone map of each input, by the gradient that length scales are learned by."""

import numpy as np

from binfeat._machine.kernel_algebra.leave_one_out import leave_one_out
from binfeat._machine.kernel_algebra.matrices import MovedLaplacianMatrix
from binfeat._machine.search.adam import Adam
from binfeat._machine.search.judged import JudgedSearch
from binfeat._machine.search.length_scales import LengthScaleSearch
from binfeat.kernels import Laplacian

_PIECES, _FEWEST_PIECES = 16, 4  # of an input
_PIECE_ROWS = 2  # rows for every piece, at least
FEWEST_ROWS = 2000  # with fewer, few rows are left to judge by, and a second search is a large part of a fit
_RATE, _LAST_RATE = 0.2, 0.01  # of the logarithms of the slopes
_PRIOR = 3.0  # logarithms of an input lie about their mean: a squared deviation counts as so much log error of a row
_KNOT_ROWS = 10_000
_WORTH = 0.97  # share of the error, below which a warp is worth a second search for length scales


def _n_pieces(search: LengthScaleSearch, categorical: np.ndarray) -> int:
    """Number of pieces of an input, for the rows and inputs of a search."""
    n_inputs = max(1, int(np.count_nonzero(search.gamma[~categorical])))
    return min(_PIECES, search.rows.used.size // (_PIECE_ROWS * n_inputs))


class WarpSearch(JudgedSearch):
    """Adam on the slopes of a monotone piecewise linear map of each input, from the identity, and on the penalty.

    With the map w_j the distance of two rows along input j is ``gamma_j |w_j(x_j) - w_j(y_j)|``: length scales
    vary from place to place. The kinks lie at quantiles. Categorical inputs stay as they are.
    """

    def __init__(self, search: LengthScaleSearch, seed: int) -> None:
        super().__init__(search, seed)
        known = search.matrix
        self._matrix = MovedLaplacianMatrix(known.kernel, known.categorical, known.n_jobs)
        rows, n_pieces = search.rows.spread(_KNOT_ROWS), _n_pieces(search, known.categorical)
        all_kinks = [_kinks(column, n_pieces) for column in search.rows.part(rows)[0]]
        self._low = np.concatenate([[-np.inf, *kinks] for kinks in all_kinks]).astype(np.float32)[:, np.newaxis]
        self._high = np.concatenate([[*kinks, np.inf] for kinks in all_kinks]).astype(np.float32)[:, np.newaxis]
        self._n_pieces = np.array([kinks.size + 1 for kinks in all_kinks])
        self._starts = np.cumsum(self._n_pieces) - self._n_pieces
        self._logs = np.zeros(self._n_pieces.sum())
        self._adam = Adam(self._logs.shape)

    @staticmethod
    def suits(search: LengthScaleSearch, categorical: np.ndarray) -> bool:
        """Whether the kernel is the Laplacian, and there are enough rows for some pieces."""
        enough = _n_pieces(search, categorical) >= _FEWEST_PIECES
        return isinstance(search.kernel, Laplacian) and bool(search.gamma[~categorical].any()) and enough

    def pays(self) -> bool:
        """Whether rows that no step has seen are left out with surely, and much, less error than without a warp."""
        return super().pays() and self.error < _WORTH * float(self._errors_before.mean())

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """The mapped table, of a table of scaled inputs."""
        return self._placed(self._pieces(self._search.rows.frame.columns(X))).T

    def _pieces(self, X: np.ndarray) -> np.ndarray:
        """The parts of numbers that lie in the pieces of their inputs, (n_pieces of all inputs, n)."""
        return np.clip(np.repeat(X, self._n_pieces, axis=0), self._low, self._high)

    def _placed(self, pieces: np.ndarray) -> np.ndarray:
        """The mapped columns."""
        return np.add.reduceat(np.exp(self._logs).astype(np.float32)[:, np.newaxis] * pieces, self._starts, axis=0)

    def _matrix_of(self, X: np.ndarray) -> np.ndarray:
        X = self._placed(self._pieces(X))
        return self._matrix(X, X, self._gamma)

    def _step(self, progress: float) -> None:
        rate, (X, Y, weights) = _RATE + (_LAST_RATE - _RATE) * progress, self._draw()
        pieces = self._pieces(X)
        placed = self._placed(pieces)
        left_out = leave_one_out(self._matrix, placed, Y, weights, self._gamma, self.alpha, self._rng, self._scratch)
        if left_out.error > 0:
            forces = np.repeat(left_out.slopes, self._n_pieces, axis=0)
            slopes = np.exp(self._logs) * np.einsum("ij,ij->i", forces, pieces) / left_out.error
            self._logs = self._logs - rate * self._adam.step(slopes + self._prior_slopes())
            self._move_alpha(left_out, rate)

    def _prior_slopes(self) -> np.ndarray:
        means = np.add.reduceat(self._logs, self._starts) / self._n_pieces
        return 2 * _PRIOR / self._search.rows.used.size * (self._logs - np.repeat(means, self._n_pieces))


def _kinks(column: np.ndarray, n_pieces: int) -> np.ndarray:
    """The values of a column where pieces of about equally many rows end."""
    return np.unique(np.quantile(column, np.linspace(0, 1, n_pieces + 1), method="nearest"))[1:-1]
