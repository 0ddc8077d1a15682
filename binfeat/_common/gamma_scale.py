"""The spread of a table's values, from one look at each part of its rows, for ``gamma="scale"``."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from binfeat._common.random_words import round_significant
from binfeat._common.subsets import slices
from binfeat._common.validation import check_gamma, is_word

_CHUNK_BYTES = 2**22
_NUMBERS = np.finfo(np.float64)
_SIGNIFICANT = 24  # bits kept, so that bins do not depend on the order of summation


@dataclass(frozen=True)
class Moments:
    """Moments of the values of some rows, without NaN and with the zeros of CSR; moments of parts add up."""

    n_values: int
    unit: float  # the largest magnitude, in which mean and squares are measured, so that nothing overflows
    mean: float
    squares: float  # sum of squared deviations from the mean

    @classmethod
    def of(cls, X, categorical=None):
        """Moments of an ndarray or CSR (n_rows, n_inputs), without the inputs that the mask `categorical` marks."""
        X = X if categorical is None or not categorical.any() else X[:, ~categorical]
        n_zeros = X.shape[0] * X.shape[1] - X.nnz if sparse.issparse(X) else 0
        unit = float(max((np.abs(values).max(initial=0.0) for values in _chunks(X)), default=0.0))
        total, n_values = 0.0, n_zeros
        for values in _chunks(X):
            total += np.sum(values / unit) if unit else 0.0
            n_values += values.size
        if unit == 0.0:
            return cls(n_values, 0.0, 0.0, 0.0)
        mean = total / n_values
        squares = n_zeros * mean**2 + sum(np.sum((values / unit - mean) ** 2) for values in _chunks(X))
        return cls(n_values, unit, mean, squares)

    def __add__(self, other):
        """The moments of the rows of both (Chan, Golub & LeVeque 1979)."""
        unit, n_values = max(self.unit, other.unit), self.n_values + other.n_values
        if unit == 0.0:
            return Moments(n_values, 0.0, 0.0, 0.0)
        first, second, share = self.unit / unit, other.unit / unit, other.n_values / n_values
        apart = other.mean * second - self.mean * first
        squares = self.squares * first**2 + other.squares * second**2 + self.n_values * share * apart**2
        return Moments(n_values, unit, self.mean * first + share * apart, squares)

    @property
    def std(self):
        """Standard deviation, of 24 significant bits; 0 where all values are equal or missing."""
        if self.unit == 0.0:
            return 0.0
        return float(round_significant(np.sqrt(self.squares / self.n_values), _SIGNIFICANT) * self.unit)


def _chunks(X):
    """The values without NaN, a few megabytes at a time, as float64 in an order that X's layout does not change."""
    if sparse.issparse(X):
        values = X.data.astype(np.float64)
        yield values[~np.isnan(values)]
        return
    for rows in slices(X.shape[0], max(1, _CHUNK_BYTES // (8 * max(1, X.shape[1])))):
        values = np.asarray(X[rows], dtype=np.float64, order="C").ravel()
        missing = np.isnan(values)
        yield values[~missing] if missing.any() else values


def is_scale(gamma):
    """Whether gamma is the word "scale", for which the moments of the rows are needed."""
    return is_word(gamma, "scale")


def gamma_of_inputs(gamma, moments, categorical, power):
    """Gamma of each input: `gamma` if it is numbers, or ``1 / (n_inputs * std**power)`` from the moments of the rows.

    The moments leave out the inputs that the mask `categorical` marks; two categories count as one standard deviation
    apart. They are None where `gamma` is not "scale". The power is 1 for kernels of ``|x - y|``, 2 for its square.
    """
    n_inputs = categorical.size
    if moments is None:
        return check_gamma(gamma, n_inputs, words=("scale",))
    scaled = np.ones(n_inputs)
    if moments.std > 0:
        with np.errstate(over="ignore", divide="ignore"):
            scaled[:] = np.clip(1.0 / (n_inputs * np.float64(moments.std) ** power), _NUMBERS.tiny, _NUMBERS.max)
    scaled[categorical] = 1.0 / n_inputs
    return scaled
