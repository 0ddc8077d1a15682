"""The choice of a kind of model."""

from dataclasses import dataclass, replace

from binfeat._common.held_out import surely_less
from binfeat._common.memory import require_bytes
from binfeat.kernels.families import Laplacian
from binfeat.length_scales.matrices import is_radial
from binfeat.models.features.all_rows import AllRows
from binfeat.models.kernel_algebra.solve import MOST_FACTORED
from binfeat.models.machines import local_size
from binfeat.models.machines.bins import BinsMachine, may_search, tries_factors
from binfeat.models.machines.candidate import Candidate
from binfeat.models.machines.exact import ExactMachine
from binfeat.models.machines.exact_size import TUNING_ROWS, exact_bytes, most_exact_rows
from binfeat.models.machines.fourier import FourierMachine
from binfeat.models.machines.grown import GrownMachine
from binfeat.models.machines.local import LocalMachine
from binfeat.models.problem import MarginProblem, Problem
from binfeat.models.run import Run
from binfeat.models.search.scaled_kernels import ScaledKernels


@dataclass(frozen=True, eq=False)
class MachineChoice:
    """The possible kinds of models for a problem."""

    problem: Problem
    rows: AllRows
    run: Run
    takes_exact: bool = False  # before any other kind is looked at
    takes_local: bool = False

    @classmethod
    def of(cls, problem: Problem, rows: AllRows, run: Run) -> "MachineChoice":
        """Return the kinds that rows and settings allow; ValueError or MemoryError if there are none."""
        choice = cls(problem, rows, run)
        asks_local = run.settings.features == "local" or choice._needs_kernel_values
        takes_exact = choice._takes_exact()
        if asks_local and not takes_exact:
            local_size.require_bytes(rows, problem, run)
        may_be_local = choice._is_open and not takes_exact
        takes_local = asks_local or (may_be_local and local_size.fits(rows, problem, run))
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
        if settings.features is None and small and not has_categories:
            return {"binning", "radial"}, needed
        return needed, needed

    def n_stages(self, learned: bool) -> int:
        """Stages that follow the search, at most; `learned` says that length scales come from these rows."""
        settings = self.run.settings
        if self.takes_exact or self.takes_local:
            return 2
        factors = tries_factors(self.problem, self.run, learned)
        return 2 + factors + settings.refits + (settings.n_posterior_samples is not None)

    def machine(self, kernels: ScaledKernels) -> Candidate:
        """Return the kind with the lowest validation error on a sample, unless parameters determine it.

        Kernels without random error come first: an exact model, or with more rows a local one. If they are not
        possible, grids are weighed against Fourier features.
        """
        if self.takes_exact:
            return ExactMachine(self.problem, self.run, kernels)
        if self.takes_local and kernels.vary:
            return LocalMachine(self.problem, self.run, kernels)
        with self.run.stage("features"):
            first = self._first(kernels)
            losses = first.judge(self.run)
            if not (self.run.settings.names_features or self._leaves_out_what_is_asked):
                words = f"random, for cv or groups of more than {TUNING_ROWS:,} rows"
                self.run.note("features", words, losses.mean())
            rival = self._rival(kernels)
            if rival is None:
                return first
            best, error, rival_losses = first, losses.mean(), rival.judge(self.run)
            if surely_less(rival_losses, losses):
                best, error = rival, rival_losses.mean()
            self.run.note("features", best.features, error)
            return best

    def _first(self, kernels: ScaledKernels) -> GrownMachine:
        if self.run.settings.features == "fourier":
            return FourierMachine(self.problem, kernels)
        if not kernels.vary:  # all kernels are constants
            first = kernels.found[0]
            kernels = replace(kernels, found=[replace(first, kernel=first.kernel.of_kernel(Laplacian()))])
        return BinsMachine(self.problem, kernels)

    def _rival(self, kernels: ScaledKernels) -> GrownMachine | None:
        """Return the alternatives to grids, unless the user selects grids."""
        if self.run.settings.features is not None or not kernels.vary:
            return None
        tries_fourier = kernels.has_radial and may_search(kernels, self.run) and not self._may_be_exact
        return FourierMachine(self.problem, kernels) if tries_fourier else None

    def _takes_exact(self) -> bool:
        """Return True for an exact model: with few rows, unless a parameter requires random features."""
        problem, settings = self.problem, self.run.settings
        if settings.features == "exact":
            if problem.is_grouped and len(problem.table) > TUNING_ROWS:
                raise ValueError(
                    f"features='exact' supports groups for up to {TUNING_ROWS:,} rows, got {len(problem.table):,}. "
                    "Use features='local' or 'auto'."
                )
            if isinstance(problem, MarginProblem) and len(problem.table) > MOST_FACTORED:
                raise ValueError(
                    f"loss={settings.loss!r} with features='exact' supports up to {MOST_FACTORED:,} rows, got "
                    f"{len(problem.table):,}. Use features='local' or 'auto'."
                )
            n_bytes = int(exact_bytes(len(problem.table), problem.n_solves))
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
        return asks_radial or isinstance(self.problem, MarginProblem)

    @property
    def _is_open(self) -> bool:
        """Return True if no parameter requires random features."""
        return not self.run.settings.names_features and self._leaves_out_what_is_asked

    @property
    def _leaves_out_what_is_asked(self) -> bool:
        """Return True if exact models can use the validation rows or groups of the user, if any."""
        are_few = len(self.problem.table) <= TUNING_ROWS
        return are_few or not (self.run.settings.has_cv or self.problem.is_grouped)
