"""Projections of blocks of rows on frequencies, by the fastest kernel for dense or sparse rows."""

import numpy as np
from scipy import sparse

from binfeat._engine.projections import project_fastfood, project_sparse

_SPARSE = 0.25  # density below which the kernel for CSR is faster than a matrix product of dense rows


def read_only(array, dtype=None):
    """A read-only view in C order, so that kernels are compiled for one signature only."""
    view = np.ascontiguousarray(array, dtype).view()
    view.flags.writeable = False
    return view


def _dense(X, rows):
    return X[rows].toarray() if sparse.issparse(X) else np.ascontiguousarray(X[rows])


def by_weights(X, weights):
    """A function ``(rows, out)`` that writes a slice of the rows of X times weights (n_inputs, n_frequencies)."""
    weights = read_only(weights, X.dtype)
    if not sparse.issparse(X) or X.nnz > _SPARSE * X.shape[0] * X.shape[1]:
        return lambda rows, out: np.matmul(_dense(X, rows), weights, out=out)
    values, inputs, starts = (read_only(array) for array in (X.data, X.indices, X.indptr))
    return lambda rows, out: project_sparse(values, inputs, starts[rows.start : rows.stop + 1], weights, out)


def by_fastfood(X, frequencies):
    """The same as `by_weights` for frequencies that are a `Fastfood`."""
    signs, order, normals, norms = frequencies.arrays
    arrays = read_only(signs, X.dtype), read_only(order), read_only(normals, X.dtype), read_only(norms, X.dtype)

    def project(rows, out):
        first, second = np.empty((2, order.shape[1]), X.dtype)
        project_fastfood(read_only(_dense(X, rows)), *arrays, first, second, out)

    return project
