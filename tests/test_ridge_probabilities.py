"""`predict_proba` of `CGRidgeClassifier`: calibration on validation rows, consistency with labels, errors."""

import pickle

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from binfeat import CGRidgeClassifier, RandomBinning, blocks

OWN = {"alpha": 0.1, "probability": True, "random_state": 0}


@pytest.fixture(scope="module")
def features():
    """Return training and test codes of digits, with labels."""
    X, y = load_digits(return_X_y=True)
    binning = RandomBinning(gamma=0.01, n_grids=50, output="codes", random_state=0)
    return binning.fit_transform(X[:1200]), y[:1200], binning.transform(X[1200:]), y[1200:]


@pytest.fixture(scope="module")
def noisy():
    """Return rows of two classes; the share of the second is the logistic function of 2 x."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    share = 1 / (1 + np.exp(-2 * X[:, 0]))
    y = np.where(rng.random(3000) < share, "yes", "no")
    Z = RandomBinning(gamma=0.3, n_grids=32, output="codes", random_state=0).fit_transform(X)
    return Z[:2000], y[:2000], Z[2000:], share[2000:]


@pytest.mark.parametrize("loss", ["squared_error", "squared_hinge"])
@pytest.mark.parametrize("cv", [None, 3])
def test_probabilities_of_two_classes_are_shares_of_rows(noisy, loss, cv):
    Z, y, Z_test, share = noisy
    model = CGRidgeClassifier(**OWN | {"alpha": 10.0}, loss=loss, cv=cv).fit(Z, y)
    p = model.predict_proba(Z_test)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    assert p[:, 1].mean() == pytest.approx(share.mean(), abs=0.03)
    assert np.sqrt(np.mean((p[:, 1] - share) ** 2)) < 0.08
    np.testing.assert_array_equal(model.predict(Z_test), model.classes_[p.argmax(axis=1)])
    odds = model.decision_function(Z_test)
    np.testing.assert_allclose(odds, np.log(p[:, 1] / p[:, 0]), rtol=1e-9, atol=1e-9)


def test_log_loss_of_many_classes_is_that_of_logistic_regression_or_less(features):
    Z, y, Z_test, y_test = features
    model = CGRidgeClassifier(**OWN, cv=5).fit(Z, y)
    p = model.predict_proba(Z_test)
    peer = LogisticRegression(C=10.0).fit(Z.tocsr(), y).predict_proba(Z_test.tocsr())
    assert p.shape == (len(y_test), 10)
    assert log_loss(y_test, p) < 1.1 * log_loss(y_test, peer)
    np.testing.assert_array_equal(model.predict(Z_test), p.argmax(axis=1))
    np.testing.assert_array_equal(model.decision_function(Z_test).argmax(axis=1), p.argmax(axis=1))
    assert model.score(Z_test, y_test) > 0.9


def test_coefficients_are_those_without_probabilities(features):
    Z, y, _, _ = features
    model, plain = (CGRidgeClassifier(**OWN | {"probability": flag}).fit(Z, y) for flag in (True, False))
    assert model.coef_.tobytes() == plain.coef_.tobytes()
    assert model.calibration_coef_.shape == (2, 10, 10)
    assert model.calibration_intercept_.shape == (10,)
    assert not hasattr(plain, "calibration_coef_")


def test_labels_of_an_indicator_matrix(features):
    Z, y, Z_test, y_test = features
    sets, of_test = (np.column_stack([own > 4, own % 2 == 0]).astype(int) for own in (y, y_test))
    model = CGRidgeClassifier(**OWN).fit(Z, sets)
    p = model.predict_proba(Z_test)
    assert p.shape == of_test.shape
    np.testing.assert_array_equal(model.predict(Z_test), p > 0.5)
    assert np.mean(-np.log(np.where(of_test, p, 1 - p))) < 0.3
    assert model.decision_function(Z_test).shape == of_test.shape


def test_weights_count_as_rows(noisy):
    """With three times the weight of a class, its odds are about three times as high."""
    Z, y, Z_test, _ = noisy
    weights = np.where(y == "yes", 3.0, 1.0)
    plain, heavy = (CGRidgeClassifier(**OWN | {"alpha": 10.0}).fit(Z, y, own) for own in (None, weights))
    gain = np.mean(heavy.decision_function(Z_test) - plain.decision_function(Z_test))
    assert gain == pytest.approx(np.log(3), abs=0.35)


def test_validation_scores_have_the_weights_of_the_final_calibration(noisy, rng):
    Z, y, _, _ = noisy
    weights, (train, held_out) = rng.uniform(0, 9, len(y)) ** 2, np.split(np.arange(len(y)), [1500])
    given = {"class_weight": {"yes": 9.0, "no": 1.0}, "tol": 1e-6}
    cv = [(train, held_out)]
    model = CGRidgeClassifier(alphas=[10.0], probability=True, cv=cv, scoring="neg_log_loss", **given)
    model.fit(Z, y, weights)
    alone = CGRidgeClassifier(alpha=10.0, **given).fit(Z[train], y[train], weights[train])
    model.coef_, model.intercept_ = alone.coef_, alone.intercept_
    loss = log_loss(y[held_out], model.predict_proba(Z[held_out]), sample_weight=weights[held_out])
    assert model.path_scores_[0, 0] == pytest.approx(-loss, rel=1e-6)


def test_path_of_penalties_groups_sources_and_copies(noisy):
    Z, y, Z_test, share = noisy
    rows = blocks(Z.tocsr(), y, block_rows=1500)
    groups = np.arange(len(y)) // 10
    for model in (
        CGRidgeClassifier(alphas=[1.0, 10.0], probability=True, random_state=0).fit(Z, y, groups=groups),
        CGRidgeClassifier(**OWN | {"alpha": 10.0}).fit(rows),
    ):
        p = model.predict_proba(Z_test)
        assert np.sqrt(np.mean((p[:, 1] - share) ** 2)) < 0.1
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(Z_test), p)


def test_without_probability_the_error_names_decision_function(noisy):
    Z, y, Z_test, _ = noisy
    model = CGRidgeClassifier().fit(Z, y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="set probability=True and fit again, or use decision_function"):
        model.predict_proba(Z_test)
    with pytest.raises(NotFittedError):
        model.set_params(probability=True).predict_proba(Z_test)
    model.fit(Z, y).set_params(probability=False).fit(Z, y)
    assert not hasattr(model, "calibration_coef_")


def test_what_cannot_hold_rows_out_is_refused(noisy):
    Z, y, _, _ = noisy
    model = CGRidgeClassifier(**OWN)
    with pytest.raises(ValueError, match="probability=True does not support early stopping"):
        clone(model).set_params(early_stopping=True).fit(Z, y)
    with pytest.raises(
        ValueError, match="early_stopping and probability need a validation set, but rows of a LinearOp"
    ):
        clone(model).fit(aslinearoperator(Z.tocsr()), y)
    with pytest.raises(AttributeError, match="probability needs a validation set, which partial_fit does not have"):
        clone(model).partial_fit(Z, y, classes=["no", "yes"])
    with pytest.raises(TypeError, match="probability must be True or False, got 'yes'"):
        clone(model).set_params(probability="yes").fit(Z, y)
    with pytest.raises(ValueError, match="cv contains no split"):
        clone(model).set_params(cv=[]).fit(Z, y)


def test_dask(noisy):
    """Rows on Dask are refused by `fit`; their probabilities are computed by chunk."""
    da = pytest.importorskip("dask.array")
    from binfeat.distributed import CGRidgeClassifier as OnDask

    Z, y, Z_test, _ = noisy
    X, X_test = Z.tocsr()[:, :50].toarray(), Z_test.tocsr()[:, :50].toarray()
    model = OnDask(**OWN)
    with pytest.raises(ValueError, match="probability=True needs rows in memory or a source of blocks"):
        model.fit(da.from_array(X, chunks=(1000, 50)), da.from_array(y, chunks=1000))
    p = model.fit(X, y).predict_proba(X_test)
    lazy = model.predict_proba(da.from_array(X_test, chunks=(700, 50)))
    assert lazy.shape[1:] == (2,)
    np.testing.assert_array_equal(lazy.compute(), p)
