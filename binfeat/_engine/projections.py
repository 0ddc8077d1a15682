"""Projections on frequencies that need no matrix product: of sparse rows, and by fastfood."""

from binfeat._engine.hadamard import hadamard_row
from binfeat._engine.policy import jit


@jit
def project_sparse(values, inputs, row_starts, weights, out):
    """Multiply rows of a CSR matrix by a dense matrix, in a time proportional to the stored entries.

    Parameters
    ----------
    values : (n_stored,) float32 or float64
    inputs : (n_stored,) int32 or int64
    row_starts : (n_rows + 1,) int32 or int64; first place of each row in `values`, and the end of the last
    weights : (n_inputs, n) of the values' type
    out : (n_rows, n) of the values' type, written
    """
    for i in range(out.shape[0]):
        total = out[i]
        total[:] = 0
        for k in range(row_starts[i], row_starts[i + 1]):
            value, row = values[k], weights[inputs[k]]
            for j in range(total.shape[0]):
                total[j] += value * row[j]


@jit
def project_fastfood(X, signs, order, normals, norms, first, second, out):
    """Multiply rows by ``S H G P H B``, block by block (Le, Sarlos & Smola 2013).

    Parameters
    ----------
    X : (n_rows, n_inputs) float32 or float64
    signs : (n_blocks, n_inputs) of the type of X; B times the factor of each input
    order : (n_blocks, length) int32; P: source index of each element; `length` is a power of two
    normals : (n_blocks, length) of the type of X; G
    norms : (n,) of the type of X; S of all blocks; the last block may be incomplete: ``n <= n_blocks * length``
    first, second : (length,) of the type of X, scratch
    out : (n_rows, n) of the type of X, written
    """
    n_inputs, length = X.shape[1], first.shape[0]
    for block in range(order.shape[0]):
        sign, place, normal = signs[block], order[block], normals[block]
        start = block * length
        norm = norms[start : start + length]
        for i in range(X.shape[0]):
            x, projected = X[i], out[i, start : start + length]
            for j in range(n_inputs):
                first[j] = sign[j] * x[j]
            first[n_inputs:] = 0
            hadamard_row(first)
            for j in range(length):
                second[j] = normal[j] * first[place[j]]
            hadamard_row(second)
            for j in range(norm.shape[0]):
                projected[j] = norm[j] * second[j]
