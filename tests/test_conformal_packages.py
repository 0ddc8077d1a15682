"""MAPIE, crepes and scikit-learn's calibration work with kernel and ridge models."""

import numpy as np
import pytest
from kernel_models import FIXED, with_options
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay, calibration_curve
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

from binfeat import CGRidge, CGRidgeClassifier, KernelMachineClassifier, KernelMachineRegressor, RandomBinning

N_TRAIN, N_CALIBRATION = 500, 400
BINNING = RandomBinning(gamma=0.5, n_grids=40, output="codes", random_state=0)
REGRESSORS = [
    KernelMachineRegressor(features="exact", kernel="laplacian", gamma=0.5, alpha=0.3, random_state=0),
    KernelMachineRegressor(**with_options(FIXED, n_posterior_samples=16)),
    make_pipeline(BINNING, CGRidge(alpha=0.3, n_posterior_samples=16, random_state=0)),
]
NAMES = ["exact", "features", "ridge"]


@pytest.fixture(scope="module")
def parts():
    """Return training, calibration and test rows; noise increases along the second input."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(2900, 2))
    y = np.sin(2 * X[:, 0]) + (0.1 + 0.3 * np.abs(X[:, 1])) * rng.normal(size=len(X))
    ends = [N_TRAIN, N_TRAIN + N_CALIBRATION]
    return list(zip(np.split(X, ends), np.split(y, ends)))


def assert_holds(intervals, y, coverage=0.9):
    low, high = intervals.T
    spread = np.sqrt(coverage * (1 - coverage) * (1 / len(y) + 1 / N_CALIBRATION))
    assert abs(np.mean((low <= y) & (y <= high)) - coverage) < 3 * spread


@pytest.mark.parametrize("regressor", REGRESSORS, ids=NAMES)
def test_mapie(parts, regressor):
    mapie = pytest.importorskip("mapie.regression")
    train, calibration, (X, y) = parts
    model = regressor.fit(*train)
    conformal = mapie.SplitConformalRegressor(model, confidence_level=0.9, prefit=True).conformalize(*calibration)
    predicted, intervals = conformal.predict_interval(X)
    np.testing.assert_allclose(predicted, model.predict(X))
    assert_holds(intervals[:, :, 0], y)


@pytest.mark.parametrize("regressor", REGRESSORS, ids=NAMES)
def test_crepes_takes_standard_deviations_as_difficulty(parts, regressor):
    crepes = pytest.importorskip("crepes")
    train, (X_cal, y_cal), (X, y) = parts
    model = regressor.fit(*train)
    predicted, std = model.predict(X_cal, return_std=True)
    conformal = crepes.ConformalRegressor().fit(y_cal - predicted, sigmas=std)
    predicted, std = model.predict(X, return_std=True)
    intervals = conformal.predict_int(predicted, sigmas=std, confidence=0.9)
    assert_holds(intervals, y)
    assert np.corrcoef(np.ptp(intervals, axis=1), std)[0, 1] > 0.99


def test_crepes_wraps_a_model(parts):
    crepes = pytest.importorskip("crepes")
    train, calibration, (X, y) = parts
    wrapped = crepes.WrapRegressor(REGRESSORS[0])
    wrapped.fit(*train)
    wrapped.calibrate(*calibration)
    assert_holds(wrapped.predict_int(X, confidence=0.9), y)


@pytest.mark.parametrize(
    "classifier",
    [
        KernelMachineClassifier(features="exact", kernel="laplacian", gamma=0.5, random_state=0),
        make_pipeline(BINNING, CGRidgeClassifier()),
    ],
    ids=["model", "ridge"],
)
def test_calibration_of_scikit_learn(parts, classifier):
    (X_train, y_train), (X_cal, y_cal), (X, y) = parts
    model = classifier.fit(X_train, y_train > 0.5)
    prefit = CalibratedClassifierCV(FrozenEstimator(model)).fit(X_cal, y_cal > 0.5)
    folds = CalibratedClassifierCV(model, cv=2, ensemble=False).fit(X_train, y_train > 0.5)
    base = log_loss(y > 0.5, np.full(len(y), np.mean(y > 0.5)))
    for each in (prefit, folds):
        p = each.predict_proba(X)[:, 1]
        assert log_loss(y > 0.5, p) < 0.8 * base
        found, said = calibration_curve(y > 0.5, p, n_bins=5, strategy="quantile")
        assert np.abs(found - said).max() < 0.15
    if hasattr(model, "predict_proba"):
        pytest.importorskip("matplotlib").use("Agg")
        assert CalibrationDisplay.from_estimator(model, X, y > 0.5).prob_pred.size
