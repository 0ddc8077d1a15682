"""A length scale without labels: bins of a few rows."""

from collections.abc import Callable, Sequence

import numpy as np
from scipy import sparse
from sklearn.base import clone

from binfeat._common.gamma_scale import Moments
from binfeat._common.validation import CheckedRows
from binfeat._common.warned import warn
from binfeat.features.binning.random_binning import RandomBinning
from binfeat.graph.neighbors import N_NEAREST

# Geometric mean, over rows and grids, of the rows in a row's bin. Among 2, 3, 6 and 10, clusters of digits,
# optdigits, satimage, rings and moons are best with 3; with 2, small groups of rows of satimage are separated.
_ROWS_IN_A_BIN = 3.0
_PILOT_GRIDS = 16
# Steps of a factor 2 up or down from 1 / (n_inputs * std). This std of all numbers contains differences between the
# means of inputs, which can be many orders of magnitude larger than the spread of each input.
_MOST_UP, _MOST_DOWN = 100, 10
_HALVINGS = 3  # bisections of the last factor 2
_UNLIKE = 5.0  # times the median standard deviation, above which one input determines the similarity of rows


def warn_of_units(X: CheckedRows, categorical: np.ndarray, names: Sequence[str] | None) -> None:
    """Warn if one gamma for all inputs makes similarity depend on a single input with a larger unit."""
    numbers = np.flatnonzero(~categorical)
    spreads = Moments.of(X).std[numbers]
    spread = spreads[spreads > 0]
    typical = np.quantile(spread, 0.5, method="lower") if spread.size else np.inf
    if spread.max(initial=0.0) > _UNLIKE * typical:
        widest = numbers[spreads.argmax()]
        name = widest if names is None else repr(str(names[widest]))
        warn(
            f"Input {name} has {spread.max() / typical:.2g} times the spread of a typical input, and "
            "dominates the similarities. Scale X, for example by StandardScaler, or pass a gamma for each input.",
        )


def gamma_by_occupancy(binning: RandomBinning, X: CheckedRows) -> np.ndarray:
    """Return the gamma with a geometric mean of 3 rows per bin, or the square root of all rows if that is less.

    Finer grids have fewer rows per bin, so this is a bisection, with 16 grids of the map, which is not fitted. No grid
    is fine enough for copies of a row, so exclude them.
    """
    few = {"n_grids": _PILOT_GRIDS, "min_count": 1, "n_features": None, "warm_start": False}
    pilot = clone(binning).set_params(gamma="scale", **few).fit(X)
    first = _one_gamma(X, pilot._categorical)
    wanted = min(np.log(_ROWS_IN_A_BIN), 0.5 * np.log(X.shape[0]))

    def is_fine(exponent: float) -> bool:
        counts = pilot.set_params(gamma=first * 2.0**exponent).fit(X).bin_counts_
        return (counts * np.log(counts)).sum() / counts.sum() <= wanted  # mean over rows

    below, above = _bracket(is_fine)
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        below, above = (below, middle) if is_fine(middle) else (middle, above)
    return first * 2.0 ** ((below + above) / 2)


def _one_gamma(X: CheckedRows, categorical: np.ndarray) -> np.ndarray:
    """Return ``1 / (n_inputs * std)`` with the standard deviation of all numbers; categories differ by one unit."""
    std = Moments.of(X).pooled(~categorical).std[0]
    return np.where(categorical | (std == 0), 1.0, 1.0 / (std or 1.0)) / categorical.size


def distinct_rows(X: CheckedRows) -> tuple[np.ndarray, np.ndarray]:
    """Return increasing numbers of the first copies of all rows, and the place of each row among them."""
    _, rows, places = np.unique(_row_hashes(X), return_index=True, return_inverse=True)
    order = np.argsort(rows)
    ranks = np.empty(order.size, np.int64)
    ranks[order] = np.arange(order.size)
    return rows[order], ranks[places]


def without_copies(X: CheckedRows) -> CheckedRows:
    """Return distinct rows, in their order, if there are at least two; warn if there are few."""
    rows, _ = distinct_rows(X)
    if rows.size * N_NEAREST < X.shape[0]:
        warn(
            f"X has {rows.size} different rows among {X.shape[0]}, so the rows most similar to a row are its copies. "
            "Remove the copies, or decrease gamma."
        )
    return X[rows] if 2 <= rows.size < X.shape[0] else X


def _row_hashes(X: CheckedRows) -> np.ndarray:
    """Return a hash of each row, (n_rows,) uint64, which is equal for dense and CSR rows."""
    rows = sparse.csr_array(X, dtype=np.float64)
    bits = (rows.data + 0.0).view(np.uint64)  # without negative zeros
    bits ^= bits >> np.uint64(32)  # the low bits of short numbers, such as -1 and 1, are zero
    bits *= np.uint64(0x9E3779B97F4A7C15)
    bits ^= bits >> np.uint64(32)
    keys = np.random.default_rng(0).integers(2**64, size=X.shape[1], dtype=np.uint64) | np.uint64(1)
    return sparse.csr_array((bits, rows.indices, rows.indptr), rows.shape) @ keys


def _bracket(is_fine: Callable[[float], bool]) -> tuple[float, float]:
    """Return neighboring powers of 2 between which grids become fine, or the last two tried."""
    step = -1 if is_fine(0) else 1
    for exponent in range(step, step * ((_MOST_UP if step > 0 else _MOST_DOWN) + 1), step):
        if is_fine(exponent) != (step < 0):
            break
    return min(exponent, exponent - step), max(exponent, exponent - step)
