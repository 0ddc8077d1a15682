"""The search for a linear map of the inputs: its results, and tables without a useful map."""

import naive
import numpy as np
import pytest
from hard import hard

from binfeat import KernelMachineRegressor, kernels
from binfeat.length_scales import leave_one_out, search
from binfeat.models.search import kernel_search, linear_maps

CATEGORICAL = np.arange(4) == 3


def searched(X, y, *, weights=None, categorical=CATEGORICAL, alpha=None, n_steps=30):
    Y = ((y - y.mean()) / y.std()).reshape(-1, 1)
    steps = search.LengthScaleSearch(kernels.Matern(1.5), X, Y, weights, categorical, 0, alpha=alpha)
    steps.run(30, 150)
    return linear_maps.LinearMapSearch(steps, 0).run(n_steps, lambda: True), steps


@pytest.fixture
def rows(rng):
    """Return rows with a sine along the diagonal of two inputs as target; the last input is a category."""
    X = rng.uniform(-2, 2, size=(600, 4)) * [1, 100, 1, 1]
    X[:, 3] = rng.integers(3, size=600)
    return X, np.sin(2 * X[:, 0] + X[:, 1] / 50) + 0.5 * (X[:, 3] == 1) + 0.1 * rng.normal(size=600)


def test_finds_a_diagonal(rows):
    found, steps = searched(*rows)
    assert found.is_better()
    scales = found.found.kernel.main
    assert found.found.error == found.error < 0.8 * steps.found_on(search.thinned(steps.used, 200)).error
    np.testing.assert_allclose(np.linalg.norm(scales.linear_map, axis=1), 1.0)
    np.testing.assert_array_equal(scales.linear_map[3], [0, 0, 0, 1])  # the category is not mapped
    np.testing.assert_array_equal(scales.linear_map[:3, 3], 0.0)
    assert scales.gamma[3] == steps.gamma[3]
    steepest = np.linalg.svd(np.sqrt(scales.gamma[:3, None]) * scales.linear_map[:3] * [[1], [100], [1]])[0][:, 0]
    assert abs(steepest @ [1, 1, 0]) / np.sqrt(2) > 0.98


def test_other_kernels_are_compared_with_a_map_on_the_same_rows(rng, limits, monkeypatch):
    X = rng.uniform(-2, 2, size=(600, 3))
    y = 0.4 * np.sin(3 * X[:, 0] + 3 * X[:, 1]) + 0.6 * np.abs(X[:, 2]) + 0.2 * rng.normal(size=600)
    limits(n_steps=30)
    searches, maps, run, is_better = [], [], kernel_search.KernelSearch.run, linear_maps.LinearMapSearch.is_better
    monkeypatch.setattr(kernel_search.KernelSearch, "run", lambda self: searches.append(self) or run(self))
    monkeypatch.setattr(linear_maps.LinearMapSearch, "is_better", lambda self: maps.append(self) or is_better(self))
    KernelMachineRegressor(target_transform=None, random_state=0).fit(X, y)
    (kernels_found,), (linear_map,) = searches, maps
    grids, radial = kernels_found._found
    assert radial.kernel.main.linear_map is not None
    assert radial.error == linear_map.error
    assert grids.error == kernels_found._searches[0].found_on(linear_map.unseen).error


@pytest.mark.hard
def test_does_not_pay_where_it_fits_noise(rng):
    """With many inputs and few rows, only rows used by the steps have lower leave-one-out errors."""
    X = rng.normal(size=(300, 30))
    found, steps = searched(X, X[:, 0] + rng.normal(size=300), categorical=np.zeros(30, bool))
    X, Y, weights = steps.part(found._seen)
    kernels_of_both = (matrix(X, X, found._gamma) for matrix in (steps.matrix, found._matrix))
    before, after = (leave_one_out.weighted_squares(K, found.alpha, weights, Y).mean() for K in kernels_of_both)
    assert after < 0.9 * before
    assert not found.is_better()


def test_rows_without_weight_have_no_say(rows, rng):
    X, y = rows
    weights = np.tile([0.0, 2.0], 300)
    noise = np.where(weights > 0, 0.0, 100 * rng.normal(size=600))
    first, second = (
        linear_maps.LinearMapSearch(search_of(X, y, y + some, weights), 0).run(5, lambda: True) for some in (0.0, noise)
    )
    np.testing.assert_array_equal(first.linear_map, second.linear_map)
    assert not np.array_equal(first.linear_map, np.eye(4))


def search_of(X, scale, y, weights):
    Y = ((y - scale.mean()) / scale.std()).reshape(-1, 1)
    return search.LengthScaleSearch(kernels.RBF(), X, Y, weights, CATEGORICAL, 0).run(10, 150)


def test_errors_are_of_rows_that_no_step_sees(rows):
    X, y = rows
    found, steps = searched(X, y, n_steps=0)
    assert found.unseen.size == 200
    assert not np.isin(found.unseen, found._seen).any()
    assert found._n_rows <= 0.6 * 400
    np.testing.assert_array_equal(found.linear_map, np.eye(4))
    assert not found.is_better()  # the kernel is the same
    np.testing.assert_allclose(found.found.kernel.main.gamma, steps.gamma)


