"""Kernel matrices of few rows, and their derivatives by the logarithms of all length scales.

Rows are columns here: arrays (n_inputs, n), float32 in C order, from `Standardizer.columns`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self, TypeGuard, cast

import numpy as np
from scipy.spatial.distance import cdist

from binfeat._common.arrays import Scratch
from binfeat._engine.decays import decays, gaussian_values, matern_values
from binfeat._engine.distances import (
    distance_sums,
    laplacian_values,
    profile_products,
    profile_sums,
    squared_distances,
    weighted_distances,
)
from binfeat.kernels.base import Kernel, ProductKernel
from binfeat.kernels.families import RBF, Laplacian, Matern

_TABLE, _REACH = 4096, 32.0  # entries of a tabulated profile, and the largest distance
_LEAST = 1e-6  # least value of a profile as a divisor
_FARTHEST = 1e15  # limit of inputs in standard deviations from the mean
_UNWANTED, _ALL = np.empty((0, 0), np.float32), slice(None)

Inputs = np.ndarray | slice  # a mask, or all
Prepared = tuple[np.ndarray, ...]
Slopes = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Standardizer:
    """Origin and unit of each input, so that float32 represents its values well; categories are not changed."""

    center: np.ndarray  # (n_inputs,)
    unit: np.ndarray  # (n_inputs,)

    @classmethod
    def of(cls, X: np.ndarray, categorical: np.ndarray) -> Self:
        """Return median and standard deviation of some rows; a mean moved by one outlier would cost digits."""
        std = X.std(axis=0)
        unit = np.where(categorical | (std == 0), 1.0, std)
        return cls(np.where(categorical, 0.0, np.median(X, axis=0)), unit)

    def columns(self, X: np.ndarray) -> np.ndarray:
        """Return rows as columns, (n_inputs, n_rows), float32, with finite squares."""
        columns = ((X - self.center) / self.unit).T
        np.minimum(np.maximum(columns, -_FARTHEST, out=columns), _FARTHEST, out=columns)  # faster than `clip`
        return np.ascontiguousarray(columns, dtype=np.float32)

    def gamma(self, kernel: Kernel, gamma: np.ndarray | float) -> np.ndarray:
        """Return a kernel's inverse length scales for these columns."""
        return gamma * self.unit**kernel.power


def _typed(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=np.float32)


def square(scratch: Scratch, name: str, n: int) -> np.ndarray:
    """Return an uninitialized matrix (n, n), float32 in C order; it may overwrite the previous one of the same name."""
    return scratch.array(name, (n, n), np.float32).T


