"""Learns one inverse length scale per input: `learn_gamma`."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length

from binfeat._binning.input_checks import ARRAY_CHECKS, require_binning_memory
from binfeat._common.held_out import SquaredErrors
from binfeat._common.labels import check_labels, one_against_rest
from binfeat._common.validation import (
    check_categorical,
    check_integer,
    check_moderate,
    check_share,
    check_weights,
    checked_array,
    checked_rows,
    seed_of,
)
from binfeat._machine.length_scales import LengthScaleSearch
from binfeat._machine.sample import Sample
from binfeat.kernels import binning_kernel

_OUT_ROWS = 10_000  # held out at most


@dataclass(frozen=True)
class LearnedGamma:
    """Result of a search for length scales.

    Attributes
    ----------
    gamma : ndarray of shape (n_inputs,)
        Inverse length scale of each input.
    relevances : ndarray of shape (n_inputs,)
        Share of each input in the kernel's mean exponent; they sum to 1.
    alpha : float
        Best penalty with these gammas on the rows of the search.
    errors : ndarray of shape (n_rounds + 1,)
        Held-out mean squared error before the first and after each round.
    gammas : ndarray of shape (n_rounds + 1, n_inputs)
        Inverse length scales before the first and after each round.
    """

    gamma: np.ndarray
    relevances: np.ndarray
    alpha: float
    errors: np.ndarray
    gammas: np.ndarray


def learn_gamma(
    X,
    y,
    *,
    kernel="laplacian",
    categorical_features=None,
    sample_weight=None,
    n_grids=50,
    max_rounds=12,
    max_rows=40_000,
    validation_fraction=0.2,
    n_jobs=None,
    random_state=None,
):
    """Learn one length scale per input (ARD), ``1 / gamma_j``, from the slopes of ridge machines on binning features.

    In each round a machine is fitted to a sample of the rows. The relevance of an input is the mean squared slope
    along it, by central differences over its length scale (the diagonal of the average gradient outer product:
    Radhakrishnan et al., recursive feature machines, Science 383, 2024). The new gammas are proportional to the square
    roots of the relevances, keep the kernel's mean exponent, and get one common factor chosen on held-out rows.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rows, n_inputs)
        NaN matches NaN and nothing else.
    y : array-like of shape (n_rows,) or (n_rows, n_targets)
        Numbers, or labels of classes.
    kernel : str or object of `binfeat.kernels`, default="laplacian"
        A kernel that has a pitch law.
    categorical_features : array-like of bool, int or str, default=None
        Inputs whose values are category numbers, as in `RandomBinning`.
    sample_weight : float or array-like of shape (n_rows,), default=None
    n_grids : int, default=50
        Number of grids of the machine; fewer rows need more grids.
    max_rounds : int, default=12
        Maximum number of rounds; the search ends earlier once two rounds in a row gain less than a paired standard
        error.
    max_rows : int, default=40_000
        Maximum number of training rows.
    validation_fraction : float, default=0.2
        Share of the rows that is held out; at most 10,000 of these are used.
    n_jobs : int, default=None
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    learned : LearnedGamma
        With `gamma` for `RandomBinning`, `relevances`, `alpha`, and the errors and gammas of all rounds.

    Raises
    ------
    ValueError
        If a parameter is out of range, X or y holds infinity or numbers beyond 1e100, lengths differ, or there
        are fewer than 2 rows.

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
    Y = _targets(y)
    check_consistent_length(X, Y)
    if X.shape[0] < 2:
        raise ValueError("learn_gamma needs at least 2 rows, to hold some out; got 1.")
    weights = check_weights(sample_weight, X.shape[0])
    share = check_share(validation_fraction, "validation_fraction")
    seed = seed_of(random_state)
    order = np.random.default_rng(seed).permutation(X.shape[0])
    n_out = min(max(1, round(share * order.size)), order.size - 1)
    out = order[:n_out][:_OUT_ROWS]
    train = order[n_out:][: check_integer(max_rows, "max_rows", 1)]
    n_grids = check_integer(n_grids, "n_grids", 1)
    require_binning_memory((train.size, X.shape[1]), n_grids, 0)
    sample = Sample(
        _dense(X, train),
        Y[train],
        None if weights is None else weights[train],
        _dense(X, out),
        SquaredErrors(Y[out], None if weights is None else weights[out]),
        categorical=check_categorical(categorical_features, checked),
        kernel=binning_kernel(kernel),
        n_grids=n_grids,
        seed=seed,
        n_jobs=n_jobs,
    )
    search = LengthScaleSearch(sample, seed).run(check_integer(max_rounds, "max_rounds", 1))
    return LearnedGamma(
        search.best.gamma,
        search.relevances,
        search.best.alpha,
        np.array([fit.error for fit in search.fits]),
        np.array([fit.gamma for fit in search.fits]),
    )


class _Checked(BaseEstimator):
    """Keeps the number and names of inputs that the checks of a table find."""


def _targets(y):
    """Standardised targets of shape (n_rows, n_targets): 1 and -1 for classes."""
    y = checked_array(y, dtype=None, ensure_2d=False, input_name="y")
    if y.dtype.kind not in "iufb" or (y.ndim == 1 and y.dtype.kind in "iub" and np.unique(y).size <= 2):
        classes, labels = np.unique(check_labels(y), return_inverse=True)
        return one_against_rest(labels, classes.size)
    Y = y.reshape(y.shape[0], -1).astype(np.float64)
    check_moderate(Y, "y")
    std = Y.std(axis=0)
    return (Y - Y.mean(axis=0)) / np.where(std > 0, std, 1.0)


def _dense(X, rows):
    part = X[rows]
    return np.ascontiguousarray(part.toarray() if sparse.issparse(part) else part, dtype=np.float64)