def test_no_step_sees_the_groups_of_unseen_rows(rows):
    X, y = rows
    groups = np.arange(600) // 10
    steps = search.LengthScaleSearch(kernels.Matern(1.5), X, y[:, np.newaxis], None, CATEGORICAL, 0, groups=groups)
    steps.run(2, 150)
    found = linear_maps.LinearMapSearch(steps, 0).run(2, lambda: True)
    assert 150 < found.unseen.size < 250
    assert not np.isin(groups[found.unseen], groups[found._seen]).any()


def test_a_group_of_a_single_row_can_contain_all_rows_of_the_steps(rows):
    X, y = rows
    groups = (np.arange(600) == 0).astype(int)
    steps = search.LengthScaleSearch(kernels.Matern(1.5), X, y[:, np.newaxis], None, CATEGORICAL, 0, groups=groups)
    steps.run(2, 150)
    searches = [linear_maps.LinearMapSearch(steps, seed).run(2, lambda: True) for seed in range(4)]
    assert {found._seen.size for found in searches} == {1, 599}
    assert all(np.isfinite(found.linear_map).all() for found in searches)


def test_unseen_rows_must_be_predicted_better_too(rows, monkeypatch):
    """A map with lower leave-one-out errors does not pay if the other rows predict no better with it."""
    found, steps = searched(*rows)
    assert found._gains(2.0)
    assert found._predicts_better()
    X, Y, _ = steps.part(found.unseen)
    known = steps.part(found._seen)
    expected = naive_squares(found._matrix, known, (X, Y), found._gamma, found.alpha)
    np.testing.assert_allclose(found._prediction_errors(found._matrix, found.alpha), expected, rtol=0.02, atol=1e-5)
    monkeypatch.setattr(found, "_prediction_errors", lambda matrix, alpha: np.ones(200))
    assert not found.is_better()


def test_a_map_that_is_given_up_computes_its_error_once(rows, monkeypatch):
    X, _ = rows
    calls, errors = [], linear_maps.LinearMapSearch._errors
    monkeypatch.setattr(
        linear_maps.LinearMapSearch, "_errors", lambda self, *given: calls.append(given) or errors(self, *given)
    )
    found, _ = searched(X, np.sin(X[:, 0]), n_steps=4)
    assert not found.is_better()
    assert len(calls) == 2  # also of the search before


def naive_squares(matrix, known, unseen, gamma, alpha):
    """Return squared errors of rows, predicted by kernel ridge regression of other rows."""
    (X, Y, _), (X_unseen, Y_unseen) = known, unseen
    K, K_unseen = (matrix(rows, X, gamma).astype(np.float64) for rows in (X, X_unseen))
    return ((Y_unseen - (K_unseen + 1.0) @ naive.kernel_ridge(K, Y, alpha)) ** 2).mean(axis=1)


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        *hard(([False], 2)),
        ([True, False], 4),
        *hard(([True, True], 8)),
    ],
)
def test_looks_without_a_gain_are_the_end(rows, monkeypatch, gains, expected):
    n_steps, looks, asked = [], iter(gains), []
    monkeypatch.setattr(linear_maps.LinearMapSearch, "_step", lambda self, progress: n_steps.append(progress))
    monkeypatch.setattr(linear_maps.LinearMapSearch, "_gains", lambda self, n: asked.append(n) or next(looks))
    searched(*rows, n_steps=8)
    assert len(n_steps) == expected
    assert asked == [1.0, 1.5][: len(gains)]


def test_a_given_penalty_is_kept_and_time_ends_the_search(rows, monkeypatch):
    monkeypatch.setattr(linear_maps.LinearMapSearch, "_gains", lambda self, n: True)
    found, steps = searched(*rows, alpha=0.07, n_steps=3)
    assert found.alpha == pytest.approx(0.07)
    looks = iter([True, True, False])
    stopped = linear_maps.LinearMapSearch(steps, 0).run(3, lambda: next(looks))
    assert not np.array_equal(stopped.linear_map, np.eye(4))
    assert not np.array_equal(stopped.linear_map, found.linear_map)


@pytest.mark.parametrize(("n_rows", "suits"), [(600, True), (290, False)])
def test_where_it_is_tried(rows, n_rows, suits):
    X, y = rows
    _, steps = searched(X[:n_rows], y[:n_rows], n_steps=0)
    assert linear_maps.LinearMapSearch.suits(steps, CATEGORICAL) == suits
    assert not linear_maps.LinearMapSearch.suits(steps, np.arange(4) > 0)  # one numeric input


@pytest.mark.hard
def test_more_entries_than_rows_are_not_learned(rng):
    X, categorical = rng.normal(size=(400, 21)), np.zeros(21, bool)
    _, steps = searched(X, X[:, 0], n_steps=0, categorical=categorical)
    assert not linear_maps.LinearMapSearch.suits(steps, categorical)
    assert linear_maps.LinearMapSearch.suits(steps, np.arange(21) == 5)


@pytest.mark.hard
def test_rows_that_repeat(rows):
    X, y = (np.repeat(part[:100], 5, axis=0) for part in rows)
    found, _ = searched(X, y)
    assert np.isfinite(found.linear_map).all()
    found.is_better()
    assert np.isfinite(found.found.kernel.main.gamma).all()
