"""Parts of a learning curve: the steps of a search for length scales, then the points of the model."""

from typing import TYPE_CHECKING, Any

import numpy as np

from binfeat.plots.checks import Machine

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.lines import Line2D

_GAP = 0.15  # distance between two points after the search, as a share of the steps
_STYLE: dict[str, Any] = {"marker": "o", "markersize": 6, "markeredgecolor": "white", "linewidth": 2}


def curve_of(machine: Machine) -> dict[str, Any]:
    """Return the arguments of `LearningCurveDisplay` for a kernel model."""
    steps, curve = machine.length_scale_errors_, machine.learning_curve_
    if len(steps) < 2 and len(curve) < 2:
        decisions = machine.decisions_
        names = {"x_labels": decisions["what"], "x_name": "Decision", "error_name": "Error after the decision"}
        return {"x": np.arange(len(decisions)), "error": decisions["error"], **names}
    if machine.scoring is not None and len(steps):
        steps, curve = (steps[:0], curve) if len(curve) > 1 else (steps, curve[:0])
    is_random = machine.features_ not in ("exact", "local")  # their errors are leave-one-out errors, unless `cv` is set
    name = "Validation error" if machine.scoring is None else "Negative validation score"
    found: dict[str, Any] = {"x": curve[:, 0], "error": curve[:, 1], "error_name": name}
    if not len(steps):
        return found
    if not len(curve):
        name = "Leave-one-out error"
    elif is_random:
        name = "Leave-one-out, then validation error"
    found |= {"steps": steps, "x_name": "Step of the search", "error_name": name}
    if len(curve) and (machine.n_grids_ or machine.n_trees_):
        return {**found, "x_name": f"Step of the search, then {'grids' if machine.n_grids_ else 'trees'}"}
    return {**found, "x_labels": [machine.features_] * len(curve)}


def places_behind(n_steps: int, n_points: int) -> np.ndarray:
    """Return positions of the points after a search, at even distances."""
    return n_steps + max(1.0, _GAP * n_steps) * np.arange(1, n_points + 1)


def draw_steps(ax: "Axes", steps: np.ndarray) -> "Line2D":
    """Draw the error before each step, counted from 1, and return the line."""
    (line,) = ax.plot(np.arange(1, len(steps) + 1), steps, color="0.55", linewidth=1.5)
    return line


def draw_points(
    ax: "Axes", x: np.ndarray, error: np.ndarray, **line_kwargs: Any
) -> "tuple[Line2D, PolyCollection | None]":
    """Draw mean errors, and a band of one standard error for several errors per point; return line and band."""
    mean = error.reshape(len(x), -1).mean(axis=1) if len(x) else error
    (line,) = ax.plot(x, mean, **{**_STYLE, **line_kwargs})
    if error.ndim == 1 or error.shape[1] == 1:
        return line, None
    spread = error.std(axis=1, ddof=1) / np.sqrt(error.shape[1])
    return line, ax.fill_between(x, mean - spread, mean + spread, color=line.get_color(), alpha=0.18, linewidth=0)


def label_x(ax: "Axes", n_steps: int, places: np.ndarray, labels: list[str]) -> None:
    """Set ticks at a few integer numbers of steps, and at the points after them."""
    from matplotlib.ticker import MaxNLocator

    ticks = MaxNLocator(4, integer=True).tick_values(1, n_steps) if n_steps else []
    steps = [int(tick) for tick in ticks if 1 <= tick <= n_steps]
    ax.set_xticks([*steps, *places], [*(f"{step:,}" for step in steps), *labels])
    if n_steps and len(places):
        ax.axvline((n_steps + places[0]) / 2, color="0.8", linewidth=0.8, linestyle=":")
