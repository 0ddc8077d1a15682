"""The steps of a fit, from a problem to a fitted model."""

from dataclasses import replace

from binfeat.models.conclusion import concluded
from binfeat.models.features.all_rows import MemoryRows, RowsOf
from binfeat.models.fitted.fitted import Fitted
from binfeat.models.machines.candidate import Candidate, Solution
from binfeat.models.machines.choice import MachineChoice
from binfeat.models.preparation import prepared
from binfeat.models.problem import Problem
from binfeat.models.reweighting import reweighted
from binfeat.models.run import Run
from binfeat.models.search.kernel_search import KernelSearch
from binfeat.models.search.scaled_kernels import ScaledKernels
from binfeat.models.search.wide import WideSearch, is_wide
from binfeat.models.warm_start import KnownKernels, known_machine, suits

_HURRIED_ROWS, _HURRIED_OUT = 3000, 1000  # after Ctrl-C


def fit(problem: Problem, all_rows: RowsOf, run: Run, previous: Fitted | None = None) -> Fitted:
    """Determine targets and weights, then scaling and length scales, then the kind of model, then its solution.

    Ctrl-C returns the best current model and sets `run.interrupt`; it is raised again if there is no model.
    """
    problem = prepared(problem, run, has_targets=previous is not None)
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
    return concluded(problem, kernels, solution, run)


def _machine(choice: MachineChoice, kernels: ScaledKernels, previous: Fitted | None) -> Candidate:
    """Return the kind of model: the kind of an earlier fit, or the best one."""
    if previous is not None:
        return known_machine(previous, choice.problem, kernels, choice.run)
    return choice.machine(kernels)


def _solved_in_a_second(choice: MachineChoice, kernels: ScaledKernels, previous: Fitted | None) -> Solution:
    """Return a model of few rows, which takes about a second."""
    problem, run = choice.problem, choice.run.hurried()
    some = replace(problem, train=problem.train[:_HURRIED_ROWS], held_out=problem.held_out[:_HURRIED_OUT])
    rows = MemoryRows(some, run)
    return _machine(replace(choice, problem=some, rows=rows, run=run), kernels, previous).solve(rows, run)
