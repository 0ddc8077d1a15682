"""The steps of a fit, from a problem to a fitted model."""

from dataclasses import replace

from binfeat.models.fitted.fitted import Fitted
from binfeat.models.machines.all_rows import MemoryRows
from binfeat.models.machines.candidate import Candidate, Solution
from binfeat.models.machines.choice import MachineChoice
from binfeat.models.run import Run
from binfeat.models.search.kernel_search import KernelSearch, ScaledKernels
from binfeat.models.search.wide import WideSearch, is_wide
from binfeat.models.steps import concluded, prepared, reweighted
from binfeat.models.training_data import TrainingData
from binfeat.models.warm_start import KnownKernels, known_machine, suits


def fit(data: TrainingData, run: Run) -> Fitted:
    """Determine targets and weights, then scaling and length scales, then the kind of model, then its solution.

    Ctrl-C returns the best current model and sets `run.interrupt`; it is raised again if there is no model.
    """
    all_rows, previous = data.all_rows, data.previous
    problem = prepared(data.problem, run, has_targets=previous is not None)
    choice = MachineChoice.of(problem, all_rows(problem, run), run)
    if previous is not None and not suits(previous, choice):
        previous = None
    search: KernelSearch | WideSearch | KnownKernels
    if previous is not None:
        search = KnownKernels(previous, problem, run)
    elif choice.takes_exact and is_wide(problem, run.settings):
        search = WideSearch(problem, run)
    else:
        search = KernelSearch(problem, run, *choice.kernel_kinds)
    run.begin(search.n_stages + choice.n_stages(run.settings.learns_gamma and previous is None))
    machine = None
    try:
        kernels = search.run()
        machine = _machine(choice, kernels, previous)
        solution = machine.solve(choice.rows, run)
        problem, solution = reweighted(problem, kernels, solution, all_rows, run)
    except KeyboardInterrupt as interrupt:
        settled, so_far = search.settled(), None if machine is None else machine.so_far()
        if settled is None:
            raise
        kernels, run.interrupt = settled, interrupt
        solution = so_far or _solved_in_a_second(choice, kernels, previous)
    return replace(concluded(problem, kernels, solution, run), seen=data.seen)


def _machine(choice: MachineChoice, kernels: ScaledKernels, previous: Fitted | None) -> Candidate:
    """Return the kind of model: the kind of an earlier fit, or the best one."""
    if previous is not None:
        return known_machine(previous, choice.problem, kernels, choice.run)
    return choice.machine(kernels)


def _solved_in_a_second(choice: MachineChoice, kernels: ScaledKernels, previous: Fitted | None) -> Solution:
    """Return a model of few rows, which takes about a second."""
    problem, run = choice.problem, choice.run.hurried()
    train, held_out = problem.train[: run.limits.hurried_rows], problem.held_out[: run.limits.hurried_out]
    some = replace(problem, train=train, held_out=held_out)
    rows = MemoryRows(some, run)
    return _machine(replace(choice, problem=some, rows=rows, run=run), kernels, previous).solve(rows, run)
