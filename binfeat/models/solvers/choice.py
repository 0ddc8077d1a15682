"""The choice of a kind of model, and warm starts: fits that keep length scales and kernel of an earlier fit."""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from sklearn.base import BaseEstimator

from binfeat._common.held_out import is_significantly_less
from binfeat._common.labels import AnyLabels
from binfeat._common.memory import require_bytes
from binfeat.kernels.families import RBF, Laplacian, Matern
from binfeat.length_scales.kernel_sum import KernelPart, KernelSum, Trial
from binfeat.length_scales.matrices import Linear, is_radial
from binfeat.models.fitted.exact import ExactFunction
from binfeat.models.fitted.fitted import Fitted, Function, fitted_of
from binfeat.models.fitted.kernel_function import KernelFunction
from binfeat.models.fitted.local import LocalFunction
from binfeat.models.kernel_algebra.level_effects import LevelColumns
from binfeat.models.kernel_algebra.solve import MOST_FACTORED
from binfeat.models.problem import Problem
from binfeat.models.run import Run
from binfeat.models.search.kernel_search import ScaledKernels
from binfeat.models.solvers.all_rows import AllRows
from binfeat.models.solvers.candidate import Solution
from binfeat.models.solvers.exact import ExactSolver
from binfeat.models.solvers.local import LocalSolver
from binfeat.models.solvers.random_features import (
    KERNELS,
    BinsSolver,
    FeatureSolver,
    FourierSolver,
    may_search,
    tries_factors,
)
from binfeat.models.solvers.sizes import (
    TUNING_ROWS,
    exact_bytes,
    fits,
    is_high_dimensional,
    most_exact_rows,
    n_solves,
    require_tree_bytes,
)
from binfeat.models.table.encoder import TableEncoder
from binfeat.models.table.targets import TRIED, Targets, TargetTransform, as_columns, of_positive_weight

Candidate = ExactSolver | LocalSolver | FeatureSolver


@dataclass(frozen=True, eq=False)
class SolverChoice:
    problem: Problem
    rows: AllRows
    run: Run
    takes_exact: bool = False  # True to use an exact model without a comparison
    takes_local: bool = False

    @classmethod
    def of(cls, problem: Problem, rows: AllRows, run: Run) -> "SolverChoice":
        """Return the kinds that rows and settings allow; ValueError or MemoryError if there are none."""
        choice = cls(problem, rows, run)
        asks_local = run.settings.features == "local" or choice._needs_kernel_values
        takes_exact = choice._takes_exact()
        if asks_local and not takes_exact:
            require_tree_bytes(rows, problem, run)
        may_be_local = choice._is_open and not takes_exact
        takes_local = asks_local or (may_be_local and fits(rows, problem, run))
        return replace(choice, takes_exact=takes_exact, takes_local=takes_local)

    @property
    def kernel_kinds(self) -> tuple[set[str], set[str]]:
        """Return the kinds of kernels with possibly useful length scales, and the required kinds."""
        settings, limits, has_categories = self.run.settings, self.run.limits, self.problem.categorical.any()
        if self.takes_exact or self.takes_local:
            kind = "radial" if is_radial(settings.kernel) else "binning"
            return ({"binning", "radial"}, set()) if settings.kernel is None else ({kind}, {kind})
        if has_categories and settings.features == "fourier":
            raise ValueError(
                f"features={settings.features!r} requires numeric inputs, and X has categories; use 'binning'."
            )
        needed = {"radial"} if settings.features == "fourier" else {"binning"}
        small = 8 * limits.n_fourier * len(self.problem.table) <= limits.fourier_bytes
        is_open = settings.kernel is None and not settings.names_features
        if is_open and small and not has_categories:
            return {"binning", "radial"}, needed
        return needed, needed

    def n_stages(self, learned: bool) -> int:
        """Return the maximum number of stages after the search; `learned`: length scales come from these rows."""
        settings = self.run.settings
        if self.takes_exact or self.takes_local:
            return 2
        factors = tries_factors(self.problem, self.run, learned)
        return 2 + factors + settings.refits + (settings.n_posterior_samples is not None)

    def solver(self, kernels: ScaledKernels) -> Candidate:
        """Return the kind with the lowest validation error on a sample, unless parameters determine it."""
        if self.takes_exact:
            return ExactSolver(self.problem, self.run, kernels)
        if self.takes_local and kernels.vary:
            return LocalSolver(self.problem, self.run, kernels)
        with self.run.stage("features"):
            first = self._first(kernels)
            losses = first.validate(self.run)
            if not (self.run.settings.names_features or self._supports_given_split):
                words = f"random, for cv or groups of more than {TUNING_ROWS:,} rows"
                self.run.note("features", words, losses.mean())
            rival = self._rival(kernels)
            if rival is None:
                return first
            best, error, rival_losses = first, losses.mean(), rival.validate(self.run)
            if is_significantly_less(rival_losses, losses):
                best, error = rival, rival_losses.mean()
            self.run.note("features", best.features, error)
            return best

    def _first(self, kernels: ScaledKernels) -> FeatureSolver:
        if self.run.settings.features == "fourier":
            return FourierSolver(self.problem, kernels)
        if not kernels.vary:  # all kernels are constant
            first = kernels.found[0]
            kernels = replace(kernels, found=[replace(first, kernel=first.kernel.of_kernel(Laplacian()))])
        return BinsSolver(self.problem, kernels)

    def _rival(self, kernels: ScaledKernels) -> FeatureSolver | None:
        """Return Fourier features as the alternative to grids.

        None if the user selects features, or they are not worth a trial.
        """
        if self.run.settings.features is not None or not kernels.vary:
            return None
        tries_fourier = kernels.has_radial and may_search(kernels, self.run) and not self._may_be_exact
        return FourierSolver(self.problem, kernels) if tries_fourier else None

    def _takes_exact(self) -> bool:
        """Return True for an exact model: with few rows, unless a parameter requires random features."""
        problem, settings = self.problem, self.run.settings
        if settings.features == "exact":
            n_rows = sum(len(rows[problem.weighty(rows)]) for rows in (problem.train, problem.held_out))
            if (settings.has_cv or problem.groups is not None) and n_rows > TUNING_ROWS:
                raise ValueError(
                    f"features='exact' supports cv and groups for up to {TUNING_ROWS:,} rows, got {n_rows:,}. "
                    "Use features='local' or 'auto'."
                )
            if problem.loss.needs_matrix and len(problem.table) > MOST_FACTORED:
                raise ValueError(
                    f"loss={settings.loss!r} with features='exact' supports up to {MOST_FACTORED:,} rows, got "
                    f"{len(problem.table):,}. Use features='local' or 'auto'."
                )
            n_bytes = int(exact_bytes(len(problem.table), n_solves(problem)))
            what = f"features='exact' of {len(problem.table):,} rows"
            require_bytes(n_bytes, settings.max_bytes, what, "Use features='auto', or fewer rows.")
            return True
        return self._may_be_exact and len(problem.table) <= most_exact_rows(problem, self.run)

    @property
    def _may_be_exact(self) -> bool:
        return self.rows.in_memory and self._is_open

    @property
    def _needs_kernel_values(self) -> bool:
        """Return True if random features do not support the loss or the kernel."""
        asks_radial = self.run.settings.features is None and is_radial(self.run.settings.kernel)
        return asks_radial or self.problem.loss.needs_matrix

    @property
    def _is_open(self) -> bool:
        return not self.run.settings.names_features and self._supports_given_split

    @property
    def _supports_given_split(self) -> bool:
        """Return True if exact models can use the validation rows or groups of the user, if any."""
        are_few = len(self.problem.table) <= TUNING_ROWS
        return are_few or not (self.run.settings.has_cv or self.problem.groups is not None)


