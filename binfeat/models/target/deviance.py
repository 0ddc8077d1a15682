"""Deviances of counts and amounts, with a logarithmic link."""

from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

_MOST_STEP = 2.0  # of a logarithm of a mean, to a working response


@dataclass(frozen=True)
class Deviance:
    """Tweedie deviances (Jorgensen 1987): the variance is a power of the mean, from Poisson to Gamma.

    Minimised by iteratively reweighted least squares (McCullagh & Nelder 1989, section 2.5).
    """

    power: float  # 1 is Poisson's law, 2 the Gamma law

    def check(self, y: np.ndarray, name: str) -> None:
        """Refuse targets outside the domain with a ValueError."""
        if self.power >= 2 and not (y > 0).all():
            raise ValueError(f"loss={name!r} needs targets above 0; got {y.min():g}.")
        if not (y >= 0).all():
            raise ValueError(f"loss={name!r} needs targets of at least 0; got {y.min():g}.")
        if not (y.reshape(len(y), -1).max(axis=0) > 0).all():
            raise ValueError(f"loss={name!r} needs some targets above 0; all are 0.")

    def __call__(self, y: np.ndarray, means: np.ndarray) -> np.ndarray:
        """The unit deviance of every target."""
        p = self.power
        if p == 1:
            return 2 * (xlogy(y, y / means) - y + means)
        if p == 2:
            return 2 * (np.log(means / y) + y / means - 1)
        own, at_means = y ** (2 - p) / ((1 - p) * (2 - p)), means ** (2 - p) / (2 - p)
        return 2 * (own - y * means ** (1 - p) / (1 - p) + at_means)

    def step(self, y: np.ndarray, means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Newton's step of the logarithm of each mean, and the curvature that it rests on.

        The curvature is the expected one, or as much larger as keeps the step below 2: where penalised gradients
        vanish is the same for all curvatures.
        """
        curvature = means ** (2 - self.power)
        slope = (y / means - 1) * curvature
        curvature = np.maximum(curvature, slope / _MOST_STEP)
        return slope / curvature, curvature


DEVIANCES = {"poisson": Deviance(1.0), "tweedie": Deviance(1.5), "gamma": Deviance(2.0)}
