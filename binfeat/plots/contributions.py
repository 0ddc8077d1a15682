"""The display of contributions of inputs to outlier scores."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from binfeat._common.array_types import ArrayLike
from binfeat._common.drawing import as_text
from binfeat._common.validation import check_integer, check_numbers
from binfeat.density.detector import OutlierDetector
from binfeat.plots.canvas import OptionalAxes, canvas, names_of

_ABNORMAL, _NORMAL = "#c44e52", "0.75"


@dataclass(eq=False, repr=False)
class ContributionDisplay:
    """Bar plot of the contributions of inputs to the outlier score of a row.

    An input with a large positive contribution makes the row unusual.

    Parameters
    ----------
    contributions : array-like of shape (n_inputs,)
        Contributions, as from `OutlierDetector.contributions`.
    feature_names : array-like of str of shape (n_inputs,), default=None
        Names of the inputs; None is x0, x1, ...

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    bars_ : matplotlib BarContainer

    Examples
    --------
    >>> from binfeat import ContributionDisplay
    >>> from matplotlib.figure import Figure
    >>> display = ContributionDisplay([-0.1, 2.7, 0.2], feature_names=["age", "height", "weight"])
    >>> [label.get_text() for label in display.plot(Figure().subplots()).ax_.get_yticklabels()]
    ['height', 'weight', 'age']
    """

    contributions: ArrayLike
    feature_names: ArrayLike | None = None

    @classmethod
    def from_estimator(
        cls,
        detector: OutlierDetector,
        X: Any,
        *,
        row: int = 0,
        max_features: int = 10,
        ax: OptionalAxes = None,
    ) -> Self:
        """Draw the contributions to the score of a row, and return the display.

        Parameters
        ----------
        detector : OutlierDetector
            Fitted detector.
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs)
        row : int, default=0
            Position of the row in X.
        max_features, ax : as in `plot`

        Returns
        -------
        display : ContributionDisplay

        Raises
        ------
        TypeError
            If `detector` is not an `OutlierDetector`.
        ValueError
            If `row` is out of range.
        """
        if not isinstance(detector, OutlierDetector):
            raise TypeError(f"detector must be an OutlierDetector, got {type(detector).__name__}.")
        found = detector.contributions(X)
        if not 0 <= check_integer(row, "row", 0) < len(found):
            raise ValueError(f"row must be below {len(found)}, got {row}.")
        names = getattr(detector, "feature_names_in_", None)
        return cls(found[row], names).plot(ax, max_features=max_features)

    def plot(self, ax: OptionalAxes = None, *, max_features: int = 10, **bar_kwargs: Any) -> Self:
        """Draw the bars in descending order, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None creates a new figure.
        max_features : int, default=10
            Maximum number of bars.
        **bar_kwargs : dict
            Passed to `Axes.barh`.

        Returns
        -------
        display : ContributionDisplay

        Raises
        ------
        ValueError
            If the contributions are not finite numbers in one dimension, or names do not match.
        """
        values = check_numbers(self.contributions, "contributions")
        if values.ndim != 1 or not np.isfinite(values).all():
            raise ValueError(f"contributions must be finite, of shape (n_inputs,); got shape {values.shape}.")
        names = names_of(self.feature_names, values, "input")
        order = np.argsort(-values, kind="stable")[: check_integer(max_features, "max_features", 1)]
        self.figure_, self.ax_ = canvas(self, ax, figsize=(6.0, 1.4 + 0.3 * len(order)))
        colors = np.where(values[order] > 0, _ABNORMAL, _NORMAL)
        self.bars_ = self.ax_.barh(np.arange(order.size), values[order], **{"color": colors, **bar_kwargs})
        self.ax_.set_yticks(np.arange(order.size), [as_text(names[j]) for j in order])
        self.ax_.invert_yaxis()
        self.ax_.axvline(0, color="0.6", linewidth=0.8)
        self.ax_.set_xlabel("Contribution to the outlier score")
        return self
