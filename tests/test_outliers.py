"""OutlierDetector: slow twin, exact kernels, scikit-learn; one score for all inputs; drift; errors."""

import pickle
from decimal import Decimal
from fractions import Fraction

import naive
import numpy as np
import pandas as pd
import pytest
from hard import easy, hard
from numba import typeof
from scipy import sparse, stats
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KernelDensity

import binfeat
from binfeat import OutlierDetector, kernels
from binfeat._rows import row_sample
from binfeat.density import counted_bins
from binfeat.features.binning import two_samples

D, SEED = 4, 3
UNITS = np.array([0.1, 0.2, 0.05, 0.3])
EXACT = {"gamma": UNITS, "fineness": (2.0, 6.0), "n_grids": 12, "input_share": 1.0, "random_state": SEED}
GAMMAS = [2 * UNITS, 6 * UNITS]


@pytest.fixture
def X(rng):
    return rng.normal(size=(60, D))


def with_missing(rng):
    X = rng.normal(size=(30, D))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


TABLES = {
    "plain": lambda rng: rng.normal(size=(30, D)),
    "missing": with_missing,
    "duplicates": lambda rng: np.repeat(rng.normal(size=(8, D)), 4, axis=0),
    "constant": lambda rng: np.column_stack([np.full(30, 7.0), rng.normal(size=(30, D - 1))]),
    "whole numbers": lambda rng: rng.integers(0, 3, size=(30, D)),
    "one row": lambda rng: rng.normal(size=(1, D)),
}


@pytest.mark.engine
@pytest.mark.parametrize("name", easy(TABLES, "missing", "duplicates", "constant", "one row"))
def test_scores_and_densities_are_those_of_the_twin(name, rng):
    X = np.asarray(TABLES[name](rng), dtype=np.float64)
    rows = np.concatenate([X[:5], rng.normal(size=(25, D))])
    detector = OutlierDetector(**EXACT).fit(X)
    expected = naive.outlier_scores(rows, X, "laplacian", GAMMAS, 12, SEED)
    np.testing.assert_allclose(detector.score_samples(rows), expected, atol=1e-12)
    expected = naive.densities(rows, X, "laplacian", GAMMAS, 12, SEED, n_levels=2, n_training=len(X))
    np.testing.assert_allclose(detector.density(rows), expected, atol=1e-12)


@pytest.mark.engine
def test_grids_that_skip_inputs_are_those_of_the_twin(X):
    detector = OutlierDetector(**EXACT | {"input_share": 0.5}).fit(X)
    gammas = [2 * gamma for gamma in GAMMAS]
    expected = naive.outlier_scores(X, X, "half_skipped", gammas, 12, SEED)
    np.testing.assert_allclose(detector.score_samples(X), expected, atol=1e-12)


@pytest.mark.engine
def test_categories_are_those_of_the_twin(X):
    X[:, 1] = np.arange(60) % 3
    detector = OutlierDetector(**EXACT, categorical_features=[1]).fit(X)
    rows = X[:20] + np.array([0.01, 0, 0, 0])
    expected = naive.outlier_scores(rows, X, "laplacian", GAMMAS, 12, SEED, categorical=(1,))
    np.testing.assert_allclose(detector.score_samples(rows), expected, atol=1e-12)


@pytest.mark.parametrize("input_share", [0.5, *hard(1.0)])
def test_density_is_within_its_standard_errors_of_the_exact_kernel_mean(input_share, rng):
    X, rows = rng.normal(size=(50, D)), rng.normal(size=(200, D))
    options = {"n_grids": 3000, "fineness": (2.0, 6.0), "gamma": UNITS, "input_share": input_share}
    density, error = OutlierDetector(**options, random_state=0).fit(X).density(rows)
    kernel = kernels.Skip(kernels.Laplacian(), 1 - input_share)
    exact = np.mean([kernel(rows, X, gamma=gamma / input_share).mean(axis=1) for gamma in GAMMAS], axis=0)
    z = (density - exact) / error
    assert (np.abs(z) < 3).mean() > 0.98
    assert 0.5 < np.sqrt(np.mean(z**2)) < 1.5


def test_density_agrees_with_kernel_density(rng):
    X, rows = rng.normal(size=(100, 2)), rng.normal(size=(50, 2))
    detector = OutlierDetector(gamma=1.5, fineness=1.0, input_share=1.0, n_grids=4000, random_state=0).fit(X)
    peer = KernelDensity(kernel="exponential", metric="manhattan", bandwidth=1 / 1.5).fit(X).score_samples(rows)
    ratio = np.log(detector.density(rows)[0]) - peer
    assert np.ptp(ratio) < 0.3


