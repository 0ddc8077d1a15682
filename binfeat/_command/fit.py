"""``binfeat fit``."""

from binfeat._command import tables
from binfeat._command.messages import say, shown_progress
from binfeat._command.models import save
from binfeat._common.whole_files import require_writable
from binfeat._machine.files import skops_io
from binfeat.machine import KernelMachineClassifier, KernelMachineRegressor

_MACHINES = {"regression": KernelMachineRegressor, "classification": KernelMachineClassifier}


def fit(paths, target, task, model, seconds):
    """Fit a machine to a table in files, and write it to the file `model`."""
    require_writable(model)
    table = tables.open_table(paths)
    guessed, words = tables.task_of(table, target)
    skops_io()  # fails here rather than after a long fit
    task = guessed if task is None else task
    say(f"{task}: the target {target!r} holds {words}.")
    machine = _MACHINES[task](max_seconds=seconds, random_state=0)
    with shown_progress(machine):
        machine.fit(*tables.training_rows(table, target))
    save(machine, target, model)
    print(machine.summary())
    say(f"the machine is in {model}.")
