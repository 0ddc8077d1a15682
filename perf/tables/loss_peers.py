"""Peers that minimize the loss they are evaluated by: early-stopped boosting, and a linear model of counts."""

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import PoissonRegressor
from sklearn.pipeline import make_pipeline

from perf.tables.boosting import PATIENCE, RATE, categories_as_text, fit_catboost, fit_lightgbm, held_out
from perf.tables.peers import as_numbers

_MOST_TREES = 2000
_SEED = 0


def _lightgbm(split, **objective):
    inner = held_out(split.X, split.y, _SEED, split.weights)
    return fit_lightgbm(inner, _SEED, n_estimators=_MOST_TREES, learning_rate=RATE, **objective)[0]


def _catboost(split, **objective):
    """Return CatBoost with its automatic learning rate, and test rows in its format."""
    inner = held_out(categories_as_text(split.X), split.y, _SEED, split.weights)
    return fit_catboost(inner, _SEED, n_estimators=_MOST_TREES, **objective)[0], categories_as_text(split.X_test)


def _catboost_shares(split):
    model, X = _catboost(split)
    return model.predict_proba(X)[:, np.argsort(model.classes_)]  # it sorts labels that are digits by their values


def _catboost_predictions(split, **objective):
    model, X = _catboost(split, **objective)
    return model.predict(X)


def _boosting(split, **objective):
    """Return scikit-learn's boosting, which splits off validation rows itself."""
    return HistGradientBoostingRegressor(
        learning_rate=RATE,
        max_iter=_MOST_TREES,
        early_stopping=True,
        n_iter_no_change=PATIENCE,
        random_state=_SEED,
        **objective,
    ).fit(split.X, split.y, sample_weight=split.weights)


def of_classes(split):
    """Return a function per peer that fits it and returns probabilities (n_rows, n_classes) of test rows."""
    return {
        "LightGBM": lambda: _lightgbm(split).predict_proba(split.X_test),
        "CatBoost": lambda: _catboost_shares(split),
    }


def of_quantiles(split, levels):
    """Return functions as `of_classes` does, for quantiles (n_levels, n_rows)."""

    def each(fit):
        return np.array([fit(level).predict(split.X_test) for level in levels])

    several = {"loss_function": f"MultiQuantile:alpha={','.join(map(str, levels))}"}
    return {
        "LightGBM": lambda: each(lambda level: _lightgbm(split, objective="quantile", alpha=level)),
        "CatBoost": lambda: _catboost_predictions(split, **several).T,
        "HistGradientBoosting": lambda: each(lambda level: _boosting(split, loss="quantile", quantile=level)),
    }


def of_counts(split):
    """Return functions as `of_classes` does, for means of counts (n_rows,)."""
    poisson = {"loss_function": "Poisson"}

    def linear():
        model = make_pipeline(as_numbers(split.X), PoissonRegressor(alpha=1e-4, max_iter=1000))
        return model.fit(split.X, split.y, poissonregressor__sample_weight=split.weights)

    return {
        "LightGBM": lambda: _lightgbm(split, objective="poisson").predict(split.X_test),
        "CatBoost": lambda: _catboost_predictions(split, **poisson),
        "HistGradientBoosting": lambda: _boosting(split, loss="poisson").predict(split.X_test),
        "PoissonRegressor": lambda: linear().predict(split.X_test),
    }
