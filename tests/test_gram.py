"""Ridge from the Gram matrix: the same results as iterations, and when it is used."""

import naive
import numpy as np
import pytest
from memory import peak_bytes
from scipy import sparse
from solving import LazyFeatures, NormalEquations, ProcessRows, SolverOptions, computed_features

from binfeat import CGRidge, CGRidgeClassifier
from binfeat.linear import gram, path


@pytest.fixture
def table(rng):
    Z = rng.normal(size=(400, 30)) @ rng.normal(size=(30, 30)) + 5
    return Z, np.stack([Z[:, 0] + rng.normal(size=400), np.sin(Z[:, 1])], axis=1)


@pytest.fixture
def small_blocks(monkeypatch):
    """Set the numbers of rows and of matrix columns of partial sums."""

    def set_sizes(n_rows, n_columns):
        for name, size in (("_BLOCK_BYTES", 0), ("_FEWEST_ROWS", n_rows), ("_PANEL", n_columns)):
            monkeypatch.setattr(gram, name, size)

    return set_sizes


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.5, [0.01, 30.0]])
def test_answers_are_those_of_conjugate_gradients(table, rng, small_blocks, alpha, fit_intercept, weighted):
    Z, Y = table
    weights = rng.random(len(Z)) * (rng.random(len(Z)) > 0.2) if weighted else None
    model = CGRidge(alpha=alpha, fit_intercept=fit_intercept, tol=1e-12, max_iter=5000)
    exact = model.fit(Z, Y, sample_weight=weights)
    coef, intercept, n_iter = exact.coef_, exact.intercept_, exact.n_iter_
    assert (exact.solver_, exact.status_, n_iter) == ("gram", "converged", 1)
    other = model.fit(sparse.csr_array(Z), Y, sample_weight=weights)
    assert other.solver_ == "cg"
    np.testing.assert_allclose(coef, other.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(intercept, other.intercept_, rtol=1e-6, atol=1e-6)
    small_blocks(77, 7)
    in_blocks = model.fit(Z, Y, sample_weight=weights)
    np.testing.assert_allclose(in_blocks.coef_, coef, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_columns", [7, 1024])
def test_bits_do_not_depend_on_threads(table, threads, small_blocks, monkeypatch, n_columns):
    Z, Y = table
    small_blocks(150, n_columns)
    monkeypatch.setattr(gram, "_PIECE_WORK", 1000)
    systems = []
    for n_threads in (1, 2):
        threads(n_threads)
        systems.append(gram.gram_system(ProcessRows(Z, Y), fit_intercept=True))
    for one, other in zip(*(vars(system).values() for system in systems), strict=True):
        np.testing.assert_array_equal(one, other)
    centered = Z - Z.mean(axis=0)
    np.testing.assert_allclose(systems[0].matrix, centered.T @ centered, rtol=1e-10, atol=1e-8)


def test_features_far_from_zero(table):
    """Centering is accurate for features with a mean of a million times their spread."""
    Z, Y = table
    near, far = (CGRidge(alpha=0.5).fit(form, Y) for form in (Z, Z + 1e7))
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_systems_of_parts_of_the_rows_add_up(table, rng, fit_intercept):
    (Z, Y), weights = table, rng.random((400, 1))
    weights[60:70] = 0
    rows = ProcessRows(Z, Y, weights)
    cuts = map(slice, [0, 50, 51, 60, 70], [50, 51, 60, 70, 400])
    first, *others = (gram.gram_system(rows.take(part), fit_intercept) for part in cuts)
    whole, added = gram.gram_system(rows, fit_intercept), first + sum(others[1:], others[0])
    for name in ("matrix", "right", "means", "target_means", "total"):
        value = getattr(whole, name)
        np.testing.assert_allclose(getattr(added, name), value, rtol=1e-10, atol=1e-12 * np.abs(value).max())


def test_no_penalty_and_dependent_features(table):
    """With dependent features, it is the shortest least squares solution."""
    Z, Y = table
    Z = np.hstack([Z, Z[:, :10], np.zeros((len(Z), 2))])
    model = CGRidge(alpha=0.0).fit(Z, Y)
    assert model.solver_ == "gram"
    expected = np.linalg.lstsq(Z - Z.mean(axis=0), Y - Y.mean(axis=0), rcond=None)[0].T
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [100, 200_000])
def test_no_penalty_and_a_constant_column(rng, dtype, n_rows):
    x, weights = rng.normal(size=n_rows), rng.uniform(0.5, 2, n_rows)
    Z, y = np.column_stack([x, np.full(n_rows, 0.1)]).astype(dtype), 2 * x + 3
    halves = [(Z[rows], y[rows], weights[rows]) for rows in (slice(n_rows // 2), slice(n_rows // 2, None))]
    for model in (
        CGRidge(alpha=0.0).fit(Z, y),
        CGRidge(alpha=0.0).fit(Z, y, weights),
        CGRidge(alphas=[0.0, 1e4]).fit(Z, y, weights),
        CGRidge(alpha=0.0).partial_fit(*halves[0]).partial_fit(*halves[1]),
    ):
        assert model.solver_ == "gram"
        assert model.coef_[1] == 0
        np.testing.assert_allclose(model.predict(Z), y, atol=1e-4)


def test_a_flag_far_from_zero_is_no_constant(rng):
    flags = rng.random(500) > 0.96
    Z = (1e6 + flags[:, np.newaxis]).astype(np.float32)
    np.testing.assert_allclose(CGRidge(alpha=0.0).fit(Z, flags).coef_, 1, rtol=1e-3)


def test_path_by_either_factorization(table, monkeypatch):
    Z, Y = table
    system = gram.gram_system(ProcessRows(Z, Y), True)
    alphas = [np.full(2, alpha) for alpha in np.geomspace(100, 1e-3, 20)]
    results = list(system.solve(alphas))
    monkeypatch.setattr(gram, "_EIGEN_COST", np.inf)
    for alpha, by_eigen, by_cholesky in zip(alphas, results, system.solve(alphas), strict=True):
        expected = naive.ridge(Z, Y, alpha[0], None, True)[0].T
        np.testing.assert_allclose(by_eigen.solution, expected, rtol=1e-7)
        np.testing.assert_allclose(by_cholesky.solution, expected, rtol=1e-7)
        assert by_eigen.residuals[-1].max() < 1e-10


def test_chosen_penalty_and_classes(table):
    Z, Y = table
    labels = np.digitize(Y[:, 1], [-0.5, 0.5])
    options = {"alphas": np.geomspace(1e-2, 100, 9), "cv": 3, "tol": 1e-10, "max_iter": 5000}
    dense, csr = (CGRidgeClassifier(**options).fit(form, labels) for form in (Z, sparse.csr_array(Z)))
    assert (dense.solver_, csr.solver_) == ("gram", "cg")
    assert dense.alpha_ == csr.alpha_
    np.testing.assert_allclose(dense.path_scores_, csr.path_scores_)
    np.testing.assert_allclose(dense.coef_, csr.coef_, rtol=1e-5, atol=1e-8)


def test_float32_features(table):
    Z, Y = table
    single, double = CGRidge(alpha=0.5).fit(Z.astype(np.float32), Y), CGRidge(alpha=0.5).fit(Z, Y)
    assert single.coef_.dtype == np.float32
    np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_within_the_bound_of_their_blocks(rng, small_blocks, dtype):
    """The error of an entry depends on rounding in a block, centering and weights, not on the number of rows."""
    Z, Y = rng.normal(size=(2000, 30)).astype(dtype), rng.normal(size=(2000, 2))
    small_blocks(16, 7)
    system = gram.gram_system(ProcessRows(Z, Y, weights := rng.random((2000, 1))), True)
    roots, exact = np.sqrt(weights), Z.astype(np.longdouble)
    mean = (weights * exact).sum(axis=0) / weights.sum()
    centered, targets = roots * (exact - mean), roots * (Y - (weights * Y).sum(axis=0) / weights.sum())
    unit = float(np.finfo(dtype).eps)
    magnitudes = roots * (np.abs(exact) + np.abs(Z[:16]).mean(axis=0) + np.abs(mean))
    bound = (16 + 8) * unit
    assert (np.abs(system.matrix - centered.T @ centered) <= bound * (magnitudes.T @ magnitudes)).all()
    assert (np.abs(system.right - centered.T @ targets) <= bound * (magnitudes.T @ np.abs(targets))).all()
    assert (system.matrix == system.matrix.T).all()


def test_blocks_are_summed_in_float64(small_blocks):
    """2^26 plus 99 ones: float32 would lose the ones."""
    Z = np.zeros((16 * 100, 3), np.float32)
    Z[::16], Z[0] = 1, 2**13
    small_blocks(16, 2)
    system = gram.gram_system(ProcessRows(Z, np.zeros((len(Z), 1))), False)
    assert (system.matrix == 2**26 + 99).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_bitwise_the_same_however_rows_come(rng, small_blocks, dtype, bytes_computed_at_a_time):
    Z, Y, weights = rng.normal(size=(500, 30)).astype(dtype), rng.normal(size=(500, 2)), rng.random((500, 1))
    small_blocks(64, 7)
    whole = gram.gram_system(ProcessRows(Z, Y, weights), True)
    for n_rows in (1, 50, 64, 333, 1000):
        bytes_computed_at_a_time(Z[:1].nbytes * n_rows)
        system = gram.gram_system(ProcessRows(computed_features(Z), Y, weights), True)
        for name in ("matrix", "right", "means"):
            assert (getattr(system, name) == getattr(whole, name)).all()


def test_computed_features_take_the_memory_of_one_matrix(rng, small_blocks, bytes_computed_at_a_time):
    """In addition, only blocks of rows and products of a few columns; all features would take 4 times as much."""
    Z, y = rng.normal(size=(400, 400)).astype(np.float32), rng.normal(size=(3200, 1))
    small_blocks(128, 32)
    bytes_computed_at_a_time(Z[:128].nbytes)
    rows = ProcessRows(LazyFeatures(lambda X: X @ Z, np.tile(Z[:128], (25, 1)), 400), y)
    peak, system = peak_bytes(lambda: gram.gram_system(rows, True))
    assert peak < 2 * system.matrix.nbytes


@pytest.mark.parametrize("limit", [2 * 8 * 1000**2, 2 * 8 * 1000**2 - 1])
def test_no_gram_matrix_beyond_a_quarter_of_the_memory(memory_of, limit):
    memory_of(4 * limit)
    Z, Y = (np.broadcast_to(0.0, (10**7, n)) for n in (1000, 1))
    assert gram.gram_pays(ProcessRows(Z, Y), 1, 1e-2) == (limit == 2 * 8 * 1000**2)


def test_route_goes_by_cost(rng, memory_of):
    memory_of(8 * 2**30)

    def pays(n_rows, n_columns, n_targets=1, n_alphas=1, tol=1e-2):
        Z, Y = (np.broadcast_to(0.0, (n_rows, n)) for n in (n_columns, n_targets))
        return gram.gram_pays(ProcessRows(Z, Y), n_alphas, tol)

    assert pays(10**5, 500)
    assert not pays(10**5, 5000)
    assert pays(10**5, 5000, n_targets=10, tol=1e-6)
    assert not pays(100, 5000)
    assert pays(10**5, 10**4, n_targets=1000)
    assert not pays(10**5, 12_000, n_targets=1000)  # a quarter of the memory is enough for 11,585 columns
    # The limit: (D^2 n + .5 D^3 alphas, 8 D^3 at most) / 20 equals 30 (a path: 60) iterations of 2 n D multiplications.
    assert pays(10**5, 1150)
    assert not pays(10**5, 1250)
    assert pays(10**5, 2300, n_alphas=2)
    assert not pays(10**5, 2450, n_alphas=2)
    assert pays(1000, 450, n_alphas=20)
    assert not pays(1000, 600, n_alphas=20)
    assert not gram.gram_pays(ProcessRows(sparse.csr_array((10**5, 10)), np.empty((10**5, 1))), 1, 1e-2)
    Z = rng.normal(size=(50, 4))
    assert CGRidge(early_stopping=True, random_state=0).fit(Z, Z[:, 0]).solver_ == "cg"
    assert CGRidgeClassifier(loss="squared_hinge").fit(Z, Z[:, 0] > 0).solver_ == "newton-cg"


def test_path_that_keeps_one_solution(rng, monkeypatch):
    """A small memory limit makes a path slower, but does not change it."""
    Z, y = rng.normal(size=(100, 20)), rng.normal(size=(100, 3))
    system, alphas = NormalEquations(ProcessRows(Z, y), True), [100.0, 10.0, 1.0, 0.1]
    options = SolverOptions(tol=1e-10, max_iter=500)
    free = list(path.solve_path(system, alphas, options))
    monkeypatch.setattr(path, "_KEPT_BYTES", 0)
    bound = list(path.solve_path(system, alphas, options))
    for a, b in zip(free, bound, strict=True):
        np.testing.assert_allclose(a.solution, b.solution, rtol=1e-6, atol=1e-9)


def test_one_row_with_nearly_all_weight(rng):
    """The mean of the rows, which is subtracted against cancellation, has the weights of the rows."""
    X, weights = rng.normal(size=(200, 2)), np.ones(200)
    y = X @ [1.0, -0.5] + rng.normal(size=200)
    for weights[0] in (1e12, 1e16):
        expected = CGRidge(alpha=1.0, tol=1e-12, max_iter=5000).fit(sparse.csr_matrix(X), y, weights)
        assert expected.solver_ == "cg"
        ridge = CGRidge(alpha=1.0).fit(X, y, weights)
        assert ridge.solver_ == "gram"
        np.testing.assert_allclose(ridge.coef_, expected.coef_, rtol=1e-4)
