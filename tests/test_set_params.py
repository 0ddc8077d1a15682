"""Predictions depend on fitted attributes only: parameters set after `fit` have no effect before the next fit."""

import pickle

import numpy as np
import pytest
from hard import easy
from kernel_models import with_options
from scipy import sparse

from binfeat import (
    CGRidge,
    CGRidgeClassifier,
    KernelMachineClassifier,
    KernelMachineRegressor,
    LabelSpreading,
    RandomBinning,
    RandomFeatureUnion,
    RandomFourier,
    SpectralClustering,
    SpectralEmbedding,
    kernels,
)

ROWS = np.random.default_rng(0).normal(size=(60, 3))
NUMBERS, LABELS = ROWS[:, 0] + 0.3 * np.sin(40 * ROWS[:, 1]), (ROWS[:, 0] > 0).astype(int)
NEW = np.random.default_rng(1).normal(size=(3, 3))
SHORT = {"gamma": "scale", "alpha": 0.1, "random_state": 0}
GRIDS = {"gamma": 0.5, "n_grids": 8, "random_state": 0}

FITTED = {
    "exact": lambda: KernelMachineRegressor(**SHORT).fit(ROWS, NUMBERS),
    "local": lambda: KernelMachineRegressor(features="local", **with_options(SHORT, cell_rows=20)).fit(ROWS, NUMBERS),
    "features": lambda: KernelMachineRegressor(
        features="binning", **with_options(SHORT, n_grids=16, n_posterior_samples=2)
    ).fit(ROWS, NUMBERS),
    "poisson": lambda: KernelMachineRegressor(loss="poisson", **SHORT).fit(ROWS, np.exp(NUMBERS)),
    "classifier": lambda: KernelMachineClassifier(**SHORT).fit(ROWS, LABELS),
    "classifier of logistic loss": lambda: KernelMachineClassifier(loss="log", **SHORT).fit(ROWS, LABELS),
    "ridge": lambda: CGRidge(n_posterior_samples=2, random_state=0).fit(ROWS, NUMBERS),
    "ridge of labels": lambda: CGRidgeClassifier().fit(ROWS, LABELS),
    "binning": lambda: RandomBinning(**GRIDS).fit(ROWS),
    "hashed binning": lambda: RandomBinning(n_features=32, **GRIDS).fit(ROWS),
    "fourier": lambda: RandomFourier(n_components=8, random_state=0).fit(ROWS),
    "fastfood": lambda: RandomFourier(n_components=8, sampler="fastfood", phase="offset", random_state=0).fit(ROWS),
    "union": lambda: RandomFeatureUnion([("a", RandomBinning(**GRIDS))]).fit(ROWS),
    "embedding": lambda: SpectralEmbedding(gamma=0.3, random_state=0).fit(ROWS),
    "clustering": lambda: SpectralClustering(3, gamma=0.3, random_state=0).fit(ROWS),
    "spreading": lambda: LabelSpreading(gamma=0.3, random_state=0).fit(ROWS, LABELS),
}
SLOW = {"local", "poisson", "features", "classifier of logistic loss"}
VALUES = {
    "kernel": [kernels.Matern(2.5), "auto"],
    "gamma": [2.0, "learn"],
    "alpha": [7.0, "auto"],
    "n_grids": [3],
    "solver_params": [{"n_grids": 3}, {"n_posterior_samples": 1}, None],
    "loss": ["huber", "poisson", "log", "squared_hinge"],
    "target_transform": [None],
    "n_posterior_samples": [None, 1],
    "phase": ["offset", "pair"],
    "rotation": [np.eye(3)],
    "n_features": [64, None],
    "weights": [[2.0]],
    "transformers": [[("z", RandomBinning())]],
    "categorical_features": [[0]],
    "random_state": [99],
    "fit_intercept": [False],
}
ANY_VALUE = [1, "anything"]  # for all other parameters
HOW_TO_PREDICT = "n_jobs", "verbose", "on_unseen", "output", "sparse_output", "probability"  # and the form of results
METHODS = {
    "predict": lambda fitted: fitted.predict(NEW),
    "predict_proba": lambda fitted: fitted.predict_proba(NEW),
    "decision_function": lambda fitted: fitted.decision_function(NEW),
    "predict_interval": lambda fitted: fitted.predict_interval(NEW, method="deviations"),
    "predict_quantiles": lambda fitted: fitted.predict_quantiles(NEW),
    "sample_y": lambda fitted: fitted.sample_y(NEW),
    "shapley_values": lambda fitted: fitted.shapley_values(NEW).values,
    "feature_importances_": lambda fitted: fitted.feature_importances_,
    "transform": lambda fitted: fitted.transform(NEW),
    "score": lambda fitted: fitted.score(ROWS, LABELS),
    "apply": lambda fitted: fitted.apply(NEW),
    "compact": lambda fitted: METHODS["predict"](fitted.compact()),
}


def outcomes(fitted):
    """Return the results of all methods as bytes, or their error messages."""
    found = {}
    for name, call in METHODS.items():
        if hasattr(fitted, name):
            try:
                out = call(fitted)
            except ValueError as error:
                found[name] = str(error)
            else:
                found[name] = np.asarray(out.toarray() if sparse.issparse(out) else out).tobytes()
    if isinstance(fitted, KernelMachineRegressor | CGRidge) and "quantile" not in found:
        try:
            found["std"] = fitted.predict(NEW, return_std=True)[1].tobytes()
        except ValueError as error:
            found["std"] = str(error)
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", easy(FITTED, *(name for name in FITTED if name not in SLOW)))
def test_parameters_set_after_fit_change_no_prediction(name):
    fitted = FITTED[name]()
    expected, kept = outcomes(pickle.loads(pickle.dumps(fitted))), pickle.dumps(fitted)
    for parameter in fitted.get_params(deep=False).keys() - set(HOW_TO_PREDICT):
        for value in VALUES.get(parameter, ANY_VALUE):
            other = pickle.loads(kept).set_params(**{parameter: value})
            assert outcomes(other) == expected, (parameter, value)


def test_files_without_choices_follow_parameters():
    """Models in files of version 0.2.0."""
    model = FITTED["exact"]()
    expected = model.predict_interval(NEW)
    del model._n_chosen
    np.testing.assert_array_equal(model.predict_interval(NEW), expected)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("_n_chosen", -1, "_n_chosen should be an integer"),
        ("_n_chosen", 10**9, "_n_chosen should be an integer"),
        ("_n_chosen", True, "_n_chosen should be an integer"),
    ],
)
def test_damaged_choices_are_refused(name, value, words):
    model = FITTED["exact"]()
    setattr(model, name, value)
    with pytest.raises(ValueError, match=words):
        pickle.loads(pickle.dumps(model))
