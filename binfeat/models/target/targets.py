"""Encoding of targets for a model, and decoding of predictions."""

from dataclasses import dataclass, replace

import numpy as np

from binfeat._common.arrays import mean_and_std
from binfeat.models.target.transforms import CallersTransform, NoTransform, TargetTransform

_NODES = 15  # of a quadrature over a normal law
_SHIFTS = 32  # mean residuals of as many equal parts of the rows
_BEYOND = 0.5  # how far predictions go beyond all targets: in their standard deviations or in units of the transform


def no_limits(n_targets: int) -> np.ndarray:
    """Return the limits of predictions for plain targets: none."""
    return np.repeat([[-np.inf], [np.inf]], n_targets, axis=1)


@dataclass(frozen=True, eq=False)
class Targets:
    """Numbers as targets: transformed, then standardised.

    A prediction in transformed units, brought back, estimates something like a median. For an estimate of the mean it
    is brought back once with each residual added, and the results are averaged (smearing, Duan 1983). The way back may
    be exponential, so that predictions which go far beyond all targets are brought back from near the farthest.
    """

    transform: TargetTransform | CallersTransform
    mean: np.ndarray  # (n_targets,), of transformed targets
    std: np.ndarray  # (n_targets,)
    flat: bool  # whether y has one dimension
    shifts: np.ndarray  # residuals of standardised targets, (n_shifts, n_targets)
    limits: np.ndarray  # least and largest prediction of standardised targets, (2, n_targets)

    @classmethod
    def of(
        cls, transform: TargetTransform | CallersTransform, y: np.ndarray, weights: np.ndarray | None = None
    ) -> "Targets":
        """Return targets of a fitted transform, standardized on y with weights (n_rows, 1)."""
        return cls.of_moments(transform, *mean_and_std(transform.transform(as_columns(y)), weights), y.ndim == 1)

    @classmethod
    def of_moments(
        cls, transform: TargetTransform | CallersTransform, mean: np.ndarray, std: np.ndarray, flat: bool
    ) -> "Targets":
        """Return targets of a fitted transform, given mean and std (n_targets,) of transformed y."""
        shifts = np.zeros((1, mean.size))
        return cls(transform, mean, np.where(std > 0, std, 1.0), flat, shifts, no_limits(mean.size))

    @property
    def is_plain(self) -> bool:
        return isinstance(self.transform, NoTransform)

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Targets (n_rows, n_targets)."""
        return (self.transform.transform(as_columns(y)) - self.mean) / self.std

    def decode(self, predictions: np.ndarray) -> np.ndarray:
        """Predictions of y."""
        if not self.is_plain:
            predictions = np.clip(predictions, *self.limits)
        values = (self.transform.inverse((predictions + shift) * self.std + self.mean) for shift in self.shifts)
        own = sum(values, next(values)) / len(self.shifts)
        return own[:, 0] if self.flat else own

    def spreads(self, predictions: np.ndarray, stds: np.ndarray) -> np.ndarray:
        """Standard deviations of y for normal predictions with these; by Gauss's quadrature where y is transformed."""
        if self.is_plain:
            own = stds * self.std
            return own[:, 0] if self.flat else own
        nodes, shares = np.polynomial.hermite_e.hermegauss(_NODES)
        values = np.array([self.decode(predictions + node * stds) for node in nodes])
        shares = shares.reshape(-1, *[1] * (values.ndim - 1)) / shares.sum()
        apart = values - (shares * values).sum(axis=0)
        return np.sqrt((shares * apart**2).sum(axis=0))

    def bounds(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Convert intervals of targets to intervals of y, (n_rows, 2) or (n_rows, n_targets, 2)."""
        return np.sort(self.stacked([low, high]), axis=-1)

    def stacked(self, parts: list[np.ndarray]) -> np.ndarray:
        """Decode several arrays of targets to values of y, (n_rows, n_parts) or (n_rows, n_targets, n_parts)."""
        medians = replace(self, shifts=np.zeros((1, self.mean.size)))
        return np.stack([medians.decode(part) for part in parts], axis=-1)

    def limited(self, y: np.ndarray) -> "Targets":
        """Return a copy with predictions limited to the range of y; given transforms have no limits."""
        if isinstance(self.transform, CallersTransform):
            return self
        Z, beyond = self.encode(y), _BEYOND / np.maximum(self.std, 1.0)
        return replace(self, limits=np.array([Z.min(axis=0) - beyond, Z.max(axis=0) + beyond]))

    def of_means(self, residuals: np.ndarray) -> "Targets":
        """Return a copy with means as predictions, from residuals (n_rows, n_targets) of standardized targets."""
        parts = np.array_split(np.sort(residuals, axis=0), min(_SHIFTS, len(residuals)))
        return replace(self, shifts=np.array([part.mean(axis=0) for part in parts]))


def as_columns(y: np.ndarray) -> np.ndarray:
    """Targets of shape (n_rows, n_targets)."""
    return y.reshape(len(y), -1)
