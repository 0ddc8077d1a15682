"""Local models: cells of trees, exact models in them, inputs, errors, and interrupts."""

import pickle
import re
import tracemalloc
from dataclasses import replace

import naive
import numpy as np
import pytest
from callbacks import Callback
from hard import hard
from interrupts import interrupted
from kernel_models import assert_same_state, moments, with_options
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from binfeat import KernelMachineClassifier, KernelMachineRegressor, kernels
from binfeat.length_scales import kernel_sum, leave_one_out, matrices
from binfeat.models import problem
from binfeat.models.fitted import cell_trees, expansion
from binfeat.models.solvers import cell_ensemble, learner, local, sizes

pd = pytest.importorskip("pandas")

GAMMA = [0.5, 0.2, 0.0, 0.1]
LOCAL = {"features": "local", "solver_params": {"cell_rows": 50}, "random_state": 0}
# All hyperparameters are given: one kernel, its gamma, the penalty, two trees.
GIVEN = {**with_options(LOCAL, n_trees=2), "kernel": "laplacian", "gamma": GAMMA, "alpha": 0.3}


@pytest.fixture
def short(limits):
    """Shorten searches."""
    limits(n_steps=6)


def splits_of(model):
    """Return the trees of a model for the slow twin."""
    arrays = model._local
    splits = list(zip(arrays["inputs"], arrays["places"], *arrays["children"].T, strict=True))
    return [(splits, root) for root in arrays["roots"]]


def laplacian(A, B):
    return kernels.Laplacian()(A, B, gamma=GAMMA)


@pytest.mark.parametrize("weighted", [False, True])
def test_predictions_are_those_of_exact_models_in_cells(table, weighted):
    X, y, _ = table
    X, y, new = X[:200], y[:200], X[200:]
    weights = np.random.default_rng(3).uniform(0.5, 2.0, size=200) if weighted else None
    model = KernelMachineRegressor(**GIVEN).fit(X, y, sample_weight=weights)
    alpha = float(model._local["alpha"])  # for weights of mean 1 in the training rows
    relative = None if weights is None else weights * alpha / 0.3
    mean, std = moments(y, weights)
    Y = ((y - mean) / std).reshape(-1, 1)
    predictions, residuals = naive.local_model(X, Y, new, laplacian, alpha, splits_of(model), relative)
    np.testing.assert_allclose(model.predict(new), mean + std * predictions[:, 0], atol=1e-4)
    squares = np.ones(200) if weights is None else weights / weights.mean()
    error = np.mean(squares * residuals[:, 0] ** 2)
    np.testing.assert_allclose(model.held_out_error_[0], error, rtol=1e-3)
    assert (model.features_, model.n_grids_, model.n_trees_, model.alpha_) == ("local", 0, 2, 0.3)
    assert model.kernel_ == "Laplacian()"
    np.testing.assert_allclose(model.gamma_, GAMMA)
    np.testing.assert_allclose(model.learning_curve_[-1], [2, error], rtol=1e-3)


def test_cells_of_one_row(table):
    """Their row is not predicted without error."""
    X, y, _ = table
    X, y, new = X[:100], y[:100], X[200:230]
    model = KernelMachineRegressor(**with_options(GIVEN, cell_rows=2, n_trees=1)).fit(X, y)
    assert (np.diff(model._local["starts"]) == 1).sum() > 10
    Y = ((y - y.mean()) / y.std()).reshape(-1, 1)
    predictions, residuals = naive.local_model(X, Y, new, laplacian, 0.3, splits_of(model))
    np.testing.assert_allclose(model.predict(new), y.mean() + y.std() * predictions[:, 0], atol=1e-4)
    np.testing.assert_allclose(model.held_out_error_[0], np.mean(residuals**2), rtol=1e-3)


def test_one_cell_is_an_exact_model(table):
    X, y, _ = table
    options = with_options(GIVEN, cell_rows=300, n_trees=1)
    local, exact = (
        KernelMachineRegressor(**{**options, "features": features}).fit(X[:300], y[:300])
        for features in ("local", "exact")
    )
    np.testing.assert_allclose(local.predict(X), exact.predict(X), atol=1e-4)
    for one, other in zip(local.predict(X, return_std=True), exact.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("Estimator", [*hard(KernelMachineRegressor), KernelMachineClassifier])
def test_threads_and_repeats_change_nothing(table, short, Estimator):
    X, y, labels = table
    y = y if Estimator is KernelMachineRegressor else labels
    one, two, again = (Estimator(**LOCAL, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2, 2))
    assert_same_state(one, two)
    assert_same_state(two, again)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


@pytest.mark.hard
def test_a_cell_alone_has_the_same_bits_for_any_number_of_blas_threads(table):
    X, y, _ = table
    models = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, "blas"):
            models.append(KernelMachineRegressor(**with_options(LOCAL, cell_rows=400)).fit(X, y))
    assert_same_state(*models)


