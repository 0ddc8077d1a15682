"""The normal equations of rows in memory, recomputed, or from a source equal dense ones, in one pass."""

import numpy as np
import pytest
from solving import NormalEquations, ProcessRows, SolverOptions, StackedFeatures, computed_features, solve_ridge

from binfeat import BinMatrix, CGRidge, RandomBinning, RandomFourier, blocks
from binfeat._rows import products, sources, streamed

N_ROWS, N_TARGETS = 500, 3


class Counted:
    """A source that counts its reads."""

    def __init__(self, source):
        self.source, self.n_reads = source, 0

    def __iter__(self):
        self.n_reads += 1
        yield from self.source


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch, rows_of_a_pass, bytes_computed_at_a_time):
    rows_of_a_pass(70)
    bytes_computed_at_a_time(8 * 30 * 60)
    monkeypatch.setattr("binfeat.features.binning.bin_matrix._BLOCK_ROWS", 90)


def same(X, reset=False):
    return X


def from_source(Z):
    summary = sources.SourceSummary(blocks(Z, Z[:, 0], block_rows=45), same)
    return streamed.StreamedFeatures.of(summary, same, Z.shape[1], dense=True)


def side_by_side(Z):
    return StackedFeatures([Z[:, :5], computed_features(np.ascontiguousarray(Z[:, 5:]))], [1.0, 1.0])


FORMS = {"memory": same, "source": from_source, "computed": computed_features, "side by side": side_by_side}
WEIGHTS = {
    "none": lambda rng: None,
    "of rows": lambda rng: rng.random((N_ROWS, 1)),
    "of rows and targets": lambda rng: rng.random((N_ROWS, N_TARGETS)) * (rng.random((N_ROWS, N_TARGETS)) > 0.3),
}


def dense(Z, Y, weights, fit_intercept, target):
    """Return matrix, right-hand side, mean row and mean of a target by definition, in float64."""
    v = np.ones(len(Z)) if weights is None else weights[:, min(target, weights.shape[1] - 1)]
    mean = v @ Z / v.sum() if fit_intercept else np.zeros(Z.shape[1])
    target_mean = v @ Y[:, target] / v.sum() if fit_intercept else 0.0
    centered = (Z - mean) * np.sqrt(v)[:, None]
    return centered.T @ centered, centered.T @ ((Y[:, target] - target_mean) * np.sqrt(v)), mean, target_mean


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weighted", WEIGHTS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    ("dtype", "far"), [(np.float64, 0.0), (np.float64, 1e5), (np.float32, 0.0), (np.float32, 100.0)]
)
def test_normal_equations_are_the_dense_ones(rng, form, weighted, fit_intercept, dtype, far):
    """With an intercept, columns and targets can be far from zero."""
    far = far if fit_intercept else 0.0
    Z = (rng.normal(size=(N_ROWS, 12)) + far).astype(dtype)
    Y, weights = rng.normal(size=(N_ROWS, N_TARGETS)) + far, WEIGHTS[weighted](rng)
    system = NormalEquations(ProcessRows(FORMS[form](Z), Y, weights), fit_intercept)
    assert system.right.dtype == dtype
    W, targets = np.asfortranarray(rng.normal(size=(12, 2)), dtype=dtype), np.array([0, 2])
    images, intercepts = system.apply(W, targets).copy(), system.intercept(W[:, [0, 0, 1]])
    tolerance = float(100 * np.finfo(dtype).eps * max(1.0, far))
    for k, target in enumerate(targets):
        A, b, mean, target_mean = dense(Z.astype(float), Y, weights, fit_intercept, target)
        own = target if system.diagonal.shape[1] > 1 else 0
        scale = np.abs(A).max()
        np.testing.assert_allclose(images[:, k], A @ W[:, k], rtol=0, atol=tolerance * scale)
        np.testing.assert_allclose(system.right[:, target], b, rtol=0, atol=tolerance * scale)
        np.testing.assert_allclose(system.diagonal[:, own], np.diag(A), rtol=0, atol=tolerance * scale * max(1.0, far))
        expected = target_mean - mean @ W[:, k]
        assert intercepts[target] == pytest.approx(expected, abs=tolerance * max(1.0, far))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("solver", ["cg", "gram"])
