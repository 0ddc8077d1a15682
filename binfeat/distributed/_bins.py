"""Bins of a chunk of rows: numbered on its worker, and renumbered when all chunks are known."""

import numpy as np
from dask.sizeof import sizeof

from binfeat._common.validation import CheckedRows
from binfeat._engine.bin_tables import recode
from binfeat.features.binning.bin_matrix import BinMatrix
from binfeat.features.binning.bins import Bins
from binfeat.features.binning.code_store import CodeStore
from binfeat.features.binning.grids import Grids
from binfeat.features.binning.tables import codes_among, count_bins

# Dask schedules tasks by these sizes; its default is a few bytes for both types.
sizeof.register(BinMatrix, lambda Z: Z.nbytes)
sizeof.register(Bins, lambda bins: bins.keys.nbytes + bins.counts.nbytes + bins.starts.nbytes)


def number_bins(X: CheckedRows, grids: Grids, n_jobs: int | None = 1) -> tuple[Bins, np.ndarray]:
    """Return the bins of rows, and the number of the bin of each row in each grid."""
    store = CodeStore(X.shape[0], len(grids))
    return count_bins(grids, [X], X.shape[0], codes=store, n_jobs=n_jobs), store.array


def renumber(codes: np.ndarray, bins: Bins, united: Bins, out: np.ndarray, n_jobs: int | None = 1) -> None:
    """Write the numbers of merged bins for rows with the numbers `codes` among `bins`."""
    recode(codes, codes_among(bins, united, n_jobs), bins.starts, out, n_jobs=n_jobs)
