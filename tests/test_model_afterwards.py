"""Fitted kernel models: files, memory, one row and many, reports."""

import pickle

import joblib
import numpy as np
import pytest
from hard import hard
from kernel_models import BINS, FIXED, state
from limits import limited
from sklearn.exceptions import NotFittedError

from binfeat import (
    KernelMachineClassifier,
    KernelMachineRegressor,
)

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.usefixtures("few_grids")


@pytest.fixture(
    scope="module", params=["binning", "fourier", "exact, categories", "local", *hard("categories", "exact")]
)
def fitted(request, table):
    X, y, labels = table
    X = X.copy()
    X[::7, 3] = np.nan
    options = {**FIXED, "features": request.param} | ({"kernel": "rbf"} if request.param == "fourier" else {})
    if "categories" in request.param:
        options["features"] = "exact" if "exact" in request.param else "binning"
        X = pd.DataFrame(X, columns=list("abcd")).assign(e=np.where(X[:, 0] > 0, "p", "q"))
    with limited(sample_grids=(5, 40), n_fourier=128):
        regressor = KernelMachineRegressor(**options).fit(X, y)
        return X, [regressor, KernelMachineClassifier(**options).fit(X, labels)]


def outputs(model, X):
    found = [model.predict(X), model.predict(X[:1])]
    return [*found, model.predict_proba(X)] if hasattr(model, "predict_proba") else found


def assert_same_outputs(one, other, X):
    for a, b in zip(outputs(one, X), outputs(other, X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_round_trips(fitted, tmp_path):
    X, models = fitted
    for model in models:
        assert_same_outputs(pickle.loads(pickle.dumps(model)), model, X)
        joblib.dump(model, tmp_path / "model.joblib")
        assert_same_outputs(joblib.load(tmp_path / "model.joblib"), model, X)


TRUSTED = {
    KernelMachineRegressor: ["binfeat.KernelMachineRegressor"],
    KernelMachineClassifier: ["binfeat.KernelMachineClassifier"],
}


def test_skops_round_trip(fitted):
    sio = pytest.importorskip("skops.io")
    X, models = fitted
    for model in models:
        data = sio.dumps(model)
        assert sio.get_untrusted_types(data=data) == TRUSTED[type(model)]
        assert_same_outputs(sio.loads(data, trusted=TRUSTED[type(model)]), model, X)


def test_attributes_hold_arrays_numbers_and_strings(fitted):
    for model in fitted[1]:
        for name, value in state(model).items():
            if name in (
                "_columns",
                "_scaler",
                "_exact",
                "_local",
                "_posterior",
                "_held_out",
                "_spread",
                "_rises",
                "_seen",
                "_target_transform",
            ):
                assert all(isinstance(part, np.ndarray) for part in value.values())
            elif name != "decisions":
                assert isinstance(value, np.ndarray | str | int | float | np.number | bool), name
            if isinstance(value, np.ndarray) and not name.startswith("feature_names"):
                assert value.dtype.kind in "biufU" or value.dtype.names, name


def test_memory(rng):
    """A model needs 16 bytes per occupied bin, grids, validation rows and their sizes, hashes, and little else."""
    X = rng.normal(size=(5000, 6))
    model = KernelMachineRegressor(**{**FIXED, "gamma": 2.0}).fit(X, X[:, 0])
    grids = sum(a.nbytes for a in (model._scale, model._shift, model._keys, model._nan_keys))
    n_bins, held_out = model.feature_coef_.shape[1], sum(a.nbytes for a in model._held_out.values())
    assert n_bins > 20_000
    assert held_out <= 3 * 8 * 500 + 100
    spread = sum(a.nbytes for a in model._spread.values())
    assert spread <= 500 * (4 * 6 + 3 * 8) + 1000
    rest = held_out + spread + model._seen["hashes"].nbytes + 8 * (20 + 1) + 6500
    assert len(pickle.dumps(model)) <= 16 * n_bins + grids + rest


def test_one_row_is_as_in_a_batch(fitted):
    X, models = fitted
    for model in models:
        name = "predict_proba" if hasattr(model, "predict_proba") else "predict"
        own = np.concatenate([getattr(model, name)(X[i : i + 1]) for i in range(80)])
        np.testing.assert_allclose(own, getattr(model, name)(X)[:80], rtol=1e-9, atol=1e-12)
        if model.features_ in ("exact", "local", "binning"):
            scores = np.concatenate([model._scores(X[i : i + 1]) for i in range(80)])
            np.testing.assert_array_equal(scores, model._scores(X)[:80])


def test_many_rows_in_blocks(table, bytes_of_a_prediction):
    X, y, _ = table
    model = KernelMachineRegressor(features="binning", random_state=0).fit(X, y)
    expected = model.predict(X)
    bytes_of_a_prediction(2**12)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-12, atol=1e-12)


def test_summary_and_html(table):
    X, y, _ = table
    model = KernelMachineRegressor(features="binning", random_state=0)
    assert "KernelMachineRegressor" in model._repr_html_()
    with pytest.raises(NotFittedError):
        model.summary()
    model.fit(X, y)
    lines = model.summary().splitlines()
    assert lines[0].split() == ["decision", "choice", "validation", "error", "seconds"]
    assert [line.split("  ")[0] for line in lines[1:]] == list(model.decisions_["what"])
    for what in ("length scales", "kernel", "grids", "penalty"):
        assert what in model.decisions_["what"]
    assert "KernelMachineRegressor" in model._repr_html_()


def test_held_out_error_and_its_standard_error(table):
    """They follow the formula for the validation rows; a score has no standard error."""
    X, y, _ = table
    model = KernelMachineRegressor(**FIXED, refit=False, cv=[(np.arange(300), np.arange(300, 400))]).fit(X, y)
    squares = ((model.predict(X[300:]) - y[300:]) / y.std()) ** 2
    expected = squares.mean(), squares.std(ddof=1) / 10
    np.testing.assert_allclose(model.held_out_error_, expected, rtol=1e-9)
    scored = KernelMachineRegressor(**FIXED, scoring="r2").fit(X, y)
    np.testing.assert_equal(scored.held_out_error_, [scored.decisions_["error"][-1], np.nan])


def test_the_log_says_what_was_decided(table, caplog):
    X, y, _ = table
    with caplog.at_level("INFO", logger="binfeat"):
        KernelMachineRegressor(**BINS).fit(X, y)
    text = caplog.text
    for words in ("length scales: ", "kernel: ", "grids: validation error", "penalty: "):
        assert words in text


def test_nothing_is_printed(table, capfd, few_steps):
    X, y, labels = table
    KernelMachineRegressor(random_state=0).fit(X, y).predict(X)
    KernelMachineRegressor(solver_params={"max_grids": 40}, cv=5, random_state=0).fit(X, y).predict(X)
    KernelMachineClassifier(**FIXED).fit(X, labels).predict_proba(X)
    assert capfd.readouterr() == ("", "")
