"""Rows of a case, their table (missed goals first), and their record in JSON."""

import json
import operator
import os
import platform
import traceback
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numba

from perf.measure import Times

FOLDER = Path(__file__).parent / "records"  # all runs on this computer; git ignores them
RELEASED = Path(__file__).parent / "released"  # runs with figures in the documentation
HEADER = ("figure", "binfeat", "reference", "measured", "goal", "")
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "binfeat")
_SIGNS = {">=": operator.ge, "<=": operator.le}


@dataclass(frozen=True)
class Row:
    """A figure of binfeat, optionally with the figure of a reference and a goal.

    With a reference, the measured value is a ratio: reference / ours, or ours / reference if the goal is an upper
    bound. Without a reference, it is our figure. None is a figure that this system cannot measure. `at` contains the
    coordinates of a point in a picture, such as ``{"panel": "P", "series": "learned", "x": 50}``. `error` is the reason
    for a missing figure.
    """

    what: str
    ours: Times | float | None
    reference: Times | float | None = None
    reach: tuple[str, float] | None = None
    unit: str = "s"
    at: dict | None = None
    error: str | None = None

    @classmethod
    def from_dict(cls, kept):
        """Return the row of a dict from `as_dict`."""
        figures = {
            side: Times(tuple(kept["seconds"][side])) if side in kept["seconds"] else kept[side]
            for side in ("ours", "reference")
        }
        reach = None if kept["reach"] is None else tuple(kept["reach"])
        return cls(kept["what"], reach=reach, unit=kept["unit"], at=kept.get("at"), error=kept.get("error"), **figures)

    @property
    def measured(self):
        ours, reference = _value(self.ours), _value(self.reference)
        if ours is None or reference is None:
            return ours
        over, under = (ours, reference) if self.reach is not None and self.reach[0] == "<=" else (reference, ours)
        if under == 0:  # errors can be 0
            return 1.0 if over == 0 else float("inf")
        return over / under

    @property
    def ok(self):
        """True if the goal is met; None if there is no goal or no figure."""
        if self.reach is None or self.measured is None:
            return None
        sign, bound = self.reach
        return bool(_SIGNS[sign](self.measured, bound))

    @property
    def cells(self):
        ratio = "" if self.reference is None or self.measured is None else f"{_digits(self.measured)}x"
        reach = ""
        if self.reach is not None:
            sign, bound = self.reach
            reach = f"{sign} {bound:g}{' ' + self.unit if self.reference is None else 'x'}".rstrip()
        verdict = {True: "ok", False: "MISSED", None: "" if self.reach is None else "not measured"}[self.ok]
        return self.what, self._text(self.ours), self._text(self.reference), ratio, reach, verdict

    def _text(self, figure):
        if figure is None:
            return ""
        repeated = isinstance(figure, Times) and len(figure.seconds) > 1
        spread = f" ({figure.spread:.2f})" if repeated else ""
        return f"{_digits(_value(figure))} {self.unit}".rstrip() + spread

    def as_dict(self):
        return {
            "what": self.what,
            "unit": self.unit,
            "ours": _value(self.ours),
            "reference": _value(self.reference),
            "measured": self.measured,
            "reach": self.reach,
            "ok": self.ok,
            "at": self.at,
            "error": self.error,
            "seconds": {
                name: figure.seconds
                for name, figure in (("ours", self.ours), ("reference", self.reference))
                if isinstance(figure, Times)
            },
        }


def _value(figure):
    return figure.best if isinstance(figure, Times) else figure


def _digits(value):
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def failed(what, error):
    """Return the row of a part that raised, and print the traceback to stderr."""
    traceback.print_exception(error)
    return Row(what, None, error=f"{type(error).__name__}: {error}")


def misses_first(rows):
    """Return the rows with figures; rows that miss their goal come first."""
    return sorted((row for row in rows if row.error is None), key=lambda row: row.ok is not False)


