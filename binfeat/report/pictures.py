"""Pictures of the report, each small enough for a phone."""

import io
from collections.abc import Callable
from typing import Any, cast

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.textpath import TextPath
from sklearn.metrics import confusion_matrix

from binfeat._common.drawing import as_text, draw_relevances, draw_swarm, draw_waterfall
from binfeat._common.printable import printable
from binfeat._common.subsets import equal_groups, evenly_spaced
from binfeat.report.effects import Effect, Reasons

_BLUE, _ORANGE, _GRAY = "#2b6cb0", "#c05621", "#c3ccd6"
_COLORS = _BLUE, _ORANGE, "#2f855a", "#6b46c1"
_STYLE: Any = {  # Matplotlib's type of the keys is a list of literals
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "0.45",
    "axes.labelcolor": "0.2",
    "xtick.color": "0.35",
    "ytick.color": "0.35",
    "svg.hashsalt": "binfeat",
    "text.usetex": False,
}
CELLS = 12  # labels of a table
BARS = 12
_LONGEST = 22  # maximum number of characters in a name
_CHARACTER = 5.2  # points, the width of most characters


def figure_of(draw: Callable[..., None], *arguments: object) -> Figure:
    """Return a figure drawn by a function of this module."""
    figure = Figure(figsize=(3.8, 2.7), layout="constrained")
    ax = figure.subplots()
    draw(ax, *arguments)
    _keep_inside(figure, ax)
    return figure


def _keep_inside(figure: Figure, ax: Axes) -> None:
    """Move axis labels into the figure; they are centered on the axes, and the layout ignores their length."""
    figure.draw_without_rendering()
    for label, place in ((ax.xaxis.label, 0), (ax.yaxis.label, 1)):
        box, whole, own = (part.get_points()[:, place] for part in (label.get_window_extent(), figure.bbox, ax.bbox))
        beyond = max(0.0, box[1] - whole[1]) + min(0.0, box[0] - whole[0])
        position = list(label.get_position())
        position[place] -= beyond / np.ptp(own)
        label.set_position((position[0], position[1]))


def drawn(draw: Callable[..., None], *arguments: object) -> str:
    """Return the SVG of a figure drawn by a function of this module."""
    with matplotlib.rc_context(_STYLE):
        figure = figure_of(draw, *arguments)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, dpi=150, metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def short(name: object, most: int = _LONGEST) -> str:
    """Shorten a name to at most `most` characters, fewer if they are wide."""
    text = printable(name)
    if len(text) <= most and _width(text) <= _CHARACTER * most:
        return text
    text = text[: most - 1]
    while len(text) > 1 and _width(text) > _CHARACTER * (most - 1):
        text = text[:-1]
    return f"{text}…"


def _width(text: str) -> float:
    return TextPath((0, 0), as_text(text), size=_STYLE["font.size"]).get_extents().width if text.strip() else 0.0


def word(name: object, most: int = _LONGEST) -> str:
    """Return a short name that Matplotlib draws as it is."""
    return as_text(short(name, most))


def importances(ax: Axes, values: np.ndarray, names: list[str]) -> None:
    shown = np.argsort(-values, kind="stable")[:BARS]
    draw_relevances(ax, values[shown], [short(names[j]) for j in shown], BARS, color=_BLUE)
    ax.set_xlabel("importance")


def swarm(ax: Axes, reasons: Reasons, names: list[str]) -> None:
    """Draw the Shapley values of all rows, for the inputs with the largest ones."""
    order = _largest(np.abs(reasons.values).mean(axis=0))
    draw_swarm(ax, reasons.values, reasons.data, [short(name) for name in names], order)


def waterfall(ax: Axes, reasons: Reasons, names: list[str]) -> None:
    """Draw the Shapley values of the row with the largest distance from its base value."""
    row = reasons.farthest
    order = _largest(np.abs(reasons.values[row]))
    draw_waterfall(ax, reasons.values[row], float(reasons.base[row]), [short(name) for name in names], order)


def _largest(sizes: np.ndarray) -> np.ndarray:
    return np.argsort(-sizes, kind="stable")[:8]


def search(ax: Axes, errors: np.ndarray) -> None:
    ax.plot(np.arange(1, len(errors) + 1), errors, color=_BLUE)
    ax.set(xlabel="step", ylabel="leave-one-out error", ylim=(0, None))


def growth(ax: Axes, curve: np.ndarray, grown: str) -> None:
    ax.plot(*curve.T, color=_BLUE, marker="o", markersize=4)
    low, high = min(0.0, curve[:, 1].min()), max(0.0, curve[:, 1].max())
    ax.set(xlabel=grown, ylabel="validation error", ylim=(1.08 * low, 1.08 * high), xlim=(0, None))


