"""``binfeat report``."""

from pathlib import Path

from binfeat.cli import models, tables
from binfeat.cli.messages import say
from binfeat.cli.outputs import require_output
from binfeat.cli.tables import TextOptions


def report(model: Path, paths: list[Path], text: TextOptions) -> None:
    """Write a report on the model in a file, with errors on the rows of a table if there is one."""
    machine = models.load(model)
    page = model.with_suffix(".html")
    require_output(page, model, *paths)
    rows: list = []
    if paths:
        target = models.target_of(machine, model)
        table = tables.for_machine(tables.open_table(paths, text), machine, target)
        *rows, n_rows = tables.sample_with_target(table, target)
        if n_rows > len(rows[1]):
            say(f"the report uses a random sample of {len(rows[1]):,} of the {n_rows:,} rows.")
    machine.report(page, *rows)
    say(f"report saved to {page}.")
