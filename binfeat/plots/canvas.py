"""Axes to draw on, and their scales."""

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OptionalAxes: TypeAlias = "Axes | None"
_DECADE = 8.0  # ratio of the largest to the smallest value from which an axis is logarithmic
_FEW = 8  # points that are ticks themselves


def canvas(display, ax, figsize):
    """The figure and the axes to draw on, without the frame's upper and right lines."""
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            name = type(display).__name__
            raise ImportError(f"{name}.plot needs Matplotlib. Install it: pip install 'binfeat[plot]'.") from error
        _, ax = plt.subplots(figsize=figsize, layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax.figure, ax


def spans_decades(values):
    """Whether a logarithmic axis is better for these values."""
    return len(values) > 0 and values.min() > 0 and values.max() >= _DECADE * values.min()


def scale_x(ax, x):
    """A logarithmic axis if x spans decades, with the points as ticks if there are few; otherwise whole numbers."""
    from matplotlib.ticker import MaxNLocator

    if not spans_decades(x):
        if (x == np.round(x)).all():
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        return
    ax.set_xscale("log")
    if len(x) <= _FEW:
        ax.set_xticks(x, [f"{value:,g}" for value in x])
        ax.set_xticks([], minor=True)


def scale_errors(ax, errors):
    """A logarithmic axis if errors span decades, with ticks in full."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    if spans_decades(errors):
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.yaxis.set_minor_formatter(NullFormatter())
