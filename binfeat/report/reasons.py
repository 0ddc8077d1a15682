"""Shapley values of some rows for the report."""

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
    output: str  # name of the output for a sentence

    @property
    def farthest(self) -> int:
        """Row number of the prediction with the largest distance from its base value."""
        return int(np.argmax(np.abs(self.values.sum(axis=1))))


def reasons_of(model, table):
    """Compute the Shapley values of some encoded rows, for the first target or the last class."""
    fitted = model._fitted
    table = thinned(table, _ROWS)
    rows = fitted.scaled(table)
    try:
        background = background_of(fitted)
    except ValueError:  # the model stores no rows
        background = thinned(rows, _BACKGROUND)
    found = contributions(fitted, rows, background, _PERMUTATIONS, 0, model.n_jobs).in_units_of(fitted.targets)
    data, values, base = table[:, : model.n_features_in_], found.values[:, :, -1], found.base[:, -1]
    if is_classifier(model):
        return Reasons(values, base, data, f"the score of {model.classes_[-1]}")
    output = "the prediction" if fitted.targets.is_plain else "the transformed prediction"
    return Reasons(values, base, data, output)
