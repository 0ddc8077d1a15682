"""Numeric targets: transforms, their selection, and the conversion of predictions back."""

import warnings
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from binfeat._common.arrays import mean_and_std, robust_scale
from binfeat._common.subsets import thinned
from binfeat._common.validation import is_word
from binfeat._common.warned import warn

_WANTED = "target_transform must be 'auto', None or a transformer with fit, transform and inverse_transform"


LINK = "log link"  # transform of deviances
TRIED = "none", "log", "arcsinh"  # tried if the user does not choose
_TINY = np.finfo(np.float64).tiny
# Targets are clipped for a robust loss at this multiple of the upper quartile of distances from the median, about 70
# standard deviations of a normal distribution. With a tenfold multiple, errors are 40 % higher for 1 % of outliers.
_REACH = 60.0


@dataclass(frozen=True, eq=False)
class TargetTransform:
    """A transform of targets (n_rows, n_targets), float64.

    "log" is for targets above 0, and "log link" for their means. "arcsinh" is ``arcsinh((y - center) / unit)``, which
    is logarithmic in both tails; see `robust_scale`. "given" is a fitted transformer of the caller. For a robust loss,
    transformed targets are clipped to `ends`, because one huge target would make all others equal in float32.
    """

    name: str
    center: np.ndarray | float = 0.0  # (n_targets,)
    unit: np.ndarray | float = 1.0  # (n_targets,)
    transformer: BaseEstimator | None = None
    ends: np.ndarray | None = None  # (2, n_targets)

    @classmethod
    def fit(cls, name: str, Y: np.ndarray, is_robust: bool) -> Self:
        own = cls(name, *robust_scale(Y)) if name == "arcsinh" else cls(name)
        return own.clipped(Y) if is_robust else own

    def clipped(self, Y: np.ndarray) -> Self:
        """Return a copy that clips targets far from their median, where the slope of a robust loss is constant.

        The unit is the upper quartile of positive distances from the median, because half of the targets can be nearly
        equal.
        """
        Z = self.transform(Y)
        center = np.median(Z, axis=0)
        units = [np.quantile(own[own > 0], 0.75) if own.any() else 0.0 for own in np.abs(Z - center).T]
        return replace(self, ends=center + _REACH * np.outer([-1.0, 1.0], units))

    def transform(self, Y: np.ndarray) -> np.ndarray:
        """Transform targets Y."""
        Z = self._transformed(Y)
        return Z if self.ends is None else np.clip(Z, *self.ends)

    def _transformed(self, Y: np.ndarray) -> np.ndarray:
        if self.transformer is not None:
            return self._given(self.transformer, Y)
        if self.name == "arcsinh":
            return np.arcsinh((Y - self.center) / self.unit)
        return Y if self.name == "none" else np.log(np.maximum(Y, _TINY))  # rows of weight 0 can have any target

    def inverse(self, Z: np.ndarray) -> np.ndarray:
        """Convert transformed targets back; the last axis of Z contains the targets."""
        if self.transformer is not None:
            rows = Z.reshape(-1, Z.shape[-1])
            return np.asarray(self.transformer.inverse_transform(rows), dtype=np.float64).reshape(Z.shape)
        if self.name == "arcsinh":
            return self.center + self.unit * np.sinh(Z)
        return Z if self.name == "none" else np.exp(Z)

    def log_slopes(self, Y: np.ndarray) -> np.ndarray:
        """Return logarithms of the derivative, with the shape of Y."""
        if self.name == "arcsinh":
            return -np.log(np.hypot(self.unit, Y - self.center))
        return np.zeros_like(Y) if self.name == "none" else -np.log(Y)

    def _given(self, transformer: BaseEstimator, Y: np.ndarray) -> np.ndarray:
        Z = np.asarray(transformer.transform(Y), dtype=np.float64)
        if Z.shape != Y.shape or not np.isfinite(Z).all():
            raise ValueError(
                f"target_transform must return finite numbers of shape {Y.shape}; {transformer!r} returned "
                f"{'NaN or infinity' if Z.shape == Y.shape else f'shape {Z.shape}'}."
            )
        return Z


def check_transform(transform: object) -> None:
    if transform is None or is_word(transform, "auto"):
        return
    if isinstance(transform, str):
        raise ValueError(f"{_WANTED}, got {transform!r}.")
    if isinstance(transform, type) or not all(
        callable(getattr(transform, name, None)) for name in ("fit", "transform", "inverse_transform")
    ):
        raise TypeError(f"{_WANTED}, got {transform!r}.")


def first_transform(transform: BaseEstimator | str | None, Y: np.ndarray, is_robust: bool) -> TargetTransform:
    """Return a clone of the caller's transform, fitted to Y, or no transform."""
    if transform is None or isinstance(transform, str):
        return TargetTransform.fit("none", Y, is_robust)
    fitted = TargetTransform("given", transformer=clone(transform).fit(Y))
    _check_inverse(fitted, thinned(Y, _INVERTED_ROWS))
    return fitted.clipped(Y) if is_robust else fitted


