"""Fewer rows for the predictions of an exact model: anchors, and coefficients that reproduce its function.

The function is interpolated at the anchors: of all functions with coefficients for these rows only, the result is the
nearest in the norm of the kernel. The errors at other training rows decide how many anchors suffice.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from binfeat._threads import one_blas_thread
from binfeat.length_scales.kernel_sum import KernelValues
from binfeat.length_scales.matrices import Frame
from binfeat.models.fitted.expansion import FullExpansion

LEAST_ROWS = 2000  # of a model; predictions by fewer rows are fast
_SIZES = 256, 384, 512, 768, 1024
_MOST = 1 / 3  # of the rows; more anchors save little
_CHECKED = 512  # rows without an anchor, at which the functions are compared
_TOLERANCE = 0.02  # root mean squared difference, relative to the residuals of the model
_LARGEST = 10  # largest difference, relative to the tolerance
_HOPELESS = 16  # differences, relative to the tolerance, that more anchors do not reduce enough
_JITTER = 1e-5  # of the diagonal, more than the rounding of kernel values in float32


class Anchors(NamedTuple):
    """Rows of the support, and their coefficients."""

    rows: np.ndarray  # (n_anchors,), int32, sorted
    coef: np.ndarray  # (n_targets, n_anchors)


def few_anchors(
    kernel: KernelValues,
    categorical: np.ndarray,
    support: np.ndarray,
    coef: np.ndarray,
    residuals: np.ndarray,
    n_jobs: int | None,
) -> Anchors | None:
    """Return the anchors of a function, or None if too many rows would be needed.

    Parameters
    ----------
    kernel : KernelValues
    categorical : (n_inputs,) bool
    support : (n_inputs, n_rows) float32
    coef : (n_targets, n_rows) float64
    residuals : (n_targets,) float64
        Root mean squares of the residuals.
    n_jobs : int or None
    """
    n_inputs, n_rows = support.shape
    frame = Frame(np.zeros(n_inputs), np.ones(n_inputs))
    order = np.random.default_rng(0).permutation(n_rows)
    checked, others = support[:, order[:_CHECKED]], order[_CHECKED:]

    def values_of(rows: np.ndarray, own_coef: np.ndarray, at: np.ndarray) -> np.ndarray:
        expansion = FullExpansion(kernel, categorical, rows, own_coef, frame)
        return expansion(np.ascontiguousarray(at.T, dtype=np.float64), n_jobs)

    expected, values = values_of(support, coef, checked), np.empty((0, len(coef)))
    for size in _SIZES:
        if size > min(_MOST * n_rows, len(others)):
            return None
        rows = np.ascontiguousarray(support[:, others[:size]])
        values = np.vstack([values, values_of(support, coef, rows[:, len(values) :])])
        own_coef = _interpolating(kernel, rows, values)
        if own_coef is None:
            return None
        errors = values_of(rows, own_coef, checked) - expected
        means, largest = np.sqrt((errors**2).mean(axis=0)), np.abs(errors).max(axis=0)
        allowed = _TOLERANCE * residuals
        if (means <= allowed).all() and (largest <= _LARGEST * allowed).all():
            places = np.argsort(others[:size])
            return Anchors(others[places].astype(np.int32), np.ascontiguousarray(own_coef[:, places]))
        if (means > _HOPELESS * allowed).any():
            return None
    return None


def _interpolating(kernel: KernelValues, rows: np.ndarray, values: np.ndarray) -> np.ndarray | None:
    """Coefficients (n_targets, n) of rows (n_inputs, n) with values (n, n_targets); None if rows are too similar."""
    with one_blas_thread():  # the order of its sums depends on their number
        K = kernel(rows, rows).astype(np.float64)
        K[np.diag_indices(len(K))] += _JITTER
        try:
            return cho_solve(cho_factor(K, overwrite_a=True), values).T
        except LinAlgError:
            return None