# Cells.


def grown(X, most, disorder=0.0, spread=None):
    rng = np.random.default_rng(0)
    return cell_trees.split_into_cells(
        X, np.arange(len(X)), lambda rows: X[rows].std(axis=0) if spread is None else spread, most, rng, disorder
    )


@pytest.mark.engine
@pytest.mark.parametrize("disorder", [0.0, 0.5])
@pytest.mark.parametrize("n_rows", [1, 20, 21, 333])
def test_cells_are_a_partition(rng, disorder, n_rows):
    X = np.column_stack([rng.normal(size=n_rows), rng.integers(3, size=n_rows), np.ones(n_rows)])
    trees, cells = grown(X, 20, disorder)
    found = trees(X)[0]
    assert sorted(np.concatenate(cells)) == list(range(n_rows))
    for number, rows in enumerate(cells):
        assert 1 <= len(rows) <= 20
        np.testing.assert_array_equal(found[rows], number)
    assert len(trees.inputs) == len(cells) - 1
    assert 2 not in trees.inputs  # input 2 is constant
    splits = list(zip(trees.inputs, trees.places, *trees.children.T, strict=True))
    np.testing.assert_array_equal(found, [naive.cell_of(row, splits, trees.roots[0]) for row in X])


def test_splits_that_each_separate_one_row():
    """In sparse columns with a single 1, trees are as deep as there are columns."""
    n_columns = 1100
    trees, cells = grown(np.eye(n_columns + 30, n_columns, dtype=np.float32), 20)
    assert trees.cells_below(0) == list(range(len(cells)))
    assert len(trees.inputs) > 1000


def test_rows_that_do_not_differ_stay_together():
    trees, cells = grown(np.repeat([[0.0], [1.0]], 30, axis=0), 10)
    assert [len(rows) for rows in cells] == [30, 30]
    assert 0.0 <= trees.places[0] < 1.0
    assert len(grown(np.ones((30, 2)), 10)[1]) == 1


def test_neighboring_numbers_are_split():
    X = np.repeat([[1.0], [np.nextafter(1.0, 2.0)]], 8, axis=0)
    trees, cells = grown(X, 10)
    assert [len(rows) for rows in cells] == [8, 8]
    np.testing.assert_array_equal(trees(X)[0], np.repeat([0, 1], 8))


def test_the_widest_input_is_split(rng):
    X = rng.normal(size=(100, 3))
    assert set(grown(X, 60, spread=np.array([0.0, 2.0, 1.0]))[0].inputs) == {1}


def test_joined_trees_find_their_own_cells(rng):
    X = rng.normal(size=(200, 3))
    trees = [grown(X, most, 0.5)[0] for most in (30, 200, 50)]
    starts = np.cumsum([0, *(len(tree.inputs) + 1 for tree in trees)])
    joined = cell_trees.CellTrees.joined(trees)(X)
    for found, tree, start in zip(joined, trees, starts, strict=False):
        np.testing.assert_array_equal(found, tree(X)[0] + start)


def test_a_cell_of_one_label_is_constant(rng):
    X = rng.uniform(size=(400, 2))
    model = KernelMachineClassifier(**{**with_options(GIVEN, n_trees=1), "gamma": [9.0, 0.1]}).fit(X, X[:, 0] > 0.8)
    arrays = model._local
    of_cells = np.split(model.feature_coef_[0], arrays["starts"][1:-1])
    constant = [not coef.any() for coef in of_cells]
    assert 0 < sum(constant) < len(constant)
    assert set(arrays["cell_intercepts"][constant, 0]) <= {-1.0, 1.0}
    assert model.score(X, X[:, 0] > 0.8) > 0.97
    same = KernelMachineRegressor(**GIVEN).fit(np.ones((100, 4)), rng.normal(size=100))
    np.testing.assert_array_equal(same._local["rows"], [0, 0])  # in each tree one row replaces all equal ones


