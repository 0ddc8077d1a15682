"""Plots of fitted models and maps, in scikit-learn's Display convention."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from binfeat._common.drawing import as_text, draw_relevances
from binfeat._common.validation import check_integer, check_numbers
from binfeat._display.canvas import OptionalAxes, canvas, scale_errors, scale_x
from binfeat._display.checks import Machine, given_or_seen, names_of, require_machine
from binfeat._display.contributions import ContributionDisplay
from binfeat._display.curves import curve_of, draw_points, draw_steps, label_x, places_behind
from binfeat._display.intervals import IntervalDisplay
from binfeat._display.kernel_errors import KernelErrorDisplay
from binfeat._display.shapley import ShapleyDisplay

__all__ = [
    "ContributionDisplay",
    "IntervalDisplay",
    "KernelErrorDisplay",
    "LearningCurveDisplay",
    "RelevanceDisplay",
    "ShapleyDisplay",
]


@dataclass(eq=False, repr=False)
class RelevanceDisplay:
    """Bar plot of the relevances of inputs: their shares in the mean exponent of a kernel.

    Parameters
    ----------
    relevances : array-like of shape (n_inputs,)
        Relevances of the inputs, non-negative.
    feature_names : array-like of str of shape (n_inputs,), default=None
        Names of the inputs; None is x0, x1, ...

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Axes with the plot, and their figure.
    bars_ : matplotlib BarContainer

    See Also
    --------
    learn_gamma : Computes relevances of inputs.

    Examples
    --------
    >>> from binfeat import RelevanceDisplay
    >>> from matplotlib.figure import Figure
    >>> display = RelevanceDisplay([0.1, 0.7, 0.2], feature_names=["age", "height", "weight"])
    >>> [label.get_text() for label in display.plot(Figure().subplots()).ax_.get_yticklabels()]
    ['height', 'weight', 'age']
    """

    relevances: ArrayLike
    feature_names: ArrayLike | None = None

    @classmethod
    def from_estimator(
        cls,
        machine: Machine,
        *,
        feature_names: ArrayLike | None = None,
        max_features: int = 20,
        ax: OptionalAxes = None,
    ) -> Self:
        """Draw the relevances of a fitted kernel model, and return the display.

        Parameters
        ----------
        machine : KernelMachineRegressor or KernelMachineClassifier
            Fitted model.
        feature_names : array-like of str of shape (n_inputs,), default=None
            Names of the inputs. None uses the column names of `fit`, if any.
        max_features, ax : as in `plot`

        Returns
        -------
        display : RelevanceDisplay

        Raises
        ------
        TypeError
            If `machine` is not a kernel model.
        """
        require_machine(machine, "feature_relevances_")
        names = given_or_seen(feature_names, machine)
        return cls(machine.feature_relevances_, names).plot(ax, max_features=max_features)

    def plot(self, ax: OptionalAxes = None, *, max_features: int = 20, **bar_kwargs: Any) -> Self:
        """Draw the bars in descending order, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        max_features : int, default=20
            Maximum number of bars. One additional bar shows the sum of all other inputs.
        **bar_kwargs : dict
            Passed to `Axes.barh`.

        Returns
        -------
        display : RelevanceDisplay

        Raises
        ------
        ValueError
            If names and relevances differ in number, a relevance is negative or not finite, relevances are not
            one-dimensional, or `max_features` is below 1.
        """
        relevances = check_numbers(self.relevances, "relevances")
        if not (np.isfinite(relevances).all() and (relevances >= 0).all()):
            raise ValueError(f"relevances must be finite and non-negative, got {self.relevances!r}.")
        if relevances.ndim != 1:
            raise ValueError(f"relevances must have one dimension, got shape {relevances.shape}.")
        names = names_of(self.feature_names, relevances, "relevance")
        most = check_integer(max_features, "max_features", 1)
        self.figure_, self.ax_ = canvas(self, ax, figsize=(6.4, 1.0 + 0.28 * max(4, min(len(names), most + 1))))
        self.bars_ = draw_relevances(self.ax_, relevances, names, most, **bar_kwargs)
        return self


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

        The curve shows the leave-one-out error before each step of the search for length scales, then the validation
        or leave-one-out error for each number of grids or trees; for an exact model, the final error. Without a search,
        and with grids added only once, it shows the errors after all selections. The search uses squared errors, so
        with `scoring` it is hidden if grids were added more than once, and drawn alone otherwise.

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

    def _checked(self):
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
