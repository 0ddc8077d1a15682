"""Local models of sources of blocks: the same models as in memory, and their limits."""

import pickle

import numpy as np
import pytest
from callbacks import Callback
from hard import each_value_once, hard
from interrupts import interrupted
from kernel_models import assert_same_state, with_options
from memory import peak_bytes
from sklearn.model_selection import ShuffleSplit

from binfeat import KernelMachineClassifier, KernelMachineRegressor, blocks
from binfeat.length_scales import matrices
from binfeat.models.fitted import cell_trees
from binfeat.models.solvers import cell_ensemble
from binfeat.models.table.unique_rows import TableRows, unique_rows

pd = pytest.importorskip("pandas")

N_ROWS, N_SAMPLED = 2000, 600
LOCAL = {"features": "local", "solver_params": {"cell_rows": 150}, "random_state": 0}
# All hyperparameters are given: one kernel, its gamma, the penalty.
GIVEN = {**with_options(LOCAL, n_trees=1), "kernel": "laplacian", "gamma": [1.0, 0.5, 0.5], "alpha": 0.3}


@pytest.fixture(autouse=True)
def small_samples(sampled_rows, limits, rows_of_a_pass):
    """Use samples of 600 rows and a short search."""
    limits(n_steps=6, sample_grids=(5, 20), sample_rows=300)
    sampled_rows(N_SAMPLED)
    rows_of_a_pass(700)


def smooth(X):
    return np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0)


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 3)).round(2)
    return X, smooth(X) + 0.1 * rng.normal(size=N_ROWS), rng.uniform(0.5, 2.0, size=N_ROWS)


def assert_as_in_memory(options, X, y, weights=None):
    """Check that predictions equal those of the model in memory; return both models."""
    if weights is not None:  # the order of rows is the same as in memory
        rows = unique_rows(TableRows(X, y, y[:, np.newaxis], weights[:, np.newaxis]))[1]
        X, y, weights = X[rows], y[rows], weights[rows]
    weights_of_blocks = () if weights is None else (weights,)
    whole = KernelMachineRegressor(**options).fit(X, y, weights)
    streamed = KernelMachineRegressor(**options).fit(blocks(X, y, *weights_of_blocks, block_rows=330))
    assert streamed.features_ == "local"
    assert streamed.feature_coef_.shape == whole.feature_coef_.shape
    np.testing.assert_allclose(streamed.predict(X), whole.predict(X), atol=1e-4)
    return whole, streamed


# The same models as in memory.


@pytest.mark.parametrize(("n_trees", "weighted"), each_value_once([1, 3], [False, True]))
def test_models_are_those_of_rows_in_memory(noisy, weighted, n_trees):
    X, y, weights = noisy
    whole, streamed = assert_as_in_memory(with_options(GIVEN, n_trees=n_trees), X, y, weights if weighted else None)
    assert streamed.n_trees_ == n_trees
    np.testing.assert_array_equal(streamed.apply(X), whole.apply(X))
    # Leave-one-out errors are of the sample only.
    error, standard_error = streamed.held_out_error_
    assert abs(error - whole.held_out_error_[0]) < 4 * standard_error


def test_several_targets(noisy):
    X, y, _ = noisy
    assert_as_in_memory(GIVEN, X, np.column_stack([y, -y]))


def test_rows_without_weight(noisy):
    X, y, weights = noisy
    lighter = np.where(np.arange(N_ROWS) % 7, weights, 0.0)
    streamed = KernelMachineRegressor(**GIVEN).fit(blocks(X, y, lighter, block_rows=330))
    assert streamed._local["support"].shape[1] == np.count_nonzero(lighter)
    whole = KernelMachineRegressor(**GIVEN).fit(X, y, lighter)
    errors = [np.mean((model.predict(X) - smooth(X)) ** 2) for model in (streamed, whole)]
    assert abs(np.log(errors[0] / errors[1])) < 0.2  # cells differ


def test_validation_rows_without_weight_decrease_no_standard_deviations(noisy):
    X, y, _ = noisy
    weights = np.where(np.arange(N_ROWS) % 4, 0.0, 1.0)
    stds = []
    for given in ([blocks(X, y, weights, block_rows=330)], [X, y, weights]):
        model = KernelMachineRegressor(**GIVEN, cv=ShuffleSplit(1, test_size=0.5, random_state=0)).fit(*given)
        stds.append(model.predict(X, return_std=True)[1].mean())
    assert stds[0] == pytest.approx(stds[1], rel=0.2)


