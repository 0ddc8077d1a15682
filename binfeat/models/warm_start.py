"""Warm starts: fits that keep scaling, length scales and kernel of an earlier fit."""

from dataclasses import replace
from typing import cast

import numpy as np
from sklearn.base import BaseEstimator

from binfeat._common.labels import AnyLabels
from binfeat.kernels.base import Kernel
from binfeat.kernels.families import RBF, Laplacian, Matern
from binfeat.length_scales.kernel_sum import KernelPart, KernelSum, Trial
from binfeat.length_scales.matrices import Linear, is_radial
from binfeat.models.fitted.exact import ExactFunction
from binfeat.models.fitted.features import FeatureFunction
from binfeat.models.fitted.fitted import Fitted, fitted_of
from binfeat.models.fitted.kernel_function import KernelFunction
from binfeat.models.fitted.local import LocalFunction
from binfeat.models.machines.candidate import Candidate, Solution
from binfeat.models.machines.choice import MachineChoice
from binfeat.models.machines.exact import ExactMachine
from binfeat.models.machines.local import LocalMachine
from binfeat.models.machines.random_features import KERNELS, BinsMachine, FourierMachine
from binfeat.models.problem import Problem
from binfeat.models.run import Run
from binfeat.models.search.kernel_search import ScaledKernels
from binfeat.models.table.targets import Targets

_SAME = "features", "kernel", "gamma", "categorical_features", "loss", "target_transform"
_KNOWN: dict[str, Kernel] = {repr(kernel): kernel for kernel in (Laplacian(), *KERNELS, Matern(1.5), RBF())}


def fitted_with(machine: BaseEstimator) -> np.ndarray:
    """Return the properties that the next fit must share for a warm start, as an array of strings."""
    names = list(getattr(machine, "feature_names_in_", []))
    columns = f"columns {machine.n_features_in_} {names}"
    values = {name: getattr(machine, name, None) for name in _SAME}
    plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}
    return np.array([columns, *(f"{name}={value!r}" for name, value in plain.items())])


def previous_fit(machine: BaseEstimator, run: Run) -> Fitted | None:
    """Return the stored state for a warm start; record the reason and return None if it cannot be used.

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
    """Return the target encoding of the earlier fit; ValueError if y is of another kind."""
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
    """Return True if the features of the earlier fit are possible for these rows; otherwise record the reason."""
    reason, was_exact = None, isinstance(previous.function, ExactFunction)
    rows, run, n_rows = choice.rows, choice.run, len(choice.problem.table)
    if previous.scaler is not None:
        reason = "columns are mapped by their ranks or arcsinh, as in version 0.2.0"
    elif was_exact and not choice.takes_exact:
        reason = "too many rows for an exact model"
    elif choice.takes_exact and not was_exact:
        reason = "the rows are few enough for an exact model"
    elif isinstance(previous.function, LocalFunction) and not (rows.in_memory or choice.takes_local):
        reason = "too many rows for a local model"
    elif rows.in_memory and 8 * previous.function.n_fourier * n_rows > run.limits.fourier_bytes:
        reason = "too many rows for Fourier features"
    elif isinstance(previous.function, KernelFunction) and Linear() in previous.function.kernels:
        reason = "linear kernels, as of version 0.2.0, are not fitted"
    if reason is not None:
        run.note("warm start", f"none: {reason}", np.nan)
    return reason is None


class KnownKernels:
    """A stand-in for the search, with scaling and length scales of an earlier fit."""

    n_stages = 0

    def __init__(self, previous: Fitted, problem: Problem, run: Run) -> None:
        self._previous, self._problem, self._run = previous, problem, run

    def run(self) -> ScaledKernels:
        self._run.note("warm start", "scaling, length scales and kernel", self._previous.held_out_error[0])
        return self.settled()

    def settled(self) -> ScaledKernels:
        """The same, after Ctrl-C."""
        previous = self._previous
        found = _kernels(previous, self._problem, self._run)
        histories = [(own.kernel.main.kernel, *previous.history) for own in found]
        return ScaledKernels(self._problem.table, found, histories=histories)


def known_machine(previous: Fitted, problem: Problem, kernels: ScaledKernels, run: Run) -> Candidate:
    """Return a model of the kind of the earlier fit, with its kernel and penalty."""
    function, first = previous.function, kernels.found[0]
    if isinstance(function, KernelFunction):
        parts = [replace(own.kernel.main, share=share) for own, share in zip(kernels.found, function.shares)]
        return _machine(function, replace(first.kernel, parts=parts), first.error, problem, kernels, run)
    alpha = previous.alpha if run.settings.alpha is None else run.settings.alpha
    return _machine(function, replace(first.kernel, alpha=alpha), first.error, problem, kernels, run)


def machine_again(solution: Solution, problem: Problem, kernels: ScaledKernels, run: Run) -> Candidate:
    """A model of the kind of a solution, with its kernel and penalty, for a problem with the same rows."""
    function, kernel = solution.function, solution.kernel
    if isinstance(function, KernelFunction):
        kernel = replace(kernel, alpha=kernel.alpha / problem.mean_weight, n_rows=function.n_rows)
    found = [Trial(replace(kernel, parts=[replace(part, share=1.0)]), solution.error) for part in kernel.parts]
    kernels = replace(kernels, found=found, learned=False, is_perfect=False, unseen=None)
    return _machine(function, kernel, solution.error, problem, kernels, run)


def _machine(
    function: KernelFunction | FeatureFunction,
    kernel: KernelSum,
    error: float,
    problem: Problem,
    kernels: ScaledKernels,
    run: Run,
) -> Candidate:
    """A model of the kind of a function, with a kernel."""
    if isinstance(function, KernelFunction):
        if not isinstance(function, LocalFunction):
            return ExactMachine(problem, run, kernels, Trial(kernel, error))
        levels = None if function.levels is None else function.levels.columns
        return LocalMachine(problem, run, kernels, Trial(kernel, error), levels)
    kind = BinsMachine if function.fourier is None else FourierMachine
    return kind(problem, kernels, kernel, function)


def _kernels(previous: Fitted, problem: Problem, run: Run) -> list[Trial]:
    """The kernel of the features, or those of an exact model's sum."""
    alpha, error, function = previous.alpha / problem.mean_weight, previous.held_out_error[0], previous.function
    if not isinstance(function, KernelFunction):
        given = run.settings.kernel
        kernel = _KNOWN[previous.kernel] if given is None or previous.features == "fourier" else given
        part = KernelPart(kernel, previous.gamma, linear_map=previous.linear_map)
        return [Trial(KernelSum([part], alpha), error)]
    maps = [function.linear_map if is_radial(kernel) else None for kernel in function.kernels]
    parts = [
        KernelPart(kernel, gamma / function.unit**kernel.power, linear_map=linear_map)
        for kernel, gamma, linear_map in zip(function.kernels, function.gammas, maps)
    ]
    return [Trial(KernelSum([part], alpha, function.n_rows), error) for part in parts]


def _listed(classes: np.ndarray | list[np.ndarray]) -> list:
    return [own.tolist() for own in classes] if isinstance(classes, list) else classes.tolist()


def _others(what: str, before: object, now: object) -> str:
    return f"warm_start=True needs the {what} of the earlier fit, {before}; got {now}. Set it to False to search anew."
