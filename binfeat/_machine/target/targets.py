"""Targets as a machine learns them, and predictions of them as the caller knows them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from binfeat._common.held_out import SquaredErrors
from binfeat._machine.target.huber import winsorised
from binfeat._machine.target.transforms import TRANSFORMS, CallersTransform, NoTransform

_NODES = 15  # of a quadrature over a normal law
_SHIFTS = 32  # mean residuals of as many equal parts of the rows


@dataclass(frozen=True, eq=False)
class Targets:
    """Numbers as targets: transformed, then standardised.

    A prediction in transformed units, brought back, estimates something like a median. For an estimate of the mean it
    is brought back once with each residual added, and the results are averaged (smearing, Duan 1983).
    """

    transform: Any  # TargetTransform or CallersTransform
    mean: np.ndarray  # (n_targets,), of transformed targets
    std: np.ndarray  # (n_targets,)
    flat: bool  # whether y has one dimension
    shifts: np.ndarray  # residuals of standardised targets, (n_shifts, n_targets)

    @classmethod
    def of(cls, transform, y):
        """Of a fitted transform, standardised by y."""
        Z = transform.transform(as_columns(y))
        return cls.of_moments(transform, Z.mean(axis=0), Z.std(axis=0), y.ndim == 1)

    @classmethod
    def of_moments(cls, transform, mean, std, flat):
        """Of a fitted transform, standardised by mean and standard deviation (n_targets,) of what it makes of y."""
        return cls(transform, mean, np.where(std > 0, std, 1.0), flat, np.zeros((1, mean.size)))

    @classmethod
    def of_machine(cls, machine):
        """Those that a machine has kept."""
        transform: Any = None
        if hasattr(machine, "target_transformer_"):
            transform = CallersTransform(machine.target_transformer_)
        else:
            transform = TRANSFORMS[machine.target_transform_].from_arrays(machine._target_transform)
        return cls(transform, machine._target_mean, machine._target_std, machine._one_target, machine._target_shifts)

    @property
    def is_plain(self):
        return isinstance(self.transform, NoTransform)

    def encode(self, y):
        """Targets (n_rows, n_targets)."""
        return (self.transform.transform(as_columns(y)) - self.mean) / self.std

    def decode(self, predictions):
        """Predictions of y."""
        total: Any = 0.0
        for shift in self.shifts:
            total += self.transform.inverse((predictions + shift) * self.std + self.mean)
        own = total / len(self.shifts)
        return own[:, 0] if self.flat else own

    def spreads(self, predictions, stds):
        """Standard deviations of y for normal predictions with these; by Gauss's quadrature where y is transformed."""
        if self.is_plain:
            own = stds * self.std
            return own[:, 0] if self.flat else own
        nodes, shares = np.polynomial.hermite_e.hermegauss(_NODES)
        values = np.array([self.decode(predictions + node * stds) for node in nodes])
        shares = shares.reshape(-1, *[1] * (values.ndim - 1)) / shares.sum()
        apart = values - (shares * values).sum(axis=0)
        return np.sqrt((shares * apart**2).sum(axis=0))

    def bounds(self, low, high):
        """Intervals of y, (n_rows, 2) or (n_rows, n_targets, 2), of intervals of what is learned."""
        medians = replace(self, shifts=np.zeros((1, self.mean.size)))
        return np.sort(np.stack([medians.decode(low), medians.decode(high)], axis=-1), axis=-1)

    def of_means(self, residuals):
        """The same, whose predictions estimate means, by residuals (n_rows, n_targets) of standardised targets."""
        parts = np.array_split(np.sort(residuals, axis=0), min(_SHIFTS, len(residuals)))
        return replace(self, shifts=np.array([part.mean(axis=0) for part in parts]))

    def better(self, problem, rows, predictions):
        """Losses in the units of y, and these or those whose predictions estimate means, whichever has the lower."""
        residuals = self.encode(problem.y[rows]) - predictions
        means = self.of_means(winsorised(residuals) if problem.is_robust else residuals)
        trials = [(own_errors(problem, one, rows, predictions), one) for one in (self, means)]
        return min(trials, key=lambda trial: trial[0].mean())

    def attributes(self, problem, rows, predictions):
        """What a machine keeps, by predictions for rows that it had not seen."""
        kept = self
        if not self.is_plain:
            losses, kept = self.better(problem, rows, predictions)
            problem.decisions.note("predictions", "medians" if kept is self else "means", losses.mean())
        found = {
            "target_transform_": kept.transform.name,
            "_target_transform": kept.transform.arrays(),
            "_target_mean": kept.mean,
            "_target_std": kept.std,
            "_target_shifts": kept.shifts,
            "_one_target": kept.flat,
        }
        if isinstance(kept.transform, CallersTransform):
            found["target_transformer_"] = kept.transform.transformer
        return found


def as_columns(y):
    """Targets of shape (n_rows, n_targets)."""
    return y.reshape(len(y), -1)


def own_errors(problem, targets, rows, predictions):
    """Losses in the units of y, of standardised predictions for some rows: the machine's `scoring`, or squares."""
    if problem.machine.scoring is not None:
        return problem.scored(rows, targets)(predictions)
    plain = Targets.of(NoTransform(), problem.y)
    errors = SquaredErrors(plain.encode(problem.y[rows]), problem.weights_of(rows))
    with np.errstate(over="ignore"):
        return errors(plain.encode(targets.decode(predictions)))
