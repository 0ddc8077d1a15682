"""``binfeat explain``."""

from itertools import count

import numpy as np

from binfeat.cli import tables
from binfeat.cli.outputs import finding_news, opened, write

_MOST_BACKGROUND = 300  # rows; seconds grow with them


def explain(model, paths, text, background, out):
    """Write the Shapley values of the rows of a table in files, to the file `out` or to standard output.

    They are relative to rows of the file `background`, or to those that the machine keeps.
    """
    machine, blocks = opened(model, paths, text, out, background)
    others = None if background is None else _rows_of(background, machine, text)
    with finding_news(machine, blocks) as blocks:
        write((_explained(machine, X, others) for X in blocks), out)


def _rows_of(path, machine, text):
    """Some rows of a table in a file, as the machine takes them."""
    rows, _ = tables.sample(tables.for_machine(tables.open_table([path], text), machine), _MOST_BACKGROUND)
    return rows


def _explained(machine, X, background):
    """An Arrow table of the base value, and of the value of each input; of several outputs one after the other."""
    import pyarrow as pa

    found = machine.shapley_values(X, background)
    values, base = found.values, found.base_values
    if base.ndim == 1:
        outputs = {"": (values, base)}
    else:
        words = getattr(machine, "classes_", range(base.shape[1]))
        outputs = {f"_{word}": (values[:, :, k], base[:, k]) for k, word in enumerate(words)}
    columns, names = [], []
    for suffix, (own, mean) in outputs.items():
        columns += [mean, *own.T]
        names += [f"{name}{suffix}" for name in ("base", *found.feature_names)]
    return pa.table([np.ascontiguousarray(column) for column in columns], _unique(names))


def _unique(names):
    """Names in their order; a name that occurs again gets the first number, from 2, which makes it a new name."""
    taken, own = set(names), dict[str, None]()
    for name in names:
        new = name
        if name in own:
            new = next(numbered for k in count(2) if (numbered := f"{name}_{k}") not in taken)
        taken.add(new)
        own[new] = None
    return list(own)
