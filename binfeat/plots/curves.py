"""Parts of a learning curve: the steps of a search for length scales, then the points of the model."""

import numpy as np

_GAP = 0.15  # share of the steps, between two points behind them
_STYLE = {"marker": "o", "markersize": 6, "markeredgecolor": "white", "linewidth": 2}


def curve_of(machine):
    """Arguments of `LearningCurveDisplay` for a kernel model."""
    steps, curve = machine.length_scale_errors_, machine.learning_curve_
    if len(steps) < 2 and len(curve) < 2:
        decisions = machine.decisions_
        names = {"x_labels": decisions["what"], "x_name": "Decision", "error_name": "Error after it"}
        return {"x": np.arange(len(decisions)), "error": decisions["error"], **names}
    if machine.scoring is not None and len(steps):
        steps, curve = (steps[:0], curve) if len(curve) > 1 else (steps, curve[:0])
    is_random = machine.features_ not in ("exact", "local")  # which leave out single rows, groups, or what `cv` says
    name = "Held-out error" if is_random else "Error of rows left out"
    name = name if machine.scoring is None else "Minus the score of rows held out"
    found = {"x": curve[:, 0], "error": curve[:, 1], "error_name": name}
    if not len(steps):
        return found
    if not len(curve):
        name = "Leave-one-out error"
    elif is_random:
        name = "Leave-one-out, then held-out error"
    found |= {"steps": steps, "x_name": "Step of the search", "error_name": name}
    if len(curve) and (machine.n_grids_ or machine.n_trees_):
        return {**found, "x_name": f"Step of the search, then {'grids' if machine.n_grids_ else 'trees'}"}
    return {**found, "x_labels": [machine.features_] * len(curve)}


def places_behind(n_steps, n_points):
    """Positions of the points after a search, at even distances."""
    return n_steps + max(1.0, _GAP * n_steps) * np.arange(1, n_points + 1)


def draw_steps(ax, steps):
    """The errors before each step, counted from 1; the line."""
    (line,) = ax.plot(np.arange(1, len(steps) + 1), steps, color="0.55", linewidth=1.5)
    return line


def draw_points(ax, x, error, **line_kwargs):
    """Draw mean errors, and a band of one standard error for several errors per point; return line and band."""
    mean = error.reshape(len(x), -1).mean(axis=1) if len(x) else error
    (line,) = ax.plot(x, mean, **{**_STYLE, **line_kwargs})
    if error.ndim == 1 or error.shape[1] == 1:
        return line, None
    spread = error.std(axis=1, ddof=1) / np.sqrt(error.shape[1])
    return line, ax.fill_between(x, mean - spread, mean + spread, color=line.get_color(), alpha=0.18, linewidth=0)


def label_x(ax, n_steps, places, labels):
    """Ticks at a few whole numbers of steps, and at the points after them."""
    from matplotlib.ticker import MaxNLocator

    ticks = MaxNLocator(4, integer=True).tick_values(1, n_steps) if n_steps else []
    steps = [int(tick) for tick in ticks if 1 <= tick <= n_steps]
    ax.set_xticks([*steps, *places], [*(f"{step:,}" for step in steps), *labels])
    if n_steps and len(places):
        ax.axvline((n_steps + places[0]) / 2, color="0.8", linewidth=0.8, linestyle=":")
