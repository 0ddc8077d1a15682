"""Mixed models of panels: categories with many levels have random intercepts."""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

_LEAST_LEVELS = 20
_N_TREES, _DEPTH, _RATE = 150, 6, 0.05  # more trees overfit synthetic panels


def has_levels(X):
    """Return True if some category of a table has enough levels for random intercepts."""
    return hasattr(X, "columns") and any(_has_many_levels(X[name]) for name in X)


def _has_many_levels(column):
    return column.dtype == "category" and column.nunique() >= _LEAST_LEVELS


class _MixedModel(RegressorMixin, BaseEstimator):
    """Base of mixed models: columns with random intercepts, and the other columns as numbers."""

    def _columns(self, X):
        has_effects = [name for name in X if _has_many_levels(X[name])]
        return has_effects, [name for name in X if name not in has_effects]


class GPBoost(_MixedModel):
    """Boosted trees of the other columns and random intercepts, by the package GPBoost (Sigrist 2022)."""

    def fit(self, X, y):
        import gpboost

        self._effects, self._others = self._columns(X)
        intercepts = gpboost.GPModel(group_data=self._levels(X), likelihood="gaussian")
        rows = gpboost.Dataset(self._numbers(X), y)
        settings = {"learning_rate": _RATE, "max_depth": _DEPTH, "verbose": -1}
        self._model = gpboost.train(settings, rows, gp_model=intercepts, num_boost_round=_N_TREES)
        return self

    def predict(self, X):
        return self._model.predict(data=self._numbers(X), group_data_pred=self._levels(X))["response_mean"]

    def _levels(self, X):
        return X[self._effects].astype(str).to_numpy()

    def _numbers(self, X):
        return np.column_stack([X[name].cat.codes if X[name].dtype == "category" else X[name] for name in self._others])


class MixedLM(_MixedModel):
    """Linear effects of the other columns, and random intercepts of one category, by statsmodels."""

    def suits(self, X):
        return len(self._columns(X)[0]) == 1

    def fit(self, X, y):
        from statsmodels.regression.mixed_linear_model import MixedLM as LinearModel

        (self._effect,), self._others = self._columns(X)
        fitted = LinearModel(y, self._numbers(X), groups=X[self._effect].astype(str).to_numpy()).fit()
        self._slopes = np.asarray(fitted.fe_params)
        self._intercepts = {level: float(own.iloc[0]) for level, own in fitted.random_effects.items()}
        return self

    def predict(self, X):
        intercepts = X[self._effect].astype(str).map(self._intercepts).fillna(0.0)
        return self._numbers(X) @ self._slopes + intercepts.to_numpy()

    def _numbers(self, X):
        import pandas as pd

        numbers = pd.get_dummies(X[self._others], drop_first=True, dtype=np.float64)
        return np.column_stack([np.ones(len(X)), numbers])
