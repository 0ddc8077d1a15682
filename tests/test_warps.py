"""Maps of inputs that are learned: what the search finds, where there is nothing to find, and what machines do."""

import pickle

import naive
import numpy as np
import pytest
from hard import hard
from machines import assert_same_state

from binfeat import KernelMachineRegressor, kernels
from binfeat._machine.search import kernel_search, length_scales, warps

CATEGORICAL = np.arange(3) == 2


def searched(X, y, *, weights=None, categorical=CATEGORICAL, alpha=None, n_steps=30):
    Y = ((y - y.mean()) / y.std()).reshape(-1, 1)
    search = length_scales.LengthScaleSearch(kernels.Laplacian(), X, Y, weights, categorical, 0, alpha=alpha)
    return search.run(n_steps, 150)


def steps(rng, n_rows):
    """The target jumps where the first input is 0.5, or the second is 30; the last is a category."""
    X = rng.uniform(-2, 2, size=(n_rows, 3)) * [1, 100, 1]
    X[:, 2] = rng.integers(3, size=n_rows)
    return X, 1.0 * ((X[:, 0] > 0.5) ^ (X[:, 1] > 30)) + 0.2 * (X[:, 2] == 1) + 0.05 * rng.normal(size=n_rows)


@pytest.fixture
def rows(rng):
    return steps(rng, 600)


def test_finds_a_step(rows):
    search = searched(*rows)
    warp_search = warps.WarpSearch(search, 0).run(30, lambda: True)
    assert warp_search.pays()
    assert warp_search.error < 0.8 * search.error_on(200)
    grid = np.zeros((81, 3))
    grid[:, 0] = np.linspace(-2, 2, 81)
    rises = np.diff(warp_search(grid)[:, 0])
    assert (rises >= 0).all()
    assert grid[rises.argmax(), 0] == pytest.approx(0.5, abs=0.3)
    assert rises.max() > 3 * np.median(rises)
    codes = warp_search(np.tile([[0.0], [1.0], [2.0]], 3))[:, 2]
    assert len(set(codes)) == 3  # categories stay apart


def test_error_is_that_of_the_laplacian_of_mapped_rows(rows):
    search = searched(*rows)
    warp_search = warps.WarpSearch(search, 0).run(8, lambda: True)
    some = warp_search._unseen[:40]
    X = search.rows.part(some)[0]
    mapped = warp_search(rows[0][some])
    K = naive.kernel_matrix(mapped, mapped, search.framed_gamma, lambda t: np.exp(-t), categorical={2})
    np.testing.assert_allclose(warp_search._matrix_of(X), K, atol=1e-5)


@pytest.mark.hard
def test_does_not_pay_where_there_is_nothing_to_learn(rng):
    X = rng.normal(size=(400, 20))
    warp_search = warps.WarpSearch(searched(X, rng.normal(size=400), categorical=np.zeros(20, bool), n_steps=60), 0)
    assert not warp_search.run(30, lambda: True).pays()


@pytest.mark.hard
def test_a_small_gain_is_not_worth_a_second_search(rows, monkeypatch):
    warp_search = warps.WarpSearch(searched(*rows), 0).run(0, lambda: True)
    before = warp_search._errors_before
    for share, pays in ((0.98, False), (0.96, True)):
        monkeypatch.setattr(warp_search, "_errors", lambda matrix_of, alpha, share=share: share * before)
        assert warp_search.pays() == pays


@pytest.mark.hard
def test_rows_without_weight_have_no_say(rows, rng):
    X, y = rows
    weights = np.tile([0.0, 2.0], 300)
    noise = np.where(weights > 0, 0.0, 100 * rng.normal(size=600))
    found = []
    for some in (0.0, noise):
        Y = ((y + some - y.mean()) / y.std()).reshape(-1, 1)
        search = length_scales.LengthScaleSearch(kernels.Laplacian(), X, Y, weights, CATEGORICAL, 0).run(10, 150)
        found.append(warps.WarpSearch(search, 0).run(5, lambda: True)(X))
    np.testing.assert_array_equal(*found)


@pytest.mark.hard
def test_a_given_penalty_is_kept_and_without_steps_nothing_is_mapped(rows):
    search = searched(*rows, alpha=0.07)
    warp_search = warps.WarpSearch(search, 0).run(0, lambda: True)
    assert not warp_search.pays()  # it is the same kernel
    gaps = np.ptp(warp_search(rows[0]) - search.rows.frame.columns(rows[0]).T, axis=0)
    np.testing.assert_allclose(gaps, 0.0, atol=1e-5)
    assert warp_search.run(3, lambda: True).alpha == pytest.approx(0.07)


def test_where_it_is_tried(rows):
    X, y = rows
    search = searched(X, y)
    assert warps.WarpSearch.suits(search, CATEGORICAL)
    assert not warps.WarpSearch.suits(search, np.ones(3, bool))
    radial = length_scales.LengthScaleSearch(kernels.RBF(), X, y[:, None], None, CATEGORICAL, 0)
    assert not warps.WarpSearch.suits(radial, CATEGORICAL)


def test_few_rows_of_many_inputs_are_not_mapped(rng):
    X, categorical = rng.normal(size=(400, 60)), np.zeros(60, bool)
    assert not warps.WarpSearch.suits(searched(X, X[:, 0], categorical=categorical), categorical)


@pytest.fixture(scope="module")
def few_rows_are_enough():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_search, "FEWEST_ROWS", 300)
        yield


@pytest.fixture(scope="module", params=["exact", *hard("binning")])
def machine(request, few_rows_are_enough):
    X, y = steps(np.random.default_rng(1), 900)
    options = {"features": request.param, "n_grids": 100, "categorical_features": [2], "random_state": 0}
    return KernelMachineRegressor(**options).fit(X[:600], y[:600]), X, y


def test_machines_take_it(machine):
    fitted, X, y = machine
    assert fitted.scaling_ == "warped"
    assert ("scaling", "warped") in fitted.decisions_[["what", "choice"]].tolist()
    plain = KernelMachineRegressor(**fitted.get_params() | {"scaling": "standard"}).fit(X[:600], y[:600])
    errors = [((y[600:] - one.predict(X[600:])) ** 2).mean() for one in (fitted, plain)]
    assert errors[0] < 0.9 * errors[1]


def test_round_trips_and_warm_starts(machine):
    sio = pytest.importorskip("skops.io")
    fitted, X, y = machine
    loaded = sio.loads(sio.dumps(fitted), trusted=["binfeat.machine.KernelMachineRegressor"])
    for copy in (pickle.loads(pickle.dumps(fitted)), loaded):
        np.testing.assert_array_equal(copy.predict(X), fitted.predict(X))
        assert_same_state(copy, fitted)
    warm = loaded.set_params(warm_start=True).fit(X[:700], y[:700])
    assert warm.scaling_ == "warped"
    np.testing.assert_array_equal(warm._scaler["ranks"], fitted._scaler["ranks"])
