"""The default stopping rule of conjugate gradients: an estimate of how far the objective is above its minimum."""

import numpy as np

# Chosen on 29 tables by the errors of predictions for new rows; see perf/notes/solver.md.
_DELAY = 4  # iterations whose falls of the objective estimate the fall that is left
_SHARE = 0.02**2  # of the objective, that the estimate may be
_LEAST = 1e-6  # of the objective of coefficients 0: smaller objectives leave nothing that predictions could gain


class ObjectiveRule:
    """Decides by target whether the ridge objective is near its minimum.

    In exact arithmetic an iteration lowers the objective by the squared energy norm of the step, and all later falls
    add up to the squared energy norm of the error (Hestenes & Stiefel 1952), which bounds the change of predictions for
    the training rows. The falls of the last iterations estimate the later ones (Strakos & Tichy 2002).
    """

    def __init__(self, at_zero: np.ndarray) -> None:
        self._at_zero = np.asarray(at_zero, dtype=np.float64)  # (n_targets,)
        self._objective = self._at_zero.copy()
        self._falls = np.full((_DELAY, self._objective.size), np.inf)

    def begin(self, targets: np.ndarray, falls: np.ndarray) -> None:
        """Begin at coefficients whose objectives are so far below the objectives of coefficients 0."""
        self._objective[targets] = self._at_zero[targets] - falls
        self._falls[:, targets] = np.inf

    def note(self, n_iter: int, targets: np.ndarray, falls: np.ndarray) -> None:
        """Note by how much an iteration, counted from 0, has lowered objectives."""
        self._objective[targets] -= falls
        self._falls[n_iter % _DELAY, targets] = falls

    def holds(self, targets: np.ndarray) -> np.ndarray:
        """Whether the targets are near the minima of their objectives."""
        enough = _SHARE * np.maximum(self._objective[targets], _LEAST * self._at_zero[targets])
        return self._falls[:, targets].sum(axis=0) <= enough
