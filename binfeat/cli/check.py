"""``binfeat check``."""

from binfeat._common.printable import printable_lines
from binfeat.cli.outputs import opened
from binfeat.models.table.findings import Findings

_NEW = 3  # exit code


def check(model, paths, text):
    """Print what the rows of a table in files have that the machine had not seen in fit; the exit code says if any."""
    machine, blocks = opened(model, paths, text)
    found = sum(map(machine.check, blocks), Findings())
    if not found.n_rows:
        raise ValueError("The table has no rows.")
    print(printable_lines(found))
    return _NEW if found else 0
