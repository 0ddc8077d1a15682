"""``binfeat explain``."""

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from binfeat.cli import tables
from binfeat.cli.outputs import finding_news, opened, write
from binfeat.cli.tables import TextOptions
from binfeat.models.estimator import KernelMachineBase

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_BACKGROUND = 300  # rows; the time is proportional to their number


def explain(model: Path, paths: list[Path], text: TextOptions, background: Path | None, out: Path | None) -> None:
    """Write the Shapley values of the rows of a table in files, to the file `out` or to standard output.

    They are relative to rows of the file `background`, or to training rows that the model stores.
    """
    machine, blocks = opened(model, paths, text, out, background)
    others = None if background is None else _rows_of(background, machine, text)
    with finding_news(machine, blocks) as blocks:
        write((_explained(machine, X, others) for X in blocks), out)


def _rows_of(path: Path, machine: KernelMachineBase, text: TextOptions) -> "pa.Table":
    """Read some rows of a table in a file, with the columns and types that the model requires."""
    rows, _ = tables.sample(tables.for_machine(tables.open_table([path], text), machine), _MOST_BACKGROUND)
    return rows


def _explained(machine: KernelMachineBase, X: "pa.Table", background: "pa.Table | None") -> "pa.Table":
    """Return an Arrow table of the base value and the values of all inputs, one output after the other."""
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


def _unique(names: list[str]) -> list[str]:
    """Make names unique: a repeated name gets the first number, from 2, that makes it a new name."""
    taken, own = set(names), dict[str, None]()
    for name in names:
        new = name
        if name in own:
            new = next(numbered for k in count(2) if (numbered := f"{name}_{k}") not in taken)
        taken.add(new)
        own[new] = None
    return list(own)
