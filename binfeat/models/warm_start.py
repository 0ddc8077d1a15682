"""Fits that go on from an earlier one: scaling, length scales and kernel are kept, and are not searched again."""

from dataclasses import replace
from typing import cast

import numpy as np
from sklearn.base import BaseEstimator

from binfeat._common.labels import AnyLabels
from binfeat.features.fourier.features import FourierMap
from binfeat.kernels.base import Kernel
from binfeat.kernels.families import RBF, Laplacian, Matern
from binfeat.models.fitted.attributes import fitted_of
from binfeat.models.fitted.exact import ExactFunction
from binfeat.models.fitted.fitted import Fitted
from binfeat.models.fitted.kernel_function import KernelFunction, KernelPart
from binfeat.models.fitted.local import LocalFunction
from binfeat.models.kernel_algebra.matrices import Linear, is_radial
from binfeat.models.machines.bins import KERNELS, BinsMachine
from binfeat.models.machines.candidate import Candidate
from binfeat.models.machines.choice import MachineChoice
from binfeat.models.machines.descent import Hyperparameters
from binfeat.models.machines.exact import ExactMachine
from binfeat.models.machines.fourier import FourierMachine
from binfeat.models.machines.grown import FeaturePlan
from binfeat.models.machines.local import LocalMachine
from binfeat.models.problem import Problem
from binfeat.models.run import Run
from binfeat.models.search.length_scales import LengthScales
from binfeat.models.search.scaled_kernels import ScaledKernels
from binfeat.models.target.targets import Targets

_SAME = "features", "kernel", "gamma", "categorical_features", "loss", "target_transform"
_KNOWN: dict[str, Kernel] = {repr(kernel): kernel for kernel in (Laplacian(), *KERNELS, Matern(1.5), RBF())}


def fitted_with(machine: BaseEstimator) -> np.ndarray:
    """What a fit has to share with the next one for that to go on from it, as an array of words."""
    names = list(getattr(machine, "feature_names_in_", []))
    columns = f"columns {machine.n_features_in_} {names}"
    values = {name: getattr(machine, name, None) for name in _SAME}
    plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}
    return np.array([columns, *(f"{name}={value!r}" for name, value in plain.items())])


def previous_fit(machine: BaseEstimator, run: Run) -> Fitted | None:
    """What a machine with `warm_start` has kept; None, which is noted, if another fit cannot go on from it.

    ValueError if the columns of the table are others.
    """
    if not (run.settings.warm_start and hasattr(machine, "feature_coef_")):
        return None
    before, now = machine._fitted_with, fitted_with(machine)
    if before[0] != now[0]:
        raise ValueError(_others("columns", before[0], now[0]))
    changed = [words.partition("=")[0] for words in now if words not in before]
    if changed:
        run.note("warm start", f"none: {', '.join(changed)} changed", np.nan)
        return None
    return fitted_of(machine)


def known_targets(previous: Fitted, fresh: Targets | AnyLabels) -> Targets | AnyLabels:
    """The targets of the earlier fit, for those that a new one would have; ValueError if y is of another kind."""
    known = previous.targets
    if isinstance(known, AnyLabels):
        fresh = cast(AnyLabels, fresh)
        if type(known) is not type(fresh) or _listed(known.classes) != _listed(fresh.classes):
            raise ValueError(_others("classes", _listed(known.classes), _listed(fresh.classes)))
        return fresh
    fresh = cast(Targets, fresh)
    if (known.flat, known.mean.shape) != (fresh.flat, fresh.mean.shape):
        raise ValueError(_others("number of targets", known.mean.size, fresh.mean.size))
    return replace(known, shifts=np.zeros_like(fresh.shifts))


def suits(previous: Fitted, choice: MachineChoice) -> bool:
    """Whether the features of the earlier fit suit these rows; if not, that is noted."""
    reason, was_exact = None, isinstance(previous.function, ExactFunction)
    rows, run, n_rows = choice.rows, choice.run, len(choice.problem.table)
    if was_exact and not choice.takes_exact:
        reason = "rows are too many for an exact machine"
    elif choice.takes_exact and not was_exact:
        reason = "rows are so few that the machine is exact"
    elif isinstance(previous.function, LocalFunction) and not (rows.in_memory or choice.takes_local):
        reason = "rows are too many for a local machine"
    elif rows.in_memory and 8 * previous.function.n_fourier * n_rows > run.limits.fourier_bytes:
        reason = "rows are too many for Fourier features"
    elif isinstance(previous.function, KernelFunction) and Linear() in previous.function.kernels:
        reason = "linear kernels, as of version 0.2.0, are not fitted"
    if reason is not None:
        run.note("warm start", f"none: {reason}", np.nan)
    return reason is None


class KnownKernels:
    """Stands for the search of scaling and length scales where they are those of an earlier fit."""

    n_stages = 0

    def __init__(self, previous: Fitted, problem: Problem, run: Run) -> None:
        self._previous, self._problem, self._run = previous, problem, run

    def run(self) -> ScaledKernels:
        self._run.note("warm start", "scaling, length scales and kernel", self._previous.held_out_error[0])
        return self.settled()

    def settled(self) -> ScaledKernels:
        """The same, after Ctrl-C."""
        previous, X = self._previous, self._previous.scaled(self._problem.table)
        found = _scales(previous, self._problem, self._run)
        histories = [(scales.kernel, *previous.history) for scales in found]
        return ScaledKernels(previous.scaling, previous.scaler, X, found, histories=histories)


def known_machine(previous: Fitted, problem: Problem, kernels: ScaledKernels, run: Run) -> Candidate:
    """A machine of the kind of the earlier fit, with its kernel and penalty."""
    function, n_jobs = previous.function, run.settings.n_jobs
    if isinstance(function, KernelFunction):
        parts = [KernelPart(scales, 1.0, share) for scales, share in zip(kernels.scales, function.shares)]
        kind = ExactMachine if isinstance(function, ExactFunction) else LocalMachine
        return kind(problem, run, kernels, Hyperparameters(parts, kernels.scales[0].alpha))
    (scales,) = kernels.scales
    alpha = previous.alpha if run.settings.alpha is None else run.settings.alpha
    fourier = None if function.fourier is None else FourierMap(function.fourier.features.frequencies, n_jobs=n_jobs)
    plan = FeaturePlan(scales.kernel, previous.gamma, alpha, fourier, function.n_grids)
    return (BinsMachine if fourier is None else FourierMachine)(problem, kernels, plan)


def _scales(previous: Fitted, problem: Problem, run: Run) -> list[LengthScales]:
    """Kernels with their length scales: those of the features, or those of an exact machine's sum."""
    alpha, error, function = previous.alpha / problem.mean_weight, previous.held_out_error[0], previous.function
    if not isinstance(function, KernelFunction):
        given = run.settings.kernel
        kernel = _KNOWN[previous.kernel] if given is None or previous.features == "fourier" else given
        return [LengthScales(kernel, previous.gamma, alpha, error, 0, 0, previous.linear_map)]
    maps = [function.linear_map if is_radial(kernel) else None for kernel in function.kernels]
    return [
        LengthScales(kernel, gamma / function.unit**kernel.power, alpha, error, function.n_rows, 0, linear_map)
        for kernel, gamma, linear_map in zip(function.kernels, function.gammas, maps)
    ]


def _listed(classes: np.ndarray | list[np.ndarray]) -> list:
    return [own.tolist() for own in classes] if isinstance(classes, list) else classes.tolist()


def _others(what: str, before: object, now: object) -> str:
    return f"warm_start=True needs the {what} of the earlier fit, {before}; got {now}. Set it to False to search anew."
