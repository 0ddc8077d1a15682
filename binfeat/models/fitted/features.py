"""Functions of random features: of bins, or of Fourier features."""

from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from binfeat._common.subsets import slices
from binfeat._engine.evaluate import evaluate
from binfeat._rows.products import Features
from binfeat._rows.stacked import StackedFeatures
from binfeat._threads import blas_threads
from binfeat.features.binning.bin_map import BinMap
from binfeat.features.binning.bin_matrix import BinMatrix
from binfeat.features.binning.code_store import CodeStore
from binfeat.features.binning.coded_features import no_bin
from binfeat.features.binning.tables import count_bins
from binfeat.features.fourier.features import FourierMap
from binfeat.linear.posterior import RidgePosterior
from binfeat.models.fitted.kernel_function import HeldOutErrors

_BLOCK_BYTES = 2**26  # bytes of codes, hashes or features at a time
_FEW_ROWS = 64  # evaluated one by one


@dataclass(frozen=True, eq=False)
class FeatureFunction:
    """A linear function of random features: of bins, of Fourier features, or, in older files, of both."""

    n_trees: ClassVar[int] = 0

    bins: BinMap  # without grids for Fourier features
    fourier: FourierMap | None
    coef: np.ndarray  # (n_targets, n_features), in C order

    @property
    def n_grids(self) -> int:
        return len(self.bins.grids)

    @property
    def n_fourier(self) -> int:
        return 0 if self.fourier is None else self.fourier.n_components

    def posterior(
        self, samples: RidgePosterior | None, errors: HeldOutErrors | None, n_jobs: int | None
    ) -> "FeaturePosterior":
        return FeaturePosterior(self, samples, cast(HeldOutErrors, errors))

    def features(self, X: np.ndarray, dtype: type[np.floating], n_jobs: int | None) -> Features:
        """Return the features of rows (n_rows, n_inputs), float64 in C order; features of bins have this type."""
        if self.fourier is None:
            return self.bins(X, dtype, n_jobs)
        if not self.n_grids:
            return self.fourier(X)
        return StackedFeatures([self.bins(X, dtype, n_jobs), self.fourier(X)], [1.0, 1.0])

    def blocks(self, X: np.ndarray) -> list[slice]:
        """Return slices of rows with features that fit in memory."""
        return slices(len(X), max(_FEW_ROWS, _BLOCK_BYTES // (8 * (self.n_grids + self.n_fourier))))

    def scores(self, X: np.ndarray, intercept: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Return values plus intercept, (n_rows, n_targets), for X (n_rows, n_inputs), float64 in C order."""
        out = np.empty((len(X), len(self.coef)))
        if self.fourier is None and len(X) <= _FEW_ROWS:
            evaluate(X, *self.bins.grids.arrays, *self.bins.tables(n_jobs).arrays, self.coef, out)
            out *= 1 / np.sqrt(self.n_grids)
        else:
            with blas_threads(n_jobs):
                for rows in self.blocks(X):
                    out[rows] = self.features(X[rows], np.float64, n_jobs) @ self.coef.T
        out += intercept
        return out


class FeaturePosterior:
    """Error bars of a model of random features, from samples of its coefficients; without them, only the noise."""

    def __init__(self, function: FeatureFunction, samples: RidgePosterior | None, errors: HeldOutErrors) -> None:
        self._function, self.samples, self.errors = function, samples, errors

    def variances(self, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
        samples, out = self.samples, np.zeros(len(X))
        for place in self._function.blocks(X):
            if samples is not None:
                out[place] = samples.variances(self._features(X[place], n_jobs))
        return out

    def deviations(self, X: np.ndarray, n_samples: int, rng: np.random.Generator, n_jobs: int | None) -> np.ndarray:
        samples = cast(RidgePosterior, self.samples)
        shares, out = rng.standard_normal((len(samples.intercept), n_samples)), np.zeros((len(X), n_samples))
        for place in self._function.blocks(X):
            for some, part in samples.parts(self._features(X[place], n_jobs)):
                out[place] += part @ shares[some]
        return out + self._in_unseen_bins(X, n_samples, rng, n_jobs) if self._function.n_grids else out

    def _features(self, X: np.ndarray, n_jobs: int | None) -> Features:
        return self._function.features(X, np.float32, n_jobs)

    def _in_unseen_bins(
        self, X: np.ndarray, n_samples: int, rng: np.random.Generator, n_jobs: int | None
    ) -> np.ndarray:
        """Return the contribution of bins without training rows: weights from the prior, equal for all rows."""
        known, store = self._function.bins, CodeStore(len(X), self._function.n_grids)
        bins = count_bins(known.grids, [X], len(X), codes=store, n_jobs=n_jobs)
        codes, known_codes = store.array, known.codes(X, n_jobs)
        codes[known_codes != no_bin(known_codes.dtype)] = no_bin(codes.dtype)
        weights = rng.standard_normal((bins.keys.size, n_samples)) / np.sqrt(cast(RidgePosterior, self.samples).alpha)
        return BinMatrix._trusted(codes, bins.starts, np.dtype(np.float64), n_jobs) @ weights
