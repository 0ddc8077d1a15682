"""Memory of models: numbers of grids and of targets at a time that `max_bytes` allows."""

import re

import numpy as np
import pytest
from hard import hard
from kernel_models import FIXED, GROWING, with_options
from memory import peak_bytes
from scipy import sparse

from binfeat import KernelMachineClassifier, KernelMachineRegressor, RandomFourier, blocks
from binfeat.models.solvers import growth, random_features, sizes

FLOAT32 = np.dtype(np.float32)


@pytest.fixture
def labeled(rng):
    """Return rows of six classes."""
    X = rng.normal(size=(1500, 3))
    values = np.sin(2 * X[:, 0]) + X[:, 1]
    return X, np.digitize(values, np.quantile(values, np.arange(1, 6) / 6))


def test_a_quarter_of_the_memory_by_default(memory_of):
    memory_of(1000)
    assert sizes.fit_bytes(None) == 250
    assert sizes.fit_bytes(10) == 10
    memory_of(None)
    assert sizes.fit_bytes(None) == np.inf


def test_type_of_solutions():
    assert sizes.least_dtype(1000) == np.float32
    assert sizes.least_dtype(10**7) == np.float64


@pytest.mark.parametrize("n_targets", [1, 2, 3, 7, 8])
def test_targets_at_a_time_are_all_or_pairs(n_targets):
    """More bytes allow more targets, finally in float64; with `most_grids` grids, a pair."""
    bytes_of_all = 1000 * (64 + 8 * 7 * n_targets)
    n_bytes = np.linspace(1, bytes_of_all, 50).astype(int)
    dtypes, found = zip(*(sizes.dtype_and_targets_at_a_time(n, 1000, n_targets, FLOAT32) for n in n_bytes), strict=True)
    assert list(found) == sorted(found)
    assert (found[-1], dtypes[-1], dtypes[-2]) == (n_targets, np.float64, np.float32)
    assert sizes.dtype_and_targets_at_a_time(np.inf, 10**8, n_targets, FLOAT32) == (FLOAT32, min(2, n_targets))
    assert all(n == n_targets or n % 2 == 0 for n in found)
    for n_rows in (100, 10**6):  # codes in memory, and in a file
        most = int(sizes.most_grids(10**6, n_rows, 100, n_targets, FLOAT32))
        left = sizes.bytes_for_bins(10**6, n_rows, most)
        assert sizes.dtype_and_targets_at_a_time(left, 100 * most, n_targets, FLOAT32) == (
            FLOAT32,
            min(2, n_targets),
        )


@pytest.mark.hard
def test_targets_solved_one_after_the_other(labeled):
    """The decisions contain it, and the model is the same.

    For all classes together, the last one follows from the others, so it differs within the tolerance.
    """
    X, y = labeled
    options = {**with_options(FIXED, n_grids=40), "gamma": 2.0}
    together = KernelMachineClassifier(**options).fit(X, y)
    n_bins, n_rows = together.feature_coef_.shape[1], len(X)
    for pairs, words in ((1, "2 of 6, for less memory"), (2, "4 of 6, for less memory")):
        needed = n_bins * (64 + 4 * (2 * 6 + 5 * 2 * pairs)) + 4 * 40 * n_rows + 1
        apart = KernelMachineClassifier(**options, max_bytes=needed + sizes.row_bytes(6) * n_rows).fit(X, y)
        assert words in apart.decisions_["choice"]
        np.testing.assert_allclose(apart.feature_coef_[:-1], together.feature_coef_[:-1], rtol=0, atol=1e-4)  # float32
        np.testing.assert_allclose(apart._scores(X), together._scores(X), rtol=0, atol=5 * growth.Sizing.first_tol)
    assert "targets at a time" not in together.decisions_["what"]


