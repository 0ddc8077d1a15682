"""Models exported to ONNX: predictions of its runtime equal those of the model."""

import json

import numpy as np
import pytest
from hard import each_value_once, hard
from kernel_models import with_options

from binfeat import KernelMachineClassifier, KernelMachineRegressor, kernels

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

GIVEN = {"features": "exact", "alpha": 0.1, "gamma": [0.5, 0.3, 0.2], "random_state": 0}
LOCAL = {**with_options(GIVEN, cell_rows=40, n_trees=3), "features": "local"}


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(300, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=300)


def answers(model, X):
    """Return the results of the runtime by the names of the outputs."""
    exported = model.to_onnx()
    onnx.checker.check_model(exported, full_check=True)
    session = runtime.InferenceSession(exported.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip([each.name for each in session.get_outputs()], session.run(None, {"X": np.asarray(X, float)})))


def assert_same(model, X, tolerance=1e-5):
    found, expected = answers(model, X)["predictions"], model.predict(X)
    assert found.shape == expected.shape
    scale = max(model._target_std.max(), expected.std())
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize(
    ("given", "kernel"),
    each_value_once(
        [GIVEN, LOCAL], ["laplacian", "rbf", kernels.Matern(0.5), kernels.Matern(1.5), kernels.Matern(2.5)]
    ),
    ids=str,
)
def test_every_kernel(rows, given, kernel):
    X, y = rows
    model = KernelMachineRegressor(**given, kernel=kernel).fit(X[:200], y[:200])
    assert_same(model, X)
    assert_same(model, X[:1])


@pytest.mark.parametrize("given", [GIVEN, LOCAL], ids=["exact", "local"])
def test_missing_values_and_categories(rows, rng, given):
    X, y = rows
    X = np.column_stack([X, rng.integers(3, size=300), rng.integers(5, size=300)])
    X[:, 0] **= 5
    X[::7, 1] = X[::11, 3] = np.nan
    categories = {"categorical_features": [3, 4], "gamma": np.full(5, 0.3)}
    model = KernelMachineRegressor(**{**given, **categories}, on_unseen="ignore")
    model.fit(X[:200], y[:200] + (X[:200, 4] == 2))
    X[-3:, 3], X[-2:, 4], X[-1, 2] = 7, np.nan, np.nan
    X[:2, 2] = 1e6, -1e6
    assert_same(model, X)


@pytest.mark.parametrize("given", [GIVEN, LOCAL], ids=["exact", "local"])
@pytest.mark.parametrize("kernel", ["laplacian", "rbf"])
def test_only_categories_matter(rng, given, kernel):
    X = rng.integers(4, size=(120, 3)).astype(float)
    y = np.sin(X.sum(axis=1))
    for categories, gamma in (([0, 1, 2], "scale"), ([2], [0.0, 0.0, 0.5])):
        options = {**given, "kernel": kernel, "categorical_features": categories, "gamma": gamma}
        assert_same(KernelMachineRegressor(**options).fit(X, y), X)


def test_a_category_that_is_missing_in_all_training_rows(rows):
    X, y = rows
    X[:, 2] = np.nan
    model = KernelMachineRegressor(**GIVEN, categorical_features=[2], on_unseen="ignore").fit(X, y)
    new = np.column_stack([X[:, :2], np.where(np.arange(300) < 100, 2.0, np.nan)])
    assert_same(model, new)


@pytest.mark.hard
def test_learned_models_with_sums_and_maps(rng, limits):
    """Results of a search; the tests below have ranks and a linear map."""
    limits(n_steps=15)
    X = rng.uniform(-2, 2, size=(700, 3))
    skewed = np.column_stack([np.exp(2 * X[:, :2]), X[:, 2]])
    model = KernelMachineRegressor(random_state=0).fit(skewed[:500], X[:500, 0])
    assert model.scaling_ == "ranks"
    assert_same(model, skewed, 1e-4)
    for target, features in ((3 * X[:, 0], "exact"), (np.sin(3 * (X[:, 0] + X[:, 1])), "exact"), (X[:, 2], "local")):
        model = KernelMachineRegressor(features=features, random_state=0)
        model.fit(X[:500], target[:500] + 0.05 * rng.normal(size=500))
        assert_same(model, X, 1e-4)


def test_codes(rows, rng, limits):
    limits(n_steps=15)
    X, y = rows
    X[:, 2] = rng.integers(30, size=300)
    model = KernelMachineRegressor(random_state=0).fit(X, y + rng.normal(size=30)[X[:, 2].astype(int)])
    assert model._fitted.encoder.coded.tolist() == [2]
    X[0, 2], X[1, 2] = 7.5, 31
    assert_same(model, X, 1e-4)


@pytest.mark.parametrize("transform", ["log", *hard("arcsinh")])
def test_transformed_targets(rows, transform):
    X, y = rows
    y = np.exp(2 * y) if transform == "log" else np.sinh(3 * y)
    model = KernelMachineRegressor(**GIVEN).fit(X, y)
    assert model.target_transform_ == transform
    assert_same(model.set_params(on_unseen="ignore"), np.vstack([X, 50 * X]))
    two = KernelMachineRegressor(**GIVEN).fit(X, np.column_stack([y, -X[:, 0]]))
    assert_same(two, X)
    assert_same(KernelMachineRegressor(**GIVEN, loss="poisson").fit(X, np.exp(X[:, 0])), X)


@pytest.mark.parametrize("given", [GIVEN, LOCAL], ids=["exact", "local"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(rows, given, n_classes):
    X, y = rows
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [0.0, 1.0][: n_classes - 1])]
    model = KernelMachineClassifier(**given).fit(X[:200], labels[:200])
    far = np.vstack([X, 50 * X])
    model.set_params(on_unseen="ignore")
    found = answers(model, far)
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(far), atol=1e-5)
    np.testing.assert_array_equal(model.classes_[found["class_number"]], model.predict(far))
    words = {each.key: each.value for each in model.to_onnx().metadata_props}
    assert json.loads(words["classes"]) == model.classes_.tolist()


def test_what_cannot_be_exported_is_named(rows, few_grids, without_package):
    pd = pytest.importorskip("pandas")
    X, y = rows
    small = {"gamma": "scale", "alpha": 0.1, "random_state": 0}
    made = {
        "to_onnx supports exact and local models": (
            KernelMachineRegressor(features="binning", **with_options(small, n_grids=4)),
            X,
            y,
        ),
        "supports numeric columns only": (KernelMachineRegressor(**small), pd.DataFrame({"a": ["u", "v"] * 150}), y),
        "supports one label per row": (KernelMachineClassifier(**small), X, (X > 0).astype(int)),
    }
    for words, (model, table, target) in made.items():
        with pytest.raises(ValueError, match=words):
            model.fit(table, target).to_onnx()
    model = KernelMachineRegressor(**small).fit(X, y)
    without_package("onnx")
    with pytest.raises(ImportError, match=r"pip install 'binfeat\[onnx\]'"):
        model.to_onnx()
