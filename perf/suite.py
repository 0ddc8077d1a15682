"""The cases by name; a case that fails does not stop the others."""

import argparse
import ast
import json
import pkgutil
import sys
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from perf import cases, record
from perf.data import MissingDataError

_UNFINISHED = "unfinished"


class _Cases(Mapping):
    """Modules of the cases by name, imported on demand."""

    def __iter__(self):
        return (module.name for module in pkgutil.iter_modules(cases.__path__))

    def __len__(self):
        return len(list(iter(self)))

    def __getitem__(self, name):
        return import_module(f"perf.cases.{name}")

    def summary(self, name):
        """Return the first docstring line of a case, without an import: a package that it needs can be missing."""
        return ast.get_docstring(ast.parse(Path(cases.__path__[0], f"{name}.py").read_text())).splitlines()[0]


CASES = _Cases()


def names_among(known):
    """Return a parser of comma-separated names, which refuses unknown names."""

    def names(text):
        unknown = [name for name in text.split(",") if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are: {', '.join(known)}")
        return text.split(",")

    return names


def guarded(what, part, *arguments):
    """Yield the rows of a part of a case; if it fails, the last row contains the error.

    Parameters
    ----------
    what : str
    part : callable
        From `arguments` to an iterable of rows.
    """
    try:
        yield from part(*arguments)
    except MissingDataError as error:
        yield record.Row(what, None, error=str(error))
    except ModuleNotFoundError as error:
        package = (error.name or str(error)).partition(".")[0]
        yield record.Row(
            what, None, error=f"needs the package {package}, which is not installed: pip install {package}"
        )
    except Exception as error:
        yield record.failed(what, error)


def continued(case, what, part, *arguments, folder):
    """Yield the rows of a part of a long case, as `guarded` does; finished parts are stored in files.

    A case is long if its `LONG` is true. Its `run` then has a keyword `of_part`, which is this function in full runs.
    Rows are printed as soon as they are measured.

    Parameters
    ----------
    case, what : str
        Names of the case and of the part.
    part : callable
        From `arguments` to an iterable of rows.
    folder : pathlib.Path
        Folder of the records. The files are in its folder `unfinished` until a run of the case has no failure.
    """
    path = folder / _UNFINISHED / f"{case}.{what}.json"
    made_by = {"cpu": record.cpu_model(), "binfeat": version("binfeat")}
    kept = json.loads(path.read_text()) if path.exists() else {}
    if {name: kept.get(name) for name in made_by} == made_by:
        yield from map(record.Row.from_dict, kept["rows"])
        return
    rows = []
    for row in guarded(what, part, *arguments):
        rows.append(row)
        yield row
    if all(row.error is None for row in rows):
        record.write(path, made_by | {"rows": [row.as_dict() for row in rows]})


def run(names, quick, options=None, cases=CASES, folder=record.FOLDER):
    """Run cases one after the other, print their tables and write their records.

    Parameters
    ----------
    names : list of str
    quick : bool
    options : dict of str to dict, default=None
        Further keywords of cases. A run with a keyword in the `NARROWING` of the case measures only a part of the case,
        and is not recorded.
    cases : Mapping of str to module
    folder : pathlib.Path
        Folder of the records.

    Returns
    -------
    failed : list of str
        Cases with a failed part, or with a record that could not be written.
    """
    return [name for name in names if not _run_one(name, cases, quick, (options or {}).get(name, {}), folder)]


def _imported(name, cases):
    """Return the module of a case, or None if a package that it needs is missing."""
    try:
        return cases[name]
    except ModuleNotFoundError:
        return None


def has_options(name, cases):
    """Return True if a case has options of its own."""
    return hasattr(_imported(name, cases), "add_options")


def _run_one(name, cases, quick, options, folder):
    case = _imported(name, cases)
    narrowed = any(options.get(key) for key in getattr(case, "NARROWING", ()))
    is_long = getattr(case, "LONG", False)
    keeps_parts = is_long and not quick and not narrowed
    more = {"of_part": partial(continued, name, folder=folder)} if keeps_parts else {}
    rows = []
    for row in guarded(name, lambda: cases[name].run(quick, **options, **more)):
        if is_long:
            print(*row.cells, flush=True)
        rows.append(row)
    print(record.table(name, rows, quick), flush=True)
    ok = all(row.error is None for row in rows)
    if narrowed:
        print("Not recorded, since it is a part of the case only.\n", flush=True)
        return ok
    try:
        recorded_as = getattr(case, "recorded_as", lambda **_: name)  # some options have separate records
        print(f"Recorded in {record.save(recorded_as(**options), rows, quick, folder)}\n", flush=True)
    except record.RecordError as error:
        print(error, file=sys.stderr)
        return False
    for path in (folder / _UNFINISHED).glob(f"{name}.*.json") if keeps_parts and ok else ():
        path.unlink()
    return ok
