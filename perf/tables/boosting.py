"""Tuned boosting: it stops early on validation rows, and tries settings until a time limit.

Settings are drawn from the spaces of TabArena (Erickson et al. 2025), with the names of scikit-learn's interfaces.
"""

import os
from dataclasses import dataclass
from itertools import count
from time import perf_counter

import numpy as np

from perf.data import Split
from perf.tables.splitting import is_regression

HELD_OUT, PATIENCE, RATE, MOST_TREES, N_DRAWS = 0.1, 50, 0.05, 5_000, 25
LONGEST = 600  # default seconds


def held_out(X, y, seed, weights=None):
    """Return a split with a tenth of the rows as test rows, a tenth of each class."""
    order = np.random.default_rng(seed).permutation(len(y))
    groups = [order] if is_regression(y) else [order[y[order] == label] for label in np.unique(y)]
    of_each = [round(HELD_OUT * len(group)) for group in groups]
    held = np.concatenate([group[:n] for group, n in zip(groups, of_each)])
    kept = np.concatenate([group[n:] for group, n in zip(groups, of_each)])
    rows_of = (lambda rows: X.iloc[rows]) if hasattr(X, "iloc") else (lambda rows: X[rows])
    own = () if weights is None else (weights[kept], weights[held])
    return Split(rows_of(kept), y[kept], rows_of(held), y[held], *own)


def categories_as_text(X):
    """Return the frame with strings instead of categories and missing categories, for CatBoost."""
    if not hasattr(X, "columns"):
        return X
    names, X = X.select_dtypes("category").columns, X.copy()
    X[names] = X[names].astype(object).fillna("missing").astype(str)
    return X


def fit_lightgbm(inner, seed, until=np.inf, **settings):
    """Fit until the loss of the validation rows stops decreasing, or until the time `until`.

    Returns
    -------
    model : estimator
    loss : float
        The library's loss of the validation rows.
    """
    import lightgbm

    def stop_in_time(env):
        if perf_counter() > until:
            raise lightgbm.callback.EarlyStopException(env.iteration, env.evaluation_result_list)

    kind = lightgbm.LGBMRegressor if is_regression(inner.y) else lightgbm.LGBMClassifier
    model = kind(n_jobs=os.cpu_count(), random_state=seed, verbose=-1, **settings)
    callbacks = [lightgbm.early_stopping(PATIENCE, verbose=False), stop_in_time]
    weights = {"sample_weight": inner.weights, "eval_sample_weight": [inner.weights_test]}
    model.fit(inner.X, inner.y, eval_set=[(inner.X_test, inner.y_test)], callbacks=callbacks, **weights)
    return model, next(iter(model.best_score_["valid_0"].values()))


