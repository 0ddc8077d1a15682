"""``binfeat predict``."""

import sys
from collections import defaultdict
from contextlib import nullcontext
from itertools import chain

import numpy as np

from binfeat._command import models, tables
from binfeat._command.messages import say
from binfeat._common.whole_files import written

_SHOWN = 3  # unknown categories that a warning names
_PARQUET = ".parquet", ".pq"


def predict(model, paths, out):
    """Write predictions for the rows of a table in files, to the file `out` or to standard output."""
    if out is not None:
        models.require_writable(out)
    table = tables.open_table(paths)
    machine = models.load(model)
    table = tables.for_machine(table, machine)
    unseen: dict = defaultdict(set)
    predicted = _predictions(machine, tables.read_in_blocks(table), unseen)
    with nullcontext(sys.stdout.buffer) if out is None else written(out) as target:
        first = next(predicted, None)
        if first is None:
            raise ValueError("The table has no rows.")
        with _writer(target, first.schema) as writer:
            for block in chain([first], predicted):
                writer.write_table(block)
    for name, values in unseen.items():
        say(f"warning: {name} holds {_listed(values)}, which the machine has not seen; they match no other category.")


def _predictions(machine, blocks, unseen):
    """Arrow tables of predictions, and of the probabilities of the classes; unseen categories go to `unseen`."""
    import pyarrow as pa

    for X in blocks:
        predicted = machine.predict(X)
        if predicted.ndim == 2:  # several targets
            columns = {f"prediction_{k}": values for k, values in enumerate(predicted.T)}
        else:
            columns = {"prediction": predicted}
        if hasattr(machine, "predict_proba"):
            columns |= {f"probability_{label}": p for label, p in zip(machine.classes_, machine.predict_proba(X).T)}
        for name, values in machine._fitted.encoder.unseen(machine, X):
            unseen[name].update(values)
        yield pa.table({name: np.ascontiguousarray(values) for name, values in columns.items()})


def _writer(target, schema):
    """A writer of Arrow tables to a stream or a file: Parquet by the ending of its name, else CSV."""
    if str(getattr(target, "suffix", "")) in _PARQUET:
        from pyarrow.parquet import ParquetWriter

        return ParquetWriter(target, schema)
    from pyarrow.csv import CSVWriter

    return CSVWriter(target, schema)


def _listed(values):
    shown = sorted(values, key=str)[:_SHOWN]
    more = f" and {len(values) - len(shown)} more" if len(values) > len(shown) else ""
    return ", ".join(map(repr, shown)) + more
