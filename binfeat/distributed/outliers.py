"""Outliers among the rows of a Dask collection."""

from collections.abc import Callable
from functools import partial, reduce
from operator import add
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from binfeat._common.fit_rollback import all_or_nothing
from binfeat._common.validation import check_categorical, seed_of
from binfeat._rows.row_sample import RowSample, orders_of
from binfeat.density.counted_bins import Counts, Turns
from binfeat.density.detector import OutlierDetector as InMemory
from binfeat.distributed._chunks import (
    inputs_of,
    is_chunked,
    lengths_of,
    on_worker,
    reduce_in_tree,
    require_rows,
    results_of,
    shared,
)
from binfeat.features.binning.grids import Grids

T = TypeVar("T")


class OutlierDetector(InMemory):
    """`binfeat.OutlierDetector` for the rows of a Dask array or dataframe.

    For the same rows, counts and scores are the same as with `binfeat.OutlierDetector`, for any chunks. Each worker
    counts the rows of its chunks, and the counts are added in a tree. A fitted detector accepts Dask collections and
    rows in memory. For Dask collections, `score_samples`, `decision_function` and `predict` return lazy Dask arrays.
    The other methods require rows in memory.

    See Also
    --------
    binfeat.OutlierDetector : Parameters, attributes and methods.

    Examples
    --------
    >>> import dask.array as da
    >>> from binfeat.distributed import OutlierDetector
    >>> X = da.random.default_rng(0).normal(size=(1000, 2), chunks=(300, 2))
    >>> OutlierDetector(random_state=0).fit(X).predict(X).chunks
    ((300, 300, 300, 100),)
    """

    __module__ = "binfeat.distributed"  # as saved files name it

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Count the training rows in the bins of the grids, as `binfeat.OutlierDetector` does."""
        if not is_chunked(X):
            return super().fit(X)
        self._check_parameters()
        seed, chunks = seed_of(self.random_state), inputs_of(self, X, reset=True)
        self._categorical = check_categorical(self.categorical_features, self)
        lengths, twin = lengths_of(chunks), on_worker(self, InMemory)
        require_rows(sum(lengths))
        firsts = np.cumsum([0, *lengths[:-1]]).tolist()

        def combined(combine: Callable[..., T], function: Callable[..., T], *arguments: Any) -> T:
            parts = chunks.each(function, twin, seed, *arguments, own=[firsts])
            return reduce_in_tree([part for part, length in zip(parts, lengths) if length], combine)

        def count(grids: Grids, turns: Turns) -> Counts:
            return combined(Counts.united, _count, shared(grids), turns)

        self._learn(count, sum(lengths), combined(partial(reduce, add), _sample), seed)
        return self

    def score_samples(self, X: Any) -> Any:
        """Return the score of each row; lower is more abnormal. A Dask array for a Dask collection."""
        if not is_chunked(X):
            return super().score_samples(X)
        check_is_fitted(self)
        return results_of(inputs_of(self, X, reset=False), on_worker(self, InMemory), "score_samples", (), np.float64)


def _sample(X: Any, first: int, twin: InMemory, seed: int) -> RowSample:
    return RowSample.of(twin._check(X), seed, first)


def _count(X: Any, first: int, twin: InMemory, seed: int, grids: Grids, turns: Turns) -> Counts:
    """Return the counts of a chunk that starts at row `first`."""
    return Counts.of(grids, turns, [(twin._check(X), orders_of(X.shape[0], seed, first))], X.shape[0], n_jobs=1)
