"""The standard deviation of each input for ``gamma="scale"``, from one pass over each part of the rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from binfeat._common.arrays import quotients
from binfeat._common.random_words import round_significant
from binfeat._common.subsets import slices
from binfeat._common.validation import check_gamma, check_weights, flat

_CHUNK_BYTES = 2**18
_NUMBERS = np.finfo(np.float64)
_SIGNIFICANT = 24  # bits kept, so that bins do not depend on the order of summation


@dataclass(frozen=True)
class Moments:
    """Moments of each input, arrays of shape (n_inputs,), ignoring NaN; moments of parts can be added."""

    n_values: np.ndarray  # or the sum of their weights, including zeros of CSR
    unit: np.ndarray  # the largest magnitude; mean and squares are divided by it, so that nothing overflows
    mean: np.ndarray
    squares: np.ndarray  # sum of squared deviations from the mean

    @classmethod
    def of(cls, X: Any, weights: np.ndarray | None = None) -> "Moments":
        """Compute moments of an ndarray or CSR (n_rows, n_inputs), with weights (n_rows,) of the rows."""
        if weights is not None and not (used := weights > 0).all():
            X, weights = X[used], weights[used]
        return (_of_sparse if sparse.issparse(X) else _of_dense)(X, weights)

    def __add__(self, other: "Moments") -> "Moments":
        """Combine the moments of two parts (Chan, Golub & LeVeque 1979)."""
        unit, n_values = np.maximum(self.unit, other.unit), self.n_values + other.n_values
        first, second = quotients(self.unit, unit), quotients(other.unit, unit)
        share = quotients(other.n_values, n_values)
        apart = other.mean * second - self.mean * first
        squares = self.squares * first**2 + other.squares * second**2 + self.n_values * share * apart**2
        return Moments(n_values, unit, self.mean * first + share * apart, squares)

    def pooled(self, inputs: np.ndarray) -> "Moments":
        """Return the moments of all values of the inputs in a mask, arrays of shape (1,)."""
        n_values, means, squares = self.n_values[inputs], self.mean[inputs], self.squares[inputs]
        unit, total = self.unit[inputs].max(initial=0.0, keepdims=True), n_values.sum(keepdims=True)
        factors = quotients(self.unit[inputs], unit)
        mean = quotients((n_values * means * factors).sum(keepdims=True), total)
        both = squares * factors**2 + n_values * (means * factors - mean) ** 2
        return Moments(total, unit, mean, both.sum(keepdims=True))

    @property
    def std(self) -> np.ndarray:
        """Return the standard deviation of each input in 24 significant bits; 0 if all values are equal or missing."""
        return round_significant(np.sqrt(quotients(self.squares, self.n_values)), _SIGNIFICANT) * self.unit


def checked_moments(X: Any, weights: Any = None) -> Moments:
    """Return the moments of a part of the rows, with weights that are checked; all of them may be zero in a part."""
    return Moments.of(X, flat(check_weights(weights, X.shape[0], some=False)))


@np.errstate(invalid="ignore")  # signaling NaN, which other programs may write
def _of_dense(X: np.ndarray, weights: np.ndarray | None) -> Moments:
    n_values, unit, total, squares = np.zeros((4, X.shape[1]))
    for values, _, known in _chunks(X, weights):
        np.maximum(unit, np.max(np.abs(values), axis=0, initial=0.0, where=known), out=unit)
    for values, own, known in _chunks(X, weights):
        total += np.sum(own * quotients(values, unit), axis=0, where=known)
        n_values += np.sum(np.broadcast_to(own, values.shape), axis=0, where=known)
    mean = quotients(total, n_values)
    for values, own, known in _chunks(X, weights):
        squares += np.sum(own * (quotients(values, unit) - mean) ** 2, axis=0, where=known)
    return Moments(n_values, unit, mean, np.where(unit > 0, squares, 0.0))


def _of_sparse(X: Any, weights: np.ndarray | None) -> Moments:
    n_rows, n_inputs = X.shape
    weights = np.ones(n_rows) if weights is None else weights
    of_entries, known = np.repeat(weights, np.diff(X.indptr)), ~np.isnan(X.data)
    inputs, values, own = X.indices[known], X.data[known].astype(np.float64), of_entries[known]
    unit = np.zeros(n_inputs)
    np.maximum.at(unit, inputs, np.abs(values))
    absent = weights.sum() - np.bincount(X.indices, of_entries, n_inputs)  # zeros that are not stored
    is_full = np.bincount(X.indices, minlength=n_inputs) == n_rows
    absent = np.where(is_full, 0.0, np.maximum(absent, 0.0))  # instead of rounding errors
    n_values = np.bincount(inputs, own, n_inputs) + absent
    scaled = quotients(values, unit[inputs])
    mean = quotients(np.bincount(inputs, own * scaled, n_inputs), n_values)
    squares = np.bincount(inputs, own * (scaled - mean[inputs]) ** 2, n_inputs) + absent * mean**2
    return Moments(n_values, unit, mean, squares)


def _chunks(X: np.ndarray, weights: np.ndarray | None) -> Iterator[tuple[np.ndarray, Any, Any]]:
    """Yield values as float64, weights, and a mask of the values that are not NaN, or True if there is no NaN.

    A chunk stays in a cache; the order of the chunks is independent of X's layout.
    """
    for rows in slices(X.shape[0], max(1, _CHUNK_BYTES // (8 * max(1, X.shape[1])))):
        own = 1.0 if weights is None else weights[rows, np.newaxis]
        values = np.asarray(X[rows], dtype=np.float64, order="C")
        known = ~np.isnan(values)
        yield values, own, True if known.all() else known


def gamma_of_inputs(gamma: Any, moments: Moments | None, categorical: np.ndarray, power: int) -> np.ndarray:
    """Return gamma for each input: `gamma` if numeric, or ``1 / (n_inputs * std_j**power)`` from the moments.

    Constant inputs and inputs in the mask `categorical` have a standard deviation of 1. The moments are None unless
    `gamma` is "scale". The power is 1 for kernels of ``|x - y|``, 2 for kernels of its square.
    """
    n_inputs = categorical.size
    if moments is None:
        return check_gamma(gamma, n_inputs, power, words=("scale", "learn"))
    return _inverse(moments.std, categorical, n_inputs, power)


def gamma_of_varying_inputs(std: np.ndarray, categorical: np.ndarray) -> np.ndarray:
    """Return ``1 / (n * std_j)`` for each input, where n counts only inputs that vary."""
    return _inverse(std, categorical, max(1, int(np.count_nonzero(std))), 1)


def _inverse(std: np.ndarray, categorical: np.ndarray, n_inputs: int, power: int) -> np.ndarray:
    std = np.where(categorical | (std == 0), 1.0, std)
    with np.errstate(over="ignore", divide="ignore"):
        return np.clip(1.0 / (n_inputs * std**power), _NUMBERS.tiny, _NUMBERS.max)
