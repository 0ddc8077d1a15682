"""What limits the error of a machine: time, grids, rows, noise; by quantities that are measured in a second."""

from dataclasses import dataclass

import numpy as np

from binfeat._common.subsets import evenly_spaced
from binfeat.kernels.families import Laplacian
from binfeat.models.fitted.kernel_function import KernelFunction
from binfeat.models.kernel_algebra.bounded import BOUNDED_LOSSES
from binfeat.models.kernel_algebra.leave_one_out import SingularKernelError
from binfeat.models.kernel_algebra.matrices import Frame, kernel_matrix
from binfeat.models.target.deviance import DEVIANCES
from binfeat.report.learning import FEWEST, gain_of_twice_the_rows

_ROWS = 1000  # test rows that are compared with their neighbours
_CERTAIN = 2.0  # standard errors
_MUCH = 0.03  # share of the error that more grids or rows would take away


@dataclass(frozen=True)
class Limit:
    """A sentence on what limits the error, and whether it counts."""

    what: str
    says: str
    counts: bool


def limits_of(machine, judged):
    """The limits that are known: three for any machine, and the noise with test rows."""
    limits = [_time(machine), _grids(machine), _rows(machine)]
    return limits if judged is None or judged.seen else [*limits, _noise(machine, judged)]


def _time(machine):
    if machine.status_ == "converged":
        return Limit("Time", "The fit ended by itself.", False)
    if machine.status_ == "budget":
        limits = [choice for what, choice, *_ in machine.decisions_.tolist() if what == "limit"]
        limit = limits[-1] if limits else "max_seconds, max_grids or max_bytes"  # in a file of 0.2.0
        return Limit("Time", f"The fit ended at {limit}: more of it may lower the error.", True)
    return Limit("Time", f"The fit was {machine.status_}: it could go on.", True)


def _grids(machine):
    """The random error of features, or that of cells at their borders, falls with 1 / n_grids, or 1 / n_trees.

    A line through the last two points of the learning curve has its limit.
    """
    curve = machine.learning_curve_
    if machine.features_ == "exact":
        return Limit("Random features", "None: the machine is exact.", False)
    title, many_of = ("Trees", "trees") if machine.features_ == "local" else ("Random features", "grids")
    if len(curve) < 2 or curve[-1, 0] == curve[-2, 0]:
        return Limit(title, "Not known: their number did not grow in the fit.", False)
    (few, before), (many, error) = curve[-2:]
    share = max(0.0, few * (before - error) / (many - few)) / error if error else 0.0
    says = f"Infinitely many {many_of} would lower the error of rows left out by about {share:.1%}; the machine has"
    return Limit(title, f"{says} {many:,.0f}.", share > _MUCH)


def _rows(machine):
    """What twice as many rows would bring, where the machine keeps its rows."""
    fitted = machine._fitted
    function, n_jobs = fitted.function, machine.n_jobs
    if not isinstance(function, KernelFunction):
        return Limit("Rows", "What more of them would bring is not known: the machine keeps none.", False)
    if machine.loss in (*DEVIANCES, *BOUNDED_LOSSES):  # whose squares rest on what all rows have told
        return Limit("Rows", f"What more of them would bring is not known with loss={machine.loss!r}.", False)
    if function.n_rows < FEWEST:
        return Limit("Rows", "They are too few to tell what more of them would bring.", True)
    try:
        gain = gain_of_twice_the_rows(function, fitted.intercept, n_jobs)
    except SingularKernelError:
        return Limit("Rows", "What more of them would bring is not known: their kernel matrix is singular.", False)
    if gain is None:
        return Limit("Rows", "There is no error left on the rows of fit.", False)
    share, spread = gain
    is_certain = share > _CERTAIN * spread
    effect = "lower the squared error by about" if is_certain else "not lower the squared error by more than chance,"
    says = (
        f"Twice as many rows like these would {effect} {share:.1%} ± {spread:.1%}, by leave-one-out errors of "
        "halves and quarters; a kernel that they suit better may gain more."
    )
    return Limit("Rows", says, is_certain and share > _MUCH)


def _noise(machine, judged):
    """How much residuals of neighbours differ.

    Half the mean squared difference of the residuals of neighbours is an upper estimate of the variance of the noise
    (Rice 1984): the function may differ between neighbours, too.
    """
    chosen = evenly_spaced(len(judged.table), _ROWS)
    R = np.ascontiguousarray(judged.residuals[chosen], np.float32)
    squares = (R**2).mean(dtype=np.float64)
    if not squares:
        return Limit("Noise", "There is no error left on the test rows.", False)
    table, categorical = machine._fitted.scaled(judged.table[chosen]), machine._fitted.encoder.categorical
    frame, matrix = Frame.of(table, categorical), kernel_matrix(Laplacian(), categorical, machine.n_jobs)
    columns, gamma = frame.columns(table), frame.gamma(Laplacian(), machine._fitted.inverse_lengths)
    K = matrix(columns, columns, gamma)
    np.fill_diagonal(K, -1.0)
    differences = ((R - R[K.argmax(axis=1)]) ** 2).mean(dtype=np.float64)
    noise = min(1.0, 0.5 * differences / squares)
    says = (
        f"Neighbours differ by {noise:.0%} of the squared error: noise, what the inputs do not say, or detail finer "
        f"than the distance of the rows. At least the other {1 - noise:.0%} could be learned."
    )
    return Limit("Noise", says, noise > 0.5)