@pytest.mark.parametrize("loss", [*hard("poisson"), "huber"])
def test_other_losses(noisy, loss):
    """Their targets or weights follow from a model of the sample, by one pass over the blocks."""
    X, y, weights = (values[:1000] for values in noisy)
    wanted = np.exp(0.5 * smooth(X)) if loss == "poisson" else smooth(X)
    given = np.random.default_rng(0).poisson(wanted) if loss == "poisson" else np.where(weights > 1.98, 50.0, y)
    options = {**with_options(LOCAL, n_trees=1), "loss": loss}
    whole = KernelMachineRegressor(**options).fit(X, given)
    model = KernelMachineRegressor(**options).fit(blocks(X, given, block_rows=330))
    assert model.features_ == "local"
    error, of_whole = (np.mean((own.predict(X) - wanted) ** 2) for own in (model, whole))
    assert error < 1.2 * of_whole < 0.3 * wanted.var()


@pytest.mark.parametrize("Estimator", [*hard(KernelMachineRegressor), KernelMachineClassifier])
def test_blocks_and_threads_change_nothing(noisy, Estimator):
    X, y, weights = (values[:900] for values in noisy)
    y = y if Estimator is KernelMachineRegressor else np.digitize(y, [-1.0, 1.0])
    one, two, other = (
        Estimator(**with_options(LOCAL, n_trees=2), n_jobs=n_jobs).fit(blocks(X, y, weights, block_rows=block_rows))
        for n_jobs, block_rows in ((1, 2000), (2, 2000), (2, 77))
    )
    assert_same_state(one, two)
    assert_same_state(two, other)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_a_classifier_of_frames(noisy, tmp_path):
    pytest.importorskip("pyarrow")
    X, y, _ = noisy
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.where(X[:, 2] > 0, "up", "down")})
    frame.loc[::9, "b"] = np.nan
    labels = np.where(y > 0.5, "high", np.where(y < -0.5, "low", "mid"))
    frame[:1600].assign(label=labels[:1600]).to_parquet(tmp_path / "rows.parquet")
    model = KernelMachineClassifier(**LOCAL).fit(blocks(tmp_path, target="label", block_rows=250))
    assert model.features_ == "local"
    assert model._local["support"].shape[1] == 1600
    assert model.score(frame[1600:], labels[1600:]) > 0.75
    source = blocks(frame[1600:], labels[1600:], block_rows=90)
    np.testing.assert_allclose(model.predict_proba(source), model.predict_proba(frame[1600:]), atol=1e-6)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))


@pytest.mark.hard
def test_all_rows_are_worth_more_than_the_sample(noisy):
    X, y, _ = noisy
    new = np.random.default_rng(1).normal(size=(1000, 3))
    model = KernelMachineRegressor(**LOCAL).fit(blocks(X, y))
    sample = KernelMachineRegressor(**LOCAL).fit(X[:N_SAMPLED], y[:N_SAMPLED])
    assert model.score(new, smooth(new)) > sample.score(new, smooth(new))
    errors = (model.predict(new) - smooth(new)) ** 2 + 0.1**2
    told, standard_error = model.held_out_error_ * y.var()
    assert abs(errors.mean() - told) < 4 * np.hypot(standard_error, errors.std() / np.sqrt(1000))


def test_rows_held_out_are_learned_from_in_the_end(noisy):
    X, y, _ = noisy
    cv = ShuffleSplit(1, test_size=100, random_state=0)
    whole, part = (
        KernelMachineRegressor(**GIVEN, cv=cv, refit=refit).fit(blocks(X, y, block_rows=330)) for refit in (True, False)
    )
    assert whole._local["support"].shape[1] == N_ROWS
    assert part._local["support"].shape[1] == N_ROWS - 100
    np.testing.assert_array_equal(whole.held_out_error_, part.held_out_error_)


def test_row_numbers_in_cv_are_refused_for_a_sample(noisy):
    X, y, _ = noisy
    model = KernelMachineRegressor(**GIVEN, cv=[(np.arange(500), np.arange(500, 600))])
    with pytest.raises(ValueError, match="cv contains row numbers, which require all rows in memory"):
        model.fit(blocks(X, y))
    model.fit(blocks(X[:N_SAMPLED], y[:N_SAMPLED]))  # all rows are in the sample


# Columns of rows.


def test_rows_that_are_kept_as_columns(rng):
    X = np.column_stack([rng.normal(1e4, 2.0, size=50), rng.integers(5, size=50)]).astype(np.float64)
    standardizer = matrices.Standardizer.of(X[:20], np.array([False, True]))
    rows = cell_trees.ColumnRows(standardizer.columns(X), standardizer)
    some = np.array([7, 3, 3, 49])
    assert (rows.shape, len(rows)) == ((50, 2), 50)
    for place in (some, slice(10, 20), slice(None)):
        np.testing.assert_allclose(rows[place], X[place], rtol=0, atol=1e-6)
        np.testing.assert_array_equal(standardizer.columns(rows[place]), rows.columns[:, place])
        for j in (0, 1):
            np.testing.assert_array_equal(rows[place, j], rows[place][:, j])
    assert rows[some, 0].dtype == rows[some].dtype == np.float64


# Limits.


