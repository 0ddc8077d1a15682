"""How a kernel machine sets itself up: each choice in turn, on held-out rows."""

from typing import Any

from binfeat._machine.feature_choice import FeatureChoice
from binfeat._machine.kernel_choice import KernelChoice
from binfeat._machine.size_and_alpha_choice import Sizing

_TOL, _MAX_ITER = 3e-2, 200  # enough to compare overall factors


class MachineFit:
    """One fit of a kernel machine.

    Parameters
    ----------
    problem : Problem
    rows : MemoryRows or SourceRows
        What the machine is fitted to in the end.

    Attributes
    ----------
    kernels : KernelChoice
    features : FeatureTrial
    gamma : ndarray of shape (n_inputs,)
    sizing : Sizing or None
        None until the machine grows.
    """

    def __init__(self, problem, rows):
        self._problem, self._rows = problem, rows
        self.kernels, self._held_out_predictions = KernelChoice(problem), None
        self.sizing: Any = None

    def run(self):
        """All choices in turn."""
        problem = self._problem
        self.gamma = self.kernels.run().best.gamma
        self.features = FeatureChoice(problem, self.kernels, self._rows.may_mix).run()
        if self.kernels.errors.size and self._has_bins and len(problem.train) > 2 * problem.limits.sample_rows:
            self.gamma = self.gamma * self._overall_factor()
        self._size()
        if problem.machine.refit and self.status != "stopped":
            self.sizing.refit(problem.Y[problem.held_out], problem.weights_of(problem.held_out))

    @property
    def status(self):
        """How the fit ended, as far as it is known."""
        ended = self.sizing.status
        return "budget" if ended == "converged" and self.kernels.hurried else ended

    @property
    def has_machine(self):
        """Whether there is a machine to keep if the fit ends now."""
        return self.sizing is not None and bool(self.sizing.curve)

    def held_out_predictions(self):
        """Those of the machine before the held-out rows were taken in."""
        found = self._held_out_predictions
        return self.sizing.growth.held_out() if found is None else found

    @property
    def _has_bins(self):
        return self.features.features != "fourier"

    def _new_growth(self, gamma):
        return self._rows.new_growth(self.kernels, gamma, self.features.fourier)

    def _overall_factor(self):
        """What gamma is multiplied by for more rows than the sample's, which take finer grids."""
        best: Any = None
        for factor in self._rows.factors(self.kernels, self.gamma):
            growth = self._new_growth(self.gamma * factor)
            growth.grow(self._problem.limits.few_grids)
            growth.solve(self.features.alpha, _TOL, _MAX_ITER)
            error = self._problem.loss(growth.held_out()).mean()
            if best is not None and error >= best[0]:
                break
            best = error, factor
        self._problem.decisions.note("overall length scale", f"{best[1]:g} times the sample's gamma", best[0])
        return best[1]

    def _size(self):
        problem, machine = self._problem, self._problem.machine
        self.sizing = Sizing(self._new_growth(self.gamma), problem, self.features.alpha)
        if not self._has_bins:
            self.sizing.run_without_grids()
        elif machine.n_grids == "auto":
            self.sizing.run(*self._rows.first_and_most_grids(self.kernels, self.gamma))
        else:
            self.sizing.run(machine.n_grids)
        problem.decisions.note("grids", self.sizing.growth.n_grids, self.sizing.error)
        problem.decisions.note("penalty", f"{self.sizing.alpha:.3g}", self.sizing.error)
        self._held_out_predictions = self.sizing.growth.held_out()