def test_apply_gives_the_cells(table):
    X, y, _ = table
    model = KernelMachineRegressor(**GIVEN).fit(X[:200], y[:200])
    expected = [[naive.cell_of(row, *tree) for tree in splits_of(model)] for row in X]
    np.testing.assert_array_equal(model.apply(X), expected)
    with pytest.raises(ValueError, match="apply requires a local model with features_='local', got 'exact'"):
        KernelMachineRegressor(**{**GIVEN, "features": "exact"}).fit(X[:200], y[:200]).apply(X)


# Sums of kernel values.


@pytest.mark.engine
@pytest.mark.parametrize("nu", [0, 0.5, 1.5, 2.5, np.inf])
def test_expansions_of_cells(rng, nu):
    """Compiled sums equal products with kernel matrices; one cell has no coefficients."""
    n_inputs, categorical = 6, np.array([False] * 5 + [True])
    linear_map = rng.normal(size=(n_inputs, 3)) if nu == 2.5 else None
    radial = {0: kernels.Laplacian(), np.inf: kernels.RBF()}.get(nu) or kernels.Matern(nu)
    of_kernels = [
        matrices.kernel_matrix(radial, categorical, 1, linear_map),
        matrices.kernel_matrix(matrices.Linear(), categorical, 1),
    ]
    kernel = kernel_sum.KernelValues(of_kernels, [0.7, 0.3], rng.uniform(0.1, 0.5, size=(2, n_inputs)), 1)
    standardizer = matrices.Standardizer(np.append(rng.normal(size=5), 0), np.append(rng.uniform(1, 2, size=5), 1))
    support, columns = (
        np.vstack([rng.normal(size=(5, n)), rng.integers(3, size=n)]).astype(np.float32) for n in (90, 20)
    )
    rows = np.split(np.append(rng.permutation(90), rng.permutation(90)), [10, 90, 120])
    cells = [(own, rng.normal(size=(2, len(own)))) for own in rows]
    cells[2][1][:] = 0.0
    intercepts, trees = rng.normal(size=(4, 2)), np.array([rng.integers(0, 2, 20), rng.integers(2, 4, 20)], np.int32)
    made = expansion.Expansion(kernel, categorical, standardizer, support, cells, intercepts)
    X = columns.T * standardizer.unit + standardizer.center
    few, many = made(X[:4], 1, trees[:, :4]), made(X, 1, trees)
    K, expected = kernel(columns, support), np.zeros((20, 2))
    for i in range(20):
        for cell in trees[:, i]:
            own, coef = cells[cell]
            expected[i] += intercepts[cell] + coef @ K[i, own]
    np.testing.assert_allclose(many, expected, atol=1e-5)
    np.testing.assert_array_equal(few, many[:4])


def test_one_row_is_a_row_of_many_for_any_number_of_threads(rng, short, threads):
    X = np.column_stack([rng.normal(size=(300, 3)), rng.integers(3, size=300)])
    y, new = smooth(X), np.column_stack([rng.normal(size=(3000, 3)), rng.integers(3, size=3000)])
    for target in (y, y > np.median(y)):
        kind = KernelMachineClassifier if target.dtype == bool else KernelMachineRegressor
        model = kind(**with_options(LOCAL, n_trees=3), alpha=0.1, categorical_features=[3]).fit(X, target)
        many = model._scores(new)
        for some in (slice(0, 1), slice(5, 15), slice(100, 117), slice(7, 2000)):
            np.testing.assert_array_equal(model._scores(new[some]), many[some])
        for n_jobs in (1, 2):
            np.testing.assert_array_equal(model.set_params(n_jobs=n_jobs)._scores(new), many)


def test_memory_of_a_first_prediction(rng):
    """A row needs 4 bytes per input, kernel and tree, and 8 per coefficient."""
    X = rng.normal(size=(4000, 4))
    given = {**with_options(LOCAL, cell_rows=500, n_trees=2), "gamma": "scale", "alpha": 0.1, "kernel": "laplacian"}
    model = KernelMachineRegressor(**given).fit(X, X[:, 0])
    model.predict(X[:1])  # loads kernels
    assert model.n_trees_ == 2
    loaded = pickle.loads(pickle.dumps(model))
    tracemalloc.start()
    loaded.predict(X[:1])
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    expected = 2 * 4000 * (4 * 4 + 8)
    assert expected <= taken <= 1.25 * expected


# Length scales.


