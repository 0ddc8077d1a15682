"""The display of relevances of inputs."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from binfeat._common.array_types import ArrayLike
from binfeat._common.drawing import draw_relevances
from binfeat._common.validation import check_integer, check_numbers
from binfeat.plots.canvas import KernelModel, OptionalAxes, canvas, names_of, require_model


@dataclass(eq=False, repr=False)
class RelevanceDisplay:
    """Bar plot of the relevances of inputs: how fast predictions vary along each input.

    A relevance is the share of an input in the mean exponent of the kernel. It does not measure importance.

    Parameters
    ----------
    relevances : array-like of shape (n_inputs,)
        Relevances of the inputs, non-negative.
    feature_names : array-like of str of shape (n_inputs,), default=None
        Names of the inputs; None is x0, x1, ...

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
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
        estimator: KernelModel,
        *,
        feature_names: ArrayLike | None = None,
        max_features: int = 20,
        ax: OptionalAxes = None,
    ) -> Self:
        """Draw the relevances of a fitted kernel model, and return the display.

        Parameters
        ----------
        estimator : KernelMachineRegressor or KernelMachineClassifier
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
            If `estimator` is not a kernel model.
        """
        require_model(estimator, "feature_relevances_")
        if feature_names is None:
            feature_names = getattr(estimator, "feature_names_in_", None)
        return cls(estimator.feature_relevances_, feature_names).plot(ax, max_features=max_features)

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
