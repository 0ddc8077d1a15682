"""The steps of a fit, from a problem to a fitted machine."""

from collections.abc import Callable
from dataclasses import replace

from binfeat._machine.conclusion import concluded
from binfeat._machine.fitted.fitted import Fitted
from binfeat._machine.machines.all_rows import AllRows, MemoryRows
from binfeat._machine.machines.bins import tries_factors
from binfeat._machine.machines.candidate import Candidate, Solution
from binfeat._machine.machines.choice import is_exact, judged, kernel_kinds
from binfeat._machine.machines.exact import ExactMachine
from binfeat._machine.preparation import prepared
from binfeat._machine.problem import Problem
from binfeat._machine.run import Run
from binfeat._machine.search.kernel_search import KernelSearch
from binfeat._machine.search.scaled_kernels import ScaledKernels
from binfeat._machine.warm_start import KnownKernels, known_machine, suits

_HURRIED_ROWS, _HURRIED_OUT = 3000, 1000  # after Ctrl-C


def fit(
    problem: Problem, all_rows: Callable[[Problem, Run], AllRows], run: Run, previous: Fitted | None = None
) -> Fitted:
    """Targets and weights, then scaling and length scales, then the kind of machine, then its solution.

    Ctrl-C leaves the best machine so far, and `run.interrupt`; it is raised again if there is none.
    """
    problem = prepared(problem, run, has_targets=previous is not None)
    rows = all_rows(problem, run)
    takes_exact = is_exact(problem, rows, run)
    if previous is not None and not suits(previous, takes_exact, rows, len(problem.table), run):
        previous = None
    search: KernelSearch | KnownKernels
    if previous is None:
        search = KernelSearch(problem, run, *kernel_kinds(problem, run, takes_exact))
    else:
        search = KnownKernels(previous, problem, run)
    run.begin(search.n_stages + _n_stages(problem, run, takes_exact, previous))
    machine = None
    try:
        kernels = search.run()
        machine = _machine(problem, kernels, rows, run, takes_exact, previous)
        solution = machine.solve(rows, run)
    except KeyboardInterrupt as interrupt:
        kernels, so_far = search.settled(), None if machine is None else machine.so_far()
        if kernels is None:
            raise
        run.interrupt = interrupt
        solution = so_far or _in_a_second(problem, kernels, run.hurried(), takes_exact, previous)
    return concluded(problem, kernels, solution, run)


def _machine(
    problem: Problem, kernels: ScaledKernels, rows: AllRows, run: Run, takes_exact: bool, previous: Fitted | None
) -> Candidate:
    """The kind of machine to take."""
    if previous is not None:
        return known_machine(previous, problem, kernels, run)
    if takes_exact:
        return ExactMachine(problem, run, kernels)
    with run.stage("features"):
        return judged(problem, kernels, rows, run)


def _in_a_second(
    problem: Problem, kernels: ScaledKernels, run: Run, takes_exact: bool, previous: Fitted | None
) -> Solution:
    """The machine of fewer rows that can be solved for in about a second."""
    train, held_out = problem.train[:_HURRIED_ROWS], problem.held_out[:_HURRIED_OUT]
    some = replace(problem, train=train, held_out=held_out)
    rows = MemoryRows(some, run)
    return _machine(some, kernels, rows, run, takes_exact, previous).solve(rows, run)


def _n_stages(problem: Problem, run: Run, takes_exact: bool, previous: Fitted | None) -> int:
    """Stages that follow the search, at most."""
    settings = run.settings
    if takes_exact:
        return 2
    factors = tries_factors(problem, run, settings.learns_gamma and previous is None)
    return 2 + factors + settings.refits + (settings.n_posterior_samples is not None)