@dataclass(frozen=True, eq=False)
class KernelMatrix(ABC):
    """Exact values of a kernel for pairs of rows."""

    kernel: Kernel
    categorical: np.ndarray  # (n_inputs,) of bool
    n_jobs: int | None = None

    def __call__(self, A: np.ndarray, B: np.ndarray, gamma: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return the kernel matrix (n, m), float32, of rows (n_inputs, n) and (n_inputs, m)."""
        return self.of_prepared(self.prepared(A, gamma), self.prepared(B, gamma), gamma, out)

    def prepared(self, A: np.ndarray, gamma: np.ndarray) -> Prepared:
        """Return arrays (..., n), float32, that are computed once from rows (n_inputs, n).

        Products of float64 rows are summed in float64, so values do not depend on other rows.
        """
        return (_typed(A),)

    @abstractmethod
    def of_prepared(self, A: Prepared, B: Prepared, gamma: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return the kernel matrix of prepared rows, or of some of them."""


class DifferentiableMatrix(KernelMatrix):
    """Exact values of a kernel of distances, with derivatives by its parameters."""

    def with_slopes(self, X: np.ndarray, gamma: np.ndarray, scratch: Scratch) -> tuple[np.ndarray, Slopes]:
        """Return the kernel matrix of X, in scratch, and a function of M: ``sum_ab M_ab dK_ab / d log gamma_j``.

        M contains the weight of each pair below the diagonal, and zeros above; it is overwritten.
        """
        K, factors = self._with_factors(X, gamma, scratch)
        return K, lambda M: self._slopes(X, gamma, np.multiply(factors, M, out=M))

    def _with_factors(self, X: np.ndarray, gamma: np.ndarray, scratch: Scratch) -> tuple[np.ndarray, np.ndarray]:
        """Return the kernel matrix of X, in scratch, and the factors of M before slopes are summed."""
        K = self(X, X, gamma, square(scratch, "K", X.shape[1]))
        return K, K

    @abstractmethod
    def _slopes(self, X: np.ndarray, gamma: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return slopes by the logarithms of gamma, for pairs of rows with weights (m, m)."""

    def _distances(
        self, A: np.ndarray, B: np.ndarray, gamma: np.ndarray, out: np.ndarray | None = None, some: Inputs = _ALL
    ) -> np.ndarray:
        """Return the sum over some inputs of gamma times distance, for all pairs of rows, (n, m)."""
        out = np.empty((A.shape[1], B.shape[1]), np.float32) if out is None else out
        weighted_distances(A[some], B[some], _typed(gamma[some]), self.categorical[some], out, n_jobs=self.n_jobs)
        return out

    def _distance_sums(self, X: np.ndarray, weights: np.ndarray, some: Inputs = _ALL) -> np.ndarray:
        """Return the weighted sum of distances of all pairs of rows for some inputs; weights are below the diagonal."""
        sums = np.empty_like(X[some])
        distance_sums(X[some], weights, self.categorical[some], sums, n_jobs=self.n_jobs)
        return sums.sum(axis=1, dtype=np.float64)


class LaplacianMatrix(DifferentiableMatrix):
    """Exact values of the Laplacian, times a mismatch kernel of categorical inputs."""

    def of_prepared(self, A: Prepared, B: Prepared, gamma: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        K = self._distances(A[0], B[0], gamma, out)
        decays(K)
        return K

    def _with_factors(self, X: np.ndarray, gamma: np.ndarray, scratch: Scratch) -> tuple[np.ndarray, np.ndarray]:
        K = square(scratch, "K", X.shape[1])
        laplacian_values(X, _typed(gamma), self.categorical, K, n_jobs=self.n_jobs)
        return K, K

    def _slopes(self, X: np.ndarray, gamma: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return -gamma * self._distance_sums(X, weights)


class ProfileMatrix(DifferentiableMatrix):
    """Exact values of any product kernel by a table of its profile, times a mismatch kernel of categories."""

    kernel: ProductKernel

    @cached_property
    def _tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Return tables of the profile k, and of ``t k' / k``."""
        t = np.linspace(0.0, _REACH, _TABLE + 1)
        k = self.kernel.profile(t)
        slope = t * np.gradient(k, t)
        return _typed(k), _typed(np.divide(slope, k, out=np.zeros_like(k), where=k > _LEAST))

    def _steps(self, gamma: np.ndarray) -> np.ndarray:
        return _typed(np.where(self.categorical, 0.0, gamma * (_TABLE / _REACH)))

    def of_prepared(self, A: Prepared, B: Prepared, gamma: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        K = self._distances(A[0], B[0], gamma, out, self.categorical)
        decays(K)
        profile_products(A[0], B[0], self._steps(gamma), self._tables[0], K, n_jobs=self.n_jobs)
        return K

    def _slopes(self, X: np.ndarray, gamma: np.ndarray, weights: np.ndarray) -> np.ndarray:
        sums, some = np.empty_like(X), self.categorical
        profile_sums(X, self._steps(gamma), self._tables[1], weights, sums, n_jobs=self.n_jobs)
        slopes = sums.sum(axis=1, dtype=np.float64)
        slopes[some] = -gamma[some] * self._distance_sums(X, weights, some)
        return slopes


@dataclass(frozen=True, eq=False)
class RadialMatrix(DifferentiableMatrix):
    """Exact values of the Gaussian, or of Matern kernels with nu 1/2, 3/2 and 5/2, of numbers and categories.

    A categorical input adds ``gamma_j`` to the squared distance of rows with different categories. A linear map, if
    there is one, is applied to the scaled numbers. Slopes are then derivatives with respect to the map, and have its
    shape.
    """

    linear_map: np.ndarray | None = None  # (n_inputs, rank)

    def prepared(self, A: np.ndarray, gamma: np.ndarray) -> Prepared:
        """Return the scaled and mapped rows, their squares for distances by products (or 0), and their categories."""
        mapped = self._scaled(A, gamma)
        mapped = mapped if self.linear_map is None else _typed(self.linear_map.T) @ mapped
        squares = np.zeros(mapped.shape[1]) if has_cusp(self.kernel) else np.einsum("ji,ji->i", mapped, mapped)
        return mapped, _typed(squares), _typed(A[self.categorical])

    def of_prepared(self, A: Prepared, B: Prepared, gamma: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        return self._values(A, B, gamma, out, _UNWANTED)

    def _scaled(self, A: np.ndarray, gamma: np.ndarray) -> np.ndarray:
        return A * _typed(np.sqrt(np.where(self.categorical, 0.0, gamma)))[:, np.newaxis]

    def _values(
        self, A: Prepared, B: Prepared, gamma: np.ndarray, out: np.ndarray | None, falls: np.ndarray
    ) -> np.ndarray:
        """Return values for pairs of prepared rows; minus their derivatives by squared distances go to `falls`."""
        (A_scaled, A_squares, A_codes), (B_scaled, B_squares, B_codes) = A, B
        if has_cusp(self.kernel):
            S = np.empty((A_scaled.shape[1], B_scaled.shape[1]), np.float32) if out is None else out
            squared_distances(_typed(A_scaled), _typed(B_scaled), S, n_jobs=self.n_jobs)
        else:
            S = _typed(np.matmul((-2 * A_scaled).T, B_scaled, out=out))
        if self.categorical.any():
            own, mismatches = self.categorical, np.empty_like(S)
            weighted_distances(A_codes, B_codes, _typed(gamma[own]), own[own], mismatches, n_jobs=self.n_jobs)
            S += mismatches
        return radial_values(self.kernel, S, A_squares, B_squares, falls)

    def _with_factors(self, X: np.ndarray, gamma: np.ndarray, scratch: Scratch) -> tuple[np.ndarray, np.ndarray]:
        """Return the kernel matrix of X, and minus its derivatives by the squared distances."""
        n, rows = X.shape[1], self.prepared(X, gamma)
        falls = _UNWANTED if np.isinf(_nu(self.kernel)) else square(scratch, "falls", n)
        K = self._values(rows, rows, gamma, square(scratch, "K", n), falls)
        return K, K if falls is _UNWANTED else falls

    def _slopes(self, X: np.ndarray, gamma: np.ndarray, weights: np.ndarray) -> np.ndarray:
        degrees = weights.sum(axis=0) + weights.sum(axis=1)
        if self.linear_map is not None:
            scaled = self._scaled(X, gamma)
            laplacian = (scaled * degrees) @ scaled.T - scaled @ (weights @ scaled.T + weights.T @ scaled.T)
            return -2.0 * laplacian.astype(np.float64) @ self.linear_map
        squares = np.einsum("ji,ji,i->j", X, X, degrees, dtype=np.float64)
        sums = squares - 2 * np.einsum("ji,ji->j", X, X @ weights, dtype=np.float64)
        sums[self.categorical] = self._distance_sums(X, weights, self.categorical)
        return -gamma * sums


def _nu(kernel: Kernel) -> float:
    """Return the parameter nu of the Matern kernel, infinite for the Gaussian."""
    return getattr(kernel, "nu", np.inf)


def has_cusp(kernel: Kernel) -> bool:
    """Return True if close rows need distances by differences, because the kernel has a cusp at 0."""
    return _nu(kernel) == 0.5


def radial_values(
    kernel: Kernel, S: np.ndarray, A_squares: np.ndarray, B_squares: np.ndarray, falls: np.ndarray = _UNWANTED
) -> np.ndarray:
    """Replace S, minus twice the inner products of rows with these squares, by values of a radial kernel, float32.

    For a kernel with a cusp, S contains squared distances by differences. Minus the derivatives of the values
    by the squared distances go to `falls`, unless it is empty.
    """
    if np.isinf(_nu(kernel)):
        gaussian_values(S, A_squares, B_squares)
    else:
        matern_values(S, A_squares, B_squares, int(_nu(kernel)), falls)
    return S


@dataclass(frozen=True)
class Linear(Kernel):
    """The kernel ``sum_j gamma_j x_j y_j`` of centered numeric inputs."""

    power = 2


class LinearMatrix(KernelMatrix):
    """Values of the linear kernel: ``R' R`` for R, the numbers times the roots of gamma."""

    def prepared(self, A: np.ndarray, gamma: np.ndarray) -> Prepared:
        numbers = ~self.categorical
        return (A[numbers] * _typed(np.sqrt(gamma[numbers]))[:, np.newaxis],)

    def of_prepared(self, A: Prepared, B: Prepared, gamma: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        return _typed(np.matmul(A[0].T, B[0], out=out))


def linear_squares(X: np.ndarray, gamma: np.ndarray, categorical: np.ndarray) -> np.ndarray:
    """Return the linear kernel of each row of X, (n_inputs, n), with itself."""
    return np.einsum("ji,ji,j->i", X, X, np.where(categorical, 0.0, gamma), dtype=np.float64)


def precise_values(
    kernel: Kernel,
    A: np.ndarray,
    B: np.ndarray,
    gamma: np.ndarray,
    categorical: np.ndarray,
    linear_map: np.ndarray | None = None,
) -> np.ndarray:
    """Return a linear, Laplacian or radial kernel in float64, (n, m), of rows (n_inputs, n) and (n_inputs, m)."""
    of_numbers = np.where(categorical, 0.0, gamma)
    if isinstance(kernel, Linear):
        return (A.T * of_numbers) @ B
    sides = [X.T * of_numbers ** (1 / kernel.power) for X in (A, B)]
    if linear_map is not None:
        sides = [X @ linear_map for X in sides]
    distances = cdist(*sides, "cityblock" if kernel.power == 1 else "sqeuclidean")
    for j in np.flatnonzero(categorical):
        distances += gamma[j] * (A[j][:, np.newaxis] != B[j])
    return cast(Laplacian | RBF | Matern, kernel).profile(distances)


def is_radial(kernel: object) -> TypeGuard[RBF | Matern]:
    """Return True if a kernel is a function of Euclidean distances, so that a linear map is possible."""
    return isinstance(kernel, RBF | Matern)


def differentiable_matrix(
    kernel: Kernel, categorical: np.ndarray, n_jobs: int | None = None, linear_map: np.ndarray | None = None
) -> DifferentiableMatrix:
    """Return exact values of a product kernel, or of a radial kernel, which can have a linear map."""
    arguments = kernel, np.ascontiguousarray(categorical, dtype=bool), n_jobs
    if is_radial(kernel):
        return RadialMatrix(*arguments, linear_map)
    return LaplacianMatrix(*arguments) if isinstance(kernel, Laplacian) else ProfileMatrix(*arguments)


def kernel_matrix(
    kernel: Kernel, categorical: np.ndarray, n_jobs: int | None = None, linear_map: np.ndarray | None = None
) -> KernelMatrix:
    """Return exact values of `Linear`, or of a kernel of `differentiable_matrix`."""
    if isinstance(kernel, Linear):
        return LinearMatrix(kernel, np.ascontiguousarray(categorical, dtype=bool), n_jobs)
    return differentiable_matrix(kernel, categorical, n_jobs, linear_map)
