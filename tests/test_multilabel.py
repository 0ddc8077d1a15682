"""Rows with any number of labels: an indicator matrix as y and as prediction."""

import pickle

import numpy as np
import pandas as pd
import pytest
import skops.io
from hard import each_value_once
from scipy.special import expit
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import accuracy_score, log_loss

from binfeat import TRUSTED_TYPES, CGRidgeClassifier, KernelMachineClassifier, RandomBinning, blocks
from binfeat.models.kernel_algebra import solve

X, Y = make_multilabel_classification(n_samples=300, n_features=6, n_classes=3, random_state=0)


@pytest.fixture(scope="module")
def Z():
    return RandomBinning(n_grids=20, random_state=0).fit_transform(X)


def test_ridge_is_that_of_scikit_learn(Z):
    model = CGRidgeClassifier(alpha=0.1, tol=1e-10, max_iter=5000).fit(Z, Y)
    other = RidgeClassifier(alpha=0.1, tol=1e-10).fit(Z.toarray(), Y)
    np.testing.assert_allclose(model.decision_function(Z), other.decision_function(Z.toarray()), atol=1e-5)
    np.testing.assert_array_equal(model.predict(Z), other.predict(Z.toarray()))
    assert model.score(Z, Y) == accuracy_score(Y, model.predict(Z))
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.multilabel_


@pytest.mark.parametrize("options", [{"loss": "squared_hinge"}, {"alphas": [0.1, 1.0]}, {"early_stopping": True}])
def test_ridge_with_other_parameters(Z, options):
    for labels in (Y, Y[:, :2].astype(bool), Y[:, :2].astype(float)):
        found = CGRidgeClassifier(max_iter=1000, random_state=0, **options).fit(Z, labels).predict(Z)
        assert found.shape == labels.shape
        assert (found == labels).mean() > 0.8


@pytest.mark.parametrize(("features", "scoring"), each_value_once(["auto", "binning"], [None, "roc_auc", "f1_macro"]))
def test_kernel_model(few_steps, features, scoring):
    model = KernelMachineClassifier(features=features, scoring=scoring, solver_params={"max_grids": 40}, random_state=0)
    model.fit(X[:200], Y[:200], sample_weight=np.linspace(1, 2, 200))
    scores, p = model.decision_function(X), model.predict_proba(X)
    assert scores.shape == p.shape == Y.shape
    np.testing.assert_array_equal(model.predict(X), (scores > 0).astype(int))
    np.testing.assert_array_equal(model.predict(X), (p > 0.5).astype(int))
    assert (model.predict(X)[200:] == Y[200:]).mean() > 0.6
    if scoring is None:
        raw = expit(2 * model._scores(X[200:]).ravel())  # softmax of -score and score, without calibration
        assert log_loss(Y[200:].ravel(), p[200:].ravel()) < log_loss(Y[200:].ravel(), raw) + 0.01


def test_each_label_is_a_model_of_two_classes():
    fixed = {
        "features": "binning",
        "kernel": "laplacian",
        "gamma": 0.1,
        "alpha": 0.1,
        "solver_params": {"n_grids": 20},
        "random_state": 0,
    }
    rows = {"cv": [(range(200), range(200, 300))], "refit": False}
    model = KernelMachineClassifier(**fixed, **rows).fit(X, Y)
    for k in range(3):
        alone = KernelMachineClassifier(**fixed, **rows).fit(X, Y[:, k])
        np.testing.assert_allclose(model._scores(X)[:, k], alone._scores(X)[:, 0], atol=0.02)


def test_blocks(Z, few_steps):
    source = blocks(X, Y, block_rows=90)
    model = KernelMachineClassifier(solver_params={"max_grids": 40}, random_state=0).fit(source)
    assert model.predict(X).shape == Y.shape
    assert model.score(source) == model.score(X, Y)
    ridge = CGRidgeClassifier(tol=1e-8, max_iter=1000).fit(blocks(Z, Y, block_rows=90))
    np.testing.assert_array_equal(ridge.predict(Z), CGRidgeClassifier(tol=1e-8, max_iter=1000).fit(Z, Y).predict(Z))


