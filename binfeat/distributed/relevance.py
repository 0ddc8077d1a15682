"""Length scales learned on a sample of the rows of a Dask collection."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from binfeat._common.validation import seed_of
from binfeat.distributed._chunks import chunks_of, compute, is_chunked, joined, lengths_of, split_like, taken
from binfeat.features.learn_gamma import learn_gamma as in_memory
from binfeat.features.learn_gamma.learning import LearnedGamma

_SAMPLE_ROWS = 30_000  # for a map that learns length scales: enough for all steps of a search


def learn_gamma(
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    max_steps: int = 60,
    max_rows: int = 500,
    random_state: int | np.random.RandomState | None = None,
    **options: Any,
) -> LearnedGamma:
    """Learn length scales, as `binfeat.learn_gamma`, from a random sample of the rows of a Dask collection.

    This process fetches the sample, which does not depend on the chunks. If it contains all rows, the result is the
    result of `binfeat.learn_gamma`.

    Parameters
    ----------
    X : Dask array or dataframe, or X of `binfeat.learn_gamma`, of shape (n_rows, n_inputs)
        Rows.
    y : Dask array, series or dataframe, or array-like, of shape (n_rows,) or (n_rows, n_targets)
        Targets: numbers, or labels of classes.
    sample_weight : float, Dask array or series, or array-like of shape (n_rows,), default=None
        Weights of the rows in the errors.
    max_steps : int, default=60
        Number of gradient steps, at most 10,000.
    max_rows : int, default=500
        Maximum number of rows per step. The sample has at most ``max_steps * max_rows`` rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the sample, and of the rows of each step.
    **options
        Other parameters of `binfeat.learn_gamma`.

    Returns
    -------
    learned : LearnedGamma
        The result of `binfeat.learn_gamma`.

    Examples
    --------
    >>> import dask.array as da
    >>> from binfeat.distributed import learn_gamma
    >>> X = da.random.default_rng(0).normal(size=(1000, 3), chunks=(300, 3))
    >>> int(learn_gamma(X, da.sin(2 * X[:, 1]), random_state=0).relevances.argmax())
    1
    """
    seed = seed_of(random_state)
    if is_chunked(X):
        n_steps, n_rows = in_memory.check_size(max_steps, max_rows)
        X, y, sample_weight = _sample(X, y, sample_weight, n_steps * n_rows, seed)
    options |= {"sample_weight": sample_weight, "max_steps": max_steps, "max_rows": max_rows, "random_state": seed}
    return in_memory.learn_gamma(X, y, **options)


def _sample(X: Any, y: Any, sample_weight: Any, most: int, seed: int) -> tuple[Any, Any, Any]:
    """Return at most `most` rows, in their order, with targets and weights."""
    chunks = chunks_of(X, "X")
    lengths = lengths_of(chunks)
    n_rows = sum(lengths)
    rows = np.sort(np.random.default_rng(seed).choice(n_rows, min(n_rows, most), replace=False))

    def fetched(values: Any, name: str) -> Any:
        if np.ndim(values) == 0 and not is_chunked(values):
            return values
        return joined(compute(taken(split_like(chunks, values, name), rows, lengths)))

    return joined(compute(taken(chunks, rows, lengths))), fetched(y, "y"), fetched(sample_weight, "sample_weight")


def checked_sample(estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return checked rows, targets and weights for a map that learns length scales; all None without targets."""
    if y is None:
        return None, None, None
    # With a seed from random_state, an instance of RandomState would then draw other features than in memory.
    X, y, sample_weight = _sample(X, y, sample_weight, _SAMPLE_ROWS, seed=0)
    return estimator._check(X), y, sample_weight
