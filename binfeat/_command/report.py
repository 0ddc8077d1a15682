"""``binfeat report``."""

from binfeat._command import models, tables
from binfeat._command.messages import say
from binfeat._common.whole_files import require_writable


def report(model, paths):
    """Write a page about the machine in a file, with its errors on the rows of a table if there is one."""
    machine = models.load(model)
    page = model.with_suffix(".html")
    require_writable(page)
    rows: list = []
    if paths:
        target = models.target_of(machine, model)
        *rows, n_rows = tables.sample_with_target(tables.for_machine(tables.open_table(paths), machine, target), target)
        if n_rows > len(rows[1]):
            say(f"the report is of {len(rows[1]):,} of the {n_rows:,} rows, drawn at random.")
    machine.report(page, *rows)
    say(f"the report is in {page}.")
