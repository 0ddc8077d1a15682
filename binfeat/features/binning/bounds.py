"""The boxes of input space that the columns of a binning map represent."""

import numpy as np


def box(grids, p, x):
    """Lower and upper bounds (n_inputs,) of the bin of a row x in grid p; infinite along inputs that it ignores.

    A value is in the box if ``lower < x <= upper``.
    """
    scale, shift = grids.scale[p], grids.shift[p]
    cells = np.ceil(x * scale - shift)
    with np.errstate(divide="ignore", invalid="ignore"):
        lower, upper = (cells - 1 + shift) / scale, (cells + shift) / scale
    ignored = scale == 0
    return np.where(ignored, -np.inf, lower), np.where(ignored, np.inf, upper)
