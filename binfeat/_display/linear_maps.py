"""The display of the directions that a machine's linear map stretches most."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from binfeat._common.drawing import as_text
from binfeat._common.validation import check_integer, check_numbers
from binfeat._display.canvas import OptionalAxes, canvas
from binfeat._display.checks import Machine, given_or_seen, names_of, require_machine


@dataclass(eq=False, repr=False)
class LinearMapDisplay:
    """Weights of the inputs in the directions along which a kernel with a linear map tells rows apart.

    The singular value decomposition of a linear map of the inputs has a direction for each singular value. A column of
    the picture is a direction, the left singular vector times the singular value, and a row is an input. Inputs of one
    colour in a column act by their sum, inputs of opposite colours by their difference. A percentage is the share of a
    direction in the sum of all squared singular values.

    Parameters
    ----------
    linear_map : array-like of shape (n_inputs, rank)
        Map of the inputs, in units in which all inputs vary alike.
    feature_names : array-like of str of shape (n_inputs,), default=None
        Names of the inputs; None is x0, x1, ...

    Attributes
    ----------
    directions_ : ndarray of shape (n_inputs, n_directions)
        Singular vectors times singular values, the largest first, in units in which all squares sum to 1. The largest
        weight of each direction is positive.
    shares_ : ndarray of shape (n_directions,)
        Shares of the directions in the sum of all squared singular values.
    ax_, figure_ : matplotlib Axes and Figure
        The axes with the picture, and their figure.
    image_ : matplotlib AxesImage

    See Also
    --------
    RelevanceDisplay : The share of each input, whatever the directions.

    Examples
    --------
    >>> from binfeat import LinearMapDisplay
    >>> from matplotlib.figure import Figure
    >>> display = LinearMapDisplay([[3, 3], [3, 3], [1, -1]], feature_names=["age", "height", "weight"])
    >>> [label.get_text() for label in display.plot(Figure().subplots()).ax_.get_xticklabels()]
    ['95 %', '5 %']
    >>> display.directions_[:2, 0].round(2)
    array([0.69, 0.69])
    """

    linear_map: ArrayLike
    feature_names: ArrayLike | None = None

    @classmethod
    def from_estimator(
        cls,
        machine: Machine,
        *,
        feature_names: ArrayLike | None = None,
        max_features: int = 20,
        max_directions: int = 5,
        ax: OptionalAxes = None,
    ) -> Self:
        """Draw the directions of a fitted kernel machine that has learned a linear map, and return the display.

        The weights are those of inputs in units of their spread: a row of `linear_map_` counts as much as the input is
        relevant. Categorical inputs, which are not mapped, are left out, and so are the columns that a machine makes
        of dates and of missing values.

        Parameters
        ----------
        machine : KernelMachineRegressor or KernelMachineClassifier
            Fitted machine.
        feature_names : array-like of str of shape (n_inputs,), default=None
            Names of the inputs; None uses the column names seen in `fit`, if there were any.
        max_features, max_directions, ax : as in `plot`

        Returns
        -------
        display : LinearMapDisplay

        Raises
        ------
        TypeError
            If `machine` is not a kernel machine.
        ValueError
            If `machine` has no linear map.
        """
        require_machine(machine, "feature_relevances_")
        linear_map = machine.linear_map_
        if linear_map is None:
            raise ValueError(
                "machine must have a linear map, and its linear_map_ is None: none was learned, or none had less "
                "error. RelevanceDisplay draws the relevances of its inputs."
            )
        names = names_of(given_or_seen(feature_names, machine), machine.feature_relevances_, "input")
        numbers = np.flatnonzero(~machine._fitted.encoder.categorical[: machine.n_features_in_])
        power = 2 if machine.features_ in ("exact", "local") else 1  # of distances, of which relevances are shares
        spread = machine.feature_relevances_[numbers, np.newaxis] ** (1 / power)
        display = cls(spread * linear_map[numbers], [names[j] for j in numbers])
        return display.plot(ax, max_features=max_features, max_directions=max_directions)

    def plot(
        self, ax: OptionalAxes = None, *, max_features: int = 20, max_directions: int = 5, **image_kwargs: Any
    ) -> Self:
        """Draw the weights, the input with the largest weights on top, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a new figure.
        max_features : int, default=20
            Maximum number of inputs; the inputs with the largest weights are drawn.
        max_directions : int, default=5
            Maximum number of directions.
        **image_kwargs : dict
            Passed to `Axes.imshow`.

        Returns
        -------
        display : LinearMapDisplay

        Raises
        ------
        ValueError
            If there are not as many names as inputs, or the map is not finite, zero, or not of two dimensions.
        """
        linear_map = check_numbers(self.linear_map, "linear_map")
        if linear_map.ndim != 2 or not np.isfinite(linear_map).all() or not linear_map.any():
            raise ValueError(
                "linear_map must be a finite map that is not zero, of shape (n_inputs, rank); "
                f"got shape {linear_map.shape}."
            )
        names = names_of(self.feature_names, linear_map, "input")
        n_directions = check_integer(max_directions, "max_directions", 1)
        n_inputs = check_integer(max_features, "max_features", 1)
        directions, self.shares_ = _directions(linear_map)
        self.directions_, shares = directions, self.shares_[:n_directions]
        shown = np.argsort(-np.linalg.norm(directions, axis=1), kind="stable")[:n_inputs]
        weights = directions[shown, :n_directions]
        self.figure_, self.ax_ = canvas(self, ax, figsize=(2.4 + 0.7 * len(shares), 1.2 + 0.28 * max(4, len(shown))))
        most = np.abs(weights).max()
        style = {"cmap": "RdBu", "vmin": -most, "vmax": most, "aspect": "auto", **image_kwargs}
        self.image_ = self.ax_.imshow(weights, **style)
        self.ax_.spines[:].set_visible(False)
        percentages = [f"{100 * share:.0f} %" if share >= 0.005 else "<1 %" for share in shares]
        self.ax_.set_xticks(np.arange(len(shares)), percentages)
        self.ax_.set_yticks(np.arange(len(shown)), [as_text(names[j]) for j in shown])
        self.ax_.tick_params(length=0)
        self.ax_.set_xlabel("Share of the direction")
        self.figure_.colorbar(self.image_, ax=self.ax_, label="Weight in the direction")
        return self


def _directions(linear_map):
    """Left singular vectors times singular values of a map whose squares sum to 1, and the squares of these values."""
    vectors, values, _ = np.linalg.svd(linear_map / np.abs(linear_map).max(), full_matrices=False)
    values = values / np.linalg.norm(values)
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[np.newaxis], axis=0)
    return vectors * np.copysign(values, largest), values**2
