"""Kernel models without random features, and linear ones; validation rows select their parameters."""

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

from perf.choice import mean_exponent

GRID_ROWS = 2_000
SVM_ROWS, KERNEL_RIDGE_ROWS = 20_000, 10_000
N_LANDMARKS = 1_000
_EXPONENTS = np.array([0.03, 0.1, 0.3, 1.0, 3.0])
_PENALTIES = np.array([0.001, 0.01, 0.1, 1.0])
_MARGINS = np.array([1.0, 10.0, 100.0])


def models(scaler, X, regression):
    """Yield name, model, candidate parameters and maximum training rows (None is all) of each model.

    X are scaled training rows.
    """
    gammas = _EXPONENTS / mean_exponent(X, 2)
    scaler = "passthrough" if scaler == "passthrough" else clone(scaler)

    def of(kind, **grid):
        kind = TransformedTargetRegressor(kind, transformer=StandardScaler()) if regression else kind
        prefix = f"{type(kind).__name__.lower()}__" + ("regressor__" if regression else "")
        return make_pipeline(scaler, kind), {prefix + name: values for name, values in grid.items()}

    def nystroem(kind):
        features = Nystroem(n_components=min(N_LANDMARKS, X.shape[0] // 2), random_state=0)
        pipeline, grid = of(kind, alpha=10 * _PENALTIES)
        pipeline.steps.insert(1, ("nystroem", features))
        return pipeline, {**grid, "nystroem__gamma": gammas}

    if regression:
        yield "SVR", *of(SVR(cache_size=500), gamma=gammas, C=_MARGINS), SVM_ROWS
        yield "KernelRidge", *of(KernelRidge(kernel="rbf"), gamma=gammas, alpha=_PENALTIES), KERNEL_RIDGE_ROWS
        yield "Nystroem + ridge", *nystroem(Ridge()), None
    else:
        yield "SVC", *of(SVC(cache_size=500), gamma=gammas, C=_MARGINS), SVM_ROWS
        yield "LinearSVC", *of(LinearSVC(dual="auto", random_state=0), C=_MARGINS / 10), None
        yield "Nystroem + ridge", *nystroem(RidgeClassifier()), None


def chosen(model, grid, X, y):
    """Return the model with the best parameters on validation rows."""
    held_out = ShuffleSplit(1, test_size=0.25, random_state=0)
    search = GridSearchCV(model, grid, cv=held_out, refit=False).fit(X[:GRID_ROWS], y[:GRID_ROWS])
    return clone(model).set_params(**search.best_params_)
