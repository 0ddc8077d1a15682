"""Kernel models stopped by Ctrl-C or a callback."""

from dataclasses import replace

import numpy as np
import pytest
from callbacks import Callback
from hard import hard
from interrupts import SEARCH_START, SEARCH_STEP, interrupted
from kernel_models import BINS, GROWING
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from binfeat import KernelMachineClassifier, KernelMachineRegressor, blocks
from binfeat.features.binning import bin_map
from binfeat.linear import cg
from binfeat.models.solvers import growth, sizes

pytestmark = pytest.mark.usefixtures("few_grids")


@pytest.mark.parametrize(
    ("home", "name", "call"),
    [
        (growth, "count_bins", 2),  # in the second batch
        (growth.Sizing, "refit", 1),
        *hard((bin_map, "find_codes", 2), (growth.Growth, "solve", 4), (growth.Growth, "add_held_out_rows", 1)),
    ],
)
def test_ctrl_c_keeps_the_model_so_far(table, home, name, call):
    X, _, labels = table
    model = KernelMachineClassifier(**GROWING)
    with interrupted(home, name, call, once=True), pytest.raises(KeyboardInterrupt):
        model.fit(X, labels)
    assert model.status_ == "interrupted"
    assert model.n_grids_ == model.learning_curve_[-1, 0]
    assert model.score(X, labels) > 0.8
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.predict(X[:1]) in ("yes", "no")
    assert model.fit(X, labels).status_ == "converged"


def test_ctrl_c_says_where_the_model_is(table):
    """After ``model = KernelMachineRegressor().fit(X, y)`` there is no variable with the interrupted model."""
    X, _, labels = table
    model = KernelMachineClassifier(**GROWING)
    with interrupted(growth.Growth, "solve", 4, once=True), pytest.raises(KeyboardInterrupt) as stopped:
        model.fit(X, labels)
    assert stopped.value.estimator is model
    (note,) = stopped.value.__notes__
    assert "to a variable before the fit" in note
    assert "sys.last_value.estimator" in note
    with interrupted(growth.Growth, "__init__"), pytest.raises(KeyboardInterrupt) as stopped:
        KernelMachineClassifier(**GROWING).fit(X, labels)
    assert not hasattr(stopped.value, "__notes__")


def interrupted_solver(solve, call):
    """Return the solver, with Ctrl-C after an iteration of one call."""
    left = [call]

    def stop(state):
        raise KeyboardInterrupt

    def wrapped(system, alpha, options, **start):
        left[0] -= 1
        return solve(system, alpha, replace(options, callback=stop) if left[0] == 0 else options, **start)

    return wrapped


def test_ctrl_c_in_a_solve(table, monkeypatch):
    """With given length scales, a few grids are fitted quickly before there are any; later the iterate is stored."""
    X, y, _ = table
    real, model = cg.solve, KernelMachineRegressor(**GROWING)
    statuses = []
    for call in range(1, 40, 4):
        monkeypatch.setattr(cg, "solve", interrupted_solver(real, call))
        model = KernelMachineRegressor(**GROWING)
        try:
            model.fit(X, y)
        except KeyboardInterrupt:
            statuses.append(model.status_)
            assert model.score(X, y) > 0.3
    assert len(statuses) > 3
    assert set(statuses) == {"interrupted"}
    assert model.status_ == "budget"
    assert ("limit", "max_grids") in model.decisions_[["what", "choice"]].tolist()


def interrupt_a_fit(model, table, place, call):
    """Fit with Ctrl-C at one call of a function."""
    X, y, labels = table
    with interrupted(*place, call, once=True), pytest.raises(KeyboardInterrupt):
        model.fit(X, labels if hasattr(model, "predict_proba") else y)


@pytest.mark.parametrize("features", ["exact", "binning", "fourier"])
@pytest.mark.parametrize("call", [3, 40], ids=["early", "later"])
def test_ctrl_c_in_the_search_keeps_a_model_with_its_length_scales(table, limits, features, call):
    limits(sample_grids=(5, 40), n_fourier=128)  # all steps
    model = KernelMachineRegressor(features=features, random_state=0, n_jobs=1)
    interrupt_a_fit(model, table, SEARCH_STEP, call)
    assert (model.status_, model.features_) == ("interrupted", features)
    assert len(model.length_scale_errors_) == len(model.length_scale_gammas_) < 60
    assert model.score(*table[:2]) > 0.5
    assert "length scales" in model.decisions_["what"]


@pytest.mark.hard
def test_ctrl_c_in_the_search_of_many_rows_takes_some_of_them(rng):
    X = rng.normal(size=(4600, 2))
    model = KernelMachineClassifier(features="exact", random_state=0, n_jobs=1)
    own = X, None, np.where(X[:, 0] > 0.3, "yes", "no")
    interrupt_a_fit(model, own, SEARCH_STEP, 12)
    assert model.feature_coef_.shape == (1, 3460)  # 3,000 training rows and the validation rows
    assert model.score(X, own[2]) > 0.9


