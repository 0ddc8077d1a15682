"""Pictures of the rows of a record that have coordinates; Matplotlib is imported when a picture is drawn."""

import math

_DECADE = 10
_GREEN, _RED = "#2a7f62", "#b23a48"
_NAMED = 16  # tables that stand out most: names of more would cover each other
_RIGHT = 0.85  # of the width, beyond which names stand left of their points


def curves(rows, x_label, y_label):
    """A line for each series, both axes logarithmic.

    Parameters
    ----------
    rows : list of dict
        Rows of a record. Those with ``at={"panel": ..., "series": ..., "x": ...}`` are drawn at the height of their
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
        if high < _DECADE * low:  # few powers of ten to write at
            axis.set_major_locator(LogLocator(subs=(1, 2, 3, 4, 5, 7)))
            axis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axis.set_minor_formatter(NullFormatter())
    ax.legend(fontsize="small", frameon=False)
    return figure


def tables(rows):
    """Our error over the best peer's against our time over LightGBM's: a point for each table; some have names."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    figure, ax = _canvas(9.0, 6.5)
    points = [at for row in rows if (at := row.get("at")) and at["panel"] == "tables" and at["x"] is not None]
    for i, series in enumerate(("regression", "classes")):
        own = [at for at in points if at["series"] == series]
        ax.scatter([at["x"] for at in own], [at["y"] for at in own], s=14, color=f"C{i}", label=series)
    for line in (ax.axhline, ax.axvline):
        line(1, color="0.35", linewidth=0.8)
    ax.set(xscale="log", yscale="log", xlabel="Our seconds of fit / LightGBM's", ylabel="Our error / the best peer's")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())
    ax.legend(frameon=False, fontsize="small")
    _name(ax, sorted(points, key=_distance, reverse=True)[:_NAMED])
    return figure


def _name(ax, points):
    """Names beside points, towards the middle, where they do not meet names that came before."""
    ax.figure.draw_without_rendering()  # which places everything
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
    """Error against the seconds that a fit took: a panel for each table, a line for each machine."""
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
        ax.set(xscale="log", title=table, xlabel="seconds of the fit", ylabel="error, %")
        ax.grid(color="0.92", linewidth=0.7)
    for ax in panels[len(points) :]:
        ax.set_axis_off()
    panels[0].legend(fontsize="x-small", frameon=False)
    return figure


def _distance(at):
    """How far a table is from a crowd of nearly equal errors and seconds."""
    return 4 * abs(math.log(at["y"])) + abs(math.log(at["x"]))


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
    from matplotlib.ticker import LogFormatter

    shares = sorted(
        (_times_as_good(row), name, row.ok) for name, row in rows if row.measured and row.reach[1] / row.measured > 0
    )
    figure, ax = _canvas(8, 1 + 0.2 * len(shares))
    ax.grid(visible=False)
    names, widths = [name for _, name, _ in shares], [share - 1 for share, _, _ in shares]
    ax.barh(names, widths, left=1, color=[_GREEN if ok else _RED for _, _, ok in shares])
    ax.axvline(1, color="black", linewidth=0.8)
    ax.set(xscale="log", xlabel="times as good as asked for")
    ax.xaxis.set_major_formatter(LogFormatter(labelOnlyBase=False))
    ax.tick_params(axis="y", labelsize="x-small")
    ax.margins(y=0.01)
    ax.invert_yaxis()
    return figure


def _times_as_good(row):
    high_is_good = (row.reach[0] == ">=") == (row.reach[1] > 0)  # of two negative numbers the longer one is less
    return row.measured / row.reach[1] if high_is_good else row.reach[1] / row.measured


def _canvas(width, height):
    """A figure of one panel, and the panel."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    ax = figure.subplots()
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="0.92", linewidth=0.7)
    ax.set_axisbelow(True)
    return figure, ax
