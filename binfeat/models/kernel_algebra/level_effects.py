"""Effects of levels that all cells share, solved for together with the coefficients of the cells.

With the block-diagonal matrix ``B = blockdiag(K_c + 1 1' + alpha / v)`` of the cells, one-hot columns Z, and the
diagonal matrix S of the prior variances of their weights, Woodbury's identity gives
``G = (B + Z S Z')^-1 = B^-1 - V M^-1 V'`` with ``V = B^-1 Z`` and ``M = S^-1 + Z' V``. Coefficients are ``a = G Y``,
weights ``w = S Z' a = M^-1 Z' B^-1 Y``, and leave-one-out residuals ``a_i / G_ii``.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.linalg.lapack import get_lapack_funcs

from binfeat._engine import triangles
from binfeat._threads import one_blas_thread
from binfeat.length_scales.cholesky import factorise, times_square
from binfeat.length_scales.leave_one_out import (
    SingularKernelError,
    Weights,
    precise_inverse_root,
    squared_row_norms,
)
from binfeat.models.kernel_algebra.levels import PresentLevels

_ROUNDS, _SETTLED = 20, 0.05  # updates of the variances at most, and the relative change that ends them
_LEAST_VARIANCE, _MOST_VARIANCE = 1e-4, 100.0
_REFINEMENTS = 2
_ROUNDING = 1e-6  # of a diagonal entry of B^-1, below which a difference from it has no digits


@dataclass(frozen=True, eq=False)
class CellPart:
    """The solution of a cell without the effects of levels, and its part of the equations for their weights."""

    levels: PresentLevels
    V: np.ndarray | None  # (n_rows, n_present); None if it is computed again when it is needed
    coef: np.ndarray  # (n_rows, n_targets): of B^-1 Y
    diagonal: np.ndarray  # (n_rows,): of B^-1
    alpha: float
    product: np.ndarray  # (n_present, n_present): Z' V
    sums: np.ndarray  # (n_present, n_targets): Z' B^-1 Y
    square: np.ndarray  # (n_targets,): y' B^-1 y

    @classmethod
    def of(cls, K: np.ndarray, alpha: float, weights: Weights, Y: np.ndarray, levels: PresentLevels) -> Self:
        """The part of a cell with kernel matrix K, which is overwritten."""
        B, alpha = precise_inverse_root(K, alpha, weights, overwrite=True)
        coef, V = times_square(B, Y), inverse_times_levels(B, levels)
        square = np.einsum("ij,ij->j", Y, coef, dtype=np.float64)
        return cls(levels, V, coef, squared_row_norms(B), alpha, levels.Z.T @ V, levels.Z.T @ coef, square)

    def without_product(self, keeps_V: bool) -> Self:
        """The part after it was added to the equations."""
        return replace(self, V=self.V if keeps_V else None, product=self.product[:0])

    def joint(self, effects: "LevelWeights") -> tuple[np.ndarray, np.ndarray]:
        """Coefficients a of the rows, and the diagonal of G, with the effects of levels."""
        assert self.V is not None
        own, V = self.levels.columns, self.V
        inverse = effects.inverse[np.ix_(own, own)].astype(V.dtype)
        coef = self.coef - (V @ effects.weights[own]).astype(self.coef.dtype)
        lost = np.einsum("ij,ij->i", V @ inverse, V, dtype=np.float64)
        return coef, np.maximum(self.diagonal - lost, _ROUNDING * self.diagonal)


def inverse_times_levels(B: np.ndarray, levels: PresentLevels) -> np.ndarray:
    """``V = B B' Z`` of a cell, (n_rows, n_present), for the root B of its inverse."""
    Z = levels.Z.toarray()
    return times_square(B, Z) if Z.shape[1] else Z.astype(B.dtype)


@dataclass(frozen=True, eq=False)
class LevelWeights:
    """The weights of levels, and the inverse of the matrix M of their equations."""

    weights: np.ndarray  # (n_columns, n_targets), float64
    inverse: np.ndarray  # (n_columns, n_columns), float32 or float64


class LevelEquations:
    """The equations ``M w = Z' B^-1 Y`` for the weights of levels, of cells that are added one by one."""

    def __init__(self, n_columns: int, n_targets: int) -> None:
        self._product, self._sums = np.zeros((n_columns, n_columns)), np.zeros((n_columns, n_targets))
        self._square, self._n_rows, self._dtype = np.zeros(n_targets), 0, np.dtype(np.float32)

    def add(self, part: CellPart) -> None:
        """Add the part of a cell."""
        self.add_product(part.levels, part.product)
        self._sums[part.levels.columns] += part.sums
        self._square += part.square
        self._n_rows += len(part.coef)

    def add_product(self, levels: PresentLevels, product: np.ndarray) -> None:
        """Add Z' V of a cell."""
        self._product[np.ix_(levels.columns, levels.columns)] += product
        self._dtype = np.promote_types(self._dtype, product.dtype)

    def solved(self, variances: np.ndarray, n_jobs: int | None = 1) -> LevelWeights:
        """The weights for prior variances (n_columns,)."""
        inverse = self.inverse(variances, n_jobs)
        weights = inverse @ self._sums
        for _ in range(_REFINEMENTS):  # an inverse in float32 leaves three digits
            left = self._sums - self._product @ weights - weights / variances[:, np.newaxis]
            weights += inverse @ left
        return LevelWeights(weights, inverse)

    def inverse(self, variances: np.ndarray, n_jobs: int | None = 1) -> np.ndarray:
        """The inverse of M."""
        M = self._product.astype(self._dtype)
        np.einsum("ii->i", M)[:] += 1 / variances
        return _inverse(M, n_jobs)

    def likeliest_variances(self, groups: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Prior variances (n_groups,) that maximise the likelihood of the targets, for the group of each column.

        By updates of MacKay (1992): the mean square of the weights of a group, over its effective number of weights.
        """
        variances = start
        for _ in range(_ROUNDS):
            found = self.solved(variances[groups])
            scale = np.maximum(self._square - (self._sums * found.weights).sum(axis=0), np.finfo(float).tiny)
            squares = (found.weights**2 / (scale / self._n_rows)).mean(axis=1)
            free = 1 - np.diag(found.inverse) / variances[groups]
            total, effective = (np.bincount(groups, own, start.size) for own in (squares, free))
            updated = np.clip(total / np.maximum(effective, 1e-3), _LEAST_VARIANCE, _MOST_VARIANCE)
            change, variances = np.abs(np.log(updated / variances)).max(), updated
            if change < _SETTLED:
                break
        return variances


def _inverse(M: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """The inverse of a positive definite matrix, which is overwritten."""
    if not factorise(M, n_jobs):
        raise SingularKernelError("the equations of the levels are not positive definite")
    (potri,) = get_lapack_funcs(("potri",), (M,))
    with one_blas_thread():
        inverse, _ = potri(M.T, lower=1, overwrite_c=1)  # Fortran's lower triangle is the upper one in C order
    lower = np.ascontiguousarray(inverse)
    triangles.mirror_below_diagonal(lower)
    return lower
