"""Effects of inputs, and Shapley values of some rows, for the report."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
from sklearn.base import is_classifier

from binfeat._common.labels import Labels
from binfeat._common.subsets import thinned
from binfeat.models.served.estimator import ServedModelBase
from binfeat.models.served.shapley import background_of, contributions, in_units_of
from binfeat.models.table.inputs import name_of_category
from binfeat.models.table.targets import Targets, as_columns


@dataclass(frozen=True, eq=False)
class Effect:
    """Mean prediction of some rows as a function of one input, which has the same value in all of them."""

    name: str
    kind: str  # "numbers", "dates" or "categories"
    values: np.ndarray  # (n_points,), numbers or days
    levels: list[str]  # names of the values of a categorical input
    means: np.ndarray  # (n_points, n_outputs)
    output_name: str  # label of the vertical axis
    outputs: list[str]  # names of the columns of means
    rows: np.ndarray  # values of the input in all rows


def effects_of(model: ServedModelBase, table: np.ndarray, names: list[str]) -> list[Effect]:
    """Compute the effects of the most important inputs on predictions, or on the probabilities of some classes."""
    importances = model.feature_importances_
    chosen = [j for j in np.argsort(-importances, kind="stable")[:6] if importances[j] > 0]
    found = []
    for j in chosen:
        encoder = model._fitted.encoder
        known = enumerate(zip(encoder.dates, encoder.parts.tolist()), encoder.inputs.n_inputs)
        parts = [(place, f"{names[j]}, {part}") for place, (date, part) in known if date == j]
        found += [_effect(model, table, place, name) for place, name in [(j, names[j]), *parts]]
    return found


def _effect(model: ServedModelBase, table: np.ndarray, j: int, name: str) -> Effect:
    """Compute the effect of one encoded column; a date has several, and only one of them is changed."""
    fitted, column = model._fitted, table[:, j]
    encoder = fitted.encoder
    levels: list[str] = []
    if encoder.categorical[j]:
        codes, counts = np.unique(column, return_counts=True)
        values = np.sort(codes[np.argsort(-counts, kind="stable")][:10])
        known, times = encoder.inputs.categories[j], str(encoder.inputs.times[j])
        levels, kind = [name_of_category(known, int(code), times) for code in values], "categories"
    else:
        values = np.unique(np.quantile(column, np.linspace(0.01, 0.99, 25)))
        kind = "dates" if j < encoder.inputs.n_inputs and encoder.inputs.times[j].startswith("dates") else "numbers"
    background = thinned(table, 100)
    outputs, label, words = _outputs(model)
    tables = (fitted.scaled(encoder.with_value(background, j, value)) for value in values)
    means = [outputs(fitted.scores(rows, model.n_jobs)) for rows in tables]
    return Effect(name, kind, values, levels, np.array([mean.mean(axis=0) for mean in means]), label, words, column)


def _outputs(model: ServedModelBase) -> tuple[Callable[[np.ndarray], np.ndarray], str, list[str]]:
    """Return a function from scores to outputs (n_rows, n_outputs), their label, and the names of their columns."""
    if not is_classifier(model):
        targets = cast(Targets, model._fitted.targets)
        words = [f"target {k}" for k in range(targets.mean.size)]
        return (lambda scores: as_columns(targets.decode(scores))), "prediction", words
    classes, labels = model.classes_, cast(Labels, model._fitted.targets)
    chosen = [1] if classes.size == 2 else list(range(min(classes.size, 4)))
    words = [str(classes[k]) for k in chosen]
    label = f"probability of {words[0]}" if len(words) == 1 else "probability"
    return (lambda scores: labels.probabilities(scores)[:, chosen]), label, words


@dataclass(frozen=True, eq=False)
class Reasons:
    values: np.ndarray  # (n_rows, n_inputs)
    base: np.ndarray  # (n_rows,)
    data: np.ndarray  # (n_rows, n_inputs), numbers and codes
    output: str  # name of the output for a sentence

    @property
    def farthest(self) -> int:
        """Row number of the prediction with the largest distance from its base value."""
        return int(np.argmax(np.abs(self.values.sum(axis=1))))


def reasons_of(model: ServedModelBase, table: np.ndarray) -> Reasons:
    """Compute the Shapley values of some encoded rows, for the first target or the last class."""
    fitted = model._fitted
    table = thinned(table, 200)
    rows = fitted.scaled(table)
    try:
        background = background_of(fitted)
    except ValueError:  # the model stores no rows
        background = thinned(rows, 100)
    values, base, _ = in_units_of(fitted.targets, contributions(fitted, rows, background, 2, 0, model.n_jobs))
    data, values, base = table[:, : model.n_features_in_], values[:, :, -1], base[:, -1]
    if is_classifier(model):
        return Reasons(values, base, data, f"the score of {model.classes_[-1]}")
    output = "the prediction" if cast(Targets, fitted.targets).is_plain else "the transformed prediction"
    return Reasons(values, base, data, output)
