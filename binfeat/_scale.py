"""The spread of a table's values, for ``gamma="scale"``."""

import numpy as np
from scipy import sparse

from binfeat._grids import round_significant

_CHUNK_BYTES = 2**22
_SIGNIFICANT = 24  # bits kept, so that the order of summation cannot show in the bins


def _chunks(blocks):
    """Values that count, a few megabytes at a time, as float64 in one order whatever the layout, and zeros beside."""
    for X in blocks:
        if sparse.issparse(X):
            yield _present(X.data.astype(np.float64)), X.shape[0] * X.shape[1] - X.nnz
            continue
        step = max(1, _CHUNK_BYTES // (8 * max(1, X.shape[1])))
        for start in range(0, X.shape[0], step):
            yield _present(np.asarray(X[start : start + step], dtype=np.float64, order="C").ravel()), 0


def _present(values):
    missing = np.isnan(values)
    return values[~missing] if missing.any() else values


def spread(blocks):
    """Standard deviation over all values of a table, NaN left out and the zeros of CSR counted.

    Parameters
    ----------
    blocks : iterable of ndarray or CSR of shape (n_rows, n_inputs)
        The table's rows, in one block or many; read three times.

    Returns
    -------
    std : float
        Rounded to 24 significant bits; 0 where all values are equal or missing.
    """
    largest = max((np.abs(values).max(initial=0.0) for values, _ in _chunks(blocks)), default=0.0)
    if largest == 0.0:
        return 0.0
    total, n_values = 0.0, 0
    for values, n_zeros in _chunks(blocks):
        total += np.sum(values / largest)
        n_values += values.size + n_zeros
    mean = total / n_values
    squares = sum(np.sum((values / largest - mean) ** 2) + n_zeros * mean**2 for values, n_zeros in _chunks(blocks))
    return float(round_significant(np.sqrt(squares / n_values), _SIGNIFICANT) * largest)


def gamma_by_scale(blocks, categorical, power):
    """Gamma of each input for ``gamma="scale"``: one over inputs times the spread to a power.

    Parameters
    ----------
    blocks : iterable of ndarray or CSR of shape (n_rows, n_inputs)
    categorical : ndarray of bool of shape (n_inputs,)
        A mismatch on such an input counts as one standard deviation.
    power : {1, 2}
        1 for profiles of ``|x - y|``, 2 for those of its square.

    Returns
    -------
    gamma : ndarray of shape (n_inputs,)
    """
    n_inputs = categorical.size
    std = spread(_Numbers(blocks, ~categorical) if categorical.any() else blocks)
    gamma = np.full(n_inputs, 1.0 / (n_inputs * std**power) if std > 0 else 1.0)
    gamma[categorical] = 1.0 / n_inputs
    return gamma


class _Numbers:
    """Blocks without their categorical columns."""

    def __init__(self, blocks, kept):
        self._blocks, self._kept = blocks, kept

    def __iter__(self):
        return (X[:, self._kept] for X in self._blocks)
