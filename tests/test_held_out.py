"""Groups of rows: one label per row, or an error that names `groups`."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from binfeat import CGRidge, KernelMachineRegressor

pd = pytest.importorskip("pandas")
ESTIMATORS = [KernelMachineRegressor(gamma="scale", alpha=0.1), CGRidge(alphas=[0.1, 1.0]), CGRidge(alphas=[1.0], cv=2)]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([(1, 2)] * 20 + [(3, 4)] * 20, r"shape \(40,\); got shape \(40, 2\). Join several values"),
        ([(1,), (2, 3)] * 20, "got sequences of several lengths"),
        ([1, 2, 3], r"shape \(40,\); got shape \(3,\)"),
        (3, r"got shape \(\)"),
        ([1.0] * 39 + [np.nan], "groups must not contain missing values, but 1 of 40 rows"),
        (np.array(["a"] * 39 + [pd.NA], dtype=object), "groups must not contain missing values, but 1 of 40 rows"),
        (["a"] * 39 + [None], "groups must not contain missing values, but 1 of 40 rows"),
    ],
)
def test_groups_that_do_not_name_every_row(rng, estimator, groups, words):
    X = rng.normal(size=(40, 2))
    with pytest.raises(ValueError, match=words):
        estimator.fit(X, X[:, 0], groups=groups)


@pytest.mark.parametrize("make", [KFold(3).split, lambda X: iter([(range(30), range(30, 40))])])
def test_kernel_models_refuse_generators_of_splits(rng, make):
    X = rng.normal(size=(40, 2))
    model = KernelMachineRegressor(gamma="scale", alpha=0.1, cv=make(X), random_state=0)
    with pytest.raises(TypeError, match=r"cv must not be a generator, which can be read only once. Pass list\(cv\)"):
        model.fit(X, X[:, 0])
    model.set_params(cv=list(make(X)))
    first, second = (model.fit(X, X[:, 0]).held_out_error_ for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", ["max_seconds", "alpha", "gamma"])
def test_integers_beyond_floats_are_refused(rng, name):
    X = rng.normal(size=(40, 2))
    with pytest.raises((ValueError, MemoryError), match=rf"{name} must be finite|an integer of 1,329 bits|binning"):
        KernelMachineRegressor(**{"gamma": "scale", "alpha": 0.1, name: 10**400}).fit(X, X[:, 0])


@pytest.mark.parametrize("name", ["X", "y", "sample_weight"])
def test_values_beyond_floats_are_refused(rng, name):
    X = rng.normal(size=(40, 2))
    given = {"X": X, "y": X[:, 0]} | {name: [[10**400, 1]] * 40 if name == "X" else [10**400] * 40}
    for estimator in ESTIMATORS:
        words = f"{name} (must contain|must be) numbers|Input {name} contains|of X must contain"
        with pytest.raises((TypeError, ValueError), match=words):
            estimator.fit(**given)
