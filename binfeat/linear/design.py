"""Reads the features of a ridge model: arrays, sparse matrices, operators, and sources of blocks."""

from functools import partial

import numpy as np
from scipy.sparse.linalg import LinearOperator
from sklearn.base import BaseEstimator

from binfeat._common.array_types import ArrayLike
from binfeat._common.validation import canonical, checked_rows
from binfeat._rows.products import Design, Features
from binfeat._rows.sources import Source, SourceSummary, check_alone, is_source
from binfeat._rows.streamed import StreamedFeatures


def read_design(
    estimator: BaseEstimator, X: Design | Source, y: ArrayLike | None, sample_weight: ArrayLike | None
) -> tuple[Features, ArrayLike | None, ArrayLike | None]:
    """Return checked features of training rows, and their targets and weights, given or stored with X.

    A source becomes the operator of its rows. The number and the names of the features are set on the estimator.
    """
    if is_source(X):
        check_alone(y, sample_weight)
        summary = SourceSummary(X, partial(check_design, estimator))
        X = StreamedFeatures.of(summary, lambda rows: rows, summary.n_inputs, dense=not summary.sparse)
        return X, summary.y, summary.sample_weight
    if y is None and sample_weight is None and isinstance(X, LinearOperator):
        y, sample_weight = getattr(X, "y", None), getattr(X, "sample_weight", None)
    return check_design(estimator, X, reset=True), y, sample_weight


def check_design(estimator: BaseEstimator, Z: Design, reset: bool = False) -> Features:
    """Return an operator unchanged, and anything else as a checked array or canonical CSR matrix.

    ValueError if it is complex, or its number of features differs from `fit`, or is 0; `reset` sets the number instead.
    """
    if not isinstance(Z, LinearOperator):
        return canonical(checked_rows(estimator, Z, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32]))
    if np.dtype(Z.dtype).kind == "c":
        raise ValueError(
            f"Complex data not supported: X must be real, got a LinearOperator with dtype {Z.dtype}. Pass its real and "
            "imaginary parts as separate features."
        )
    if reset:
        _require_transpose(Z)
        if not Z.shape[1]:
            raise ValueError(f"X has no features, and {type(estimator).__name__} needs at least one.")
        estimator.n_features_in_ = Z.shape[1]
        vars(estimator).pop("feature_names_in_", None)  # of an earlier fit to a data frame
    elif Z.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {Z.shape[1]} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} "
            "features as input."
        )
    return Z


def _require_transpose(Z: LinearOperator) -> None:
    """Raise ValueError for an operator without `rmatvec`. SciPy reports this only when `rmatvec` is called."""
    if hasattr(Z, "gram_diagonal"):
        return
    try:
        Z.rmatvec(np.zeros(Z.shape[0]))
    except NotImplementedError as error:
        raise ValueError("X must be a LinearOperator with rmatvec: the solver needs products with X.T.") from error
