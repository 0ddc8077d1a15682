"""The display of Shapley values, for many rows or a single row."""

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from binfeat._common.array_types import ArrayLike
from binfeat._common.drawing import draw_swarm, draw_waterfall
from binfeat._common.validation import check_choice, check_integer, check_numbers
from binfeat.plots.canvas import KernelModel, OptionalAxes, canvas, names_of, require_model


@dataclass(eq=False, repr=False)
class ShapleyDisplay:
    """Plot of Shapley values: a swarm of points for every input, or a waterfall for the prediction of one row.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_inputs)
        Shapley values of one output.
    base_values : array-like of shape (n_rows,)
        Mean predictions for background rows.
    data : array-like of shape (n_rows, n_inputs), default=None
        Inputs of the rows. The ranks of their values determine the colors of a swarm.
    feature_names : array-like of str of shape (n_inputs,), default=None
        Names of the inputs; None is x0, x1, ...

    Attributes
    ----------
    order_ : ndarray of shape (n_shown,)
        Indices of the plotted inputs, in descending order of mean magnitude.
    ax_, figure_ : matplotlib Axes and Figure

    See Also
    --------
    RelevanceDisplay : How fast predictions vary along each input.

    Examples
    --------
    >>> from binfeat import ShapleyDisplay
    >>> from matplotlib.figure import Figure
    >>> display = ShapleyDisplay([[0.5, -2.0], [0.1, 1.0]], [3.0, 3.0], feature_names=["age", "height"])
    >>> [label.get_text() for label in display.plot(ax=Figure().subplots()).ax_.get_yticklabels()]
    ['height', 'age']
    """

    values: ArrayLike
    base_values: ArrayLike
    data: ArrayLike | None = None
    feature_names: ArrayLike | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: KernelModel,
        X: Any,
        *,
        background: Any = None,
        output: int = 0,
        kind: Literal["swarm", "waterfall"] = "swarm",
        row: int = 0,
        max_features: int = 20,
        ax: OptionalAxes = None,
    ) -> Self:
        """Draw the Shapley values of a fitted kernel model, and return the display.

        Parameters
        ----------
        estimator : KernelMachineRegressor or KernelMachineClassifier
            Fitted model.
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs)
        background : array, sparse matrix or data frame of shape (n_background, n_inputs), default=None
            Background rows. None uses up to 100 training rows stored in the model.
        output : int, default=0
            Index of the target or class.
        kind, row, max_features, ax : as in `plot`

        Returns
        -------
        display : ShapleyDisplay

        Raises
        ------
        TypeError
            If `estimator` is not a kernel model.
        ValueError
            If `output` is out of range, or the model stores no rows and `background` is None.
        """
        require_model(estimator, "feature_relevances_")
        found = estimator.shapley_values(X, background)
        values, base = found.values, found.base_values
        n_outputs = 1 if base.ndim == 1 else base.shape[1]
        if not 0 <= check_integer(output, "output", 0) < n_outputs:
            raise ValueError(f"output must be below {n_outputs}, got {output}.")
        if base.ndim == 2:
            values, base = values[:, :, output], base[:, output]
        display = cls(values, base, found.data, found.feature_names)
        return display.plot(kind, row=row, max_features=max_features, ax=ax)

    def plot(
        self,
        kind: Literal["swarm", "waterfall"] = "swarm",
        *,
        row: int = 0,
        max_features: int = 20,
        ax: OptionalAxes = None,
    ) -> Self:
        """Draw the values in descending order of magnitude, and return the display.

        Parameters
        ----------
        kind : {"swarm", "waterfall"}, default="swarm"
            "swarm": a point for each row and input. "waterfall": bars from the base value of one row to its prediction.
        row : int, default=0
            Index of the row of a waterfall.
        max_features : int, default=20
            Maximum number of inputs. In a waterfall one additional bar shows the sum of all other inputs.
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.

        Returns
        -------
        display : ShapleyDisplay

        Raises
        ------
        ValueError
            If shapes do not match, values are not finite, there are no rows, or `row` is out of range.
        """
        check_choice(kind, "kind", ("swarm", "waterfall"))
        values, base = check_numbers(self.values, "values"), check_numbers(self.base_values, "base_values")
        if values.ndim != 2 or base.shape != values.shape[:1] or not np.isfinite(values).all():
            raise ValueError(
                "values must be finite, of shape (n_rows, n_inputs), and base_values of shape (n_rows,); "
                f"got shapes {values.shape} and {base.shape}."
            )
        if not len(values):
            raise ValueError("values must have at least one row, got none.")
        dtype = None if isinstance(self.data, np.ndarray) else object
        data = None if self.data is None else np.asarray(self.data, dtype=dtype)
        if data is not None and data.shape != values.shape:
            raise ValueError(f"data must have the shape of values, {values.shape}; got {data.shape}.")
        names = names_of(self.feature_names, values.T, "input")
        if not 0 <= check_integer(row, "row", 0) < len(values):
            raise ValueError(f"row must be below {len(values)}, got {row}.")
        most = check_integer(max_features, "max_features", 1)
        sizes = np.abs(values if kind == "swarm" else values[row : row + 1]).mean(axis=0)
        self.order_ = np.argsort(-sizes, kind="stable")[:most]
        self.figure_, self.ax_ = canvas(self, ax, figsize=(6.4, 1.4 + 0.3 * max(4, len(self.order_))))
        if kind == "swarm":
            draw_swarm(self.ax_, values, data, names, self.order_)
        else:
            draw_waterfall(self.ax_, values[row], float(base[row]), names, self.order_)
        return self
