"""Effects of the levels of categories that all cells share, solved together with the coefficients of the cells.

With the block-diagonal matrix ``B = blockdiag(K_c + 1 1' + alpha / v)`` of the cells, one-hot columns Z, and the
diagonal matrix S of the prior variances of their weights, Woodbury's identity gives
``G = (B + Z S Z')^-1 = B^-1 - V M^-1 V'`` with ``V = B^-1 Z`` and ``M = S^-1 + Z' V``. Coefficients are ``a = G Y``,
weights ``w = S Z' a = M^-1 Z' B^-1 Y``, and leave-one-out residuals ``a_i / G_ii``.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Self

import numpy as np
from scipy import sparse

from binfeat._common.array_record import ArrayRecord
from binfeat._common.subsets import slices
from binfeat._threads import one_blas_thread
from binfeat.length_scales.leave_one_out import (
    SingularKernelError,
    Weights,
    factor_raised,
    invert_triangle,
    precise_inverse_root,
    squared_row_norms,
    times_square,
)

NO_COLUMN = -1
CELL_BATCH = 16  # cells; their products are in memory together


@dataclass(frozen=True, eq=False)
class LevelColumns(ArrayRecord):
    """A column for each level of some categorical inputs, and the prior variance of the weights of each input.

    Variances are relative to a kernel with value 1 for equal rows. Rare and new levels have no column, and no effect.
    """

    level_inputs: Annotated[np.ndarray, np.int32, "categories"]  # categorical inputs
    level_starts: np.ndarray  # (n_categories + 1,), int64: start of the codes of each input in `level_columns`
    level_columns: Annotated[np.ndarray, np.int32, "codes"]  # column of each code, or NO_COLUMN
    level_variances: Annotated[np.ndarray, np.float64, "categories"]

    @classmethod
    def of_counts(cls, inputs: np.ndarray, counts: list[np.ndarray], most: int) -> Self:
        """Create columns for up to `most` of the most frequent levels, given the count of rows with each code."""
        every = np.concatenate(counts)
        frequent = np.sort(np.argsort(-every, kind="stable")[: min(most, np.count_nonzero(every))])
        columns = np.full(every.size, NO_COLUMN, np.int32)
        columns[frequent] = np.arange(frequent.size)
        starts = np.cumsum([0, *(own.size for own in counts)], dtype=np.int64)
        return cls(inputs.astype(np.int32), starts, columns, np.ones(inputs.size))

    @cached_property
    def n_columns(self) -> int:
        return int(self.level_columns.max(initial=NO_COLUMN)) + 1

    @cached_property
    def groups(self) -> np.ndarray:
        """Category of each column, (n_columns,)."""
        of_codes = np.repeat(np.arange(self.level_inputs.size), np.diff(self.level_starts))
        return of_codes[self.level_columns != NO_COLUMN]

    @property
    def n_levels(self) -> np.ndarray:
        """Number of columns of each category, (n_categories,)."""
        return np.bincount(self.groups, minlength=self.level_inputs.size)

    @property
    def variances(self) -> np.ndarray:
        """Prior variance of the weight of each column, (n_columns,)."""
        return self.level_variances[self.groups]

    @property
    def share(self) -> float:
        """Share of all categories in the prior variance of a function value."""
        total = float(self.level_variances.sum())
        return total / (1 + total)

    def of_rows(self, values: np.ndarray) -> np.ndarray:
        """Return columns (n_categories, n_rows) of the levels of rows, given as columns (n_inputs, n_rows)."""
        out = np.empty((self.level_inputs.size, values.shape[1]), np.int64)
        for place, (j, start, stop) in enumerate(zip(self.level_inputs, self.level_starts, self.level_starts[1:])):
            known = np.append(self.level_columns[start:stop], NO_COLUMN)
            out[place] = known[np.minimum(values[j], stop - start).astype(np.int64)]
        return out

    def variance_of_new(self, columns: np.ndarray) -> np.ndarray:
        """Return the prior variance of levels without a column, (n_rows,), for `of_rows`."""
        return self.level_variances @ (columns == NO_COLUMN)


def one_hot(columns: np.ndarray) -> tuple[np.ndarray, sparse.csr_array]:
    """Return the sorted columns that occur among levels of rows, and the matrix Z (n_rows, n_present) of these.

    `columns` has the shape (n_categories, n_rows); NO_COLUMN is skipped.
    """
    rows = np.broadcast_to(np.arange(columns.shape[1]), columns.shape)
    known = columns != NO_COLUMN
    present, places = np.unique(columns[known], return_inverse=True)
    entries = np.ones(places.size, np.float32), (rows[known], places)
    return present, sparse.csr_array(entries, shape=(columns.shape[1], present.size))


_ROUNDS, _SETTLED = 20, 0.3  # maximum of updates of the variances, and the relative change at which they end
_LEAST_VARIANCE, _MOST_VARIANCE = 1e-4, 100.0
_REFINEMENTS = 2
_INCREASES = 4  # of the diagonal of M, from its rounding error to 1,000 times as much
_MANY_LEVELS = 4  # rows per level of a cell, below which the whole inverse is computed
_BLOCK = 128  # columns of a triangle that are multiplied together
_ROUNDING = 1e-6  # share of a diagonal entry of B^-1 below which a difference from it is rounding


@dataclass(frozen=True, eq=False)
class CellPart:
    """The solution of a cell without the effects of levels, and its part of the equations for their weights."""

    present: np.ndarray  # (n_present,): columns that occur
    V: np.ndarray | None  # (n_rows, n_present); None if it is computed again on demand
    coef: np.ndarray  # (n_rows, n_targets): of B^-1 Y
    diagonal: np.ndarray  # (n_rows,): of B^-1
    alpha: float
    product: np.ndarray  # (n_present, n_present): Z' V
    sums: np.ndarray  # (n_present, n_targets): Z' B^-1 Y
    square: np.ndarray  # (n_targets,): y' B^-1 y

    @classmethod
    def of(cls, K: np.ndarray, alpha: float, weights: Weights, Y: np.ndarray, columns: np.ndarray) -> Self:
        """Compute the part of a cell with kernel matrix K, which is overwritten, and columns of levels of its rows."""
        B, alpha = precise_inverse_root(K, alpha, weights, overwrite=True)
        present, Z = one_hot(columns)
        coef, V = times_square(B, Y), inverse_times_levels(B, Z)
        square = np.einsum("ij,ij->j", Y, coef, dtype=np.float64)
        return cls(present, V, coef, squared_row_norms(B), alpha, Z.T @ V, Z.T @ coef, square)

    def joint(self, effects: "LevelWeights") -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients a of the rows, and the diagonal of G, with the effects of levels."""
        assert self.V is not None
        own, V, (weights, inverse) = self.present, self.V, effects
        inverse = inverse[np.ix_(own, own)].astype(V.dtype)
        coef = self.coef - (V @ weights[own]).astype(self.coef.dtype)
        lost = np.einsum("ij,ij->i", V @ inverse, V, dtype=np.float64)
        return coef, np.maximum(self.diagonal - lost, _ROUNDING * self.diagonal)


