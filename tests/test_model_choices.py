"""Kernel models: validation rows, repeatability, and size."""

import numpy as np
import pytest
from hard import hard
from kernel_models import BINS, FIXED, GROWING, assert_same_state, decisions, with_options
from limits import current_limits
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold, TimeSeriesSplit

from binfeat import (
    KernelMachineClassifier,
    KernelMachineRegressor,
)
from binfeat.length_scales.limits import SEARCH
from binfeat.models import estimator, run
from binfeat.models.solvers import all_rows, growth

pytestmark = pytest.mark.usefixtures("few_grids")


def held_out_of(model, monkeypatch, X, y, groups=None):
    seen, real = [], estimator.fit

    def spy(problem, *rest):
        seen.append((np.sort(problem.train), np.sort(problem.held_out)))
        return real(problem, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(estimator, "fit", spy)
        model.fit(X, y, groups=groups)
    return seen[0]


@pytest.mark.parametrize(("n_rows", "n_held_out"), [(80, 20), (1000, 200), (2100, 210)])
def test_a_larger_share_of_few_rows_validates_random_features(n_rows, n_held_out, rng, monkeypatch):
    X = rng.normal(size=(n_rows, 2))
    for features in ("binning", "auto"):  # with n_grids, "auto" is "binning"
        model = KernelMachineRegressor(**FIXED | {"features": features})
        assert len(held_out_of(model, monkeypatch, X, X[:, 0])[1]) == n_held_out
    exact = KernelMachineRegressor(gamma=0.5, kernel="rbf", alpha=0.1, features="exact", random_state=0)
    assert len(held_out_of(exact, monkeypatch, X, X[:, 0])[1]) == n_rows // 10


def test_which_rows_are_held_out(table, monkeypatch):
    X, y, labels = table
    groups = np.arange(400) // 20
    regressor, classifier = KernelMachineRegressor(**FIXED), KernelMachineClassifier(**FIXED)

    train, held_out = held_out_of(regressor, monkeypatch, X, y)
    assert (len(train), len(held_out)) == (300, 100)
    np.testing.assert_array_equal(np.union1d(train, held_out), np.arange(400))
    other = held_out_of(clone(regressor).set_params(random_state=1), monkeypatch, X, y)[1]
    assert not np.array_equal(held_out, other)
    held_out = held_out_of(classifier, monkeypatch, X, labels)[1]
    assert len(held_out) == 100
    assert abs(np.mean(labels[held_out] == "yes") - np.mean(labels == "yes")) < 0.02

    for model in (regressor, clone(regressor).set_params(cv=GroupKFold(4))):
        train, held_out = held_out_of(model, monkeypatch, X, y, groups)
        assert not set(groups[train]) & set(groups[held_out])
    model = clone(regressor).set_params(cv=GroupShuffleSplit(1, test_size=0.3, random_state=0))
    assert len(set(groups[held_out_of(model, monkeypatch, X, y, groups)[1]])) == 6

    train, held_out = held_out_of(clone(regressor).set_params(cv=TimeSeriesSplit(3)), monkeypatch, X, y)
    assert train.max() < held_out.min()
    held_out = held_out_of(clone(regressor).set_params(cv=KFold(5)), monkeypatch, X, y)[1]
    np.testing.assert_array_equal(held_out, np.arange(80))
    assert len(held_out_of(clone(classifier).set_params(cv=4), monkeypatch, X, labels)[1]) == 100

    rows = np.arange(400)
    for given in ([(rows[:300], rows[350:])], [(rows < 300, rows >= 350)], [(range(300), list(range(350, 400)))]):
        train, held_out = held_out_of(clone(regressor).set_params(cv=given), monkeypatch, X, y)
        np.testing.assert_array_equal(train, rows[:300])
        np.testing.assert_array_equal(held_out, rows[350:])


def test_the_search_never_looks_at_rows_that_it_is_not_given(table, rng):
    X, _, labels = table
    cv = [(np.arange(250), np.arange(250, 320))]
    model = KernelMachineClassifier(random_state=0, cv=cv)
    changed = labels.copy()
    changed[320:] = rng.permutation(changed[320:])
    assert (changed != labels).any()
    assert_same_state(model.fit(X, labels), clone(model).fit(X, changed))


def test_without_refit_the_rows_held_out_only_choose(table, rng):
    X, _, labels = table
    cv = [(np.arange(300), np.arange(300, 400))]
    model = KernelMachineClassifier(**FIXED, cv=cv, refit=False)
    changed = labels.copy()
    changed[300:] = rng.permutation(changed[300:])
    kept = model.fit(X, labels).feature_coef_
    np.testing.assert_array_equal(clone(model).fit(X, changed).feature_coef_, kept)
    with_all = clone(model).set_params(refit=True)
    assert np.count_nonzero(with_all.fit(X, labels).feature_coef_) > np.count_nonzero(kept)
    assert not np.array_equal(clone(with_all).fit(X, changed).feature_coef_, with_all.feature_coef_)


# Repeatability.


@pytest.mark.parametrize(
    "features",
    ["exact", *hard("auto", "binning")],
)
def test_the_same_bits_again_and_for_any_number_of_threads(table, threads, features):
    threads(2)
    X, y = table[0][:200], table[1][:200]
    options = {"features": features, "solver_params": {"max_grids": 60}, "random_state": 3}
    model = KernelMachineRegressor(**options, n_jobs=1).fit(X, y)
    for n_jobs in (1, 2):
        other = KernelMachineRegressor(**options, n_jobs=n_jobs).fit(X, y)
        assert_same_state(model, other)
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
    assert not np.array_equal(model.set_params(random_state=4).fit(X, y).predict(X), other.predict(X))


def test_random_states(table):
    X, y, _ = table
    options = {**FIXED, "random_state": np.random.RandomState(0)}
    first = KernelMachineRegressor(**options).fit(X, y).predict(X)
    assert not np.array_equal(first, KernelMachineRegressor(**options).fit(X, y).predict(X))
    options["random_state"] = np.random.RandomState(0)
    np.testing.assert_array_equal(KernelMachineRegressor(**options).fit(X, y).predict(X), first)
    assert KernelMachineRegressor(**{**FIXED, "random_state": None}).fit(X, y).score(X, y) > 0.5


def test_fit_again_forgets(table):
    X, y, _ = table
    model = KernelMachineRegressor(**FIXED).fit(X, y)
    expected = model.predict(X)
    model.fit(X[:50, :2], -y[:50]).predict(X[:, :2])
    np.testing.assert_array_equal(model.fit(X, y).predict(X), expected)
    exact = {"features": "exact", "solver_params": None}
    assert_same_state(model.set_params(**exact).fit(X, y), KernelMachineRegressor(**{**FIXED, **exact}).fit(X, y))


# Size, time limits, interrupts.


def test_grids_are_added_until_they_gain_little(table):
    X, y, _ = table
    y = y + np.random.default_rng(4).normal(size=y.size)
    model = KernelMachineRegressor(**with_options(GROWING, max_grids=5000)).fit(X, y)
    n_grids, errors = model.learning_curve_.T
    assert n_grids.size > 1
    assert (np.diff(n_grids) > 0).all()
    assert errors[-1] < errors[0]
    assert model.n_grids_ == n_grids[-1] < 5000
    assert model.status_ == "converged"


def test_budget_of_grids(table):
    X, y, _ = table
    model = KernelMachineRegressor(**with_options(BINS, max_grids=7)).fit(X, y)
    assert model.n_grids_ == 7
    assert model.score(X, y) > 0.5


class Clock:
    """A clock that ticks whenever it is read."""

    def __init__(self, tick):
        self.tick, self.now = tick, 0.0

    def __call__(self):
        self.now += self.tick
        return self.now


@pytest.mark.parametrize("max_seconds", [0, 100, 500, 1000])
def test_budget_of_seconds(table, monkeypatch, max_seconds, clock_of_fits):
    """Each new grid takes a second, and each grid in a solve half a second."""
    X, y, _ = table
    clock = Clock(0.0)
    clock_of_fits(clock)
    grow, solve = growth.Growth.grow, growth.Growth.solve

    def slow_grow(self, n_grids):
        clock.now += n_grids - self.n_grids
        grow(self, n_grids)

    def slow_solve(self, *args):
        clock.now += 0.5 * self.n_grids
        return solve(self, *args)

    monkeypatch.setattr(growth.Growth, "grow", slow_grow)
    monkeypatch.setattr(growth.Growth, "solve", slow_solve)
    model = KernelMachineRegressor(**with_options(GROWING, max_grids=50_000), max_seconds=max_seconds).fit(X, y)
    assert model.status_ == "budget"
    assert ("limit", "max_seconds") in model.decisions_[["what", "choice"]].tolist()
    if max_seconds <= 100:  # with fewer grids there is no model
        assert model.n_grids_ == (40 if max_seconds else 20)
    else:
        assert max_seconds / 2 < clock.now <= max_seconds
    assert model.score(X, y) > 0.5
    assert model.decisions_["seconds"].max() <= clock.now


@pytest.mark.parametrize(("max_seconds", "n_features", "status"), [(3, "32", "budget"), (50, "128", "converged")])
def test_seconds_limit_the_fourier_features(rng, limits, monkeypatch, clock_of_fits, max_seconds, n_features, status):
    """A solution takes a second."""
    limits(n_fourier=32)
    now, solve = [0.0], growth.Growth.solve

    def slow_solve(self, *args):
        now[0] += 1.0
        return solve(self, *args)

    clock_of_fits(lambda: now[0])
    monkeypatch.setattr(growth.Growth, "solve", slow_solve)
    X = rng.normal(size=(200, 2))
    options = {"features": "fourier", "kernel": "rbf", "gamma": 1.0, "alpha": 1e-3, "random_state": 0}
    model = KernelMachineRegressor(**options, max_seconds=max_seconds).fit(X, np.sin(2 * X).prod(axis=1))
    assert (dict(decisions(model))["Fourier features"], model.status_) == (n_features, status)
    assert now[0] <= max_seconds


def test_a_time_limit_of_zero_is_used_up_after_many_seconds(monkeypatch):
    seconds = iter([0.0, 5.0])
    monkeypatch.setattr(run, "_clock", lambda: next(seconds))
    with np.errstate(over="raise"):
        assert run.Clock(0.0).share_used(run.Phase.SEARCH) == 1.0


def test_an_ample_budget_changes_nothing(table):
    X, y, _ = table
    ample, free = (KernelMachineRegressor(**GROWING, max_seconds=seconds).fit(X, y) for seconds in (1e6, None))
    assert_same_state(ample, free)


def test_a_third_of_the_seconds_at_most_goes_to_the_widths(table, clock_of_fits, limits):
    limits(sample_grids=(5, 40), n_fourier=128)  # all steps
    X, y, _ = table
    looks = {}  # readings of the clock after the first steps
    for seconds in (6, 30, 1000):
        clock_of_fits(Clock(1.0))
        model = KernelMachineRegressor(**BINS, max_seconds=seconds).fit(X, y)
        looks[seconds] = len(model.length_scale_errors_) / SEARCH.look_steps - 1
    assert looks[6] <= 2
    assert looks[30] <= 10
    assert looks[6] < looks[30] < looks[1000]


def test_large_tables_take_late_rounds_and_finer_grids(table, limits):
    X, y, _ = table
    limits(sample_rows=100, sample_grids=(5, 40), n_fourier=128)
    model = KernelMachineRegressor(**BINS).fit(X, y)
    assert "overall length scale" in model.decisions_["what"]
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize(
    ("fitting", "expected"),
    [((80, 40), [20, 10]), ((200, 50), [20, 10]), ((10, 10), [20, 10]), ((80, 19), [20, 19]), ((200, 150), [20, 20])],
)
def test_grids_of_a_factor_are_proportional_to_those_that_fit_in_memory(table, limits, monkeypatch, fitting, expected):
    """Larger factors are not tried if a few grids do not fit. The model starts with those that fit."""
    X, y, _ = table
    limits(sample_rows=100, sample_grids=(5, 40), n_fourier=128)
    numbers, compared, grow = iter(fitting), [], growth.Growth.grow

    def noted(self, n_grids):
        compared.append(n_grids)
        grow(self, n_grids)

    monkeypatch.setattr(all_rows.AllRows, "most_grids", lambda self, law: next(numbers, fitting[-1]))
    monkeypatch.setattr(growth.Growth, "grow", noted)
    KernelMachineRegressor(**BINS).fit(X, y)
    assert compared[:2] == expected


@pytest.mark.parametrize("features", ["exact", *hard("binning")])
def test_a_search_ends_where_nothing_is_left_to_gain(rng, limits, features):
    limits(sample_grids=(5, 40), n_fourier=128)  # all steps
    X = rng.normal(size=(600, 4))
    X[:, 0] = np.sign(X[:, 0])
    clear, noisy = X[:, 0] > 0, X[:, 0] + 0.1 * rng.normal(size=600) > 0
    noisy[::20] ^= True
    options = {"features": features, "random_state": 0}
    n_steps = current_limits().n_steps

    model = KernelMachineClassifier(**options).fit(X[:450], clear[:450])
    assert len(model.length_scale_errors_) < n_steps
    assert model.score(X[450:], clear[450:]) == 1.0
    model = KernelMachineClassifier(**options).fit(X[:450], noisy[:450])
    assert len(model.length_scale_errors_) == n_steps
    model = KernelMachineClassifier(**options, scoring="neg_log_loss").fit(X[:450], clear[:450])
    assert len(model.length_scale_errors_) == n_steps  # the possible gain in this score is unknown
