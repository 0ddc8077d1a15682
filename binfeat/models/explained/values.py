"""The result of `shapley_values`."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from binfeat._common.frames import collected
from binfeat.models.explained.shapley import Contributions
from binfeat.models.table.columns import RawTable


@dataclass(frozen=True, eq=False)
class ShapleyValues:
    """Shapley values of the predictions of a kernel model.

    The `shap` package plots ``shap.Explanation(v.values, v.base_values, v.data, feature_names=v.feature_names)``.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_inputs) or (n_rows, n_inputs, n_outputs)
        Shapley values. The sum over inputs, plus `base_values`, is the explained prediction.
    base_values : ndarray of shape (n_rows,) or (n_rows, n_outputs)
        Mean prediction for background rows with independently drawn inputs.
    standard_errors : ndarray like values
        Standard errors of sampled values; 0 for exact values.
    data : ndarray of shape (n_rows, n_inputs)
        The explained rows.
    feature_names : list of str
    interactions : ndarray of shape (n_rows, n_inputs, n_inputs) or (n_rows, n_inputs, n_inputs, n_outputs), or None
        Interaction values, split evenly between both sides of the diagonal; the diagonal contains main effects. Rows of
        a matrix sum to `values`. None unless requested.
    """

    values: np.ndarray
    base_values: np.ndarray
    standard_errors: np.ndarray
    data: np.ndarray
    feature_names: list[str]
    interactions: np.ndarray | None = None


def shown(found: Contributions, X: RawTable, names: list[str]) -> ShapleyValues:
    """Shapley values without the axis of a single output."""
    values, base, errors, pairs = found.values, found.base, found.errors, found.pairs
    if base.shape[1] == 1:
        values, base, errors = values[:, :, 0], base[:, 0], errors[:, :, 0]
        pairs = None if pairs is None else pairs[..., 0]
    data = X.toarray() if scipy.sparse.issparse(X) else np.asarray(collected(X))
    return ShapleyValues(values, base, errors, data, names or [f"x{j}" for j in range(data.shape[1])], pairs)
