"""Pictures drawn from the rows of a record; Matplotlib is imported when one is drawn."""

from perf import paper

BOUND = 0.05  # probability at whose distance the bounds are drawn
_COLOURS = {"iid": "C0", "orthogonal": "C1", "qmc": "C2", "fastfood": "C3"}
_PAPER = {"color": "0.35", "linestyle": "none", "marker": "*", "markersize": 9, "label": "the paper, read off"}


def points(record, **where):
    """Rows of a record that are drawn, by series.

    Parameters
    ----------
    record : dict
        As `perf.record.save` writes it.
    **where
        What their `at` must hold.

    Returns
    -------
    points : dict of str to list of (x, figure)
        Of rising x.
    """
    found = {}
    for row in record["rows"]:
        if _is_at(row, where):
            found.setdefault(row["at"]["series"], []).append((row["at"]["x"], row["ours"]))
    return {name: sorted(own) for name, own in found.items()}


def _is_at(row, where):
    at = row.get("at") or {}
    return bool(at) and all(at.get(name) == value for name, value in where.items())


def canvas(n_rows, n_columns, width=4.0, height=3.3):
    """A figure of panels, and the panels in one array."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="0.92", linewidth=0.7)
        ax.set_axisbelow(True)
    return figure, axes


def lines(ax, found, suffix="", **style):
    """One line for each series, in colours of their order or of what they are."""
    style = {"marker": "o", "markersize": 3.5, **style}
    for i, (name, own) in enumerate(found.items()):
        colour = _COLOURS.get(name, f"C{i}")
        ax.plot([x for x, _ in own], [y for _, y in own], color=colour, label=name + suffix, **style)


def figure3(record):
    """Three panels: error against rows, error against P, training and testing time against P."""
    figure, (axes,) = canvas(1, 3)
    for ax, panel in zip(axes[:2], ("rows", "P")):
        lines(ax, points(record, panel=panel))
        ax.plot(*zip(*paper.FIGURE_3[panel]), **_PAPER)
        ax.set_ylabel("Test error, %")
    lines(axes[2], points(record, panel="seconds", what="training"), ", training")
    lines(axes[2], points(record, panel="seconds", what="testing"), ", testing", linestyle=":", marker=".")
    axes[0].set(xscale="log", xlabel="Training rows", title="Error against rows", yscale="log")
    _plain_ticks(axes[0].yaxis, (2, 5, 10, 20, 40))
    axes[1].set(xlabel="Grids P", title="Error against P", xlim=(0, None), ylim=(0, None))
    axes[2].set(xlabel="Grids P", ylabel="Seconds", title="Time against P", xlim=(0, None), ylim=(0, None))
    for ax in axes:
        ax.legend(frameon=False, fontsize="small")
    grids, seconds = paper.FIGURE_3["seconds"][0]
    axes[2].get_legend().set_title(f"The paper, {grids} grids in 2007: {seconds:,} s", prop={"size": "small"})
    return figure


def kernels(record):
    """RMS error of every kernel by sampler against D and of binning against P; shares of pairs beyond a distance."""
    names = sorted({row["at"]["kernel"] for row in record["rows"] if _is_at(row, {"panel": "Fourier"})})
    n_columns = 3
    figure, axes = canvas(-(-(len(names) + 3) // n_columns), n_columns)
    panels = list(axes.flat)
    for ax, name in zip(panels, names):
        _errors(ax, points(record, panel="Fourier", kernel=name), paper.fourier_distance)
        ax.set(title=f"Fourier features, {name}", xlabel="Frequencies D")
    binning, *tails = panels[len(names) : len(names) + 3]
    _errors(binning, points(record, panel="binning"), paper.binning_distance)
    binning.set(title="Random binning", xlabel="Grids P")
    for ax, features, sampler in zip(tails, ("Fourier", "binning"), ("iid", None)):
        _tails(ax, record, panel=f"{features} tail", sampler=sampler)
        ax.set(title=f"Tails, {features}{', iid' if sampler else ''}", xlabel="Distance e")
    for ax in panels[len(names) + 3 :]:
        ax.remove()
    return figure


def _errors(ax, found, distance):
    """RMS errors, and the distance beyond which at most 5 % of pairs may be."""
    lines(ax, found)
    x = sorted({size for own in found.values() for size, _ in own})
    ax.plot(x, [distance(size, BOUND) for size in x], color="0.35", linestyle="--", label="bound, 5 % of pairs beyond")
    ax.set(xscale="log", yscale="log", ylabel="RMS error of the kernel", ylim=(1e-4, 1))
    _plain_ticks(ax.xaxis, x)
    ax.legend(frameon=False, fontsize="x-small", loc="lower left")


def _tails(ax, record, **where):
    """Share of pairs beyond a distance, below its bound."""
    found = points(record, **where)
    lines(ax, {name: [(x, y) for x, y in own if y > 0] for name, own in found.items()})
    bound = {row["at"]["x"]: row["at"]["bound"] for row in record["rows"] if _is_at(row, where)}
    ax.plot(*zip(*sorted(bound.items())), color="0.35", linestyle="--", label="Hoeffding's bound")
    ax.set(yscale="log", ylabel="Share of pairs beyond e, %")
    ax.legend(frameon=False, fontsize="x-small")


_CROWD, _SLOW = (0.94, 1.05), 3.0  # ratios of errors, and of seconds, between which most tables are


def tables(record):
    """Our error over the best peer's against our time over LightGBM's, a point for each table; some have names."""
    from matplotlib.ticker import StrMethodFormatter

    figure, ((ax,),) = canvas(1, 1, 9.0, 6.5)
    for i, series in enumerate(("regression", "classes")):
        own = [row["at"] for row in record["rows"] if _is_at(row, {"panel": "tables", "series": series})]
        ax.scatter([at["x"] for at in own], [at["y"] for at in own], s=14, color=f"C{i}", label=series)
        for at in filter(_stands_out, own):
            ax.annotate(at["table"], (at["x"], at["y"]), (3, 3), textcoords="offset points", fontsize="xx-small")
    for line in (ax.axhline, ax.axvline):
        line(1, color="0.35", linewidth=0.8)
    ax.set(xscale="log", yscale="log", xlabel="Our seconds of fit / LightGBM's", ylabel="Our error / the best peer's")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(StrMethodFormatter("{x:g}"))
    ax.legend(frameon=False, fontsize="small")
    return figure


def _stands_out(at):
    """Whether a table is named: where there are many, their names would cover each other."""
    return not (_CROWD[0] < at["y"] < _CROWD[1] and 1 < at["x"] < _SLOW)


def _plain_ticks(axis, places):
    """Ticks of a logarithmic axis where they are wanted, written in full."""
    axis.set_ticks(places, [f"{place:,}" for place in places])
    axis.set_ticks([], minor=True)
