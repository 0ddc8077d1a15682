"""The search for length scales: its results, and tables without any."""

import naive
import numpy as np
import pytest
from hard import easy

from binfeat import kernels, learn_gamma
from binfeat.length_scales.search import LengthScaleSearch, exponent_shares, mean_distances, thinned

KINDS = [kernels.Laplacian(), kernels.GammaPitch(8.0), kernels.RBF(), kernels.Matern(1.5), kernels.Matern(2.5)]


def search(X, Y, kernel=KINDS[0], *, weights=None, categorical=None, seed=0, **options):
    categorical = np.zeros(X.shape[1], bool) if categorical is None else categorical
    return LengthScaleSearch(kernel, X, Y.reshape(len(X), -1), weights, categorical, seed, **options)


def error_on(found, most):
    return found.found_on(thinned(found.used, most)).error


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(500, 5))
    X[:, 3] = rng.integers(4, size=500)
    effect = np.array([1.0, -1.0, 0.5, -0.5])
    y = np.sin(2 * X[:, 1]) + effect[X[:, 3].astype(int)] + 0.1 * rng.normal(size=500)
    return X, (y - y.mean()) / y.std()


CATEGORICAL = np.arange(5) == 3


@pytest.mark.parametrize("kernel", easy(KINDS, KINDS[0], KINDS[2]), ids=repr)
def test_finds_the_inputs_that_matter(rows, kernel):
    X, y = rows
    found = search(X, y, kernel, categorical=CATEGORICAL).run(40, 150)
    assert set(np.argsort(found.gamma)[-2:]) == {1, 3}
    assert found.gamma[[1, 3]].min() > 3 * found.gamma[[0, 2, 4]].max()
    assert found.error < found.errors[0] / 2
    assert len(found.errors) == len(found.gammas) == 40
    assert found.found.kernel.n_rows == 150


def test_where_it_begins(rows):
    """All inputs have the same share of a mean exponent of 0.3, or the same gamma."""
    X, y = rows
    X = X * [1, 10, 100, 1, 1e-3]
    by_input, one = search(X, y, categorical=CATEGORICAL), search(X, y, categorical=CATEGORICAL, scaled=False)
    far = [np.abs(X[:, j, None] - X[:, j]) for j in range(5)]
    means = np.array([(d > 0).mean() if j == 3 else d.mean() for j, d in enumerate(far)])
    np.testing.assert_allclose(by_input.gamma * means, 0.06, rtol=0.15)
    np.testing.assert_allclose(one.gamma, one.gamma[0], rtol=1e-12)
    np.testing.assert_allclose(one.gamma @ means, 0.3, rtol=0.15)
    assert by_input.alpha == pytest.approx(0.5)
    assert search(X, y, alpha=0.07).run(5, 150).alpha == pytest.approx(0.07)
    none, least = (search(X, y, alpha=alpha).run(5, 150) for alpha in (0.0, 1e-12))
    np.testing.assert_array_equal(none.gamma, least.gamma)


@pytest.mark.parametrize("kernel", easy(KINDS, KINDS[2], KINDS[3]), ids=repr)
def test_it_begins_shorter_where_wide_kernels_tell_nothing(rng, kernel):
    """Wide kernels have no slope towards short oscillations; noise alone does not shorten them."""
    X = rng.normal(size=(400, 2))
    waves, noise = np.sin(6 * X[:, 0]) * np.cos(6 * X[:, 1]), rng.normal(size=400)
    found, first = (search(X, y / y.std(), kernel).run(40, 240) for y in (waves, noise))
    shorter = found.gammas[0] / first.gammas[0]
    np.testing.assert_allclose(shorter, 4.0 ** np.round(np.log(shorter[0]) / np.log(4.0)))
    assert shorter[0] > 10
    assert found.errors[0] < 0.95
    assert found.error < 0.8
    np.testing.assert_array_equal(first.gammas[0], search(X, noise, kernel).gamma)


