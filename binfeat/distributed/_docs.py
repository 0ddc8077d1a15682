"""Texts that the docstrings of the classes for Dask collections share."""

_ON_DASK = "For a Dask collection, a Dask array that is not yet computed."

MAP_TEXTS = {
    "X": """\
X : Dask array or dataframe, or X of the class in `binfeat`, of shape (n_rows, n_inputs)""",
    "on_dask": _ON_DASK,
}

MACHINE_TEXTS = {
    "X": """\
X : Dask array or dataframe, or X of the class in `binfeat`, of shape (n_rows, n_inputs)""",
    "y": """\
y : Dask array, series or dataframe, or array-like, of shape (n_rows,) or (n_rows, n_targets), default=None
    If its chunks are not those of X, rows are counted where lengths are not known, which reads X once more. None for a
    source of blocks only.""",
    "sample_weight": """\
sample_weight : float, Dask array or series, or array-like of shape (n_rows,), default=None
    Non-negative, not all zero.""",
    "groups": """\
groups : Dask array or series, or array-like of shape (n_rows,), default=None
    Group of each row; a group is held out as a whole.""",
    "decisions": """\
All is decided as for a source of blocks of the same rows: what is decided on a sample, on up to 200,000 rows, which the
seed picks and this process fetches; the overall length scale, the penalty, the number of grids and the coefficients on
all rows, by the solver of `CGRidge`. If the sample is all rows, the machine is that of memory. Chunks make no
difference. A fitted machine holds plain arrays: it predicts rows in memory, too, and `to_local` gives the machine of
`binfeat`.""",
    "notes": """\
Notes
-----
The collection is read once to check it, once for the sample, once for each overall length scale that is tried, and once
whenever grids are added: persist it if the workers have room. Targets, weights and codes stay on the workers: of each
row, 8 bytes for a target and 32 more, and 2 or 4 bytes for a code in each grid, twice that while grids are added; Dask
writes what does not fit to its disks. A round of the solver sends the coefficients to the workers and receives a sum of
their size. 16 bytes are sent for each bin of each chunk, and the bins of all chunks are united in this process.

If a worker is lost, Dask computes again what it held, provided that the collection can be computed again from its
source. Without any worker a fit waits for one. `max_bytes` limits the bins and the solver's vectors in this process,
which unites them; None is half of its machine's memory.
`features` "hybrid" and "exact", and ``loss="huber"``, need all rows in memory, and so do indicator matrices of labels.
A transformer for `target_transform` is fitted to the sample.

A task on a worker takes `n_jobs` threads, one if it is None. So the cores of a machine can be used by as many workers
with one thread, or by one such worker with `n_jobs` at the number of cores and a chunk for each machine: that has fewer
tasks, and coefficients travel to each machine once. Results are the same.""",
    "on_dask": _ON_DASK,
}