def effect(ax: Axes, found: Effect, low: float, high: float) -> None:
    """Draw the mean prediction as a function of an input, above a histogram; all effects are between low and high."""
    style: dict[str, Any]
    bars: dict[str, Any]
    if found.kind == "categories":
        places = np.arange(len(found.values))
        ax.set_xticks(places, [word(level, 12) for level in found.levels], rotation=40, ha="right")
        counts = np.array([(found.rows == value).sum() for value in found.values])
        style, bars = {"marker": "o", "linestyle": "none"}, {"x": places, "width": 0.6}
    else:
        places, style = found.values, {}
        ends = (places[0], places[-1]) if len(places) > 1 else (places[0] - 0.5, places[0] + 0.5)
        counts, edges = np.histogram(found.rows, bins=24, range=ends)
        bars = {"x": edges[:-1], "width": np.diff(edges), "align": "edge"}
    lines = [
        ax.plot(places, means, color=color, linewidth=2, zorder=3, **style)[0]
        for means, color in zip(found.means.T, _COLORS)
    ]
    margin = 0.05 * (high - low) or 0.5
    height, floor = 5 * margin, low - 6 * margin
    ax.set_ylim(floor, high + margin)
    ax.bar(height=0.9 * height * counts / max(1, counts.max()), bottom=floor, color=_GRAY, **bars)
    if found.kind == "dates":
        ax.xaxis_date()
        ax.tick_params(axis="x", rotation=30)
    ax.set(xlabel=word(found.name), ylabel=word(found.output_name))
    if len(found.outputs) > 1:
        _add_legend(cast(Figure, ax.figure), lines, [word(name) for name in found.outputs])


def _add_legend(figure: Figure, lines: list[Line2D], names: list[str]) -> None:
    """Add a legend above the axes, with as many columns as fit."""
    words = [f" {name}" if name.startswith("_") else name for name in names]  # legends skip names with an underscore
    for n_columns in (len(words), 2, 1):
        legend = figure.legend(lines, words, loc="outside upper center", ncols=n_columns, frameon=False, fontsize=8)
        figure.draw_without_rendering()
        if n_columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()


def observed(ax: Axes, y: np.ndarray, predicted: np.ndarray) -> None:
    y, predicted = _some(y, predicted)
    ax.scatter(predicted, y, s=7, alpha=0.4, linewidths=0, color=_BLUE, rasterized=True)
    ends = [min(y.min(), predicted.min()), max(y.max(), predicted.max())]
    ax.plot(ends, ends, color="0.3", linewidth=1)
    ax.set(xlabel="predicted", ylabel="observed")


def residuals(ax: Axes, y: np.ndarray, predicted: np.ndarray) -> None:
    groups = equal_groups(predicted, 15, 10)
    centers = [predicted[group].mean() for group in groups]
    quartiles = np.array([np.quantile((y - predicted)[group], (0.25, 0.5, 0.75)) for group in groups]).T
    ax.fill_between(centers, quartiles[0], quartiles[2], color=_ORANGE, alpha=0.25, linewidth=0, zorder=2)
    ax.plot(centers, quartiles[1], color=_ORANGE, linewidth=2, zorder=3)
    y, predicted = _some(y, predicted)
    ax.scatter(predicted, y - predicted, s=7, alpha=0.4, linewidths=0, color=_BLUE, rasterized=True)
    ax.axhline(0.0, color="0.3", linewidth=1)
    ax.set(xlabel="predicted", ylabel="observed minus predicted")


def confusion(ax: Axes, labels: np.ndarray, guesses: np.ndarray, classes: np.ndarray) -> None:
    """Draw the confusion matrix of the most frequent labels, colored by the share of each row."""
    shown = np.sort(np.argsort(-np.bincount(labels, minlength=len(classes)), kind="stable")[:CELLS])
    counts = confusion_matrix(labels, guesses, labels=np.arange(len(classes)))
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    counts, shares = (values[np.ix_(shown, shown)] for values in (counts, shares))
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1.15)
    if len(shown) <= 8:
        for (i, j), count in np.ndenumerate(counts):
            ax.text(j, i, f"{count:,}", ha="center", va="center", color="white" if shares[i, j] > 0.6 else "0.2")
    words = [word(classes[k], 12) for k in shown]
    ax.set_xticks(np.arange(len(shown)), words, rotation=40, ha="right")
    ax.set_yticks(np.arange(len(shown)), words)
    ax.set(xlabel="predicted", ylabel="observed")
    ax.spines[:].set_visible(False)


def calibration(ax: Axes, p: np.ndarray, right: np.ndarray) -> None:
    """Draw the share of correct labels against their predicted probability, with bars of two standard errors."""
    groups = equal_groups(p, 10, 1)
    given = np.array([p[group].mean() for group in groups])
    found = np.array([right[group].mean() for group in groups])
    spread = np.sqrt(np.maximum(found * (1 - found), given * (1 - given)) / [group.size for group in groups])
    ax.plot([0, 1], [0, 1], color="0.3", linewidth=1)
    ax.errorbar(given, found, 2 * spread, color=_BLUE, marker="o", markersize=4, linewidth=1.2)
    low = max(0.0, min(given.min(), (found - 2 * spread).min()) - 0.03)
    ax.set(xlabel="predicted probability", ylabel="share correct", xlim=(low, 1.01), ylim=(low, 1.01))


def _some(*arrays: np.ndarray) -> list[np.ndarray]:
    rows = evenly_spaced(len(arrays[0]), 2000)
    return [values[rows] for values in arrays]
