"""Bins of a chunk of rows: numbered where the rows are, renumbered when those of all chunks are known."""

from dask.sizeof import sizeof

from binfeat._engine.bin_tables import recode
from binfeat.features.binning.bin_matrix import BinMatrix
from binfeat.features.binning.bins import Bins
from binfeat.features.binning.code_store import CodeStore
from binfeat.features.binning.tables import codes_among, count_bins

# Dask schedules tasks by these sizes; its default is a few bytes for both types.
sizeof.register(BinMatrix, lambda Z: Z.nbytes)
sizeof.register(Bins, lambda bins: bins.keys.nbytes + bins.counts.nbytes + bins.starts.nbytes)


def number_bins(X, grids, n_jobs=1):
    """The bins of rows, and the number of each row's bin in each grid."""
    store = CodeStore(X.shape[0], len(grids))
    return count_bins(grids, [X], X.shape[0], codes=store, n_jobs=n_jobs), store.array


def renumber(codes, bins, united, out, n_jobs=1):
    """Write the numbers that united bins have for the rows whose numbers among `bins` are `codes`."""
    recode(codes, codes_among(bins, united, n_jobs), bins.starts, out, n_jobs=n_jobs)
