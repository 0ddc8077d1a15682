"""Functions of random features: of bins, of Fourier features, of both."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from binfeat._common.subsets import slices
from binfeat._engine.evaluate import evaluate
from binfeat._rows.stacked import StackedFeatures
from binfeat._threads import blas_threads
from binfeat.features.binning.bin_matrix import BinMatrix, code_dtype
from binfeat.features.binning.code_store import CodeStore
from binfeat.features.binning.coded_features import no_bin
from binfeat.features.binning.grids import Grids
from binfeat.features.binning.tables import BinTables, count_bins, find_codes
from binfeat.features.fourier.fastfood import Fastfood
from binfeat.features.fourier.features import FourierMap
from binfeat.linear.posterior import RidgePosterior
from binfeat.models.fitted import score_function
from binfeat.models.fitted.score_function import HeldOutErrors, ScoreFunction

_FEW_ROWS = 64  # evaluated one by one


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
        step = max(_FEW_ROWS, score_function.BLOCK_BYTES // (8 * len(self.grids)))
        for rows in slices(len(X), step):
            out[rows] = self.features(X[rows], np.float64, n_jobs) @ self.coef.T
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

    def __call__(self, X: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Values of shape (n_rows, n_targets) for X of shape (n_rows, n_inputs), float64."""
        step = max(1, score_function.BLOCK_BYTES // (8 * self.coef.shape[0]))
        with blas_threads(n_jobs):
            return np.concatenate([self.features(X[i : i + step]) @ self.coef for i in range(0, len(X), step)])


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
    ) -> "FeaturePosterior | NoiseOnly":
        errors = cast(HeldOutErrors, errors)  # for regression
        return NoiseOnly(errors) if samples is None else FeaturePosterior(self, samples, errors, n_jobs)

    def _terms(self, X: np.ndarray, n_jobs: int | None) -> Iterator[np.ndarray]:
        if self.n_grids:
            yield self.bins(X, n_jobs)
        if self.fourier is not None:
            yield self.fourier(X, n_jobs)


class NoiseOnly:
    """Error bars of a model of random features without samples: only the noise."""

    def __init__(self, errors: HeldOutErrors) -> None:
        self.errors = errors

    def variances(self, X: np.ndarray) -> np.ndarray:
        """Return variances 0, because the posterior is unknown."""
        return np.zeros(len(X))


class FeaturePosterior:
    """Error bars of a model of random features, from samples of its coefficients."""

    def __init__(
        self, function: FeatureFunction, samples: RidgePosterior, errors: HeldOutErrors, n_jobs: int | None
    ) -> None:
        self._function, self._samples, self.errors, self._n_jobs = function, samples, errors, n_jobs

    def variances(self, X: np.ndarray) -> np.ndarray:
        """Return variances of predictions for rows (n_rows, n_inputs), in units of the noise variance."""
        out = np.zeros(len(X))
        for place in self._blocks(X):
            out[place] = self._samples.variances(self._features(X[place]))
        return out

    def deviations(self, X: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Return samples of the prediction error, (n_rows, n_samples), for unit noise variance.

        They are sums of the kept samples with normal weights, so that there are as many as are asked for.
        """
        shares, out = rng.standard_normal((len(self._samples.intercept), n_samples)), np.zeros((len(X), n_samples))
        for place in self._blocks(X):
            for some, part in self._samples.parts(self._features(X[place])):
                out[place] += part @ shares[some]
        return out + self._in_unseen_bins(X, n_samples, rng) if self._function.n_grids else out

    def _blocks(self, X: np.ndarray) -> list[slice]:
        n_features = self._function.n_grids + self._function.n_fourier
        return slices(len(X), max(1, score_function.BLOCK_BYTES // (8 * n_features)))

    def _features(self, X: np.ndarray) -> BinMatrix | np.ndarray | StackedFeatures:
        bins, fourier = self._function.bins, self._function.fourier
        if fourier is None:
            return bins.features(X, np.float32, self._n_jobs)
        if not self._function.n_grids:
            return fourier.features(X)
        return StackedFeatures([bins.features(X, np.float32, self._n_jobs), fourier.features(X)], [1.0, 1.0])

    def _in_unseen_bins(self, X: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Return the contribution of bins without training rows: weights from the prior, equal for all rows."""
        function, store = self._function.bins, CodeStore(len(X), self._function.n_grids)
        bins = count_bins(function.grids, [X], len(X), codes=store, n_jobs=self._n_jobs)
        codes, known = store.array, function.features(X, np.float64, self._n_jobs).codes
        codes[known != no_bin(known.dtype)] = no_bin(codes.dtype)
        weights = rng.standard_normal((bins.keys.size, n_samples)) / np.sqrt(self._samples.alpha)
        return BinMatrix._trusted(codes, bins.starts, np.dtype(np.float64), self._n_jobs) @ weights