_INVERTED_ROWS = 1000  # maximum number of rows for a check of the inverse
_INVERSE_ERROR, _INEXACT_SHARE = 0.01, 0.1  # of the interquartile range; share of rows that may exceed it


def _check_inverse(transform: TargetTransform, Y: np.ndarray) -> None:
    """Warn if the inverse does not restore most rows; transformers may clip or merge a few."""
    errors = np.abs(transform.inverse(transform.transform(Y)) - Y) / robust_scale(Y)[1]
    share = 1 - float((errors <= _INVERSE_ERROR).all(axis=1).mean())
    if share > _INEXACT_SHARE:
        warn(
            f"The inverse_transform of target_transform={transform.transformer!r} does not restore y in {share:.0%} of "
            "the rows, so predictions are not in the units of y. Pass a transformer with an inverse, for example "
            "FunctionTransformer(np.log, np.exp)."
        )


_NODES = 15  # nodes of a quadrature over a normal law
_SHIFTS = 32  # mean residuals of this number of equal parts of the rows
# Predictions can exceed all targets by this number of standard deviations, or of units of log or arcsinh, whichever is
# smaller.
_BEYOND = 0.5
_MARGINS = 0.1, 0.5, 2.0, 10.0  # limits beyond all targets for transforms of the caller, in standard deviations


def no_limits(n_targets: int) -> np.ndarray:
    """Return the limits of predictions for plain targets: none."""
    return np.repeat([[-np.inf], [np.inf]], n_targets, axis=1)


@dataclass(frozen=True, eq=False)
class Targets:
    """Numbers as targets: transformed, then standardized.

    A prediction converted back from transformed units estimates approximately a median. For the mean, it is converted
    with each residual added, and the results are averaged (smearing, Duan 1983). The conversion can be exponential, or
    undefined outside a range, so predictions are limited to a range near the targets.
    """

    transform: TargetTransform
    mean: np.ndarray  # (n_targets,), mean of transformed targets
    std: np.ndarray  # (n_targets,)
    flat: bool  # True if y has one dimension
    shifts: np.ndarray  # residuals of standardized targets, (n_shifts, n_targets)
    limits: np.ndarray  # limits of predictions of standardized targets, (2, n_targets)

    @classmethod
    def of(cls, transform: TargetTransform, y: np.ndarray, weights: np.ndarray | None = None) -> "Targets":
        """Return targets of a fitted transform, standardized on y with weights (n_rows, 1)."""
        return cls.of_moments(transform, *mean_and_std(transform.transform(as_columns(y)), weights), y.ndim == 1)

    @classmethod
    def of_moments(cls, transform: TargetTransform, mean: np.ndarray, std: np.ndarray, flat: bool) -> "Targets":
        """Return targets of a fitted transform, given mean and std (n_targets,) of transformed y."""
        shifts = np.zeros((1, mean.size))
        return cls(transform, mean, np.where(std > 0, std, 1.0), flat, shifts, no_limits(mean.size))

    @property
    def is_plain(self) -> bool:
        return self.transform.name == "none"

    def encode(self, y: np.ndarray) -> np.ndarray:
        return (self.transform.transform(as_columns(y)) - self.mean) / self.std

    def decode(self, predictions: np.ndarray) -> np.ndarray:
        if not self.is_plain:
            predictions = np.clip(predictions, *self.limits)
        scores = (predictions + shift for shift in self.shifts)
        if self.transform.transformer is not None:  # its inverse can be undefined farther outside
            scores = (np.clip(own, *self.limits) for own in scores)
        values = (self.transform.inverse(own * self.std + self.mean) for own in scores)
        own = sum(values, next(values)) / len(self.shifts)
        return own[:, 0] if self.flat else own

    def spreads(self, predictions: np.ndarray, stds: np.ndarray) -> np.ndarray:
        """Return standard deviations of y for normal predictions; by Gauss quadrature if y is transformed."""
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
        """Return a copy with predictions limited to the range of y and a margin.

        Given transforms have the largest of some margins at which their inverse is finite and does not turn back.
        """
        Z = self.encode(y)
        ends = np.array([Z.min(axis=0), Z.max(axis=0)])
        if self.transform.transformer is not None:
            return replace(self, limits=self._limits_of_inverse(ends))
        beyond = _BEYOND / np.maximum(self.std, 1.0)
        return replace(self, limits=np.array([ends[0] - beyond, ends[1] + beyond]))

    def _limits_of_inverse(self, ends: np.ndarray) -> np.ndarray:
        limits, inner = ends, self.transform.inverse(ends * self.std + self.mean)
        for margin in _MARGINS:
            wider = np.array([ends[0] - margin, ends[1] + margin])
            try:
                with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
                    outer = self.transform.inverse(wider * self.std + self.mean)
            except (ValueError, ArithmeticError):  # beyond the range of the inverse
                break
            rises = np.array([inner[0] - outer[0], outer[1] - inner[1]]) * np.sign(inner[1] - inner[0])
            limits = np.where((rises > 0) & np.isfinite(rises), wider, limits)
        return limits

    @property
    def falls(self) -> np.ndarray:
        """Mask of the targets with a decreasing transform of the caller, (n_targets,)."""
        if self.transform.transformer is None:
            return np.zeros(self.mean.size, dtype=bool)
        low, high = self.transform.inverse(np.clip(self.limits, -1.0, 1.0) * self.std + self.mean)
        return high < low

    def of_means(self, residuals: np.ndarray, weights: np.ndarray | None = None) -> "Targets":
        """Return a copy with means as predictions, from residuals (n_rows, n_targets) of standardized targets.

        With weights (n_rows,), each of the parts has the same total weight.
        """
        n_parts = min(_SHIFTS, len(residuals))
        if weights is None:
            parts = np.array_split(np.sort(residuals, axis=0), n_parts)
            return replace(self, shifts=np.array([part.mean(axis=0) for part in parts]))
        order = np.argsort(residuals, axis=0, kind="stable")
        sorted_weights = weights[order] / weights.sum()
        products = sorted_weights * np.take_along_axis(residuals, order, axis=0)
        shares, sums = (np.pad(np.cumsum(own, axis=0), ((1, 0), (0, 0))) for own in (sorted_weights, products))
        ends = np.linspace(0.0, 1.0, n_parts + 1)
        until = np.column_stack([np.interp(ends, *own) for own in zip(shares.T, sums.T, strict=True)])
        return replace(self, shifts=n_parts * np.diff(until, axis=0))