@pytest.mark.hard
def test_bytes_bound_the_number_of_grids(labeled):
    X, y = labeled
    options = {**with_options(GROWING, max_grids=200), "kernel": "laplacian"}
    free = KernelMachineRegressor(**options).fit(X, y)
    sizes = []
    for max_bytes in (1, 3 * 10**5, 10**6, 4 * 10**6):
        bound = KernelMachineRegressor(**options, max_bytes=max_bytes).fit(X, y)
        sizes.append(bound.n_grids_)
        assert bound.n_grids_ == 1 or bound.feature_coef_.shape[1] * (64 + 4 * 7) <= 1.3 * max_bytes
    assert sizes == sorted(sizes)
    assert sizes[0] == 1 < sizes[1] <= sizes[2] <= sizes[-1] <= free.n_grids_
    assert sizes[1] < free.n_grids_
    smallest = KernelMachineRegressor(**options, max_bytes=1).fit(X, y)
    assert ("limit", "max_bytes") in smallest.decisions_[["what", "choice"]].tolist()


def test_bytes_bound_the_rows_of_an_exact_model(labeled):
    X, y = labeled[0][:400], labeled[0][:400, 0]
    options = {"gamma": "scale", "random_state": 0}
    for spare, features in ((0, "exact"), (-1, "binning")):
        model = KernelMachineRegressor(**options, max_bytes=int(sizes.exact_bytes(400, 1)) + spare).fit(X, y)
        assert model.features_ == features


def test_peak_is_within_the_limit(rng, limits):
    """The limit excludes copies of the table, blocks of hashes (64 MB), and choices on samples."""
    limits(sample_rows=500, sample_out=100, row_grids=25_000)
    X = rng.normal(size=(20_000, 4))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    options = {**with_options(FIXED, n_grids=None, max_grids=60), "gamma": [3.0, 2.0, 2.0, 0.0], "alpha": 0.01}
    limit = 10**7
    KernelMachineRegressor(**options, max_bytes=limit).fit(X, y)  # imports modules and loads compiled kernels
    peak, model = peak_bytes(lambda: KernelMachineRegressor(**options, max_bytes=limit).fit(X, y))
    hashes = 8 * len(X) * model.n_grids_
    assert 1 < model.n_grids_ < 60
    sizes = 12 * 1000 * 1000  # kernel values for the sizes of residuals
    assert peak <= 1.2 * limit + 3 * X.nbytes + hashes + sizes


@pytest.mark.parametrize(
    ("features", "max_bytes", "words"),
    [
        ("auto", sizes.exact_bytes(300, 1), r"max_bytes: exact with 300 rows at most"),
        ("binning", 3 * 10**5, r"max_bytes: \d+ grids at most"),
        *hard(
            ("local", 400 * (4 * 2 + 40 + 1 * 20) + 32 * 50**2, r"max_bytes: 1 tree at most"),
            ("local", 400 * (4 * 2 + 40 + 3 * 20) + 32 * 50**2, r"max_bytes: 3 trees at most"),
        ),
    ],
)
def test_a_limit_that_alters_the_model_is_said(limits, rng, features, max_bytes, words):
    limits(n_steps=5, sample_grids=(5, 20))
    X = rng.normal(size=(400, 2))
    y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=400)
    options = {
        "features": features,
        "solver_params": {"cell_rows": 50} if features == "local" else None,
        "random_state": 0,
    }
    model = KernelMachineRegressor(**options, max_bytes=int(max_bytes)).fit(X, y)
    assert len(re.findall(words, model.summary())) == 1
    assert "max_bytes" not in KernelMachineRegressor(**options).fit(X, y).summary()


