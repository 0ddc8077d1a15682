"""Stored results for fixed seeds: the same on other computers and processors, and in later versions.

test_binning.py compares bins bitwise. After a deliberate change of a map or a model, write the file again:
``python tests/test_golden.py``.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from kernel_models import with_options

import binfeat
from binfeat import kernels

FILE = Path(__file__).with_name("golden.json")
X = np.arange(1200, dtype=np.float64).reshape(400, 3) * [0.01, 0.017, -0.013] % 1.7
Y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
LABELS = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))
ROWS = slice(0, 400, 57)
FIXED = {"gamma": [2.0, 1.0, 0.5], "alpha": 0.01, "random_state": 0}


def fourier(**parameters):
    return binfeat.RandomFourier(n_components=6, gamma=0.7, random_state=0, **parameters).fit(X).transform(X[ROWS])


def ridge(Estimator, y, **parameters):
    Z = binfeat.RandomBinning(gamma=1.0, n_grids=20, random_state=0, output="codes").fit_transform(X)
    return Estimator(alpha=0.1, tol=1e-12, max_iter=2000, **parameters).fit(Z, y)


def model(Estimator, y, **parameters):
    return Estimator(**{**with_options(FIXED, n_grids=40), **parameters}).fit(X, y)


REGRESSOR, CLASSIFIER = binfeat.KernelMachineRegressor, binfeat.KernelMachineClassifier
MADE = {
    "fourier": lambda: fourier(),
    "fourier, offset": lambda: fourier(phase="offset"),
    "fourier, fastfood": lambda: fourier(sampler="fastfood"),
    "fourier, orthogonal": lambda: fourier(sampler="orthogonal"),
    "fourier, qmc": lambda: fourier(sampler="qmc"),
    "fourier, laplacian": lambda: fourier(kernel="laplacian", sampler="iid"),
    "fourier, Matern": lambda: fourier(kernel=kernels.Matern(1.5)),
    "gamma by scale": lambda: binfeat.RandomBinning(random_state=0).fit(X).gamma_,
    "ridge": lambda: ridge(binfeat.CGRidge, Y).coef_[ROWS],
    "ridge, no intercept": lambda: ridge(binfeat.CGRidge, Y, fit_intercept=False).coef_[ROWS],
    "ridge, path": lambda: ridge(binfeat.CGRidge, Y, alphas=[0.01, 0.1, 1.0], random_state=0).path_scores_,
    "ridge, hinge": lambda: ridge(binfeat.CGRidgeClassifier, LABELS, loss="squared_hinge").coef_[:, ROWS],
    "model, bins": lambda: model(REGRESSOR, Y, features="binning").predict(X[ROWS]),
    "model, fourier": lambda: model(REGRESSOR, Y, features="fourier").predict(X[ROWS]),
    "model, classes": lambda: model(CLASSIFIER, LABELS, features="binning").predict_proba(X[ROWS]),
    "model, exact": lambda: model(REGRESSOR, Y, features="exact").predict(X[ROWS]),
    "learned length scales": lambda: binfeat.learn_gamma(X, Y, max_steps=10, random_state=0).relevances,
}

# Sums in float32 differ between processors; a calibration is minimized to a tolerance.
LOOSE = {"model, exact": 1e-3, "learned length scales": 0.02, "model, classes": 1e-3}


@pytest.mark.parametrize("name", MADE)
def test_golden_numbers(name):
    found, expected = np.asarray(MADE[name]()).ravel(), json.loads(FILE.read_text())[name]
    np.testing.assert_allclose(found, expected, rtol=LOOSE.get(name, 1e-5), atol=LOOSE.get(name, 1e-7))


if __name__ == "__main__":
    found = {name: np.asarray(make()).ravel().tolist() for name, make in MADE.items()}
    FILE.write_text(json.dumps(found, indent=1) + "\n")