@pytest.mark.parametrize("with_map", [False, True])
def test_slopes_of_a_sum(rng, with_map):
    X = np.vstack([rng.normal(size=(3, 40)), rng.integers(3, size=(1, 40))]).astype(np.float32)
    categorical = np.array([False, False, False, True])
    linear_map = rng.normal(size=(4, 3)) if with_map else None
    of_kernels = [
        matrices.kernel_matrix(kernels.Laplacian(), categorical),
        matrices.kernel_matrix(kernels.Matern(1.5), categorical, None, linear_map),
    ]
    gammas, shares = rng.uniform(0.2, 1.0, size=(2, 4)), [0.7, 0.3]
    whole = np.append(gammas.ravel(), shares)
    total = kernel_sum.SumWithSlopes(of_kernels)
    M = np.tril(rng.normal(size=(40, 40))).astype(np.float32)

    def value(logs):
        return float((M * total.with_slopes(X, np.exp(logs), leave_one_out.Scratch())[0]).sum(dtype=np.float64))

    K, slopes_of = total.with_slopes(X, whole, leave_one_out.Scratch())
    parts = [s * m(X, X, g) for s, m, g in zip(shares, of_kernels, gammas, strict=True)]
    np.testing.assert_allclose(K, sum(parts), atol=1e-6)
    slopes = slopes_of(M.copy())
    expected = naive.slopes_by_entries(value, np.log(whole), step=1e-2)
    still = np.array([False] * 7 + [with_map] + [False] * 2)  # no length scales of categories next to a map
    np.testing.assert_allclose(slopes[~still], expected[~still], rtol=0.02, atol=0.05)
    assert not slopes[still].any()


@pytest.mark.hard
def test_length_scales_of_dense_cells_are_shorter(rng, short):
    X = rng.uniform(-2, 2, size=(1500, 2))
    y = np.sin(3 * X[:, 0]) * np.sin(2.5 * X[:, 1])
    options = {**with_options(LOCAL, cell_rows=200, n_trees=1), "kernel": "laplacian"}
    model = KernelMachineRegressor(**options).fit(X, y)
    assert model.gamma_.min() > model.length_scale_gammas_[-1].max()
    given = KernelMachineRegressor(**options, alpha=0.2).fit(X, y)
    assert given.alpha_ == 0.2


@pytest.mark.hard
def test_a_kernel_far_ahead_of_the_other_stands_twice(rng):
    """The second has longer scales, because targets can vary fast along one input and slowly along others."""
    X = rng.uniform(-1, 1, size=(1200, 4))
    model = KernelMachineRegressor(**with_options(LOCAL, cell_rows=300, n_trees=1))
    model.fit(X, np.sin(8 * X[:, 0]) * X[:, 1] + X.sum(axis=1))
    assert model.kernel_.count("Matern") == 2


def test_few_rows_do_not_tell_that_a_function_is_smooth():
    alone = kernel_sum.KernelPart(kernels.RBF(), np.array([0.5, 0.2]))
    beside = learner.second_kernel(alone)
    assert beside.kernel == kernels.Matern(1.5)
    np.testing.assert_array_equal(beside.gamma, alone.gamma)
    assert learner.second_kernel(beside).kernel == beside.kernel
    assert (learner.second_kernel(beside).gamma < beside.gamma).all()


# Compared with other models.


def smooth(X):
    return np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]


@pytest.mark.parametrize("scoring", [None, *hard("neg_mean_absolute_error")])
def test_many_rows_take_cells(rng, limits, scoring):
    limits(n_steps=8, exact_rows=400, cell_rows=300, sample_grids=(5, 10))
    X, X_new = rng.normal(size=(900, 4)), rng.normal(size=(500, 4))
    y = smooth(X) + 0.05 * rng.normal(size=900)
    options = {"solver_params": {"max_grids": 20}, "scoring": scoring, "random_state": 0}
    model = KernelMachineRegressor(**options).fit(X, y)
    assert (model.features_, model.status_, model.n_grids_) == ("local", "converged", 0)
    grids = KernelMachineRegressor(**options, features="binning").fit(X, y)
    assert model.score(X_new, smooth(X_new)) > grids.score(X_new, smooth(X_new))
    assert KernelMachineRegressor(**options, max_seconds=0).fit(X, y).features_ == "binning"
    assert KernelMachineRegressor(**options, max_bytes=4 * 900 * 4).fit(X, y).features_ == "binning"