@pytest.mark.parametrize("features", ["exact", *hard("local")])
def test_kernel_matrices_that_are_asked_for_and_do_not_fit_are_refused(limits, rng, features):
    limits(n_steps=5)
    X = rng.normal(size=(400, 2))
    options = {"features": features, "random_state": 0}
    message = (
        rf"max_bytes must be at least ([\d,]+) for features='{features}' of 400 rows.*; got 20,000\. Use features="
    )
    with pytest.raises(ValueError, match=message) as refusal:
        KernelMachineRegressor(**options, max_bytes=20_000).fit(X, X[:, 0])
    enough = int(str(refusal.value).split()[5].replace(",", ""))
    assert KernelMachineRegressor(**options, max_bytes=enough).fit(X, X[:, 0]).features_ == features
    with pytest.raises(ValueError, match="max_bytes must be at least"):
        KernelMachineRegressor(**options, max_bytes=enough - 1).fit(X, X[:, 0])


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array])
def test_dense_copies_of_wide_sparse_tables_are_refused_before_any_work(container):
    X, y = container((200, 10**6)), np.arange(200.0)
    needed = 200 * (8 * 7 * 10**6 + sizes.row_bytes(1)) - 300 * 10**6
    message = (
        rf"max_bytes must be at least {needed:,} for dense copies of X, 200 rows of 1,000,000 columns.*TruncatedSVD"
    )

    def fit():
        with pytest.raises(ValueError, match=message):
            KernelMachineRegressor(max_bytes=10**9).fit(X, y)

    assert peak_bytes(fit)[0] < 10**7


def test_targets_of_many_classes_are_refused_before_any_work(rng):
    X, y = rng.normal(size=(20_000, 3)), np.arange(20_000) % 10_000
    with pytest.raises(ValueError, match=r"max_bytes must be at least .* and of 10,000 targets; got 1,000,000,000"):
        KernelMachineClassifier(max_bytes=10**9).fit(X, y)


def test_copies_are_compared_with_the_memory_of_the_computer(memory_of):
    memory_of(2**30)
    with pytest.raises(MemoryError, match="dense copies of X, 200 rows of 1,000,000 columns"):
        KernelMachineRegressor().fit(sparse.csr_matrix((200, 10**6)), np.arange(200.0))


@pytest.mark.parametrize(
    ("shape", "refused"), [((4000, 1334), True), ((4000, 1333), False), ((4000,), False), ((), False)]
)
def test_small_copies_come_on_top(shape, refused):
    """Seven copies of 1,334 columns take 299 MB of 300 MB, copies of targets 1 MB."""
    if refused:
        with pytest.raises(ValueError, match="max_bytes must be at least"):
            sizes.require_table_bytes(shape, 4100, 1, 1)
    sizes.require_table_bytes(shape, 4000, 1, 1)


def test_blocks_of_fourier_features_of_a_source_are_small(rng):
    X, waves = rng.normal(size=(10_000, 2)), RandomFourier(n_components=1024, gamma=1.0, random_state=0)

    class Waves:
        n_components, __call__ = 1024, staticmethod(waves.fit(X).transform)

    of_pass = growth.RowBlocks(blocks(X, X[:, 0]), np.asarray, len(X), len(X))
    rows = growth.TrainingRows(of_pass, X[:, :1], None, slice(0), None)
    sizes_of_blocks = [block.nbytes for _, block in rows.for_solver(Waves(), np.dtype(np.float64)).Z.row_blocks()]
    assert sum(sizes_of_blocks) == 8 * 1024 * len(X)
    assert max(sizes_of_blocks) <= 2**25


def test_fourier_features_of_the_rows_for_comparing_kernels_are_not_stored(rng, limits, monkeypatch):
    limits(n_steps=2, n_fourier=64)
    monkeypatch.setattr("binfeat._rows.lazy._BLOCK_BYTES", 2**16)
    given, best = [], random_features.FourierSolver._best
    monkeypatch.setattr(
        random_features.FourierSolver, "_best", lambda self, *parts: given.append(parts[2]) or best(self, *parts)
    )
    X = rng.normal(size=(1000, 2))
    KernelMachineRegressor(features="fourier", kernel="rbf", gamma=1.0, random_state=0).fit(X, X[:, 0])
    (Z,) = given
    assert [len(block) for _, block in Z.row_blocks()] == [128] * 6 + [32]
