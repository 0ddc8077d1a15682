"""Tables in files: the type of the target, training rows, and blocks of rows for a model."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from binfeat._common.subsets import places_in
from binfeat._rows.datasets import DatasetBlocks, common_schema, opened, without_index
from binfeat.cli.messages import say
from binfeat.models.estimator import KernelMachineBase
from binfeat.models.table.columns import infinite_in

if TYPE_CHECKING:
    import pyarrow as pa

TextOptions: TypeAlias = Mapping[str, str | None]  # delimiter, decimal and encoding of text files

_MOST_CLASSES = 20  # a target with more different integers is a regression target
_BLOCK_ROWS = 2**17
_REPORT_ROWS = 100_000  # enough for the printed digits of the errors


def open_table(paths: list[Path], text: TextOptions) -> DatasetBlocks:
    """Open all columns of files and folders as a source; print the detected CSV format unless it is the usual one.

    `text` contains the options for CSV files. OSError, ImportError or ValueError if a file cannot be read.
    """
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"There is no file or folder {path}. Check its name.")
    dataset, files = opened(*paths, **text)
    if files is not None and files.differs:
        say(f"{paths[0]}: {files}.")
    schema = common_schema(dataset, files)
    return DatasetBlocks(dataset, schema, without_index(dataset.schema, schema.names), [], [], _BLOCK_ROWS, files)


def task_of(table: DatasetBlocks, target: str) -> tuple[str, str]:
    """Return the task, "regression" or "classification", and a description of the values of the target.

    ValueError if the column does not exist, or has missing values, or contains neither numbers nor labels.
    """
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    _require(table, [target])
    values = read(replace(table, inputs=[target])).column(0)
    if not len(values):
        raise ValueError("The table has no rows. Pass a table with at least one row.")
    n_missing = pc.sum(pc.is_null(values, nan_is_null=True)).as_py() or 0
    if n_missing:
        raise ValueError(
            f"The target {target!r} is missing in {n_missing:,} of {len(values):,} rows. Remove these rows."
        )
    kind = values.type.value_type if kinds.is_dictionary(values.type) else values.type
    n_values = pc.count_distinct(values.cast(kind)).as_py()
    if kinds.is_boolean(kind) or kinds.is_string(kind) or kinds.is_large_string(kind):
        return "classification", f"{n_values} labels"
    if kinds.is_integer(kind):
        task = "classification" if n_values <= _MOST_CLASSES else "regression"
        return task, f"{n_values} different integers"
    if kinds.is_floating(kind) or kinds.is_decimal(kind):
        return "regression", "real numbers"
    raise ValueError(f"The target {target!r} has values of type {kind}. Use a column of numbers or labels.")


def training_rows(table: DatasetBlocks, target: str) -> "tuple[pa.Table | DatasetBlocks, np.ndarray | None]":
    """Return X and y in memory for one file, or a source and None for several files."""
    inputs = [name for name in table.inputs if name != target]
    if not inputs:
        raise ValueError(f"The table has no column except the target {target!r}. Add at least one input column.")
    if len(table.dataset.files) > 1:
        return replace(table, inputs=inputs, targets=[target]), None
    return _split_target(read(replace(table, inputs=[*inputs, target])), target)


def sample_with_target(table: DatasetBlocks, target: str) -> "tuple[pa.Table, np.ndarray, int]":
    """Return X and y of at most 100,000 rows for a report, and the number of rows in the files; see `sample`."""
    rows, n_rows = sample(table, _REPORT_ROWS)
    return *_split_target(rows, target), n_rows


def sample(table: DatasetBlocks, most: int) -> "tuple[pa.Table, int]":
    """Return an Arrow table of at most `most` rows, drawn with a fixed seed and sorted, and the number of all rows."""
    import pyarrow as pa

    n_rows = table.dataset.count_rows()
    if not n_rows:
        raise ValueError("The table has no rows. Pass a table with at least one row.")
    if n_rows <= most:
        return read(table), n_rows
    chosen = np.sort(np.random.default_rng(0).choice(n_rows, most, replace=False))
    batches = (batch for batch, _ in table.batches())
    parts = [batch.take(pa.array(places)) for batch, places in places_in(batches, chosen)]
    return pa.Table.from_batches(parts, _schema(table)), n_rows


def _split_target(rows: "pa.Table", target: str) -> "tuple[pa.Table, np.ndarray]":
    return rows.drop_columns(target), rows.column(target).to_numpy()


def for_model(table: DatasetBlocks, model: KernelMachineBase, target: str | None = None) -> DatasetBlocks:
    """Select the columns that a model requires, with their types, and the target if its name is given.

    The types do not depend on the rows of a CSV file, where labels such as 01 look like numbers, and empty columns have
    no type. ValueError if a column is missing.
    """
    import pyarrow as pa

    wanted = [*model.feature_names_in_, *([] if target is None else [target])]
    _require(table, wanted)
    types = dict(zip(table.schema.names, table.schema.types))
    encoder = model._fitted.encoder
    for name, categorical, times in zip(model.feature_names_in_, encoder.categorical, encoder.inputs.times):
        if categorical and not pa.types.is_dictionary(types[name]):
            types[name] = pa.string()
        elif pa.types.is_null(types[name]):
            types[name] = pa.timestamp("us") if times.startswith("dates") else pa.float64()
    return replace(table, schema=pa.schema([(name, types[name]) for name in wanted]), inputs=wanted)


def read(table: DatasetBlocks) -> "pa.Table":
    import pyarrow as pa

    return pa.Table.from_batches((batch for batch, _ in table.batches()), _schema(table))


def _schema(table: DatasetBlocks) -> "pa.Schema":
    import pyarrow as pa

    return pa.schema([table.schema.field(name) for name in table.inputs])


def read_in_blocks(table: DatasetBlocks) -> "Iterator[pa.Table]":
    """Iterate over the rows, in their order, as non-empty Arrow tables."""
    import pyarrow as pa

    return (pa.Table.from_batches([batch]) for batch, _ in table.batches() if batch.num_rows)


def _require(table: DatasetBlocks, wanted: list[str]) -> None:
    missing = [name for name in wanted if name not in table.inputs]
    if missing:
        raise ValueError(
            f"The table has no column {', '.join(map(repr, missing))}. Its columns are {', '.join(table.inputs)}."
        )


def as_numbers(table: "pa.Table") -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Return names of all columns with values, the columns as numbers, and a mask of the categorical ones.

    TypeError or ValueError for columns that have no numbers, and ValueError for infinite numbers.
    """
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    names, columns, categorical = [], [], []
    for name, column in zip(table.column_names, table.columns):
        if column.null_count == len(column):
            continue
        if kinds.is_temporal(column.type):
            column = column.cast(f"int{column.type.bit_width}")
        is_number = kinds.is_integer(column.type) or kinds.is_floating(column.type) or kinds.is_decimal(column.type)
        if not is_number:
            try:
                column = pc.dictionary_encode(column).combine_chunks().indices
            except NotImplementedError:
                raise TypeError(
                    f"Column {name!r} has values of type {column.type}. Remove it, or replace it by columns of "
                    "numbers, dates or strings."
                ) from None
        names.append(name)
        columns.append(np.asarray(column.cast("float64", safe=False), dtype=np.float64))
        categorical.append(not is_number)
    if not names:
        raise ValueError("The table has no column with values. Pass a table with at least one non-empty column.")
    infinite = [repr(name) for name, column in zip(names, columns) if np.isinf(column).any()]
    if infinite:
        raise ValueError(infinite_in(infinite))
    return np.array(names, dtype=object), columns, np.array(categorical)
