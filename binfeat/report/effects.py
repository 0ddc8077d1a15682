"""Effects of inputs: partial dependence (Friedman 2001), with the values of the inputs in all rows."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import is_classifier

from binfeat._common.subsets import thinned
from binfeat.models.target.targets import as_columns

_INPUTS, _ROWS, _POINTS, _LEVELS, _CLASSES = 6, 100, 25, 10, 4


@dataclass(frozen=True, eq=False)
class Effect:
    """Mean prediction of some rows, in all of which one input has the same value."""

    name: str
    kind: str  # "numbers", "dates" or "categories"
    values: np.ndarray  # (n_points,), numbers or days
    levels: list  # names of the values of a categorical input
    means: np.ndarray  # (n_points, n_outputs)
    what: str  # name of the mean prediction
    outputs: list  # names of the columns of means
    rows: np.ndarray  # values of the input in all rows


def effects_of(machine, table, names):
    """Effects of the most important inputs on predictions, or on the probabilities of some classes."""
    importances = machine.feature_importances_
    chosen = [j for j in np.argsort(-importances, kind="stable")[:_INPUTS] if importances[j] > 0]
    found = []
    for j in chosen:
        parts = [(place, f"{names[j]}, {part}") for place, part in machine._fitted.encoder.parts_of(j)]
        found += [_effect(machine, table, place, name) for place, name in [(j, names[j]), *parts]]
    return found


def _effect(machine, table, j, name):
    """The effect of a column inside the machine: a date may change while its hour does not."""
    fitted, column = machine._fitted, table[:, j]
    encoder = fitted.encoder
    levels: list = []
    if encoder.categorical[j]:
        codes, counts = np.unique(column, return_counts=True)
        values = np.sort(codes[np.argsort(-counts, kind="stable")][:_LEVELS])
        levels, kind = [encoder.level(j, int(code)) for code in values], "categories"
    else:
        values = np.unique(np.quantile(column, np.linspace(0.01, 0.99, _POINTS)))
        kind = "dates" if j < encoder.times.size and encoder.times[j].startswith("dates") else "numbers"
    background = thinned(table, _ROWS)
    outputs, what, words = _outputs(machine)
    tables = (fitted.scaled(encoder.with_value(background, j, value)) for value in values)
    means = [outputs(fitted.scores(rows, machine.n_jobs)) for rows in tables]
    return Effect(name, kind, values, levels, np.array([mean.mean(axis=0) for mean in means]), what, words, column)


def _outputs(machine):
    """A function from scores to outputs (n_rows, n_outputs), the name of the outputs, and names of the columns."""
    if not is_classifier(machine):
        targets = machine._fitted.targets
        words = [f"target {k}" for k in range(targets.mean.size)]
        return (lambda scores: as_columns(targets.decode(scores))), "prediction", words
    classes = machine.classes_
    if isinstance(classes, list):
        words = [str(own[-1]) for own in classes]
        return (lambda scores: _last(machine._fitted.targets.probabilities(scores))), "probability", words
    chosen = [1] if classes.size == 2 else list(range(min(classes.size, _CLASSES)))
    words = [str(classes[k]) for k in chosen]
    what = f"probability of {words[0]}" if len(words) == 1 else "probability"
    return (lambda scores: machine._fitted.targets.probabilities(scores)[:, chosen]), what, words


def _last(probabilities):
    """Of the last class of each column of labels."""
    return np.column_stack([own[:, -1] for own in probabilities])
