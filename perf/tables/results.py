"""Results of one model on one split of one table, each in a JSON file."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from perf import record
from perf.tables.splitting import is_regression

FOLDER = record.FOLDER / "tables"
_REGRESSION_FLOOR = 0.05  # percent


@dataclass(frozen=True)
class Result:
    """One model on one split.

    Parameters
    ----------
    table, who : str
    split : int
    failed : str or None
        Reason for missing figures.
    error : float
        Wrong labels, or root mean squared error divided by the standard deviation of the test targets, in percent.
    floor : float
        An error that cannot be distinguished from 0: half a test row, or 0.05 %. It is added to both errors of a ratio.
    fit, predict : float
        Seconds.
    memory : float or None
        Peak of fit and predictions in megabytes, minus the memory of the process before.
    regression : bool
    n_train, n_inputs : int
    n_classes : int
        0 for numbers.
    categories, missing : bool
        True if inputs have them.
    log_loss, auc_loss : float or None
        Losses of probabilities, if the model has some; `auc_loss` is 1 - AUC.
    n_trials : int or None
        Trials of models that try several settings.
    """

    table: str
    who: str
    split: int
    failed: str | None = None
    error: float | None = None
    floor: float | None = None
    fit: float | None = None
    predict: float | None = None
    regression: bool | None = None
    n_train: int | None = None
    n_inputs: int | None = None
    memory: float | None = None
    n_classes: int | None = None
    categories: bool | None = None
    missing: bool | None = None
    log_loss: float | None = None
    auc_loss: float | None = None
    n_trials: int | None = None

    def __str__(self):
        figures = f"{self.error:.4g} %, fit {self.fit:.3g} s, predict {self.predict:.3g} s" if not self.failed else ""
        return f"{self.table}, {self.who}, split {self.split}: {figures or f'FAILED, {self.failed}'}"

    def on(self, split):
        """Return the same result for another split."""
        return replace(self, split=split)


def error_of(predictions, y):
    """Return the error in percent, and its floor."""
    if is_regression(y):
        return 100 * float(np.sqrt(np.mean((predictions - y) ** 2)) / y.std()), _REGRESSION_FLOOR
    return 100 * float(np.mean(predictions != y)), 100 * 0.5 / len(y)


def keep(result, folder):
    """Write the file of a result atomically."""
    record.write(folder / f"{result.table}.{result.who}.{result.split}.json", asdict(result))


def kept(folder):
    """Read all results of a folder.

    Returns
    -------
    results : dict of (str, str, int) to Result
        Results by table, model and split.

    Raises
    ------
    RecordError
        If a file is not a result.
    """
    found = [_read(path) for path in sorted(Path(folder).glob("*.json"))]
    return {(result.table, result.who, result.split): result for result in found}


def _read(path):
    try:
        return Result(**json.loads(path.read_text()))
    except (ValueError, TypeError) as error:
        raise record.RecordError(f"{path} is not a result, delete it: {error!r}") from error
