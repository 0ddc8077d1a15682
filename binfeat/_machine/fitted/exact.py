"""Functions of kernel values: exact machines."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from binfeat._common.memory import require_memory
from binfeat._common.persistence import ArrayRecord
from binfeat._engine.policy import threads_to_factorise
from binfeat._kernels.base import Kernel
from binfeat._linear.posterior import RidgePosterior
from binfeat._machine.fitted import score_function
from binfeat._machine.fitted.score_function import HeldOutErrors, ScoreFunction
from binfeat._machine.kernel_algebra.leave_one_out import precise_inverse_root
from binfeat._machine.kernel_algebra.matrices import Frame, Linear, kernel_matrix, linear_squares
from binfeat._machine.kernel_algebra.sums import KernelSum
from binfeat._machine.search.length_scales import LengthScales
from binfeat.kernels import RBF, Laplacian, Matern

# What stands for kernels in files; Matern has its nu.
_NUS: dict[type, float] = {Laplacian: 0.0, RBF: np.inf, Linear: -1.0}


@dataclass(frozen=True, eq=False)
class Part:
    """A kernel of a sum."""

    scales: LengthScales
    factor: float  # of its gamma
    share: float = 1.0

    @property
    def gamma(self) -> np.ndarray:
        return self.factor * self.scales.gamma


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
    ) -> "ExactPosterior":
        return ExactPosterior(self, n_jobs)

    def _terms(self, X: np.ndarray, n_jobs: int | None) -> Iterator[np.ndarray]:
        yield self(X, n_jobs)

    def blocks(self, X: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Pairs of some neighbouring rows of X, as a slice, and these rows as columns of the kernels."""
        step = max(1, score_function.BLOCK_BYTES // (8 * self.support.shape[1]))
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


class ExactPosterior:
    """Of an exact machine, in closed form (Rasmussen & Williams 2006, eq. 2.26 and 5.12)."""

    def __init__(self, function: ExactFunction, n_jobs: int | None) -> None:
        self._function, self._n_jobs = function, n_jobs
        n_rows = function.support.shape[1]
        require_memory(8 * n_rows**2, "the standard deviations of an exact machine", "Use predict alone.")
        K = function.kernel(function.support, function.support, n_jobs)
        with threads_to_factorise(n_rows):
            self._root, self._alpha = precise_inverse_root(K, float(function.alpha), function.weights)
        g = np.einsum("ij,ij->i", self._root, self._root, dtype=np.float64)
        variances = 1 / (self._alpha * g) - 1 / function.weights
        self.errors = HeldOutErrors.of((function.coef / g).T, np.maximum(variances, 0.0))

    def variances(self, X: np.ndarray) -> np.ndarray:
        """Of the predictions for rows (n_rows, n_inputs), as multiples of the noise."""
        out = np.empty(len(X))
        for place, rows in self._function.blocks(X):
            known = self._known(rows)
            out[place] = self._function.kernel_diagonal(rows) + 1 - np.einsum("ij,ij->j", known, known, dtype=float)
        return np.maximum(out, 0.0) / self._alpha

    def deviations(self, X: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Samples of what the prediction is off by, of variance 1 times the noise, (n_rows, n_samples)."""
        n_rows = len(X)
        require_memory(32 * n_rows**2, "samples at so many rows", "Give sample_y fewer rows at a time.")
        rows = self._function.frame.columns(X)
        known = self._known(rows).astype(np.float64)
        covariance = self._function.kernel(rows, rows, self._n_jobs) + 1.0 - known.T @ known
        with threads_to_factorise(n_rows):
            values, vectors = np.linalg.eigh(covariance / self._alpha)
        return (vectors * np.sqrt(np.maximum(values, 0.0))) @ rng.standard_normal((n_rows, n_samples))

    def _known(self, rows: np.ndarray) -> np.ndarray:
        """What the machine's rows say of others, (n_machine_rows, n_rows): squares that the prior variance loses."""
        return self._root.T @ (self._function.kernel(self._function.support, rows, self._n_jobs) + np.float32(1.0))