def verdict(rows):
    """Return a sentence with the number of missed goals."""
    missed, aimed = sum(row.ok is False for row in rows), sum(row.ok is not None for row in rows)
    return f"{missed} of {aimed} figures MISSED"


def table(name, rows, quick):
    """Return the rows as text: first failures, then missed goals, then the others."""
    lines = [HEADER, *(row.cells for row in misses_first(rows))]
    widths = [max(len(line[k]) for line in lines) for k in range(len(HEADER))]
    return "\n".join(
        [
            f"{name}{' (quick: figures mean little)' if quick else ''}: {verdict(rows)}",
            *(f"FAILED {row.what}: {row.error}" for row in rows if row.error is not None),
            "Times are the minimum of the rounds, with median / minimum in brackets.",
            *(" | ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip(" |") for line in lines),
        ]
    )


def cpu_model(source=Path("/proc/cpuinfo")):
    """Return the name of the processor, its family and its model; on virtual computers, several share a name."""
    with suppress(OSError, KeyError):
        pairs = (line.partition(":") for line in source.read_text().splitlines())
        own = {key.strip(): value.strip() for key, _, value in pairs}
        return f"{own['model name']} (family {own['cpu family']}, model {own['model']})"
    return platform.processor() or platform.machine()


def _threads():
    threads = {"count": numba.get_num_threads(), "layer": None}
    with suppress(ValueError):  # no parallel kernel has run yet
        threads["layer"] = numba.threading_layer()
    return threads


class RecordError(Exception):
    """A record cannot be written, or a file is not a record."""


def save(name, rows, quick, folder=FOLDER):
    """Write the record of a run.

    Returns
    -------
    path : pathlib.Path

    Raises
    ------
    RecordError
        If the folder or the file cannot be written.
    """
    now = datetime.now(UTC)
    content = {
        "case": name,
        "quick": quick,
        "time": now.isoformat(timespec="seconds"),
        "machine": {"cpu": cpu_model(), "cores": os.cpu_count(), "system": platform.platform()},
        "versions": {"python": platform.python_version(), **{package: version(package) for package in _PACKAGES}},
        "threads": _threads(),
        "rows": [row.as_dict() for row in rows],
    }
    path = folder / f"{name}-{now:%Y%m%dT%H%M%SZ}.json"
    try:
        write(path, content)
    except OSError as error:
        raise RecordError(f"{path} cannot be written: {error}. Make room and run {name} again.") from error
    return path


def write(path, content):
    """Write a file of JSON atomically, and create its folder."""
    path.parent.mkdir(exist_ok=True, parents=True)
    unfinished = path.with_suffix(".part")
    try:
        unfinished.write_text(json.dumps(content, indent=1) + "\n")
        unfinished.replace(path)
    except OSError:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


@dataclass(frozen=True)
class Record:
    """The record of one run of a case."""

    content: dict

    @property
    def case(self):
        return self.content["case"]

    @property
    def rows(self):
        return [Row.from_dict(kept) for kept in self.content["rows"]]


def read(path):
    """Read a record.

    Raises
    ------
    RecordError
        If it cannot be read or is not a record.
    """
    try:
        record = Record(json.loads(path.read_text()))
        [row.cells for row in record.rows]
        return record
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise RecordError(f"{path} is not a record, delete it or run its case again: {error!r}") from error


def newest(*folders):
    """Return the newest full record of each case in some folders, and the errors of files that are not records.

    Returns
    -------
    records : dict of str to Record
    errors : list of RecordError
    """
    records, errors = {}, []
    for path in (path for folder in folders for path in sorted(folder.glob("*.json"))):  # names end with the time
        try:
            record = read(path)
        except RecordError as error:
            errors.append(error)
            continue
        known = records.get(record.case)
        if not record.content["quick"] and (known is None or known.content["time"] <= record.content["time"]):
            records[record.case] = record
    return dict(sorted(records.items())), errors


def release(records, folder=RELEASED):
    """Write the records of the figures in the documentation, one file per case."""
    for name, kept in records.items():
        write(folder / f"{name}.json", kept.content)
