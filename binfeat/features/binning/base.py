"""The steps of a fit of `RandomBinning`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from binfeat._common.array_types import ArrayLike
from binfeat._common.categories import with_category_numbers
from binfeat._common.derived import Derived
from binfeat._common.gamma_scale import Moments, gamma_of_inputs
from binfeat._common.memory import give_back_memory
from binfeat._common.operators import FeatureMap
from binfeat._common.progress import Progress
from binfeat._common.validation import (
    CheckedRows,
    canonical,
    check_categorical,
    check_choice,
    check_flag,
    check_integer,
    check_weights,
    checked_rows,
    flat,
    float_dtype,
    is_word,
    seed_of,
)
from binfeat._rows.sampled import rows_of_summary, summary_for_gamma
from binfeat._rows.sources import is_source
from binfeat._threads import thread_count
from binfeat.features.binning.bin_map import BinMap, map_and_features
from binfeat.features.binning.bin_matrix import BinMatrix
from binfeat.features.binning.bins import Bins, LearnedBins, rank_bins
from binfeat.features.binning.code_store import CodeStore
from binfeat.features.binning.coded_features import no_bin
from binfeat.features.binning.fineness import warn_of_collisions, warn_of_rows, warn_of_unseen
from binfeat.features.binning.grids import Grids
from binfeat.features.binning.hashed_columns import check_hashed, fold_codes, hashed_offsets
from binfeat.features.binning.input_checks import (
    ARRAY_CHECKS,
    check_categories,
    require_binning_memory,
    require_grids_memory,
)
from binfeat.features.binning.more_grids import EarlierFit
from binfeat.features.binning.tables import BinningInput, count_bins
from binfeat.kernels.lookup import binning_kernel

_MANY_BYTES = 2**25  # bytes of codes from which freed memory is returned to the system


class BinningBase(FeatureMap):
    """Checks of parameters and rows, drawn grids, counted bins and codes, for `RandomBinning` in memory and on Dask."""

    kernel: object
    gamma: str | float | ArrayLike
    n_grids: int
    n_features: int | None
    min_count: int
    categorical_features: ArrayLike | None
    output: str
    max_bytes: int | None
    n_jobs: int | None
    random_state: int | np.random.RandomState | None
    warm_start: bool

    gamma_: np.ndarray
    n_bins_: int
    bin_offsets_: np.ndarray
    bin_counts_: np.ndarray
    kappa_: float
    _categorical: np.ndarray
    _has_warned = False  # files of version 0.2.0 do not have it

    def _check_parameters(self) -> None:
        n_grids = check_integer(self.n_grids, "n_grids", 1)
        check_integer(self.min_count, "min_count", 1)
        check_flag(self.warm_start, "warm_start")
        check_choice(self.output, "output", ("csr", "codes"))
        thread_count(self.n_jobs)
        check_integer(0 if self.max_bytes is None else self.max_bytes, "max_bytes", 0)
        binning_kernel(self.kernel)
        if self.n_features is not None:
            check_hashed(self.n_features, n_grids)

    def _check(self, X: Any, reset: bool = False) -> CheckedRows:
        X = with_category_numbers(X, self.categorical_features if reset else self._categorical)
        X = canonical(checked_rows(self, X, reset=reset, **ARRAY_CHECKS))
        if reset:
            self._categorical = check_categorical(self.categorical_features, self)
            require_grids_memory(int(self.n_grids), X.shape[1])  # before the rows of a source, or a search for gamma
        check_categories(X, self._categorical)
        return X

    def _require_memory(self, X: CheckedRows, n_grids: int) -> None:
        beside_a_code = 0 if is_word(self.output, "codes") else float_dtype(X.dtype).itemsize + 4
        require_binning_memory(X.shape, n_grids, beside_a_code)

    def _draw(self, gamma: np.ndarray, earlier: EarlierFit | None = None) -> None:
        """Draw the grids for one gamma per input; ValueError if an earlier fit has other grids."""
        n_grids = int(self.n_grids)
        self.gamma_ = gamma
        grids = Grids.draw(binning_kernel(self.kernel), gamma, n_grids, seed_of(self.random_state), self._categorical)
        if earlier is not None:
            earlier.require(grids)
        self._scale, self._shift, self._keys, self._nan_keys = grids.arrays
        self._hashed, self._derived = self.n_features is not None, Derived()
        self._has_warned = False
        if self.n_features is not None:
            self.bin_offsets_ = hashed_offsets(self.n_features, n_grids)

    def _begin(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, encodes: bool = False
    ) -> tuple[BinningInput, EarlierFit | None]:
        """Check parameters and rows, and draw the grids; also return the earlier fit of a warm start."""
        self._check_parameters()
        earlier = EarlierFit.of(self)
        if is_source(X):
            summary = summary_for_gamma(self, X, y, sample_weight)
            self._draw(self._chosen_gamma(earlier, summary.sum, rows_of_summary, summary), earlier)
            table = BinningInput.of_source(summary, self.max_bytes)
            return table.watched(Progress(self, X, None), int(self.n_grids)), earlier
        X = self._check(X, reset=True)
        if encodes:
            self._require_memory(X, int(self.n_grids))
        weights = check_weights(sample_weight, X.shape[0])
        moments = Moments.of(X, flat(weights)) if is_word(self.gamma, "scale") else None
        self._draw(self._chosen_gamma(earlier, moments, lambda *rows: rows, X, y, sample_weight), earlier)
        if self._hashed:  # bins are not counted
            warn_of_rows(self._grids, X, self.n_jobs)
        return BinningInput.of(X).watched(Progress(self, X, None), int(self.n_grids)), earlier

    def _chosen_gamma(
        self, earlier: EarlierFit | None, moments: Moments | None, rows_of: Callable[..., tuple], *source: Any
    ) -> np.ndarray:
        """Return gamma of each input: from an earlier fit, given, from moments, or learned from targets."""
        if earlier is not None and self.gamma_.size == self.n_features_in_:
            return self.gamma_
        if not is_word(self.gamma, "learn"):
            return gamma_of_inputs(self.gamma, moments, self._categorical, power=1)
        from binfeat.features.learn_gamma.for_features import gamma_for_features  # late: few maps learn

        X, y, sample_weight = rows_of(*source)
        seed = seed_of(self.random_state)
        parts = (X, y, sample_weight, self._categorical, seed)
        return gamma_for_features(self.kernel, *parts, lambda *own: features_of_parts(self, seed, *own), self.n_jobs)

    @property
    def _grids(self) -> Grids:
        return Grids(self._scale, self._shift, self._keys, self._nan_keys)

    def _learn(self, table: BinningInput, store: CodeStore | None = None, known: Bins | None = None) -> None:
        """Learn the bins of rows, and write the codes of the rows to the store if there is one."""
        bins = count_bins(self._grids, table.blocks, table.n_rows, known, store, self.n_jobs, on_block=table.on_block)
        n_coded = 0 if known is None else np.diff(self.bin_offsets_)
        learned = rank_bins(bins, self.min_count, n_coded, self.n_jobs)
        if store is not None:
            store.recode(learned.new_codes, learned.starts, learned.code_dtype, self.n_jobs)
        self._keep(learned)

    def _fit_bins(self, table: BinningInput, earlier: EarlierFit | None) -> None:
        """Learn the bins of rows; with an earlier fit, only in added grids."""
        if earlier is not None:
            self._keep(earlier.with_grids(self._grids, table, self.min_count, self.n_jobs))
        elif not self._hashed:
            self._learn(table)

    def _encode_bins(self, table: BinningInput, earlier: EarlierFit | None) -> CodeStore:
        """Learn the bins of rows, and return a store with the codes of the rows."""
        if self._hashed:
            store = fold_codes(self._grids, table, self.bin_offsets_, self.n_jobs)
            warn_of_collisions(store.array, self.bin_offsets_)
            return store
        if earlier is None:
            store = table.store(int(self.n_grids))
            self._learn(table, store)
            if store.array.nbytes >= _MANY_BYTES:
                give_back_memory()  # memory of the tables of bins, before CSR is allocated
            return store
        self._fit_bins(table, earlier)
        return self._bin_map.encode(table, self.n_jobs)

    @property
    def _bin_map(self) -> BinMap:
        """Return the map to the columns of the bins; its look-up tables are created once per fit."""
        return self._derived.get(self._bin_keys, lambda: BinMap(self._grids, self._bin_keys, self.bin_offsets_))

    def _keep(self, learned: LearnedBins) -> None:
        coded, rare = learned.coded, learned.rare
        self._bin_keys, self.bin_counts_, self.bin_offsets_ = coded.keys, coded.counts, coded.starts
        self.n_bins_, self.kappa_ = coded.keys.size, coded.keys.size / coded.sizes.size
        self._rare_keys, self._rare_counts, self._rare_starts = rare.keys, rare.counts, rare.starts
        self._has_warned = self._has_warned or learned.fineness().warn()

    def _codes_of(self, X: CheckedRows) -> np.ndarray:
        """Return the codes (n_grids, n_rows) of checked rows."""
        if self._hashed:
            return fold_codes(self._grids, BinningInput.of(X), self.bin_offsets_, self.n_jobs).array
        codes = self._bin_map.codes(X, self.n_jobs)
        if not self._rare_keys.size:  # otherwise training rows have unknown bins, too
            warn_of_unseen(codes, no_bin(codes.dtype), self.bin_counts_[: self.bin_offsets_[1]].sum())
        return codes


def as_output(matrix: Any, output: str) -> Any:
    """Return codes, or their CSR form for ``output="csr"``."""
    return matrix if is_word(output, "codes") else matrix.tocsr()


def lacks_gamma(binning: BinningBase) -> str | None:
    """Return the reason why `partial_fit` is unavailable, or None."""
    needs = f"gamma={binning.gamma!r} needs all rows at once; partial_fit needs gamma as a number or an array."
    return needs if isinstance(binning.gamma, str) else None


def lacks_bins(binning: BinningBase) -> str | None:
    """Return the reason why methods for bins of training rows are unavailable, or None."""
    return None if binning.n_features is None else "Hashed columns have no bins of training rows; set n_features=None."


def features_of_parts(
    binning: BinningBase, seed: int, gamma: np.ndarray, X: Any, X_new: Any
) -> tuple[BinMatrix, BinMatrix]:
    """Return features of training rows and of other rows, for the parameters of a map and this seed and gamma."""
    law, n_grids, n_jobs = binning_kernel(binning.kernel), int(binning.n_grids), binning.n_jobs
    require_binning_memory(X.shape, n_grids, 0)
    grids = Grids.draw(law, gamma, n_grids, seed, binning._categorical)
    table = BinningInput.of(X)
    if binning.n_features is None:
        bin_map, Z = map_and_features(grids, table, binning.min_count, n_jobs)
        return Z, bin_map(X_new, float_dtype(X_new.dtype), n_jobs)
    offsets = hashed_offsets(binning.n_features, n_grids)
    codes = [fold_codes(grids, rows, offsets, n_jobs).array for rows in (table, BinningInput.of(X_new))]
    of_rows, of_new = (BinMatrix._trusted(own, offsets, table.dtype, n_jobs) for own in codes)
    return of_rows, of_new
