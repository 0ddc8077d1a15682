"""Data frames of any kind."""

import narwhals as nw


def collected(X):
    """A polars LazyFrame as a DataFrame; anything else as it is."""
    return X.collect() if nw.dependencies.is_polars_lazyframe(X) else X


def is_frame(X):
    """Whether X is a data frame in memory."""
    return nw.dependencies.is_into_dataframe(X)