@pytest.mark.parametrize("kernel", easy(KINDS, KINDS[0], KINDS[3]), ids=repr)
def test_it_begins_shorter_where_labels_are_noisy(kernel):
    """Rows of a step are too few to show that short length scales predict noisy labels; more rows are enough."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 2 * np.pi, (1500, 3))
    y = rng.random(1500) < 1 / (1 + np.exp(-3 * np.sin(3 * X[:, 0]) * np.sin(3 * X[:, 1])))
    found = search(X, (y - y.mean()) / y.std(), kernel)
    first = found.gamma
    assert (found.run(1, 300).gammas[0] / first > 10).all()


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_length_scales_as_short_as_fast_waves(rng, kernel):
    x = rng.random((1000, 1))
    found = learn_gamma(x, np.sin(150 * x[:, 0]) + 0.1 * rng.normal(size=1000), kernel=kernel, random_state=0)
    assert found.errors[-1] < 0.1  # shares of the variance, of which the noise is 0.02


@pytest.mark.parametrize("kernel", easy(KINDS, KINDS[0], KINDS[2]), ids=repr)
@pytest.mark.parametrize("share", [0.0, 0.03, 0.1])
def test_weak_signals_are_no_reason_to_begin_shorter(rng, kernel, share):
    """Initial length scales with a small gain are better than others that gain more by chance."""
    for seed in range(20):
        X = rng.normal(size=(200, 10))
        signal, noise = X @ rng.normal(size=10), rng.standard_t(3, size=200)
        y = np.sqrt(share) * signal / signal.std() + np.sqrt(1 - share) * noise / noise.std()
        known = search(X, (y - y.mean()) / y.std(), kernel, seed=seed)
        first = known.gamma
        np.testing.assert_array_equal(known.run(1, 150).gammas[0], first)


def test_mean_distances_and_shares(rng):
    X = np.column_stack([rng.normal(size=4000), rng.integers(4, size=4000), np.full(4000, 7.0)])
    found = mean_distances(X, np.array([False, True, False]), rng)
    np.testing.assert_allclose(found, [2 / np.sqrt(np.pi), 0.75, 0.0], rtol=0.05)
    found = mean_distances(X, np.array([False, True, False]), rng, power=2)
    np.testing.assert_allclose(found, [2.0, 0.75, 0.0], rtol=0.1)
    np.testing.assert_allclose(exponent_shares(np.array([1.0, 3.0]), np.array([3.0, 1.0])), [0.5, 0.5])
    np.testing.assert_array_equal(exponent_shares(np.zeros(2), np.zeros(2)), 0.0)


@pytest.mark.parametrize("kernel", KINDS, ids=repr)
def test_rows_that_repeat(rows, kernel):
    X, y = (np.repeat(part[:60], 5, axis=0) for part in rows)
    found = search(X, y, kernel).run(30, 150)
    assert np.isfinite([*found.gamma, found.alpha, found.error]).all()


@pytest.mark.parametrize("kernel", KINDS, ids=repr)
def test_inputs_that_are_constant(rows, kernel):
    X, y = rows
    X[:, [0, 3]] = 7.0, -2.0
    found = search(X, y, kernel, categorical=CATEGORICAL).run(10, 150)
    np.testing.assert_array_equal(found.gamma[[0, 3]], 0.0)
    assert (found.gamma[[1, 2, 4]] > 0).all()
    flat = search(np.ones((50, 2)), y[:50], kernel).run(10, 150)
    np.testing.assert_array_equal(flat.gamma, 0.0)
    assert (flat.errors, error_on(flat, 100)) == ([], np.inf)
    assert np.isnan(flat.error)


@pytest.mark.parametrize("kernel", KINDS, ids=repr)
def test_three_rows_and_more_inputs_than_rows(rng, kernel):
    for shape in ((3, 1), (20, 100)):
        found = search(rng.normal(size=shape), rng.normal(size=shape[0]), kernel).run(10, 500)
        assert np.isfinite([*found.gamma, found.alpha, found.error, error_on(found, 1000)]).all()
        assert (found.gamma > 0).all()


def test_two_rows(rng):
    for seed in range(8):
        found = search(rng.normal(size=(2, 3)), rng.normal(size=2), seed=seed).run(10, 500)
        assert np.isfinite([*found.gamma, found.alpha, found.error, error_on(found, 1000)]).all()
        assert (found.gamma > 0).all()


def test_the_prior_keeps_gammas_of_few_rows_together(rng):
    X, y = rng.normal(size=(300, 10)), rng.normal(size=300)
    spread = {n: np.log(search(X[:n], y[:n]).run(40, 500).gamma).std() for n in (15, 300)}
    assert spread[15] < 1.0


def test_rows_of_weight_zero_are_never_looked_at(rows, rng):
    X, y = rows
    weights = np.tile([0.0, 2.0], 250)
    other = np.where(weights > 0, y, rng.normal(size=500))
    first, second = (search(X, target, weights=weights).run(15, 150) for target in (y, other))
    np.testing.assert_array_equal(first.gammas, second.gammas)
    assert error_on(first, 1000) == error_on(second, 1000)


def test_weights_matter(rows):
    X, y = rows
    weights = np.random.default_rng(2).uniform(0.5, 2.0, size=500)
    first = search(X, y, weights=weights / weights.mean()).run(15, 150)
    assert not np.array_equal(search(X, y).run(15, 150).gamma, first.gamma)


def test_the_error_is_that_of_refits(rows):
    X, y = rows[0][:40], rows[1][:40]
    found = search(X, y).run(5, 500)
    K = kernels.Laplacian()(X, gamma=found.gamma)
    np.testing.assert_allclose(error_on(found, 100), naive.left_out_error(K, y[:, None], found.alpha), rtol=1e-3)
    K = kernels.Laplacian()(X[[0, 9, 19, 29, 39]], gamma=found.gamma)
    expected = naive.left_out_error(K, y[[0, 9, 19, 29, 39], None], found.alpha)
    np.testing.assert_allclose(error_on(found, 5), expected, rtol=1e-3)


def test_in_parts_as_at_once(rows):
    X, y = rows
    whole, parts = search(X, y).run(12, 150), search(X, y)
    for until in (5, 10, 15):
        parts.run(12, 150, until)
    np.testing.assert_array_equal(parts.gammas, whole.gammas)


@pytest.mark.hard
def test_going_on_with_another_kernel(rows):
    """It starts from the result of the first kernel, and does not change it."""
    X, y = rows
    first = search(X, y, kernels.Matern(1.5)).run(20, 150, 10)
    before = first.gamma.copy()
    other = first.of_kernel(kernels.RBF(), 10)
    np.testing.assert_array_equal(other.gamma, before)
    other.run(20, 150)
    assert (other.found.kernel.main.kernel, len(other.errors), len(first.errors)) == (kernels.RBF(), 20, 10)
    np.testing.assert_array_equal(first.gamma, before)
    first.run(20, 150)
    np.testing.assert_array_equal(first.gammas, search(X, y, kernels.Matern(1.5)).run(20, 150).gammas)


def test_steps_take_fresh_rows_and_affordable_ones(rows):
    X, y = rows
    drawn = []
    seeker = search(X, y)
    seeker._step = lambda rows, rate: drawn.append((np.sort(rows), rate))
    seeker.run(6, 160)
    np.testing.assert_array_equal(np.unique(np.concatenate([r for r, _ in drawn[:3]])).size, 480)
    rates = [rate for _, rate in drawn]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == 0.2
    few = search(X[:50], y[:50])
    few._step = lambda rows, rate: drawn.append((rows, rate))
    few.run(1, 500)
    assert len(drawn[-1][0]) == 30
    wide = search(np.tile(X, 600), y)
    wide._step = few._step
    wide.run(1, 500)
    assert len(drawn[-1][0]) == 150


@pytest.mark.parametrize("kernel", easy(KINDS, KINDS[0]), ids=repr)
def test_the_same_bits_for_any_number_of_threads(rows, threads, kernel):
    threads(2)
    X, y = rows
    first = search(X, y, kernel, categorical=CATEGORICAL, n_jobs=1).run(8, 150)
    for n_jobs in (1, 2, None):
        other = search(X, y, kernel, categorical=CATEGORICAL, n_jobs=n_jobs).run(8, 150)
        np.testing.assert_array_equal(other.gammas, first.gammas)
        assert other.alpha == first.alpha
    assert not np.array_equal(search(X, y, kernel, seed=1).run(8, 150).gamma, first.gamma)


def test_inputs_that_only_identify_groups_are_not_relevant(rng):
    """Without groups, they seem to be, because other rows of the group predict its effect."""
    groups, inputs, effects = rng.integers(60, size=800), rng.normal(size=(60, 3)), rng.normal(size=60)
    X = np.c_[inputs[groups], rng.normal(size=800)]
    y = effects[groups] + 2 * X[:, 3]
    found, by_rows = (search(X, y, kernels.Matern(1.5), groups=own).run(30, 200) for own in (groups, None))
    assert by_rows.gamma[:3].min() > 5 * by_rows.gamma[3]
    assert found.gamma[:3].max() < 2 * found.gamma[3]
    residuals = found.left_out(300)[1]
    np.testing.assert_allclose((residuals**2).mean(), error_on(found, 300), rtol=1e-5)
    drawn = found._drawn()
    assert np.unique(groups[drawn]).size <= 36
    assert len(drawn) <= 300
