"""The spread of a table's values, for ``gamma="scale"``."""

import numpy as np
from scipy import sparse

from binfeat._binning.grids import round_significant

_CHUNK_BYTES = 2**22
_NUMBERS = np.finfo(np.float64)
_SIGNIFICANT = 24  # bits kept, so that the order of summation cannot show in the bins


def _chunks(X):
    """The values but for NaN, a few megabytes at a time, as float64 in one order whatever X's layout."""
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
    """Sum of the values in this unit, and their number."""
    total, n_values = 0.0, _n_zeros(X)
    for values in _chunks(X):
        total += np.sum(values / unit)
        n_values += values.size
    return total, n_values


def _squares(X, unit, mean):
    """Sum of the values' squared deviations from a mean, all in this unit."""
    return _n_zeros(X) * mean**2 + sum(np.sum((values / unit - mean) ** 2) for values in _chunks(X))


def spread(over):
    """Standard deviation over all values of X, NaN left out and the zeros of CSR counted.

    Parameters
    ----------
    over : callable
        ``over(function, *arguments)`` lists what the function makes of each part of the rows of X and the arguments. A
        part is an ndarray or CSR of shape (n_rows, n_inputs).

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
    """Gamma of each input for ``gamma="scale"``: one over inputs times the spread to a power.

    Parameters
    ----------
    over : callable
        As in `spread`.
    categorical : ndarray of bool of shape (n_inputs,)
        A mismatch on such an input counts as one standard deviation.
    power : {1, 2}
        1 for profiles of ``|x - y|``, 2 for those of its square.

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
    """What `spread` takes, over blocks of rows in this process: a list, or what can be iterated again and again."""
    return lambda function, *arguments: [function(X, *arguments) for X in blocks]
