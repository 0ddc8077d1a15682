"""``binfeat check``."""

from binfeat._common.printable import printable_lines
from binfeat.cli.outputs import opened
from binfeat.models.table.findings import Findings

_DIFFERENT = 3  # exit code


def check(model, paths, text):
    """Print the differences between a table in files and the training rows; return 3 if there are any."""
    machine, blocks = opened(model, paths, text)
    found = sum(map(machine.check, blocks), Findings())
    if not found.n_rows:
        raise ValueError("The table has no rows. Pass a table with at least one row.")
    print(printable_lines(found))
    return _DIFFERENT if found else 0
