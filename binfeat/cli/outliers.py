"""``binfeat outliers``."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from binfeat.cli import tables
from binfeat.cli.messages import say
from binfeat.cli.outputs import require_output, write
from binfeat.cli.tables import TextOptions
from binfeat.density.detector import OutlierDetector

if TYPE_CHECKING:
    import pyarrow as pa


def outliers(paths: list[Path], text: TextOptions, out: Path | None) -> None:
    """Write the score of each row of a table in files, and the column with the largest contribution for outliers."""
    import pyarrow as pa

    if out is not None:
        require_output(out, *paths)
    table = tables.read(tables.open_table(paths, text))
    if not len(table):
        raise ValueError("The table has no rows. Pass a table with at least one row.")
    names, columns, categorical = _columns_of(table)
    X = np.column_stack(columns)
    detector = OutlierDetector(categorical_features=categorical, random_state=0).fit(X)
    scores = detector.score_samples(X)
    strange = scores < detector.offset_
    inputs = np.full(len(X), None, dtype=object)
    inputs[strange] = names[detector.contributions(X[strange]).argmax(axis=1)]
    found = {"score": scores, "outlier": strange, "strangest_input": pa.array(inputs.tolist(), pa.string())}
    write(iter([pa.table(found)]), out)
    say(f"{strange.sum():,} of {len(X):,} rows are outliers.")


def _columns_of(table: "pa.Table") -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Return names of all columns with values, the columns as numbers, and a mask of the categorical ones."""
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    names, columns, categorical = [], [], []
    for name, column in zip(table.column_names, table.columns):
        kind = column.type
        if column.null_count == len(column):
            continue
        if kinds.is_temporal(kind) and not kinds.is_duration(kind):
            column = pc.cast(pc.cast(column, "timestamp[us]"), "int64")
        is_number = kinds.is_integer(column.type) or kinds.is_floating(column.type) or kinds.is_decimal(column.type)
        if not is_number:
            column = pc.dictionary_encode(column).combine_chunks().indices
        names.append(name)
        columns.append(np.asarray(pc.cast(column, "float64"), dtype=np.float64))
        categorical.append(not is_number)
    if not names:
        raise ValueError("The table has no column with values. Pass a table with at least one non-empty column.")
    return np.array(names, dtype=object), columns, np.array(categorical)
