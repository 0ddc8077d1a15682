"""KernelMachine* on cpu_act, census, Adult and KDD Cup 1999, beside LightGBM, boosting, trees and Nystroem."""

import numpy as np
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.pipeline import make_pipeline

from binfeat import KernelMachineClassifier, KernelMachineRegressor
from perf import data
from perf.measure import Times
from perf.peers import lightgbm, skipped, trial
from perf.record import Row

QUICK_ROWS = 2_000
QUICK_SECONDS = 2
NYSTROEM_GAMMAS = (0.003, 0.01, 0.03)


def run(quick):
    return [
        *_regression("cpu_act", data.cpu_act, data.CPU_ACT_ROWS, quick),
        *_regression("census", data.census, data.CENSUS_ROWS, quick),
        *_classification("Adult a9a", data.adult_a9a(), quick, {"Nystroem 1000": _nystroem()}),
        *_classification("Adult, raw table", data.adult_table(), quick, {"HistGradientBoosting": _boosting()}),
        *_classification("KDD Cup 1999, raw table", data.kddcup99(), quick, {"HistGradientBoosting": _boosting()}),
    ]


def _seconds(quick):
    return QUICK_SECONDS if quick else None


def _regression(name, load, n_train, quick):
    """Relative RMS, mean over seeded splits, and the difference to LightGBM in its paired standard errors."""
    X, y = load()
    splits = [data.seeded_split(X, y, n_train, seed) for seed in range(2 if quick else data.N_SPLITS)]
    splits = [split.quick(QUICK_ROWS if quick else None) for split in splits]
    ours = [trial(KernelMachineRegressor(max_seconds=_seconds(quick), random_state=0), split) for split in splits]
    peers = {
        "LightGBM 500": lambda: lightgbm(500, 31, regression=True),
        "HistGradientBoosting": lambda: HistGradientBoostingRegressor(random_state=0),
        "ExtraTrees 200": lambda: ExtraTreesRegressor(200, n_jobs=-1, random_state=0),
    }
    for peer, make in peers.items():
        if make() is None:
            yield skipped(f"{name}: {peer}")
            continue
        theirs = [trial(make(), split) for split in splits]
        errors, their_errors = (np.array([one.error for one in trials]) for trials in (ours, theirs))
        yield Row(f"{name}, relative RMS / {peer}", errors.mean(), their_errors.mean(), unit="%")
        if peer == "LightGBM 500":
            beyond = _paired(errors - their_errors)
            yield Row(f"{name}, beyond {peer}, in paired standard errors", beyond, reach=("<=", -1), unit="s.e.")
            yield Row(f"{name}, fit / {peer}", _times(ours), _times(theirs))


def _paired(differences):
    return float(differences.mean() / (differences.std(ddof=1) / np.sqrt(differences.size)))


def _times(trials):
    return Times(tuple(one.seconds for one in trials))


def _classification(name, split, quick, peers):
    """Error on the official test rows, and its distance to the best of the peers; quick leaves those rows alone."""
    split = split.quick(QUICK_ROWS if quick else None)
    ours = trial(KernelMachineClassifier(max_seconds=_seconds(quick), random_state=0), split)
    theirs = {}
    for peer, machine in {"LightGBM 500": lightgbm(500, 31), **peers}.items():
        if machine is None:
            yield skipped(f"{name}: {peer}")
            continue
        theirs[peer] = trial(machine, split)
        yield Row(f"{name}, error / {peer}", ours.error, theirs[peer].error, unit="%")
        yield Row(f"{name}, fit / {peer}", ours.seconds, theirs[peer].seconds)
    best = min(theirs, key=lambda peer: theirs[peer].error)
    share = theirs[best].error / 100
    one = 100 * np.sqrt(share * (1 - share) / len(split.y_test))
    beyond = (ours.error - theirs[best].error) / one
    yield Row(f"{name}, error beyond {best}, the best, in standard errors", beyond, reach=("<=", 1), unit="s.e.")


def _boosting():
    return HistGradientBoostingClassifier(random_state=0)


def _nystroem():
    """Ridge on Nystroem's features, with the gamma that does best on held-out training rows."""
    pipeline = make_pipeline(Nystroem(n_components=1000, random_state=0), RidgeClassifier())
    held_out = ShuffleSplit(n_splits=1, test_size=0.1, random_state=0)
    return GridSearchCV(pipeline, {"nystroem__gamma": NYSTROEM_GAMMAS}, cv=held_out)
