"""What limits the error of a machine: time, grids, rows, noise; by quantities that are measured in a second."""

from dataclasses import dataclass

import numpy as np

from binfeat._common.subsets import evenly_spaced
from binfeat._machine.kernel_algebra.leave_one_out import SingularKernelError, residuals
from binfeat._machine.kernel_algebra.matrices import Frame, kernel_matrix
from binfeat.kernels import Laplacian

_ROWS = 1000  # test rows that predict each other's residuals
_FACTORS, _PENALTIES = (0.25, 0.5, 1.0), (0.1, 1.0, 10.0)  # of gamma, and of machines that learn residuals
_CERTAIN = 2.0  # standard errors


@dataclass(frozen=True)
class Limit:
    """A sentence on what limits the error, and whether it counts."""

    what: str
    says: str
    counts: bool


def limits_of(machine, judged):
    """The limits that are known: two for any machine, and two more with test rows."""
    limits = [_time(machine), _grids(machine)]
    return limits if judged is None else limits + _rows_and_noise(machine, judged)


def _time(machine):
    sentences = {
        "converged": ("The fit ended by itself.", False),
        "budget": ("The fit ended at max_seconds, max_grids or max_bytes: more of it may lower the error.", True),
    }
    return Limit("Time", *sentences.get(machine.status_, (f"The fit was {machine.status_}: it could go on.", True)))


def _grids(machine):
    """The random error of features, or that of cells at their borders, falls with 1 / n_grids, or 1 / n_trees.

    A line through the last two points of the learning curve has its limit.
    """
    curve = machine.learning_curve_
    if machine.features_ == "exact":
        return Limit("Random features", "None: the machine is exact.", False)
    is_local = machine.features_ == "local"
    title, many_of, kind = ("Trees", "trees", "leave-one-out") if is_local else ("Random features", "grids", "held-out")
    if len(curve) < 2 or curve[-1, 0] == curve[-2, 0]:
        return Limit(title, "Not known: their number did not grow in the fit.", False)
    (few, before), (many, error) = curve[-2:]
    share = max(0.0, few * (before - error) / (many - few)) / error if error else 0.0
    says = f"Infinitely many {many_of} would lower the {kind} error by about {share:.1%}; the machine has {many:,.0f}."
    return Limit(title, says, share > 0.03)


def _rows_and_noise(machine, judged):
    """How well test rows predict the residuals of other test rows, and how much residuals of neighbours differ.

    If test rows predict the residuals of other test rows, the machine would be better with more rows. Half the mean
    squared difference of the residuals of neighbours is an upper estimate of the variance of the noise (Rice 1984): the
    function may differ between neighbours, too.
    """
    chosen = evenly_spaced(len(judged.table), _ROWS)
    R = np.ascontiguousarray(judged.residuals[chosen], np.float32)
    squares = (R**2).mean(axis=1, dtype=np.float64)
    if not squares.any():
        return [Limit("Rows", "There is no error left on the test rows.", False)]
    table, categorical = machine._fitted.scaled(judged.table[chosen]), machine._fitted.encoder.categorical
    frame, matrix = Frame.of(table, categorical), kernel_matrix(Laplacian(), categorical, machine.n_jobs)
    columns, gamma = frame.columns(table), frame.gamma(Laplacian(), machine.gamma_)
    gains = squares - _squared_errors(matrix, columns, gamma, R)
    gain, spread = gains.mean() / squares.mean(), gains.std(ddof=1) / np.sqrt(gains.size) / squares.mean()
    K = matrix(columns, columns, gamma)
    np.fill_diagonal(K, -1.0)
    differences = ((R - R[K.argmax(axis=1)]) ** 2).mean(axis=1, dtype=np.float64)
    noise = min(1.0, 0.5 * differences.mean() / squares.mean())
    says = (
        f"Neighbours differ by {noise:.0%} of the squared error: noise, what the inputs do not say, or detail finer "
        f"than the distance of the rows. At least the other {1 - noise:.0%} could be learned."
    )
    return [_rows(gain, spread, len(chosen)), Limit("Noise", says, noise > 0.5)]


def _squared_errors(matrix, columns, gamma, R):
    """Squared leave-one-out errors for the residuals R, of the best of a few exact machines, or of predicting 0."""
    best = (R**2).mean(axis=1, dtype=np.float64)
    for factor in _FACTORS:
        K = matrix(columns, columns, factor * gamma)
        for alpha in _PENALTIES:
            try:
                errors = (residuals(K, alpha, None, R) ** 2).mean(axis=1, dtype=np.float64)
            except SingularKernelError:
                continue
            best = errors if errors.mean() < best.mean() else best
    return best


def _rows(gain, spread, n_rows):
    if gain <= _CERTAIN * spread:
        says = f"{n_rows:,} more rows like these would not lower the squared error by more than chance ({gain:.1%})."
        return Limit("Rows", says, False)
    says = f"{n_rows:,} more rows like these would lower the squared error by about {gain:.1%} ± {spread:.1%}."
    return Limit("Rows", says, True)
