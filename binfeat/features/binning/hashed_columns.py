"""Hashed columns: the bins of a grid share a number of columns that does not depend on the rows."""

import numpy as np

from binfeat._common.validation import check_integer
from binfeat._engine.bin_tables import fold
from binfeat.features.binning.bin_matrix import code_dtype
from binfeat.features.binning.code_store import CodeStore
from binfeat.features.binning.grids import Grids, hash_blocks
from binfeat.features.binning.tables import BinningInput


def check_hashed(n_features: int, n_grids: int) -> None:
    if check_integer(n_features, "n_features", 1) < 2 * n_grids:
        raise ValueError(f"n_features must be at least 2 * n_grids, {2 * n_grids}; got {n_features}.")
    if n_features - (n_grids - 1) * (n_features // n_grids) >= 2**32:  # the last grid has the remainder
        raise ValueError(f"n_features must be below 2^32 per grid, got {n_features} for {n_grids} grids.")


def hashed_offsets(n_features: int, n_grids: int) -> np.ndarray:
    """Return the first column of each grid among `n_features` hashed columns."""
    return np.append(np.arange(n_grids) * (n_features // n_grids), n_features).astype(np.int64)


def fold_codes(grids: Grids, table: BinningInput, offsets: np.ndarray, n_jobs: int | None = None) -> CodeStore:
    """Return a CodeStore of the rows of a `BinningInput` in hashed columns, which begin at `offsets` for each grid."""
    n_slots = int(offsets[1])
    store = CodeStore(table.n_rows, len(grids), table.max_bytes, code_dtype(n_slots))
    for part, start, hashes in hash_blocks(grids, table.blocks, n_jobs, table.on_block):
        fold(hashes, start, np.uint64(n_slots), store[part], n_jobs=n_jobs)
    return store
