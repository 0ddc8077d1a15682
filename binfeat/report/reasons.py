"""Shapley values of some rows: what each input adds to their predictions."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import is_classifier

from binfeat._common.subsets import thinned
from binfeat.models.explained.shapley import background_of, contributions

_ROWS, _BACKGROUND, _PERMUTATIONS = 200, 100, 2  # permutations where values are sampled


@dataclass(frozen=True, eq=False)
class Reasons:
    """Shapley values of one output."""

    values: np.ndarray  # (n_rows, n_inputs)
    base: np.ndarray  # (n_rows,)
    data: np.ndarray  # (n_rows, n_inputs), numbers and codes
    what: str  # the output in words

    @property
    def farthest(self) -> int:
        """The row whose prediction is farthest from its base value."""
        return int(np.argmax(np.abs(self.values.sum(axis=1))))


def reasons_of(machine, table):
    """Those of some encoded rows, for the first target, or for the last class."""
    fitted = machine._fitted
    table = thinned(table, _ROWS)
    rows = fitted.scaled(table)
    try:
        background = background_of(fitted)
    except ValueError:  # it keeps no rows
        background = thinned(rows, _BACKGROUND)
    found = contributions(fitted, rows, background, _PERMUTATIONS, 0, machine.n_jobs).in_units_of(fitted.targets)
    data, values, base = table[:, : machine.n_features_in_], found.values[:, :, -1], found.base[:, -1]
    if is_classifier(machine):
        return Reasons(values, base, data, f"the score of {machine.classes_[-1]}")
    word = "transformed predictions" if not fitted.targets.is_plain else "predictions"
    return Reasons(values, base, data, word)
