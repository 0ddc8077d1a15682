"""Selection of a transform of the targets."""

from dataclasses import dataclass

import numpy as np

from binfeat.models.target.targets import Targets
from binfeat.models.target.transforms import TRIED, TargetTransform

_SKEWED, _FAR = 1.0, 10.0  # skewness, and standard deviations from the mean, from which on a transform is tried
_GAIN = 0.95  # share of the error without a transform that one with it has to be below
_NATS, _CLEARLY = 0.5, 3.0  # of likelihood that count as far better; standard errors that count as clearly worse
_SHARED = 0.05  # of the rows with one value
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class TransformTrial:
    """Targets with a transform, and what leave-one-out predictions of a short search say of them."""

    targets: Targets
    losses: np.ndarray  # per row, in the units of y; or one number, the negative score
    likelihood: float  # mean logarithm of the density of y, of Gaussian errors of the transformed targets

    @property
    def error(self) -> float:
        return float(self.losses.mean())

    def beats(self, other: "TransformTrial") -> bool:
        """Return True if the error in units of y is lower, or the likelihood far higher and the error similar.

        Squared errors of targets with long tails hang on few rows; the likelihood (Box and Cox 1964) on all.
        """
        if self.error < _GAIN * other.error:
            return True
        apart, far = self.losses - other.losses, self.likelihood > other.likelihood + _NATS
        noise = apart.std(ddof=1) / np.sqrt(apart.size) if apart.size > 1 else 0.0
        return bool(far and apart.mean() <= _CLEARLY * noise)


def transforms_to_try(Y: np.ndarray) -> list[type[TargetTransform]]:
    """None first, then those that suit targets Y (n_rows, n_targets); nothing if no target is skewed or reaches far."""
    std = Y.std(axis=0)
    Z = (Y - Y.mean(axis=0)) / np.where(std > 0, std, 1.0)
    shaped = (np.abs((Z**3).mean(axis=0)) > _SKEWED) | (np.abs(Z).max(axis=0) > _FAR)
    has_many_values = ((Z.min(axis=0) < Z) & (Z.max(axis=0) > Z)).any(axis=0)
    return [kind for kind in TRIED if kind.takes(Y)] if (shaped & has_many_values).any() else []


def likelihood(
    transform: TargetTransform, std: np.ndarray, Y: np.ndarray, residuals: np.ndarray, weights: np.ndarray | None
) -> float:
    """Return the mean log density of targets Y, given residuals of transformed targets in units of std.

    0 where many rows share a value, zero say, at which there is no density.
    """
    if any(np.unique(column, return_counts=True)[1].max() > _SHARED * len(Y) for column in Y.T):
        return 0.0
    slopes = transform.log_slopes(Y)
    squares = np.average(residuals**2, axis=0, weights=weights)
    densities = slopes.mean(axis=0) - np.log(std) - 0.5 * np.log(np.maximum(squares, _TINY))
    return float(densities.mean())