_SAME = "features", "kernel", "gamma", "categorical_features", "loss", "target_transform"


def fitted_with(model: BaseEstimator) -> np.ndarray:
    """Return the properties that the next fit must share for a warm start, as an array of strings."""
    names = list(getattr(model, "feature_names_in_", []))
    columns = f"columns {model.n_features_in_} {names}"
    values = {name: getattr(model, name, None) for name in _SAME}
    plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}
    return np.array([columns, *(f"{name}={value!r}" for name, value in plain.items())])


def previous_fit(model: BaseEstimator, run: Run) -> Fitted | None:
    """Return the stored state for a warm start; record the reason and return None if it cannot be used."""
    if not (run.settings.warm_start and hasattr(model, "feature_coef_")):
        return None
    before, now = model._fitted_with, fitted_with(model)
    if before[0] != now[0]:
        raise ValueError(_others("columns", before[0], now[0]))
    changed = [words.partition("=")[0] for words in now if words not in before]
    if changed:
        run.note("warm start", f"none: {', '.join(changed)} changed", np.nan)
        return None
    return fitted_of(model)


def known_targets(
    previous: Fitted,
    fresh: Targets | AnyLabels,
    y: np.ndarray,
    weights: np.ndarray | None,
    y_ends: np.ndarray | None,
) -> Targets | AnyLabels:
    """Return `fresh`, the encoding of y, with the transform that the earlier fit chose; weights are (n_rows, 1).

    If y is a sample, `y_ends` are `ends_of` all targets. ValueError if y has other classes or another number of
    targets, or the transform does not support it.
    """
    known = previous.targets
    if isinstance(known, AnyLabels):
        fresh = cast(AnyLabels, fresh)
        if type(known) is not type(fresh) or _listed(known.classes) != _listed(fresh.classes):
            raise ValueError(_others("classes", _listed(known.classes), _listed(fresh.classes)))
        return fresh
    fresh, name = cast(Targets, fresh), known.transform.name
    if known.mean.size != fresh.mean.size:
        raise ValueError(_others("number of targets", known.mean.size, fresh.mean.size))
    if name not in TRIED[1:]:  # not chosen, but given or none
        return fresh
    y, weights = of_positive_weight(y, weights)
    lowest = (y if y_ends is None else y_ends).min()
    if name == "log" and lowest <= 0:
        raise ValueError(_others("transformation of y", name, f"y with minimum {lowest:g}"))
    return Targets.of(TargetTransform.fit(name, as_columns(y), fresh.transform.ends is not None), y, weights)