def test_rows_of_a_group_are_left_out_together(rng, short):
    X = np.repeat(rng.normal(size=(150, 3)), 4, axis=0) + 1e-6 * rng.normal(size=(600, 3))  # no copies
    y = np.repeat(rng.normal(size=150), 4)
    groups = np.repeat(np.arange(150), 4)
    leak, honest = (
        KernelMachineRegressor(**with_options(LOCAL, n_trees=1)).fit(X, y, groups=given).held_out_error_[0]
        for given in (None, groups)
    )
    assert leak < 0.1 < 0.6 < honest


@pytest.mark.parametrize("seed", hard(0, 2))
def test_the_penalty_is_chosen_by_groups_held_out(seed):
    """With effects of groups, leave-one-out errors of single rows select too small a penalty."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(400), 4)
    X = np.column_stack([rng.normal(size=(400, 5))[groups], rng.normal(size=1600)])
    y = X[:, 0] + 2 * rng.normal(size=400)[groups] + 0.3 * rng.normal(size=1600)
    known = groups < 300
    leak, honest = (
        KernelMachineRegressor(features="local", solver_params={"cell_rows": 300, "n_trees": 1}, random_state=0)
        .fit(X[known], y[known], groups=given)
        .score(X[~known], y[~known])
        for given in (None, groups[known])
    )
    assert leak < honest - 0.2
    assert honest > 0.1


@pytest.mark.parametrize("kernel", ["auto", *hard("rbf", "laplacian")])
@pytest.mark.parametrize("grouped", [True, *hard(False)])
def test_inputs_that_are_all_constant(kernel, grouped):
    y = np.arange(300.0)
    model = KernelMachineRegressor(**LOCAL, kernel=kernel)
    model.fit(np.ones((300, 2)), y, groups=np.arange(300) // 3 if grouped else None)
    np.testing.assert_allclose(model.predict(np.ones((1, 2))), y.mean(), rtol=1e-3)


def test_rows_held_out_are_learned_from_in_the_end(table, short):
    X, y, _ = table
    options = {**GIVEN, "cv": [(np.arange(300), np.arange(300, 400))]}
    whole, part = (KernelMachineRegressor(**options, refit=refit).fit(X, y) for refit in (True, False))
    assert whole._local["support"].shape[1] == 400
    assert part._local["support"].shape[1] == 300
    np.testing.assert_array_equal(whole.held_out_error_, part.held_out_error_)
    expected = np.mean((part.predict(X[300:]) - y[300:]) ** 2) / y[:300].var()
    np.testing.assert_allclose(part.held_out_error_[0] * y.var() / y[:300].var(), expected, rtol=0.05)


def test_tables_of_all_kinds(rng, short):
    n = 300
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.choice(list("xyz"), size=n), "c": np.ones(n)})
    X.loc[::9, "a"] = np.nan
    y = np.where(X["b"] == "x", 1.0, -1.0) + X["a"].fillna(0)
    model = KernelMachineRegressor(**LOCAL).fit(X[:200], np.column_stack([y, -y])[:200])
    unseen = X[200:].assign(b=["new"] * 100)
    assert model.score(X[200:], np.column_stack([y, -y])[200:]) > 0.8
    assert np.isfinite(model.predict(unseen)).all()
    labels = np.where(y > 0, "p", "q")
    classifier = KernelMachineClassifier(**LOCAL).fit(X[:200], labels[:200])
    assert classifier.score(X[200:], labels[200:]) > 0.8
    np.testing.assert_allclose(classifier.predict_proba(unseen).sum(axis=1), 1)
    robust = KernelMachineRegressor(**LOCAL, loss="huber").fit(X[:200], y[:200])
    assert robust.features_ == "local"


# Error bars.


def test_error_bars_of_cells_compute_no_leave_one_out_errors(table, monkeypatch):
    monkeypatch.setattr("binfeat.models.fitted.exact.ExactPosterior._left_out", None)
    X, y, _ = table
    model = KernelMachineRegressor(**GIVEN, cv=[(np.arange(200), np.arange(200, 300))], refit=False)
    assert (model.fit(X[:300], y[:300]).predict(X, return_std=True)[1] > 0).all()


def test_deviations_are_those_of_the_cells_of_the_first_tree(table):
    X, y, _ = table
    X, y, new = X[:200], y[:200], X[200:260]
    model = KernelMachineRegressor(**GIVEN).fit(X, y)
    splits, root = splits_of(model)[0]
    own, others = (np.array([naive.cell_of(row, splits, root) for row in rows]) for rows in (X, new))
    variances, left_out = np.empty(60), np.empty(200)
    for cell in np.unique(own):
        rows, at = own == cell, others == cell
        K = laplacian(X[rows], X[rows])
        left_out[rows] = naive.left_out_variances(K, 0.3)
        variances[at] = np.diag(naive.posterior(K, laplacian(new[at], X[rows]), laplacian(new[at], new[at]), 0.3))
    Y = ((y - y.mean()) / y.std()).reshape(-1, 1)
    _, residuals = naive.local_model(X, Y, new, laplacian, 0.3, splits_of(model))
    noise = np.mean(residuals[:, 0] ** 2 / (1 + left_out))
    predicted, std = model.predict(new, return_std=True)
    np.testing.assert_array_equal(predicted, model.predict(new))
    np.testing.assert_allclose(std, y.std() * np.sqrt(noise * variances), rtol=3e-3)


def test_samples_belong_together_within_a_cell(table):
    X, y, _ = table
    model = KernelMachineRegressor(**with_options(GIVEN, n_trees=1)).fit(X[:200], y[:200])
    splits, root = splits_of(model)[0]
    first = X[0]
    far = next(row for row in X if naive.cell_of(row, splits, root) != naive.cell_of(first, splits, root))
    rows = np.array([first, first + 1e-3, far])
    samples = model.sample_y(rows, 4000, random_state=1)
    predicted, std = model.predict(rows, return_std=True)
    error = 5 * std / np.sqrt(4000)
    assert (np.abs(samples.mean(axis=1) - predicted) < error).all()
    correlation = np.corrcoef(samples)
    assert correlation[0, 1] > 0.9
    assert abs(correlation[0, 2]) < 5 / np.sqrt(4000)


def test_intervals_hold_what_they_say(rng, short):
    X, X_new = rng.normal(size=(1500, 2)), rng.normal(size=(4000, 2))

    def noisy(X):
        return np.sin(2 * X[:, 0]) + 0.3 * rng.standard_t(4, size=len(X))

    model = KernelMachineRegressor(**with_options(LOCAL, cell_rows=300, n_trees=3)).fit(X, noisy(X))
    for coverage in (0.5, 0.8, 0.95):
        low, high = model.predict_interval(X_new, coverage).T
        y = noisy(X_new)
        share, error = np.mean((low <= y) & (y <= high)), np.sqrt(coverage * (1 - coverage) * (1 / 1500 + 1 / 4000))
        assert abs(share - coverage) < 4 * error


# Interrupts and warm starts.


def test_trees_are_added_while_they_pay(rng, short):
    X = rng.normal(size=(600, 4))
    model = KernelMachineRegressor(**LOCAL).fit(X, smooth(X))
    numbers, errors = model.learning_curve_.T
    np.testing.assert_array_equal(numbers, np.arange(1, model.n_trees_ + 1))
    assert model.n_trees_ > 1
    assert errors[-1] < errors[0]
    assert KernelMachineRegressor(**with_options(LOCAL, n_trees=3)).fit(X, smooth(X)).n_trees_ == 3
    assert KernelMachineRegressor(**LOCAL, max_seconds=0).fit(X, smooth(X)).n_trees_ == 1


def test_weak_signals_get_trees_that_lower_the_error_by_a_share_of_the_explained_part():
    """They lower the total error, which is mostly noise, by less than the required share of strong signals."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 4))
    means = 0.25 * np.sin(X[:, 0])
    y = means + rng.normal(size=1500)
    given = {**GIVEN, "gamma": [0.3, 0.2, 0.1, 0.1], "alpha": 30.0}
    one, several = (
        KernelMachineRegressor(**{**given, "solver_params": {"cell_rows": 100, **options}}).fit(X, y)
        for options in ({"n_trees": 1}, {})
    )
    assert several.n_trees_ > 2
    assert np.mean((several.predict(X) - means) ** 2) < 0.9 * np.mean((one.predict(X) - means) ** 2)


