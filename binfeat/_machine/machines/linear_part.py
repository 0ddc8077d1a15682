"""The linear kernel beside others, where it may be of use."""

import numpy as np

from binfeat._machine.fitted.kernel_function import Part
from binfeat._machine.kernel_algebra.matrices import Linear
from binfeat._machine.machines.kernel_rows import KernelRows
from binfeat._machine.search.length_scales import LengthScales
from binfeat._machine.settings import Settings

_MOST_NOISE = 0.9  # share of the variance of the targets
_NEAR, _NEAR_ROWS = 2.0, 400  # times the error so far, up to which a linear machine's is near, and rows that tell
_FARTHEST = 1e4  # mean square of the largest values, in standard deviations, beyond which float32 is too coarse
_PENALTIES = 10.0 ** np.arange(-3.0, 3.0)  # of a linear machine, by the rows


def linear_part(rows: KernelRows, settings: Settings, error: float, least_alpha: float) -> Part | None:
    """The linear kernel of numbers of variance 1, with a penalty that is noise by signal.

    None where kernel or penalty are given, where some of the rows say that a linear machine is far behind the error of
    others, a share of the variance of the targets, or where some values are very far from all others.
    """
    numbers = ~rows.problem.categorical
    if settings.kernel is not None or settings.alpha is not None or not numbers.any():
        return None
    some = rows.known[:_NEAR_ROWS]
    if _linear_error(rows.columns(some)[numbers], rows.problem.Y[some]) > _NEAR * error:
        return None
    ends = rows.frame.columns(np.stack([rows.X.min(axis=0), rows.X.max(axis=0)]))[numbers]
    if (ends**2).max(axis=1).mean() > _FARTHEST:
        return None
    gamma = np.where(numbers, 1 / (np.count_nonzero(numbers) * rows.frame.unit**2), 0.0)
    noise = min(_MOST_NOISE, error)
    alpha = max(least_alpha, noise / (1 - noise))
    return Part(LengthScales(Linear(), gamma, alpha, error, len(rows.known), 0), 1.0)


def _linear_error(columns: np.ndarray, Y: np.ndarray) -> float:
    """What ridge regression leaves of targets, by generalised cross-validation (Golub, Heath & Wahba 1979)."""
    X, Y = (values - values.mean(axis=0) for values in (columns.T, Y))
    values, U = np.linalg.eigh(X @ X.T)
    kept = values / (values + len(X) * _PENALTIES[:, np.newaxis])
    left = (1 - kept) ** 2 @ ((U.T @ Y) ** 2).sum(axis=1)
    return float((left / Y.size / (1 - kept.sum(axis=1) / len(X)) ** 2).min())
