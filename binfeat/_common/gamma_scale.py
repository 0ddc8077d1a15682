"""The standard deviation of a table's values, for ``gamma="scale"``."""

import numpy as np
from scipy import sparse

from binfeat._binning.grids import round_significant

_CHUNK_BYTES = 2**22
_NUMBERS = np.finfo(np.float64)
_SIGNIFICANT = 24  # bits kept, so that bins do not depend on the order of summation


def _chunks(X):
    """The values without NaN, a few megabytes at a time, as float64 in an order that X's layout does not change."""
    if sparse.issparse(X):
        values = X.data.astype(np.float64)
        yield values[~np.isnan(values)]
        return
    step = max(1, _CHUNK_BYTES // (8 * max(1, X.shape[1])))
    for start in range(0, X.shape[0], step):
        values = np.asarray(X[start : start + step], dtype=np.float64, order="C").ravel()
        missing = np.isnan(values)
        yield values[~missing] if missing.any() else values


def _largest(X):
    """Largest magnitude."""
    return float(max((np.abs(values).max(initial=0.0) for values in _chunks(X)), default=0.0))


def _n_zeros(X):
    return X.shape[0] * X.shape[1] - X.nnz if sparse.issparse(X) else 0


def _sum(X, unit):
    """Sum of the values in multiples of `unit`, and their number."""
    total, n_values = 0.0, _n_zeros(X)
    for values in _chunks(X):
        total += np.sum(values / unit)
        n_values += values.size
    return total, n_values


def _squares(X, unit, mean):
    """Sum of squared deviations from a mean, values and mean in multiples of `unit`."""
    return _n_zeros(X) * mean**2 + sum(np.sum((values / unit - mean) ** 2) for values in _chunks(X))


def spread(over):
    """Standard deviation of all values of X, without NaN and with the zeros of CSR.

    Parameters
    ----------
    over : callable
        ``over(function, *arguments)`` calls ``function(part, *arguments)`` for each part of the rows of X, an ndarray
        or CSR of shape (n_rows, n_inputs), and returns the list of results.

    Returns
    -------
    std : float
        Rounded to 24 significant bits; 0 where all values are equal or missing.
    """
    unit = max(over(_largest), default=0.0)
    if unit == 0.0:
        return 0.0
    total, n_values = (sum(each) for each in zip(*over(_sum, unit)))
    squares = sum(over(_squares, unit, total / n_values))
    return float(round_significant(np.sqrt(squares / n_values), _SIGNIFICANT) * unit)


def gamma_by_scale(over, categorical, power):
    """Gamma of each input for ``gamma="scale"``: ``1 / (n_inputs * std**power)``.

    Parameters
    ----------
    over : callable
        As in `spread`.
    categorical : ndarray of bool of shape (n_inputs,)
        Two different values of such an input are one standard deviation apart.
    power : {1, 2}
        1 for kernels of ``|x - y|``, 2 for those of its square.

    Returns
    -------
    gamma : ndarray of shape (n_inputs,)
    """
    n_inputs = categorical.size
    std = spread(lambda function, *arguments: over(_on_numbers, categorical, function, *arguments))
    gamma = np.ones(n_inputs)
    if std > 0:
        with np.errstate(over="ignore", divide="ignore"):
            gamma[:] = np.clip(1.0 / (n_inputs * np.float64(std) ** power), _NUMBERS.tiny, _NUMBERS.max)
    gamma[categorical] = 1.0 / n_inputs
    return gamma


def _on_numbers(X, categorical, function, *arguments):
    return function(X[:, ~categorical] if categorical.any() else X, *arguments)


def over_blocks(blocks):
    """The argument `over` of `spread` for blocks of rows in this process, which must allow several iterations."""
    return lambda function, *arguments: [function(X, *arguments) for X in blocks]
