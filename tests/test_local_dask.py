"""Local models of rows on Dask equal those of the same rows in blocks, for any chunks."""

import numpy as np
import pandas as pd
import panels
import pytest
from hard import hard
from kernel_models import assert_same_state, decisions, with_options

import binfeat
from binfeat import blocks
from binfeat._rows.rows import Part

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
dask_sizeof = pytest.importorskip("dask.sizeof")
pytest.importorskip("distributed")

import binfeat.distributed as remote  # noqa: E402
from binfeat.distributed import _all_rows  # noqa: E402

N_ROWS, N_SAMPLED = 1500, 500
LOCAL = {"features": "local", "solver_params": {"cell_rows": 150, "n_trees": 2}, "random_state": 0}
# All hyperparameters are given: one kernel, its gamma, the penalty.
GIVEN = {**LOCAL, "kernel": "laplacian", "gamma": [1.0, 0.5, 0.5], "alpha": 0.3}
ROUNDING = 1e-5  # moments of the targets are summed in another order
CHUNKS = [(N_ROWS,), (700, 0, 799, 1), (200, 200, 200, 200, 200, 200, 300)]


@pytest.fixture(autouse=True)
def small_samples(sampled_rows, limits):
    """Use samples of 500 rows and a short search."""
    limits(n_steps=10, sample_grids=(5, 20), sample_rows=200)
    sampled_rows(N_SAMPLED)


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 3))
    X[::40, 1] = np.nan
    y = np.sin(2 * X[:, 0]) + X[:, 2] * (X[:, 0] > 0) + 0.1 * rng.normal(size=N_ROWS)
    return X, y, np.where(np.arange(N_ROWS) % 7, rng.uniform(0.5, 2.0, size=N_ROWS), 0.0)


def assert_alike(got, expected):
    """Check that models make the same decisions and learn from as many rows."""
    assert decisions(got) == decisions(expected)
    assert (got.features_, got.n_trees_, got.status_) == ("local", expected.n_trees_, "converged")
    assert got.feature_coef_.shape == expected.feature_coef_.shape


def chunked(values, chunks):
    return da.from_array(values, chunks=(chunks, *values.shape[1:]))


@pytest.mark.parametrize("weighted", [*hard(False), True])
def test_models_are_those_of_blocks(noisy, weighted):
    X, y, weights = noisy
    own = weights if weighted else None
    expected = binfeat.KernelMachineRegressor(**GIVEN).fit(blocks(X, y, own))
    new = np.random.default_rng(1).normal(size=(200, 3))
    for chunks in CHUNKS:
        model = remote.KernelMachineRegressor(**GIVEN).fit(chunked(X, chunks), chunked(y, (N_ROWS,)), own)
        assert_alike(model, expected)
        np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=ROUNDING)
    np.testing.assert_allclose(model.predict_interval(new), expected.predict_interval(new), atol=ROUNDING)
    for got, wanted in zip(model.predict(new, return_std=True), expected.predict(new, return_std=True)):
        np.testing.assert_allclose(got, wanted, atol=ROUNDING)


@pytest.mark.hard
def test_classes(noisy):
    """All bits are those of blocks."""
    X, y, weights = noisy
    labels = np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 1.5])]
    options = {**LOCAL, "class_weight": "balanced"}
    expected = binfeat.KernelMachineClassifier(**options).fit(blocks(X, labels, weights))
    dX = chunked(X, CHUNKS[1])
    model = remote.KernelMachineClassifier(**options).fit(dX, chunked(labels, (N_ROWS,)), weights)
    assert_same_state(model, expected)
    np.testing.assert_allclose(model.predict_proba(dX), expected.predict_proba(X), atol=1e-6)


def test_parts_without_weights_have_a_size():
    """Dask uses it to decide what to store on disk."""
    Z, Y = np.zeros((100, 20), np.float32), np.zeros((100, 1))
    plain, weighted = (dask_sizeof.sizeof(Part(Z, Y, weights)) for weights in (None, np.ones((100, 1))))
    assert Z.nbytes + Y.nbytes < plain < weighted - 500


