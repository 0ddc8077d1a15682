"""``binfeat predict``."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from binfeat.cli.outputs import finding_news, opened, write
from binfeat.cli.tables import TextOptions
from binfeat.models.estimator import KernelMachineBase

if TYPE_CHECKING:
    import pyarrow as pa


def predict(model: Path, paths: list[Path], text: TextOptions, out: Path | None) -> None:
    """Write predictions for the rows of a table in files, to the file `out` or to standard output."""
    machine, blocks = opened(model, paths, text, out)
    with finding_news(machine, blocks) as blocks:
        write(_predictions(machine, blocks), out)


def _predictions(machine: KernelMachineBase, blocks: "Iterator[pa.Table]") -> "Iterator[pa.Table]":
    """Yield Arrow tables of predictions, and of class probabilities."""
    import pyarrow as pa

    for X in blocks:
        predicted = machine.predict(X)
        if predicted.ndim == 2:  # several targets
            columns = {f"prediction_{k}": values for k, values in enumerate(predicted.T)}
        else:
            columns = {"prediction": predicted}
        if hasattr(machine, "predict_proba"):
            columns |= {f"probability_{label}": p for label, p in zip(machine.classes_, machine.predict_proba(X).T)}
        yield pa.table({name: np.ascontiguousarray(values) for name, values in columns.items()})
