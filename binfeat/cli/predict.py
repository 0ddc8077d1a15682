"""``binfeat predict``."""

import numpy as np

from binfeat.cli.outputs import finding_news, opened, write


def predict(model, paths, text, out):
    """Write predictions for the rows of a table in files, to the file `out` or to standard output."""
    machine, blocks = opened(model, paths, text, out)
    with finding_news(machine, blocks) as blocks:
        write(_predictions(machine, blocks), out)


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
