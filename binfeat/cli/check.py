"""``binfeat check``."""

from pathlib import Path

from binfeat._common.printable import printable_lines
from binfeat.cli.outputs import opened
from binfeat.cli.tables import TextOptions
from binfeat.models.served.estimator import TableCheck

_DIFFERENT = 3  # exit code


def check(model: Path, paths: list[Path], text: TextOptions) -> int:
    """Print how a table in files differs from the training rows; the exit code is 3 if it does."""
    machine, blocks = opened(model, paths, text)
    compared = TableCheck(machine)
    for X in blocks:
        compared.add(X)
    found = compared.findings
    if not found.n_rows:
        raise ValueError("The table has no rows. Pass a table with at least one row.")
    print(printable_lines(found))
    return _DIFFERENT if found or (found.drift is not None and found.drift.is_significant) else 0
