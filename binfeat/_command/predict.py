"""``binfeat predict``."""

import sys
from collections import defaultdict
from contextlib import closing, nullcontext
from typing import Any

import numpy as np

from binfeat._command import models, tables
from binfeat._command.messages import say
from binfeat._command.output import require_writable
from binfeat._common.whole_files import written

_SHOWN = 3  # unknown categories that a warning names
_PARQUET = ".parquet", ".pq"


def predict(model, paths, out):
    """Write predictions for the rows of a table in files, to the file `out` or to standard output."""
    if out is not None:
        require_writable(out)
    table = tables.open_table(paths)
    machine = models.load(model)
    table = tables.for_machine(table, machine)
    encoder, unseen = machine._fitted.encoder, defaultdict(set)
    with nullcontext(sys.stdout.buffer) if out is None else written(out) as target, closing(_Writer(target)) as writer:
        for X in tables.read_in_blocks(table):
            writer.write(_predictions(machine, X))
            for name, values in encoder.unseen(machine, X):
                unseen[name].update(values)
        if writer.is_empty:
            raise ValueError("The table has no rows.")
    for name, values in unseen.items():
        say(f"warning: {name} holds {_listed(values)}, which the machine has not seen; they match no other category.")


def _predictions(machine, X):
    """Arrow table of predictions, and of the probabilities of the classes."""
    import pyarrow as pa

    predicted = machine.predict(X)
    if predicted.ndim == 2:  # several targets
        columns = {f"prediction_{k}": values for k, values in enumerate(predicted.T)}
    else:
        columns = {"prediction": predicted}
    if hasattr(machine, "predict_proba"):
        columns |= {f"probability_{label}": p for label, p in zip(machine.classes_, machine.predict_proba(X).T)}
    return pa.table({name: np.ascontiguousarray(values) for name, values in columns.items()})


class _Writer:
    """Writes Arrow tables to a stream or a file: Parquet by the ending of its name, else CSV."""

    def __init__(self, target):
        self._target = target
        self._writer: Any = None

    @property
    def is_empty(self):
        return self._writer is None

    def write(self, table):
        if self._writer is None:
            self._writer = self._opened(table.schema)
        self._writer.write_table(table)

    def _opened(self, schema):
        if str(getattr(self._target, "suffix", "")) in _PARQUET:
            from pyarrow.parquet import ParquetWriter

            return ParquetWriter(self._target, schema)
        from pyarrow.csv import CSVWriter

        return CSVWriter(self._target, schema)

    def close(self):
        if self._writer is not None:
            self._writer.close()


def _listed(values):
    shown = sorted(values, key=str)[:_SHOWN]
    more = f" and {len(values) - len(shown)} more" if len(values) > len(shown) else ""
    return ", ".join(map(repr, shown)) + more