def fit_xgboost(inner, seed, until=np.inf, **settings):
    """The same."""
    import xgboost

    class StopInTime(xgboost.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            return epoch > 0 and perf_counter() > until  # without the first iteration there is no score

    kind = xgboost.XGBRegressor if is_regression(inner.y) else xgboost.XGBClassifier
    model = kind(
        early_stopping_rounds=PATIENCE,
        enable_categorical=True,
        callbacks=[StopInTime()],
        n_jobs=os.cpu_count(),
        random_state=seed,
        **settings,
    )
    model.fit(inner.X, inner.y, eval_set=[(inner.X_test, inner.y_test)], verbose=False)
    return model, model.best_score


def fit_catboost(inner, seed, until=np.inf, **settings):
    """Fit CatBoost as `fit_lightgbm` fits LightGBM; frames have strings instead of categories."""
    import catboost

    class StopInTime:
        def after_iteration(self, info):
            return perf_counter() <= until

    kind = catboost.CatBoostRegressor if is_regression(inner.y) else catboost.CatBoostClassifier
    names = list(inner.X.select_dtypes(exclude="number").columns) if hasattr(inner.X, "columns") else []
    model = kind(
        silent=True,
        allow_writing_files=False,
        thread_count=os.cpu_count(),
        random_seed=seed,
        cat_features=names,
        early_stopping_rounds=PATIENCE,
        **settings,
    )
    held = catboost.Pool(inner.X_test, inner.y_test, cat_features=names, weight=inner.weights_test)
    model.fit(inner.X, inner.y, sample_weight=inner.weights, eval_set=held, callbacks=[StopInTime()])
    return model, next(iter(model.best_score_["validation"].values()))


def _log(rng, low, high):
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _log_whole(rng, low, high):
    return int(_log(rng, low, high + 1))


def _draw_lightgbm(rng):
    return {
        "learning_rate": _log(rng, 0.005, 0.1),
        "colsample_bytree": rng.uniform(0.4, 1),
        "subsample": rng.uniform(0.7, 1),
        "subsample_freq": 1,
        "num_leaves": _log_whole(rng, 2, 200),
        "min_child_samples": _log_whole(rng, 1, 64),
        "extra_trees": bool(rng.integers(2)),
        "min_data_per_group": _log_whole(rng, 2, 100),
        "cat_l2": _log(rng, 0.005, 2),
        "cat_smooth": _log(rng, 0.001, 100),
        "max_cat_to_onehot": _log_whole(rng, 8, 100),
        "reg_alpha": rng.uniform(1e-4, 1),
        "reg_lambda": rng.uniform(1e-4, 2),
    }


def _draw_xgboost(rng):
    return {
        "learning_rate": _log(rng, 0.005, 0.1),
        "max_depth": _log_whole(rng, 4, 10),
        "min_child_weight": _log(rng, 0.001, 5),
        "subsample": rng.uniform(0.6, 1),
        "colsample_bylevel": rng.uniform(0.6, 1),
        "colsample_bynode": rng.uniform(0.6, 1),
        "reg_alpha": rng.uniform(1e-4, 5),
        "reg_lambda": rng.uniform(1e-4, 5),
        "grow_policy": ("depthwise", "lossguide")[rng.integers(2)],
        "max_cat_to_onehot": _log_whole(rng, 8, 100),
        "max_leaves": _log_whole(rng, 8, 1024),
    }


def _draw_catboost(rng):
    return {
        "learning_rate": _log(rng, 0.005, 0.1),
        "bootstrap_type": "Bernoulli",
        "subsample": rng.uniform(0.7, 1),
        "grow_policy": ("SymmetricTree", "Depthwise")[rng.integers(2)],
        "depth": int(rng.integers(4, 9)),
        "colsample_bylevel": rng.uniform(0.85, 1),
        "l2_leaf_reg": _log(rng, 1e-4, 5),
        "leaf_estimation_iterations": _log_whole(rng, 1, 20),
        "one_hot_max_size": _log_whole(rng, 8, 100),
        "model_size_reg": _log(rng, 0.1, 1.5),
        "max_ctr_complexity": int(rng.integers(2, 6)),
        "boosting_type": "Plain",
        "max_bin": 254,
    }


LIBRARIES = {
    "lightgbm": (fit_lightgbm, _draw_lightgbm),
    "xgboost": (fit_xgboost, _draw_xgboost),
    "catboost": (fit_catboost, _draw_catboost),
}


def stopped(draw, seed):
    """One trial: the defaults at rate .05."""
    return [{}]


def tuned(draw, seed):
    """The defaults, then 25 draws of the published space."""
    rng = np.random.default_rng(seed)
    return [{}, *(draw(rng) for _ in range(N_DRAWS))]


def slower(draw, seed):
    """The defaults, then learning rates that are halved again and again."""
    return ({"learning_rate": RATE / 2**k} for k in count())


@dataclass
class Boosting:
    """The best of several trials on the same validation rows, without a refit to all rows.

    Parameters
    ----------
    library : str
        One of `LIBRARIES`.
    trials : callable
        `stopped`, `tuned` or `slower`.
    seed : int
    seconds : float
        Afterwards the current trial ends, and counts with its trees so far.
    first_is_whole : bool
        If True, the first trial can take longer.

    Attributes
    ----------
    model_ : estimator
    n_trials_ : int
    """

    library: str
    trials: object
    seed: int
    seconds: float = LONGEST
    first_is_whole: bool = False

    def fit(self, X, y):
        start = perf_counter()
        end = start + self.seconds
        fit, draw = LIBRARIES[self.library]
        inner = held_out(self._prepared(X), y, self.seed)
        self.n_trials_, least = 0, np.inf
        for settings in self.trials(draw, self.seed):
            if self.n_trials_ and perf_counter() >= end:
                break
            settings = {"learning_rate": RATE, **settings}
            n_trees = round(MOST_TREES * max(1, RATE / settings["learning_rate"]))
            until = start + max(LONGEST, self.seconds) if self.first_is_whole and not self.n_trials_ else end
            model, loss = fit(inner, self.seed, until, n_estimators=n_trees, **settings)
            self.n_trials_ += 1
            if loss < least or self.n_trials_ == 1:
                self.model_, least = model, loss
        return self

    def predict(self, X):
        return self.model_.predict(self._prepared(X))

    def predict_proba(self, X):
        return self.model_.predict_proba(self._prepared(X))

    def _prepared(self, X):
        return categories_as_text(X) if self.library == "catboost" else X
