"""Huber's loss: weights, and kernel models on targets with gross errors."""

from dataclasses import replace

import naive
import numpy as np
import pytest
from hard import hard
from kernel_models import FIXED, with_options
from sklearn.datasets import make_friedman1

from binfeat import KernelMachineRegressor, blocks
from binfeat.models.kernel_algebra.loss import LOSSES, SquaredError
from binfeat.models.problem import Problem, with_medians_or_means
from binfeat.models.table.targets import Targets, TargetTransform

EXACT = {"features": "exact", "random_state": 0}
pytestmark = pytest.mark.usefixtures("few_steps")


@pytest.fixture(scope="module")
def dirty():
    """Return Friedman's function: training rows, targets with and without 3 % of gross errors, exact test rows."""
    X, y = make_friedman1(900, n_features=6, random_state=0)
    rng = np.random.default_rng(0)
    clean = y[:500] + rng.normal(size=500)
    wrong = clean.copy()
    rows = rng.choice(500, 15, replace=False)
    wrong[rows] += rng.choice([-1, 1], 15) * rng.uniform(10, 100, 15) * y.std()
    return X[:500], clean, wrong, X[500:], y[500:]


def weights_of(residuals):
    """Return weights of rows with these residuals, which also determine the scales."""
    nothing = np.zeros(residuals.shape)
    return LOSSES["huber"].scaled(residuals, None).squares(residuals, nothing, None)[1]


@pytest.mark.parametrize("n_targets", [1, 3])
def test_weights_against_the_twin(rng, n_targets):
    residuals = rng.standard_t(2, size=(101, n_targets)) * np.arange(1, n_targets + 1)
    found = weights_of(residuals)
    np.testing.assert_allclose(found[:, 0], naive.huber_weights(residuals, np.ones(101)), rtol=1e-12)


def test_weights_where_deviations_are_zero():
    zeros = np.zeros((5, 1))
    np.testing.assert_array_equal(weights_of(zeros), 1.0)
    mostly = np.array([[0.0], [0.0], [0.0], [0.0], [10.0]])
    weights = weights_of(mostly)
    np.testing.assert_array_equal(weights[:4], 1.0)
    assert weights[4] < 1
    np.testing.assert_array_equal(LOSSES["huber"].clipped(mostly, None)[:4], 0.0)


def test_rows_without_a_say_set_no_scale():
    y, train = np.repeat([1.0, 1e6], [10, 30]), np.arange(40)
    targets = Targets.of_moments(TargetTransform("none"), np.zeros(1), np.ones(1), True)
    problem = Problem(None, y, targets, np.where(train < 10, 2.0, 0.0)[:, None], train, train[:0], None, None, None)
    weights = replace(problem, loss=LOSSES["huber"]).at(np.zeros((40, 1))).weights
    np.testing.assert_array_equal(weights[:10], 2.0)
    np.testing.assert_array_equal(weights[10:], 0.0)


@pytest.mark.parametrize("features", ["exact", *hard("binning", "fourier")])
def test_gross_errors_do_little(dirty, features, few_steps):
    X, clean, wrong, X_test, y_test = dirty
    options = {"features": features, "random_state": 0}
    expected = KernelMachineRegressor(**options).fit(X, clean).score(X_test, y_test)
    model = KernelMachineRegressor(**options, loss="huber").fit(X, wrong)
    assert model.score(X_test, y_test) > expected - 0.03
    assert "huber" in model.summary()


@pytest.mark.parametrize(
    ("features", "transform"), [("exact", None), *hard(("exact", "auto"), ("local", None), ("binning", None))]
)
@pytest.mark.parametrize("size", [1e9, *hard(1e20)])
def test_the_size_of_huge_targets_does_not_matter(dirty, features, transform, size):
    X, clean, _, X_test, y_test = dirty
    wrong, options = clean.copy(), {"features": features, "target_transform": transform, "random_state": 0}
    wrong[:5] = size
    expected = KernelMachineRegressor(**options).fit(X, clean).score(X_test, y_test)
    model = KernelMachineRegressor(**options, loss="huber").fit(X, wrong)
    assert model.score(X_test, y_test) > expected - 0.03


def test_clipped_targets():
    """Sixty values of the first column are nearly or exactly 0, and the last column is constant."""
    few = np.r_[np.zeros(40), 1e-9 * np.arange(20), np.arange(1, 40), 1e9]
    Y = np.stack([few, np.r_[-1e9, np.arange(99)], np.full(100, 7.0)], axis=1)
    transform = TargetTransform.fit("none", Y, is_robust=True)
    clipped = transform.transform(Y)
    np.testing.assert_array_equal(clipped[1:-1], Y[1:-1])
    assert 10 * 60 < clipped[-1, 0] < 20 * 60
    assert -40 * 60 < clipped[0, 1] < -30 * 60
    np.testing.assert_array_equal(clipped[:, 2], 7.0)
    np.testing.assert_array_equal(TargetTransform.fit("none", Y, is_robust=False).transform(Y), Y)


def test_squares_follow_gross_errors(dirty):
    X, _, wrong, X_test, y_test = dirty
    model = KernelMachineRegressor(**EXACT, target_transform=None).fit(X, wrong)
    assert model.score(X_test, y_test) < 0.8
    assert "huber" not in model.summary()


@pytest.mark.hard
def test_weights_of_rows_multiply(dirty):
    """Rows of weight 0 have no influence, although they are more than half."""
    X, clean, wrong, X_test, y_test = dirty
    both, y = np.concatenate([X, X]), np.concatenate([wrong, -100 - clean])
    weights = np.repeat([2.0, 0.0], len(X))
    options = {**EXACT, "loss": "huber"}
    model = KernelMachineRegressor(**options).fit(both, y, sample_weight=weights)
    expected = KernelMachineRegressor(**options).fit(X, wrong).score(X_test, y_test)
    assert model.score(X_test, y_test) > expected - 0.03


