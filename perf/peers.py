"""Fits of kernel models and of the models that they are compared with."""

import os
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier

from perf.measure import Times
from perf.record import Row, failed

QUICK = {"max_seconds": 0.5, "solver_params": {"max_grids": 32}}  # for a kernel model in a quick run


@dataclass(frozen=True)
class Trial:
    """A model fitted once: seconds of the fit, and predictions for the test rows."""

    model: object
    seconds: float
    predictions: np.ndarray
    split: object

    @property
    def error(self):
        """Wrong labels, or relative RMS error, in percent."""
        if is_classifier(self.model):
            return 100 * float(np.mean(self.predictions != self.split.y_test))
        return relative_rms(self.predictions, self.split.y_test)


def trial(model, split):
    """Fit a model to the training rows and predict the test rows."""
    start = perf_counter()
    model.fit(split.X, split.y)
    seconds = perf_counter() - start
    return Trial(model, seconds, model.predict(split.X_test), split)


def contest(makers, splits):
    """Fit each model to each split; a model that fails is not fitted to later splits.

    Parameters
    ----------
    makers : dict of str to callable
        Functions that return a model, or None if its package is not installed.
    splits : list of Split
        The same split can be repeated for several timings.

    Returns
    -------
    trials : dict of str to list of Trial
        Trials of each model on the splits; a model that is not installed or failed has no entry.
    rows : list of Row
        Reasons for models without an entry.
    """
    trials, rows = {name: [] for name in makers}, []
    for split in splits:
        for name in list(trials):
            try:
                model = makers[name]()
                if model is not None:
                    trials[name].append(trial(model, split))
                    continue
                rows.append(skipped(name))
            except Exception as error:
                rows.append(failed(name, error))
            del trials[name]
    return trials, rows


def mean_error(trials):
    return float(np.mean([done.error for done in trials]))


def fit_times(trials):
    return Times(tuple(done.seconds for done in trials))


def relative_rms(predictions, y):
    """Return the norm of the errors divided by the norm of the true targets, in percent: the paper's measure."""
    return 100 * float(np.linalg.norm(predictions - y) / np.linalg.norm(y))


def lightgbm(n_trees, n_leaves, rate=0.1, regression=False):
    """Return a LightGBM model on all cores, or None if it is not installed."""
    try:
        from lightgbm import LGBMClassifier, LGBMRegressor
    except ImportError:
        return None
    kind = LGBMRegressor if regression else LGBMClassifier
    options = {"n_jobs": os.cpu_count(), "random_state": 0, "verbose": -1}
    return kind(n_estimators=n_trees, num_leaves=n_leaves, learning_rate=rate, **options)


class _XRFM(BaseEstimator):
    """xRFM with its defaults, and a tenth of the training rows for validation."""

    def __init__(self, max_leaf_size=10_000, random_state=0):
        self.max_leaf_size = max_leaf_size
        self.random_state = random_state

    def _fit(self, X, y):
        from xrfm import xRFM

        n, X = len(y) // 10, np.asarray(X, np.float32)
        options = {"device": "cpu", "random_state": self.random_state, "verbose": False}
        self.model_ = xRFM(max_leaf_size=self.max_leaf_size, **options)
        self.model_.fit(X[n:], y[n:], X[:n], y[:n])
        return self

    def _predict(self, X):
        return np.asarray(self.model_.predict(np.asarray(X, np.float32))).ravel()


class XRFMClassifier(ClassifierMixin, _XRFM):
    """xRFM for classes."""

    def fit(self, X, y):
        self.classes_, labels = np.unique(y, return_inverse=True)
        return self._fit(X, labels.astype(np.int64))

    def predict(self, X):
        return self.classes_[self._predict(X)]


class XRFMRegressor(RegressorMixin, _XRFM):
    """xRFM for standardized targets, because it has no intercept."""

    def fit(self, X, y):
        self.mean_, self.std_ = y.mean(), y.std()
        return self._fit(X, ((y - self.mean_) / self.std_).astype(np.float32))

    def predict(self, X):
        return self.mean_ + self.std_ * self._predict(X)


def skipped(name):
    """Return the row of a peer that is not installed."""
    return Row(f"{name}: not installed, skipped", None)
