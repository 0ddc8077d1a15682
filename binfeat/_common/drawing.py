"""Plots shared by displays and the report."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata

from binfeat._common.frames import is_missing
from binfeat._common.printable import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer

_HEIGHT, _BINS = 0.4, 60  # of a swarm: height in units of the distance of lines, number of bins along a line
_HIGHER, _LOWER = "#c44e52", "#4c72b0"


def as_text(name: str) -> str:
    """Escape a name for Matplotlib, so that dollar signs do not start mathematical text."""
    import matplotlib

    text = printable(name)
    return text.replace("$", r"\$") if matplotlib.rcParams["text.parse_math"] else text


def draw_relevances(
    ax: "Axes", relevances: np.ndarray, names: Sequence[str], most: int, **bar_kwargs: Any
) -> "BarContainer":
    """Draw up to `most` relevances as bars, largest on top, and a gray bar for the sum of the others; return bars."""
    order = np.argsort(-relevances, kind="stable")
    shown, others = order[:most], order[most:]
    values, labels = relevances[shown], [as_text(names[j]) for j in shown]
    if others.size:
        values, labels = np.append(values, relevances[others].sum()), [*labels, f"{others.size} others"]
    bars = ax.barh(np.arange(len(labels)), values, **{"height": 0.72, **bar_kwargs})
    if others.size:
        bars[-1].set_color("0.75")
    ax.bar_label(bars, [_share(value) for value in values], padding=4, color="0.35", fontsize="small")
    ax.set_yticks(np.arange(len(labels)), labels)
    ax.tick_params(axis="y", length=0)
    ax.set(ylim=(len(labels) - 0.4, -0.6), xlabel="Relevance")
    ax.margins(x=0.12)
    return bars


def _share(value: float) -> str:
    return f"{value:.3f}" if value >= 5e-4 or value == 0 else "<0.001"


def draw_swarm(
    ax: "Axes", values: np.ndarray, data: np.ndarray | None, names: Sequence[str], order: np.ndarray
) -> None:
    """Draw Shapley values (n_rows, n_inputs) as a line of points per input in `order`, colored by ranks of the data."""
    for place, j in enumerate(order):
        shades = "0.4" if data is None else _ranks(data[:, j])
        style: dict[str, Any] = {} if data is None else {"cmap": "coolwarm", "vmin": 0, "vmax": 1}
        ax.scatter(values[:, j], place + _swarm(values[:, j]), c=shades, s=9, linewidths=0, **style)
    ax.axvline(0, color="0.6", linewidth=0.8, zorder=0)
    ax.set_yticks(np.arange(len(order)), [as_text(names[j]) for j in order])
    ax.invert_yaxis()
    ax.set_xlabel("Shapley value" + ("" if data is None else "\n(blue: low input, red: high)"))


def draw_waterfall(ax: "Axes", values: np.ndarray, base: float, names: Sequence[str], order: np.ndarray) -> None:
    """Draw Shapley values of one row, (n_inputs,), as steps to its prediction; inputs not in `order` are one step."""
    shown = values[order]
    labels = [as_text(names[j]) for j in order]
    if len(shown) < len(values):
        shown, labels = np.append(shown, values.sum() - shown.sum()), [*labels, "all others"]
    ends = base + np.cumsum(shown)
    colors = [_HIGHER if step > 0 else _LOWER for step in shown]
    ax.barh(np.arange(len(shown)), shown, left=ends - shown, color=colors)
    for place, (step, end) in enumerate(zip(shown, ends)):
        ax.annotate(f"{step:+.3g}", (max(end, end - step), place), (3, 0), textcoords="offset points", va="center")
    ax.axvline(base, color="0.6", linewidth=0.8, zorder=0)
    ax.set_yticks(np.arange(len(shown)), labels)
    ax.invert_yaxis()
    ax.use_sticky_edges = False
    ax.margins(x=0.15)
    ax.set_xlabel(f"From the average {base:.4g}\nto the prediction {ends[-1]:.4g}")


def _ranks(column: np.ndarray) -> np.ndarray:
    """Return ranks of the values from 0 to 1, alphabetical for strings and dates; 0.5 for missing values."""
    try:
        values = column.astype(np.float64)
    except (TypeError, ValueError):
        values = np.unique(column.astype(str), return_inverse=True)[1].astype(np.float64)
    if column.dtype.kind in "OmM":
        values[[is_missing(value) for value in column]] = np.nan
    ranks = rankdata(values, nan_policy="omit") / max(1, np.count_nonzero(~np.isnan(values)))
    return np.where(np.isnan(ranks), 0.5, ranks)


def _swarm(values: np.ndarray) -> np.ndarray:
    """Return vertical offsets of points, so that points in the same bin do not overlap."""
    spread = np.ptp(values)
    bins = np.zeros(len(values), int) if spread == 0 else np.round(_BINS * (values - values.min()) / spread).astype(int)
    counts, out = np.bincount(bins), np.zeros(len(values))
    for k in np.flatnonzero(counts > 1):
        rows = np.flatnonzero(bins == k)
        out[rows] = np.linspace(-1, 1, len(rows)) * _HEIGHT * len(rows) / counts.max()
    return out