def as_columns(y: np.ndarray) -> np.ndarray:
    return y[:, None] if y.ndim == 1 else y


def of_positive_weight(y: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Return targets and weights (n_rows, 1) without rows of weight 0."""
    if weights is None:
        return y, None
    kept = weights[:, 0] > 0
    return y[kept], weights[kept]


def replace_ignored(y: np.ndarray, weights: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Replace targets of weight 0 by `value`, a number per target: a loss or a transform may not accept them."""
    ignored = weights[:, 0] == 0
    return np.where(ignored if y.ndim == 1 else ignored[:, None], value, y) if ignored.any() else y


def ends_of(y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return minimum and maximum of targets in rows of positive weight (n_rows, 1), (2, n_targets)."""
    Y = as_columns(of_positive_weight(y, weights)[0])
    return np.array([Y.min(axis=0, initial=np.inf), Y.max(axis=0, initial=-np.inf)])


_SKEWED, _FAR = 1.0, 10.0  # minimum skewness or distance from the mean (in standard deviations) for transforms
_GAIN = 0.95  # maximum ratio of the errors with and without a transform
_NATS = 0.5  # gain of likelihood that counts as much better
_SHARED = 0.05  # share of rows with the same value


# Targets with a transform; leave-one-out losses of a short search, per row in the units of y, or one number, the
# negative score; and the mean log density of y, for Gaussian errors of transformed targets.
TransformTrial = tuple[Targets, np.ndarray, float]


def is_better(one: TransformTrial, other: TransformTrial) -> bool:
    """Return True if the error in units of y is much lower, or a little lower with a much higher likelihood.

    Squared errors of targets with long tails depend on few rows; the likelihood (Box and Cox 1964) on all.
    """
    (_, losses, own_likelihood), (_, other_losses, other_likelihood) = one, other
    apart = losses - other_losses
    noise = apart.std(ddof=1) / np.sqrt(apart.size) if apart.size > 1 else 0.0
    is_much_lower = losses.mean() < _GAIN * other_losses.mean() and apart.mean() < -noise
    return bool(is_much_lower or (own_likelihood > other_likelihood + _NATS and apart.mean() <= 0.0))


def transforms_to_try(Y: np.ndarray) -> list[str]:
    """Return "none" and transforms that are possible for Y (n_rows, n_targets); nothing for symmetric targets."""
    std = Y.std(axis=0)
    Z = (Y - Y.mean(axis=0)) / np.where(std > 0, std, 1.0)
    shaped = (np.abs((Z**3).mean(axis=0)) > _SKEWED) | (np.abs(Z).max(axis=0) > _FAR)
    has_many_values = ((Z.min(axis=0) < Z) & (Z.max(axis=0) > Z)).any(axis=0)
    return [name for name in TRIED if name != "log" or (Y > 0).all()] if (shaped & has_many_values).any() else []


def likelihood(
    transform: TargetTransform, std: np.ndarray, Y: np.ndarray, residuals: np.ndarray, weights: np.ndarray | None
) -> float:
    """Return the mean log density of targets Y, given residuals of transformed targets in units of std.

    It is 0 if many rows have the same value, such as 0, because there is no density.
    """
    if any(np.unique(column, return_counts=True)[1].max() > _SHARED * len(Y) for column in Y.T):
        return 0.0
    slopes = transform.log_slopes(Y)
    squares = np.average(residuals**2, axis=0, weights=weights)
    densities = slopes.mean(axis=0) - np.log(std) - 0.5 * np.log(np.maximum(squares, _TINY))
    return float(densities.mean())