def test_weights_settle_if_many_targets_are_wrong_on_one_side(rng):
    """After two rounds of weights, the error was above 0.18 with six seeds."""
    X = rng.uniform(-1, 1, size=(900, 3))
    means = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    y = means + 0.1 * rng.normal(size=900) + np.where(rng.random(900) < 0.2, 5.0, 0.0)
    model = KernelMachineRegressor(**{**EXACT, "kernel": "rbf"}, loss="huber").fit(X[:500], y[:500])
    assert np.sqrt(np.mean((model.predict(X[500:]) - means[500:]) ** 2)) < 0.15


def test_given_settings_are_kept(dirty):
    X, _, wrong, X_test, y_test = dirty
    model = KernelMachineRegressor(**FIXED, loss="huber").fit(X, wrong)
    assert (model.alpha_, model.n_grids_, model.kernel_) == (0.1, 20, "Laplacian()")
    plain = KernelMachineRegressor(**FIXED, target_transform=None).fit(X, wrong)
    assert model.score(X_test, y_test) > plain.score(X_test, y_test) + 0.1


def test_bad_loss(dirty):
    with pytest.raises(ValueError, match=r"loss must be 'squared', 'huber', .*, got 'absolute'"):
        KernelMachineRegressor(loss="absolute").fit(dirty[0], dirty[1])


def test_rows_of_small_weight_hardly_change_the_scale():
    y, own, train = np.repeat([0.1, 50.0, 1000.0], [20, 1, 40]), np.repeat([1.0, 1e-6], [21, 40]), np.arange(61)
    targets = Targets.of_moments(TargetTransform("none"), np.zeros(1), np.ones(1), True)
    problem = Problem(None, y, targets, own[:, None], train, train[:0], None, None, None, loss=LOSSES["huber"])
    near = problem.at(np.zeros((61, 1)))
    np.testing.assert_allclose(near.loss.deviations, 0.14826)
    np.testing.assert_allclose(near.weights[:20], 1.0)
    np.testing.assert_allclose(near.loss.start(problem.answers, own), 0.1)
    zeros = near.loss.scaled(np.where(train == 20, y, 0.0)[:, None], own)
    np.testing.assert_allclose(zeros.deviations, 50 / own.sum())


def test_means_by_weighted_residuals(rng):
    own, rows = np.repeat([1.0, 1e-6], 400), np.arange(800)
    y = np.exp(rng.normal(size=800) * np.repeat([0.5, 3.0], 400))
    standardized = Targets.of(TargetTransform("log"), y, own[:, None])
    problem = Problem(None, y, standardized, own[:, None], rows, rows[:0], None, None, None)
    predictions = np.zeros((800, 1)) - standardized.mean / standardized.std  # log y = 0
    kept = with_medians_or_means(problem, standardized, rows, predictions)[1]
    np.testing.assert_allclose(kept.decode(predictions), np.exp(0.5**2 / 2), rtol=0.05)


@pytest.mark.parametrize("weighted", [True, *hard(False)])
def test_gross_errors_beyond_memory_do_little(dirty, sampled_rows, weighted):
    """Weights of all rows are learned from a sample; rows of weight 0 have no influence."""
    X, clean, wrong, X_test, y_test = dirty
    options, weights = {**with_options(FIXED, n_grids=60), "loss": "huber"}, None
    if weighted:
        X, wrong, weights = np.concatenate([X, X]), np.append(wrong, -100 - clean), np.repeat([2.0, 0.0], len(X))
    expected = KernelMachineRegressor(**options).fit(X, wrong, sample_weight=weights).score(X_test, y_test)
    sampled_rows(len(X) // 2)
    model = KernelMachineRegressor(**options).fit(blocks(X, wrong, weights, block_rows=130))
    assert model.score(X_test, y_test) > expected - 0.03


@pytest.mark.parametrize("n_targets", [1, 2])
def test_weights_of_rows_that_a_model_has_not_seen(rng, n_targets):
    Y, scores, own = (
        rng.standard_t(2, size=(61, n_targets)),
        rng.normal(size=(61, n_targets)),
        rng.uniform(size=(61, 1)),
    )
    targets = Targets.of_moments(TargetTransform("none"), np.zeros(n_targets), np.ones(n_targets), False)
    rows = np.arange(61)
    problem = Problem(rows[:, None], Y, targets, own, rows, rows[:0], None, None, None, loss=LOSSES["huber"])
    near = problem.at(scores, lambda table: scores[table[:, 0]])
    part = slice(20, 30)
    learned, weights = near.beyond(rows[part, None], Y[part], own[part])
    np.testing.assert_allclose(learned, Y[part], rtol=1e-12)
    expected = own[:, 0] * naive.huber_weights(Y - scores, own[:, 0])
    np.testing.assert_allclose(weights[:, 0], expected[part], rtol=1e-12)
    np.testing.assert_allclose(near.weights[part], weights)


@pytest.mark.parametrize("n_targets", [1, 3])
def test_derivatives_are_those_by_differences(rng, n_targets):
    """All targets have equal scales."""
    Y, S = 3 * rng.standard_t(2, size=(30, n_targets)), rng.normal(size=(30, n_targets))
    loss = SquaredError(deviations=np.full(n_targets, 0.7))
    slopes = naive.slopes_by_entries(lambda scores: loss.halves(Y, scores).sum(), S)
    np.testing.assert_allclose(-loss.pulls(Y, S), slopes, rtol=1e-5, atol=1e-7)
    steps, curvatures = loss.steps(Y, S)
    np.testing.assert_allclose(steps * curvatures, loss.pulls(Y, S))
