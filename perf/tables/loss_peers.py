"""Peers that minimise the loss that they are judged by: boosting that stops early, and a linear model of counts."""

import os

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import PoissonRegressor
from sklearn.pipeline import make_pipeline

from perf.data import seeded_split
from perf.tables.peers import as_numbers, categories_as_text

_STOPPING_SHARE, _PATIENCE, _MOST_TREES, _RATE = 0.1, 50, 2000, 0.05
_SEED = 0


def _threads():
    return len(os.sched_getaffinity(0))


def _inner(split):
    """Rows to fit to, and those that say when it is enough."""
    return seeded_split(split.X, split.y, round((1 - _STOPPING_SHARE) * len(split.y)), 1)


def _lightgbm(kind, split, **objective):
    import lightgbm

    inner = _inner(split)
    machine = getattr(lightgbm, kind)(
        n_estimators=_MOST_TREES, learning_rate=_RATE, n_jobs=_threads(), random_state=_SEED, verbose=-1, **objective
    )
    stop = lightgbm.early_stopping(_PATIENCE, verbose=False)
    return machine.fit(inner.X, inner.y, eval_set=[(inner.X_test, inner.y_test)], callbacks=[stop])


def _catboost(kind, split, **objective):
    """CatBoost at the rate that it chooses, and the test rows as it takes them."""
    import catboost

    inner = _inner(split)
    names = list(inner.X.select_dtypes("category").columns) if hasattr(inner.X, "columns") else []
    as_text = categories_as_text if names else np.asarray
    machine = getattr(catboost, kind)(
        iterations=_MOST_TREES,
        silent=True,
        allow_writing_files=False,
        thread_count=_threads(),
        random_seed=_SEED,
        cat_features=names,
        **objective,
    )
    machine.fit(
        as_text(inner.X), inner.y, eval_set=(as_text(inner.X_test), inner.y_test), early_stopping_rounds=_PATIENCE
    )
    return machine, as_text(split.X_test)


def _catboost_shares(split):
    machine, X = _catboost("CatBoostClassifier", split)
    return machine.predict_proba(X)[:, np.argsort(machine.classes_)]  # labels that are digits it sorts by their values


def _catboost_predictions(split, **objective):
    machine, X = _catboost("CatBoostRegressor", split, **objective)
    return machine.predict(X)


def _boosting(split, **objective):
    """Scikit-learn's, which holds out rows by itself."""
    return HistGradientBoostingRegressor(
        learning_rate=_RATE,
        max_iter=_MOST_TREES,
        early_stopping=True,
        n_iter_no_change=_PATIENCE,
        random_state=_SEED,
        **objective,
    ).fit(split.X, split.y)


def of_classes(split):
    """For each peer a function that fits it, and gives probabilities (n_rows, n_classes) of test rows."""
    return {
        "LightGBM": lambda: _lightgbm("LGBMClassifier", split).predict_proba(split.X_test),
        "CatBoost": lambda: _catboost_shares(split),
    }


def of_quantiles(split, levels):
    """The same for quantiles, (n_levels, n_rows)."""

    def each(fit):
        return np.array([fit(level).predict(split.X_test) for level in levels])

    several = {"loss_function": f"MultiQuantile:alpha={','.join(map(str, levels))}"}
    return {
        "LightGBM": lambda: each(lambda level: _lightgbm("LGBMRegressor", split, objective="quantile", alpha=level)),
        "CatBoost": lambda: _catboost_predictions(split, **several).T,
        "HistGradientBoosting": lambda: each(lambda level: _boosting(split, loss="quantile", quantile=level)),
    }


def of_counts(split):
    """The same for means of counts, (n_rows,)."""
    poisson = {"loss_function": "Poisson"}

    def linear():
        return make_pipeline(as_numbers(split.X), PoissonRegressor(alpha=1e-4, max_iter=1000)).fit(split.X, split.y)

    return {
        "LightGBM": lambda: _lightgbm("LGBMRegressor", split, objective="poisson").predict(split.X_test),
        "CatBoost": lambda: _catboost_predictions(split, **poisson),
        "HistGradientBoosting": lambda: _boosting(split, loss="poisson").predict(split.X_test),
        "PoissonRegressor": lambda: linear().predict(split.X_test),
    }
