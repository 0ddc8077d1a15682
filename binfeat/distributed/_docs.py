"""Texts that the docstrings of the classes for Dask collections share."""

_ON_DASK = "For a Dask collection, a Dask array that is not yet computed."

MAP_TEXTS = {
    "X": """\
X : Dask array or dataframe, or X of the class in `binfeat`, of shape (n_rows, n_inputs)""",
    "on_dask": _ON_DASK,
}

RIDGE_TEXTS = {
    "X": """\
X : Dask array or dataframe, BinBlocks, or X of the class in `binfeat`, of shape (n_rows, n_features)""",
    "sample_weight": """\
sample_weight : float, Dask array or series, or array-like of shape (n_rows,), default=None
    Non-negative, not all zero.""",
    "on_dask": _ON_DASK,
}
