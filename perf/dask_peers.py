"""Boosted trees on the same Dask cluster: LightGBM and XGBoost."""

import warnings
from functools import partial

from perf.measure import stopwatch

N_TREES, N_LEAVES, DEPTH = 100, 255, 8
QUICK_TREES = 5


def peers(client, n_trees):
    """Names of those that are installed, and what makes them."""
    found = {}
    try:
        from lightgbm import DaskLGBMRegressor

        options = {"n_estimators": n_trees, "num_leaves": N_LEAVES, "verbose": -1}
        found[f"LightGBM {n_trees} x {N_LEAVES}"] = partial(DaskLGBMRegressor, client=client, **options)
    except ImportError:
        pass
    try:
        from xgboost.dask import DaskXGBRegressor

        found[f"XGBoost {n_trees} x depth {DEPTH}"] = partial(DaskXGBRegressor, n_estimators=n_trees, max_depth=DEPTH)
    except ImportError:
        pass
    return found


def fit(make, dX, dy, X, y):
    """Seconds of a fit to Dask arrays, and the share of the variance of rows in memory that is left."""
    import dask.array as da

    machine = make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = stopwatch(partial(machine.fit, dX, dy))()
        predicted = machine.predict(da.from_array(X, chunks=(len(X), -1))).compute()
    return seconds, float(((predicted - y) ** 2).mean() / y.var())
