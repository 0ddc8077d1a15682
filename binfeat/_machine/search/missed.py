"""What a search has missed: inputs that only together say something, in what it leaves of the targets."""

from contextlib import suppress

import numpy as np

from binfeat._common.held_out import surely_less
from binfeat._machine.kernel_algebra.leave_one_out import SingularKernelError
from binfeat._machine.search.length_scales import LengthScaleSearch
from binfeat._machine.search.pairs import lengths_of_pairs
from binfeat.kernels import Laplacian

_ROWS, _STEP_ROWS = 1500, 600  # that tell it, and of a step
_FEWEST = 1000
_LEFT = 0.02  # of the variance, below which little can be missed
_STEPS, _MORE_STEPS = 20, 40
_MAY_TELL, _TELLS, _SURELY = 0.98, 0.95, 2.0  # of the error of the mean; standard errors


def missed(search: LengthScaleSearch, seed: int) -> np.ndarray | None:
    """Length scales, (n_inputs,), that tell something of a search's residuals; infinite where they tell nothing.

    A few steps of fresh rows, from wide kernels, or from short ones of pairs that tell something: the first search may
    have gone without inputs whose slopes were hidden by what others say, or that have none. The Laplacian finds more
    than smooth kernels do.
    """
    if len(search.rows.used) >= _FEWEST:
        with suppress(SingularKernelError):
            return _told(search, seed)
    return None


def _told(search: LengthScaleSearch, seed: int) -> np.ndarray | None:
    rows, left = search.left_out(_ROWS)
    size = (left**2).mean()
    if size < _LEFT:
        return None
    weights = None if search.rows.weights is None else search.rows.weights[rows]
    known = search.rows.X[rows], left / np.sqrt(size), weights, search.matrix.categorical
    other = LengthScaleSearch(Laplacian(), *known, seed, n_jobs=search.matrix.n_jobs)
    lengths = lengths_of_pairs(known[0], known[1], search.matrix.categorical)
    if lengths is not None:
        other.shorten(lengths, _STEP_ROWS)
    for n_steps, enough, n_deviations in ((_STEPS, _MAY_TELL, 0.0), (_MORE_STEPS, _TELLS, _SURELY)):
        other.run(_MORE_STEPS, _STEP_ROWS, n_steps)
        errors, of_mean = other.beside_mean(_STEP_ROWS)
        if not surely_less(errors, enough * of_mean, n_deviations):
            return None
    shares = other.parts / other.parts.mean()
    with np.errstate(divide="ignore"):
        return np.where(shares > 1, 1 / other.gamma, np.inf)
