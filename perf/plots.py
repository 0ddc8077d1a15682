"""Plots of the rows of a record that have coordinates; Matplotlib is imported when a plot is drawn."""

import math

_DECADE = 10
_GREEN, _RED = "#2a7f62", "#b23a48"
_NAMED = 16  # number of tables with names; more names would overlap
_RIGHT = 0.85  # share of the width from which names are left of their points


def curves(rows, x_label, y_label):
    """Draw a line for each series, with logarithmic axes.

    Parameters
    ----------
    rows : list of dict
        Rows of a record. Rows with ``at={"panel": ..., "series": ..., "x": ...}`` are drawn at the height of their
        figure; the panel is the title.
    x_label, y_label : str

    Returns
    -------
    figure : matplotlib.figure.Figure
    """
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    figure, ax = _canvas(3.9, 3.2)
    points = {}
    for row in rows:
        if row.get("at") and row["ours"] is not None:
            points.setdefault(row["at"]["series"], []).append((row["at"]["x"], row["ours"]))
            ax.set_title(row["at"]["panel"], fontsize="medium")
    for name, own in points.items():
        ax.plot(*zip(*sorted(own)), marker="o", markersize=3, label=name)
    ax.set(xscale="log", yscale="log", xlabel=x_label, ylabel=y_label)
    for axis in (ax.xaxis, ax.yaxis):
        low, high = axis.get_view_interval()
        if high < _DECADE * low:  # less than a decade, so also label 2, 3, 4, 5 and 7
            axis.set_major_locator(LogLocator(subs=(1, 2, 3, 4, 5, 7)))
            axis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axis.set_minor_formatter(NullFormatter())
    ax.legend(fontsize="small", frameon=False)
    return figure


def tables(rows):
    """Draw our error relative to the best other model against our time relative to LightGBM, per table."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    figure, ax = _canvas(9.0, 6.5)
    points = [at for row in rows if (at := row.get("at")) and at["panel"] == "tables" and at["x"] is not None]
    for i, series in enumerate(("regression", "classes")):
        own = [at for at in points if at["series"] == series]
        ax.scatter([at["x"] for at in own], [at["y"] for at in own], s=14, color=f"C{i}", label=series)
    for line in (ax.axhline, ax.axvline):
        line(1, color="0.35", linewidth=0.8)
    ax.set(xscale="log", yscale="log", xlabel="Training time / LightGBM's", ylabel="Error / best other model's")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())
    ax.legend(frameon=False, fontsize="small")
    _name(ax, sorted(points, key=_distance, reverse=True)[:_NAMED])
    return figure


def _name(ax, points):
    """Add names next to points, towards the middle, unless they overlap earlier names."""
    ax.figure.draw_without_rendering()  # computes all positions
    taken = []
    for at in points:
        place = at["x"], at["y"]
        is_right = ax.transAxes.inverted().transform(ax.transData.transform(place))[0] > _RIGHT
        side = {"xytext": (-3, 3), "ha": "right"} if is_right else {"xytext": (3, 3)}
        text = ax.annotate(at["table"], place, textcoords="offset points", fontsize="xx-small", **side)
        box = text.get_window_extent()
        if any(box.overlaps(other) for other in taken):
            text.remove()
        else:
            taken.append(box)


def against_seconds(rows):
    """Draw the error against the training time, with a panel for each table and a line for each model."""
    from matplotlib.figure import Figure

    points = {}
    for row in rows:
        if (at := row.get("at")) and at["panel"] == "seconds":
            points.setdefault(at["table"], {}).setdefault(at["series"], []).append((at["x"], row["ours"]))
    n_columns = min(3, max(1, len(points)))
    n_lines = max(1, -(-len(points) // n_columns))
    figure = Figure(figsize=(3.4 * n_columns, 2.8 * n_lines), layout="constrained")
    panels = figure.subplots(n_lines, n_columns, squeeze=False).ravel()
    for ax, (table, lines) in zip(panels, points.items()):
        for i, (who, own) in enumerate(lines.items()):
            ax.plot(*zip(*sorted(own)), marker="o", markersize=3, label=who, linewidth=1 if i else 2)
        ax.set(xscale="log", title=table, xlabel="training time, s", ylabel="error, %")
        ax.grid(color="0.92", linewidth=0.7)
    for ax in panels[len(points) :]:
        ax.set_axis_off()
    panels[0].legend(fontsize="x-small", frameon=False)
    return figure


def _distance(at):
    """Return the distance of a table from equal errors and times."""
    return 4 * abs(math.log(at["y"])) + abs(math.log(at["x"]))


def reached(rows):
    """Draw the ratio of each figure to its goal: right of 1 is better.

    Parameters
    ----------
    rows : list of (str, Row)
        Names and rows with a goal.

    Returns
    -------
    figure : matplotlib.figure.Figure
    """
    from matplotlib.ticker import LogFormatter

    shares = sorted(
        (_times_as_good(row), name, row.ok) for name, row in rows if row.measured and row.reach[1] / row.measured > 0
    )
    figure, ax = _canvas(8, 1 + 0.2 * len(shares))
    ax.grid(visible=False)
    names, widths = [name for _, name, _ in shares], [share - 1 for share, _, _ in shares]
    ax.barh(names, widths, left=1, color=[_GREEN if ok else _RED for _, _, ok in shares])
    ax.axvline(1, color="black", linewidth=0.8)
    ax.set(xscale="log", xlabel="ratio to the goal (above 1: met)")
    ax.xaxis.set_major_formatter(LogFormatter(labelOnlyBase=False))
    ax.tick_params(axis="y", labelsize="x-small")
    ax.margins(y=0.01)
    ax.invert_yaxis()
    return figure


def _times_as_good(row):
    high_is_good = (row.reach[0] == ">=") == (row.reach[1] > 0)  # negative goals are reversed
    return row.measured / row.reach[1] if high_is_good else row.reach[1] / row.measured


def _canvas(width, height):
    """Return a figure and its only panel."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    ax = figure.subplots()
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="0.92", linewidth=0.7)
    ax.set_axisbelow(True)
    return figure, ax
