"""How a kernel machine sets itself up: each choice in turn."""

from dataclasses import replace
from typing import Any

import numpy as np

from binfeat._common.memory import require_memory
from binfeat._machine.fitted.previous import KnownKernels
from binfeat._machine.machines.all_rows import MemoryRows
from binfeat._machine.machines.exact import ExactChoice, exact_bytes, most_exact_rows
from binfeat._machine.machines.feature_choice import FeatureChoice, fourier_map
from binfeat._machine.machines.sizing import Sizing, most_batches
from binfeat._machine.search.kernel_choice import KernelChoice
from binfeat.kernels import Laplacian, binning_kernel

_TOL, _MAX_ITER = 3e-2, 200  # enough to compare overall factors
_FACTOR_SHARE = 0.6  # of the time that may be gone after the search for an overall factor
_ENOUGH = 0.98  # share of the error that twice as many Fourier features have to be below


class MachineFit:
    """One fit of a kernel machine.

    Parameters
    ----------
    problem : Problem
    rows : MemoryRows or RowsBeyondMemory
        What the machine is fitted to in the end.

    Attributes
    ----------
    kernels : KernelChoice
    exact : ExactChoice or None
        Done, if that is what was chosen.
    features : FeatureTrial
        Else.
    fourier : FourierMap or None
        Likewise.
    sizing : Sizing or None
        None until a machine of features grows.
    gamma : ndarray of shape (n_inputs,)
    """

    def __init__(self, problem, rows):
        self._problem, self._rows = problem, rows
        self.takes_exact = self._takes_exact()
        if self._goes_on():
            self.kernels: KernelChoice = KnownKernels(problem)
        else:
            self._problem = replace(problem, earlier=None)
            self.kernels = KernelChoice(self._problem, *self._kinds())
        self._held_out_predictions: Any = None
        self.sizing: Any = None
        self.exact: Any = None
        self.fourier: Any = None

    def _goes_on(self):
        """Whether there is an earlier fit to go on from, and its features suit these rows."""
        problem, rows = self._problem, self._rows
        if problem.earlier is None:
            return False
        limits = problem.limits.fourier_bytes, len(problem.table)
        reason = problem.earlier.hinders(self.takes_exact, rows.may_mix, *limits)
        if reason is not None:
            problem.decisions.note("warm start", f"none: {reason}", np.nan)
        return reason is None

    @property
    def n_stages(self):
        """Stages of the fit that callbacks see, at most."""
        n_last = self._problem.machine.refit + (self._problem.n_posterior_samples is not None)
        n_choices = 2 if self.takes_exact else 2 + self._tries_factors + n_last
        return self.kernels.n_stages + n_choices

    def run(self):
        """All choices in turn; Ctrl-C leaves a machine if length scales were found before it, and is raised again."""
        try:
            self.kernels.run()
            self._finish()
        except KeyboardInterrupt:
            self._finish_in_a_hurry()
            raise

    def _finish(self):
        """What comes after the length scales."""
        if self.takes_exact:
            self._run_exact()
            return
        problem = self._problem
        with problem.stage("features"):
            self.features, kernel, gamma = self._choose_features()
        if self.features.exact is not None:
            self._solve_exact(self.features.exact, most_exact_rows(problem))
            return
        if self._has_bins:
            self._kernel, self.gamma, self.fourier = kernel, gamma, self.features.fourier
            if self._tries_factors:
                self.gamma = self.gamma * self._overall_factor()
            self._size()
        else:
            self._size_fourier()
        if problem.n_posterior_samples is not None and self.status != "stopped":
            with problem.stage("error bars"):
                self.sizing.learn_posterior(problem.n_posterior_samples, problem.mean_weight, problem.seed)
        if problem.machine.refit and self.status != "stopped":
            with problem.stage("refit"):
                self.sizing.refit(problem.Y[problem.held_out], problem.weights_of(problem.held_out))

    def _choose_features(self):
        """The features to take, and the kernel and the gamma of grids, if there are any."""
        if self._problem.earlier is not None:
            return self._problem.earlier.trial(self._problem)
        choice = FeatureChoice(self._problem, self.kernels, self._may_be_exact)
        features = choice.run()
        return (features, choice.kernel, choice.gamma) if features.features != "fourier" else (features, None, None)

    def _finish_in_a_hurry(self):
        """A machine of few rows, unless there is one, with the length scales as they stand, if there are any."""
        problem = self._problem.hurried()
        if not self.has_machine and self.kernels.settle(problem):
            self._problem, self._rows = problem, MemoryRows(problem)
            self._finish()

    @property
    def status(self):
        """How the fit ended, as far as it is known."""
        ended = self.sizing.status if self.exact is None else self._exact_status
        return "budget" if ended == "converged" and self.kernels.hurried else ended

    @property
    def has_machine(self):
        """Whether there is a machine to keep if the fit ends now."""
        return self.exact is not None or (self.sizing is not None and bool(self.sizing.curve))

    def judged(self):
        """Rows that choices were made by, and predictions for them of a machine that had not seen them."""
        if self.exact is not None:
            return self.exact.rows, self.exact.predictions
        found = self._held_out_predictions
        return self._problem.held_out, self.sizing.growth.held_out() if found is None else found

    @property
    def scales(self):
        """Length scales of the machine, or those that its own come from."""
        if self.exact is not None:
            return self.exact.scales
        return self.kernels.binning if self._has_bins else self.features.radial

    @property
    def linear_map(self):
        """The linear map of the kernel that `gamma` belongs to, or None."""
        return self.scales.linear_map

    @property
    def kernel_name(self):
        if self.exact is not None:
            return self.exact.kernel_name
        return repr(self._kernel if self._has_bins else self.features.radial.kernel)

    @property
    def _has_bins(self):
        return self.features.features != "fourier"

    def _takes_exact(self):
        """Whether the machine is to be exact: where rows are few, and nothing is asked for that only features have."""
        machine = self._problem.machine
        if machine.features == "exact":
            if self._rows.may_mix and machine.kernel != "auto" and not isinstance(self._own_kernel(), Laplacian):
                raise ValueError(f"features='exact' takes kernel='auto' or 'laplacian'; got {machine.kernel!r}.")
            require_memory(
                exact_bytes(len(self._problem.table), self._problem.Y.shape[1]),
                "an exact machine of so many rows",
                "Use features='auto' or fewer rows.",
            )
            return True
        return self._may_be_exact and len(self._problem.table) <= most_exact_rows(self._problem)

    @property
    def _may_be_exact(self):
        """Whether nothing is asked for that only random features have."""
        machine = self._problem.machine
        own = (machine.features, machine.kernel, machine.n_grids, machine.cv, self._problem.grouped)
        return self._rows.may_mix and own == ("auto", "auto", "auto", None, False)

    @property
    def _tries_factors(self):
        """Whether there are so many more rows than in the sample that length scales may be shorter."""
        return self.kernels.learns and len(self._problem.train) > 2 * self._problem.limits.sample_rows

    def _own_kernel(self):
        return binning_kernel(self._problem.machine.kernel)

    def _kinds(self):
        """Kernels whose length scales may be of use, and those that are needed."""
        machine, limits, problem = self._problem.machine, self._problem.limits, self._problem
        if self.takes_exact:
            return ({"binning", "radial"}, set()) if machine.kernel == "auto" else ({"binning"}, {"binning"})
        if problem.categorical.any() and machine.features in ("fourier", "hybrid"):
            raise ValueError(
                f"features={machine.features!r} needs numbers only, and X has categorical inputs; use 'binning'."
            )
        needed = {"fourier": {"radial"}, "hybrid": {"binning", "radial"}}.get(machine.features, {"binning"})
        small = 8 * limits.n_fourier * len(problem.table) <= limits.fourier_bytes
        if machine.features == "auto" and small and not problem.categorical.any():
            return {"binning", "radial"}, needed
        return needed, needed

    def _run_exact(self):
        problem, exact = self._problem, ExactChoice(self._problem, self.kernels)
        with problem.stage("kernel and penalty"):
            if problem.earlier is None:
                exact.choose()
            else:
                exact.take(*problem.earlier.parts(problem))
        self._solve_exact(exact, len(problem.table))

    def _solve_exact(self, exact, most):
        """Solve for so many rows at most; a fit that ends before has no exact machine."""
        problem = self._problem
        with problem.stage("solution"):
            exact.solve(most)
            self._exact_status = "converged" if problem.goes_on() else "stopped"
        if not self.takes_exact:
            n_rows = exact.function.support.shape[1]
            problem.decisions.note("rows", f"{n_rows} of {len(problem.table)}", exact.error)
        else:
            problem.decisions.note("features", "exact", exact.error)
        problem.decisions.note("kernel", exact.kernel_name, exact.error)
        problem.decisions.note("penalty", f"{exact.alpha:.3g}", exact.error)
        self.exact, self.gamma = exact, exact.gamma

    def _new_growth(self, gamma, fourier):
        return self._rows.new_growth(self.kernels, self._kernel, gamma, fourier)

    def _overall_factor(self):
        """What gamma is multiplied by for more rows than the sample's, which take finer grids."""
        problem, budget = self._problem, self._problem.budget
        factors = self._rows.factors(self.kernels, self._kernel, self.gamma)
        best: Any = None
        with problem.stage("overall length scale", len(factors)):
            for factor in factors:
                start, error = budget.used, self._error_with(factor)
                if best is not None and error >= best[0]:
                    break
                best = error, factor
                if not (problem.goes_on() and budget.allows(budget.used - start, _FACTOR_SHARE)):
                    break
        problem.decisions.note("overall length scale", f"{best[1]:g} times the sample's gamma", best[0])
        return best[1]

    def _error_with(self, factor):
        """Held-out error of a few grids with an overall factor of gamma."""
        growth = self._new_growth(self.gamma * factor, self.features.fourier)
        growth.grow(self._problem.limits.few_grids)
        growth.solve(self.features.alpha, _TOL, _MAX_ITER)
        return self._problem.loss(growth.held_out()).mean()

    def _size(self):
        problem, first, most = self._problem, self._problem.machine.n_grids, None
        if isinstance(first, str):
            first, most = self._rows.first_and_most_grids(self.kernels, self._kernel, self.gamma, self.fourier)
            first = first if problem.earlier is None else min(problem.earlier.n_grids, most)
        with problem.stage("grids", most_batches(first, most)):
            self.sizing = Sizing(self._new_growth(self.gamma, self.features.fourier), problem, self.features.alpha)
            self.sizing.run(first, most)
        growth, error = self.sizing.growth, self.sizing.error
        problem.decisions.note("grids", growth.n_grids, error)
        if growth.n_together < growth.n_targets:
            problem.decisions.note(
                "targets at a time", f"{growth.n_together} of {growth.n_targets}, for less memory", error
            )
        self._note_penalty()

    def _size_fourier(self):
        """Twice as many Fourier features as long as that pays."""
        self.gamma = self.features.radial.gamma ** (1 / self.features.radial.kernel.power)
        with self._problem.stage("Fourier features"):
            self._double_fourier()
        self._problem.decisions.note("Fourier features", self.fourier.n_components, self.sizing.error)
        self._note_penalty()

    def _double_fourier(self):
        problem, trial = self._problem, self.features
        self._kernel = Laplacian()  # of no grids
        self.fourier, self.sizing = trial.fourier, self._fourier_sizing(trial.fourier, trial.alpha)
        limits, n_rows = problem.limits, len(problem.table)
        most = min(n_rows, limits.fourier_bytes / (8 * n_rows), np.sqrt(limits.fourier_products / n_rows))
        while 2 * self.fourier.n_components <= most and problem.goes_on():
            fourier = fourier_map(trial.radial, 2 * self.fourier.n_components, problem.seed, problem.n_jobs)
            more, before = self._fourier_sizing(fourier, self.sizing.alpha), self.sizing.error
            if more.error < before:
                self.fourier, self.sizing = fourier, more
            if more.error > _ENOUGH * before:
                break

    def _fourier_sizing(self, fourier, alpha):
        sizing = Sizing(self._new_growth(np.zeros_like(self.gamma), fourier), self._problem, alpha)
        sizing.run_without_grids()
        return sizing

    def _note_penalty(self):
        self._problem.decisions.note("penalty", f"{self.sizing.alpha:.3g}", self.sizing.error)
        self._held_out_predictions = self.sizing.growth.held_out()
