"""How far predictions may be off: the Gaussian process whose mean a kernel machine is.

Targets are what the machine learns, standardised. With noise of variance s2 for a row of mean weight, weights of
features have the prior variance ``s2 / alpha``, so that all variances here are multiples of s2. What s2 is, residuals
of rows that a machine had not seen tell: ``E[r^2] = s2 (u + 1)``, with u the variance of the prediction.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from binfeat._binning.bin_matrix import BinMatrix, no_bin
from binfeat._binning.code_store import CodeStore
from binfeat._binning.tables import count_bins
from binfeat._common.memory import require_memory
from binfeat._common.persistence import ArrayRecord
from binfeat._engine.policy import threads_to_factorise
from binfeat._linear.posterior import RidgePosterior
from binfeat._machine.kernel_algebra.leave_one_out import precise_inverse_root
from binfeat._rows.stacked import StackedFeatures

if TYPE_CHECKING:
    from binfeat._machine.fitted.functions import ExactFunction, FeatureFunction

_BLOCK_BYTES = 2**26  # of codes or features at a time


@dataclass(frozen=True, eq=False)
class HeldOutErrors(ArrayRecord):
    """Residuals of rows that a machine had not seen, by their expected size."""

    noise: np.ndarray  # (n_targets,): s2
    scores: np.ndarray  # (n_rows, n_targets): absolute residuals in standard deviations, sorted

    @classmethod
    def of(cls, residuals: np.ndarray, variances: np.ndarray) -> "HeldOutErrors":
        """Of residuals (n_rows, n_targets), and variances (n_rows,) of the predictions as multiples of the noise."""
        scaled = np.abs(residuals) / np.sqrt(1 + np.reshape(variances, (-1, 1)))
        noise = np.maximum((scaled**2).mean(axis=0), np.finfo(float).tiny)
        return cls(noise, np.sort(scaled / np.sqrt(noise), axis=0))

    def reach(self, coverage: float) -> np.ndarray:
        """For each target the standard deviations that this share of new rows does not exceed."""
        n_rows = len(self.scores)
        place = int(np.ceil(coverage * (n_rows + 1)))
        if place > n_rows:
            raise ValueError(
                f"coverage must be at most {n_rows / (n_rows + 1):.3g} where {n_rows} rows were held out; "
                f"got {coverage:g}. Give fit more rows, or a larger validation_fraction."
            )
        return self.scores[place - 1]


class ExactPosterior:
    """Of an exact machine, in closed form (Rasmussen & Williams 2006, eq. 2.26 and 5.12)."""

    def __init__(self, function: "ExactFunction", n_jobs: int | None) -> None:
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


class NoiseOnly:
    """Of a machine of random features without samples: only the noise is known."""

    def __init__(self, errors: HeldOutErrors) -> None:
        self.errors = errors

    def variances(self, X: np.ndarray) -> np.ndarray:
        """Of the predictions, as far as they are known: 0."""
        return np.zeros(len(X))


class FeaturePosterior:
    """Of a machine of random features, by samples of its coefficients."""

    def __init__(
        self, function: "FeatureFunction", samples: RidgePosterior, errors: HeldOutErrors, n_jobs: int | None
    ) -> None:
        self._function, self._samples, self.errors, self._n_jobs = function, samples, errors, n_jobs

    def variances(self, X: np.ndarray) -> np.ndarray:
        """Of the predictions for rows (n_rows, n_inputs), as multiples of the noise."""
        out = np.zeros(len(X))
        for place in self._blocks(X):
            out[place] = self._samples.variances(self._features(X[place]))
        return out

    def deviations(self, X: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Samples of what the prediction is off by, of variance 1 times the noise, (n_rows, n_samples).

        They are sums of the kept samples with normal weights, so that there are as many as are asked for.
        """
        shares, out = rng.standard_normal((len(self._samples.intercept), n_samples)), np.zeros((len(X), n_samples))
        for place in self._blocks(X):
            for some, part in self._samples.parts(self._features(X[place])):
                out[place] += part @ shares[some]
        return out + self._in_unseen_bins(X, n_samples, rng) if self._function.n_grids else out

    def _blocks(self, X: np.ndarray) -> Iterator[slice]:
        step = max(1, _BLOCK_BYTES // (8 * (self._function.n_grids + self._function.n_fourier)))
        for start in range(0, len(X), step):
            yield slice(start, min(start + step, len(X)))

    def _features(self, X: np.ndarray) -> BinMatrix | np.ndarray | StackedFeatures:
        bins, fourier = self._function.bins, self._function.fourier
        if fourier is None:
            return bins.features(X, np.float32, self._n_jobs)
        if not self._function.n_grids:
            return fourier.features(X)
        return StackedFeatures([bins.features(X, np.float32, self._n_jobs), fourier.features(X)], [1.0, 1.0])

    def _in_unseen_bins(self, X: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """What bins add that no row of the machine fell in: they have weights of the prior, the same for all rows."""
        function, store = self._function.bins, CodeStore(len(X), self._function.n_grids)
        bins = count_bins(function.grids, [X], len(X), codes=store, n_jobs=self._n_jobs)
        codes, known = store.array, function.features(X, np.float64, self._n_jobs).codes
        codes[known != no_bin(known.dtype)] = no_bin(codes.dtype)
        weights = rng.standard_normal((bins.keys.size, n_samples)) / np.sqrt(self._samples.alpha)
        return BinMatrix._trusted(codes, bins.starts, np.dtype(np.float64), self._n_jobs) @ weights
