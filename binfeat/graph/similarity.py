"""Base of graphs of similar rows, and the graph of all similarities, by products with features."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from binfeat._common.array_record import ArrayRecord
from binfeat._common.arrays import quotients
from binfeat._rows.products import Features, product, transposed_product

_ALONE = 1e-9  # smaller degrees are rounding errors


class Graph:
    """Base of graphs with similarities W of rows and degrees D, the sums of W: 0 for a row without neighbors.

    `known` is the leading eigenvector of ``D^-1/2 W D^-1/2``, with eigenvalue 1. ValueError for negative degrees, which
    features that approximate a kernel can have.
    """

    def __init__(self, degrees: np.ndarray) -> None:
        degrees[np.abs(degrees) <= _ALONE] = 0.0
        if (degrees < 0).any():
            raise ValueError(
                f"gamma is too large for the features: row {degrees.argmin()} has a similarity of {degrees.min():.2g} "
                "to all rows together. Decrease gamma, increase n_components, or use RandomBinning."
            )
        if not degrees.any():
            raise ValueError("gamma is too large: no two rows of X share a bin. Decrease gamma.")
        self.degrees, self.known = degrees, np.sqrt(degrees / degrees.sum())
        self._inverse = quotients(1.0, np.sqrt(degrees))[:, None]

    @cached_property
    def components(self) -> np.ndarray:
        """Component numbers of rows, (n_rows,); -1 for rows without neighbors."""
        return np.where(self.degrees > 0, 0, -1)

    def known_vectors(self, most: int) -> np.ndarray:
        """Return at most this number of orthonormal eigenvectors with eigenvalue 1, (n_rows, n_known).

        They are `known`, and others that are constant in the largest components, except for the root of the degree.
        """
        used = self.degrees > 0
        sizes, volumes = (np.bincount(self.components[used], own) for own in (None, self.degrees[used]))
        largest = np.argsort(-sizes, kind="stable")[: min(most, sizes.size) - 1]
        shares = (np.arange(sizes.size)[:, None] == largest).astype(np.float64)
        basis = np.linalg.qr(np.column_stack([np.sqrt(volumes), shares]))[0] / np.sqrt(volumes)[:, None]
        vectors = np.sqrt(self.degrees)[:, None] * basis[self.components]
        vectors[:, 0] = self.known
        return vectors

    def by_root_degree(self, V: np.ndarray) -> np.ndarray:
        """Return ``D^-1/2 V`` for unit vectors V (n_rows, k), scaled to a weighted mean square of 1."""
        return V * (np.sqrt(self.degrees.sum()) * self._inverse)

    def normalized(self, V: np.ndarray) -> np.ndarray:
        """Return ``D^-1/2 W D^-1/2 V`` for V (n_rows, k)."""
        image = self._product(V * self._inverse)
        image *= self._inverse
        return image

    def _product(self, V: np.ndarray) -> np.ndarray:
        """Return ``W V``, in Fortran order."""
        raise NotImplementedError

    def means(self, values: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return, for values (n_rows, k), an object that computes means for other rows, and the means of the rows."""
        raise NotImplementedError


class SimilarityGraph(Graph):
    """Similarities ``W = Z Z'`` of rows, also of rows with themselves."""

    def __init__(self, Z: Features) -> None:
        self._Z = Z
        super().__init__(self._product(np.ones((Z.shape[0], 1), order="F"))[:, 0])

    def _of_columns(self, V: np.ndarray) -> np.ndarray:
        sums = np.empty((self._Z.shape[1], V.shape[1]), order="F")
        transposed_product(self._Z, np.asfortranarray(V), sums)
        return sums

    def _product(self, V: np.ndarray) -> np.ndarray:
        image = np.empty(V.shape, order="F")
        product(self._Z, self._of_columns(V), image)
        return image

    def means(self, values: np.ndarray) -> "tuple[ColumnMeans, np.ndarray]":
        found = ColumnMeans(self._of_columns(np.column_stack([np.ones(len(values)), values])))
        return found, found.of_rows(self._Z)


@dataclass(frozen=True, eq=False)
class ColumnMeans(ArrayRecord):
    """Sums over training rows, for means weighted by similarity."""

    columns: np.ndarray  # (n_columns, 1 + k): features, and features times values, summed over the rows

    def of_rows(self, Z: Features) -> np.ndarray:
        """Return means for rows Z, (n, k); 0 for rows without neighbors."""
        sums = np.asarray(Z @ self.columns)
        return quotients(sums[:, 1:], sums[:, :1])


def means(W: sparse.csr_array, values: np.ndarray) -> np.ndarray:
    """Return means of values (n_rows, k), weighted by similarities W (n, n_rows); 0 for rows without neighbors."""
    return quotients(W @ values, W.sum(axis=1)[:, None])
