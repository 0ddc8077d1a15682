"""Contributions of inputs to scores: an input is replaced by its values in typical rows."""

import numpy as np

from binfeat._common.subsets import evenly_spaced
from binfeat._engine.replacements import replace_inputs
from binfeat.density.counted_bins import CountedBins, dense

_N_TYPICAL = 16


def rises(counted: CountedBins, X: np.ndarray, sample: object, n_jobs: int | None) -> np.ndarray:
    """Mean rise of the score of each row when an input is replaced by its value in a typical row of the sample."""
    typical = _typical(counted, sample)
    out, lookup = np.empty(X.shape), counted.mixture
    replace_inputs(X, typical, *lookup.arrays, counted.logs, counted.known(X), out, n_jobs=n_jobs)
    return out / (len(typical) * counted.n_grids)


def _typical(counted, sample):
    """Rows with evenly spaced ranks among the scores above the median."""
    order = np.argsort(counted.scores(sample), kind="stable")[sample.shape[0] // 2 :]
    return dense(sample[order[evenly_spaced(order.size, _N_TYPICAL)]])