def inverse_times_levels(B: np.ndarray, Z: sparse.csr_array) -> np.ndarray:
    """Return ``V = B B' Z`` of a cell, (n_rows, n_present), for the root B of its inverse."""
    if _MANY_LEVELS * Z.shape[1] > Z.shape[0]:  # sums of columns of the inverse
        return (Z.T @ squared(B)).T
    return times_square(B, Z.toarray()) if Z.shape[1] else Z.toarray().astype(B.dtype)


def squared(B: np.ndarray) -> np.ndarray:
    """Return ``B B'`` for an upper triangle B, (n, n), with zeros below."""
    out = np.empty_like(B)
    for own in slices(len(B), _BLOCK):
        above, within = slice(own.stop), slice(own.start, None)
        out[above, own] = B[above, within] @ B[own, within].T
        out[own, : own.start] = out[: own.start, own].T
    return out


# The weights of levels (n_columns, n_targets), float64, and the inverse (n_columns, n_columns) of the matrix M of their
# equations, float32 or float64.
LevelWeights = tuple[np.ndarray, np.ndarray]


class LevelEquations:
    """Equations ``M w = Z' B^-1 Y`` for the weights of levels, summed over cells."""

    def __init__(self, n_columns: int, n_targets: int) -> None:
        self._product, self._sums = np.zeros((n_columns, n_columns)), np.zeros((n_columns, n_targets))
        self._square, self._n_rows, self._dtype = np.zeros(n_targets), 0, np.dtype(np.float32)

    def add(self, part: CellPart) -> None:
        self.add_product(part.present, part.product)
        self._sums[part.present] += part.sums
        self._square += part.square
        self._n_rows += len(part.coef)

    def add_product(self, present: np.ndarray, product: np.ndarray) -> None:
        self._product[np.ix_(present, present)] += product
        self._dtype = np.promote_types(self._dtype, product.dtype)

    def solved(self, variances: np.ndarray, n_jobs: int | None = 1) -> LevelWeights:
        """Return the weights for prior variances (n_columns,)."""
        inverse = self.inverse(variances, n_jobs)
        weights = inverse @ self._sums
        for _ in range(_REFINEMENTS):  # an inverse in float32 has only three digits left
            left = self._sums - self._product @ weights - weights / variances[:, np.newaxis]
            weights += inverse @ left
        return weights, inverse

    def inverse(self, variances: np.ndarray, n_jobs: int | None = 1) -> np.ndarray:
        """Return the inverse of M for prior variances (n_columns,).

        If M is indefinite by rounding, because there is almost no noise, its diagonal is increased in factors of ten.
        """
        M = self._product.astype(self._dtype)
        least = len(M) * float(np.finfo(M.dtype).eps * (M.diagonal() + 1 / variances).max(initial=0.0))
        raises = (1 / variances + extra for extra in (0.0, *(least * 10.0**k for k in range(_INCREASES))))
        if factor_raised(M, raises, n_jobs) is None:
            raise SingularKernelError("the equations of the levels are not positive definite")
        invert_triangle(M)
        with one_blas_thread():
            return squared(M)

    def likeliest_variances(self, groups: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Return prior variances (n_groups,) of the highest likelihood, given the group of each column.

        Updates of MacKay (1992): the sum of squared weights of a group, divided by its effective number of weights.
        """
        variances = start
        for _ in range(_ROUNDS):
            weights, inverse = self.solved(variances[groups])
            scale = np.maximum(self._square - (self._sums * weights).sum(axis=0), np.finfo(float).tiny)
            squares = (weights**2 / (scale / self._n_rows)).mean(axis=1)
            free = 1 - np.diag(inverse) / variances[groups]
            total, effective = (np.bincount(groups, own, start.size) for own in (squares, free))
            updated = np.clip(total / np.maximum(effective, 1e-3), _LEAST_VARIANCE, _MOST_VARIANCE)
            change, variances = np.abs(np.log(updated / variances)).max(), updated
            if change < _SETTLED:
                break
        return variances
