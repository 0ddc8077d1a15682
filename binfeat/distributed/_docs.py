"""Texts that the docstrings of the classes for Dask collections share."""

_ON_DASK = "For a Dask collection, a Dask array that is not yet computed."

MAP_TEXTS = {
    "X": """\
X : Dask array or dataframe, or X of the class in `binfeat`, of shape (n_rows, n_inputs)""",
    "on_dask": _ON_DASK,
}
