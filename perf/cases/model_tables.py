"""KernelMachine* on cpu_act, census, Adult and KDD Cup 1999, compared with LightGBM, boosting, trees and Nystroem."""

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
from perf.peers import QUICK, contest, fit_times, lightgbm, mean_error
from perf.record import Row
from perf.suite import guarded

QUICK_ROWS = 1_000
NYSTROEM_GAMMAS = (0.003, 0.01, 0.03)


def run(quick):
    boosting = {"HistGradientBoosting": lambda: HistGradientBoostingClassifier(random_state=0)}
    yield from guarded("cpu_act", _regression, "cpu_act", data.cpu_act, data.CPU_ACT_ROWS, quick)
    yield from guarded("census", _regression, "census", data.census, data.CENSUS_ROWS, quick)
    yield from guarded("a9a", _classification, "Adult a9a", data.adult_a9a, quick, {"Nystroem 1000": _nystroem})
    yield from guarded("Adult", _classification, "Adult, raw table", data.adult_table, quick, boosting)
    yield from guarded("KDD Cup", _classification, "KDD Cup 1999, raw table", data.kddcup99, quick, boosting)


def _options(quick):
    return QUICK if quick else {}


def _regression(name, load, n_train, quick):
    """Yield the relative RMS, mean over seeded splits, and the difference to LightGBM in paired standard errors."""
    X, y = load()
    splits = [data.seeded_split(X, y, n_train, seed) for seed in range(2 if quick else data.N_SPLITS)]
    splits = [split.quick(QUICK_ROWS if quick else None) for split in splits]
    makers = {
        "ours": lambda: KernelMachineRegressor(**_options(quick), random_state=0),
        "LightGBM 500": lambda: lightgbm(500, 31, regression=True),
        "HistGradientBoosting": lambda: HistGradientBoostingRegressor(random_state=0),
        "ExtraTrees 200": lambda: ExtraTreesRegressor(200, n_jobs=-1, random_state=0),
    }
    trials, failures = contest(makers, splits)
    yield from failures
    ours = trials.pop("ours", None)
    for peer, theirs in trials.items() if ours else ():
        yield Row(f"{name}, relative RMS / {peer}", mean_error(ours), mean_error(theirs), unit="%")
        if peer == "LightGBM 500":
            beyond = _paired(np.array([own.error - other.error for own, other in zip(ours, theirs)]))
            yield Row(f"{name}, error minus {peer}'s, in paired standard errors", beyond, reach=("<=", -1), unit="s.e.")
            yield Row(f"{name}, fit / {peer}", fit_times(ours), fit_times(theirs))


def _paired(differences):
    return float(differences.mean() / (differences.std(ddof=1) / np.sqrt(differences.size)))


def _classification(name, load, quick, peers):
    """Yield the error on the official test rows, and its difference to the best peer's."""
    split = load().quick(QUICK_ROWS if quick else None)
    ours = {"ours": lambda: KernelMachineClassifier(**_options(quick), random_state=0)}
    trials, failures = contest({**ours, "LightGBM 500": lambda: lightgbm(500, 31), **peers}, [split])
    yield from failures
    trials = {peer: own[0] for peer, own in trials.items()}
    ours = trials.pop("ours", None)
    if not ours or not trials:
        return
    for peer, theirs in trials.items():
        yield Row(f"{name}, error / {peer}", ours.error, theirs.error, unit="%")
        yield Row(f"{name}, fit / {peer}", ours.seconds, theirs.seconds)
    best = min(trials, key=lambda peer: trials[peer].error)
    share = trials[best].error / 100
    standard_error = 100 * np.sqrt(share * (1 - share) / len(split.y_test))
    beyond = (ours.error - trials[best].error) / standard_error
    yield Row(f"{name}, error minus {best}'s (the best), in standard errors", beyond, reach=("<=", 1), unit="s.e.")


def _nystroem():
    """Return ridge regression on Nystroem features, with the best gamma on validation rows."""
    pipeline = make_pipeline(Nystroem(n_components=1000, random_state=0), RidgeClassifier())
    held_out = ShuffleSplit(n_splits=1, test_size=0.1, random_state=0)
    return GridSearchCV(pipeline, {"nystroem__gamma": NYSTROEM_GAMMAS}, cv=held_out)
