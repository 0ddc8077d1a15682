"""The choice of a kind of machine."""

from binfeat._common.held_out import surely_less
from binfeat._common.memory import require_memory
from binfeat._machine.machines.all_rows import AllRows
from binfeat._machine.machines.bins import BinsMachine, may_search
from binfeat._machine.machines.candidate import Candidate
from binfeat._machine.machines.exact import ExactMachine
from binfeat._machine.machines.exact_size import exact_bytes, most_exact_rows
from binfeat._machine.machines.fourier import FourierMachine
from binfeat._machine.machines.hybrid import HybridMachine
from binfeat._machine.problem import Problem
from binfeat._machine.run import Run
from binfeat._machine.search.scaled_kernels import ScaledKernels
from binfeat.kernels import Laplacian


def is_exact(problem: Problem, rows: AllRows, run: Run) -> bool:
    """Whether the machine is to be exact: where rows are few, and nothing is asked for that only features have."""
    settings = run.settings
    if settings.features == "exact":
        if settings.kernel is not None and not isinstance(settings.kernel, Laplacian):
            raise ValueError(f"features='exact' takes kernel='auto' or 'laplacian'; got {settings.kernel!r}.")
        require_memory(
            exact_bytes(len(problem.table), problem.n_targets),
            "an exact machine of so many rows",
            "Use features='auto' or fewer rows.",
        )
        return True
    return _may_be_exact(problem, rows, run) and len(problem.table) <= most_exact_rows(problem, run)


def _may_be_exact(problem: Problem, rows: AllRows, run: Run) -> bool:
    """Whether nothing is asked for that only random features have."""
    settings = run.settings
    asks = settings.features, settings.kernel, settings.n_grids
    return rows.in_memory and asks == (None, None, None) and not (settings.has_cv or problem.is_grouped)


def kernel_kinds(problem: Problem, run: Run, takes_exact: bool) -> tuple[set[str], set[str]]:
    """Kinds of kernels whose length scales may be of use, and those that are needed."""
    settings, limits, has_categories = run.settings, run.limits, problem.categorical.any()
    if takes_exact:
        return ({"binning", "radial"}, set()) if settings.kernel is None else ({"binning"}, {"binning"})
    if has_categories and settings.features in ("fourier", "hybrid"):
        raise ValueError(
            f"features={settings.features!r} needs numbers only, and X has categorical inputs; use 'binning'."
        )
    needed = {"fourier": {"radial"}, "hybrid": {"binning", "radial"}}.get(settings.features, {"binning"})
    small = 8 * limits.n_fourier * len(problem.table) <= limits.fourier_bytes
    if settings.features is None and small and not has_categories:
        return {"binning", "radial"}, needed
    return needed, needed


def judged(problem: Problem, kernels: ScaledKernels, rows: AllRows, run: Run) -> Candidate:
    """The kind of machine that does best on held-out rows of a sample, as far as the user leaves that open.

    Where a kernel without random error is worth more than all rows, it is worth more than thousands of features too:
    grids are weighed against an exact machine of some rows, or else against Fourier features.
    """
    first = _first(problem, kernels, run)
    losses = first.judge(run)
    rival = _rival(problem, kernels, rows, run, losses.mean())
    if rival is None:
        return first
    rival_losses = rival.judge(run)
    best, error = first, losses.mean()
    if surely_less(rival_losses, losses):
        best, error = rival, rival_losses.mean()
    run.note("features", best.features, error)
    return best


def _first(problem: Problem, kernels: ScaledKernels, run: Run) -> Candidate:
    wanted = run.settings.features
    if wanted == "fourier":
        return FourierMachine(problem, kernels)
    return (HybridMachine if wanted == "hybrid" and kernels.vary else BinsMachine)(problem, kernels)


def _rival(
    problem: Problem, kernels: ScaledKernels, rows: AllRows, run: Run, error: float
) -> ExactMachine | FourierMachine | None:
    """What is weighed against grids with this error, if they are not what the user asks for."""
    if run.settings.features is not None or not kernels.vary:
        return None
    if _may_be_exact(problem, rows, run):
        return ExactMachine(problem, run, kernels) if _tries_exact(problem, kernels, run, error) else None
    tries_fourier = kernels.radial is not None and may_search(kernels, run)
    return FourierMachine(problem, kernels) if tries_fourier else None


def _tries_exact(problem: Problem, kernels: ScaledKernels, run: Run, error: float) -> bool:
    """Whether an exact machine may do better: it has to on few rows already, where errors are squares as well."""
    if not may_search(kernels, run):
        return False
    if problem.scoring is None and not kernels.error < error:
        return False
    return most_exact_rows(problem, run) > run.limits.exact_trial_rows
