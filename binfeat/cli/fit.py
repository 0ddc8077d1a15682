"""``binfeat fit``."""

from pathlib import Path

from binfeat._common.load import skops_io
from binfeat._common.printable import printable_lines
from binfeat._rows.datasets import is_table_name
from binfeat.cli import tables
from binfeat.cli.messages import say, shown_progress
from binfeat.cli.models import require_finite, save
from binfeat.cli.outputs import require_output
from binfeat.cli.tables import TextOptions
from binfeat.models.classifier import KernelMachineClassifier
from binfeat.models.regressor import KernelMachineRegressor

_MACHINES: dict[str, type[KernelMachineRegressor | KernelMachineClassifier]] = {
    "regression": KernelMachineRegressor,
    "classification": KernelMachineClassifier,
}


def fit(
    paths: list[Path], text: TextOptions, target: str, task: str | None, model: Path, seconds: float | None
) -> None:
    """Fit a model to a table in files, and write it to the file `model`."""
    require_output(model, *paths)
    if is_table_name(model):
        raise ValueError(f"{model} has the ending of a table. Pass another name by --model, such as model.skops.")
    table = tables.open_table(paths, text)
    guessed, words = tables.task_of(table, target)
    skops_io()  # a missing package should fail before a long fit
    task = guessed if task is None else task
    say(f"{task}: the target {target!r} contains {words}.")
    machine = _MACHINES[task](max_seconds=seconds, random_state=0)
    with shown_progress(machine):
        machine.fit(*tables.training_rows(table, target))
    require_finite(machine)
    save(machine, target, model)
    print(printable_lines(machine.summary()))
    say(f"model saved to {model}.")
