"""KernelMachineClassifier: growth of the fit with rows, prediction of one row and of batches."""

from functools import partial

import numpy as np

from binfeat import KernelMachineClassifier
from perf.data import forest_cover
from perf.floors import find_bins, look_up, over_floor, rates
from perf.measure import Times, interleave, stopwatch
from perf.record import Row
from perf.suite import guarded

GRIDS = 50
ROWS = (10_000, 30_000, 100_000, 200_000, 400_000)
QUICK_ROWS, QUICK = (500, 1_000, 2_000), {"features": "binning", "kernel": "laplacian"}
PREDICTION_GRIDS, PREDICTION_ROWS = 200, 100_000
ONE_ROW_CALLS = 1_000
ONE_ROW = {200: 100, 500: 200}  # grids: goal in us


def run(quick):
    X, labels = forest_cover()
    X, y = X.astype(np.float64), labels == 2
    sizes = QUICK_ROWS if quick else ROWS
    learned = KernelMachineClassifier(solver_params={"n_grids": GRIDS}, random_state=0, **(QUICK if quick else {}))
    learned.fit(X[: sizes[1]], y[: sizes[1]])
    yield from guarded("fit", _growth, learned, X, y, sizes)
    yield from guarded("fit, given length scales", _given_length_scales, learned, X, y, sizes, 1 if quick else 3)
    yield from guarded("predict", _prediction, X, y, quick)
    yield from guarded("predict of one row", _one_row, X, y, quick)


def _growth(model, X, y, sizes):
    """Yield the whole fit with learned length scales; the search uses a sample of a fixed size."""
    yield from _times_of_sizes("fit", model, X, y, sizes, 1)


def _given_length_scales(learned, X, y, sizes, repeats):
    """Yield fits with given length scales and penalty, and only bins: hashes, look-ups, solver, choice of a kernel."""
    gamma = learned.gamma_[: X.shape[1]]  # of the inputs; columns of ranks and categories follow
    given = {"gamma": gamma, "alpha": learned.alpha_, "refit": False, "features": "binning"}
    model = KernelMachineClassifier(**{**learned.get_params(), **given})
    yield from _times_of_sizes("fit, given length scales", model, X, y, sizes, repeats)


def _times_of_sizes(what, model, X, y, sizes, repeats):
    calls = {n: stopwatch(partial(model.fit, X[:n], y[:n])) for n in sizes}
    times = interleave(calls, repeats)
    seconds = np.array([times[n].best for n in sizes])
    exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    few, many = sizes[0], sizes[-1]
    for n in sizes:
        yield Row(f"{what}, {n:,} rows, {GRIDS} grids", times[n])
    yield Row(f"{what}, exponent of its time in the rows", float(exponent), unit="")
    linear = Times(tuple(many / few * own for own in times[few].seconds))
    yield Row(f"{what}, {many:,} rows / {many / few:g} times {few:,}", times[many], linear, ("<=", 1.2))


def _prediction(X, y, quick):
    n_rows = QUICK_ROWS[-1] if quick else PREDICTION_ROWS
    model = _model(PREDICTION_GRIDS).fit(X[:n_rows], y[:n_rows])
    times = interleave({"many": stopwatch(partial(model.predict, X[-n_rows:]))}, 3 if quick else 7)
    row_grids = n_rows * PREDICTION_GRIDS / times["many"].best / 1e6
    yield Row(f"predict, row-grids a second at {PREDICTION_GRIDS} grids", row_grids, reach=(">=", 20), unit="M")
    bins_of_grid, known = model.feature_coef_.shape[1] / PREDICTION_GRIDS, rates(quick)
    gathers = {"gathers": n_rows * PREDICTION_GRIDS * look_up("gather", bins_of_grid, known)}
    floor = find_bins(X[-n_rows:], PREDICTION_GRIDS, bins_of_grid, known) | gathers
    yield over_floor(f"predict, {PREDICTION_GRIDS} grids", times["many"], floor)


def _one_row(X, y, quick):
    n_rows = QUICK_ROWS[-1] if quick else PREDICTION_ROWS
    timers = {}
    for n_grids in ONE_ROW:
        model = _model(n_grids).fit(X[:n_rows], y[:n_rows])
        timers[n_grids] = stopwatch(partial(_repeat, model.predict, X[-1:]))
    times = interleave(timers, 3 if quick else 7)
    for n_grids, reach in ONE_ROW.items():
        own = times[n_grids].seconds
        microseconds = Times(tuple(1e6 / ONE_ROW_CALLS * seconds for seconds in own))
        yield Row(f"predict of one row, {n_grids} grids", microseconds, reach=("<=", reach), unit="us")


def _model(n_grids):
    """Return a model with given length scales, which do not affect the speed of predictions."""
    given = {"kernel": "laplacian", "features": "binning", "gamma": "scale", "alpha": 0.1, "refit": False}
    return KernelMachineClassifier(solver_params={"n_grids": n_grids}, **given, random_state=0)


def _repeat(predict, row):
    for _ in range(ONE_ROW_CALLS):
        predict(row)