def test_solutions_are_the_dense_ones(rng, form, solver):
    Z, Y = rng.normal(size=(N_ROWS, 12)) + 3, rng.normal(size=(N_ROWS, N_TARGETS))
    weights, alphas = rng.random((N_ROWS, 1)), [10.0, 0.1]
    options = SolverOptions(tol=1e-12, max_iter=200, solver=solver)
    for alpha, result in zip(
        alphas, solve_ridge(ProcessRows(FORMS[form](Z), Y, weights), alphas, options), strict=True
    ):
        for target in range(N_TARGETS):
            A, b, mean, target_mean = dense(Z, Y, weights, True, target)
            coef = np.linalg.solve(A + alpha * np.eye(12), b)
            np.testing.assert_allclose(result.solution[:, target], coef, rtol=1e-8, atol=1e-10)
            assert result.intercept[target] == pytest.approx(target_mean - mean @ coef, abs=1e-8)


def test_an_iteration_reads_a_source_once(rng):
    X, y = rng.normal(size=(600, 3)), rng.normal(size=600)
    source = Counted(blocks(X, y, block_rows=200))
    Z = RandomFourier(n_components=40, gamma=0.3, random_state=0).fit(X).transform(source)
    before = source.n_reads
    (result,) = solve_ridge(ProcessRows(Z, y[:, None]), [0.1], SolverOptions(tol=0.0, max_iter=12, solver="cg"))
    assert result.n_iter == 12
    assert source.n_reads - before <= 12 + 2


def test_an_iteration_reads_codes_in_a_file_once(rng, monkeypatch):
    X, y = rng.normal(size=(600, 3)), rng.normal(size=600)
    binning = RandomBinning(gamma=0.5, n_grids=9, max_bytes=0, random_state=0)
    Z, reads, real = binning.fit_transform(blocks(X, y, block_rows=200)), [], BinMatrix.row_blocks
    monkeypatch.setattr(BinMatrix, "row_blocks", lambda self: reads.append(None) or real(self))
    (result,) = solve_ridge(ProcessRows(Z, y[:, None]), [0.1], SolverOptions(tol=0.0, max_iter=12))
    assert result.n_iter == 12
    assert 12 <= len(reads) <= 12 + 2


@pytest.mark.parametrize("options", [{}, {"gamma": 0.5}, {"n_features": 200}, {"n_features": 200, "gamma": 0.5}])
def test_binning_reads_a_source_twice(rng, options):
    """Once for statistics of all rows, and once for their bins and codes."""
    X, y = rng.normal(size=(600, 3)), rng.normal(size=600)
    source = Counted(blocks(X, y, block_rows=200))
    binning = RandomBinning(n_grids=20, random_state=0, **options)
    expected = RandomBinning(**binning.get_params()).fit_transform(X)
    Z = binning.fit_transform(source)
    assert source.n_reads == 2
    assert (Z.tocsr() != expected).nnz == 0
    source.n_reads = 0
    binning.fit(source)
    assert source.n_reads <= 2


@pytest.mark.parametrize("n_targets", [1, 2, 4])
@pytest.mark.parametrize("form", ["codes", "csr", "array"])
def test_float32_sums_of_many_rows_are_accurate(rng, threads, form, n_targets):
    """One float32 sum of equal terms would lose 1 %."""
    codes = np.stack([rng.integers(2, size=10**6), 250 * rng.integers(2, size=10**6)]).astype(np.uint16)
    Z = BinMatrix(codes, [0, 2, 302], dtype=np.float32)
    Z = {"codes": lambda: Z, "csr": Z.tocsr, "array": lambda: Z.tocsr()[:, :3].toarray()}[form]()
    sums, again = (np.empty((Z.shape[1], n_targets), np.float32, order="F") for _ in range(2))
    V = np.full((10**6, n_targets), 0.1, np.float32, order="F")
    products.transposed_product(Z, V, sums)
    counts = np.append(np.bincount(codes[0]), np.bincount(codes[1], minlength=300))[: Z.shape[1], np.newaxis]
    np.testing.assert_allclose(sums / V[0], np.broadcast_to(counts * np.sqrt(0.5), sums.shape), rtol=2e-4)
    threads(1)
    products.transposed_product(Z, V, again)
    np.testing.assert_array_equal(again, sums)


@pytest.mark.filterwarnings("ignore:Conjugate gradients stopped")
def test_passes_of_a_ridge_model_with_error_bars(rng):
    """One for the equations of each of two solves and one per iteration; three for the samples and their noise."""
    X = rng.normal(size=(300, 2))
    counted = Counted(blocks(X, block_rows=150))
    Z = RandomBinning(gamma=0.5, n_grids=40, random_state=0).fit(X).transform(counted)
    before = counted.n_reads
    CGRidge(n_posterior_samples=2, max_iter=3).fit(Z, np.sin(X[:, 0]))
    assert counted.n_reads - before <= 2 * (1 + 3) + 3
