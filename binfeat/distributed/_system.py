"""Rows of a ridge machine on the workers, and their normal equations."""

from dataclasses import dataclass
from functools import reduce
from operator import add as plus

import numpy as np
from dask.sizeof import sizeof

from binfeat._engine.vectors import centre
from binfeat._linear.cg import column_dots
from binfeat._linear.gram import gram_system
from binfeat._rows.products import gram_diagonal, product, transposed_product
from binfeat.distributed._chunks import Chunks, add, compute, persist, reduce_in_tree, shared


@dataclass
class Part:
    """Rows on a worker.

    Attributes
    ----------
    Z : BinMatrix, ndarray or CSR of shape (n_rows, n_columns)
    Y : ndarray of shape (n_rows, n_targets), float64
    weights : ndarray of shape (n_rows, 1), float64
    """

    Z: object
    Y: np.ndarray
    weights: np.ndarray

    def take(self, rows):
        return Part(self.Z[rows], self.Y[rows], self.weights[rows])


sizeof.register(Part, lambda part: sizeof(part.Z) + part.Y.nbytes + part.weights.nbytes)


class Targets:
    """Stands for targets that lie on the workers beside their rows; `ndim` is that of y."""

    def __init__(self, n_rows, n_targets, ndim):
        self.shape, self.ndim = (n_rows, n_targets), ndim

    def __getitem__(self, rows):
        return self


class Rows:
    """Rows on the workers, which the ridge machines take for a design matrix.

    Parameters
    ----------
    parts : list of Delayed, each of which comes to a Part with some rows
    lengths : list of int
    n_columns : int
    dtype : numpy.dtype
        Of the features.
    dense : bool
        Whether these are arrays.
    traffic : list, default=None
        Where pairs of bytes go, those of coefficients sent out and of sums that came back, one for each product.
    """

    def __init__(self, parts, lengths, n_columns, dtype, dense, traffic=None):
        self._parts, self._lengths = parts, lengths
        self.shape = sum(lengths), n_columns
        self.dtype, self.dense = dtype, dense
        self.traffic = [] if traffic is None else traffic

    def _each(self, function, *arguments, own=()):
        """Delayed results on each part."""
        return Chunks(self._parts, None, 0, self.dtype, None, "X").each(function, *arguments, own=own)

    def __getitem__(self, rows):
        """All rows by ``slice(None)``, or some by their rising numbers, which stay where they are."""
        if isinstance(rows, slice):
            return self
        ends = np.cumsum(self._lengths)
        own = np.split(rows, np.searchsorted(rows, ends[:-1]))
        own = [part - (end - length) for part, end, length in zip(own, ends, self._lengths, strict=True)]
        taken = persist(self._each(Part.take, own=[own]))
        kept = [(part, len(rows)) for part, rows in zip(taken, own, strict=True) if len(rows)]
        return Rows(*map(list, zip(*kept, strict=True)), self.shape[1], self.dtype, self.dense, self.traffic)

    def __matmul__(self, W):
        """Predictions of all rows, fetched."""
        return np.concatenate(compute(self._each(_predict, shared(W))))

    def sum(self, function, *arguments):
        """Sums over the parts of the list of arrays that the function makes of each, added up in a tree."""
        return reduce_in_tree(self._each(function, *map(shared, arguments)), add)

    def gram_system(self, fit_intercept):
        """Normal equations from the Gram matrix of all rows."""
        system = reduce_in_tree(self._each(_gram, fit_intercept), _join_grams)
        self.traffic.append((0, system.matrix.nbytes + system.right.nbytes))
        return system


def _predict(part, W):
    return np.asarray(part.Z @ W)


def _gram(part, fit_intercept):
    return gram_system(part.Z, part.Y, part.weights, fit_intercept) if part.weights.any() else None


def _join_grams(systems):
    return reduce(plus, [system for system in systems if system is not None])


class System:
    """Normal equations of rows on the workers: what `RidgeSystem` is for rows in memory.

    The mean row is found once. With it the mean of ``Z W``, which centres the values of a product, follows from W, so
    that a product takes W out and one sum back, in a single round.
    """

    def __init__(self, rows, fit_intercept):
        self._rows, self._fit_intercept = rows, fit_intercept
        self.dtype = rows.dtype
        total, sums = rows.sum(_totals)
        total = np.maximum(total, np.finfo(float).tiny)
        self._target_means = sums / total if fit_intercept else np.zeros(sums.shape)
        self._right, columns, self._diagonal = rows.sum(_moments, self._target_means)
        self._means = np.zeros(columns.shape)
        if fit_intercept:
            self._means[:] = columns / total
            self._diagonal = np.maximum(self._diagonal - columns**2 / total, 0.0)

    def right_side(self, Y):
        """The right-hand side for each target."""
        return self._right.copy(order="F")

    def diagonal(self):
        """Diagonal of the matrix, (n_columns, 1)."""
        return self._diagonal

    def apply(self, W, columns, out):
        """Write the product with W; it and `out` are in Fortran order."""
        (total,) = self._rows.sum(_product, W, self._mean_values(W))
        self._rows.traffic.append((W.nbytes, total.nbytes))
        out[:] = total

    def intercept(self, coef, Y):
        """Intercepts that go with coefficients, for each target."""
        return self._target_means - self._mean_values(coef)

    def _mean_values(self, W):
        if not self._fit_intercept:
            return np.zeros(W.shape[1])
        return column_dots(W, np.broadcast_to(self._means, W.shape).astype(W.dtype))


def _totals(part):
    """Weight of the rows, and weighted sum of their targets."""
    return [part.weights.sum(axis=0), (part.weights * part.Y).sum(axis=0)]


def _moments(part, target_means):
    """Right-hand side, weighted column sums in float64, and diagonal before centring."""
    dtype = np.float32 if part.Z.dtype == np.float32 else np.float64
    right = _centred_back(part, np.array(part.Y, dtype, order="F"), target_means)
    columns = np.empty((part.Z.shape[1], 1), dtype, order="F")
    transposed_product(part.Z, part.weights.astype(dtype, order="F"), columns)
    return [right, columns.astype(np.float64), gram_diagonal(part.Z, part.weights)]


def _product(part, W, mean_values):
    values = np.empty((part.Z.shape[0], W.shape[1]), W.dtype, order="F")
    product(part.Z, W, values)
    return [_centred_back(part, values, mean_values)]


def _centred_back(part, values, mean_values):
    """``Z.T @ (weights * (values - means))``; the values are overwritten."""
    centre(mean_values, part.weights.T.astype(values.dtype), values.T, n_jobs=1)
    out = np.empty((part.Z.shape[1], values.shape[1]), values.dtype, order="F")
    transposed_product(part.Z, values, out)
    return out
