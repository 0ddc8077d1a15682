"""Pictures of the report, each small enough for a phone."""

import io
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from sklearn.metrics import confusion_matrix

from binfeat._common.drawing import draw_relevances, draw_swarm, draw_waterfall
from binfeat._common.subsets import equal_groups, evenly_spaced

_BLUE, _ORANGE, _GREY = "#2b6cb0", "#c05621", "#c3ccd6"
_COLOURS = _BLUE, _ORANGE, "#2f855a", "#6b46c1"
_STYLE: Any = {  # Matplotlib's type of the keys is a list of literals
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "0.45",
    "axes.labelcolor": "0.2",
    "xtick.color": "0.35",
    "ytick.color": "0.35",
    "svg.hashsalt": "binfeat",
}
_SIZE = 3.8, 2.7  # inches
CELLS = 12  # labels of a table
BARS = 12
_STEPS, _DOTS = 8, 2000
_LONGEST = 22  # characters of a name


def drawn(draw, *arguments):
    """The SVG of what a function of this module draws on axes."""
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=_SIZE, layout="constrained")
        draw(figure.subplots(), *arguments)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, dpi=150, metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def word(name):
    """A name for Matplotlib: shortened, with dollars that do not start a formula."""
    text = str(name)
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return text.replace("$", r"\$")


def importances(ax, values, names):
    """Bars of the most important inputs."""
    shown = np.argsort(-values, kind="stable")[:BARS]
    draw_relevances(ax, values[shown], [word(names[j]) for j in shown], BARS, color=_BLUE)
    ax.set_xlabel("rise of the root mean squared error")


def swarm(ax, reasons, names):
    """Shapley values of some rows, of the inputs with the largest ones."""
    order = _largest(np.abs(reasons.values).mean(axis=0))
    draw_swarm(ax, reasons.values, reasons.data, [word(name) for name in names], order)


def waterfall(ax, reasons, names):
    """Steps to the prediction of the row that is farthest from its base value."""
    row = reasons.farthest
    order = _largest(np.abs(reasons.values[row]))
    draw_waterfall(ax, reasons.values[row], float(reasons.base[row]), [word(name) for name in names], order)


def _largest(sizes):
    return np.argsort(-sizes, kind="stable")[:_STEPS]


def search(ax, errors):
    """The error in the steps of the search for length scales."""
    ax.plot(np.arange(1, len(errors) + 1), errors, color=_BLUE)
    ax.set(xlabel="step", ylabel="leave-one-out error", ylim=(0, None))


def growth(ax, curve, grown):
    """The error against the number of grids or trees."""
    ax.plot(*curve.T, color=_BLUE, marker="o", markersize=4)
    ax.set(xlabel=grown, ylabel="error of rows left out", ylim=(0, 1.08 * curve[:, 1].max()), xlim=(0, None))


def effect(ax, found, low, high):
    """Mean prediction against the values of an input, above a histogram; all effects are between low and high."""
    if found.kind == "categories":
        places = np.arange(len(found.values))
        ax.set_xticks(places, [word(level)[:12] for level in found.levels], rotation=40, ha="right")
        counts = np.array([(found.rows == value).sum() for value in found.values])
        style, bars = {"marker": "o", "linestyle": "none"}, {"x": places, "width": 0.6}
    else:
        places, style = found.values, {}
        ends = (places[0], places[-1]) if len(places) > 1 else (places[0] - 0.5, places[0] + 0.5)
        counts, edges = np.histogram(found.rows, bins=24, range=ends)
        bars = {"x": edges[:-1], "width": np.diff(edges), "align": "edge"}
    for means, colour, name in zip(found.means.T, _COLOURS, found.outputs):
        ax.plot(places, means, color=colour, label=word(name), linewidth=2, zorder=3, **style)
    margin = 0.05 * (high - low) or 0.5
    height, floor = 5 * margin, low - 6 * margin
    ax.set_ylim(floor, high + margin)
    ax.bar(height=0.9 * height * counts / max(1, counts.max()), bottom=floor, color=_GREY, **bars)
    if found.kind == "dates":
        ax.xaxis_date()
        ax.tick_params(axis="x", rotation=30)
    ax.set(xlabel=word(found.name), ylabel=word(found.what))
    if len(found.outputs) > 1:
        ax.figure.legend(loc="outside upper center", ncols=len(found.outputs), frameon=False, fontsize=8)


def observed(ax, y, predicted):
    """Targets against predictions."""
    y, predicted = _some(y, predicted)
    ax.scatter(predicted, y, s=7, alpha=0.4, linewidths=0, color=_BLUE, rasterized=True)
    ends = [min(y.min(), predicted.min()), max(y.max(), predicted.max())]
    ax.plot(ends, ends, color="0.3", linewidth=1)
    ax.set(xlabel="predicted", ylabel="observed")


def residuals(ax, y, predicted):
    """Errors against predictions, with their quartiles."""
    groups = equal_groups(predicted, 15, 10)
    centres = [predicted[group].mean() for group in groups]
    quartiles = np.array([np.quantile((y - predicted)[group], (0.25, 0.5, 0.75)) for group in groups]).T
    ax.fill_between(centres, quartiles[0], quartiles[2], color=_ORANGE, alpha=0.25, linewidth=0, zorder=2)
    ax.plot(centres, quartiles[1], color=_ORANGE, linewidth=2, zorder=3)
    y, predicted = _some(y, predicted)
    ax.scatter(predicted, y - predicted, s=7, alpha=0.4, linewidths=0, color=_BLUE, rasterized=True)
    ax.axhline(0.0, color="0.3", linewidth=1)
    ax.set(xlabel="predicted", ylabel="observed minus predicted")


def confusion(ax, labels, guesses, classes):
    """Share of each label's rows that got each label; the most frequent labels."""
    shown = np.sort(np.argsort(-np.bincount(labels, minlength=len(classes)), kind="stable")[:CELLS])
    counts = confusion_matrix(labels, guesses, labels=np.arange(len(classes)))
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    counts, shares = (values[np.ix_(shown, shown)] for values in (counts, shares))
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1.15)
    if len(shown) <= 8:
        for (i, j), count in np.ndenumerate(counts):
            ax.text(j, i, f"{count:,}", ha="center", va="center", color="white" if shares[i, j] > 0.6 else "0.2")
    words = [word(classes[k])[:12] for k in shown]
    ax.set_xticks(np.arange(len(shown)), words, rotation=40, ha="right")
    ax.set_yticks(np.arange(len(shown)), words)
    ax.set(xlabel="predicted", ylabel="observed")
    ax.spines[:].set_visible(False)


def calibration(ax, p, right):
    """Share of labels that are right against their predicted probability; bars of two standard errors."""
    groups = equal_groups(p, 10, 1)
    given = np.array([p[group].mean() for group in groups])
    found = np.array([right[group].mean() for group in groups])
    spread = np.sqrt(np.maximum(found * (1 - found), given * (1 - given)) / [group.size for group in groups])
    ax.plot([0, 1], [0, 1], color="0.3", linewidth=1)
    ax.errorbar(given, found, 2 * spread, color=_BLUE, marker="o", markersize=4, linewidth=1.2)
    low = max(0.0, min(given.min(), (found - 2 * spread).min()) - 0.03)
    ax.set(xlabel="probability", ylabel="share", xlim=(low, 1.01), ylim=(low, 1.01))


def _some(*arrays):
    rows = evenly_spaced(len(arrays[0]), _DOTS)
    return [values[rows] for values in arrays]