def test_labels_that_all_or_no_rows_have(Z, few_steps):
    for constant in (np.ones_like(Y), np.zeros_like(Y)):
        np.testing.assert_array_equal(CGRidgeClassifier().fit(Z, constant).predict(Z), constant)
        np.testing.assert_array_equal(KernelMachineClassifier(random_state=0).fit(X, constant).predict(X), constant)


def test_bad_indicators(tmp_path):
    for wrong in (2 * Y, Y - 1, Y.astype(str), np.where(Y, 0.5, 0)):
        with pytest.raises(ValueError, match="y must contain one label per row, or be an indicator matrix"):
            CGRidgeClassifier().fit(X, wrong)
    for make in (lambda: CGRidgeClassifier(), lambda: KernelMachineClassifier()):
        with pytest.raises(ValueError, match="class_weight requires one label per row"):
            make().set_params(class_weight="balanced").fit(X, Y)
    fixed = {"features": "binning", "gamma": 0.1, "alpha": 0.1, "solver_params": {"n_grids": 20}, "random_state": 0}
    model = KernelMachineClassifier(**fixed).fit(X, Y)
    with pytest.raises(ValueError, match="supports test rows only for one label per row"):
        model.report(tmp_path / "page.html", X, Y)
    model.report(tmp_path / "page.html")


# Several columns of labels.

COLUMNS = np.column_stack([np.array(["cat", "dog", "eel"])[Y[:, 0] + Y[:, 1]], np.where(Y[:, 2], "yes", "no")])
FIXED = {"features": "exact", "kernel": "laplacian", "gamma": 0.1, "alpha": 0.1, "random_state": 0}


def test_each_column_of_labels_is_a_model_of_its_own():
    model = KernelMachineClassifier(**FIXED).fit(X, COLUMNS)
    assert [classes.tolist() for classes in model.classes_] == [["cat", "dog", "eel"], ["no", "yes"]]
    p, odds, predicted = model.predict_proba(X), model.decision_function(X), model.predict(X)
    assert predicted.shape == COLUMNS.shape
    for k in range(2):
        alone = KernelMachineClassifier(**FIXED).fit(X, COLUMNS[:, k])
        np.testing.assert_allclose(p[k], alone.predict_proba(X), atol=1e-4)
        np.testing.assert_allclose(odds[k], alone.decision_function(X), atol=5e-3)
        assert np.mean(predicted[:, k] == alone.predict(X)) > 0.99


@pytest.mark.parametrize(("features", "loss"), each_value_once(["exact", "local"], ["log", "squared_hinge"]))
def test_each_column_of_labels_has_a_loss_of_its_own(loss, features, monkeypatch):
    """Solution and calibration equal those of a separate model."""
    monkeypatch.setattr(solve, "_ENOUGH", 1e-9)
    given = FIXED | {"features": features, "loss": loss, "solver_params": {"cell_rows": 100, "n_trees": 2}}
    model = KernelMachineClassifier(**given).fit(X, COLUMNS)
    p, predicted = model.predict_proba(X), model.predict(X)
    for k in range(2):
        alone = KernelMachineClassifier(**given).fit(X, COLUMNS[:, k])
        np.testing.assert_allclose(p[k], alone.predict_proba(X), atol=5e-3)
        assert np.mean(predicted[:, k] == alone.predict(X)) > 0.99


