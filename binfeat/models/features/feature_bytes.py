"""Memory of a model of grids in addition to the table, and the number of grids and targets that fit."""

import numpy as np

from binfeat._common.memory import allowed_bytes, require_bytes
from binfeat.linear.target_groups import VECTORS

_CODE = 4  # bytes of a code while grids are added
_OF_BIN = 64  # its key, the diagonal, mean and preconditioner, while they are made
_PAIR = 2  # targets that products take together
_AMPLE = 2**31  # bytes of bins, above which precision and company only cost memory
_ON_TOP = 300 * 10**6  # bytes of copies of the table, samples and hashes that come on top of `max_bytes`
_COPIES, _WIDE_COPIES, _WIDE = 3, 7, 1333  # of a table in float64, and of one with more than 1,333 columns; measured
_FLOAT32_ROWS = 2**22  # up to which float32 loses less in the sums of bins than solutions are precise


def fit_bytes(max_bytes: int | None) -> int:
    """Bytes that a fit may take: `max_bytes`, or a quarter of the computer's memory."""
    return allowed_bytes(max_bytes, 4)


def least_dtype(n_rows: int) -> np.dtype:
    """Return the dtype of coefficients and vectors if memory is short: float64 for many rows."""
    return np.dtype(np.float32 if n_rows <= _FLOAT32_ROWS else np.float64)


def row_bytes(n_targets: int) -> int:
    """Bytes of a row's targets and weights, and of what a solve makes of them."""
    return 8 * (2 + 5 * n_targets)


def require_table_bytes(shape: tuple[int, ...], n_rows: int, n_targets: int, max_bytes: int | None) -> None:
    """Raise an error if copies of a table of this shape (() if unknown) and its targets do not fit into `max_bytes`.

    A ValueError, or a MemoryError where `max_bytes` is None and the computer's memory is the limit.
    """
    n_columns = shape[1] if len(shape) == 2 else 0
    n_copies = _WIDE_COPIES if n_columns > _WIDE else _COPIES
    n_bytes = n_rows * (8 * n_copies * n_columns + row_bytes(n_targets)) - _ON_TOP
    if n_bytes > 0:
        words = f"dense copies of X, {n_rows:,} rows of {n_columns:,} columns, and of {n_targets:,} targets"
        require_bytes(n_bytes, max_bytes, words, "Use fewer columns, for example by TruncatedSVD, or fewer rows.")


def bytes_for_features(max_bytes: int | None, n_rows: int, n_targets: int) -> int:
    """Bytes that vectors of the rows leave of what a fit may take, for codes and bins; codes may have half of them."""
    return max(0, fit_bytes(max_bytes) - n_rows * row_bytes(n_targets))


def _bytes_of_bin(n_targets: int, together: int, dtype: np.dtype) -> int:
    """Bytes of a bin: before and after a solve it has a coefficient for each target."""
    return _OF_BIN + dtype.itemsize * (2 * n_targets + VECTORS * together)


def most_grids(max_bytes: float, n_rows: int, bins_of_grid: float, n_targets: int, dtype: np.dtype) -> float:
    """Return the number of grids that fit into this number of bytes, with the fewest targets per solve."""
    bins = bins_of_grid * _bytes_of_bin(n_targets, min(_PAIR, n_targets), dtype)
    return max(max_bytes / 2 / bins, max_bytes / (bins + _CODE * n_rows))  # codes in a file, or not


def bytes_for_bins(max_bytes: float, n_rows: int, n_grids: int) -> float:
    """Return the bytes that remain after the codes."""
    return max_bytes - min(max_bytes / 2, _CODE * n_rows * n_grids)


def dtype_and_targets_at_a_time(max_bytes: float, n_bins: int, n_targets: int, least: np.dtype) -> tuple[np.dtype, int]:
    """Type of the vectors, and how many targets to solve for together: float64 and all where they take little."""
    max_bytes = min(max_bytes, _AMPLE)
    if n_bins * _bytes_of_bin(n_targets, n_targets, np.dtype(np.float64)) <= max_bytes:
        return np.dtype(np.float64), n_targets
    left = max_bytes / n_bins - _bytes_of_bin(n_targets, 0, least)
    pairs = max(1, left // (_PAIR * VECTORS * least.itemsize))
    return least, int(min(_PAIR * pairs, n_targets))