def test_ctrl_c_in_the_search_of_a_source_keeps_a_model_of_its_sample(table, sampled_rows):
    X, y, _ = table
    sampled_rows(100)
    model = KernelMachineRegressor(**BINS, n_jobs=1)
    with interrupted(*SEARCH_STEP, 12, once=True), pytest.raises(KeyboardInterrupt):
        model.fit(blocks([(X[:200], y[:200]), (X[200:], y[200:])]))
    assert model.status_ == "interrupted"
    assert model.score(X, y) > 0.3


@pytest.mark.parametrize(
    ("options", "name"),
    [({}, "noise_model_of"), ({"features": "binning"}, "_rises"), ({"loss": "poisson"}, "solver_again")],
)
def test_ctrl_c_after_the_solution_keeps_it(table, few_steps, options, name):
    X, y, _ = table
    model = KernelMachineRegressor(target_transform=None, random_state=0, **options)
    with interrupted("binfeat.models.pipeline", name, once=True), pytest.raises(KeyboardInterrupt):
        model.fit(X, np.exp(y))
    whole = clone(model).fit(X, np.exp(y))
    assert (model.status_, whole.status_) == ("interrupted", "converged")
    np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=0.1 if "loss" in options else 1e-6)
    assert np.isfinite(model.feature_importances_).all()
    if not options:
        with pytest.raises(ValueError, match="no quantiles, because fit was interrupted"):
            model.predict_quantiles(X)


def test_ctrl_c_before_there_is_a_model(table):
    for model in (KernelMachineRegressor(**BINS), KernelMachineClassifier(**BINS)):
        interrupt_a_fit(model, table, SEARCH_START, 1)
        with pytest.raises(NotFittedError):
            model.predict(table[0])
        with pytest.raises(NotFittedError):
            model.summary()


def test_ctrl_c_twice_leaves_nothing(table):
    model = KernelMachineRegressor(**BINS)
    with interrupted(growth.Growth, "grow"):
        interrupt_a_fit(model, table, SEARCH_STEP, 12)
    with pytest.raises(NotFittedError):
        model.predict(table[0])


def test_callbacks_stop_a_fit(table):
    X, y, _ = table
    watcher = Callback("step")
    model = KernelMachineRegressor(**BINS).set_callbacks(watcher).fit(X, y)
    assert watcher.ended
    assert watcher.n_tasks > len(model.learning_curve_)
    for stop_at in (1, watcher.n_tasks - 1):
        stopper = Callback("step", stop_at=stop_at)
        stopped = KernelMachineRegressor(**BINS).set_callbacks(stopper).fit(X, y)
        assert stopped.status_ == "stopped"
        assert stopper.ended
        assert stopped.score(X, y) > 0.5


@pytest.mark.parametrize("stop_at", [1, 2])
def test_callbacks_stop_further_fourier_features(rng, limits, stop_at):
    limits(n_fourier=32)
    X, y = rng.normal(size=(200, 2)), rng.normal(size=200)
    model = KernelMachineRegressor(features="fourier", kernel="rbf", gamma=1.0, alpha=1.0, random_state=0)
    assert model.set_callbacks(Callback("step", stop_at=stop_at)).fit(X, y).status_ == "stopped"


@pytest.mark.parametrize("features", ["exact", *hard("local", "binning")])
def test_newton_steps_keep_the_status_of_a_stopped_fit(table, features):
    X, y, _ = table
    model = KernelMachineRegressor(features=features, loss="poisson", random_state=0)
    assert model.set_callbacks(Callback("step", stop_at=1)).fit(X, np.exp(y)).status_ == "stopped"


@pytest.mark.parametrize("Estimator", hard(KernelMachineRegressor, KernelMachineClassifier))
def test_a_limit_of_time_leaves_as_many_rows_as_cells_can_be_solved_of(
    rng, clock_of_fits, limits, monkeypatch, Estimator
):
    clock_of_fits(lambda: 0.0)
    monkeypatch.setattr(sizes, "_cell_seconds", lambda n_rows, n_inputs: 0.01)
    limits(n_steps=5, exact_rows=300, cell_rows=300)
    X = rng.uniform(-1, 1, size=(9000, 3))
    y = np.sin(3 * X[:, 0]) + X[:, 1]
    y = y if Estimator is KernelMachineRegressor else y > 0
    fitted = [Estimator(max_seconds=0.2, random_state=0).fit(X, y) for _ in range(2)]
    for model in fitted:
        assert (model.features_, model.status_) == ("local", "budget")
        assert 3000 < model._local["support"].shape[1] < 9000
        assert "of 9,000, to meet max_seconds" in model.summary()
        assert model.score(X, y) > 0.95
    np.testing.assert_array_equal(*(model.predict(X) for model in fitted))
    assert (
        "max_seconds"
        not in Estimator(max_seconds=0.2, solver_params={"max_grids": 5}, features="binning").fit(X, y).summary()
    )
    assert (
        "max_seconds"
        not in Estimator(max_seconds=100.0, solver_params={"n_trees": 1, "cell_rows": 300}).fit(X, y).summary()
    )


def test_a_distant_time_limit_changes_nothing(rng):
    X = rng.normal(size=(150, 3))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=150)
    limited, free = (KernelMachineRegressor(random_state=0, max_seconds=s).fit(X, y) for s in (1000.0, None))
    np.testing.assert_array_equal(limited.predict(X), free.predict(X))
