"""One length scale per input, learned on few rows by the leave-one-out error of kernel ridge regression."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from scipy import sparse

from binfeat._common.arrays import mean_and_std
from binfeat._common.labels import Labels, check_labels, label_array
from binfeat._common.memory import require_memory
from binfeat._common.validation import check_weights, checked_targets, is_word
from binfeat._threads import one_blas_thread
from binfeat.kernels.base import Kernel
from binfeat.kernels.families import RBF
from binfeat.kernels.lookup import EXACT_NUS, binning_kernel
from binfeat.length_scales.codes import clip_codes
from binfeat.length_scales.matrices import is_radial
from binfeat.length_scales.search import LengthScaleSearch, exponent_shares, mean_distances

_MOST_CLASSES, _ROWS_OF_A_CLASS = 50, 5  # different integers that count as classes, and rows of each
_MISSING = 10.0  # distance of missing values from the largest known value, in standard deviations of the known values


@dataclass(frozen=True)
class LearnedGamma:
    """Result of a search for length scales.

    `RandomBinning`, `RandomFourier` and `transform` accept it as `gamma`.

    Attributes
    ----------
    gamma : ndarray of shape (n_inputs,)
        Inverse length scale of each input; for radial kernels one over the square of a length.
    relevances : ndarray of shape (n_inputs,)
        Share of each input in the kernel's mean exponent; they sum to 1.
    alpha : float
        Penalty that was learned with these gammas, for positive weights of mean 1.
    errors : ndarray of shape (n_steps,)
        Leave-one-out mean squared error of standardized targets before each step, on the rows of the step.
    gammas : ndarray of shape (n_steps, n_inputs)
        Inverse length scales before each step.
    power : {1, 2, None}
        Gammas multiply this power of distances, 2 for radial kernels; maps with a kernel of another power raise an
        error. None in results of version 0.3.0 and earlier, which are not checked.
    """

    gamma: np.ndarray
    relevances: np.ndarray
    alpha: float
    errors: np.ndarray
    gammas: np.ndarray
    power: int | None = None


def learned_gamma(
    kernel: Kernel,
    X: Any,
    Y: np.ndarray,
    weights: np.ndarray | None,
    categorical: np.ndarray,
    seed: int,
    *,
    n_steps: int = 60,
    n_rows: int = 500,
    n_jobs: int | None = None,
) -> LearnedGamma:
    """Return length scales of checked rows X (n_rows, n_inputs) for encoded targets Y and weights (n_rows, 1)."""
    rows = np.random.default_rng(seed).permutation(X.shape[0])
    rows = rows if weights is None else rows[weights[rows, 0] > 0]
    if rows.size < 2:
        raise ValueError(f"At least 2 rows of positive weight are needed to learn length scales; got {rows.size}.")
    rows = rows[: n_steps * n_rows]
    require_memory(
        24 * rows.size * X.shape[1],  # a dense copy, a mask and temporary arrays
        f"learning length scales on {rows.size} rows of {X.shape[1]} inputs",
        "Use fewer inputs, or decrease max_steps or max_rows of learn_gamma.",
    )
    X = clip_codes(_dense(X, rows), categorical, seed)
    Y, weights = Y[rows], None if weights is None else weights[rows, 0]
    search = LengthScaleSearch(kernel, X, Y, weights, categorical, seed, n_jobs=n_jobs)
    with one_blas_thread():
        search.run(n_steps, n_rows)
    distance = mean_distances(X, categorical, np.random.default_rng(seed), kernel.power)
    relevances = exponent_shares(search.gamma, distance)
    errors, gammas = np.array(search.errors), np.reshape(search.gammas, (-1, X.shape[1]))
    return LearnedGamma(search.gamma, relevances, search.alpha, errors, gammas, kernel.power)


def learnable_kernel(kernel: Any) -> Kernel:
    """Return the kernel; ValueError if its length scales cannot be learned."""
    if is_word(kernel, "rbf"):
        return RBF()
    if is_radial(kernel):
        if getattr(kernel, "nu", np.inf) not in EXACT_NUS:
            raise ValueError(f"nu of Matern must be 0.5, 1.5, 2.5 or infinity to learn length scales; got {kernel!r}.")
        return kernel
    return binning_kernel(kernel)


def encoded_targets(y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Return standardized targets (n_rows, n_targets), 1 and -1 for classes, and weights (n_rows, 1) or None.

    Strings, flags, and integers with few different values are classes; floats and Decimals are numbers. Several columns
    of integers or flags are numbers. Positive weights have mean 1, so that penalties depend neither on a common
    factor nor on rows of weight 0.
    """
    y = label_array(y)
    y = y.ravel() if y.shape[1:] == (1,) else y
    if y.dtype.kind == "O" and any(isinstance(value, Decimal) for value in y.flat):
        y = checked_targets(y)
    weights = check_weights(sample_weight, len(y))
    relative = None if weights is None else weights / weights[weights > 0].mean()
    if _are_labels(y):
        columns = [check_labels(own) for own in y.reshape(len(y), -1).T]
        return np.hstack([Labels(np.unique(own)).encode(own) for own in columns]), relative
    Y = checked_targets(y)
    Y = Y.reshape(len(Y), -1)
    mean, std = mean_and_std(Y, weights)
    return (Y - mean) / np.where(std > 0, std, 1.0), relative


def _are_labels(y: np.ndarray) -> bool:
    """Return True if targets are classes: strings, booleans, or integers with few different values."""
    if y.dtype.kind in "fmMc" or y.ndim > 1:
        return y.dtype.kind not in "iufbmMc"
    return y.dtype.kind not in "iub" or np.unique(y).size <= min(_MOST_CLASSES, max(2, y.size / _ROWS_OF_A_CLASS))


def _dense(X: Any, rows: np.ndarray) -> np.ndarray:
    """Return some rows of X, dense, with missing values replaced by a number far from all others."""
    part = X[rows]
    part = np.asarray(part.toarray() if sparse.issparse(part) else part, dtype=np.float64)  # a copy already
    missing = np.isnan(part)
    if missing.any():
        known = np.where(missing.all(axis=0), 0.0, part)
        highest = np.nanmax(known, axis=0)
        far = highest + _MISSING * np.where(highest > np.nanmin(known, axis=0), np.nanstd(known, axis=0), 1.0)
        part[missing] = np.broadcast_to(far, part.shape)[missing]
    return part
