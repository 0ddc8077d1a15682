"""Masked values are treated like NaN: missing in X, errors in targets, weights and groups."""

import numpy as np
import pytest
from hard import each_value_once
from limits import limited
from scipy import sparse

import binfeat
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
)

SHORT = {"gamma": "scale", "alpha": 0.1, "random_state": 0}
MAKERS = {
    "binning": lambda: RandomBinning(gamma=0.3, n_grids=16, random_state=0),
    "fourier": lambda: RandomFourier(n_components=16, random_state=0),
    "union": lambda: RandomFeatureUnion([("a", RandomBinning(gamma=0.3, n_grids=16, random_state=0))]),
    "ridge": lambda: CGRidge(),
    "ridge of labels": lambda: CGRidgeClassifier(),
    "regressor": lambda: KernelMachineRegressor(**SHORT),
    "classifier": lambda: KernelMachineClassifier(**SHORT),
    "embedding": lambda: SpectralEmbedding(gamma=0.3, random_state=0),
    "clustering": lambda: SpectralClustering(2, gamma=0.3, random_state=0),
    "spreading": lambda: LabelSpreading(gamma=0.3, random_state=0),
}
SUPERVISED = ["ridge", "ridge of labels", "regressor", "classifier", "spreading"]
WEIGHTED = SUPERVISED[:4]


@pytest.fixture
def rows(rng):
    """Return a table, the table with NaN, and the table with a mask instead of NaN."""
    X = rng.normal(size=(60, 3))
    gaps = rng.random(X.shape) < 0.1
    return X, np.where(gaps, np.nan, X), np.ma.array(np.where(gaps, 1e9, X), mask=gaps)


def outcome(function):
    """Return the result of a call as an array, or the type and message of its error."""
    try:
        found = function()
    except (TypeError, ValueError) as error:
        return type(error), str(error)
    return found.toarray() if sparse.issparse(found) else np.asarray(found)


def result(estimator, X):
    return getattr(estimator, "predict" if hasattr(estimator, "predict") else "transform")(X)


@pytest.mark.parametrize(("rows_as", "name"), each_value_once(["array", "list of masked rows"], MAKERS))
@pytest.mark.filterwarnings("ignore")
def test_masked_inputs_are_nan(rows, name, rows_as):
    full, missing, masked = rows
    y = (full[:, 0] > 0).astype(int)
    masked = masked if rows_as == "array" else list(masked)
    of_nan = outcome(lambda: result(MAKERS[name]().fit(missing, y), missing))
    np.testing.assert_equal(outcome(lambda: result(MAKERS[name]().fit(masked, y), masked)), of_nan)
    fitted = MAKERS[name]().fit(full, y)
    np.testing.assert_equal(outcome(lambda: result(fitted, masked)), outcome(lambda: result(fitted, missing)))


def test_masked_inputs_of_functions(rows):
    full, missing, masked = rows
    assert (binfeat.transform(masked) != binfeat.transform(missing)).nnz == 0
    learned = [binfeat.learn_gamma(X, full[:, 0], max_steps=3, random_state=0).gamma for X in (masked, missing)]
    np.testing.assert_array_equal(*learned)


def test_masked_blocks(rows):
    full, missing, masked = rows
    sources = [binfeat.blocks(X, full[:, 0], block_rows=20) for X in (masked, missing)]
    made = [MAKERS["binning"]().fit_transform(source).tocsr() for source in sources]
    assert (made[0] != made[1]).nnz == 0
    with pytest.raises(ValueError, match="contains NaN"):
        CGRidge().fit(binfeat.blocks(full, np.ma.array(full[:, 0], mask=full[:, 1] > 1), block_rows=20))


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize("name", SUPERVISED)
@pytest.mark.parametrize("kind", ["int", "float", "bool", "str", "object"])
def test_masked_targets_are_refused_as_nan(rows, name, kind):
    X, mask = rows[0], np.arange(60) == 7
    if name in ("ridge", "regressor") and kind in ("bool", "str", "object"):
        pytest.skip("labels, which these do not take")
    numbers = (X[:, 0] > 0).astype(int)
    y = numbers.astype(kind) if kind in ("int", "float", "bool") else np.array(["no", "yes"])[numbers].astype(kind)
    missing = y.astype(float if kind in ("int", "float", "bool") else object)
    missing[7] = np.nan
    estimator = MAKERS[name]()
    refused = outcome(lambda: estimator.fit(X, np.ma.array(y, mask=mask)))
    assert refused == outcome(lambda: estimator.fit(X, missing))
    assert refused[0] is ValueError
    assert "NaN" in refused[1]
    estimator.fit(X, np.ma.array(y))  # without masked values
    scored = outcome(lambda: estimator.score(X, np.ma.array(y, mask=mask)))
    assert scored == outcome(lambda: estimator.score(X, missing))
    assert scored[0] in (TypeError, ValueError)


@pytest.mark.parametrize("name", WEIGHTED)
def test_masked_weights_and_groups_are_refused(rows, name):
    X, mask = rows[0], np.arange(60) == 7
    y, numbers = (X[:, 0] > 0).astype(int), np.arange(60) // 6
    with pytest.raises(ValueError, match="sample_weight must be finite"):
        MAKERS[name]().fit(X, y, sample_weight=np.ma.array(numbers + 1, mask=mask))
    estimator = MAKERS[name]()
    estimator = estimator.set_params(alphas=[0.1, 1.0]) if "ridge" in name else estimator
    with pytest.raises(ValueError, match="groups must not contain missing values, but 1 of 60 rows"):
        estimator.fit(X, y, groups=np.ma.array(numbers, mask=mask))


def test_masked_parameters_are_refused(rows):
    X = rows[0]
    with pytest.raises(ValueError, match="gamma must be finite"):
        RandomBinning(gamma=np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])).fit(X)
    with pytest.raises(ValueError, match="categorical_features must be a mask"):
        KernelMachineRegressor(categorical_features=np.ma.array([0, 1], mask=[0, 1])).fit(X, X[:, 0])
    model = MAKERS["regressor"]().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="quantiles must be"):
        model.predict_quantiles(X, np.ma.array([0.1, 0.5], mask=[0, 1]))
    with pytest.raises(ValueError, match="cv must yield pairs of row numbers, or of masks"):
        MAKERS["regressor"]().set_params(
            cv=[(np.ma.array(np.arange(30), mask=np.arange(30) < 5), np.arange(30, 60))]
        ).fit(X, X[:, 0])


def test_masked_words_and_dates_of_kernel_models(rng):
    words = rng.choice(["a", "b"], size=60).astype(object)
    X, y, mask = np.column_stack([words, rng.normal(size=60)]), rng.normal(size=60), rng.random((60, 2)) < 0.1
    missing = X.copy()
    missing[mask] = None
    with limited(n_steps=3):
        models = [KernelMachineRegressor(**SHORT).fit(own, y) for own in (np.ma.array(X, mask=mask), missing)]
    np.testing.assert_array_equal(*(model.predict(missing) for model in models))
    data = models[0].shapley_values(np.ma.array(X, mask=mask)[:5]).data
    np.testing.assert_array_equal(data == data, ~mask[:5])
