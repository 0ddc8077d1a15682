"""Learns one inverse length scale per input: `learn_gamma`."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length

from binfeat._binning.input_checks import ARRAY_CHECKS
from binfeat._common.labels import check_labels, one_against_rest
from binfeat._common.validation import (
    check_categorical,
    check_integer,
    check_moderate,
    check_weights,
    checked_array,
    checked_rows,
    checked_targets,
    is_word,
    seed_of,
)
from binfeat._engine.policy import one_blas_thread
from binfeat._kernels.base import Kernel
from binfeat._machine.kernel_algebra.matrices import is_radial
from binfeat._machine.search.length_scales import LengthScaleSearch, exponent_shares, mean_distances
from binfeat._machine.target.targets import Targets, as_columns
from binfeat._machine.target.transforms import NoTransform
from binfeat.kernels import EXACT_NUS, RBF, binning_kernel

_MOST_STEPS = 10_000
_MISSING = 10.0  # standard deviations from the largest value to the number that stands for missing values


@dataclass(frozen=True)
class LearnedGamma:
    """Result of a search for length scales.

    Attributes
    ----------
    gamma : ndarray of shape (n_inputs,)
        Inverse length scale of each input; for radial kernels one over the square of a length, as `RandomFourier` takes
        it. Its square root is then the gamma of a kernel machine.
    relevances : ndarray of shape (n_inputs,)
        Share of each input in the kernel's mean exponent; they sum to 1.
    alpha : float
        Penalty that was learned with these gammas.
    errors : ndarray of shape (n_steps,)
        Leave-one-out mean squared error of standardised targets before each step, on the rows of the step.
    gammas : ndarray of shape (n_steps, n_inputs)
        Inverse length scales before each step.
    """

    gamma: np.ndarray
    relevances: np.ndarray
    alpha: float
    errors: np.ndarray
    gammas: np.ndarray


def learn_gamma(
    X: Any,
    y: ArrayLike,
    *,
    kernel: str | Kernel = "laplacian",
    categorical_features: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    max_steps: int = 60,
    max_rows: int = 500,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> LearnedGamma:
    """Learn one length scale per input (ARD) by the gradient of a leave-one-out error.

    The length scales suit the few hundred rows of a step. More rows need shorter length scales: multiply `gamma` by one
    overall factor, chosen on held-out rows, as `KernelMachineRegressor` does.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rows, n_inputs)
        Rows. A missing value (NaN) is far from all other values.
    y : array-like of shape (n_rows,) or (n_rows, n_targets)
        Targets: numbers, or labels of classes.
    kernel : str or object of `binfeat.kernels`, default="laplacian"
        Kernel whose length scales are learned: a kernel with a pitch law, "rbf", or `Matern` with nu 1/2, 3/2,
        5/2 or infinity.
    categorical_features : array-like of bool, int or str, default=None
        Inputs whose values are category numbers, as in `RandomBinning`.
    sample_weight : float or array-like of shape (n_rows,), default=None
        Weights of the rows in the errors.
    max_steps : int, default=60
        Number of steps, at most 10,000.
    max_rows : int, default=500
        Maximum number of rows of a step; a step has fewer rows if the table is small or has many inputs.
    n_jobs : int, default=None
        Number of threads; None is Numba's current setting, which is all threads at first.
    random_state : int, RandomState instance or None, default=None
        Seed of the choice of rows.

    Returns
    -------
    learned : LearnedGamma
        `gamma` for `RandomBinning` or `RandomFourier`, `relevances`, `alpha`, and the errors and gammas of all steps.

    Raises
    ------
    ValueError
        If a parameter is out of range, X or y holds infinity or numbers beyond 1e100, lengths differ, or there
        are fewer than 2 rows.

    Notes
    -----
    Kernel ridge regression on a few rows has a leave-one-out error in closed form, and so has its gradient in the
    logarithms of all gammas and of the penalty. Steps of Adam follow it, with fresh rows in every step. A prior keeps
    the logarithms of the gammas together where rows are few.

    References
    ----------
    D. Allen, "The relationship between variable selection and data augmentation and a method for prediction",
    Technometrics 16, 1974 (the leave-one-out error). D. Kingma and J. Ba, "Adam", ICLR 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from binfeat import learn_gamma
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> learned = learn_gamma(X, np.sin(2 * X[:, 1]), random_state=0)
    >>> int(learned.relevances.argmax())
    1
    """
    checked = _Checked()
    X = checked_rows(checked, X, **ARRAY_CHECKS)
    check_moderate(X.data if sparse.issparse(X) else X, "X")
    check_consistent_length(X, y)
    weights, seed = check_weights(sample_weight, X.shape[0]), seed_of(random_state)
    Y = _targets(y, weights)
    rows = np.random.default_rng(seed).permutation(X.shape[0])
    rows = rows if weights is None else rows[weights[rows, 0] > 0]
    if rows.size < 2:
        raise ValueError("learn_gamma needs at least 2 rows, to leave one out; got 1.")
    n_steps, n_rows = check_size(max_steps, max_rows)
    rows = rows[: n_steps * n_rows]
    X, Y, weights = _dense(X, rows), Y[rows], None if weights is None else weights[rows, 0] / weights.mean()
    categorical = check_categorical(categorical_features, checked)
    search = LengthScaleSearch(_known_kernel(kernel), X, Y, weights, categorical, seed, n_jobs=n_jobs)
    with one_blas_thread():
        search.run(n_steps, n_rows)
    distance = mean_distances(X, categorical, np.random.default_rng(seed), search.kernel.power)
    relevances = exponent_shares(search.gamma, distance)
    errors, gammas = np.array(search.errors), np.reshape(search.gammas, (-1, X.shape[1]))
    return LearnedGamma(search.gamma, relevances, search.alpha, errors, gammas)


def check_size(max_steps: int, max_rows: int) -> tuple[int, int]:
    """The numbers of steps and of rows of a search, checked."""
    return check_integer(max_steps, "max_steps", 1, _MOST_STEPS), check_integer(max_rows, "max_rows", 2)


def _known_kernel(kernel):
    if is_word(kernel, "rbf"):
        return RBF()
    if is_radial(kernel):
        if getattr(kernel, "nu", np.inf) not in EXACT_NUS:
            raise ValueError(f"kernel must be Matern with nu 0.5, 1.5, 2.5 or infinity, or another; got {kernel!r}.")
        return kernel
    return binning_kernel(kernel)


class _Checked(BaseEstimator):
    """Holder of the number and names of inputs that the checks of a table find."""


def _targets(y, weights):
    """Targets of shape (n_rows, n_targets), standardised by weights (n_rows, 1): 1 and -1 for classes."""
    y = checked_array(y, dtype=None, ensure_2d=False, input_name="y")
    if y.dtype.kind not in "iufbmM" or (y.ndim == 1 and y.dtype.kind in "iub" and np.unique(y).size <= 2):
        classes, labels = np.unique(check_labels(y), return_inverse=True)
        return one_against_rest(labels, classes.size)
    Y = as_columns(checked_targets(y))
    return Targets.of(NoTransform(), Y, weights).encode(Y)


def _dense(X, rows):
    """Some rows of X, dense, with a number far from all others in place of missing values."""
    part = X[rows]
    part = np.array(part.toarray() if sparse.issparse(part) else part, dtype=np.float64)
    missing = np.isnan(part)
    if missing.any():
        known = np.where(missing, 0.0, part)
        far = known.max(axis=0) + _MISSING * np.maximum(known.std(axis=0), 1e-3)
        part[missing] = np.broadcast_to(far, part.shape)[missing]
    return part
