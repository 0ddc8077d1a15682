"""The display of prediction intervals."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from binfeat._common.array_types import ArrayLike
from binfeat._common.drawing import as_text
from binfeat._common.subsets import thinned
from binfeat._common.validation import check_integer, check_numbers, check_share
from binfeat.models.number_estimator import NumbersModelBase
from binfeat.models.regressor import KernelMachineRegressor
from binfeat.plots.canvas import OptionalAxes, canvas

_INSIDE, _OUTSIDE, _BARS = "#1f5fa8", "#c8452d", "0.78"


@dataclass(eq=False, repr=False)
class IntervalDisplay:
    """Plot of prediction intervals and targets.

    A vertical bar is the interval of a row. A dot is its target: blue inside the interval, red outside.

    Parameters
    ----------
    x : array-like of shape (n_rows,)
        Positions of the rows on the horizontal axis, for example their predictions.
    y : array-like of shape (n_rows,)
        Targets.
    intervals : array-like of shape (n_rows, 2)
        Lower and upper ends.
    coverage : float, default=None
        Nominal coverage of the intervals, for the title.
    x_name : str, default="Prediction"
        Label of the horizontal axis. Mathematical markup is not interpreted.

    Attributes
    ----------
    inside_ : float
        Share of all targets inside their intervals.
    ax_, figure_ : matplotlib Axes and Figure
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
    >>> model = KernelMachineRegressor(random_state=0).fit(X[:300], y[:300])
    >>> display = IntervalDisplay.from_estimator(model, X[300:], y[300:], ax=Figure().subplots())
    >>> 0.8 < display.inside_ < 1.0
    True
    """

    x: ArrayLike
    y: ArrayLike
    intervals: ArrayLike
    _: KW_ONLY
    coverage: float | None = None
    x_name: str = "Prediction"

    @classmethod
    def from_estimator(
        cls,
        estimator: KernelMachineRegressor,
        X: Any,
        y: ArrayLike,
        *,
        coverage: float = 0.9,
        max_rows: int = 200,
        ax: OptionalAxes = None,
    ) -> Self:
        """Draw the intervals of a kernel model for test rows, and return the display.

        Parameters
        ----------
        estimator : KernelMachineRegressor
            Model fitted to one target.
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs)
            Test rows.
        y : array-like of shape (n_rows,)
            Targets of the test rows.
        coverage : float, default=0.9
            Share of new targets in the intervals, see `KernelMachineRegressor.predict_interval`.
        max_rows, ax : as in `plot`

        Returns
        -------
        display : IntervalDisplay

        Raises
        ------
        TypeError
            If `estimator` is not a KernelMachineRegressor.
        ValueError
            If `estimator` has several targets.
        """
        if not isinstance(estimator, NumbersModelBase):
            raise TypeError(f"estimator must be a KernelMachineRegressor, got {type(estimator).__name__}.")
        check_is_fitted(estimator, "feature_coef_")
        intervals = estimator.predict_interval(X, coverage)
        if intervals.ndim > 2:
            raise ValueError(f"estimator must have one target, got {intervals.shape[1]}.")
        return cls(estimator.predict(X), y, intervals, coverage=coverage).plot(ax, max_rows=max_rows)

    def plot(self, ax: OptionalAxes = None, *, max_rows: int = 200, **scatter_kwargs: Any) -> Self:
        """Draw bars and dots, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        max_rows : int, default=200
            Maximum number of plotted rows, at even distances in the order of x.
        **scatter_kwargs : dict
            Passed to `Axes.scatter`.

        Returns
        -------
        display : IntervalDisplay

        Raises
        ------
        ValueError
            If `x`, `y` and `intervals` differ in length, are empty, or contain numbers that are not finite.
        """
        x, y, intervals = (check_numbers(getattr(self, name), name) for name in ("x", "y", "intervals"))
        if x.ndim != 1 or not x.size or y.shape != x.shape or intervals.shape != (x.size, 2):
            raise ValueError(
                f"x, y and intervals must be of shapes (n_rows,), (n_rows,) and (n_rows, 2); got {x.shape}, {y.shape} "
                f"and {intervals.shape}."
            )
        if not all(np.isfinite(values).all() for values in (x, y, intervals)):
            raise ValueError("x, y and intervals must be finite.")
        nominal = "" if self.coverage is None else f" (nominal {check_share(self.coverage, 'coverage'):.4g})"
        low, high = intervals.T
        inside = (low <= y) & (y <= high)
        self.inside_ = float(inside.mean())
        shown = thinned(np.argsort(x, kind="stable"), check_integer(max_rows, "max_rows", 1))
        self.figure_, self.ax_ = canvas(self, ax, figsize=(6.4, 4.4))
        self.bars_ = self.ax_.vlines(x[shown], low[shown], high[shown], color=_BARS, linewidth=1.2, zorder=1)
        colors = np.where(inside[shown], _INSIDE, _OUTSIDE)
        style = {"s": 14, "linewidths": 0, "color": colors, "zorder": 2, **scatter_kwargs}
        self.points_ = self.ax_.scatter(x[shown], y[shown], **style)
        self.ax_.set(xlabel=as_text(self.x_name), ylabel="Target")
        self.ax_.set_title(f"{self.inside_:.3f} of {x.size:,} rows inside{nominal}", loc="left", fontsize="medium")
        return self
