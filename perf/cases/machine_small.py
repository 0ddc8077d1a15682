"""KernelMachine* on scikit-learn's bundled data and on synthetic targets, beside HistGradientBoosting."""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import KFold

from binfeat import KernelMachineClassifier, KernelMachineRegressor
from perf import synthetic
from perf.data import Split
from perf.measure import Times
from perf.peers import trial
from perf.record import Row

N_FOLDS = 5
QUICK_FOLDS, QUICK_TRAIN, QUICK_SECONDS = 2, 1_000, 1.5
LABELLED = (load_breast_cancer, load_digits, load_iris, load_wine)


def run(quick):
    rows = []
    for target in synthetic.TARGETS:
        sizes = (QUICK_TRAIN, QUICK_TRAIN) if quick else (synthetic.N_TRAIN, synthetic.N_TEST)
        splits = [synthetic.draw(target, seed, *sizes) for seed in range(1 if quick else 2)]
        rows += _compare(f"synthetic, {target.__name__}", splits, _regressors(quick))
    rows += _compare("diabetes", _folds(load_diabetes, quick), _regressors(quick))
    for load in LABELLED:
        rows += _compare(load.__name__.removeprefix("load_"), _folds(load, quick), _classifiers(quick))
    return rows


def _regressors(quick):
    seconds = QUICK_SECONDS if quick else None
    return KernelMachineRegressor(max_seconds=seconds, random_state=0), HistGradientBoostingRegressor(random_state=0)


def _classifiers(quick):
    seconds = QUICK_SECONDS if quick else None
    return KernelMachineClassifier(max_seconds=seconds, random_state=0), HistGradientBoostingClassifier(random_state=0)


def _folds(load, quick):
    X, y = load(return_X_y=True)
    folds = KFold(QUICK_FOLDS if quick else N_FOLDS, shuffle=True, random_state=0).split(X)
    return [Split(X[train], y[train], X[test], y[test]) for train, test in folds]


def _compare(name, splits, machines):
    """Mean error and fastest fit, ours and the peer's."""
    ours, theirs = ([trial(machine, split) for split in splits] for machine in machines)
    errors = [float(np.mean([one.error for one in trials])) for trials in (ours, theirs)]
    yield Row(f"{name}, error / HistGradientBoosting", *errors, unit="%")
    yield Row(f"{name}, fit / HistGradientBoosting", *(Times(tuple(t.seconds for t in own)) for own in (ours, theirs)))
