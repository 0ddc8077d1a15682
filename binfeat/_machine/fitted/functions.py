"""The functions of rows that fitted machines are: of bins, of Fourier features, of kernel values."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import cast

import numpy as np

from binfeat._binning.bin_matrix import BinMatrix, code_dtype
from binfeat._binning.grids import Grids
from binfeat._binning.tables import BinTables, find_codes
from binfeat._common.persistence import ArrayRecord
from binfeat._engine.evaluate import evaluate
from binfeat._fourier.fastfood import Fastfood
from binfeat._fourier.features import FourierMap
from binfeat._kernels.base import Kernel
from binfeat._linear.posterior import RidgePosterior
from binfeat._machine.fitted.uncertainty import ExactPosterior, FeaturePosterior, HeldOutErrors, NoiseOnly
from binfeat._machine.kernel_algebra.matrices import Frame, Linear, kernel_matrix, linear_squares
from binfeat._machine.kernel_algebra.sums import KernelSum
from binfeat._machine.search.length_scales import LengthScales
from binfeat.kernels import RBF, Laplacian, Matern

_FEW_ROWS = 64  # evaluated one by one
_BLOCK_BYTES = 2**26  # of hashes or features at a time


@dataclass
class BinFunction:
    """A linear function of binning features."""

    grids: Grids
    keys: np.ndarray  # (n_bins,), uint64
    starts: np.ndarray  # (n_grids + 1,), int64
    coef: np.ndarray  # (n_targets, n_bins), of entries that are ``1 / sqrt(n_grids)``
    _tables: BinTables | None = field(default=None, repr=False)

    def __call__(self, X: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Values of shape (n_rows, n_targets) for X of shape (n_rows, n_inputs), float64 in C order."""
        tables = self._known_tables(n_jobs)
        out = np.empty((X.shape[0], self.coef.shape[0]))
        if X.shape[0] <= _FEW_ROWS:
            evaluate(X, *self.grids.arrays, *tables.arrays, self.coef, out)
            out *= 1 / np.sqrt(len(self.grids))
            return out
        step = max(_FEW_ROWS, _BLOCK_BYTES // (8 * len(self.grids)))
        for start in range(0, X.shape[0], step):
            out[start : start + step] = self.features(X[start : start + step], np.float64, n_jobs) @ self.coef.T
        return out

    def _known_tables(self, n_jobs: int | None) -> BinTables:
        if self._tables is None:
            self._tables = BinTables(self.keys, self.starts, n_jobs)
        return self._tables

    def features(self, X: np.ndarray, dtype: type[np.floating], n_jobs: int | None = None) -> BinMatrix:
        """Binning features of rows, a BinMatrix."""
        code_type = code_dtype(np.diff(self.starts).max())
        codes = find_codes(self._known_tables(n_jobs), self.grids, X, n_jobs, code_type)
        return BinMatrix._trusted(codes, self.starts, np.dtype(dtype), n_jobs)


class FourierFunction:
    """A linear function, of coefficients (2 * n_frequencies, n_targets), of Fourier features of known frequencies."""

    def __init__(self, frequencies: np.ndarray | Fastfood, coef: np.ndarray) -> None:
        self.features, self.coef = FourierMap(frequencies), np.ascontiguousarray(coef)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Values of shape (n_rows, n_targets) for X of shape (n_rows, n_inputs), float64."""
        step = max(1, _BLOCK_BYTES // (8 * self.coef.shape[0]))
        return np.concatenate([self.features(X[i : i + step]) @ self.coef for i in range(0, len(X), step)])


class ScoreFunction(ABC):
    """What scores of rows are made of beside an intercept."""

    @property
    def n_grids(self) -> int:
        return 0

    @property
    def n_fourier(self) -> int:
        """Fourier features."""
        return 0

    @abstractmethod
    def _terms(self, X: np.ndarray, n_jobs: int | None) -> Iterator[np.ndarray]:
        """Summands of the values, (n_rows, n_targets) each."""

    def scores(self, X: np.ndarray, intercept: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Values plus intercept, (n_rows, n_targets), for X of shape (n_rows, n_inputs), float64 in C order."""
        scores = np.tile(intercept, (len(X), 1))
        for term in self._terms(X, n_jobs):
            scores += term
        return scores

    @abstractmethod
    def posterior(
        self, samples: RidgePosterior | None, errors: HeldOutErrors | None, n_jobs: int | None
    ) -> ExactPosterior | FeaturePosterior | NoiseOnly:
        """How far predictions may be off, by samples of the coefficients and errors of held-out rows, if needed."""


@dataclass(frozen=True, eq=False)
class FeatureFunction(ScoreFunction):
    """A linear function of random features: of bins, of Fourier features, or of both."""

    bins: BinFunction  # of no grids, where there are none
    fourier: FourierFunction | None

    @property
    def n_grids(self) -> int:
        return len(self.bins.grids)

    @property
    def n_fourier(self) -> int:
        return 0 if self.fourier is None else self.fourier.features.n_components

    def posterior(
        self, samples: RidgePosterior | None, errors: HeldOutErrors | None, n_jobs: int | None
    ) -> FeaturePosterior | NoiseOnly:
        errors = cast(HeldOutErrors, errors)  # which machines for numbers have
        return NoiseOnly(errors) if samples is None else FeaturePosterior(self, samples, errors, n_jobs)

    def _terms(self, X: np.ndarray, n_jobs: int | None) -> Iterator[np.ndarray]:
        if self.n_grids:
            yield self.bins(X, n_jobs)
        if self.fourier is not None:
            yield self.fourier(X)


@dataclass(frozen=True, eq=False)
class Part:
    """A kernel of a sum."""

    scales: LengthScales
    factor: float  # of its gamma
    share: float = 1.0

    @property
    def gamma(self) -> np.ndarray:
        return self.factor * self.scales.gamma


# What stands for kernels in files; Matern has its nu.
_NUS: dict[type, float] = {Laplacian: 0.0, RBF: np.inf, Linear: -1.0}


@dataclass(frozen=True, eq=False)
class ExactFunction(ArrayRecord, ScoreFunction):
    """A linear function of a kernel's values with the rows of `fit`, of one kernel or a sum."""

    nus: np.ndarray  # (n_kernels,): of Matern, or what stands for another kernel
    shares: np.ndarray  # (n_kernels,)
    gammas: np.ndarray  # (n_kernels, n_inputs)
    categorical: np.ndarray  # (n_inputs,), bool
    support: np.ndarray  # (n_inputs, n_rows), float32: rows about the center, in units, to which the gammas belong
    center: np.ndarray  # (n_inputs,)
    unit: np.ndarray  # (n_inputs,)
    alpha: np.ndarray  # (): penalty that the coefficients took, for weights of mean 1
    weights: np.ndarray  # (n_rows,), of mean 1
    coef: np.ndarray  # (n_targets, n_rows)
    rotation: np.ndarray = field(default_factory=partial(np.empty, (0, 0)))  # (n_inputs, rank), of a radial kernel

    @classmethod
    def of(
        cls,
        parts: list[Part],
        categorical: np.ndarray,
        support: np.ndarray,
        frame: Frame,
        alpha: float,
        weights: np.ndarray | None,
        coef: np.ndarray,
    ) -> "ExactFunction":
        """The function of parts of a sum, with coefficients (n_rows, n_targets)."""
        kernels = [part.scales.kernel for part in parts]
        nus = [kernel.nu if isinstance(kernel, Matern) else _NUS[type(kernel)] for kernel in kernels]
        gammas = np.array([frame.gamma(part.scales.kernel, part.gamma) for part in parts])
        shares = np.array([part.share for part in parts])
        coef = np.array(coef.T, np.float64, order="C")
        weights = np.ones(len(coef[0])) if weights is None else weights
        place = categorical, support, frame.center, frame.unit
        maps = [part.scales.linear_map for part in parts if part.scales.linear_map is not None]
        rest = np.array(float(alpha)), weights, coef, *maps
        return cls(np.array(nus), shares, gammas, *place, *rest)

    @property
    def frame(self) -> Frame:
        return Frame(self.center, self.unit)

    @property
    def linear_map(self) -> np.ndarray | None:
        """Of the inputs of a radial kernel."""
        return self.rotation if self.rotation.size else None

    @cached_property
    def kernels(self) -> list[Kernel | Linear]:
        kinds = {nu: kind for kind, nu in _NUS.items()}
        return [kinds[nu]() if nu in kinds else Matern(nu) for nu in self.nus]

    @property
    def n_rows(self) -> int:
        """Rows of `fit` that it is made of."""
        return self.support.shape[1]

    def __call__(self, X: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Values of shape (n_rows, n_targets) for X of shape (n_rows, n_inputs), float64."""
        out = np.empty((len(X), len(self.coef)))
        for place, rows in self.blocks(X):
            np.matmul(self.kernel(rows, self.support, n_jobs).astype(np.float64), self.coef.T, out=out[place])
        return out

    def posterior(
        self, samples: RidgePosterior | None, errors: HeldOutErrors | None, n_jobs: int | None
    ) -> ExactPosterior:
        return ExactPosterior(self, n_jobs)

    def _terms(self, X: np.ndarray, n_jobs: int | None) -> Iterator[np.ndarray]:
        yield self(X, n_jobs)

    def blocks(self, X: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Pairs of some neighbouring rows of X, as a slice, and these rows as columns of the kernels."""
        step = max(1, _BLOCK_BYTES // (8 * self.support.shape[1]))
        for start in range(0, len(X), step):
            place = slice(start, min(start + step, len(X)))
            yield place, self.frame.columns(X[place])

    def kernel(self, A: np.ndarray, B: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Values (n, m), float32, of the whole kernel for columns (n_inputs, n) and (n_inputs, m)."""
        matrices = [kernel_matrix(kernel, self.categorical, n_jobs, self.linear_map) for kernel in self.kernels]
        return KernelSum(matrices, self.shares, self.gammas, n_jobs)(A, B)

    def kernel_diagonal(self, A: np.ndarray) -> np.ndarray:
        """Values of the kernel for each of the rows A, (n_inputs, n), with itself."""
        total = np.zeros(A.shape[1])
        for kernel, share, gamma in zip(self.kernels, self.shares, self.gammas):
            total += share * (linear_squares(A, gamma, self.categorical) if isinstance(kernel, Linear) else 1.0)
        return total