def test_length_scales_of_inputs(X):
    X[:, 0] = 5.0
    X[:, 1] *= 100
    X[::7, 2] = np.nan
    gamma = OutlierDetector(random_state=0).fit(X).gamma_
    np.testing.assert_allclose(gamma, 1 / (3 * np.array([1.0, X[:, 1].std(), np.nanstd(X[:, 2]), X[:, 3].std()])))


def test_inputs_of_any_unit(X):
    for factor in (1e-300, 1e-8, 1e200):
        scores = OutlierDetector(random_state=0).fit(X * factor).score_samples(X * factor)
        np.testing.assert_allclose(scores, OutlierDetector(random_state=0).fit(X).score_samples(X), atol=0.1)


def test_scores_do_not_depend_on_the_form_of_the_rows(rng, threads):
    X = np.where(rng.random((600, 6)) < 0.3, 0.0, rng.normal(size=(600, 6))).astype(np.float32)
    new = np.concatenate([X[:40], X[:40] + np.float32(0.1)])
    threads(1)
    reference = OutlierDetector(random_state=0).fit(X.astype(np.float64))
    scores = reference.score_samples(new)
    threads(2)
    for form in (np.asfortranarray, sparse.csr_matrix, sparse.csc_array, lambda X: X.astype(np.float64)):
        detector = OutlierDetector(random_state=0).fit(form(X))
        np.testing.assert_array_equal(detector.score_samples(form(new)), scores)
        np.testing.assert_array_equal(detector.density(form(new)), reference.density(new))
        np.testing.assert_array_equal(detector.contributions(form(new[:3])), reference.contributions(new[:3]))
        assert detector.offset_ == reference.offset_
    one_by_one = np.concatenate([reference.score_samples(row[None]) for row in new])
    np.testing.assert_array_equal(one_by_one, scores)


def test_read_only_rows_use_the_same_kernels(X, monkeypatch):
    detector, types = OutlierDetector(**EXACT).fit(X), set()
    for name in ("score_rows", "replace_inputs"):
        kernel = getattr(counted_bins, name)

        def call(X, *arguments, kernel=kernel, **options):
            types.add(typeof(X))
            return kernel(X, *arguments, **options)

        monkeypatch.setattr(counted_bins, name, call)
    fixed = X.copy()
    fixed.flags.writeable = False
    for method in (detector.score_samples, detector.contributions):
        np.testing.assert_array_equal(method(fixed[:3]), method(X[:3]))
    assert len(types) == 1


@pytest.mark.parametrize("block_rows", [70, 1000])
def test_blocks_give_what_rows_in_memory_give(block_rows, rng, monkeypatch):
    monkeypatch.setattr(row_sample, "MOST_ROWS", 100)
    X = rng.normal(size=(500, 5))
    source = binfeat.blocks(X, np.zeros(500), block_rows=block_rows)
    streamed, whole = (OutlierDetector(random_state=0).fit(rows) for rows in (source, X))
    assert streamed.offset_ == whole.offset_
    np.testing.assert_array_equal(streamed.score_samples(source), whole.score_samples(X))
    np.testing.assert_array_equal(streamed.predict(source), whole.predict(X))


@pytest.mark.parametrize("most", [100, 10_000])
def test_partial_fit_adds_and_forget_removes(most, rng, monkeypatch):
    monkeypatch.setattr(row_sample, "MOST_ROWS", most)
    X, options = rng.normal(size=(600, 5)), {"gamma": 0.2, "fineness": (4, 8), "random_state": 0}
    whole = OutlierDetector(**options).fit(X)
    parts = OutlierDetector(**options).partial_fit(X[:200]).partial_fit(X[200:450]).partial_fit(X[450:])
    np.testing.assert_array_equal(parts.score_samples(X), whole.score_samples(X))
    assert (parts.offset_, parts.n_rows_) == (whole.offset_, 600)
    window, last = parts.forget(X[:200]), OutlierDetector(**options).fit(X[200:])
    np.testing.assert_array_equal(window.score_samples(X), last.score_samples(X))
    assert window.n_rows_ == 400
    if most > len(X):
        assert window.offset_ == last.offset_