def test_columns_of_labels_are_as_in_forests(few_steps):
    codes = np.column_stack([Y[:, 0] + Y[:, 1], 5 * Y[:, 2]])
    forest = RandomForestClassifier(n_estimators=5, random_state=0).fit(X[:200], codes[:200])
    model = KernelMachineClassifier(random_state=0).fit(X[:200], codes[:200], sample_weight=np.ones(200))
    ours, theirs = (each.predict(X) for each in (model, forest))
    assert ours.shape == theirs.shape == (300, 2)
    assert ours.dtype.kind == "i"
    for own, other in zip(model.classes_, forest.classes_, strict=True):
        np.testing.assert_array_equal(own, other)
    for own, other in zip(model.predict_proba(X), forest.predict_proba(X), strict=True):
        assert own.shape == other.shape
        np.testing.assert_allclose(own.sum(axis=1), 1)
    assert (ours == codes)[200:].mean() > (np.array([1, 5]) == codes)[200:].mean()


def test_columns_of_labels_of_several_kinds_and_files(few_steps, tmp_path):
    frame = pd.DataFrame({"animal": COLUMNS[:, 0], "count": Y[:, 1] + Y[:, 2]})
    model = KernelMachineClassifier(features="binning", solver_params={"max_grids": 20}, random_state=0).fit(X, frame)
    assert model.classes_[1].tolist() == [0, 1, 2]
    predicted = model.predict(X)
    assert predicted.dtype == object
    assert set(predicted[:, 1]) <= {0, 1, 2}
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict(X), predicted)
    safe = skops.io.loads(skops.io.dumps(model), trusted=TRUSTED_TYPES)
    for own, other in zip(safe.predict_proba(X), model.predict_proba(X), strict=True):
        np.testing.assert_array_equal(own, other)
    broken = pickle.loads(pickle.dumps(model))
    broken.calibration_coef_ = [model.calibration_coef_[0][:, :2], model.calibration_coef_[1]]
    with pytest.raises(ValueError, match="calibration_coef_"):
        pickle.loads(pickle.dumps(broken))
    assert model.shapley_values(X[:3], X[:20]).values.shape == (3, 6, 6)
    model.report(tmp_path / "model.html")
    with pytest.raises(ValueError, match="supports test rows only for one label per row"):
        model.report(tmp_path / "model.html", X, frame)
    warm = model.set_params(warm_start=True)
    with pytest.raises(ValueError, match="warm_start=True requires the classes"):
        warm.fit(X, COLUMNS)
    assert warm.fit(X, frame).decisions_["what"][0] == "warm start"


@pytest.mark.parametrize("labels", [Y, COLUMNS, pd.DataFrame({"animal": COLUMNS[:, 0], "count": Y[:, 1] + Y[:, 2]})])
def test_the_score_is_the_share_of_rows_with_all_labels_right(rng, labels):
    weights = rng.uniform(size=300)
    model = KernelMachineClassifier(**FIXED).fit(X[:200], labels[:200])
    are_right = (model.predict(X) == np.asarray(labels)).all(axis=1)
    assert 0 < are_right.mean() < 1
    assert model.score(X, labels) == pytest.approx(are_right.mean())
    assert model.score(X, labels, weights) == pytest.approx(np.average(are_right, weights=weights))
    if isinstance(labels, np.ndarray):
        assert model.score(blocks(X, labels, weights)) == model.score(X, labels, weights)


def test_bad_columns_of_labels():
    with pytest.raises(ValueError, match="at least two classes, got one class: 'cat'"):
        KernelMachineClassifier().fit(X, np.column_stack([COLUMNS[:, 1], np.full(300, "cat")]))
    with pytest.raises(ValueError, match="class_weight requires one label per row"):
        KernelMachineClassifier(class_weight="balanced").fit(X, COLUMNS)
    with pytest.raises(ValueError, match=r"scoring='accuracy' accepts one column of labels, got 2. Pass a callable"):
        KernelMachineClassifier(scoring="accuracy").fit(X, COLUMNS)
    with pytest.raises(ValueError, match="continuous"):
        KernelMachineClassifier().fit(X, X[:, :2] + 0.5)
    with pytest.raises(ValueError, match="y must contain one label per row"):
        CGRidgeClassifier().fit(X, COLUMNS)
