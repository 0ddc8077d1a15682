"""The nearest rows by exact distance, among the rows that share most bins."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse

from binfeat._common.memory import require_memory
from binfeat._common.subsets import slices
from binfeat._common.validation import CheckedRows
from binfeat._threads import side_by_side

_ROWS_OF_A_PART = 4096


@dataclass(frozen=True, eq=False)
class ScaledRows:
    """Rows with squared distances equal to the sum of squares of ``gamma_j (x_j - y_j)``, up to a factor.

    Two categories have the distance 1. Sums over inputs have the same order for dense and for sparse rows.
    """

    numbers: np.ndarray | sparse.csr_array  # (n_numbers, n_rows), or sparse rows (n_rows, n_inputs)
    categories: np.ndarray  # (n_categories, n_rows); 0 in sparse `numbers`
    weights: np.ndarray  # (n_categories,): squares of the scales

    @classmethod
    def of(cls, X: CheckedRows, gamma: np.ndarray, categorical: np.ndarray) -> Self:
        """Scale rows of X, without NaN, by one gamma per input; `categorical` is a mask of the categorical inputs."""
        scale = gamma / gamma.max()
        if sparse.issparse(X):
            own = np.where(categorical, 0.0, scale)
            numbers = sparse.csr_array((X.data * own[X.indices], X.indices, X.indptr), shape=X.shape)
            n_categories = int(np.count_nonzero(categorical))
            require_memory(
                16 * X.shape[0] * n_categories,  # two dense copies
                f"a dense copy of {n_categories} categorical columns of {X.shape[0]:,} rows",
                "Use fewer categorical features.",
            )
            categories = np.ascontiguousarray(X[:, np.flatnonzero(categorical)].toarray().T)
            return cls(numbers, categories, scale[categorical] ** 2)
        numeric = np.flatnonzero(~categorical)
        numbers = np.empty((numeric.size, len(X)))
        for own, j in zip(numbers, numeric):  # without copies of all rows
            np.multiply(X[:, j], scale[j], out=own)
        return cls(numbers, np.ascontiguousarray(X[:, categorical].T), scale[categorical] ** 2)

    def take(self, rows: np.ndarray) -> Self:
        """Return some of the rows, in the order of their numbers."""
        numbers = self.numbers[rows] if sparse.issparse(self.numbers) else self.numbers[:, rows]
        return type(self)(numbers, self.categories[:, rows], self.weights)

    def squares(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        squares = (self._sparse_squares if sparse.issparse(self.numbers) else self._dense_squares)(rows, others)
        for column, weight in zip(self.categories, self.weights):
            squares += weight * (column[rows, None] != column[others])
        return squares

    def _dense_squares(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        squares = np.zeros(others.shape)
        for column in self.numbers:
            difference = column[others]
            difference -= column[rows, None]
            difference *= difference
            squares += difference
        return squares

    def _sparse_squares(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        difference = sparse.csr_array(self.numbers[np.repeat(rows, others.shape[1])] - self.numbers[others.ravel()])
        difference.sum_duplicates()
        pairs = np.repeat(np.arange(others.size), np.diff(difference.indptr))
        sums = np.bincount(pairs, difference.data**2, others.size)  # integers if all differences are 0
        return sums.astype(np.float64, copy=False).reshape(others.shape)


def nearest_of(
    rows: ScaledRows, order: np.ndarray, neighbors: np.ndarray, met: np.ndarray, n_nearest: int, n_jobs: int | None
) -> np.ndarray:
    """Return a mask of the candidates that are the nearest rows, or copies of a row (in addition).

    `order` contains the row number of each place, `neighbors` (n_rows, n_candidates) the places of candidates, and
    `met` is False for unused entries and for the row itself.
    """
    near = np.empty(neighbors.shape, dtype=bool)

    def choose(part: slice) -> None:
        squares = rows.squares(order[part], order[neighbors[part]])
        squares[~met[part]] = np.inf
        copies = squares == 0
        squares[copies] = np.inf
        ranks = np.argsort(squares, axis=1, kind="stable")[:, :n_nearest]
        chosen = np.zeros(squares.shape, dtype=bool)
        np.put_along_axis(chosen, ranks, True, axis=1)
        near[part] = chosen & np.isfinite(squares) | copies

    side_by_side(choose, slices(len(order), _ROWS_OF_A_PART), n_jobs)
    return near
