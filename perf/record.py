"""Rows of a case: their table, misses first, and their record in JSON."""

import json
import operator
import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numba

from perf.measure import Times

FOLDER = Path(__file__).parent / "records"
_HEADER = ("what", "ours", "reference", "measured", "reach", "")
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "binfeat")
_SIGNS = {">=": operator.ge, "<=": operator.le}


@dataclass(frozen=True)
class Row:
    """A figure of ours, maybe beside a reference's, maybe with a figure to reach.

    With a reference, what is measured is a ratio: reference / ours (how many times faster), or
    ours / reference when the reach is an upper bound. Without, it is our figure itself. None is a
    figure that this system cannot measure. `at` holds the coordinates of a point that is also drawn,
    such as ``{"panel": "P", "series": "learned", "x": 50}``.
    """

    what: str
    ours: Times | float | None
    reference: Times | float | None = None
    reach: tuple[str, float] | None = None
    unit: str = "s"
    at: dict | None = None

    @property
    def measured(self):
        ours, reference = _value(self.ours), _value(self.reference)
        if ours is None or reference is None:
            return ours
        return ours / reference if self.reach is not None and self.reach[0] == "<=" else reference / ours

    @property
    def ok(self):
        """Whether the reach is met; None where there is none or nothing was measured."""
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
            reach = f"{sign} {bound:g}{' ' + self.unit if self.reference is None else 'x'}"
        verdict = {True: "ok", False: "MISSED", None: "" if self.reach is None else "not measured"}[self.ok]
        return self.what, self._text(self.ours), self._text(self.reference), ratio, reach, verdict

    def _text(self, figure):
        if figure is None:
            return ""
        repeated = isinstance(figure, Times) and len(figure.seconds) > 1
        spread = f" ({figure.spread:.2f})" if repeated else ""
        return f"{_digits(_value(figure))} {self.unit}{spread}"

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


def table(name, rows, quick):
    """Lay out the rows as text, those that miss their reach first."""
    ordered = sorted(rows, key=lambda row: row.ok is not False)
    lines = [_HEADER, *(row.cells for row in ordered)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(_HEADER))]
    missed = sum(row.ok is False for row in rows)
    aimed = sum(row.ok is not None for row in rows)
    return "\n".join(
        [
            f"{name}{' (quick: figures mean little)' if quick else ''}: {missed} of {aimed} figures MISSED",
            "Times are the minimum of the rounds, with median / minimum in brackets.",
            *(" | ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip(" |") for line in lines),
        ]
    )


def _cpu_model():
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return platform.processor() or platform.machine()


def _threads():
    threads = {"count": numba.get_num_threads(), "layer": None}
    with suppress(ValueError):  # no parallel kernel has run
        threads["layer"] = numba.threading_layer()
    return threads


def save(name, rows, quick):
    """Write the record of a run.

    Returns
    -------
    path : pathlib.Path
    """
    now = datetime.now(UTC)
    content = {
        "case": name,
        "quick": quick,
        "time": now.isoformat(timespec="seconds"),
        "machine": {"cpu": _cpu_model(), "cores": os.cpu_count(), "system": platform.platform()},
        "versions": {"python": platform.python_version(), **{package: version(package) for package in _PACKAGES}},
        "threads": _threads(),
        "rows": [row.as_dict() for row in rows],
    }
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}-{now:%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path
