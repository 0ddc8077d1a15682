"""Axes of displays, and their scales."""

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

OptionalAxes: TypeAlias = "Axes | None"
_DECADE = 8.0  # ratio of the largest to the smallest value from which an axis is logarithmic
_FEW = 8  # up to this number of points, every point gets a tick


def canvas(display: object, ax: OptionalAxes, figsize: tuple[float, float]) -> "tuple[Figure | SubFigure, Axes]":
    """Return the figure and the axes to draw on, without upper and right spines."""
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            name = type(display).__name__
            raise ImportError(f"{name}.plot needs Matplotlib. Install it: pip install 'binfeat[plot]'.") from error
        _, ax = plt.subplots(figsize=figsize, layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax.figure, ax


def spans_decades(values: np.ndarray) -> bool:
    """Return True if the values are positive and span a factor of 8 or more, as for a logarithmic axis."""
    return len(values) > 0 and values.min() > 0 and values.max() >= _DECADE * values.min()


def scale_x(ax: "Axes", x: np.ndarray) -> None:
    """Use a logarithmic axis if x spans decades, with the points as ticks if there are few; otherwise integer ticks."""
    from matplotlib.ticker import MaxNLocator

    if not spans_decades(x):
        if (x == np.round(x)).all():
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        return
    ax.set_xscale("log")
    if len(x) <= _FEW:
        ax.set_xticks(x, [f"{value:,g}" for value in x])
        ax.set_xticks([], minor=True)


def scale_errors(ax: "Axes", errors: np.ndarray) -> None:
    """Use a logarithmic axis if errors span decades, with tick labels in plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    if spans_decades(errors):
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.yaxis.set_minor_formatter(NullFormatter())
