"""Checks of tables for binning."""

import numpy as np
from scipy import sparse

from binfeat._common.memory import require_memory
from binfeat._common.validation import CheckedRows

# dtypes with values that float64 holds, or rounds as NumPy does; other dtypes are converted first.
_DTYPES = [np.float64, np.float32, *(np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)), np.bool_]
ARRAY_CHECKS = {"accept_sparse": "csr", "dtype": _DTYPES, "ensure_all_finite": "allow-nan"}
_LARGEST_CATEGORY = 2**51 - 1


def require_grids_memory(n_grids: int, n_inputs: int) -> None:
    require_memory(64 * n_grids * n_inputs, f"drawing {n_grids} grids of {n_inputs} inputs", "Use fewer grids.")


def require_binning_memory(shape: tuple[int, int], n_grids: int, entry_bytes: int) -> None:
    """Raise an error if codes of rows of this shape, plus `entry_bytes` per code, do not fit in memory."""
    n_rows, n_inputs = shape
    require_memory(
        n_rows * n_grids * (4 + entry_bytes) + 64 * n_grids * n_inputs,
        f"binning {n_rows} rows in {n_grids} grids",
        "Use fewer grids, fewer rows at a time, or output='codes'.",
    )


def check_categories(X: CheckedRows, categorical: np.ndarray) -> None:
    """Raise ValueError for values of categorical inputs that are not category numbers."""
    for j in np.flatnonzero(categorical):
        values = X[:, [j]].data if sparse.issparse(X) else X[:, j]
        values = np.asarray(values, dtype=np.float64)
        wrong = (values != np.rint(values)) & ~np.isnan(values) | (np.abs(values) > _LARGEST_CATEGORY)
        if wrong.any():
            raise ValueError(
                f"Input {j} is in categorical_features, so it must contain category numbers, which are integers of "
                f"magnitude below 2^51; got {values[wrong].tolist()[0]!r}. Encode it, for example by "
                "sklearn.preprocessing.OrdinalEncoder."
            )