def suits(previous: Fitted, choice: SolverChoice) -> bool:
    """Return True if the features of the earlier fit are possible for these rows; otherwise record the reason."""
    reason, was_exact = None, isinstance(previous.function, ExactFunction)
    rows, run, n_rows = choice.rows, choice.run, len(choice.problem.table)
    before, now = previous.encoder, choice.problem.encoder
    if previous.scaler:
        reason = "columns are mapped by ranks or arcsinh (version 0.2.0)"
    elif not np.array_equal(before.source, now.source):
        reason = "other columns have missing values"
    elif not is_high_dimensional(choice.problem, run.settings) and (_vary(now) & ~_vary(before)).any():
        reason = "a column is not constant for the first time"
    elif was_exact and not choice.takes_exact:
        reason = "too many rows for an exact model"
    elif choice.takes_exact and not (was_exact or _levels_of(previous.function)):
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


def _vary(encoder: TableEncoder) -> np.ndarray:
    """Return a mask of the columns with several numbers or categories; gammas of the others are 0."""
    inputs = encoder.inputs
    return np.where(inputs.are_categories, inputs.ends[1] > 0, inputs.lows < inputs.highs)


def known_kernels(previous: Fitted, problem: Problem, run: Run) -> ScaledKernels:
    run.note("warm start", "scaling, length scales and kernel", previous.held_out_error[0])
    kernel = _known_kernel(previous, problem, run)
    histories = [(part.kernel, previous.length_scale_errors, previous.length_scale_gammas) for part in kernel.parts]
    return ScaledKernels([Trial(kernel, previous.held_out_error[0])], histories=histories)


def known_solver(previous: Fitted, choice: SolverChoice, kernels: ScaledKernels) -> Candidate:
    (known,), function, problem, run = kernels.found, previous.function, choice.problem, choice.run
    if choice.takes_exact:
        return ExactSolver(problem, run, kernels, known, _levels_of(function))
    if not isinstance(function, KernelFunction):
        alpha = previous.alpha if run.settings.alpha is None else run.settings.alpha
        known = replace(known, kernel=replace(known.kernel, alpha=alpha))
    return _solver(function, known, problem, kernels, run)


def _levels_of(function: Function) -> LevelColumns | None:
    return function.levels if isinstance(function, LocalFunction) else None


def solver_again(solution: Solution, problem: Problem, kernels: ScaledKernels, run: Run) -> Candidate:
    """Return a model of the kind of a solution, with its kernel and penalty, for a problem with the same rows."""
    function, kernel = solution.function, solution.kernel
    if isinstance(function, KernelFunction):
        kernel = replace(kernel, alpha=kernel.alpha / problem.mean_weight, n_rows=function.n_rows)
    kernels = replace(kernels, learned=False, is_perfect=False, unseen=None)
    return _solver(function, Trial(kernel, solution.error), problem, kernels, run)


def _solver(function: Function, known: Trial, problem: Problem, kernels: ScaledKernels, run: Run) -> Candidate:
    if isinstance(function, LocalFunction):
        return LocalSolver(problem, run, kernels, known, function.levels)
    if isinstance(function, KernelFunction):
        return ExactSolver(problem, run, kernels, known)
    kind = BinsSolver if function.fourier is None else FourierSolver
    return kind(problem, kernels, known.kernel, function)


def _known_kernel(previous: Fitted, problem: Problem, run: Run) -> KernelSum:
    alpha, function = previous.alpha / problem.mean_weight, previous.function
    if not isinstance(function, KernelFunction):
        given = [] if run.settings.kernel is None else [run.settings.kernel]
        known = {repr(own): own for own in (*given, RBF(), Laplacian(), *KERNELS, Matern(1.5))}
        return KernelSum([KernelPart(known[previous.kernel], previous.gamma, linear_map=previous.linear_map)], alpha)
    maps = [function.linear_map if is_radial(kernel) else None for kernel in function.kernels]
    parts = [
        KernelPart(kernel, gamma / function.unit**kernel.power, share, linear_map)
        for kernel, gamma, share, linear_map in zip(function.kernels, function.gammas, function.shares, maps)
    ]
    return KernelSum(parts, alpha)


def _listed(classes: np.ndarray | list[np.ndarray]) -> list:
    return [own.tolist() for own in classes] if isinstance(classes, list) else classes.tolist()


def _others(what: str, before: object, now: object) -> str:
    return (
        f"warm_start=True requires the {what} of the earlier fit, {before}; got {now}. Set it to False to search again."
    )
