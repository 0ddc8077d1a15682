"""The graph of similar rows that features make, by products with the features alone."""

import numpy as np

from binfeat._binning.bin_matrix import BinMatrix
from binfeat._rows.products import product, transposed_product

_ALONE = 1e-9  # a degree this small is what rounding leaves


def column_weights(Z):
    """The weight of each column of features in the graph, and what of a row's similarity is with itself.

    A bin of n rows has the weight ``1 / (n - 1)``; a bin of one row is left out, and no row is its own neighbour. Other
    features have weight 1, and their rows keep the similarity with themselves.
    """
    if not isinstance(Z, BinMatrix):
        return np.ones(Z.shape[1]), np.zeros(Z.shape[0])
    n_grids = len(Z.codes)
    others = np.rint(Z.gram_diagonal() * n_grids) - 1
    weights = np.divide(1.0, others, out=np.zeros_like(others), where=others > 0)
    return weights, np.asarray(Z @ weights) / np.sqrt(n_grids)


def inverse_roots(degrees):
    """``D^-1/2``, with 0 for rows without neighbours."""
    return np.divide(1.0, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)


class SimilarityGraph:
    """Similarities ``W = Z diag(w) Z' - diag(own)`` of rows, with their sums, the degrees D.

    Parameters
    ----------
    Z : BinMatrix, ndarray, CSR or LinearOperator of shape (n_rows, n_columns)

    Attributes
    ----------
    weights : ndarray of shape (n_columns,)
        w.
    degrees : ndarray of shape (n_rows,)
        D; 0 for a row without neighbours.
    known : ndarray of shape (n_rows,)
        The leading eigenvector of ``D^-1/2 W D^-1/2``, of eigenvalue 1.

    Raises
    ------
    ValueError
        If a degree is negative, as features that approximate a kernel may have it.
    """

    def __init__(self, Z):
        self._Z = Z
        self.weights, self._own = column_weights(Z)
        degrees = self._product(np.ones((Z.shape[0], 1), order="F"))[:, 0]
        degrees[np.abs(degrees) <= _ALONE] = 0.0
        if (degrees < 0).any():
            raise ValueError(
                f"gamma is too large for the features: row {degrees.argmin()} has a similarity of {degrees.min():.2g} "
                "to all rows together. Lower gamma, take more components, or take RandomBinning."
            )
        if not degrees.any():
            raise ValueError("gamma is too large: no two rows of X share a bin. Lower gamma.")
        self.degrees, self.known = degrees, np.sqrt(degrees / degrees.sum())
        self._inverse = inverse_roots(degrees)

    def of_columns(self, V):
        """``diag(w) Z' V`` for V of shape (n_rows, k): what new rows are multiplied with."""
        sums = np.empty((self._Z.shape[1], V.shape[1]), V.dtype, order="F")
        transposed_product(self._Z, np.asfortranarray(V), sums)
        sums *= self.weights[:, None]
        return sums

    def columns_of_means(self, values):
        """What `weighted_means` of values of shape (n_rows, k) takes."""
        return self.of_columns(np.column_stack([np.ones(len(values)), values]))

    def by_root_degree(self, V):
        """``D^-1/2 V`` for unit vectors V of shape (n_rows, k), so that their weighted mean square is 1."""
        return V * (np.sqrt(self.degrees.sum()) * self._inverse)[:, None]

    def normalised(self, V):
        """``D^-1/2 W D^-1/2 V`` for V of shape (n_rows, k), in its dtype."""
        inverse = self._inverse[:, None].astype(V.dtype, copy=False)
        image = self._product(V * inverse)
        image *= inverse
        return image

    def _product(self, V):
        image = np.empty(V.shape, V.dtype, order="F")
        product(self._Z, self.of_columns(V), image)
        image -= self._own[:, None] * V
        return image


def weighted_means(Z, columns):
    """Mean of values over the neighbours of rows, weighted by similarity; 0 for rows without neighbours.

    The first of the columns has the sum of the similarities, and the others those of values times similarities.
    """
    sums = np.asarray(Z @ columns)
    total = sums[:, :1]
    return np.divide(sums[:, 1:], total, out=np.zeros_like(sums[:, 1:]), where=total > 0)
