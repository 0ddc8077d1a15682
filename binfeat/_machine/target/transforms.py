"""Rising transforms of targets, each column for itself, and back."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from binfeat._common.persistence import ArrayRecord
from binfeat._common.robust_scale import robust_scale

_WANTED = "target_transform must be 'auto', None or a transformer with fit, transform and inverse_transform"


class TargetTransform(ArrayRecord):
    """Learned from targets Y of shape (n_rows, n_targets), float64."""

    name: ClassVar[str]

    @classmethod
    def takes(cls, Y):
        """Whether Y has values that the transform is for."""
        return True

    @classmethod
    def fit(cls, Y):
        """Learn from Y."""
        raise NotImplementedError

    def transform(self, Y):
        """Transformed targets, an array like Y."""
        raise NotImplementedError

    def inverse(self, Z):
        """Targets again; the last axis of Z counts them."""
        raise NotImplementedError

    def log_slopes(self, Y):
        """Logarithms of the derivative, an array like Y."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class NoTransform(TargetTransform):
    """Leaves targets as they are."""

    name: ClassVar[str] = "none"

    @classmethod
    def fit(cls, Y):
        return cls()

    def transform(self, Y):
        return Y

    def inverse(self, Z):
        return Z

    def log_slopes(self, Y):
        return np.zeros_like(Y)


@dataclass(frozen=True, eq=False)
class Log(TargetTransform):
    """Logarithms of targets that are all above 0, as predictions then are too."""

    name: ClassVar[str] = "log"

    @classmethod
    def takes(cls, Y):
        return bool((Y > 0).all())

    @classmethod
    def fit(cls, Y):
        return cls()

    def transform(self, Y):
        return np.log(Y)

    def inverse(self, Z):
        return np.exp(Z)

    def log_slopes(self, Y):
        return -np.log(Y)


@dataclass(frozen=True, eq=False)
class ArcsinhTarget(TargetTransform):
    """``arcsinh((y - median) / interquartile range)``, see `robust_scale`: logarithmic in both tails."""

    center: np.ndarray  # (n_targets,)
    unit: np.ndarray  # (n_targets,)
    name: ClassVar[str] = "arcsinh"

    @classmethod
    def fit(cls, Y):
        return cls(*robust_scale(Y))

    def transform(self, Y):
        return np.arcsinh((Y - self.center) / self.unit)

    def inverse(self, Z):
        return self.center + self.unit * np.sinh(Z)

    def log_slopes(self, Y):
        return -np.log(np.hypot(self.unit, Y - self.center))


class CallersTransform:
    """A fitted transformer of the caller."""

    def __init__(self, transformer):
        self.transformer, self.name = transformer, type(transformer).__name__

    @classmethod
    def fit(cls, transformer, Y):
        """Fit a clone of it."""
        return cls(clone(transformer).fit(Y))

    def transform(self, Y):
        Z = np.asarray(self.transformer.transform(Y), dtype=np.float64)
        if Z.shape != Y.shape or not np.isfinite(Z).all():
            raise ValueError(
                f"target_transform must give finite numbers of the shape {Y.shape} of y as columns; "
                f"{self.transformer!r} gave {'others' if Z.shape == Y.shape else f'the shape {Z.shape}'}."
            )
        return Z

    def inverse(self, Z):
        rows = Z.reshape(-1, Z.shape[-1])
        return np.asarray(self.transformer.inverse_transform(rows), dtype=np.float64).reshape(Z.shape)

    def arrays(self):
        """None: the transformer itself is kept."""
        return {}


TRANSFORMS: dict[str, type[TargetTransform]] = {kind.name: kind for kind in (NoTransform, Log, ArcsinhTarget)}


def check_transform(transform):
    """Refuse what is neither a known word nor a transformer."""
    if transform is None or (isinstance(transform, str) and transform == "auto"):
        return
    if isinstance(transform, str):
        raise ValueError(f"{_WANTED}, got {transform!r}.")
    if isinstance(transform, type) or not all(
        callable(getattr(transform, name, None)) for name in ("fit", "transform", "inverse_transform")
    ):
        raise TypeError(f"{_WANTED}, got {transform!r}.")


def first_transform(transform, Y) -> Any:
    """The caller's transform, fitted to Y, or none."""
    return NoTransform() if transform is None or isinstance(transform, str) else CallersTransform.fit(transform, Y)
