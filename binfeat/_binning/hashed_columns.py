"""Hashed columns: the bins of a grid share a number of columns that does not depend on the rows."""

import numpy as np

from binfeat._binning.bin_matrix import code_dtype
from binfeat._binning.code_store import CodeStore
from binfeat._binning.grids import hash_blocks
from binfeat._common.validation import check_integer
from binfeat._engine.bin_tables import fold


def check_hashed(n_features, n_grids):
    if check_integer(n_features, "n_features", 1) < 2 * n_grids:
        raise ValueError(f"n_features must be at least 2 * n_grids, {2 * n_grids}; got {n_features}.")
    if n_features // n_grids >= 2**32:
        raise ValueError(f"n_features must be below 2^32 per grid, got {n_features} for {n_grids} grids.")


def hashed_offsets(n_features, n_grids):
    """First column of each grid among `n_features` hashed columns."""
    return np.append(np.arange(n_grids) * (n_features // n_grids), n_features).astype(np.int64)


def fold_codes(grids, blocks, n_rows, offsets, max_bytes=np.inf, n_jobs=None, tell=None):
    """A CodeStore of the rows of some blocks in hashed columns, which begin at `offsets` in each grid.

    `tell`, if any, is called after every block of `hash_blocks`.
    """
    n_slots = int(offsets[1])
    store = CodeStore(n_rows, len(grids), max_bytes, code_dtype(n_slots))
    for part, start, hashes in hash_blocks(grids, blocks, n_jobs):
        fold(hashes, start, np.uint64(n_slots), store[part], n_jobs=n_jobs)
        if tell is not None:
            tell()
    return store
