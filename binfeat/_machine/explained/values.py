"""What `shapley_values` gives."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from binfeat._common.frames import collected
from binfeat._machine.explained.shapley import Contributions
from binfeat._machine.table.columns import RawTable


@dataclass(frozen=True, eq=False)
class ShapleyValues:
    """Shapley values of a machine's predictions.

    The `shap` package plots ``shap.Explanation(v.values, v.base_values, v.data, feature_names=v.feature_names)``.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_inputs) or (n_rows, n_inputs, n_outputs)
        With `base_values` they add up to the outputs that are explained.
    base_values : ndarray of shape (n_rows,) or (n_rows, n_outputs)
        The mean output for background rows, whose inputs are drawn one by one.
    standard_errors : ndarray like values
        0 where values are in closed form.
    data : ndarray of shape (n_rows, n_inputs)
        The rows that are explained.
    feature_names : list of str
    interactions : ndarray of shape (n_rows, n_inputs, n_inputs) or (n_rows, n_inputs, n_inputs, n_outputs), or None
        What pairs of inputs add together, half of it on each side of the diagonal, which has what an input adds alone;
        rows of a matrix add up to `values`. None if it was not asked for.
    """

    values: np.ndarray
    base_values: np.ndarray
    standard_errors: np.ndarray
    data: np.ndarray
    feature_names: list[str]
    interactions: np.ndarray | None = None


def shown(found: Contributions, X: RawTable, names: list[str]) -> ShapleyValues:
    """Contributions without an axis for a single output."""
    values, base, errors, pairs = found.values, found.base, found.errors, found.pairs
    if base.shape[1] == 1:
        values, base, errors = values[:, :, 0], base[:, 0], errors[:, :, 0]
        pairs = None if pairs is None else pairs[..., 0]
    data = X.toarray() if scipy.sparse.issparse(X) else np.asarray(collected(X))
    return ShapleyValues(values, base, errors, data, names or [f"x{j}" for j in range(data.shape[1])], pairs)
