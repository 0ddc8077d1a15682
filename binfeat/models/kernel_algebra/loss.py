"""Losses of kernel models: values, derivatives, and quadratic approximations.

Targets Y and scores S have the shape (n_rows, n_targets). A fit minimizes ``sum_i v_i halves_i + alpha |f|^2 / 2``,
where `halves` is half the loss of a row: the derivative of half a squared error is the residual with the sign changed.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self, cast

import numpy as np
from scipy.special import expit, log_softmax, softmax, xlogy

from binfeat._common.held_out import sorted_residuals
from binfeat._common.labels import LabelColumns, Labels

# Quadratic approximation of a loss: targets (n_rows, n_targets), and weights (n_rows, 1) or None.
Squares = tuple[np.ndarray, np.ndarray | None]

_TUNING = 1.345  # standard deviations up to which Huber's loss is a square: 95 % efficiency (Holland & Welsch 1977)
NORMAL = 1.4826  # standard deviation of a normal distribution over its median absolute deviation
_MOST_MOVE = 2.0  # maximum step of the logarithm of a mean


class Loss(ABC):
    """A convex loss of targets by their scores."""

    is_squares: ClassVar[bool] = False  # weighted squared errors, once the weights are known
    has_link: ClassVar[bool] = False  # scores are logarithms of means
    least_curvature: ClassVar[float] = 1e-6

    @property
    def is_robust(self) -> bool:
        """Return True if the slope of the loss is limited."""
        return False

    @property
    def most_step(self) -> float | np.ndarray:
        """The maximum step of a score, because curvatures of distant rows are nearly 0."""
        return 4.0

    @property
    def needs_matrix(self) -> bool:
        """Return True if only a kernel matrix can minimize the loss, not repeated least squares of any model."""
        return not (self.is_squares or self.has_link)

    def __call__(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        """Return the reported loss, (n_rows,): the mean over targets."""
        return 2 * self.halves(Y, S) / Y.shape[1]

    @abstractmethod
    def halves(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        """Return the minimized loss, (n_rows,)."""

    @abstractmethod
    def pulls(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        """Return derivatives of the halves by the scores, with the sign changed."""

    @abstractmethod
    def curvatures(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        """Return second derivatives of the halves, (n_rows, n_targets), or (n_rows, 1) for all targets."""

    def steps(self, Y: np.ndarray, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return Newton's steps of the scores, of limited size, and their curvatures.

        Larger curvatures do not change the scores at which penalized gradients vanish.
        """
        pulls, curvatures = self.pulls(Y, S), self.curvatures(Y, S)
        least = np.abs(pulls) / self.most_step
        least = least if curvatures.shape[1] > 1 else least.max(axis=1, keepdims=True)
        curvatures = np.maximum(curvatures, np.maximum(least, self.least_curvature))
        return pulls / curvatures, curvatures

    def squares(self, Y: np.ndarray, S: np.ndarray, weights: np.ndarray | None) -> Squares:
        """Return the quadratic approximation near scores, with curvatures times weights (n_rows, 1).

        The weight of a row is its largest curvature. Steps of the other targets are shortened in proportion, so that
        steps times weights are the pulls.
        """
        steps, curvatures = self.steps(Y, S)
        own = curvatures.max(axis=1, keepdims=True)
        return S + steps * (curvatures / own), own if weights is None else weights * own

    def check(self, y: np.ndarray, name: str) -> None:  # noqa: B027
        """Refuse targets outside the domain with a ValueError."""

    def start(self, Y: np.ndarray, weights: np.ndarray | None) -> np.ndarray | None:
        """Return scores for a first quadratic approximation, or None if kernels are learned with plain squares.

        In this method and the next two, weights have the shape (n_rows,).
        """
        return None

    def scaled(self, residuals: np.ndarray, weights: np.ndarray | None) -> Self:
        """Return the loss with scales estimated from residuals; only robust losses have scales."""
        return self

    def clipped(self, residuals: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Return residuals (n_rows, n_targets), limited if the loss is robust."""
        return residuals

    def events(self, Y: np.ndarray) -> np.ndarray | None:
        """Return a mask of targets that contribute most of the curvature near them, or None if no target does."""
        return None


@dataclass(frozen=True, eq=False)
class SquaredError(Loss):
    """Squared error; with finite `deviations` Huber's loss, which is linear beyond 1.345 of these (Huber 1964).

    With r the residual in robust standard deviations, or the root of the mean square of several targets, the slope is
    the slope of a square with the weight ``min(1, 1.345 / r)``. The quadratic approximation has this weight as its
    curvature, and a step leads to the target.
    """

    deviations: np.ndarray | float = np.inf  # (n_targets,), robust standard deviations of residuals

    is_squares = True

    @property
    def is_robust(self) -> bool:
        return bool(np.isfinite(self.deviations).all())

    def halves(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        w = self.curvatures(Y, S)[:, 0]
        return w * (2 - w) * ((Y - S) ** 2).sum(axis=1) / 2

    def pulls(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return self.curvatures(Y, S) * (Y - S)

    def curvatures(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        sizes = np.sqrt((((Y - S) / self.deviations) ** 2).mean(axis=1, keepdims=True))
        return _TUNING / np.maximum(sizes, _TUNING)

    def steps(self, Y: np.ndarray, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return Y - S, self.curvatures(Y, S)

    def start(self, Y: np.ndarray, weights: np.ndarray | None) -> np.ndarray | None:
        return np.median(sorted_residuals(Y, weights), axis=0) if self.is_robust else None

    def scaled(self, residuals: np.ndarray, weights: np.ndarray | None) -> Self:
        """Return the loss with robust standard deviations of columns, by medians of magnitudes; 1 for zeros."""
        if not self.is_robust:
            return self
        sizes = np.abs(residuals)
        middle = NORMAL * np.median(sorted_residuals(sizes, weights), axis=0)
        middle = np.where(middle > 0, middle, np.average(sizes, axis=0, weights=weights))
        return replace(self, deviations=np.where(middle > 0, middle, 1.0))

    def clipped(self, residuals: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        limits = _TUNING * self.scaled(residuals, weights).deviations
        return np.clip(residuals, -limits, limits)


class LogLoss(Loss):
    """Logistic loss of two classes, or of independent labels; a score s has the log-odds 2 s."""

    def halves(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, -2.0 * Y * S).sum(axis=1) / 2

    def pulls(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return Y * expit(-2.0 * Y * S)

    def curvatures(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return 2 * expit(2.0 * S) * expit(-2.0 * S)


class SoftmaxLoss(Loss):
    """Softmax loss of three or more classes; scores are log-odds.

    The scores of all kernel models sum to 0. The curvature is the mean of the curvature ``diag(p) - p p'`` over
    directions that do.
    """

    def __call__(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return self.halves(Y, S)

    def halves(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return -np.where(Y > 0, log_softmax(S, axis=1), 0.0).sum(axis=1)

    def pulls(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return (Y > 0) - softmax(S, axis=1)

    def curvatures(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        p = softmax(S, axis=1)
        return (p * (1 - p)).sum(axis=1, keepdims=True) / (Y.shape[1] - 1)


class SquaredHinge(Loss):
    """Squared distance of a score to its target, 0 beyond it, for each class against the others."""

    def halves(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return (self.pulls(Y, S) ** 2).sum(axis=1) / 2

    def pulls(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return Y * np.maximum(0.0, 1.0 - Y * S)

    def curvatures(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return (Y * S < 1.0).astype(np.float64)


@dataclass(frozen=True, eq=False)
class ColumnsLoss(Loss):
    """Sum of the losses of several columns of labels with concatenated targets."""

    columns: list[tuple[slice, Loss]]  # targets of each column, and their loss

    def __call__(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return np.mean([loss(Y[:, own], S[:, own]) for own, loss in self.columns], axis=0)

    def halves(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return np.sum([loss.halves(Y[:, own], S[:, own]) for own, loss in self.columns], axis=0)

    def pulls(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return np.hstack([loss.pulls(Y[:, own], S[:, own]) for own, loss in self.columns])

    def curvatures(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        parts = [(S[:, own], loss.curvatures(Y[:, own], S[:, own])) for own, loss in self.columns]
        return np.hstack([np.broadcast_to(curvatures, scores.shape) for scores, curvatures in parts])


@dataclass(frozen=True, eq=False)
class Deviance(Loss):
    """Tweedie deviance (Jorgensen 1987): the variance is a power of the mean, from Poisson to gamma.

    Targets are numbers in their own units, and scores are standardized logarithms of means. Curvatures are second
    derivatives; for gamma, where these almost vanish for small targets, they are expected ones, as in iteratively
    reweighted least squares (McCullagh & Nelder 1989, section 2.5). Division by `units` makes the mean curvatures of
    all targets equal at a score of 0.
    """

    power: float  # 1 for Poisson, 2 for gamma
    center: np.ndarray | float = 0.0  # (n_targets,): logarithm of the mean at a score of 0
    std: np.ndarray | float = 1.0  # (n_targets,): of the logarithm, per unit of the score
    units: np.ndarray | float = 1.0  # (n_targets,)

    has_link = True
    least_curvature = np.finfo(np.float64).tiny

    @property
    def most_step(self) -> float | np.ndarray:
        return _MOST_MOVE / self.std

    def check(self, y: np.ndarray, name: str) -> None:
        if self.power >= 2 and not (y > 0).all():
            raise ValueError(f"loss={name!r} needs targets above 0; got {y.min():g}.")
        if not (y >= 0).all():
            raise ValueError(f"loss={name!r} needs targets of at least 0; got {y.min():g}.")
        if not (y.reshape(len(y), -1).max(axis=0) > 0).all():
            raise ValueError(f"loss={name!r} needs some targets above 0 in rows of positive weight; all are 0.")

    def standardized(self, Y: np.ndarray, weights: np.ndarray | None) -> Self:
        """Return the loss with the mean of each target at a score of 0, and Newton's steps from there of size 1."""
        own = None if weights is None else weights[:, 0]
        means = np.average(Y, axis=0, weights=own)
        steps, _ = replace(self, center=np.log(means)).steps(Y, np.zeros(Y.shape))
        std, units = np.sqrt(np.average(steps**2, axis=0, weights=own)), means ** (2 - self.power)
        return replace(self, center=np.log(means), std=np.where(std > 0, std, 1.0), units=units / units.mean())

    def means(self, S: np.ndarray) -> np.ndarray:
        return np.exp(S * self.std + self.center)

    def of_means(self, Y: np.ndarray, means: np.ndarray) -> np.ndarray:
        p = self.power
        if p == 1:
            return 2 * (xlogy(Y, Y / means) - Y + means)
        if p == 2:
            return 2 * (np.log(means / Y) + Y / means - 1)
        own, at_means = Y ** (2 - p) / ((1 - p) * (2 - p)), means ** (2 - p) / (2 - p)
        return 2 * (own - Y * means ** (1 - p) / (1 - p) + at_means)

    def _finite(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        """Return unit deviances, infinity where a mean overflows or vanishes."""
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            own = self.of_means(Y, self.means(S))
        return np.where(np.isfinite(own), own, np.inf)

    def __call__(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return self._finite(Y, S).mean(axis=1)

    def halves(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        return (self._finite(Y, S) / (2 * self.std**2 * self.units)).sum(axis=1)

    def pulls(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        means = self.means(S)
        return (Y / means - 1) * means ** (2 - self.power) / (self.std * self.units)

    def curvatures(self, Y: np.ndarray, S: np.ndarray) -> np.ndarray:
        means, p = self.means(S), self.power
        if p == 2:
            return means ** (2 - p) / self.units
        return ((2 - p) * means + (p - 1) * Y) * means ** (1 - p) / self.units

    def start(self, Y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        return np.zeros(Y.shape)

    def events(self, Y: np.ndarray) -> np.ndarray:
        return Y > 0


LOSSES: dict[str, Loss] = {  # losses of numbers
    "squared": SquaredError(),
    "huber": SquaredError(deviations=1.0),
    "poisson": Deviance(1.0),
    "tweedie": Deviance(1.5),
    "gamma": Deviance(2.0),
}
SQUARES = "squared", "huber"  # losses with squared errors as validation errors
MARGINS = "log", "squared_hinge"  # losses of labels that need a kernel matrix


def loss_of(name: str, targets: object) -> Loss:
    if name in LOSSES:
        return LOSSES[name]
    if name == "squared_hinge":
        return SquaredHinge()
    if isinstance(targets, LabelColumns):
        losses = [loss_of(name, own) for own in targets.columns]
        return ColumnsLoss(list(zip(targets.places, losses, strict=True)))
    return LogLoss() if cast(Labels, targets).n_exclusive == 2 else SoftmaxLoss()