@pytest.mark.hard
def test_trees_that_take_away_a_hundredth_of_what_is_negligible_do_not_pay(rng, short, monkeypatch):
    X = rng.normal(size=(600, 4))
    more = KernelMachineRegressor(**LOCAL).fit(X, smooth(X))
    monkeypatch.setattr(problem, "_NEGLIGIBLE", 0.95 * more.learning_curve_[-1, 1])
    fewer = KernelMachineRegressor(**LOCAL).fit(X, smooth(X))
    assert fewer.kernel_ == more.kernel_
    assert 1 < fewer.n_trees_ < more.n_trees_


@pytest.mark.hard
def test_a_limit_that_allows_a_tree_allows_choices_before_it(rng, short, monkeypatch):
    """An exact model of as many rows would use the whole time."""
    monkeypatch.setattr(sizes, "SIZES", replace(sizes.SIZES, pair_seconds=1.0))
    X = rng.normal(size=(600, 3))
    free, limited = (
        KernelMachineRegressor(**with_options(LOCAL, n_trees=1), max_seconds=seconds).fit(X, smooth(X))
        for seconds in (None, 3 * 600 * 50)
    )
    assert sizes.exact_seconds(600, 3) > 3 * 600 * 50
    assert re.findall("[A-Z]\\w+", limited.kernel_) == re.findall("[A-Z]\\w+", free.kernel_)
    np.testing.assert_allclose(limited.alpha_, free.alpha_, rtol=0.5)  # steps of the search depend on the time


