"""LabelSpreading with 10 labels per class, compared with a kernel model of the labeled rows and with 7 neighbors."""

import warnings
from functools import partial

import numpy as np
from sklearn import semi_supervised
from sklearn.exceptions import ConvergenceWarning

from binfeat import KernelMachineClassifier, LabelSpreading
from perf.graphs import TABLES, curved, table
from perf.measure import interleave, peak_memory, stopwatch
from perf.record import Row
from perf.suite import guarded

OURS, ALONE = "ours", "kernel model on the labeled rows"
NEIGHBORS, LABELS = 7, 10
DRAWS, QUICK_DRAWS, QUICK_ROWS = 10, 1, 500
MANY, QUICK_MANY = (697_526, 15), (3_000, 15)
BESIDE_NEIGHBORS = f"{NEIGHBORS} neighbors"
REACH = {ALONE: 0.0, BESIDE_NEIGHBORS: -2.0}  # points above each reference


def run(quick):
    for name, load in TABLES.items():
        yield from guarded(name, _quality, name, load, quick)
    yield from guarded("many rows", _many_rows, quick)


def _quality(name, load, quick):
    """Yield the share of the other rows with the correct class, as means over draws of labeled rows."""
    X, y = table(load, QUICK_ROWS if quick else None)
    found = np.mean([_shares_right(X, y, draw) for draw in range(QUICK_DRAWS if quick else DRAWS)], axis=0)
    means = dict(zip((OURS, ALONE, BESIDE_NEIGHBORS), found.tolist(), strict=True))
    for model, share in means.items():
        yield Row(f"{name}: right, {model}", share, unit="%")
    for model, least in REACH.items():
        yield Row(f"{name}: accuracy minus {model}", means[OURS] - means[model], reach=(">=", least), unit="points")


def _shares_right(X, y, draw):
    rng = np.random.default_rng(draw)
    labeled = np.concatenate([rng.permutation(np.flatnonzero(y == k))[:LABELS] for k in range(y.max() + 1)])
    few = few_of(y, labeled)
    spread = LabelSpreading(random_state=draw).fit(X, few).transduction_
    alone = KernelMachineClassifier(random_state=draw)
    neighbors = semi_supervised.LabelSpreading(kernel="knn", n_neighbors=NEIGHBORS, max_iter=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = neighbors.fit(X, few).transduction_
    others = few < 0
    guesses = spread, alone.fit(X[labeled], y[labeled]).predict(X), theirs
    return [100 * float((guess == y)[others].mean()) for guess in guesses]


def few_of(y, labeled):
    """Return labels y, with -1 for rows without a label."""
    few = np.full(len(y), -1)
    few[labeled] = y[labeled]
    return few


def _many_rows(quick):
    shape = QUICK_MANY if quick else MANY
    X, y, few = _rows_of_two_classes(*shape)
    spread = LabelSpreading(random_state=0)
    times = interleave({OURS: stopwatch(partial(spread.fit, X, few))}, 1)
    what = f"{shape[0]:,} x {shape[1]}"
    yield Row(f"{what}: right, {OURS}", 100 * float((spread.transduction_ == y)[few < 0].mean()), unit="%")
    yield Row(f"{what}: fit", times[OURS], reach=("<=", 60))
    peak = peak_memory(_prepared, shape)
    yield Row(f"{what}: peak memory without X", peak and peak / 1e9, reach=("<=", 4), unit="GB")


def _rows_of_two_classes(n_rows, n_inputs):
    """Return rows of ten curved clusters, five per class, with 200 labels."""
    X, cluster = curved(n_rows, n_inputs)
    y = cluster % 2
    return X, y, few_of(y, np.random.default_rng(1).permutation(n_rows)[:200])


def _prepared(shape):
    X, _, few = _rows_of_two_classes(*shape)
    LabelSpreading(random_state=0).fit(X[:2000], np.where(np.arange(2000) < 200, np.arange(2000) % 2, -1))
    return partial(LabelSpreading(random_state=0).fit, X, few)
