"""Files of ridge models on hashed columns contain only columns that occur, and are exact."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits

from binfeat import CGRidge, CGRidgeClassifier, transform

sio = pytest.importorskip("skops.io")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=4, return_X_y=True)
    return transform(X[:400] / 16, gamma=0.1, n_grids=16), y[:400]


@pytest.fixture(scope="module", params=[CGRidge, CGRidgeClassifier], ids=lambda Model: Model.__name__)
def model(digits, request):
    return request.param(alpha=0.1).fit(*digits)


@pytest.mark.parametrize("way", ["pickle", "deepcopy", "skops"])
def test_files_have_the_columns_that_occur(digits, model, way):
    Z, Model = digits[0], type(model)
    data = sio.dumps(model) if way == "skops" else pickle.dumps(model)
    n_used = np.unique(Z.indices).size
    n_targets = 1 if Model is CGRidge else 4
    assert n_used < 0.1 * Z.shape[1]
    assert len(data) < 1.1 * n_used * (n_targets + 1) * 8 + 50_000
    if way == "skops":
        other = sio.loads(data, trusted=[f"binfeat.{Model.__name__}"])
    else:
        other = pickle.loads(data) if way == "pickle" else copy.deepcopy(model)
    assert other.coef_.tobytes() == model.coef_.tobytes()
    assert other.coef_.shape == model.coef_.shape
    assert other.coef_.flags.c_contiguous
    assert np.asarray(other._linear(Z)).tobytes() == np.asarray(model._linear(Z)).tobytes()
    assert model.coef_.shape[-1] == Z.shape[1]  # the model itself does not change
    assert set(vars(other)) - {"_derived"} == set(vars(model)) - {"_derived"}


@pytest.mark.hard
def test_warm_starts_and_later_rows_go_on_from_a_file(digits):
    Z, y = digits
    model = CGRidge(alpha=0.1).partial_fit(Z[:200], y[:200])
    other = pickle.loads(pickle.dumps(model))
    for own in (model, other):
        own.partial_fit(Z[200:], y[200:])
    assert other.coef_.tobytes() == model.coef_.tobytes()


def test_coefficients_of_all_columns_stay_as_they_are(rng):
    model = CGRidge(alpha=0.1).fit(rng.normal(size=(50, 8)), rng.normal(size=(50, 2)))
    assert "_coef_columns" not in model.__getstate__()
    assert "_coef_columns" not in CGRidge().__getstate__()


def test_negative_zeros_are_kept():
    model = CGRidge(alpha=0.1).fit(np.eye(2, 100), np.eye(2))
    model.coef_ = np.zeros((2, 100))
    model.coef_[1, 3], model.coef_[0, 5] = -0.0, 1.0
    np.testing.assert_array_equal(model.__getstate__()["_coef_columns"], [3, 5])
    assert pickle.loads(pickle.dumps(model)).coef_.tobytes() == model.coef_.tobytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"_coef_columns": np.array([1, 10_000])}, "should increase from 0 to 99 at most"),
        ({"_coef_columns": np.array([-1, 4])}, "should increase from 0 to 99 at most"),
        ({"_coef_columns": np.array([4, 4])}, "should increase from 0 to 99 at most"),
        ({"_coef_columns": np.array([4])}, "coef_ should be of shape"),
        ({"_coef_columns": np.array([0.5, 4])}, "columns should be of shape"),
        ({"coef_": np.ones((1, 1, 2))}, "coef_ should be an array of 2 dimensions"),
    ],
)
def test_columns_that_do_not_fit_are_refused(change, message):
    model = CGRidge(alpha=0.1).fit(np.eye(2, 100), [1.0, 2.0])
    model.coef_ = np.zeros(100)
    model.coef_[[1, 60]] = 1.0, 2.0
    state = model.__getstate__()
    assert state["_coef_columns"].tolist() == [1, 60]
    with pytest.raises(ValueError, match=f"This CGRidge is damaged: .*{message}"):
        CGRidge().__setstate__(state | change)
