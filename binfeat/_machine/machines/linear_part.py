"""The linear kernel beside others, where it may be of use."""

import numpy as np

from binfeat._engine.policy import threads_to_factorise
from binfeat._machine.fitted.kernel_function import KernelPart
from binfeat._machine.kernel_algebra.matrices import Linear
from binfeat._machine.machines.kernel_rows import KernelRows
from binfeat._machine.search.length_scales import MOST_INPUTS, LengthScales
from binfeat._machine.settings import Settings

_MOST_NOISE = 0.9  # share of the variance of the targets
_NEAR, _NEAR_ROWS = 2.0, 400  # times the error so far, up to which a linear machine's is near, and rows that tell
_WIDE_ROWS = 750  # that tell it of tables with many inputs, whose machines are to be no worse than linear ones
_FARTHEST = 1e4  # mean square of the largest values, in standard deviations, beyond which float32 is too coarse
_ROUNDING = 1e-6  # share of the largest eigenvalue
_PENALTIES = 10.0 ** np.arange(-3.0, 3.0)  # of a linear machine, by the rows


def linear_part(rows: KernelRows, settings: Settings, error: float, least_alpha: float) -> KernelPart | None:
    """The linear kernel of numbers of variance 1, with a penalty that is noise by signal.

    None where kernel or penalty are given, where some of the rows say that a linear machine is far behind the error of
    others, a share of the variance of the targets, or where some values are very far from all others.
    """
    numbers = ~rows.problem.categorical
    if settings.kernel is not None or settings.alpha is not None or not numbers.any():
        return None
    if _reach(rows, numbers) > _FARTHEST:
        return None
    if np.count_nonzero(numbers) > MOST_INPUTS:
        gamma, alpha = _wide(rows, numbers)
    else:
        some = rows.known[:_NEAR_ROWS]
        if _linear_error(rows.columns(some)[numbers], rows.problem.Y[some])[0] > _NEAR * error:
            return None
        gamma, noise = _standard(rows, numbers), min(_MOST_NOISE, error)
        alpha = noise / (1 - noise)
    scales = LengthScales(Linear(), gamma, max(least_alpha, alpha), error, len(rows.known), 0)
    return KernelPart(scales, 1.0)


def _reach(rows: KernelRows, numbers: np.ndarray) -> float:
    """Mean square of the largest values of numbers, in standard deviations."""
    ends = rows.frame.columns(np.stack([rows.X.min(axis=0), rows.X.max(axis=0)]))[numbers]
    return float((ends**2).max(axis=1).mean())


def _standard(rows: KernelRows, numbers: np.ndarray) -> np.ndarray:
    """Gammas of numbers of variance 1."""
    return np.where(numbers, 1 / (np.count_nonzero(numbers) * rows.frame.unit**2), 0.0)


def _wide(rows: KernelRows, numbers: np.ndarray) -> tuple[np.ndarray, float]:
    """Gammas of many numbers of variance 1, or as they are, and a penalty, whatever leaves less error of some rows."""
    some = rows.known[:_WIDE_ROWS]
    columns, Y = rows.columns(some)[numbers], rows.problem.Y[some]
    error, alpha = _linear_error(columns, Y)
    own = columns * rows.frame.unit[numbers, np.newaxis].astype(np.float32)
    size = float(np.einsum("ij,ij->j", own, own).mean())
    own *= np.float32(np.sqrt(len(own) / size))
    own_error, own_alpha = _linear_error(own, Y)
    if own_error < error:
        return np.where(numbers, 1 / size, 0.0), own_alpha
    return _standard(rows, numbers), alpha


def _linear_error(columns: np.ndarray, Y: np.ndarray) -> tuple[float, float]:
    """What ridge regression leaves of targets, and its penalty by the number of inputs.

    By generalised cross-validation (Golub, Heath & Wahba 1979).
    """
    X, Y = (values - values.mean(axis=0) for values in (columns.T, Y))
    with threads_to_factorise(len(X)):
        values, parts = _spectrum(X, Y)
    penalties = len(X) * _PENALTIES
    kept = values / (values + penalties[:, np.newaxis])
    left = (1 - kept) ** 2 @ parts + (Y**2).sum() - parts.sum()
    errors = left / Y.size / (1 - kept.sum(axis=1) / len(X)) ** 2
    best = int(np.argmin(errors))
    return float(errors[best]), float(penalties[best] / X.shape[1])


def _spectrum(X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Squares of the singular values of X, and of what Y has along the left singular vectors."""
    if len(X) <= X.shape[1]:
        values, U = np.linalg.eigh(X @ X.T)
        return np.maximum(values, 0.0), ((U.T @ Y) ** 2).sum(axis=1)
    values, V = np.linalg.eigh(X.T @ X)
    parts, counts = ((V.T @ (X.T @ Y)) ** 2).sum(axis=1), values > _ROUNDING * values[-1]
    return np.maximum(values, 0.0), np.divide(parts, values, out=np.zeros_like(parts), where=counts)
