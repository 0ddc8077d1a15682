"""Stored results for fixed seeds: the same on other computers and processors, and in later versions.

test_binning.py compares bins bitwise. After a deliberate change of a map or a model, write the file again:
``python tests/test_golden.py``.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from machines import with_options

import binfeat
from binfeat import kernels

FILE = Path(__file__).with_name("golden.json")
X = np.arange(1200, dtype=np.float64).reshape(400, 3) * [0.01, 0.017, -0.013] % 1.7
Y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
LABELS = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))
ROWS = slice(0, 400, 57)
FIXED = {"gamma": [2.0, 1.0, 0.5], "alpha": 0.01, "random_state": 0}


def waves(**parameters):
    return binfeat.RandomFourier(n_components=6, gamma=0.7, random_state=0, **parameters).fit(X).transform(X[ROWS])


def ridge(Machine, y, **parameters):
    Z = binfeat.RandomBinning(gamma=1.0, n_grids=20, random_state=0, output="codes").fit_transform(X)
    return Machine(alpha=0.1, tol=1e-12, max_iter=2000, **parameters).fit(Z, y)


def machine(Machine, y, **parameters):
    return Machine(**{**with_options(FIXED, n_grids=40), **parameters}).fit(X, y)


REGRESSOR, CLASSIFIER = binfeat.KernelMachineRegressor, binfeat.KernelMachineClassifier
MADE = {
    "waves": lambda: waves(),
    "waves, offset": lambda: waves(phase="offset"),
    "waves, fastfood": lambda: waves(sampler="fastfood"),
    "waves, orthogonal": lambda: waves(sampler="orthogonal"),
    "waves, qmc": lambda: waves(sampler="qmc"),
    "waves, laplacian": lambda: waves(kernel="laplacian", sampler="iid"),
    "waves, Matern": lambda: waves(kernel=kernels.Matern(1.5)),
    "gamma by scale": lambda: binfeat.RandomBinning(random_state=0).fit(X).gamma_,
    "ridge": lambda: ridge(binfeat.CGRidge, Y).coef_[ROWS],
    "ridge, no intercept": lambda: ridge(binfeat.CGRidge, Y, fit_intercept=False).coef_[ROWS],
    "ridge, path": lambda: ridge(binfeat.CGRidge, Y, alphas=[0.01, 0.1, 1.0], random_state=0).path_scores_,
    "ridge, hinge": lambda: ridge(binfeat.CGRidgeClassifier, LABELS, loss="squared_hinge").coef_[:, ROWS],
    "machine, bins": lambda: machine(REGRESSOR, Y, features="binning").predict(X[ROWS]),
    "machine, waves": lambda: machine(REGRESSOR, Y, features="fourier").predict(X[ROWS]),
    "machine, classes": lambda: machine(CLASSIFIER, LABELS, features="binning").predict_proba(X[ROWS]),
    "machine, exact": lambda: machine(REGRESSOR, Y, features="exact").predict(X[ROWS]),
    "learned length scales": lambda: binfeat.learn_gamma(X, Y, max_steps=10, random_state=0).relevances,
}

# Sums in float32 differ between processors; a calibration is minimized to a tolerance.
LOOSE = {"machine, exact": 1e-3, "learned length scales": 0.02, "machine, classes": 1e-3}


@pytest.mark.parametrize("name", MADE)
def test_golden_numbers(name):
    found, expected = np.asarray(MADE[name]()).ravel(), json.loads(FILE.read_text())[name]
    np.testing.assert_allclose(found, expected, rtol=LOOSE.get(name, 1e-5), atol=LOOSE.get(name, 1e-7))


if __name__ == "__main__":
    found = {name: np.asarray(make()).ravel().tolist() for name, make in MADE.items()}
    FILE.write_text(json.dumps(found, indent=1) + "\n")
