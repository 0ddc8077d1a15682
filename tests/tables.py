"""Hypothesis strategies for tables of all shapes, types, layouts and containers, and for parameters."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import strategies as st
from scipy import sparse

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1 / 3, 5e-324, -2.2e-308, 1e-310, 1e16, 2.0**51, -(2.0**53), 1e300, -1.7e308]
NOT_FINITE = [np.nan, np.inf, -np.inf, -np.nan]
OTHER_NAN = np.array([0x7FF0000000000001, 0xFFF8000000000123], np.uint64).view(np.float64)  # signaling; payload
NUMERIC = ["f8", "f4", "f2", "g", ">f8", ">f4", "i1", "i2", "i4", "i8", ">i8", "u1", "u2", "u4", "u8", ">u4", "?"]
NOT_NUMERIC = ["c16", "c8", "O", "U3", "S3", "M8[s]", "m8[s]", "V8", [("a", "f8"), ("b", "i4")]]
SPARSE = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


class Subclass(np.ndarray):
    """A subclass of arrays."""


def values(finite=True):
    ordinary = st.floats(-100, 100, width=16) | st.sampled_from(SPECIAL)
    return ordinary if finite else ordinary | st.sampled_from([*NOT_FINITE, *OTHER_NAN])


@st.composite
def arrays(draw, min_rows=0, max_rows=12, min_inputs=0, max_inputs=5, dtypes=NUMERIC, finite=True):
    """Strategy for two-dimensional arrays in C order."""
    n_rows, n_inputs = draw(st.integers(min_rows, max_rows)), draw(st.integers(min_inputs, max_inputs))
    size = n_rows * n_inputs
    numbers = draw(st.lists(values(finite), min_size=size, max_size=size))
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    X = np.array(numbers, dtype=np.float64).reshape(n_rows, n_inputs)
    with np.errstate(all="ignore"):
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            X = np.clip(np.nan_to_num(X), max(limits.min, -(2.0**62)), min(limits.max, 2.0**62))
        elif dtype.kind == "f" and finite:
            X = np.clip(X, np.finfo(dtype).min, np.finfo(dtype).max)
        return X.astype(dtype)


LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "every second row and column": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "not aligned": lambda X: _unaligned(X),
    "a subclass": lambda X: X.copy().view(Subclass),
    "read-only": lambda X: _read_only(X),
    "rows of a wider table": lambda X: np.hstack([X, X])[:, : X.shape[1]],
}


# The same numbers in all forms.
FORMS = {
    **LAYOUTS,
    "big-endian": lambda X: X.astype(X.dtype.newbyteorder(">")),
    "csr": sparse.csr_array,
    "csr matrix": sparse.csr_matrix,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "int64 indices": lambda X: _long_indices(sparse.csr_array(X)),
}


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def _long_indices(X):
    return sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)


def _unaligned(X):
    raw = np.empty(X.nbytes + 1, np.uint8)[1:]
    out = raw[: X.nbytes].view(X.dtype).reshape(X.shape) if X.size else X
    out[...] = X
    return out


def _sparse(X, kind, *, is_array, untidy):
    X = np.asarray(X)
    if X.dtype.kind not in "fiub" or X.dtype.itemsize == 2 or X.dtype == np.longdouble:
        X = X.astype(np.float64)
    X = X.astype(X.dtype.newbyteorder("="))
    matrix = getattr(sparse, f"{kind}_{'array' if is_array else 'matrix'}")(X)
    return _untidy(matrix) if untidy and kind == "csr" else matrix


def _untidy(X):
    """Return the same CSR with reversed entries in a row, explicit zeros, and indices of 8 bytes."""
    dense = X.toarray()
    n_rows, n_inputs = dense.shape
    indices = np.tile(np.arange(n_inputs)[::-1], n_rows).astype(np.int64)
    starts = np.arange(n_rows + 1, dtype=np.int64) * n_inputs
    return type(X)((dense[:, ::-1].ravel(), indices, starts), shape=dense.shape)


def _frame(kind):
    def make(X):
        X = np.asarray(X)
        X = X.astype(np.float64) if X.dtype.itemsize > 8 or X.dtype.str[1:] == "f2" else X
        columns = {f"x{j}": np.ascontiguousarray(own.astype(X.dtype.newbyteorder("="))) for j, own in enumerate(X.T)}
        return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}[kind](columns)

    return make


@st.composite
def containers(draw, **options):
    """Strategy for pairs of a table in some container and its array."""
    X = draw(arrays(**options))
    kind = draw(st.sampled_from(["layout", "layout", "list", "sparse", "frame"]))
    if kind == "layout":
        return LAYOUTS[draw(st.sampled_from(list(LAYOUTS)))](X), X
    if kind == "list" and X.dtype.kind in "fiub":
        return X.tolist(), X
    if kind == "sparse":
        how = {"is_array": draw(st.booleans()), "untidy": draw(st.booleans())}
        return _sparse(X, draw(st.sampled_from(SPARSE)), **how), X
    if kind == "frame" and X.shape[1]:
        return _frame(draw(st.sampled_from(["pandas", "polars", "arrow"])))(X), X
    return X, X


@st.composite
def wild_tables(draw):
    """Strategy for arbitrary objects instead of a table; most must be refused."""
    X = draw(arrays(dtypes=[*NUMERIC, "O"], finite=False))
    with np.errstate(all="ignore"):
        return draw(
            st.sampled_from(
                [
                    X,
                    X.ravel(),
                    X[None],
                    X.astype(object),
                    X.astype(np.complex128) + 1j,
                    X.astype(str),
                    X.astype("S5") if X.dtype != object else X,
                    np.zeros(X.shape, "M8[s]"),
                    np.zeros(X.shape, "m8[s]"),
                    np.zeros(X.shape, "V8"),
                    np.zeros(X.shape, [("a", "f8")]),
                    np.ma.masked_array(np.asarray(X, float), np.ones(X.shape, bool)),
                    np.array(3.0),
                    [[1.0, 2.0], [3.0]],
                    [["a", None], [1, {}]],
                    [],
                    [[]],
                    None,
                    7,
                    "table",
                    b"table",
                    {},
                    {1, 2},
                    object(),
                    (row for row in X),
                    pd.DataFrame({"a": ["x", "y"], "b": [1, 2]}),
                    pd.DataFrame({"a": pd.Categorical(["x", None]), "b": [1, 2]}),
                    pd.DataFrame({"a": pd.to_datetime(["2020", "2021"])}),
                    pd.DataFrame({0: [1.0, 2.0], "b": [1, 2]}),
                    pd.DataFrame({"a": pd.array([1, None], "Int64")}),
                    pd.Series([1.0, 2.0]),
                    pl.DataFrame({"a": [[1], [2]]}),
                    pl.DataFrame({"a": ["x", None]}),
                    pa.table({"a": pa.array([None, None], pa.null())}),
                    sparse.csr_array(np.asarray(X, float) if X.dtype != object else np.eye(2)),
                    sparse.csr_array((2, 0)),
                    sparse.coo_array(np.ones((2, 2), complex)),
                ]
            )
        )


NASTY = [
    *(None, True, False, 0, 1, -1, 2, 3, 7, 10**30, -(2**63), 2**31, 2**40),
    *(0.0, -0.0, 0.5, 1.5, -1.0, 1e-320, 1e308, np.nan, np.inf, -np.inf, 1j),
    *("", "scale", "auto", "a", b"a", "learn", "laplacian", "rbf"),
    *([], [1], [0.5, 0.5, 0.5], [-1.0], ["a"], [[1.0]], [None], (1, 2), {}, {"a": 1}, {1}, object()),
    *(np.int64(3), np.uint8(2), np.float32(0.5), np.bool_(True), np.array(3), np.array([]), np.array([np.nan] * 3)),
    *(np.array(["a"]), np.datetime64("2020"), np.random.default_rng(0), np.random.RandomState(0)),
]

# A valid table and labels of its rows.
ROWS = np.random.default_rng(0).normal(size=(30, 3))
LABELS = (ROWS[:, 0] > 0).astype(int)
