"""Base of the outlier detector: its parameters, its counts as attributes, and its threshold."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from binfeat._binning.bins import Bins, rank_bins
from binfeat._binning.grids import Grids
from binfeat._binning.input_checks import ARRAY_CHECKS, check_categories, require_binning_memory, require_grids_memory
from binfeat._binning.tables import count_bins
from binfeat._common.derived import Derived
from binfeat._common.persistence import Persistent
from binfeat._common.validation import (
    canonical,
    check_categorical,
    check_integer,
    check_numbers,
    check_real,
    checked_rows,
    is_word,
)
from binfeat._engine.policy import thread_count
from binfeat._kernels.parameters import WithKernel
from binfeat._rows.sources import Survey, is_source
from binfeat.density.counted_bins import CountedBins, draw_grids
from binfeat.density.row_sample import RowSample
from binfeat.density.saved import check_detector
from binfeat.density.scale import unit_gamma
from binfeat.kernels import Skip, binning_kernel

_FEW_INPUTS = 4  # with so few, grids that ignore some of them would often ignore all
_FENCE = 1.5  # interquartile ranges below the first quartile, Tukey's rule


class CountingEstimator(WithKernel, Persistent):
    """Base of estimators that count training rows in the bins of a mixture of grids."""

    _check_state = staticmethod(check_detector)

    gamma: Any
    fineness: Any
    input_share: Any
    n_grids: int
    contamination: Any
    categorical_features: Any
    n_jobs: int | None

    def _check_parameters(self):
        binning_kernel(self.kernel)
        check_integer(self.n_grids, "n_grids", self._multiples.size)
        thread_count(self.n_jobs)
        for name, most in (("input_share", 1.0), ("contamination", 0.5)):
            value = getattr(self, name)
            if not is_word(value, "auto") and not 0 < check_real(value, name, 0) <= most:
                raise ValueError(f"{name} must be 'auto' or above 0 and at most {most:g}, got {value!r}.")

    @property
    def _multiples(self):
        """The parameter `fineness` as an array."""
        multiples = np.atleast_1d(check_numbers(self.fineness, "fineness"))
        if multiples.ndim != 1 or not multiples.size or not (np.isfinite(multiples) & (multiples > 0)).all():
            raise ValueError(f"fineness must be one or several positive numbers, got {self.fineness!r}.")
        return multiples

    def _check(self, X, reset=False):
        """X as an array or CSR."""
        X = canonical(checked_rows(self, X, reset=reset, **ARRAY_CHECKS))
        if reset:
            self._categorical = check_categorical(self.categorical_features, self)
        check_categories(X, self._categorical)
        return X

    def _blocks(self, X) -> Iterator[Any]:
        """Checked rows in memory, or blocks of the rows of a source."""
        if is_source(X):
            yield from Survey(X, lambda rows, _: self._check(rows)).rows()
        else:
            yield self._check(X)

    def _learn(self, blocks: Iterable, n_rows: int, sample: RowSample, seed: int) -> None:
        """Draw the grids for a sample of the rows, and count all rows."""
        grids = self._draw(sample, seed)
        require_binning_memory((n_rows, self.n_features_in_), len(grids), 16)
        self._begin(grids, rank_bins(count_bins(grids, blocks, n_rows, n_jobs=self.n_jobs)), n_rows, sample, seed)

    def _draw(self, sample, seed):
        """The grids for a sample of the rows."""
        n_inputs = self.n_features_in_
        require_grids_memory(int(self.n_grids), n_inputs)
        self.gamma_ = unit_gamma(self.gamma, sample.rows, self._categorical)
        share = self.input_share
        if is_word(share, "auto"):
            share = 0.5 if n_inputs > _FEW_INPUTS else 1.0
        law: Any = binning_kernel(self.kernel)
        law = law if share == 1 else Skip(law, 1 - share)
        gammas = [multiple * self.gamma_ / share for multiple in self._multiples]
        return draw_grids(law, gammas, int(self.n_grids), seed, self._categorical)

    def _begin(self, grids, learned, n_rows, sample, seed):
        """Set the attributes after a first fit."""
        self._scale, self._shift, self._keys, self._nan_keys = grids.arrays
        self._n_levels, self._seed = int(self._multiples.size), seed
        self._keep(CountedBins(grids, learned.coded, n_rows, self._n_levels, self.n_jobs), sample, n_rows)

    def _keep(self, counted, sample, n_seen):
        """Set the attributes that change with the training rows."""
        self._keep_counts(counted)
        self._keep_sample(sample, n_seen)
        scores = counted.scores(sample.rows)
        if is_word(self.contamination, "auto"):
            low, high = np.percentile(scores, (25, 75))
            self.offset_ = float(low - _FENCE * (high - low))
        else:
            self.offset_ = float(np.percentile(scores, 100 * self.contamination))

    def _keep_counts(self, counted):
        self._bin_keys, self._bin_counts, self._bin_starts = counted.bins.keys, counted.bins.counts, counted.bins.starts
        self.n_rows_, self._derived = counted.n_rows, Derived()

    def _keep_sample(self, sample, n_seen):
        self._sample_keys, self._sample_numbers, self._sample_rows = sample.keys, sample.numbers, sample.rows
        self._n_seen = n_seen

    @property
    def _sample(self):
        return RowSample(self._sample_keys, self._sample_numbers, self._sample_rows)

    def _require_sample(self, method):
        check_is_fitted(self)
        if not self._sample_keys.size:
            raise ValueError(f"{method} needs the sample of training rows, which compact() removed; use the original.")

    @property
    def _counted(self):
        """The counted bins, with look-up tables that are made once."""
        return self._derived.get(self._bin_keys, self._as_counted)

    def _as_counted(self):
        bins = Bins(self._bin_keys, self._bin_counts, self._bin_starts)
        grids = Grids(self._scale, self._shift, self._keys, self._nan_keys)
        return CountedBins(grids, bins, self.n_rows_, self._n_levels, self.n_jobs)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
