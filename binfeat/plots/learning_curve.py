"""Errors during a fit: `LearningCurveDisplay`."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from binfeat._common.array_types import ArrayLike
from binfeat._common.drawing import as_text
from binfeat._common.validation import check_numbers
from binfeat.plots.canvas import OptionalAxes, canvas, scale_errors, scale_x
from binfeat.plots.checks import Machine, require_machine
from binfeat.plots.curves import curve_of, draw_points, draw_steps, label_x, places_behind


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
        Axes with the plot, and their figure.
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
    def from_estimator(cls, machine: Machine, *, ax: OptionalAxes = None, **line_kwargs: Any) -> Self:
        """Draw the error of a fitted kernel model during `fit`, and return the display.

        The left part is the leave-one-out error before each step of the search for length scales. The right part is
        the validation or leave-one-out error for each number of grids or trees, or the final error of an exact model.
        If there was no search and the right part has one point, the error after each decision is drawn instead. With
        `scoring` the two parts have different units, so the left part is drawn only if the right part has one point.

        Parameters
        ----------
        machine : KernelMachineRegressor or KernelMachineClassifier
            Fitted model.
        ax, **line_kwargs : as in `plot`

        Returns
        -------
        display : LearningCurveDisplay

        Raises
        ------
        TypeError
            If `machine` is not a kernel model.
        """
        require_machine(machine, "learning_curve_")
        return cls(**curve_of(machine)).plot(ax, **line_kwargs)

    def plot(self, ax: OptionalAxes = None, **line_kwargs: Any) -> Self:
        """Draw the curve, and return the display. Axes are logarithmic if values span a factor of 8 or more.

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
        places = x if self.x_labels is None and not len(steps) else places_behind(len(steps), len(x))
        self.steps_ = draw_steps(self.ax_, steps) if len(steps) else None
        self.line_, self.band_ = draw_points(self.ax_, places, error, **line_kwargs)
        if places is x:
            scale_x(self.ax_, x)
        else:
            labels = [f"{value:,g}" for value in x] if self.x_labels is None else list(map(as_text, self.x_labels))
            label_x(self.ax_, len(steps), places, labels)
        if len(steps):
            scale_errors(self.ax_, np.append(error.ravel(), steps))
        self.ax_.grid(axis="y", color="0.92")
        self.ax_.set_axisbelow(True)
        self.ax_.set(xlabel=as_text(self.x_name), ylabel=as_text(self.error_name))
        return self

    def _checked(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return `x`, `error` and `steps` as checked arrays."""
        x, error = check_numbers(self.x, "x"), check_numbers(self.error, "error")
        steps = check_numbers([] if self.steps is None else self.steps, "steps")
        if x.ndim != 1 or error.ndim not in (1, 2) or len(x) != len(error):
            raise ValueError(f"x and error must have one row per point; got shapes {x.shape} and {error.shape}.")
        if self.x_labels is not None and len(self.x_labels) != len(x):
            raise ValueError(f"x_labels must have one word per point, {len(x)}; got {len(self.x_labels)}.")
        if steps.ndim != 1:
            raise ValueError(f"steps must have one error per step; got shape {steps.shape}.")
        return x, error, steps
