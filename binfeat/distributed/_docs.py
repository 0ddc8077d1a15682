"""Texts of the docstrings of classes that are those of `binfeat` for Dask collections."""

MAP_TEXTS = {
    "X": """\
X : Dask array or dataframe, or what the class in `binfeat` takes, of shape (n_rows, n_inputs)""",
    "on_dask": """\
Of a Dask collection a Dask array, to be computed.""",
}

RIDGE_TEXTS = {
    "X": """\
X : Dask array or dataframe, BinBlocks, or what the class in `binfeat` takes, of shape (n_rows, n_features)""",
    "sample_weight": """\
sample_weight : float, Dask array or series, or array-like of shape (n_rows,), default=None
    Non-negative, not all zero.""",
    "on_dask": """\
Of a Dask collection a Dask array, to be computed.""",
}