def test_many_rows_of_a_source_take_cells(noisy):
    X, y, _ = noisy
    options, source = {"solver_params": {"max_grids": 20}, "random_state": 0}, blocks(X, y, block_rows=330)
    model = KernelMachineRegressor(**options).fit(source)
    assert (model.features_, model.status_) == ("local", "converged")
    assert model.n_trees_ > 1
    small = KernelMachineRegressor(**options, max_bytes=2_000_000).fit(source)
    assert small.features_ == "binning"
    assert "max_bytes: cells of 0 rows at most" in small.summary()
    assert KernelMachineRegressor(**options, max_seconds=0).fit(source).features_ == "binning"


def test_too_little_memory_for_all_rows_is_refused(noisy, memory_of):
    X, y, _ = noisy
    source = blocks(X, y)
    message = r"max_bytes must be at least ([\d,]+) for features='local' of 2,000 rows and 3 columns; got 200,000\."
    with pytest.raises(ValueError, match=message) as refusal:
        KernelMachineRegressor(**GIVEN, max_bytes=200_000).fit(source)
    enough = int(str(refusal.value).split()[5].replace(",", ""))
    assert KernelMachineRegressor(**GIVEN, max_bytes=enough).fit(source).features_ == "local"
    with pytest.raises(ValueError, match="max_bytes must be at least"):
        KernelMachineRegressor(**GIVEN, max_bytes=enough - 1).fit(source)
    memory_of(enough - 1)
    with pytest.raises(
        MemoryError, match=r"features='local' of 2,000 rows and 3 columns needs about .* Use features='binning'"
    ):
        KernelMachineRegressor(**GIVEN).fit(source)


@pytest.mark.parametrize("n_inputs", [7, *hard(40)])
def test_rows_are_kept_in_float32_only_and_take_the_memory_that_is_counted(rng, n_inputs):
    """In a fit and in its model; in addition, a row needs its targets, coefficients and residuals."""
    peaks, counted = [], []
    for n_rows in (1000, 4000, 16_000):  # the first fit also loads modules and kernels
        X = rng.normal(size=(n_rows, n_inputs))
        model = KernelMachineRegressor(**{**GIVEN, "gamma": np.full(n_inputs, 0.1)})
        source = blocks(X, X[:, 0].copy(), block_rows=2000)
        peaks.append(peak_bytes(lambda model=model, source=source: model.fit(source))[0])
        with pytest.raises(ValueError, match="max_bytes must be at least") as refusal:
            model.set_params(max_bytes=80 * n_rows).fit(source)
        counted.append(int(str(refusal.value).split()[5].replace(",", "")))
    of_row = (peaks[2] - peaks[1]) / 12_000
    assert 8 * n_inputs < of_row < 8 * n_inputs + 150
    assert abs((counted[2] - counted[1]) / 12_000 / of_row - 1) < 0.3, ((counted[2] - counted[1]) / 12_000, of_row)


# Interrupts and warm starts.


def test_a_callback_stops_it(noisy):
    X, y, _ = noisy
    model = KernelMachineRegressor(**with_options(LOCAL, n_trees=4)).set_callbacks(Callback("step", stop_at=1))
    model.fit(blocks(X, y))
    assert (model.status_, model.n_trees_) == ("stopped", 1)


@pytest.mark.parametrize(("call", "n_rows"), [(2, N_ROWS), *hard((1, N_SAMPLED))])
def test_interrupted(noisy, call, n_rows):
    """Ctrl-C stores the trees so far, or a model of the sample before the first tree."""
    X, y, _ = noisy
    model = KernelMachineRegressor(**with_options(LOCAL, n_trees=3))
    with interrupted(cell_ensemble.CellEnsemble, "grow", call, once=True), pytest.raises(KeyboardInterrupt):
        model.fit(blocks(X, y))
    assert (model.status_, model.n_trees_) == ("interrupted", 1)
    assert model._local["support"].shape[1] == n_rows
    assert model.score(X, y) > 0.8


def test_a_warm_start_keeps_the_kernel(noisy):
    X, y, weights = noisy
    model = KernelMachineRegressor(**with_options(LOCAL, n_trees=1), warm_start=True)
    model.fit(blocks(X[:1500], y[:1500], weights[:1500]))
    gamma, kernel = model.gamma_, model.kernel_
    model.fit(blocks(X, y, weights))
    assert model.kernel_ == kernel
    np.testing.assert_allclose(model.gamma_, gamma, rtol=1e-6)
    assert model._local["support"].shape[1] == N_ROWS


@pytest.mark.hard
def test_a_warm_start_from_cells_that_do_not_fit_any_more(noisy):
    X, y, _ = noisy
    model = KernelMachineRegressor(solver_params={"max_grids": 20}, warm_start=True, random_state=0).fit(blocks(X, y))
    assert model.features_ == "local"
    model.set_params(max_bytes=2_000_000).fit(blocks(X, y))
    assert model.features_ == "binning"
    assert "none: too many rows for a local model" in model.summary()
