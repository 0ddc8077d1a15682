"""The spread of a table's values, for ``gamma="scale"``."""

import numpy as np
from scipy import sparse

from binfeat._grids import round_significant

_CHUNK_BYTES = 2**22
_SIGNIFICANT = 24  # bits kept, so that the order of summation cannot show in the bins


def _chunks(X):
    """The values that count, a few megabytes at a time, as float64 in one order whatever X's layout."""
    if sparse.issparse(X):
        yield X.data.astype(np.float64)
        return
    step = max(1, _CHUNK_BYTES // (8 * max(1, X.shape[1])))
    for start in range(0, X.shape[0], step):
        values = np.asarray(X[start : start + step], dtype=np.float64, order="C").ravel()
        missing = np.isnan(values)
        yield values[~missing] if missing.any() else values


def spread(X):
    """Standard deviation over all values of X, NaN left out and the zeros of CSR counted.

    Parameters
    ----------
    X : ndarray or CSR of shape (n_rows, n_inputs)

    Returns
    -------
    std : float
        Rounded to 24 significant bits; 0 where all values are equal or missing.
    """
    largest = max((np.abs(values).max(initial=0.0) for values in _chunks(X)), default=0.0)
    largest = float(largest) if np.isfinite(largest) else float(np.nanmax(np.abs(X.data)))
    if largest == 0.0:
        return 0.0
    n_zeros = X.shape[0] * X.shape[1] - X.nnz if sparse.issparse(X) else 0
    total, n_values = 0.0, n_zeros
    for values in _chunks(X):
        total += np.nansum(values / largest)
        n_values += np.count_nonzero(~np.isnan(values))
    mean = total / n_values
    squares = n_zeros * mean**2 + sum(np.nansum((values / largest - mean) ** 2) for values in _chunks(X))
    return float(round_significant(np.sqrt(squares / n_values), _SIGNIFICANT) * largest)


def gamma_by_scale(X, categorical, power):
    """Gamma of each input for ``gamma="scale"``: one over inputs times the spread to a power.

    Parameters
    ----------
    X : ndarray or CSR of shape (n_rows, n_inputs)
    categorical : ndarray of bool of shape (n_inputs,)
        A mismatch on such an input counts as one standard deviation.
    power : {1, 2}
        1 for profiles of ``|x - y|``, 2 for those of its square.

    Returns
    -------
    gamma : ndarray of shape (n_inputs,)
    """
    n_inputs = X.shape[1]
    std = spread(X[:, ~categorical] if categorical.any() else X)
    gamma = np.full(n_inputs, 1.0 / (n_inputs * std**power) if std > 0 else 1.0)
    gamma[categorical] = 1.0 / n_inputs
    return gamma
