"""Parts of the page of benchmarks, in reStructuredText, from the rows of a record."""

import math

from perf.text_tables import csv_table

_SURE = 0.05


def parts(content):
    """Return the parts of the page by name.

    Parameters
    ----------
    content : dict
        Content of a record of the case `tables`.

    Returns
    -------
    parts : dict of str to str
    """
    rows = content["rows"]
    found = {
        "models": _models(rows),
        "groups": _groups(rows),
        "seconds": _seconds(rows),
        "seeds": _seeds(rows),
        "tables": _tables(rows),
        "failures": _failures(rows),
    }
    return {name: text or "None.\n\n" for name, text in found.items()}


def _of_panel(rows, panel):
    return [row for row in rows if (row.get("at") or {}).get("panel") == panel]


def folded(title, text):
    """Return a part of the page that opens with a click on its title."""
    head, tail = (f".. raw:: html\n\n   {tag}\n\n" for tag in (f"<details><summary>{title}</summary>", "</details>"))
    return f"{head}{text}{tail}"


def _digits(value, digits=2):
    return "" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def _models(rows):
    """Return the table of Elo, ranks, time and memory of each model."""
    lines = []
    for row in sorted(_of_panel(rows, "elo"), key=lambda row: -row["ours"]):
        at = row["at"]
        interval = f"{at['low']:.0f} to {at['high']:.0f}"
        figures = (_digits(at[what], digits) for what, digits in _OF_MACHINES.values())
        lines.append((at["series"], f"{row['ours']:.0f}", interval, at["n"], at["failed"], *figures))
    header = ("", "Elo", "95 %", "tables", "failed", *_OF_MACHINES)
    return csv_table(header, lines) if lines else ""


_OF_MACHINES = {  # titles, and the figure and its digits
    "mean rank": ("rank", 2),
    "fit, s": ("fit", 2),
    "predict, s": ("predict", 3),
    "memory, MB": ("memory", 0),
    "trials": ("n_trials", 0),
}


def _groups(rows):
    """Return a folded table for each group of tables, with the ratios of our figures to the figures of each peer."""
    groups = {}
    for row in _of_panel(rows, "groups"):
        groups.setdefault(row["at"]["group"], []).append(row["at"])
    texts = []
    for name, own in groups.items():
        lines = [(at["series"], at["n"], _outcomes(at), *(_digits(at[what]) for what in _RATIOS.values()), _worst(at))
                 for at in own]  # fmt: skip
        header = ("other model", "tables", "won-tied-lost", *_RATIOS, "lowest ratio")
        texts.append(folded(f"{name[0].upper()}{name[1:]}", csv_table(header, lines)))
    return "".join(texts)


_RATIOS = {
    "median": "median",
    "mean": "mean",
    "mean without lowest": "mean_without_worst",
    "log-loss": "log_loss",
    "1 - AUC": "auc_loss",
    "fit": "fit",
    "predict": "predict",
}


def _outcomes(at):
    sure = "*" if at["p"] < _SURE else ""
    return f"{at['wins']}-{at['ties']}-{at['losses']}{sure}"


def _worst(at):
    return f"{at['worst']} ({_digits(at['worst_ratio'])})"


def _seconds(rows):
    """Return the error of each table for each time limit, with the actual time in brackets."""
    asked = sorted({row["at"]["asked"] for row in _of_panel(rows, "seconds")})
    lines = {}
    for row in _of_panel(rows, "seconds"):
        at = row["at"]
        lines.setdefault((at["table"], at["series"]), {})[at["asked"]] = f"{row['ours']:.3g} % ({at['x']:.2g} s)"
    header = ("table", "", *(f"{own:g} s" for own in asked))
    table = csv_table(header, [(*who, *(own.get(s, "") for s in asked)) for who, own in lines.items()])
    return f"{_PICTURE}{table}" if lines else ""


def _seeds(rows):
    """Return the lowest, mean and highest error over several seeds for each table."""
    lines = [
        (row["at"]["table"], *(f"{row['at'][what]:.3g}" for what in ("low", "mean", "high")), _digits(row["ours"], 1))
        for row in sorted(_of_panel(rows, "seeds"), key=lambda row: -row["ours"])
    ]
    header = ("table", "lowest error, %", "mean", "highest", "standard deviation, % of the mean")
    return csv_table(header, lines) if lines else ""


_PICTURE = """.. figure:: ../../perf/pictures/seconds.png
   :alt: Error against training time, with a panel for each table and a line for each model.

   Error against training time.

"""


def _tables(rows):
    """Return our error and the best error of the other models for each table."""
    lines = []
    for row in _of_panel(rows, "tables"):
        if "rows" not in row["at"]:  # record of an older version
            continue
        traits = (row["at"][what] or "" for what in ("table", "rows", "inputs", "classes"))
        lines.append((*traits, f"{row['ours']:.3g}", f"{row['reference']:.3g}", row["at"]["best"]))
    header = ("table", "training rows", "inputs", "classes", "our error, %", "best other error, %", "best other model")
    return csv_table(header, lines) if lines else ""


def _failures(rows):
    """Return the table of failed and skipped fits."""
    failed = [(row["what"], row["error"].splitlines()[0]) for row in rows if row["error"]]
    skipped = [(row["what"], "") for row in rows if not row["error"] and "skipped" in row["what"]]
    return csv_table(("fit", "reason"), failed + skipped) if failed or skipped else ""
