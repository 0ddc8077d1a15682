"""The display of prediction intervals."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from binfeat._common.docstrings import filled
from binfeat._common.subsets import evenly_spaced
from binfeat._common.validation import check_integer, check_numbers, check_share
from binfeat._display.canvas import AX, canvas
from binfeat._machine.fitted.error_bars import ErrorBars

_INSIDE, _OUTSIDE, _BARS = "#1f5fa8", "#c8452d", "0.78"


@filled(AX)
class IntervalDisplay:
    """Targets of rows, and the intervals that were predicted for them.

    Each vertical bar is an interval, and the dot near it the target: blue inside, red outside.

    Parameters
    ----------
    x : array-like of shape (n_rows,)
        Where a row stands, such as its prediction.
    y : array-like of shape (n_rows,)
        Targets.
    intervals : array-like of shape (n_rows, 2)
        Lower and upper ends.
    coverage : float, default=None
        Share that the intervals are meant to hold, for the title.
    x_name : str, default="Prediction"

    Attributes
    ----------
    inside_ : float
        Share of all targets that lie in their intervals.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : matplotlib LineCollection
    points_ : matplotlib PathCollection

    Examples
    --------
    >>> import numpy as np
    >>> from binfeat import IntervalDisplay, KernelMachineRegressor
    >>> from matplotlib.figure import Figure
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(600, 1))
    >>> y = np.sin(3 * X[:, 0]) + 0.2 * rng.normal(size=600)
    >>> machine = KernelMachineRegressor(random_state=0).fit(X[:300], y[:300])
    >>> display = IntervalDisplay.from_estimator(machine, X[300:], y[300:], ax=Figure().subplots())
    >>> 0.8 < display.inside_ < 1.0
    True
    """

    def __init__(self, x, y, intervals, *, coverage=None, x_name="Prediction"):
        self.x = x
        self.y = y
        self.intervals = intervals
        self.coverage = coverage
        self.x_name = x_name

    @classmethod
    def from_estimator(cls, machine, X, y, *, coverage=0.9, max_rows=200, ax=None):
        """Draw the intervals of a kernel machine for rows that it has not seen.

        Parameters
        ----------
        machine : KernelMachineRegressor
            Fitted to one target.
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs)
        y : array-like of shape (n_rows,)
        coverage : float, default=0.9
            See `KernelMachineRegressor.predict_interval`.
        max_rows : int, default=200
            Maximum number of rows that are drawn.
        $ax

        $display

        Raises
        ------
        TypeError
            If it is not a kernel machine for numbers.
        ValueError
            If it has several targets.
        """
        if not isinstance(machine, ErrorBars):
            raise TypeError(f"machine must be a KernelMachineRegressor, got {type(machine).__name__}.")
        check_is_fitted(machine, "feature_coef_")
        intervals = machine.predict_interval(X, coverage)
        if intervals.ndim > 2:
            raise ValueError(f"machine must have one target to draw, and has {intervals.shape[1]}.")
        return cls(machine.predict(X), y, intervals, coverage=coverage).plot(ax, max_rows=max_rows)

    def plot(self, ax=None, *, max_rows=200, **scatter_kwargs):
        """Draw bars and dots.

        Parameters
        ----------
        $ax
        max_rows : int, default=200
            Maximum number of rows that are drawn, at even distances in the order of x.
        **scatter_kwargs : dict
            Passed to `Axes.scatter`.

        $display

        Raises
        ------
        ValueError
            If there are not as many of x, y and intervals, none, or one is not finite.
        """
        x, y, intervals = (check_numbers(getattr(self, name), name) for name in ("x", "y", "intervals"))
        if x.ndim != 1 or not x.size or y.shape != x.shape or intervals.shape != (x.size, 2):
            raise ValueError(
                f"x, y and intervals must be of shapes (n_rows,), (n_rows,) and (n_rows, 2); got {x.shape}, {y.shape} "
                f"and {intervals.shape}."
            )
        if not all(np.isfinite(values).all() for values in (x, y, intervals)):
            raise ValueError("x, y and intervals must be finite.")
        meant = "" if self.coverage is None else f", meant to be {check_share(self.coverage, 'coverage'):.4g}"
        low, high = intervals.T
        inside = (low <= y) & (y <= high)
        self.inside_ = float(inside.mean())
        shown = np.argsort(x, kind="stable")[evenly_spaced(x.size, check_integer(max_rows, "max_rows", 1))]
        self.figure_, self.ax_ = canvas(self, ax, figsize=(6.4, 4.4))
        self.bars_ = self.ax_.vlines(x[shown], low[shown], high[shown], color=_BARS, linewidth=1.2, zorder=1)
        colours = np.where(inside[shown], _INSIDE, _OUTSIDE)
        style = {"s": 14, "linewidths": 0, "color": colours, "zorder": 2, **scatter_kwargs}
        self.points_ = self.ax_.scatter(x[shown], y[shown], **style)
        self.ax_.set(xlabel=self.x_name, ylabel="Target")
        self.ax_.set_title(f"{self.inside_:.3f} of {x.size:,} rows inside{meant}", loc="left", fontsize="medium")
        return self
