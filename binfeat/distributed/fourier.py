"""Random Fourier features of the rows of a Dask collection."""

from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from binfeat._common.fit_rollback import all_or_nothing
from binfeat.distributed._chunks import inputs_of, is_chunked, moments_for_gamma, on_worker, results_of
from binfeat.distributed.relevance import checked_sample
from binfeat.features.fourier.random_fourier import RandomFourier as InMemory


class RandomFourier(InMemory):
    """`binfeat.RandomFourier` for the rows of a Dask array or dataframe.

    For the same rows, features are the same as with `binfeat.RandomFourier`, which describes parameters and attributes.
    A fitted map accepts Dask collections and rows in memory. `fit` reads the rows once for ``gamma="scale"``, reads a
    sample for "learn", and reads no rows for given gammas.

    See Also
    --------
    binfeat.RandomFourier : Parameters, attributes, and the map for rows in memory.

    Examples
    --------
    >>> import dask.array as da
    >>> from binfeat.distributed import RandomFourier
    >>> X = da.random.default_rng(0).normal(size=(1000, 2), chunks=(300, 2))
    >>> RandomFourier(n_components=100, random_state=0).fit_transform(X).chunks
    ((300, 300, 300, 100), (100,))
    """

    __module__ = "binfeat.distributed"  # as saved files name it

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Draw the frequencies, as `binfeat.RandomFourier` does."""
        if not is_chunked(X):
            return super().fit(X, y, sample_weight)
        self._check_parameters()
        chunks = inputs_of(self, X, reset=True)
        self._checked_law()
        moments = moments_for_gamma(chunks, self, InMemory, sample_weight)
        self._draw(chunks.dtype, self._chosen_gamma(chunks.dtype, moments, checked_sample, self, X, y, sample_weight))
        return self

    def transform(self, X: Any) -> Any:
        """Map rows to their features; for a Dask collection, a lazy Dask array."""
        if not is_chunked(X):
            return super().transform(X)
        check_is_fitted(self)
        chunks = inputs_of(self, X, reset=False)
        return results_of(chunks, on_worker(self, InMemory), "transform", (self._n_features_out,), chunks.dtype)