@pytest.fixture
def slow_trees(clock_of_fits, monkeypatch):
    """Let each tree take 10 s of the clock, a list of the seconds."""
    now, grow = [0.0], cell_ensemble.CellEnsemble.grow

    def slow_grow(self):
        now[0] += 10
        grow(self)

    clock_of_fits(lambda: now[0])
    monkeypatch.setattr(cell_ensemble.CellEnsemble, "grow", slow_grow)
    return now


@pytest.mark.hard
def test_seconds_that_are_left_buy_larger_cells(rng, limits, slow_trees, monkeypatch):
    """A tree takes 10 s, and three trees with cells of twice as many rows are expected to take 120 s."""
    limits(n_steps=3, cell_rows=50)
    X = rng.normal(size=(300, 4))

    def fitted(**options):
        return KernelMachineRegressor(features="local", random_state=0, **with_options(options, n_trees=2)).fit(
            X, smooth(X)
        )

    free, ample = fitted(), fitted(max_seconds=1e6)
    assert [np.diff(model._local["starts"]).max() > 50 for model in (free, ample)] == [False, True]
    assert ample.held_out_error_[0] < free.held_out_error_[0]
    assert "rows of a cell" in ample.summary()
    finishing, given = fitted(max_seconds=150), fitted(max_seconds=1e6, solver_params={"cell_rows": 50})
    narrow = fitted(max_seconds=1e6, max_bytes=32 * 100**2)
    monkeypatch.setattr(local.LocalSolver, "gain", 1.0)  # cannot be reached
    for model in (finishing, given, narrow, fitted(max_seconds=1e6)):
        np.testing.assert_array_equal(model.predict(X), free.predict(X))


def test_time_for_a_refit_is_kept(table, slow_trees):
    """A tree takes 10 s, and is grown again for the refit."""
    X, y, _ = table
    options, cv = with_options(GIVEN, n_trees=4), [(np.arange(300), np.arange(300, 400))]
    for refit, n_trees in ((True, 2), (False, 4)):
        slow_trees[0] = 0.0
        assert KernelMachineRegressor(**options, cv=cv, refit=refit, max_seconds=45).fit(X, y).n_trees_ == n_trees
        assert slow_trees[0] <= 45


def test_a_callback_stops_it_before_larger_cells(rng, limits):
    limits(n_steps=15, cell_rows=50)
    X = rng.normal(size=(300, 3))
    model = KernelMachineRegressor(features="local", max_seconds=1000, random_state=0)
    model.set_callbacks(Callback("step", stop_at=1)).fit(X, smooth(X))
    assert (model.status_, model.n_trees_) == ("stopped", 1)
    assert np.diff(model._local["starts"]).max() <= 50


def test_interrupted_with_larger_cells(rng, limits):
    limits(n_steps=15, cell_rows=50)
    X = rng.normal(size=(300, 3))
    model = KernelMachineRegressor(features="local", max_seconds=1000, random_state=0)
    with interrupted(cell_ensemble.CellEnsemble, "grow", 2, once=True), pytest.raises(KeyboardInterrupt):
        model.fit(X, smooth(X))
    assert (model.status_, model.n_trees_) == ("interrupted", 1)
    assert np.diff(model._local["starts"]).max() <= 50


