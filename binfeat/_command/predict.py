"""``binfeat predict``."""

from collections import defaultdict

import numpy as np

from binfeat._command.messages import say
from binfeat._command.outputs import opened, write

_SHOWN = 3  # unknown categories that a warning names


def predict(model, paths, out):
    """Write predictions for the rows of a table in files, to the file `out` or to standard output."""
    machine, blocks = opened(model, paths, out)
    unseen: dict = defaultdict(set)
    write(_predictions(machine, blocks, unseen), out)
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


def _listed(values):
    shown = sorted(values, key=str)[:_SHOWN]
    more = f" and {len(values) - len(shown)} more" if len(values) > len(shown) else ""
    return ", ".join(map(repr, shown)) + more
