"""The function `learn_gamma`."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_consistent_length

from binfeat._common.array_types import ArrayLike
from binfeat._common.categories import with_category_numbers
from binfeat._common.validation import (
    InputNames,
    check_categorical,
    check_integer,
    check_moderate,
    checked_rows,
    seed_of,
)
from binfeat.features.binning.input_checks import ARRAY_CHECKS
from binfeat.features.learn_gamma.learning import LearnedGamma, encoded_targets, learnable_kernel, learned_gamma
from binfeat.kernels.base import Kernel

_MOST_STEPS = 10_000


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
    """Learn one length scale per input from targets (automatic relevance determination).

    Each gradient step decreases the leave-one-out error of kernel ridge regression on a few hundred rows. With all rows
    of the table, the best length scales are shorter. Therefore ``RandomBinning(gamma="learn")`` and
    ``RandomFourier(gamma="learn")`` also select a common factor of all gammas, the inverse length scales; use
    `learn_gamma` alone to inspect the length scales or to use them in several maps.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rows, n_inputs)
        Training rows. A missing value (NaN) is far from all other values.
    y : array-like of shape (n_rows,) or (n_rows, n_targets)
        Targets. Floats and Decimals are numbers. Strings and booleans are classes. Integers are classes if they have at
        most 50 different values, and at least 5 rows per value on average or only 2 values. Several columns are classes
        only if they contain strings.
    kernel : str or object of `binfeat.kernels`, default="laplacian"
        A kernel of `RandomBinning`, "rbf", or `Matern` with nu 1/2, 3/2, 5/2 or infinity. Pass the kernel of the map
        that will use the result, for example "rbf" for `RandomFourier` with its defaults.
    categorical_features : array-like of bool, int or str, default=None
        Inputs that contain category numbers, or labels in a data frame, as in `RandomBinning`.
    sample_weight : float or array-like of shape (n_rows,), default=None
        Weights of the rows in the errors.
    max_steps : int, default=60
        Number of gradient steps, at most 10,000.
    max_rows : int, default=500
        Maximum number of rows of a step; a step has fewer rows if the table is small or has many inputs.
    n_jobs : int, default=None
        Number of threads. None is Numba's current setting, by default all threads.
    random_state : int, RandomState instance or None, default=None
        Seed of the selection of rows.

    Returns
    -------
    learned : LearnedGamma
        Object with the attributes `gamma`, `relevances` (one number per input, larger for inputs on which the target
        depends more), `alpha`, and the errors and gammas of all steps. `transform`, `RandomBinning` and `RandomFourier`
        accept it as `gamma` if their kernel uses the same power of distances.

    Raises
    ------
    ValueError
        If a parameter is out of range, X or y contains infinity or numbers beyond 1e100, lengths differ, or there are
        fewer than 2 rows.

    Notes
    -----
    The leave-one-out error of kernel ridge regression, and its gradient with respect to the logarithms of all gammas
    and of the penalty, have closed forms. Adam minimizes the error, with new random rows in every step. If there are
    few rows, a prior shrinks the differences between the gammas. See :doc:`/user_guide/plot_11_mathematics`.

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
    names = InputNames()
    X = checked_rows(names, with_category_numbers(X, categorical_features), estimator="learn_gamma", **ARRAY_CHECKS)
    check_moderate(X.data if sparse.issparse(X) else X, "X")
    check_consistent_length(X, y)
    Y, weights = encoded_targets(y, sample_weight)
    seed, (n_steps, n_rows) = seed_of(random_state), check_size(max_steps, max_rows)
    categorical = check_categorical(categorical_features, names)
    parts = (learnable_kernel(kernel), X, Y, weights, categorical, seed)
    return learned_gamma(*parts, n_steps=n_steps, n_rows=n_rows, n_jobs=n_jobs)


def check_size(max_steps: int, max_rows: int) -> tuple[int, int]:
    return check_integer(max_steps, "max_steps", 1, _MOST_STEPS), check_integer(max_rows, "max_rows", 2)
