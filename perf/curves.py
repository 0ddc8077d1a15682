"""Pictures of the rows of a record that have coordinates."""

from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

_SIDE = 3.2  # inches
_GREEN, _RED = "#2a7f62", "#b23a48"


def panels(record, x_label, y_label, log=True):
    """One panel beside another, with a line for each series.

    Parameters
    ----------
    record : dict
        Rows with ``at={"panel": ..., "series": ..., "x": ...}`` are drawn at the height of their figure.
    x_label, y_label : str
        "panel" as `x_label` puts each panel's own name below it.
    log : bool, default=True
        Whether both axes are logarithmic.

    Returns
    -------
    figure : matplotlib.figure.Figure
    """
    panels = {}
    for row in record["rows"]:
        if row["at"] is not None and row["ours"] is not None:
            series = panels.setdefault(row["at"]["panel"], {})
            series.setdefault(row["at"]["series"], []).append((row["at"]["x"], row["ours"]))
    figure = Figure(figsize=(max(1, len(panels)) * _SIDE * 1.2, _SIDE), layout="constrained")
    axes = figure.subplots(1, max(1, len(panels)), squeeze=False)[0]
    for ax, (panel, series) in zip(axes, panels.items()):
        for name, points in series.items():
            ax.plot(*zip(*sorted(points)), marker="o", markersize=3, label=name)
        if log:
            ax.set(xscale="log", yscale="log")
        ax.set(xlabel=panel if x_label == "panel" else x_label, ylabel=y_label)
        if x_label != "panel":
            ax.set_title(panel, fontsize="medium")
        ax.legend(fontsize="small", frameon=False)
    return figure


def reached(rows):
    """How far each figure is from its reach: right of 1 is better.

    Parameters
    ----------
    rows : list of (str, Row)
        Names and rows that have a reach.

    Returns
    -------
    figure : matplotlib.figure.Figure
    """
    shares = sorted(
        (row.measured / row.reach[1] if row.reach[0] == ">=" else row.reach[1] / row.measured, name, row.ok)
        for name, row in rows
        if row.measured and row.reach[1] / row.measured > 0
    )
    figure = Figure(figsize=(8, 1 + 0.2 * len(shares)), layout="constrained")
    ax = figure.subplots()
    ax.barh(
        [name for _, name, _ in shares],
        [share - 1 for share, _, _ in shares],
        left=1,
        color=[_GREEN if ok else _RED for _, _, ok in shares],
    )
    ax.axvline(1, color="black", linewidth=0.8)
    ax.set(xscale="log", xlabel="times as good as asked for")
    ax.xaxis.set_major_formatter(LogFormatter(labelOnlyBase=False))
    ax.tick_params(axis="y", labelsize="x-small")
    ax.invert_yaxis()
    return figure
