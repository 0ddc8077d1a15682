"""The paper's Figure 3 on Forest Cover: error against rows, error and time against P, one gamma and learned widths."""

from functools import partial
from time import perf_counter

import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import MinMaxScaler

from binfeat import kernels
from perf import choice, tasks
from perf.data import Split
from perf.measure import Times
from perf.paper import FIGURE_3
from perf.peers import trial
from perf.record import Row

GRIDS = 50
ROWS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)  # and all of them
NUMBERS_OF_GRIDS = (1, 2, 5, 10, 20, 30, 50)
QUICK_ROWS, QUICK_NUMBERS_OF_GRIDS = (300, 3_000), (1, 10)
FEW_ROWS, DRAWS = 10_000, 3  # sets of at most so many rows are drawn several times, and so are the grids
OPTIONS = {"kernels": (kernels.GammaPitch(np.inf),), "scalers": (MinMaxScaler(),)}  # what table1 chooses here
SERIES = {"one gamma": choice.one_gamma, "learned widths": choice.learned_widths}


def run(quick):
    split = tasks.forest_cover().splits[0]
    split = split.quick(2 * QUICK_ROWS[-1]) if quick else split
    rows = []
    for name, candidates in SERIES.items():
        method = choice.Method(name, "binning", partial(candidates, **OPTIONS), choice.BINNING_ALPHAS)
        rows += _against_rows(method, split, QUICK_ROWS if quick else ROWS)
        rows += _with_all_rows(method, split, QUICK_NUMBERS_OF_GRIDS if quick else NUMBERS_OF_GRIDS)
    return rows


def _against_rows(method, split, sizes):
    """Error of machines that are chosen and trained on so many rows alone."""
    for n in sizes:
        errors = []
        for draw in range(min(DRAWS, len(split.y) // n) if n <= FEW_ROWS else 1):
            rows = slice(draw * n, (draw + 1) * n)
            own = Split(split.X[rows], split.y[rows], split.X_test, split.y_test)
            with choice.quiet():  # of few rows most are alone in their bins
                errors.append(trial(method.choose(own.X, own.y, GRIDS), own).error)
        yield _of_rows(method, n, float(np.mean(errors)))


def _of_rows(method, n, error):
    at = {"panel": "rows", "series": method.name, "x": n}
    return Row(f"{method.name}, {n:,} rows, P = {GRIDS}, error", error, unit="%", at=at)


def _with_all_rows(method, split, sizes):
    """Error and times of one machine with fewer grids and with all: mean and minimum over draws of them."""
    best = method.choose(split.X, split.y, GRIDS)
    for size in sizes:
        machines = [clone(best).set_params(features__n_grids=size, features__random_state=s) for s in range(DRAWS)]
        trials = [trial(machine, split) for machine in machines]
        at = {"series": method.name, "x": size}
        what, paper = f"{method.name}, P = {size}", dict(FIGURE_3["P"]).get(size)
        error = float(np.mean([one.error for one in trials]))
        yield Row(f"{what}, error", error, paper, unit="%", at={"panel": "P", **at})
        training = Times(tuple(one.seconds for one in trials))
        testing = Times(tuple(_testing(one) for one in trials))
        yield Row(f"{what}, training", training, at={"panel": "seconds", "what": "training", **at})
        yield Row(f"{what}, testing", testing, at={"panel": "seconds", "what": "testing", **at})
        if size == GRIDS:
            yield _of_rows(method, len(split.y), error)


def _testing(done):
    start = perf_counter()
    done.machine.predict(done.split.X_test)
    return perf_counter() - start


def pictures(record):
    from perf import plots

    return {"figure3.png": plots.figure3(record)}
