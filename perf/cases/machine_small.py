"""KernelMachine* on scikit-learn's bundled data and on synthetic targets, beside HistGradientBoosting."""

from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import KFold

from binfeat import KernelMachineClassifier, KernelMachineRegressor
from perf import synthetic
from perf.data import Split
from perf.peers import QUICK, contest, fit_times, mean_error
from perf.record import Row

PEER = "HistGradientBoosting"
N_FOLDS = 5
QUICK_FOLDS, QUICK_TRAIN = 2, 500
LABELLED = (load_breast_cancer, load_digits, load_iris, load_wine)


def run(quick):
    for target in synthetic.TARGETS[: 2 if quick else None]:
        sizes = (QUICK_TRAIN, QUICK_TRAIN) if quick else (synthetic.N_TRAIN, synthetic.N_TEST)
        splits = [synthetic.draw(target, seed, *sizes) for seed in range(1 if quick else 2)]
        yield from _compare(f"synthetic, {target.__name__}", splits, _regressors(quick))
    yield from _compare("diabetes", _folds(load_diabetes, quick), _regressors(quick))
    for load in LABELLED[: 1 if quick else None]:
        yield from _compare(load.__name__.removeprefix("load_"), _folds(load, quick), _classifiers(quick))


def _regressors(quick):
    options = QUICK if quick else {}
    return KernelMachineRegressor(**options, random_state=0), HistGradientBoostingRegressor(random_state=0)


def _classifiers(quick):
    options = QUICK if quick else {}
    return KernelMachineClassifier(**options, random_state=0), HistGradientBoostingClassifier(random_state=0)


def _folds(load, quick):
    X, y = load(return_X_y=True)
    folds = KFold(QUICK_FOLDS if quick else N_FOLDS, shuffle=True, random_state=0).split(X)
    return [Split(X[train], y[train], X[test], y[test]) for train, test in folds]


def _compare(name, splits, machines):
    """Mean error and fastest fit, ours and the peer's."""
    ours, theirs = machines
    trials, failures = contest({name: lambda: clone(ours), PEER: lambda: clone(theirs)}, splits)
    yield from failures
    if not failures:
        errors = [mean_error(own) for own in trials.values()]
        yield Row(f"{name}, error / {PEER}", *errors, unit="%")
        yield Row(f"{name}, fit / {PEER}", *(fit_times(own) for own in trials.values()))