@pytest.mark.parametrize(("most_pieces", "n_jobs"), [(1, None), *hard((20, 2))])
def test_several_cells_in_a_task(noisy, monkeypatch, most_pieces, n_jobs):
    """They change nothing, and neither do threads."""
    X, y, weights = noisy
    dX, options = chunked(X, CHUNKS[2]), {**GIVEN, "cv": 3}
    model = remote.KernelMachineClassifier(**options).fit(dX, y > 0, weights)
    tasks, called = [], _all_rows._called

    def noted(function, pieces, places, mean_weight, n_jobs):
        tasks.append((len(places), n_jobs))
        return called(function, pieces, places, mean_weight, n_jobs)

    monkeypatch.setattr(_all_rows, "_MOST_PIECES", most_pieces)
    monkeypatch.setattr(_all_rows, "_called", noted)
    other = remote.KernelMachineClassifier(**options, n_jobs=n_jobs).fit(dX, y > 0, weights)
    assert {threads for _, threads in tasks} == {n_jobs or 1}
    assert max(n_cells for n_cells, _ in tasks) >= 1500 // 150 // max(1, most_pieces // 7)
    assert_same_state(other, model)


def test_frames(noisy):
    """Strings, missing values, names."""
    X, y, weights = noisy
    table = pd.DataFrame({"number": X[:, 0], "gap": X[:, 1], "kind": np.where(X[:, 2] > 0, "up", "down")})
    options = {**GIVEN, "gamma": "scale"}
    expected = binfeat.KernelMachineClassifier(**options).fit(blocks(table, y > 0, weights))
    more = dd.from_pandas(table.assign(y=y > 0, weight=weights), npartitions=4)
    model = remote.KernelMachineClassifier(**options).fit(more[list(table)], more["y"], more["weight"])
    assert_same_state(model, expected)
    assert model.feature_names_in_.tolist() == list(table)
    lazy = model.predict_proba(more[list(table)])
    np.testing.assert_allclose(lazy.compute(), expected.predict_proba(table), atol=1e-6)


def test_effects_of_levels():
    """All bits are those of blocks."""
    numbers, codes, y = panels.panel(N_ROWS)
    table = panels.table(numbers, codes)
    options = {**GIVEN, "gamma": panels.GAMMA}
    expected = binfeat.KernelMachineRegressor(**options).fit(blocks(table, y))
    more = dd.from_pandas(table.assign(y=y), npartitions=4)
    model = remote.KernelMachineRegressor(**options).fit(more[list(table)], more["y"])
    assert model._local["level_inputs"].tolist() == [2, 3]
    assert_same_state(model, expected)


@pytest.mark.parametrize("loss", hard("huber", "poisson"))
def test_losses(noisy, loss):
    """Their targets or weights follow from a model of the sample, on the workers."""
    X, y, weights = noisy
    Y = np.column_stack([y, -y])
    Y = np.ceil(np.exp(Y)) if loss == "poisson" else Y + 30.0 * (np.arange(N_ROWS) % 50 == 0)[:, None]
    options = {**with_options(GIVEN, n_trees=1), "gamma": "learn", "alpha": "auto", "loss": loss}
    expected = binfeat.KernelMachineRegressor(**options).fit(blocks(X, Y, weights))
    model = remote.KernelMachineRegressor(**options).fit(chunked(X, CHUNKS[1]), Y, weights)
    assert_alike(model, expected)
    np.testing.assert_allclose(model._scores(X), expected._scores(X), atol=ROUNDING)


@pytest.mark.hard
def test_a_warm_start_keeps_the_kernel(noisy):
    X, y, _ = noisy
    model = remote.KernelMachineRegressor(**LOCAL, warm_start=True).fit(blocks(X, y))
    kernel, gamma = model.kernel_, model.gamma_
    model.fit(chunked(X, CHUNKS[1]), y)
    assert (model.features_, model.kernel_) == ("local", kernel)
    np.testing.assert_allclose(model.gamma_, gamma, rtol=1e-6)
    assert "length scales" not in model.decisions_["what"]


@pytest.mark.hard
def test_many_rows_take_cells(noisy):
    X, y, _ = noisy
    options = {"solver_params": {"cell_rows": 150, "max_grids": 20}, "random_state": 0}
    model = remote.KernelMachineRegressor(**options).fit(chunked(X, CHUNKS[1]), y)
    assert (model.features_, model.status_) == ("local", "converged")
    small = remote.KernelMachineRegressor(**options, max_bytes=800_000).fit(chunked(X, CHUNKS[1]), y)
    assert small.features_ == "binning"
    assert "max_bytes: cells of" in small.summary()
    with pytest.raises(ValueError, match=r"max_bytes must be at least .* for features='local' of 1,500 rows"):
        remote.KernelMachineRegressor(**LOCAL, max_bytes=200_000).fit(chunked(X, CHUNKS[1]), y)