def test_sparse_and_dense_rows_can_be_added_to_each_other(X):
    expected = OutlierDetector(**EXACT).fit(X[:40]).partial_fit(X[40:])
    for first, second in ((np.asarray, sparse.csr_array), (sparse.csr_array, np.asarray)):
        detector = OutlierDetector(**EXACT).fit(first(X[:40])).partial_fit(second(X[40:]))
        assert detector.offset_ == expected.offset_
        np.testing.assert_array_equal(detector.score_samples(X), expected.score_samples(X))


def counting(n_rows, n_grids, most):
    """Return the rows that each grid counts, with Python integers: an interval of the cycle of all orders."""
    orders = [int(order) for order in row_sample.orders_of(n_rows, SEED)]
    width = -(-most * 2**64 // n_rows)
    firsts = [p * min(width * n_grids, 2**64) // n_grids for p in range(n_grids)]
    return [{i for i, order in enumerate(orders) if (order - first) % 2**64 < width} for first in firsts]


@pytest.mark.engine
@pytest.mark.parametrize("most", [2, 30])  # disjoint and overlapping intervals
def test_each_grid_counts_its_own_rows(most, X, rng):
    detector = OutlierDetector(**EXACT, max_samples=most).fit(X)
    rows, counted = np.concatenate([X, rng.normal(size=(20, D))]), counting(60, 12, most)
    shared = naive.shared_bins(rows, X, "laplacian", GAMMAS, 12, SEED)
    expected = [
        np.mean([np.log((1 + len(own[i] & of - {i})) / max(1, len(of))) for own, of in zip(shared, counted)])
        for i in range(len(rows))
    ]
    np.testing.assert_allclose(detector.score_samples(rows), expected, atol=1e-12)
    np.testing.assert_array_equal([detector.score_samples(row[None])[0] for row in rows], detector.score_samples(rows))
    shares = [[len(own[i] & of) / max(1, len(of)) for i in range(len(rows))] for own, of in zip(shared, counted)]
    np.testing.assert_allclose(detector.density(rows)[0], np.mean(shares, axis=0), atol=1e-12)


@pytest.mark.parametrize("most", [20, 200])
def test_subsampled_detectors_are_updated_exactly(most, rng):
    X, options = rng.normal(size=(600, 5)), {"gamma": 0.2, "fineness": 8.0, "n_grids": 20, "random_state": 0}
    X[100:200] = X[:100]
    whole = OutlierDetector(**options, max_samples=most).fit(X)
    streamed = OutlierDetector(**options, max_samples=most).fit(binfeat.blocks(X, np.zeros(600), block_rows=70))
    parts = OutlierDetector(**options, max_samples=most // 2).fit(X[:300]).partial_fit(X[300:])
    for detector in (streamed, parts):
        np.testing.assert_array_equal(detector.score_samples(X), whole.score_samples(X))
        assert detector.offset_ == whole.offset_
    if most == 20:
        with pytest.raises(ValueError, match="max_samples=10 with n_grids=20 counts only a part of 600 rows"):
            parts.forget(X[:200])
    else:
        before, more = parts.score_samples(X), rng.normal(size=(50, 5))
        np.testing.assert_array_equal(parts.partial_fit(more).forget(more[::-1]).score_samples(X), before)
        assert parts.forget(X[:200]).partial_fit(X[:200]).n_rows_ == 600


def test_subsamples_keep_the_order_of_scores(rng):
    X = np.concatenate([rng.normal(size=(20_000, 5)), rng.normal(size=(200, 5)) * 2])
    whole, part = (OutlierDetector(max_samples=most, random_state=0).fit(X).score_samples(X) for most in (None, 4096))
    assert stats.spearmanr(whole, part).statistic > 0.99


def test_forget_refuses_rows_that_are_not_training_rows(X):
    detector = OutlierDetector(random_state=0).fit(X)
    before = detector.score_samples(X)
    with pytest.raises(ValueError, match="X has rows that are not training rows; forget only rows"):
        detector.forget(X[:5] + 1)
    with pytest.raises(ValueError, match="at least one row must remain"):
        detector.forget(X)
    np.testing.assert_array_equal(detector.score_samples(X), before)
    detector.forget(X[:-1])
    assert detector.n_rows_ == 1


@pytest.mark.engine
def test_rows_far_from_the_origin_are_distinguished(rng):
    """Differences may be the smallest that float64 can represent, for example between times in seconds."""
    X = np.vstack([1.7e9 + rng.normal(size=(300, 1)), [[1e15]]])
    new = np.nextafter(X, np.inf)
    detector = OutlierDetector(gamma=1.0, n_grids=8, max_samples=100, random_state=0).fit(X)
    order = row_sample.orders_of(301, detector._seed)
    for rows, is_known in ((X, True), (new, False)):
        known, orders = detector._counted.find(rows)
        np.testing.assert_array_equal(known, is_known)
        np.testing.assert_array_equal(orders, order if is_known else 0)
        one_by_one = [detector.score_samples(row[None])[0] for row in rows]
        np.testing.assert_array_equal(one_by_one, detector.score_samples(rows))
    with pytest.raises(ValueError, match="X has rows that are not training rows"):
        detector.forget(new[-1:])
    assert detector.forget(X[-1:]).n_rows_ == 300


def test_copies_of_forgotten_rows_leave_the_sample():
    X = np.repeat([[0.0], [1.0]], 500, axis=0)
    options = {"max_samples": None, "random_state": 0, "gamma": 1.0}
    window, last = OutlierDetector(**options).fit(X).forget(X[:490]), OutlierDetector(**options).fit(X[490:])
    assert window.offset_ == pytest.approx(last.offset_, rel=1e-12)
    np.testing.assert_array_equal(window.predict([[0.0], [1.0]]), [-1, 1])
    assert window.drift(np.append(np.zeros((6, 1)), np.ones((294, 1)), axis=0)).p_value > 0.1


def test_a_sliding_window_keeps_a_uniform_sample(rng, monkeypatch):
    """Rows that are added after others were removed are not sampled more often."""
    monkeypatch.setattr(row_sample, "MOST_ROWS", 1000)
    old, new = rng.normal(size=(4000, 1)), 10 + rng.normal(size=(1000, 1))
    detector = OutlierDetector(max_samples=None, gamma=1.0, n_grids=4, random_state=0)
    window = detector.fit(old).forget(old[:3000]).partial_fit(new)
    share = (window._sample.rows > 5).mean()
    n_rows = len(window._sample.orders)
    assert n_rows > 400
    assert abs(share - 0.5) < 4 * 0.5 / np.sqrt(n_rows)
    after = window.forget(old[3000:]).partial_fit(old[:3000])
    assert np.isclose((after._sample.rows > 5).mean(), 0.25, atol=4 * np.sqrt(3 / 16 / len(after._sample.orders)))


def test_rows_can_be_added_if_no_row_of_the_sample_is_left(rng, monkeypatch):
    monkeypatch.setattr(row_sample, "MOST_ROWS", 100)
    X = rng.normal(size=(2000, 2))
    detector = OutlierDetector(max_samples=None, n_grids=4, random_state=0).fit(X)
    orders = row_sample.orders_of(2000, detector._seed)
    highest = np.argsort(orders)[-2:]
    detector.forget(np.delete(X, highest, axis=0))
    for use in (detector.contributions, detector.drift):
        with pytest.raises(ValueError, match=r"needs a sample of training rows, which forget\(\) removed"):
            use(X[:5])
    detector.partial_fit(X[:1500])
    assert 0 < len(detector._sample.orders) <= 100
    assert (detector.predict(X) == 1).mean() > 0.9
    assert detector.forget(X[:10]).n_rows_ == 1492


@pytest.mark.parametrize("contamination", [0.01, 0.1, 0.5])
def test_contamination_is_the_share_of_training_rows(contamination, rng):
    X = rng.normal(size=(1000, 5))
    detector = OutlierDetector(contamination=contamination, random_state=0).fit(X)
    assert (detector.predict(X) == -1).mean() == pytest.approx(contamination, abs=0.002)
    new = rng.normal(size=(5000, 5))
    assert (detector.predict(new) == -1).mean() == pytest.approx(contamination, abs=0.04)


@pytest.mark.parametrize("contamination", [np.array(0.1), np.float32(0.1), Decimal("0.1"), Fraction(1, 10)])
def test_contamination_of_each_type_of_number(contamination, X):
    expected = OutlierDetector(n_grids=9, contamination=0.1, random_state=0).fit(X)
    detector = OutlierDetector(n_grids=9, contamination=contamination, random_state=0).fit(X)
    assert detector.offset_ == pytest.approx(expected.offset_)


@pytest.mark.parametrize("contamination", ["auto", 0.005])
def test_rows_without_another_row_in_their_bins_are_outliers(contamination, rng):
    """They are tied at the lowest score, so a quantile of the scores is not above it if they are many."""
    X, options = rng.normal(size=(1030, 3)), {"contamination": contamination, "gamma": 0.3, "random_state": 0}
    X[1000:] = np.linspace(20, 1000, 30)[:, None]
    detector = OutlierDetector(**options).fit(X)
    parts = OutlierDetector(**options).partial_fit(X[:1000]).partial_fit(X[1000:])
    for fitted in (detector, pickle.loads(pickle.dumps(detector)), detector.compact(), parts):
        np.testing.assert_array_equal(fitted.predict(X[1000:]), -1)
        np.testing.assert_array_equal(fitted.predict([[-1e6, 1e6, 1e6]]), [-1])
        assert (fitted.predict(X[:1000]) == -1).sum() < 5


def test_rows_far_from_all_others_are_outliers_if_no_row_of_the_sample_is_left(rng, monkeypatch):
    monkeypatch.setattr(row_sample, "MOST_ROWS", 10)
    X = rng.normal(size=(1000, 2))
    detector = OutlierDetector(contamination=1e-6, max_samples=None, random_state=0).fit(X)
    detector.offset_ = detector.score_samples([[1e6, 1e6]])[0]
    last = np.argsort(row_sample.orders_of(1000, detector._seed))[-900:]
    detector.forget(np.delete(X, last, axis=0))
    np.testing.assert_array_equal(detector.predict([[1e6, 1e6]]), [-1])


def test_obvious_outliers_are_found(rng):
    X = np.concatenate([rng.normal(size=(2000, 10)), rng.normal(size=(20, 10)) * 3])
    labels = np.arange(2020) >= 2000
    detector = OutlierDetector(random_state=0)
    assert roc_auc_score(labels, -detector.fit(X).score_samples(X)) > 0.99
    assert (detector.predict(X[2000:]) == -1).mean() > 0.7
    assert (detector.predict(X[:2000]) == -1).mean() < 0.05


@pytest.mark.parametrize(
    "wild", [[1e6], [-999.0] * 20, 1e5 * np.arange(1, 21), [1e300] * 20], ids=["one", "a code", "many", "huge"]
)
def test_wild_training_values_do_not_hide_outliers_and_drift(rng, wild):
    X, new = rng.normal(size=(2000, 4)), rng.normal(size=(400, 4))
    X[: len(wild), 0], first = wild, np.eye(4)[0]
    X[-50:, 0] = np.nan
    detector = OutlierDetector(random_state=0).fit(X)
    assert (detector.predict(new + 10 * first) == -1).mean() > 0.9
    assert detector.drift(new + 2 * first).p_value == 1 / 200
    for same in (sparse.csr_array(X), binfeat.blocks(X, np.zeros(2000), block_rows=300)):
        np.testing.assert_array_equal(OutlierDetector(random_state=0).fit(same).gamma_, detector.gamma_)


@pytest.mark.engine
def test_contributions_are_differences_of_scores(X):
    X = np.repeat(X, 2, axis=0) + np.repeat([[0.0], [1e-6]], 60, axis=1).T.reshape(-1, 1)
    detector = OutlierDetector(**EXACT).fit(X)
    order = np.argsort(detector.score_samples(X), kind="stable")[60:]
    typical = X[order[np.linspace(0, 59, 16).astype(int)]]
    new = X[:4] + 0.5
    found = detector.contributions(new)
    for i, j in np.ndindex(4, D):
        replaced = np.repeat(new[[i]], 16, axis=0)
        replaced[:, j] = typical[:, j]
        rise = detector.score_samples(replaced).mean() - detector.score_samples(new[[i]])[0]
        assert found[i, j] == pytest.approx(rise, abs=1e-12)


@pytest.mark.parametrize("name", ["x1", 1])
def test_the_column_of_a_frame_with_infinite_numbers_is_named(X, name):
    frame = pd.DataFrame(X, columns=[name if j == 1 else type(name)(j + 5) for j in range(D)])
    detector = OutlierDetector(n_grids=10, random_state=0).fit(frame)
    frame.loc[3, name] = np.inf
    for method in (detector.score_samples, detector.fit):
        with pytest.raises(ValueError, match=f"column {name!r} of X: Input X contains infinity"):
            method(frame)


@pytest.mark.engine
def test_one_infinite_row_is_refused(X):
    """The kernel for few rows finds infinity itself."""
    detector = OutlierDetector(**EXACT).fit(X)
    for value in (np.inf, -np.inf):
        row = X[:1].copy()
        row[0, -1] = value
        with pytest.raises(ValueError, match="X contains infinity"):
            detector.score_samples(row)


def test_contributions_name_the_strange_input(rng):
    X = rng.normal(size=(2000, 8))
    strange = X[:50].copy()
    strange[np.arange(50), np.arange(50) % 8] += 6
    for rows in (strange, X[:0]):
        found = OutlierDetector(random_state=0).fit(np.concatenate([X[50:], rows])).contributions(strange)
        assert (found.argmax(axis=1) == np.arange(50) % 8).mean() > 0.95


@pytest.mark.engine
def test_squared_mmd_is_that_of_the_twin(rng):
    first, second, gamma = rng.normal(size=(12, 2)), rng.normal(size=(9, 2)) + 1, np.array([0.3, 0.6])
    is_first = np.arange(21) < 12
    rows, none = np.concatenate([first, second]), np.zeros(2, bool)
    found = two_samples._distances(rows, np.stack([is_first, ~is_first]), kernels.Laplacian(), gamma, 30, 0, none)
    cells = naive.cells(rows, "laplacian", gamma, 30, 0)

    def kernel(i, j):
        return sum(of_grid[i] == of_grid[j] for of_grid in cells) / 30

    np.testing.assert_allclose(found, naive.squared_mmd(range(12), range(12, 21), kernel))


def test_drift_is_found_and_attributed(rng):
    X = rng.normal(size=(3000, 5))
    detector = OutlierDetector(random_state=0).fit(X)
    found = detector.drift(rng.normal(size=(500, 5)) + np.array([0, 0, 0.7, 0, 0]))
    assert found.p_value == 1 / 200
    assert found.squared_mmd > 0
    assert found.input_shares.argmax() == 2
    assert found.input_shares.sum() == pytest.approx(1)
    assert str(found).startswith("The table has drifted: p = 0.005")
    assert "x2: " in str(found)
    assert detector.drift(rng.normal(size=(500, 5))).p_value > 0.01


def test_contributions_and_drift_are_computed_in_parts(X, monkeypatch):
    """Each part takes less than a second, so Ctrl-C is never ignored for long."""
    detector, calls = OutlierDetector(**EXACT).fit(X), []
    whole, drift = detector.contributions(X), detector.drift(X + 0.1)
    for module, name in ((counted_bins, "replace_inputs"), (two_samples, "squared_distances")):
        kernel = getattr(module, name)

        def call(*arguments, kernel=kernel, name=name, **options):
            calls.append(name)
            kernel(*arguments, **options)

        monkeypatch.setattr(module, name, call)
    monkeypatch.setattr(counted_bins, "_LOOK_UPS", 1)
    monkeypatch.setattr(two_samples, "_ROWS_AT_A_TIME", 1)
    np.testing.assert_array_equal(detector.contributions(X), whole)
    assert calls.count("replace_inputs") >= 60 // counted_bins.thread_count(None)
    assert detector.drift(X + 0.1).squared_mmd == drift.squared_mmd
    np.testing.assert_array_equal(detector.drift(X + 0.1).input_p_values, drift.input_p_values)
    assert calls.count("squared_distances") == 2 * 200 * (1 + D)


def test_drift_of_a_categorical_input_among_others_is_found(rng):
    old, new = (np.column_stack([rng.choice(500, n), rng.normal(size=(n, 4))]) for n in (2000, 1000))
    new[:, 0] += 1000
    found = OutlierDetector(categorical_features=[0], random_state=0).fit(old).drift(new)
    assert found.input_p_values[0] == 1 / 200
    assert found.is_significant
    assert str(found).startswith("The table has drifted: p = ")


def test_the_p_value_of_single_inputs_and_of_all_together(rng):
    """P-values of all assignments are uniform, and constant inputs have no influence."""
    whole, alone = rng.normal(size=199), rng.normal(size=(199, 3)) ** 2
    alone[:, 2] = 0.1
    of_all = [two_samples._p_value_of_table(np.roll(whole, -k), np.roll(alone, -k, axis=0)) for k in range(199)]
    assert [np.mean(np.array(of_all) <= level) <= level for level in (0.01, 0.05, 0.5)] == [True] * 3
    assert np.mean(np.array(of_all) <= 0.5) > 0.45
    alone[0, 1] = 100.0
    whole[0] = whole.min()
    assert two_samples._p_value_of_table(whole, alone) == pytest.approx(2 / 199)
    assert two_samples._p_value_of_table(whole, alone[:, ::2]) > 0.05


@pytest.mark.hard
def test_false_alarms_of_drift(rng):
    p_values = []
    for _ in range(40):
        X, new = rng.normal(size=(80, 3)), rng.normal(size=(60, 3))
        p_values.append(OutlierDetector(random_state=0).fit(X).drift(new, n_permutations=39).p_value)
    assert stats.kstest(p_values, "uniform").pvalue > 0.001


def test_drift_of_names_and_too_few_rows(X):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcd"))
    detector = OutlierDetector(random_state=0).fit(table)
    assert list(detector.drift(table[:10]).feature_names) == list("abcd")
    with pytest.raises(ValueError, match="X must have at least 2 rows for a test of drift, got 1"):
        detector.drift(table[:1])


def test_compact_scores_rows_and_does_no_more(rng):
    X = rng.normal(size=(500, 5))
    detector = OutlierDetector(random_state=0).fit(X)
    smaller, new = detector.compact(), rng.normal(size=(300, 5))
    assert len(pickle.dumps(smaller)) < 0.3 * len(pickle.dumps(detector))
    difference = smaller.score_samples(new) - detector.score_samples(new)
    assert -np.log(2) <= difference.min() <= difference.max() <= 0
    for use in (smaller.contributions, smaller.density, smaller.drift, smaller.partial_fit, smaller.forget):
        with pytest.raises(ValueError, match=r"needs the training rows, which compact\(\) removed"):
            use(X[:5])


def test_files(X, tmp_path):
    sio = pytest.importorskip("skops.io")
    for rows in (X, sparse.csr_matrix(X)):
        detector = OutlierDetector(random_state=0).fit(rows)
        sio.dump(detector, tmp_path / "detector.skops")
        types = sio.get_untrusted_types(file=tmp_path / "detector.skops")
        assert types == ["binfeat.OutlierDetector"]
        loaded = sio.load(tmp_path / "detector.skops", trusted=types)
        np.testing.assert_array_equal(loaded.score_samples(X), detector.score_samples(X))
        np.testing.assert_array_equal(loaded.partial_fit(X).score_samples(X), detector.partial_fit(X).score_samples(X))


DAMAGE = {
    "_bin_counts": lambda counts: counts + 2**53,
    "_bin_keys": lambda keys: keys[1:],
    "_bin_starts": lambda starts: starts[::-1].copy(),
    "_scale": lambda scale: scale[:, 1:],
    "_sample_arrays": lambda arrays: arrays | {"orders": arrays["orders"][1:]},
    "_row_orders": lambda orders: orders[1:],
    "_sizes": lambda sizes: sizes[1:],
    "_width": lambda width: 0,
    "_n_levels": lambda n: True,
    "_n_seen": lambda n: None,
    "_seed": lambda seed: 0.5,
    "_takes_arrays": lambda plain: np.zeros(3),
    "_categorical": lambda mask: mask[1:],
    "gamma_": lambda gamma: gamma[1:],
    "n_rows_": lambda n: -1,
    "offset_": lambda offset: np.nan,
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_files_are_refused(name, X):
    state = OutlierDetector(random_state=0).fit(X).__getstate__()
    state[name] = DAMAGE[name](state[name])
    with pytest.raises(ValueError, match="This OutlierDetector is damaged"):
        OutlierDetector().__setstate__(state)


@pytest.mark.parametrize("name", ["data", "indices", "indptr"])
def test_damaged_sparse_samples_are_refused(name, X):
    state = OutlierDetector(random_state=0).fit(sparse.csr_matrix(X)).__getstate__()
    own = state["_sample_arrays"][name]
    for damaged in (own[:-1], own.astype("U8"), np.full_like(own, 1e300 if name == "data" else 2**30)):
        changed = state["_sample_arrays"] | {name: damaged}
        with pytest.raises(ValueError, match="This OutlierDetector is damaged"):
            OutlierDetector().__setstate__(state | {"_sample_arrays": changed})


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"kernel": "rbf"}, ValueError, "kernel='rbf' cannot be approximated by random binning"),
        ({"gamma": "auto"}, TypeError, "gamma must be a number, one number per input, or 'scale'; got 'auto'"),
        ({"gamma": -1.0}, ValueError, "gamma must be finite and non-negative"),
        ({"fineness": (1.0, 0.0)}, ValueError, "fineness must be 'auto' or positive, got"),
        ({"fineness": ()}, ValueError, "fineness must be 'auto' or positive, got"),
        ({"fineness": "fine"}, TypeError, "fineness must be numbers, got 'fine'"),
        ({"input_share": 0.0}, ValueError, "input_share must be 'auto' or above 0 and at most 1, got 0.0"),
        ({"input_share": 1.5}, ValueError, "input_share must be 'auto' or above 0 and at most 1, got 1.5"),
        ({"fineness": (4, 8, 16), "n_grids": 2}, ValueError, "n_grids must be at least 3, got 2"),
        ({"n_grids": 9.5}, TypeError, "n_grids must be an integer of at least 1, got 9.5"),
        ({"max_samples": 0}, ValueError, "max_samples must be at least 1, got 0"),
        ({"max_samples": 0.5}, TypeError, "max_samples must be an integer of at least 1, got 0.5"),
        ({"contamination": 0.6}, ValueError, "contamination must be 'auto' or above 0 and at most 0.5, got 0.6"),
        ({"contamination": "few"}, TypeError, "contamination must be 'auto' or a number, got 'few'"),
        ({"contamination": "0.1"}, TypeError, "contamination must be 'auto' or a number, got '0.1'"),
        ({"contamination": None}, ValueError, "contamination must be 'auto' or above 0 and at most 0.5, got None"),
        ({"contamination": [0.1]}, TypeError, r"contamination must be 'auto' or a number, got \[0.1\]"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be None, a positive integer"),
    ],
)
def test_refused_parameters(parameters, error, message, X):
    with pytest.raises(error, match=message):
        OutlierDetector(**parameters).fit(X)


def test_each_kernel_of_the_mixture_has_a_grid(rng):
    """The default shares of inputs depend on the number of inputs."""
    X = rng.normal(size=(30, 5))
    with pytest.raises(ValueError, match="n_grids must be at least 2, got 1"):
        OutlierDetector(n_grids=1).fit(X)
    with pytest.raises(ValueError, match="n_grids must be at least 4, got 3"):
        OutlierDetector(n_grids=3, fineness=(1.0, 2.0)).fit(X)
    assert np.isfinite(OutlierDetector(n_grids=4).fit(X).density(X)[1]).all()
    density, standard_error = OutlierDetector(n_grids=1).fit(X[:, :4]).density(X[:, :4])
    assert (density >= 1 / 30).all()
    assert np.isnan(standard_error).all()


def test_refused_rows(X):
    X[3, 1] = np.inf
    with pytest.raises(ValueError, match="Input X contains infinity"):
        OutlierDetector().fit(X)
    X[3, 1] = 0.5
    with pytest.raises(ValueError, match="Input 1 is in categorical_features, so it must contain category numbers"):
        OutlierDetector(categorical_features=[1]).fit(X)
    with pytest.raises(ValueError, match="has 3 features, but OutlierDetector is expecting 4"):
        OutlierDetector().fit(X).score_samples(X[:, :3])


def test_display_of_contributions(X):
    figure = pytest.importorskip("matplotlib.figure")
    X[5, 2] = 30.0
    detector = OutlierDetector(random_state=0).fit(X)
    display = binfeat.ContributionDisplay.from_estimator(
        detector, X, row=5, max_features=3, ax=figure.Figure().subplots()
    )
    assert display.ax_.get_yticklabels()[0].get_text() == "x2"
    assert len(display.bars_) == 3
    assert display.bars_[0].get_width() == detector.contributions(X)[5].max()
    dollars = binfeat.ContributionDisplay([1.0, 2.0], ["$a$", "b"]).plot(figure.Figure().subplots())
    assert dollars.ax_.get_yticklabels()[1].get_text() == r"\$a\$"
    with pytest.raises(ValueError, match="row must be below 60, got 60"):
        binfeat.ContributionDisplay.from_estimator(detector, X, row=60)
    with pytest.raises(TypeError, match="detector must be an OutlierDetector, got int"):
        binfeat.ContributionDisplay.from_estimator(3, X)
    with pytest.raises(ValueError, match=r"contributions must be finite, of shape \(n_inputs,\)"):
        binfeat.ContributionDisplay([[1.0]]).plot()
