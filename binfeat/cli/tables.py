"""Tables in files: the kind of the target, rows to learn from, blocks of rows for a model."""

from dataclasses import replace

import numpy as np

from binfeat._rows.datasets import DatasetBlocks, common_schema, opened, without_index
from binfeat.cli.messages import say

_MOST_CLASSES = 20  # a target with more different whole numbers is not a target of classes
_BLOCK_ROWS = 2**17
_REPORT_ROWS = 100_000  # enough for the digits of errors that a report prints


def open_table(paths, text):
    """A source of all columns of files and folders; a line says how files of text are read, unless as usual.

    `text` has the options of text files. OSError, ImportError or ValueError if a file cannot be read.
    """
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"There is no file or folder {path}.")
    dataset, files = opened(*paths, **text)
    if files is not None and files.differs:
        say(f"{paths[0]}: {files}.")
    schema = common_schema(dataset, files)
    return DatasetBlocks(dataset, schema, without_index(dataset.schema, schema.names), [], [], _BLOCK_ROWS, files)


def task_of(table, target):
    """The task, "regression" or "classification", and what the target holds, in words.

    ValueError if there is no such column, or its values are missing in some rows, or neither numbers nor labels.
    """
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    _require(table, [target])
    values = read(replace(table, inputs=[target])).column(0)
    if not len(values):
        raise ValueError("The table has no rows.")
    n_missing = pc.sum(pc.is_null(values, nan_is_null=True)).as_py() or 0
    if n_missing:
        raise ValueError(f"The target {target!r} is missing in {n_missing:,} of {len(values):,} rows; leave them out.")
    kind = values.type.value_type if kinds.is_dictionary(values.type) else values.type
    n_values = pc.count_distinct(values).as_py()
    if kinds.is_boolean(kind) or kinds.is_string(kind) or kinds.is_large_string(kind):
        return "classification", f"{n_values} labels"
    if kinds.is_integer(kind):
        task = "classification" if n_values <= _MOST_CLASSES else "regression"
        return task, f"{n_values} different whole numbers"
    if kinds.is_floating(kind) or kinds.is_decimal(kind):
        return "regression", "numbers with fractions"
    raise ValueError(f"The target {target!r} must hold numbers or labels, got values of type {kind}.")


def training_rows(table, target):
    """X and y of one file, in memory; for several files a source and None."""
    inputs = [name for name in table.inputs if name != target]
    if not inputs:
        raise ValueError(f"The table has no column beside the target {target!r}.")
    if len(table.dataset.files) > 1:
        return replace(table, inputs=inputs, targets=[target]), None
    return _split_target(read(replace(table, inputs=[*inputs, target])), target)


def sample_with_target(table, target):
    """X and y of at most 100,000 rows for a report, and the number of rows in the files; see `sample`."""
    rows, n_rows = sample(table, _REPORT_ROWS)
    return *_split_target(rows, target), n_rows


def sample(table, most):
    """An Arrow table of at most so many rows, drawn with a fixed seed, in their order; and the number of all rows."""
    import pyarrow as pa

    n_rows, start, parts = table.dataset.count_rows(), 0, []
    if not n_rows:
        raise ValueError("The table has no rows.")
    if n_rows <= most:
        return read(table), n_rows
    chosen = np.sort(np.random.default_rng(0).choice(n_rows, most, replace=False))
    for batch, _ in table.batches():
        here = chosen[slice(*np.searchsorted(chosen, (start, start + batch.num_rows)))]
        parts.append(batch.take(pa.array(here - start)))
        start += batch.num_rows
    return pa.Table.from_batches(parts, _schema(table)), n_rows


def _split_target(rows, target):
    return rows.drop_columns(target), rows.column(target).to_numpy()


def for_machine(table, machine, target=None):
    """The columns that a machine takes, with the types that it takes, and the target if it is named.

    A few rows of CSV do not tell types: labels such as 01 look like numbers, and empty columns have no type. ValueError
    if a column is missing.
    """
    import pyarrow as pa

    wanted = [*machine.feature_names_in_, *([] if target is None else [target])]
    _require(table, wanted)
    types = dict(zip(table.schema.names, table.schema.types))
    encoder = machine._fitted.encoder
    for name, categorical, times in zip(machine.feature_names_in_, encoder.categorical, encoder.times):
        if categorical and not pa.types.is_dictionary(types[name]):
            types[name] = pa.string()
        elif pa.types.is_null(types[name]):
            types[name] = pa.timestamp("us") if times.startswith("dates") else pa.float64()
    return replace(table, schema=pa.schema([(name, types[name]) for name in wanted]), inputs=wanted)


def read(table):
    """All rows, an Arrow table."""
    import pyarrow as pa

    return pa.Table.from_batches((batch for batch, _ in table.batches()), _schema(table))


def _schema(table):
    import pyarrow as pa

    return pa.schema([table.schema.field(name) for name in table.inputs])


def read_in_blocks(table):
    """Arrow tables of the rows, in their order, without empty tables."""
    import pyarrow as pa

    return (pa.Table.from_batches([batch]) for batch, _ in table.batches() if batch.num_rows)


def _require(table, wanted):
    missing = [name for name in wanted if name not in table.inputs]
    if missing:
        raise ValueError(f"The table has no column {', '.join(map(repr, missing))}; it has {', '.join(table.inputs)}.")
