"""``binfeat explain``."""

import numpy as np

from binfeat._command.outputs import opened, write


def explain(model, paths, out):
    """Write the Shapley values of the rows of a table in files, to the file `out` or to standard output."""
    machine, blocks = opened(model, paths, out)
    write((_explained(machine, X) for X in blocks), out)


def _explained(machine, X):
    """An Arrow table of the base value, and of the value of each input; of several outputs one after the other."""
    import pyarrow as pa

    found = machine.shapley_values(X)
    values, base = found.values, found.base_values
    if base.ndim == 1:
        outputs = {"": (values, base)}
    else:
        words = getattr(machine, "classes_", range(base.shape[1]))
        outputs = {f"_{word}": (values[:, :, k], base[:, k]) for k, word in enumerate(words)}
    columns = {}
    for suffix, (own, mean) in outputs.items():
        columns[f"base{suffix}"] = mean
        columns |= {f"{name}{suffix}": own[:, j] for j, name in enumerate(found.feature_names)}
    return pa.table({name: np.ascontiguousarray(column) for name, column in columns.items()})
