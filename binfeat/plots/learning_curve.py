"""Errors during a fit: `LearningCurveDisplay`."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from binfeat._common.array_types import ArrayLike
from binfeat._common.drawing import as_text
from binfeat._common.validation import check_numbers
from binfeat.plots.canvas import KernelModel, OptionalAxes, canvas, require_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.lines import Line2D

_GAP = 0.15  # distance between two points after the search, as a share of the steps
_STYLE: dict[str, Any] = {"marker": "o", "markersize": 6, "markeredgecolor": "white", "linewidth": 2}
_DECADE = 8.0  # ratio of the largest to the smallest value from which an axis is logarithmic
_FEW = 8  # up to this number of points, every point gets a tick


@dataclass(eq=False, repr=False)
class LearningCurveDisplay:
    """Plot of the validation error against the number of grids, trees, rows or iterations, after the steps of a search.

    Parameters
    ----------
    x : array-like of shape (n_points,)
        Numbers of grids, trees, rows or iterations.
    error : array-like of shape (n_points,) or (n_points, n_folds)
        Errors. For several folds, the mean and a band of one standard error above and below are drawn.
    x_name : str, default="Grids"
        Label of the horizontal axis. Mathematical markup is not interpreted.
    error_name : str, default="Validation error"
        Label of the vertical axis. Mathematical markup is not interpreted.
    x_labels : array-like of str of shape (n_points,), default=None
        Labels that replace x, at even distances.
    steps : array-like of shape (n_steps,), default=None
        Errors before the steps of a search. The points are drawn to the right of the search, at even distances.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    line_ : matplotlib Line2D
        Line of the points.
    steps_ : matplotlib Line2D or None
        Line of the search.
    band_ : matplotlib collection or None
        Band of one standard error above and below the points.

    Examples
    --------
    >>> from binfeat import LearningCurveDisplay
    >>> from matplotlib.figure import Figure
    >>> display = LearningCurveDisplay([1000, 4000, 16000], [0.21, 0.12, 0.08], x_name="Rows")
    >>> display.plot(Figure().subplots()).ax_.get_xscale()
    'log'
    """

    x: ArrayLike
    error: ArrayLike
    _: KW_ONLY
    x_name: str = "Grids"
    error_name: str = "Validation error"
    x_labels: Sequence[str] | None = None
    steps: ArrayLike | None = None

    @classmethod
    def from_estimator(cls, estimator: KernelModel, *, ax: OptionalAxes = None, **line_kwargs: Any) -> Self:
        """Draw the error of a fitted kernel model during `fit`, and return the display.

        The left part is the leave-one-out error before each step of the search for length scales. The right part is
        the validation or leave-one-out error for each number of grids or trees, or the final error of an exact model.
        If there was no search and the right part has one point, the error after each decision is drawn instead. With
        `scoring` the two parts have different units, so the left part is drawn only if the right part has one point.

        Parameters
        ----------
        estimator : KernelMachineRegressor or KernelMachineClassifier
            Fitted model.
        ax, **line_kwargs : as in `plot`

        Returns
        -------
        display : LearningCurveDisplay

        Raises
        ------
        TypeError
            If `estimator` is not a kernel model.
        """
        require_model(estimator, "learning_curve_")
        return cls(**_curve_of(estimator)).plot(ax, **line_kwargs)

    def plot(self, ax: OptionalAxes = None, **line_kwargs: Any) -> Self:
        """Draw the curve, and return the display.

        Without `steps` and `x_labels`, the horizontal axis is logarithmic if `x` spans a factor of 8 or more. With
        `steps`, the vertical axis is logarithmic if the errors span this factor.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        **line_kwargs : dict
            Passed to `Axes.plot`, for the points.

        Returns
        -------
        display : LearningCurveDisplay

        Raises
        ------
        ValueError
            If `x`, `error` and `x_labels` differ in length, or `steps` is not one-dimensional.
        """
        x, error, steps = self._checked()
        self.figure_, self.ax_ = canvas(self, ax, figsize=(6.0, 4.0))
        places, self.steps_ = x, None
        if self.x_labels is not None or len(steps):
            places = len(steps) + max(1.0, _GAP * len(steps)) * np.arange(1, len(x) + 1)
        if len(steps):
            (self.steps_,) = self.ax_.plot(np.arange(1, len(steps) + 1), steps, color="0.55", linewidth=1.5)
        self.line_, self.band_ = _draw_points(self.ax_, places, error, **line_kwargs)
        if places is x:
            _scale_x(self.ax_, x)
        else:
            labels = [f"{value:,g}" for value in x] if self.x_labels is None else list(map(as_text, self.x_labels))
            _label_x(self.ax_, len(steps), places, labels)
        if len(steps):
            _scale_errors(self.ax_, np.append(error.ravel(), steps))
        self.ax_.grid(axis="y", color="0.92")
        self.ax_.set_axisbelow(True)
        self.ax_.set(xlabel=as_text(self.x_name), ylabel=as_text(self.error_name))
        return self

    def _checked(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        x, error = check_numbers(self.x, "x"), check_numbers(self.error, "error")
        steps = check_numbers([] if self.steps is None else self.steps, "steps")
        if x.ndim != 1 or error.ndim not in (1, 2) or len(x) != len(error):
            raise ValueError(f"x and error must have one row per point; got shapes {x.shape} and {error.shape}.")
        if self.x_labels is not None and len(self.x_labels) != len(x):
            raise ValueError(f"x_labels must have one word per point, {len(x)}; got {len(self.x_labels)}.")
        if steps.ndim != 1:
            raise ValueError(f"steps must have one error per step; got shape {steps.shape}.")
        return x, error, steps


def _curve_of(model: KernelModel) -> dict[str, Any]:
    """Return the arguments of `LearningCurveDisplay` for a kernel model."""
    steps, curve = model.length_scale_errors_, model.learning_curve_
    if len(steps) < 2 and len(curve) < 2:
        decisions = model.decisions_
        names = {"x_labels": decisions["what"], "x_name": "Decision", "error_name": "Error after the decision"}
        return {"x": np.arange(len(decisions)), "error": decisions["error"], **names}
    if model.scoring is not None and len(steps):
        steps, curve = (steps[:0], curve) if len(curve) > 1 else (steps, curve[:0])
    is_random = model.features_ not in ("exact", "local")  # their errors are leave-one-out errors, unless `cv` is set
    name = "Validation error" if model.scoring is None else "Negative validation score"
    found: dict[str, Any] = {"x": curve[:, 0], "error": curve[:, 1], "error_name": name}
    if not len(steps):
        return found
    if not len(curve):
        name = "Leave-one-out error"
    elif is_random:
        name = "Leave-one-out, then validation error"
    found |= {"steps": steps, "x_name": "Step of the search", "error_name": name}
    if len(curve) and (model.n_grids_ or model.n_trees_):
        return {**found, "x_name": f"Step of the search, then {'grids' if model.n_grids_ else 'trees'}"}
    return {**found, "x_labels": [model.features_] * len(curve)}


def _draw_points(
    ax: "Axes", x: np.ndarray, error: np.ndarray, **line_kwargs: Any
) -> "tuple[Line2D, PolyCollection | None]":
    """Draw mean errors, and a band of one standard error for several errors per point; return line and band."""
    mean = error.reshape(len(x), -1).mean(axis=1) if len(x) else error
    (line,) = ax.plot(x, mean, **{**_STYLE, **line_kwargs})
    if error.ndim == 1 or error.shape[1] == 1:
        return line, None
    spread = error.std(axis=1, ddof=1) / np.sqrt(error.shape[1])
    return line, ax.fill_between(x, mean - spread, mean + spread, color=line.get_color(), alpha=0.18, linewidth=0)


def _label_x(ax: "Axes", n_steps: int, places: np.ndarray, labels: list[str]) -> None:
    """Set ticks at a few integer numbers of steps, and at the points after them."""
    from matplotlib.ticker import MaxNLocator

    ticks = MaxNLocator(4, integer=True).tick_values(1, n_steps) if n_steps else []
    steps = [int(tick) for tick in ticks if 1 <= tick <= n_steps]
    ax.set_xticks([*steps, *places], [*(f"{step:,}" for step in steps), *labels])
    if n_steps and len(places):
        ax.axvline((n_steps + places[0]) / 2, color="0.8", linewidth=0.8, linestyle=":")


def _spans_decades(values: np.ndarray) -> bool:
    """Return True if the values are positive and span a factor of 8 or more, as for a logarithmic axis."""
    return len(values) > 0 and values.min() > 0 and values.max() >= _DECADE * values.min()


def _scale_x(ax: "Axes", x: np.ndarray) -> None:
    """Use a logarithmic axis if x spans decades, with the points as ticks if there are few; otherwise integer ticks."""
    from matplotlib.ticker import MaxNLocator

    if not _spans_decades(x):
        if (x == np.round(x)).all():
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        return
    ax.set_xscale("log")
    if len(x) <= _FEW:
        ax.set_xticks(x, [f"{value:,g}" for value in x])
        ax.set_xticks([], minor=True)


def _scale_errors(ax: "Axes", errors: np.ndarray) -> None:
    """Use a logarithmic axis if errors span decades, with tick labels in plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    if _spans_decades(errors):
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.yaxis.set_minor_formatter(NullFormatter())
