"""The map from rows to random binning features, for given grids and bins."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from binfeat._common.array_types import DTypeLike
from binfeat._common.derived import Derived
from binfeat._common.validation import CheckedRows
from binfeat.features.binning.bin_matrix import BinMatrix, code_dtype_of
from binfeat.features.binning.bins import rank_bins
from binfeat.features.binning.code_store import CodeStore
from binfeat.features.binning.grids import Grids
from binfeat.features.binning.tables import BinningInput, BinTables, count_bins, find_codes, write_codes


@dataclass(frozen=True, eq=False)
class BinMap:
    """The value ``1 / sqrt(n_grids)`` in the column of each bin of a row; `FourierMap` for bins."""

    grids: Grids
    keys: np.ndarray  # (n_bins,), uint64: hashes of the bins of each grid, in the order of their columns
    starts: np.ndarray  # (n_grids + 1,), int64: first column of each grid
    _derived: Derived = field(default_factory=Derived, repr=False)

    @classmethod
    def none(cls, n_inputs: int) -> Self:
        floats, words = np.empty((0, n_inputs)), np.empty((0, n_inputs), np.uint64)
        return cls(Grids(floats, floats, words, words), np.empty(0, np.uint64), np.zeros(1, np.int64))

    @property
    def n_components(self) -> int:
        return self.keys.size

    def tables(self, n_jobs: int | None = None) -> BinTables:
        """Return the look-up tables of the bins, which are made once."""
        return self._derived.get(self.keys, lambda: BinTables(self.keys, self.starts, n_jobs))

    def encode(self, table: BinningInput, n_jobs: int | None = None) -> CodeStore:
        store = CodeStore(table.n_rows, len(self.grids), table.max_bytes, code_dtype_of(self.starts))
        write_codes(self.tables(n_jobs), self.grids, table.blocks, store.array, n_jobs, table.on_block)
        return store

    def codes(self, X: CheckedRows, n_jobs: int | None = None) -> np.ndarray:
        """Return the codes (n_grids, n_rows) of an ndarray or CSR (n_rows, n_inputs)."""
        return find_codes(self.tables(n_jobs), self.grids, X, n_jobs, code_dtype_of(self.starts))

    def __call__(self, X: CheckedRows, dtype: DTypeLike = np.float64, n_jobs: int | None = None) -> BinMatrix:
        """Return features of this type of an ndarray or CSR (n_rows, n_inputs)."""
        return BinMatrix._trusted(self.codes(X, n_jobs), self.starts, np.dtype(dtype), n_jobs)


def map_and_features(
    grids: Grids, table: BinningInput, min_count: int = 1, n_jobs: int | None = None
) -> tuple[BinMap, BinMatrix]:
    """Return the map to the bins of some rows, and the features of these rows."""
    store = table.store(len(grids))
    learned = rank_bins(count_bins(grids, table.blocks, table.n_rows, None, store, n_jobs), min_count, n_jobs=n_jobs)
    store.recode(learned.new_codes, learned.starts, learned.code_dtype, n_jobs)
    bin_map = BinMap(grids, learned.coded.keys, learned.coded.starts)
    return bin_map, BinMatrix._of_store(store, bin_map.starts, table.dtype, n_jobs)
