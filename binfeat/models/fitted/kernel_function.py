"""Fitted functions of kernel values, and the errors that all error bars are based on.

Targets are standardized. With noise of variance s2 for a row of mean weight, weights of features have the prior
variance ``s2 / alpha``, so all variances here are multiples of s2. Leave-one-out
residuals r of rows with weights v estimate s2: ``E[r^2] = s2 (u + 1 / v)``, with the variance u of the prediction.
Error bars have `errors`, `variances` of predictions for rows (n_rows, n_inputs), and samples of the prediction error,
`deviations`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Annotated, ClassVar

import numpy as np

from binfeat._common.array_record import ArrayRecord
from binfeat._common.held_out import sorted_residuals
from binfeat._common.saved_values import FLOATS
from binfeat._threads import threads_to_factorize
from binfeat.kernels.base import Kernel
from binfeat.kernels.families import RBF, Laplacian, Matern
from binfeat.length_scales.kernel_sum import KernelSum, KernelValues
from binfeat.length_scales.matrices import Linear, Standardizer, kernel_matrix, linear_squares, precise_values
from binfeat.models.kernel_algebra.loss import NORMAL

_OUTLIER = 3.0  # robust standard deviations of the smallest outlier


@dataclass(frozen=True, eq=False)
class HeldOutErrors(ArrayRecord):
    """Leave-one-out or validation residuals, divided by their expected size."""

    noise: Annotated[np.ndarray, np.float64, "targets"]  # s2; without outliers if the loss is robust
    scores: Annotated[np.ndarray, FLOATS, "validated", "targets"]  # `sorted_residuals` in standard deviations
    variance_factor: Annotated[np.ndarray, np.float64] = field(default_factory=partial(np.ones, ()))

    @classmethod
    def of(
        cls,
        residuals: np.ndarray,
        variances: np.ndarray,
        factor: float = 1.0,
        weights: np.ndarray | None = None,
        is_robust: bool = False,
    ) -> "HeldOutErrors":
        """Standardize residuals (n_rows, n_targets), given variances (n_rows,) in units of the noise variance.

        The factor corrects the variances of training rows and new rows if an approximation makes them too large.
        Weights (n_rows,) are relative to the mean weight of the training rows. They are relative inverse variances of
        the noise, and numbers of equal rows for ranks. With both meanings, ``s2 (u + 1)`` is the expectation of squared
        residuals of rows that count as often as their weights. If robust, s2 is the mean of residuals that are no
        outliers.
        """
        variances = factor * np.reshape(variances, (-1, 1))
        v = 1.0 if weights is None else weights[:, np.newaxis]
        scaled = np.abs(residuals) / np.sqrt(1 + variances)
        squares = v * (np.abs(residuals) / np.sqrt(1 + v * variances)) ** 2
        kept = True
        if is_robust:
            limits = _OUTLIER * NORMAL * np.median(sorted_residuals(scaled, weights), axis=0)
            kept = (scaled <= limits) | (limits == 0)
        noise = np.maximum(squares.mean(axis=0, where=kept), np.finfo(float).tiny)
        return cls(noise, sorted_residuals(scaled / np.sqrt(noise), weights), np.array(factor))

    def reach(self, coverage: float) -> np.ndarray:
        """Return, for each target, the number of standard deviations that this share of new rows does not exceed."""
        n_rows = len(self.scores)
        place = int(np.ceil(coverage * (n_rows + 1)))
        if place > n_rows:
            raise ValueError(
                f"coverage must be at most {n_rows / (n_rows + 1):.3g} with {n_rows} validation rows, got {coverage:g}."
                " Fit to more rows, or, with random features, use a larger validation set."
            )
        return self.scores[place - 1]


def normal_samples(covariance: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
    """Return samples (n_rows, n_samples) with mean 0 and a given covariance, semidefinite up to rounding."""
    with threads_to_factorize(len(covariance)):
        values, vectors = np.linalg.eigh(covariance)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ rng.standard_normal((len(covariance), n_samples))


# Kernels by their codes in files; for Matern kernels the code is nu.
KERNELS: dict[float, Kernel] = {-1.0: Linear(), 0.0: Laplacian(), np.inf: RBF()}
KERNELS |= {nu: Matern(nu) for nu in (0.5, 1.5, 2.5)}


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelFunction(ArrayRecord, ABC):
    """A linear function of kernel values with training rows, for one kernel or a sum, without intercept.

    `FeatureFunction` has the same methods for models of random features.
    """

    n_grids: ClassVar[int] = 0
    n_fourier: ClassVar[int] = 0  # Fourier features

    nus: Annotated[np.ndarray, np.float64, "kernels"]  # nu of Matern kernels, or the code of another kernel
    shares: Annotated[np.ndarray, np.float64, "kernels"]
    gammas: Annotated[np.ndarray, np.float64, "kernels", "inputs"]
    categorical: Annotated[np.ndarray, np.bool_, "inputs"]
    support: Annotated[np.ndarray, np.float32, "inputs", "support"]  # rows about the center, in units
    center: Annotated[np.ndarray, np.float64, "inputs"]
    unit: Annotated[np.ndarray, np.float64, "inputs"]
    alpha: Annotated[np.ndarray, np.float64]  # penalty of the coefficients, for weights with mean 1
    weights: Annotated[np.ndarray, FLOATS, "support"]  # with mean 1
    coef: np.ndarray  # (n_targets, n_coefficients)
    rotation: np.ndarray = field(default_factory=partial(np.empty, (0, 0)))  # (n_inputs, rank), for a radial kernel
    # True if weights are different numbers of equal rows, and contain no weights of outliers.
    weights_are_counts: Annotated[np.ndarray, np.bool_] = field(default_factory=partial(np.zeros, (), bool))

    @staticmethod
    def arrays_of(
        kernel: KernelSum,
        categorical: np.ndarray,
        support: np.ndarray,
        standardizer: Standardizer,
        weights: np.ndarray | None,
    ) -> dict[str, np.ndarray]:
        """Return all fields except the coefficients."""
        codes = {own: nu for nu, own in KERNELS.items()}
        maps = [part.linear_map for part in kernel.parts if part.linear_map is not None]
        return {
            "nus": np.array([getattr(part.kernel, "nu", codes.get(part.kernel)) for part in kernel.parts], float),
            "shares": np.array([part.share for part in kernel.parts]),
            "gammas": kernel.gammas(standardizer),
            "categorical": categorical,
            "support": support,
            "center": standardizer.center,
            "unit": standardizer.unit,
            "alpha": np.array(float(kernel.alpha)),
            "weights": np.ones(support.shape[1]) if weights is None else weights,
            **({"rotation": maps[0]} if maps else {}),
        }

    @property
    def n_trees(self) -> int:
        return 0

    @abstractmethod
    def _values(self, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """Return values (n_rows, n_targets)."""

    def scores(self, X: np.ndarray, intercept: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Return values plus intercept, (n_rows, n_targets), for X (n_rows, n_inputs), float64 in C order."""
        return intercept + self._values(X, n_jobs)

    @property
    def standardizer(self) -> Standardizer:
        return Standardizer(self.center, self.unit)

    @property
    def linear_map(self) -> np.ndarray | None:
        """Linear map of the inputs of a radial kernel."""
        return self.rotation if self.rotation.size else None

    @cached_property
    def kernels(self) -> list[Kernel]:
        return [KERNELS[nu] for nu in self.nus.tolist()]

    @property
    def n_rows(self) -> int:
        """Number of training rows in the function."""
        return self.support.shape[1]

    @property
    def scales(self) -> np.ndarray:
        """Return the scale factors of input differences in the kernel with the largest share."""
        return self.gammas[int(np.argmax(self.shares))] ** (1 / self.main_power)

    @property
    def main_power(self) -> int:
        """Power of distances that gamma multiplies in the kernel with the largest share."""
        return self.kernels[int(np.argmax(self.shares))].power

    def kernel(self, n_jobs: int | None = None) -> KernelValues:
        """Return the whole kernel as a function of columns."""
        matrices = [kernel_matrix(kernel, self.categorical, n_jobs, self.linear_map) for kernel in self.kernels]
        return KernelValues(matrices, self.shares, self.gammas, n_jobs)

    def precise_kernel(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return values of the whole kernel in float64, (n, m), for columns (n_inputs, n) and (n_inputs, m)."""
        total = np.zeros((A.shape[1], B.shape[1]))
        for kernel, share, gamma in zip(self.kernels, self.shares, self.gammas):
            total += share * precise_values(kernel, A, B, gamma, self.categorical, self.linear_map)
        return total

    def kernel_diagonal(self, A: np.ndarray) -> np.ndarray:
        """Return kernel values of each of the rows A, (n_inputs, n), with itself."""
        total = np.zeros(A.shape[1])
        for kernel, share, gamma in zip(self.kernels, self.shares, self.gammas):
            total += share * (linear_squares(A, gamma, self.categorical) if isinstance(kernel, Linear) else 1.0)
        return total
