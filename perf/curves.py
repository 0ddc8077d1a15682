"""Pictures of the rows of a record that have coordinates."""

from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter, LogLocator, NullFormatter, StrMethodFormatter

_SIDE, _COLUMNS = 3.2, 3  # inches; panels beside one another
_DECADE = 10
_GREEN, _RED = "#2a7f62", "#b23a48"


def panels(rows, y_label, x_label=None):
    """Panels with a line for each series, both axes logarithmic.

    Parameters
    ----------
    rows : list of dict
        Rows of a record. Those with ``at={"panel": ..., "series": ..., "x": ...}`` are drawn at the height of their
        figure.
    y_label : str
    x_label : str, default=None
        None puts the panel's name there instead of above it.

    Returns
    -------
    figure : matplotlib.figure.Figure
    """
    points = {}
    for row in rows:
        if row.get("at") and row["ours"] is not None:
            series = points.setdefault(row["at"]["panel"], {})
            series.setdefault(row["at"]["series"], []).append((row["at"]["x"], row["ours"]))
    n_columns = min(_COLUMNS, max(1, len(points)))
    n_rows = max(1, -(-len(points) // n_columns))
    figure = Figure(figsize=(n_columns * 1.2 * _SIDE, n_rows * _SIDE), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for ax in axes[len(points) :]:
        ax.remove()
    for ax, (panel, series) in zip(axes, points.items()):
        for name, own in series.items():
            ax.plot(*zip(*sorted(own)), marker="o", markersize=3, label=name)
        ax.set(xscale="log", yscale="log", xlabel=x_label or panel, ylabel=y_label)
        for axis in (ax.xaxis, ax.yaxis):
            low, high = axis.get_view_interval()
            if high < _DECADE * low:  # few powers of ten to write at
                axis.set_major_locator(LogLocator(subs=(1, 2, 3, 4, 5, 7)))
                axis.set_major_formatter(StrMethodFormatter("{x:g}"))
                axis.set_minor_formatter(NullFormatter())
        if x_label is not None:
            ax.set_title(panel, fontsize="medium")
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="0.92", linewidth=0.7)
        ax.legend(fontsize="small", frameon=False)
    return figure


def _times_as_good(row):
    high_is_good = (row.reach[0] == ">=") == (row.reach[1] > 0)  # of two negative numbers the longer one is less
    return row.measured / row.reach[1] if high_is_good else row.reach[1] / row.measured


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
        (_times_as_good(row), name, row.ok) for name, row in rows if row.measured and row.reach[1] / row.measured > 0
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
    ax.margins(y=0.01)
    ax.spines[["top", "right"]].set_visible(False)
    ax.invert_yaxis()
    return figure
