"""BinMatrix: equal to its CSR matrix, and a LinearOperator."""

import copy
import pickle

import naive
import numba
import numpy as np
import pytest
from hard import hard
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh, lsqr, svds

from binfeat import BinMatrix, CGRidge, RandomBinning, RandomFeatureUnion, RandomFourier, blocks
from binfeat.features.binning import bin_matrix

pytestmark = pytest.mark.engine


def matrix(rng, code_type=np.uint16, n_rows=300, sizes=(5, 1, 70, 12), missing=0.1, dtype=np.float64):
    none = np.iinfo(code_type).max
    codes = np.stack([rng.integers(0, size, n_rows) for size in sizes]).astype(code_type)
    codes[rng.random(codes.shape) < missing] = none
    return BinMatrix(codes, np.concatenate([[0], np.cumsum(sizes)]), dtype=dtype)


def dense(Z):
    out = np.zeros(Z.shape, Z.dtype)
    for p, own in enumerate(Z.codes):
        for i, code in enumerate(own):
            if code != np.iinfo(own.dtype).max:
                out[i, Z.offsets[p] + code] = 1 / np.sqrt(len(Z.codes))
    return out


# Each type of codes with one type of entries: loops over codes do not depend on entries, and compile slowly.
SHORT, LONG = (np.uint16, np.float64), (np.uint32, np.float32)
TYPES = pytest.mark.parametrize(("code_type", "dtype"), [SHORT, LONG])


@pytest.mark.parametrize("missing", [0.0, 0.1, 1.0])
@TYPES
def test_tocsr(rng, code_type, dtype, missing):
    Z = matrix(rng, code_type, missing=missing, dtype=dtype)
    csr = Z.tocsr()
    np.testing.assert_array_equal(csr.toarray(), dense(Z))
    assert csr.dtype == dtype
    assert csr.has_sorted_indices
    csr.has_canonical_format = False
    csr.sum_duplicates()
    assert csr.nnz == np.count_nonzero(Z.codes != np.iinfo(code_type).max)