def test_a_callback_stops_it(rng, short):
    X = rng.normal(size=(300, 3))
    model = KernelMachineRegressor(**LOCAL).set_callbacks(Callback("step", stop_at=1)).fit(X, smooth(X))
    assert (model.status_, model.n_trees_) == ("stopped", 1)


@pytest.mark.parametrize(("call", "n_trees"), [*hard((1, 1)), (2, 1), *hard((3, 2))])
def test_interrupted(rng, short, call, n_trees):
    X = rng.normal(size=(300, 3))
    model = KernelMachineRegressor(**with_options(LOCAL, n_trees=4))
    with interrupted(cell_ensemble.CellEnsemble, "grow", call, once=True), pytest.raises(KeyboardInterrupt):
        model.fit(X, smooth(X))
    assert (model.status_, model.n_trees_) == ("interrupted", n_trees)
    assert model.score(X, smooth(X)) > 0.5


@pytest.mark.hard
def test_a_warm_start_keeps_the_kernel(rng, short):
    X = rng.normal(size=(600, 3))
    model = KernelMachineRegressor(**LOCAL, warm_start=True).fit(X[:500], smooth(X)[:500])
    gamma, kernel = model.gamma_, model.kernel_
    model.fit(X, smooth(X))
    assert (model.features_, model.kernel_) == ("local", kernel)
    np.testing.assert_allclose(model.gamma_, gamma, rtol=1e-6)
    assert "warm start" in model.summary()


# Errors.


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"kernel": "hat"},
            ValueError,
            r"features='local' accepts kernel='auto', 'laplacian', 'rbf', or one of .*; got 'hat'\.",
        ),
        ({"solver_params": {"n_trees": 0}}, ValueError, r"solver_params\['n_trees'\] must be at least 1, got 0"),
        (
            {"solver_params": {"n_trees": "many"}},
            TypeError,
            r"\['n_trees'\] must be an integer of at least 1, got 'many'",
        ),
        ({"solver_params": {"cell_rows": 1}}, ValueError, r"\['cell_rows'\] must be at least 2"),
        ({"solver_params": {"cell_rows": 2.5}}, TypeError, r"\['cell_rows'\] must be"),
    ],
)
def test_refusals(table, options, error, message):
    X, y, _ = table
    with pytest.raises(error, match=message):
        KernelMachineRegressor(**{**GIVEN, **options}).fit(X, y)


DAMAGE = {
    "children": lambda a: np.zeros_like(a),
    "roots": lambda a: a + 1000,
    "inputs": lambda a: a + 4,
    "rows": lambda a: a - 1,
    "starts": lambda a: a[::-1].copy(),
    "cell_alphas": lambda a: a[1:],
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_trees_are_refused(table, name):
    X, y, _ = table
    model = KernelMachineRegressor(**GIVEN).fit(X, y)
    state = {**model.__getstate__(), "_local": {**model._local, name: DAMAGE[name](model._local[name])}}
    with pytest.raises(ValueError, match="This KernelMachineRegressor is damaged: "):
        clone(model).__setstate__(state)


def test_seconds_of_a_cell_are_measured_and_grow_with_rows_and_inputs(monkeypatch):
    assert sizes._cell_seconds(100, 4) == sizes._cell_seconds(100, 4) > 0  # measured once
    ticks = iter(range(1000))
    monkeypatch.setattr(sizes, "perf_counter", lambda: float(next(ticks)))
    seconds = sizes._cell_seconds.__wrapped__
    assert [seconds(100, 4), seconds(3000, 4), seconds(100, 400)] == [1.0, 8.0, 4.0]


@pytest.mark.hard
def test_a_second_tree_that_separates_levels_is_not_added(limits):
    """Only without effects of levels, which all trees share."""
    limits(without=["global_part"])
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(2000, 3)), columns=list("abc"))
    level = np.repeat(np.arange(400), 5)
    rng.shuffle(level)
    frame["level"] = pd.Categorical(level.astype(str))
    y = np.sin(2 * frame["a"]) + rng.normal(size=400)[level] + 0.3 * rng.normal(size=2000)
    options = with_options(LOCAL, cell_rows=200)
    model = KernelMachineRegressor(**options).fit(frame, y)
    assert model.n_trees_ == 1
    two = KernelMachineRegressor(**with_options(options, n_trees=2)).fit(frame, y)
    assert two.learning_curve_[1, 1] > two.learning_curve_[0, 1]
