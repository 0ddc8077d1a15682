"""Limits of the error of a model (time, grids, rows, noise), estimated in about a second."""

from dataclasses import dataclass

import numpy as np

from binfeat._common.subsets import evenly_spaced
from binfeat.kernels.families import Laplacian
from binfeat.length_scales.leave_one_out import SingularKernelError
from binfeat.length_scales.matrices import Standardizer, kernel_matrix
from binfeat.models.fitted.kernel_function import KernelFunction
from binfeat.models.kernel_algebra.loss import MARGINS, SQUARES
from binfeat.models.served.estimator import ServedModelBase
from binfeat.report.errors import Evaluation
from binfeat.report.learning import FEWEST, gain_of_twice_the_rows

_MUCH = 0.03  # a smaller relative reduction of the error is not worth more grids or rows


@dataclass(frozen=True)
class Limit:
    title: str
    text: str
    is_relevant: bool


def limits_of(model: ServedModelBase, evaluation: Evaluation | None) -> list[Limit]:
    """Return time, features and rows as limits, and the noise if there are test rows that `fit` did not use."""
    limits = [_time(model), _grids(model), _rows(model)]
    return limits if evaluation is None or evaluation.seen else [*limits, _noise(model, evaluation)]


def _time(model: ServedModelBase) -> Limit:
    if model.status_ == "converged":
        return Limit("Time", "The fit was not cut short by a limit.", False)
    if model.status_ == "budget":
        limits = [choice for what, choice, *_ in model.decisions_.tolist() if what == "limit"]
        limit = limits[-1] if limits else "max_seconds, max_grids or max_bytes"  # in a file of 0.2.0
        return Limit("Time", f"The fit stopped at its limit {limit}; a higher limit may lower the error.", True)
    return Limit("Time", f"The fit was {model.status_} before it converged.", True)


def _grids(model: ServedModelBase) -> Limit:
    """Extrapolate the learning curve to infinitely many grids or trees, by a line in 1 / n through two points."""
    curve = model.learning_curve_
    if model.features_ == "exact":
        return Limit("Random features", "The model is exact and uses no random features.", False)
    if model.features_ == "fourier":
        return Limit("Random features", "The gain from more Fourier features is unknown.", False)
    title, many_of = ("Trees", "trees") if model.features_ == "local" else ("Random features", "grids")
    if len(curve) < 2 or curve[-1, 0] == curve[-2, 0]:
        return Limit(title, f"The gain from more {many_of} is unknown, because only one number was fitted.", False)
    (few, before), (many, error) = curve[-2:]
    # The error of a score is negative.
    share = max(0.0, few * (before - error) / (many - few)) / abs(error) if error else 0.0
    text = f"The model uses {many:,.0f} {many_of}. More would lower the validation error by at most about {share:.1%}."
    return Limit(title, text, share > _MUCH)


def _rows(model: ServedModelBase) -> Limit:
    """Estimate the gain from twice as many rows, if the model stores its rows."""
    fitted = model._fitted
    function, n_jobs = fitted.function, model.n_jobs
    if not isinstance(function, KernelFunction):
        return Limit("Rows", "The gain from more rows is unknown, because the model stores no rows.", False)
    if model.loss not in SQUARES:  # their weights depend on all rows, so halves cannot be refitted
        return Limit("Rows", f"The gain from more rows is unknown with loss={model.loss!r}.", False)
    if function.n_rows < FEWEST:
        return Limit("Rows", f"{function.n_rows} rows are too few to estimate the gain from more rows.", True)
    try:
        gain = gain_of_twice_the_rows(function, fitted.intercept, n_jobs)
    except SingularKernelError:
        return Limit("Rows", "The gain from more rows is unknown, because the kernel matrix is singular.", False)
    if gain is None:
        return Limit("Rows", "The leave-one-out error of the training rows is 0.", False)
    share, spread = gain
    is_certain = share > 2.0 * spread
    figure = f"{share:.1%} ± {spread:.1%}"
    effect = f"by about {figure}" if is_certain else f"by {figure}, which is not significant"
    text = (
        f"Twice as many rows would lower the squared error {effect}, extrapolated from leave-one-out errors of halves "
        "and quarters of the rows. The gain may be higher if hyperparameters are selected again."
    )
    return Limit("Rows", text, is_certain and share > _MUCH)


def _noise(model: ServedModelBase, evaluation: Evaluation) -> Limit:
    """Estimate the share of noise in the error from the residuals of neighboring rows.

    Half the mean squared difference of neighboring residuals estimates the variance of the noise from above
    (Rice 1984), because the function may differ between neighbors, too.
    """
    if model.loss in MARGINS:  # scores do not estimate the targets -1 and 1, so residuals are not errors
        return Limit("Noise", f"The share of noise is unknown with loss={model.loss!r}.", False)
    chosen = evenly_spaced(len(evaluation.table), 1000)
    R = np.ascontiguousarray(evaluation.residuals[chosen], np.float32)
    squares = (R**2).mean(dtype=np.float64)
    if not squares:
        return Limit("Noise", "The error on the test rows is 0.", False)
    table, categorical = model._fitted.scaled(evaluation.table[chosen]), model._fitted.encoder.categorical
    standardizer, matrix = Standardizer.of(table, categorical), kernel_matrix(Laplacian(), categorical, model.n_jobs)
    columns, gamma = standardizer.columns(table), standardizer.gamma(Laplacian(), model._fitted.inverse_lengths)
    K = matrix(columns, columns, gamma)
    np.fill_diagonal(K, -1.0)
    differences = ((R - R[K.argmax(axis=1)]) ** 2).mean(dtype=np.float64)
    noise = min(1.0, 0.5 * differences / squares)
    text = (
        f"About {noise:.0%} of the squared error looks like noise: even neighboring rows have different targets. "
        f"More rows or a better model could remove at least the other {1 - noise:.0%}."
    )
    return Limit("Noise", text, noise > 0.5)
