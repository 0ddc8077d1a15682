"""The default stopping rule of conjugate gradients: an estimate of how far the objective is above its minimum."""

import numpy as np

# Chosen on 29 tables by the errors of predictions for new rows; see perf/notes/solver.md.
_DELAY = 4  # the decrease over these iterations estimates the remaining decrease
_SHARE = 0.02**2  # of the objective: limit of the estimated decrease
# After a start near the solution, as on a path of penalties, even the first decreases are small.
_WARM_SHARE = 0.01**2
_SHORT_DELAY, _SHORT_SHARE = 2, 0.005**2  # also enough after such a start
_LEAST = 1e-6  # of the objective at 0; predictions cannot gain from smaller objectives


class ObjectiveRule:
    """Decide for each target if the ridge objective is near its minimum.

    In exact arithmetic an iteration decreases the objective by the squared energy norm of the step, and all later
    decreases add up to the squared energy norm of the error (Hestenes & Stiefel 1952), which bounds the change of
    predictions for the training rows. The decreases of the last iterations are an estimate of this sum (Strakos & Tichy
    2002). After a start other than 0, two small decreases are enough.
    """

    def __init__(self, at_zero: np.ndarray) -> None:
        self._at_zero = np.asarray(at_zero, dtype=np.float64)  # (n_targets,)
        self._objective = self._at_zero.copy()
        self._decreases = np.full((_DELAY, self._objective.size), np.inf)  # the latest comes first
        self._warm = np.zeros(self._objective.size, dtype=bool)

    def begin(self, targets: np.ndarray, decreases: np.ndarray) -> None:
        """Begin at coefficients with objectives this far below the objectives at 0."""
        self._objective[targets] = self._at_zero[targets] - decreases
        self._decreases[:, targets], self._warm[targets] = np.inf, True

    def note(self, targets: np.ndarray, decreases: np.ndarray) -> None:
        """Record the decrease of the objectives in an iteration."""
        self._objective[targets] -= decreases
        self._decreases[1:, targets] = self._decreases[:-1, targets]
        self._decreases[0, targets] = decreases

    def holds(self, targets: np.ndarray) -> np.ndarray:
        """Return a mask of the targets that are near the minima of their objectives."""
        scale = np.maximum(self._objective[targets], _LEAST * self._at_zero[targets])
        decreases, warm = self._decreases[:, targets], self._warm[targets]
        settled = decreases.sum(axis=0) <= np.where(warm, _WARM_SHARE, _SHARE) * scale
        return settled | (warm & (decreases[:_SHORT_DELAY].sum(axis=0) <= _SHORT_SHARE * scale))
