"""Why one gamma needs many Fourier features: errors on Forest Cover against D, beside those of the exact kernel."""

import numpy as np
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, ShuffleSplit

from perf import tasks
from perf.choice import FOURIER, LEARNED_FOURIER, NEAR
from perf.data import Split
from perf.paper import TABLE_1
from perf.peers import trial
from perf.record import Row

FREQUENCIES = (250, 500, 1_000, 2_000, 4_000, 8_000)
ROWS = (20_000, 50_000)  # the exact kernel has the former
QUICK_FREQUENCIES, QUICK_ROWS, QUICK_STEP = (50, 100), (500, 1_000), 7
FACTORS = ((FOURIER, (1 / 3, 1.0, 3.0)), (LEARNED_FOURIER, (1.0,)))  # of the chosen gamma
PENALTIES = 10.0 ** np.arange(0, -5, -1)
PENALTY_ROWS = 5_000  # that choose the penalty of the exact kernel
_TEST_ROWS = 5_000  # whose part of the exact kernel is held at a time


def run(quick):
    split, size = tasks.forest_cover().splits[0], TABLE_1["Forest Cover"].fourier.size
    split = split.quick(2 * QUICK_ROWS[-1]) if quick else split
    rows = []
    for method, factors in FACTORS:
        best = method.choose(split.X, split.y, size, QUICK_STEP if quick else 1)
        for factor in factors:
            gamma = factor * best.get_params()["features__gamma"]
            machine = clone(best).set_params(features__gamma=gamma)
            name = f"{method.name}, gamma x {factor:.2g}"
            rows += _of_machine(name, machine, split, QUICK_ROWS if quick else ROWS, quick)
    return rows


def _of_machine(name, machine, split, rows, quick):
    """Errors of fewer and more features of some rows, with a penalty near the chosen one, and of the exact kernel."""
    alphas = machine.get_params()["ridge__alpha"] * NEAR
    for n in rows:
        own = Split(split.X[:n], split.y[:n], split.X_test, split.y_test)
        for size in QUICK_FREQUENCIES if quick else FREQUENCIES:
            sized = clone(machine).set_params(features__n_components=2 * size, ridge__alphas=alphas)
            at = {"panel": f"{n:,} rows", "series": name, "x": size}
            yield Row(f"{name}, {n:,} rows, D = {size}, error", trial(sized, own).error, unit="%", at=at)
        if n == rows[0]:
            yield Row(f"{name}, {n:,} rows, exact kernel, error", exact_error(machine, own), unit="%")


def exact_error(machine, split):
    """Error of kernel ridge regression with the scaling, kernel and gamma of a machine of random features."""
    parameters = machine.get_params()
    kernel, gamma = parameters["features__kernel"], parameters["features__gamma"]
    scaler = clone(parameters["scale"]).fit(split.X)
    X, y = scaler.transform(split.X), np.where(split.y, 1.0, -1.0)
    K = kernel(X, gamma=gamma)
    search = GridSearchCV(KernelRidge(kernel="precomputed"), {"alpha": PENALTIES}, cv=ShuffleSplit(1, random_state=0))
    search.fit(K[:PENALTY_ROWS, :PENALTY_ROWS], y[:PENALTY_ROWS])
    ridge = KernelRidge(kernel="precomputed", **search.best_params_).fit(K, y - y.mean())
    wrong = 0
    for start in range(0, len(split.y_test), _TEST_ROWS):
        some = slice(start, start + _TEST_ROWS)
        values = ridge.predict(kernel(scaler.transform(split.X_test[some]), X, gamma=gamma)) + y.mean()
        wrong += np.count_nonzero((values > 0) != split.y_test[some])
    return 100 * wrong / len(split.y_test)
