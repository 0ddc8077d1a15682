"""Increasing transforms of targets, column by column, and their inverses."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from binfeat._common.array_record import ArrayRecord
from binfeat._common.robust_scale import robust_scale
from binfeat._common.validation import is_word

_WANTED = "target_transform must be 'auto', None or a transformer with fit, transform and inverse_transform"


class TargetTransform(ArrayRecord, ABC):
    """Learned from targets Y of shape (n_rows, n_targets), float64."""

    name: ClassVar[str]
    keeps_means: ClassVar[bool] = False  # whether the inverse of a prediction estimates a mean without more

    @classmethod
    def takes(cls, Y: np.ndarray) -> bool:
        """Return True if the transform is defined for all values of Y."""
        return True

    @classmethod
    def fit(cls, Y: np.ndarray) -> Self:
        """Learn from Y; there may be nothing to learn."""
        return cls()

    @abstractmethod
    def transform(self, Y: np.ndarray) -> np.ndarray:
        """Transformed targets, an array like Y."""

    @abstractmethod
    def inverse(self, Z: np.ndarray) -> np.ndarray:
        """Targets of transformed targets; the last axis of Z counts them."""

    @abstractmethod
    def log_slopes(self, Y: np.ndarray) -> np.ndarray:
        """Logarithms of the derivative, an array like Y."""


@dataclass(frozen=True, eq=False)
class NoTransform(TargetTransform):
    """Leaves targets as they are."""

    name: ClassVar[str] = "none"
    keeps_means: ClassVar[bool] = True

    def transform(self, Y: np.ndarray) -> np.ndarray:
        return Y

    def inverse(self, Z: np.ndarray) -> np.ndarray:
        return Z

    def log_slopes(self, Y: np.ndarray) -> np.ndarray:
        return np.zeros_like(Y)


@dataclass(frozen=True, eq=False)
class Log(TargetTransform):
    """Logarithms of targets that are all above 0; predictions are then above 0 too."""

    name: ClassVar[str] = "log"

    @classmethod
    def takes(cls, Y: np.ndarray) -> bool:
        return bool((Y > 0).all())

    def transform(self, Y: np.ndarray) -> np.ndarray:
        return np.log(Y)

    def inverse(self, Z: np.ndarray) -> np.ndarray:
        return np.exp(Z)

    def log_slopes(self, Y: np.ndarray) -> np.ndarray:
        return -np.log(Y)


@dataclass(frozen=True, eq=False)
class LogLink(Log):
    """Logarithms of means, which a deviance asks for."""

    name: ClassVar[str] = "log link"
    keeps_means: ClassVar[bool] = True

    def transform(self, Y: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(Y, np.finfo(np.float64).tiny))


@dataclass(frozen=True, eq=False)
class ArcsinhTarget(TargetTransform):
    """``arcsinh((y - median) / interquartile range)``, see `robust_scale`: logarithmic in both tails."""

    center: np.ndarray  # (n_targets,)
    unit: np.ndarray  # (n_targets,)
    name: ClassVar[str] = "arcsinh"

    @classmethod
    def fit(cls, Y: np.ndarray) -> Self:
        return cls(*robust_scale(Y))

    def transform(self, Y: np.ndarray) -> np.ndarray:
        return np.arcsinh((Y - self.center) / self.unit)

    def inverse(self, Z: np.ndarray) -> np.ndarray:
        return self.center + self.unit * np.sinh(Z)

    def log_slopes(self, Y: np.ndarray) -> np.ndarray:
        return -np.log(np.hypot(self.unit, Y - self.center))


class CallersTransform:
    """A fitted transformer of the caller."""

    keeps_means: ClassVar[bool] = False

    def __init__(self, transformer: BaseEstimator) -> None:
        self.transformer, self.name = transformer, type(transformer).__name__

    def transform(self, Y: np.ndarray) -> np.ndarray:
        Z = np.asarray(self.transformer.transform(Y), dtype=np.float64)
        if Z.shape != Y.shape or not np.isfinite(Z).all():
            raise ValueError(
                f"target_transform must give finite numbers of the shape {Y.shape} of y as columns; "
                f"{self.transformer!r} gave {'others' if Z.shape == Y.shape else f'the shape {Z.shape}'}."
            )
        return Z

    def inverse(self, Z: np.ndarray) -> np.ndarray:
        rows = Z.reshape(-1, Z.shape[-1])
        return np.asarray(self.transformer.inverse_transform(rows), dtype=np.float64).reshape(Z.shape)

    def arrays(self) -> dict[str, np.ndarray]:
        """No arrays: the transformer itself is kept."""
        return {}


TRIED: tuple[type[TargetTransform], ...] = NoTransform, Log, ArcsinhTarget  # where users leave the choice
TRANSFORMS: dict[str, type[TargetTransform]] = {kind.name: kind for kind in (NoTransform, Log, ArcsinhTarget, LogLink)}


def check_transform(transform: object) -> None:
    """Refuse `target_transform` if it is neither a known word nor a transformer."""
    if transform is None or is_word(transform, "auto"):
        return
    if isinstance(transform, str):
        raise ValueError(f"{_WANTED}, got {transform!r}.")
    if isinstance(transform, type) or not all(
        callable(getattr(transform, name, None)) for name in ("fit", "transform", "inverse_transform")
    ):
        raise TypeError(f"{_WANTED}, got {transform!r}.")


def first_transform(transform: BaseEstimator | str | None, Y: np.ndarray) -> NoTransform | CallersTransform:
    """A clone of the caller's transform, fitted to Y, or `NoTransform`."""
    is_given = not (transform is None or isinstance(transform, str))
    return CallersTransform(clone(transform).fit(Y)) if is_given else NoTransform()