@pytest.mark.parametrize("n_columns", [1, 3])
@pytest.mark.parametrize(
    ("code_type", "dtype", "operand"),
    [
        (np.uint16, np.float64, np.float64),
        (np.uint16, np.float64, np.float32),
        (np.uint16, np.float64, np.complex128),
        (np.uint16, np.float32, np.int64),
        (np.uint32, np.float32, np.float32),
    ],
)
def test_products(rng, code_type, dtype, operand, n_columns):
    Z = matrix(rng, code_type, dtype=dtype)
    csr = Z.tocsr()
    W = (rng.normal(size=(Z.shape[1], n_columns)) * 9).astype(operand)
    V = (rng.normal(size=(Z.shape[0], n_columns)) * 9).astype(operand)
    if operand == np.complex128:
        W, V = W + 1j, V * 1j
    rtol = 1e-4 if np.float32 in (dtype, operand) else 1e-12
    for got, expected in ((Z @ W, csr @ W), (Z.T @ V, csr.T @ V), (Z.H @ V, csr.T @ V)):
        assert got.dtype == np.result_type(dtype, operand)
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(Z @ W[:, 0], csr @ W[:, 0], rtol=rtol, atol=rtol)
    np.testing.assert_allclose(Z.T @ V[:, 0], csr.T @ V[:, 0], rtol=rtol, atol=rtol)
    np.testing.assert_allclose(Z @ np.asfortranarray(W), csr @ W, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("operand", [np.longdouble, np.clongdouble, object])
def test_products_with_types_without_kernels_are_double(rng, operand):
    Z = matrix(rng)
    W, V = rng.normal(size=(Z.shape[1], 2)), rng.normal(size=len(Z))
    for got, expected in ((Z @ W.astype(operand), Z @ W), (Z.T @ V.astype(operand), Z.T @ V)):
        assert got.dtype == (np.complex128 if operand == np.clongdouble else np.float64)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("n_columns", [1, 2, 7, 8])
@pytest.mark.parametrize(("code_type", "dtype"), [SHORT, *hard(LONG)])
def test_products_by_any_number_of_threads(rng, threads, code_type, dtype, n_columns):
    """Products have the same bits with any number of threads and any memory order of the targets."""
    Z = matrix(rng, code_type, n_rows=5000, dtype=dtype)
    W = rng.normal(size=(Z.shape[1], n_columns)).astype(dtype)
    V = rng.normal(size=(Z.shape[0], n_columns)).astype(dtype)
    forward, backward = Z @ W, Z.T @ V
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(forward, Z.tocsr() @ W, **tolerance)
    np.testing.assert_allclose(backward, Z.tocsr().T @ V, **tolerance)
    threads(1)
    for order in ("C", "F"):
        np.testing.assert_array_equal(Z @ np.array(W, order=order), forward)
        np.testing.assert_array_equal(Z.T @ np.array(V, order=order), backward)
    assert numba.get_num_threads() == 1


@pytest.mark.parametrize("sizes", [(5,), (300, 1, 70), (5, 1, 70, 300)])
@pytest.mark.parametrize("n_rows", [20, 300])
def test_order_of_sums(rng, n_rows, sizes):
    """Four targets use two grids at a time, and an odd last grid by itself; sums keep their order."""
    Z = matrix(rng, n_rows=n_rows, sizes=sizes)
    W, V = rng.normal(size=(Z.shape[1], 4)), rng.normal(size=(Z.shape[0], 4))
    forward, backward = naive.products(Z.codes, sizes, W, V)
    np.testing.assert_array_equal(Z @ W, forward)
    np.testing.assert_array_equal(Z.T @ V, backward)


@pytest.mark.parametrize("n_columns", [1, 2, 4])
def test_float32_sums_of_blocks_of_rows(rng, threads, n_columns):
    """Sums of several blocks, in grids of few and of many bins; the rows of a bin have the same sign."""
    Z = matrix(rng, np.uint32, n_rows=9000, sizes=(300, 5, 1), dtype=np.float32)
    V = rng.random((Z.shape[0], n_columns), np.float32)
    backward = Z.T @ V
    np.testing.assert_allclose(backward, dense(Z).T.astype(np.float64) @ V, rtol=1e-5)
    threads(1)
    np.testing.assert_array_equal(Z.T @ V, backward)


def test_gram_diagonal(rng):
    Z = matrix(rng)
    np.testing.assert_allclose(Z.gram_diagonal(), np.square(dense(Z)).sum(axis=0), rtol=1e-12)
    weights = rng.random(300)
    np.testing.assert_allclose(Z.gram_diagonal(weights), weights @ np.square(dense(Z)), rtol=1e-12)


@pytest.mark.parametrize("shape", [(), (299,), (301,), (300, 1), (1, 300)])
def test_weights_of_another_number_of_rows_are_refused(rng, shape):
    Z = matrix(rng)
    union = RandomFeatureUnion([("fourier", RandomFourier(n_components=4)), ("bins", RandomBinning(n_grids=2))])
    X = rng.normal(size=(300, 2))
    union.fit(X)
    for own in (Z, union.encode(X), union.transformers_[0][1].encode(X)):
        with pytest.raises(ValueError, match=r"sample_weight must have one value per row, shape \(300,\); got shape"):
            own.gram_diagonal(np.ones(shape))
    with pytest.raises(TypeError, match="sample_weight must be numbers"):
        Z.gram_diagonal(["a"] * 300)


def test_edited_offsets_of_an_estimator_are_refused_and_matrices_keep_theirs(rng):
    X = rng.normal(size=(50, 2))
    for options, fault in (
        ({}, "increase from 0"),
        ({"n_features": 64}, "the same number for all grids"),
    ):
        binning = RandomBinning(n_grids=3, gamma=0.5, output="codes", random_state=0, **options).fit(X)
        Z = binning.encode(X)
        before = Z.gram_diagonal()
        binning.bin_offsets_[2:] = binning.bin_offsets_[1]
        np.testing.assert_array_equal(Z.gram_diagonal(), before)
        calls = [binning.transform, binning.encode, binning.partial_fit]
        calls += [lambda X, binning=binning: binning.transform(blocks([(X,)])).gram_diagonal()]
        calls += [] if options else [binning.set_params(warm_start=True, n_grids=5).fit]
        for call in calls:
            with pytest.raises(ValueError, match=f"bin_offsets_ should .*{fault}"):
                call(X)


def test_scipy_solvers(rng):
    Z = matrix(rng, missing=0.0)
    assert isinstance(Z, LinearOperator)
    A = dense(Z)
    b = rng.normal(size=300)
    options = {"damp": 0.1, "atol": 1e-14, "btol": 1e-14}
    np.testing.assert_allclose(lsqr(Z, b, **options)[0], lsqr(A, b, **options)[0], atol=1e-8)
    np.testing.assert_allclose(
        np.sort(svds(Z, k=3, random_state=0)[1]), np.linalg.svd(A, compute_uv=False)[2::-1], rtol=1e-8
    )
    top = eigsh(Z.T @ Z, k=1, v0=np.ones(Z.shape[1]))[0][0]
    assert top == pytest.approx(np.linalg.norm(A, 2) ** 2, rel=1e-8)


def test_rows(rng):
    Z = matrix(rng)
    A = dense(Z)
    mask = rng.random(300) < 0.3
    for rows in (slice(10, 50, 3), [5, 2, -1], mask, np.array([7]), slice(0, 0)):
        np.testing.assert_array_equal(dense(Z[rows]), A[rows])
        np.testing.assert_array_equal(dense(Z[rows, ...]), A[rows])
        np.testing.assert_array_equal(dense(Z[rows, :]), A[rows])
    np.testing.assert_array_equal(dense(Z[3]), A[3:4])
    assert len(Z) == 300
    for columns in (3, np.arange(2)):
        with pytest.raises(IndexError, match="indexed by rows only"):
            Z[:2, columns]
    with pytest.raises(IndexError):
        Z[[300]]
    with pytest.raises(IndexError):
        Z.take([300])


COPIES = {
    "pickle": lambda Z: pickle.loads(pickle.dumps(Z)),
    "oldest pickle": lambda Z: pickle.loads(pickle.dumps(Z, protocol=0)),
    "take": lambda Z: Z.take(np.arange(len(Z))),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_copies_reproduce_every_array(rng, copy):
    Z = matrix(rng, dtype=np.float32)
    other = copy(Z)
    np.testing.assert_array_equal(other.codes, Z.codes)
    np.testing.assert_array_equal(other.offsets, Z.offsets)
    assert (other.dtype, other.codes.dtype, other.shape) == (Z.dtype, Z.codes.dtype, Z.shape)
    assert (other.tocsr() != Z.tocsr()).nnz == 0


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("max_bytes", [None, 10], ids=["memory", "file"])
def test_copies_of_features_of_a_source(rng, copy, max_bytes):
    """Copies contain only the codes, without unused memory, and targets and weights, also for codes in a file."""
    X, y, weights = rng.normal(size=(2000, 3)), rng.normal(size=2000), rng.random(2000)
    binning = RandomBinning(gamma=0.3, n_grids=8, output="codes", max_bytes=max_bytes, random_state=0)
    Z = binning.fit_transform(blocks(X, y, sample_weight=weights))
    assert Z.computed == (max_bytes is not None)
    other = copy(Z)
    np.testing.assert_array_equal(other.codes, Z.codes)
    assert (other @ np.ones(Z.shape[1])).tobytes() == (Z @ np.ones(Z.shape[1])).tobytes()
    if copy is not COPIES["take"]:
        np.testing.assert_array_equal(other.y, y)
        np.testing.assert_array_equal(other.sample_weight, weights)
    np.testing.assert_allclose(CGRidge().fit(other, y).coef_, CGRidge().fit(Z, y).coef_, rtol=1e-9, atol=1e-12)


def test_a_pickle_is_hardly_larger_than_the_codes(rng):
    X = rng.normal(size=(5000, 3))
    for Z in (
        RandomBinning(gamma=0.3, n_grids=64, output="codes", random_state=0).fit_transform(X),
        RandomBinning(gamma=0.3, n_grids=64, output="codes", random_state=0).fit_transform(X)[:4000],
    ):
        assert len(pickle.dumps(Z)) <= 1.05 * Z.nbytes
        assert copy.deepcopy(Z).codes.base is None


def test_a_copy_of_codes_in_a_file_that_memory_cannot_hold_is_refused(rng, memory_of):
    binning = RandomBinning(gamma=0.3, n_grids=8, output="codes", max_bytes=10, random_state=0)
    Z = binning.fit_transform(blocks(rng.normal(size=(2000, 3)), np.ones(2000)))
    memory_of(1000)
    for call in (pickle.dumps, copy.deepcopy):
        with pytest.raises(MemoryError, match=r"the copy of codes in a scratch file needs about 32,000 bytes"):
            call(Z)
    assert copy.copy(Z).computed


@pytest.mark.parametrize("missing", [0.0, 0.1, 1.0])
@TYPES
def test_dense_form_and_sums(rng, code_type, dtype, missing):
    Z = matrix(rng, code_type, missing=missing, dtype=dtype)
    expected = dense(Z)
    array = Z.toarray()
    np.testing.assert_array_equal(array, expected)
    assert array.dtype == dtype
    tolerance = {"rtol": 1e-6 if dtype == np.float32 else 1e-13}
    for axis in (0, 1, -1, -2, None):
        sums = Z.sum(axis=axis)
        np.testing.assert_allclose(sums, expected.astype(np.float64).sum(axis=axis), **tolerance)
        assert sums.dtype == dtype
    for axis in (2, "rows"):
        with pytest.raises(ValueError, match="axis must be 0, 1, -1, -2 or None"):
            Z.sum(axis=axis)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
def test_products_with_sparse_matrices_are_sparse(rng, kind):
    Z = matrix(rng)
    W = kind(sparse.random(Z.shape[1], 40, density=0.1, random_state=0))
    V = kind(sparse.random(Z.shape[0], 7, density=0.1, random_state=0))
    for product, expected in (
        (Z @ W, dense(Z) @ W.toarray()),
        (Z.T @ V, dense(Z).T @ V.toarray()),
        ((Z.T @ V).T, V.toarray().T @ dense(Z)),
    ):
        assert sparse.issparse(product)
        np.testing.assert_allclose(product.toarray(), expected, rtol=1e-13)
    with pytest.raises(ValueError, match="dimension mismatch"):
        Z @ W.T


def test_a_dense_form_larger_than_memory_is_refused(rng, memory_of):
    memory_of(100_000)
    with pytest.raises(MemoryError, match=r"the dense array needs about 211,200 bytes.*Use tocsr"):
        matrix(rng).toarray()


def test_type_of_codes(rng):
    assert bin_matrix.code_dtype(65_535) == np.uint16
    assert bin_matrix.code_dtype(65_536) == np.uint32
    X = np.arange(65_536.0).reshape(-1, 1)
    for n, expected in ((65_535, np.uint16), (65_536, np.uint32)):
        binning = RandomBinning(kernel="hat", gamma=1e9, n_grids=1, output="codes", random_state=0)
        with pytest.warns(UserWarning, match="too fine"):
            Z = binning.fit_transform(X[:n])
        assert Z.codes.dtype == expected
        assert Z.nbytes == n * np.dtype(expected).itemsize + 16
        np.testing.assert_array_equal(np.sort(Z.codes[0]), np.arange(n))
        assert binning.encode(X[:n] + 1e7).codes.min() == np.iinfo(expected).max


def test_indices_grow_to_int64_when_they_must():
    Z = BinMatrix(np.zeros((2, 3), np.uint32), [0, 2**31, 2**31 + 5])
    csr = Z.tocsr()
    assert csr.indices.dtype == csr.indptr.dtype == np.int64
    assert csr.shape == (3, 2**31 + 5)
    np.testing.assert_array_equal(csr.indices[:2], [0, 2**31])
    assert BinMatrix(np.zeros((2, 3), np.uint32), [0, 2**31 - 9, 2**31 - 1]).tocsr().indices.dtype == np.int32


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((2, 3), np.int64), [0, 1, 2]), "codes must be a uint16 or uint32 array"),
        ((np.zeros(3, np.uint16), [0, 1]), "codes must be a uint16 or uint32 array"),
        ((np.zeros((0, 3), np.uint16), [0]), "codes must be a uint16 or uint32 array"),
        ((np.zeros((2, 3), np.uint16), [0, 1]), "offsets must be 3 increasing integers"),
        ((np.zeros((2, 3), np.uint16), [1, 2, 3]), "offsets must be 3 increasing integers"),
        ((np.zeros((2, 3), np.uint16), [0, 2, 1]), "offsets must be 3 increasing integers"),
        ((np.zeros((2, 3), np.uint32), [0, 5, 5 + 2**32]), r"offsets must give each grid fewer than 2\^32 columns"),
        ((np.full((1, 3), 4, np.uint16), [0, 4]), "codes of grid 0 must be below 4, or 65535"),
        ((np.zeros((1, 3), np.uint16), [0, 0]), "codes of grid 0 must be below 0, or"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        BinMatrix(*arguments)


def test_bad_type_and_shapes(rng):
    with pytest.raises(ValueError, match="dtype must be float32 or float64"):
        BinMatrix(np.zeros((1, 3), np.uint16), [0, 1], dtype=np.int32)
    Z = matrix(rng)
    with pytest.raises(ValueError, match="dimension mismatch"):
        Z @ np.ones(3)
    with pytest.raises(ValueError, match="dimension mismatch"):
        Z.T @ np.ones(3)


def test_no_column_at_all():
    Z = BinMatrix(np.full((2, 3), 65_535, np.uint16), [0, 0, 0])
    assert Z.tocsr().shape == (3, 0)
    np.testing.assert_array_equal(Z @ np.empty((0, 2)), np.zeros((3, 2)))


def test_csr_larger_than_memory_is_refused(rng, memory_of):
    memory_of(1000)
    with pytest.raises(MemoryError, match=r"the CSR matrix needs about [\d,]+ bytes.*output='codes'"):
        matrix(rng).tocsr()


def test_sparse_types(rng):
    assert isinstance(matrix(rng).tocsr(), sparse.csr_matrix)


@pytest.mark.parametrize("rows", [np.arange(20) > 3, [[0, 1], [2, 3]], [0.5, 1.0]])
def test_take_needs_row_numbers(rng, rows):
    Z = RandomBinning(gamma=1.0, n_grids=4, output="codes", random_state=0).fit_transform(rng.normal(size=(20, 2)))
    with pytest.raises(IndexError, match="take needs row numbers in one dimension"):
        Z.take(rows)


def test_codes_that_are_changed_afterwards_write_nothing_beyond_arrays():
    """Codes beyond the bins of their grid are no bin."""
    codes = np.zeros((4, 500), np.uint16)
    Z = BinMatrix(codes, [0, 5, 10, 15, 20])
    codes[:, 7:] = 60000
    csr = Z.tocsr()
    assert csr.nnz == 4 * 7
    assert csr.indices.max() < 20
    np.testing.assert_allclose(Z.gram_diagonal().sum(), 7)
    np.testing.assert_allclose(Z @ np.ones(20), csr @ np.ones(20))
    np.testing.assert_array_equal(Z._bin_sizes()[[0, 5, 10, 15]], 7)
