"""Base of the outlier detector: its parameters, its counts as attributes, and its threshold."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from binfeat._common.array_types import ArrayLike
from binfeat._common.derived import Derived
from binfeat._common.gamma_scale import gamma_of_varying_inputs
from binfeat._common.persistence import Persistent
from binfeat._common.validation import (
    CheckedRows,
    canonical,
    check_categorical,
    check_gamma,
    check_integer,
    check_numbers,
    checked_rows,
    is_word,
)
from binfeat._rows.row_sample import RowSample
from binfeat._rows.sources import SourceSummary, Table, is_source
from binfeat._threads import thread_count
from binfeat.density.counted_bins import CountedBins, Counts, Level, Turns, draw_grids
from binfeat.density.saved import check_detector
from binfeat.features.binning.bins import Bins
from binfeat.features.binning.grids import Grids
from binfeat.features.binning.input_checks import ARRAY_CHECKS, check_categories, require_grids_memory
from binfeat.kernels.lookup import binning_kernel
from binfeat.kernels.parameters import WithKernel
from binfeat.kernels.skip import Skip
from binfeat.length_scales.codes import std_without_codes

_FEW_ROWS = 64
_FINEST = 8.0  # maximum of the automatic fineness; more needs more memory for large tables
_FEW_INPUTS = 4  # with so few, grids that ignore some of them would often ignore all
_FEWEST = 1  # minimum percentage of outliers, because scores are bounded below and may not reach the fence
_FENCE = 1.5  # interquartile ranges below the first quartile, Tukey's rule


class CountingEstimator(WithKernel, Persistent):
    _check_state = staticmethod(check_detector)

    gamma: Any
    fineness: Any
    input_share: Any
    n_grids: int
    max_samples: int | None
    contamination: Any
    categorical_features: Any
    n_jobs: int | None
    offset_: float

    def _check_parameters(self) -> None:
        binning_kernel(self.kernel)
        check_integer(self.n_grids, "n_grids", len(self._levels(1.0, np.ones(1), 1)))
        if self.max_samples is not None:
            check_integer(self.max_samples, "max_samples", 1)
        thread_count(self.n_jobs)
        if not is_word(self.contamination, "auto"):
            if np.ndim(self.contamination) or np.asarray(self.contamination).dtype.kind in "SU":
                raise TypeError(f"contamination must be 'auto' or a number, got {self.contamination!r}.")
            _positive(self.contamination, "contamination", 0.5)

    def _levels(self, n_rows: float, gamma: float | np.ndarray, n_inputs: int) -> list[Level]:
        """Return kernel and gamma of each part of the mixture of grids."""
        fineness, shares = self.fineness, self.input_share
        if is_word(fineness, "auto"):
            fineness = np.clip(np.log(n_rows), 1.0, _FINEST)
        if is_word(shares, "auto"):
            shares = (1.0, 0.5) if n_inputs > _FEW_INPUTS else 1.0
        fineness, shares = _positive(fineness, "fineness", np.inf), _positive(shares, "input_share", 1.0)
        law: Any = binning_kernel(self.kernel)
        with np.errstate(over="ignore"):  # infinite values are replaced when grids are drawn
            return [
                (law if share == 1 else Skip(law, 1 - share), multiple * gamma / share)
                for multiple in fineness
                for share in shares
            ]

    def _check(self, X: Table, reset: bool = False) -> CheckedRows:
        X = canonical(checked_rows(self, X, reset=reset, **ARRAY_CHECKS))
        if reset:
            self._categorical = check_categorical(self.categorical_features, self)
        check_categories(X, self._categorical)
        return X

    def _is_plain(self, X: Table) -> bool:
        """Return True for a few rows of the training type; other checks would take longer than their scores."""
        return (
            type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and 0 < X.shape[0] <= _FEW_ROWS
            and X.shape[1] == self.n_features_in_
            and X.flags.c_contiguous
            and self._takes_arrays
        )

    def _blocks(self, X: Table) -> Iterator[CheckedRows]:
        if is_source(X):
            yield from SourceSummary.of_fitted(X, self._check).rows()
        else:
            yield self._check(X)

    def _learn(self, count: Callable[[Grids, Turns], Counts], n_rows: int, sample: RowSample, seed: int) -> None:
        """Draw the grids for a sample of the rows, count the rows by `count`, and set all attributes."""
        n_inputs = self.n_features_in_
        n_grids = check_integer(self.n_grids, "n_grids", len(self._levels(1.0, np.ones(n_inputs), n_inputs)))
        require_grids_memory(n_grids, n_inputs)
        turns = Turns.of(n_grids, None if self.max_samples is None else int(self.max_samples), n_rows)
        self.gamma_ = (
            gamma_of_varying_inputs(std_without_codes(sample.rows, self._categorical), self._categorical)
            if is_word(self.gamma, "scale")
            else check_gamma(self.gamma, n_inputs, power=1, words=("scale",))
        )
        levels = self._levels(n_rows * turns.width / 2**64, self.gamma_, n_inputs)
        grids = draw_grids(levels, n_grids, seed, self._categorical)
        self._scale, self._shift, self._keys, self._nan_keys = grids.arrays
        self._width, self._n_levels, self._seed = turns.width, len(levels), seed
        self._takes_arrays = not (self._categorical.any() or hasattr(self, "feature_names_in_"))
        counted = CountedBins.of(grids, turns, count(grids, turns), n_rows, len(levels), self.n_jobs)
        self._keep(counted, sample, n_rows)

    def _keep(self, counted: CountedBins, sample: RowSample, n_seen: int) -> None:
        """Set the attributes that change with the training rows; an empty sample keeps the threshold."""
        counts = counted.counts
        self._bin_keys, self._bin_counts, self._bin_starts = counts.bins.keys, counts.bins.counts, counts.bins.starts
        self._row_hashes, self._row_orders, self._sizes = counts.hashes, counts.orders, counted.sizes
        self.n_rows_, self._derived = counted.n_rows, Derived()
        self._derived.get(self._bin_keys, lambda: counted)  # its look-up tables may exist
        self._sample_arrays, self._n_seen = sample.arrays(), n_seen
        threshold = self._threshold(counted.scores(sample.rows)) if sample.orders.size else self.offset_
        step = np.log(2) / counted.turns.n_grids  # from the lowest score to the next one, with another row in one bin
        self.offset_ = float(max(threshold, counted.lowest_score + step / 2))

    def _threshold(self, scores: np.ndarray) -> float:
        if not is_word(self.contamination, "auto"):
            return float(np.percentile(scores, 100 * float(self.contamination)))
        lowest, low, high = np.percentile(scores, (_FEWEST, 25, 75))
        return float(max(lowest, low - _FENCE * (high - low)))

    @property
    def _sample(self) -> RowSample:
        return RowSample.from_arrays(self._sample_arrays, self.n_features_in_)

    def _require_rows(self, method: str) -> None:
        check_is_fitted(self)
        if not self._row_orders.size:
            raise ValueError(f"{method} needs the training rows, which compact() removed; use the original.")

    def _require_sample(self, method: str) -> None:
        self._require_rows(method)
        if not self._sample_arrays["orders"].size:
            raise ValueError(f"{method} needs a sample of training rows, which forget() removed. Add more rows.")

    @property
    def _counted(self) -> CountedBins:
        """Return the counted bins, with look-up tables that are created once."""
        return self._derived.get(self._bin_keys, self._as_counted)

    def _as_counted(self) -> CountedBins:
        counts = Counts(Bins(self._bin_keys, self._bin_counts, self._bin_starts), self._row_hashes, self._row_orders)
        grids = Grids(self._scale, self._shift, self._keys, self._nan_keys)
        turns = Turns(len(grids) - 1, self._width)
        return CountedBins(grids, turns, counts, self._sizes, self.n_rows_, self._n_levels, self.n_jobs)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def _positive(values: ArrayLike, name: str, most: float) -> np.ndarray:
    """Return numbers above 0 and at most `most` as a one-dimensional array."""
    array = np.atleast_1d(check_numbers(values, name))
    if array.ndim != 1 or not array.size or not ((array > 0) & (array <= most) & np.isfinite(array)).all():
        words = "positive" if most == np.inf else f"above 0 and at most {most:g}"
        raise ValueError(f"{name} must be 'auto' or {words}, got {values!r}.")
    return array
