"""Robust fits: rows far from what other rows say get little weight, before anything else is decided."""

from dataclasses import replace

import numpy as np

from binfeat._common.progress import Silent
from binfeat._machine.machines.exact import ExactChoice
from binfeat._machine.run import Decisions
from binfeat._machine.search.kernel_choice import KernelChoice
from binfeat._machine.target.huber import huber_weights

_ROUNDS = 2
_ROWS = 1500  # of the machine whose residuals they are: as many as have leave-one-out predictions
_STEPS = 30  # of its search for length scales


def about_medians(problem):
    """The problem with Huber's weights of the targets' distances from their medians."""
    return _weighted(problem, problem.Y - np.median(problem.Y, axis=0))


def robust(problem):
    """The problem with the weights of its rows times those of Huber's loss.

    Residuals are those of an exact machine on some rows, which is fitted with the weights of the round before:
    leave-one-out residuals of these rows, and those of all other rows.
    """
    found = about_medians(problem)
    for _ in range(_ROUNDS):
        residuals, error = _residuals(found)
        found = _weighted(problem, residuals)
    lighter = np.mean(found.weights < (1.0 if problem.weights is None else problem.weights))
    problem.decisions.note("loss", f"huber, {lighter:.1%} of the rows weigh less", error)
    return found


def _weighted(problem, residuals):
    if problem.weights is None:
        return replace(problem, weights=huber_weights(residuals))
    known = problem.weights[:, 0] > 0
    return replace(problem, weights=problem.weights * huber_weights(residuals, known))


def _residuals(problem):
    """Of all rows, under a machine that had not seen them, and its error."""
    limits = replace(problem.limits, n_steps=min(_STEPS, problem.limits.n_steps))
    silent = {"progress": Silent(goes_on=True), "decisions": Decisions(problem.budget, logs=False)}
    quiet = replace(problem, limits=limits, **silent)
    kinds = {"binning", "radial"} if problem.machine.kernel == "auto" else {"radial"}
    kernels = KernelChoice(quiet, kinds, set())
    kernels.run()
    some = replace(quiet, train=problem.train[:_ROWS], held_out=problem.held_out[:0])
    exact = ExactChoice(some, kernels)
    exact.choose()
    exact.solve()
    predictions = exact.function(kernels.X, problem.n_jobs) + exact.intercept
    predictions[exact.rows] = exact.predictions
    return problem.Y - predictions, exact.error
