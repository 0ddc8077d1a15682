"""``binfeat predict``."""

import numpy as np

from binfeat._command.messages import say
from binfeat._command.outputs import opened, write
from binfeat._machine.table.findings import Attention


def predict(model, paths, out):
    """Write predictions for the rows of a table in files, to the file `out` or to standard output."""
    machine, blocks = opened(model, paths, out)
    attention = Attention(machine.on_unseen)
    if machine.on_unseen == "warn":  # once, at the end, as a table
        machine.on_unseen = "ignore"
        blocks = _checked(machine, blocks, attention.note)
    write(_predictions(machine, blocks), out)
    if attention.found:
        say("warning: the machine had not seen such values in fit:")
        for line in str(attention.found).splitlines():
            say(f"  {line}")


def _checked(machine, blocks, note):
    """The blocks as they are; `note` is called with what is new in them."""
    for X in blocks:
        note(machine.check(X))
        yield X


def _predictions(machine, blocks):
    """Arrow tables of predictions, and of the probabilities of the classes."""
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
