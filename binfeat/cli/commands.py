"""The commands: each function is a command, and its parameters are the arguments."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from binfeat._common.load import skops_io
from binfeat._common.printable import printable_lines
from binfeat.cli import models, tables
from binfeat.cli.messages import say, shown_progress
from binfeat.cli.outputs import (
    opened,
    require_model_output,
    require_output,
    require_table_output,
    warning_of_differences,
    write,
)
from binfeat.cli.tables import TextOptions
from binfeat.density.detector import OutlierDetector
from binfeat.models.classifier import KernelMachineClassifier
from binfeat.models.estimator import KernelMachineBase
from binfeat.models.regressor import KernelMachineRegressor
from binfeat.models.served.estimator import TableCheck

if TYPE_CHECKING:
    import pyarrow as pa

_MACHINES: dict[str, type[KernelMachineRegressor | KernelMachineClassifier]] = {
    "regression": KernelMachineRegressor,
    "classification": KernelMachineClassifier,
}
_DIFFERENT = 3  # exit code of `check`
_MOST_BACKGROUND = 300  # rows; the time of `explain` is proportional to their number


def fit(
    paths: list[Path], text: TextOptions, target: str, task: str | None, model: Path, seconds: float | None
) -> None:
    """Fit a model to a table in files, and write it to the file `model`."""
    require_model_output(model, *paths)
    table = tables.open_table(paths, text)
    guessed, words = tables.task_of(table, target)
    skops_io()  # a missing package should fail before a long fit
    task = guessed if task is None else task
    say(f"{task}: the target {target!r} contains {words}.")
    fitted = _MACHINES[task](max_seconds=seconds, random_state=0)
    with shown_progress(fitted):
        fitted.fit(*tables.training_rows(table, target))
    models.require_finite(fitted)
    models.save(fitted, target, model)
    print(printable_lines(fitted.summary()))
    say(f"model saved to {model}.")


def predict(model: Path, paths: list[Path], text: TextOptions, out: Path | None) -> None:
    """Write predictions for the rows of a table in files, to the file `out` or to standard output."""
    fitted, blocks = opened(model, paths, text, out)
    with warning_of_differences(fitted, blocks) as blocks:
        write(_predictions(fitted, blocks), out)


def _predictions(fitted: KernelMachineBase, blocks: "Iterator[pa.Table]") -> "Iterator[pa.Table]":
    """Yield Arrow tables of predictions, and of class probabilities."""
    import pyarrow as pa

    for X in blocks:
        predicted = fitted.predict(X)
        if predicted.ndim == 2:  # several targets
            columns = {f"prediction_{k}": values for k, values in enumerate(predicted.T)}
        else:
            columns = {"prediction": predicted}
        if hasattr(fitted, "predict_proba"):
            classes, p = fitted.classes_, fitted.predict_proba(X)
            if isinstance(classes, list):  # several columns of labels
                classes = [f"{k}_{label}" for k, own in enumerate(classes) for label in own]
                p = np.hstack(p)
            columns |= {f"probability_{label}": values for label, values in zip(classes, p.T)}
        yield pa.table({name: np.ascontiguousarray(values) for name, values in columns.items()})


def check(model: Path, paths: list[Path], text: TextOptions) -> int:
    """Print how a table in files differs from the training rows; the exit code is 3 if it does."""
    fitted, blocks = opened(model, paths, text)
    compared = TableCheck(fitted)
    for X in blocks:
        compared.add(X)
    found = compared.findings
    if not found.n_rows:
        raise ValueError("The table has no rows. Pass a table with at least one row.")
    print(printable_lines(found))
    return _DIFFERENT if found or (found.drift is not None and found.drift.is_significant) else 0


def explain(model: Path, paths: list[Path], text: TextOptions, background: Path | None, out: Path | None) -> None:
    """Write the Shapley values of the rows of a table in files, to the file `out` or to standard output.

    They are relative to rows of the file `background`, or to training rows that the model stores.
    """
    fitted, blocks = opened(model, paths, text, out, background)
    others = None
    if background is not None:
        table = tables.for_model(tables.open_table([background], text), fitted)
        others, _ = tables.sample(table, _MOST_BACKGROUND)
    with warning_of_differences(fitted, blocks) as blocks:
        write((_explained(fitted, X, others) for X in blocks), out)


def _explained(fitted: KernelMachineBase, X: "pa.Table", background: "pa.Table | None") -> "pa.Table":
    """Return an Arrow table of the base value and the values of all inputs, one output after the other."""
    import pyarrow as pa

    found = fitted.shapley_values(X, background)
    values, base = found.values, found.base_values
    if base.ndim == 1:
        outputs = {"": (values, base)}
    else:
        words = getattr(fitted, "classes_", range(base.shape[1]))
        if isinstance(words, list):  # several columns of labels; two classes share one output
            words = [f"{k}_{label}" for k, own in enumerate(words) for label in (own if len(own) > 2 else own[1:])]
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


def report(model: Path, paths: list[Path], text: TextOptions) -> None:
    """Write a report on the model in a file, with errors on the rows of a table if there is one."""
    fitted = models.load(model)
    page = model.with_suffix(".html")
    require_output(page, model, *paths)
    rows: list = []
    if paths:
        target = models.target_of(fitted, model)
        table = tables.for_model(tables.open_table(paths, text), fitted, target)
        *rows, n_rows = tables.sample_with_target(table, target)
        if n_rows > len(rows[1]):
            say(f"the report uses a random sample of {len(rows[1]):,} of the {n_rows:,} rows.")
    fitted.report(page, *rows)
    say(f"report saved to {page}.")


def outliers(paths: list[Path], text: TextOptions, out: Path | None) -> None:
    """Write the score of each row of a table in files, and the column with the largest contribution for outliers."""
    import pyarrow as pa

    require_table_output(out, *paths)
    table = tables.read(tables.open_table(paths, text))
    if not len(table):
        raise ValueError("The table has no rows. Pass a table with at least one row.")
    names, columns, categorical = tables.as_numbers(table)
    X = np.column_stack(columns)
    detector = OutlierDetector(categorical_features=categorical, random_state=0).fit(X)
    scores = detector.score_samples(X)
    strange = scores < detector.offset_
    inputs = np.full(len(X), None, dtype=object)
    if strange.any():
        inputs[strange] = names[detector.contributions(X[strange]).argmax(axis=1)]
    found = {"score": scores, "outlier": strange, "strangest_input": pa.array(inputs.tolist(), pa.string())}
    write(iter([pa.table(found)]), out)
    say(f"{strange.sum():,} of {len(X):,} rows are outliers.")
