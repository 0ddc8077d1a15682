"""Features that are an operator and no array, and what NumPy and scikit-learn's `set_output` do with them."""

import functools

from scipy.sparse.linalg import LinearOperator
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._set_output import _wrap_data_with_container


class FeatureOperator(LinearOperator):
    """Base of features that NumPy would else take apart row by row, for seconds and in vain."""

    _instead = "features of rows in memory"

    def __array__(self, dtype=None, copy=None):
        raise TypeError(
            f"A {type(self).__name__} is not an array. It works with CGRidge and CGRidgeClassifier; for other "
            f"estimators use {self._instead}."
        )


class FeatureMap(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Base of transformers whose results pass through `set_output` as they are where they are operators."""

    def fit_transform(self, X, y=None):
        """Fit and transform the same rows.

        Parameters
        ----------
        X : array, sparse matrix or source of blocks
            As `fit` and `transform` take it.
        y : array-like, default=None
            Passed on to `fit`.

        Returns
        -------
        Z : array, sparse matrix or LinearOperator of shape (n_rows, n_columns)
            As `transform` gives it.
        """
        return self.fit(X, y).transform(X)

    def __init_subclass__(cls, **kwargs):
        own = {name: vars(cls)[name] for name in ("transform", "fit_transform") if name in vars(cls)}
        super().__init_subclass__(**kwargs)
        for name, method in own.items():
            setattr(cls, name, _in_container(method))


def _in_container(method):
    """The method with arrays in the container that is set, as scikit-learn's own wrapper does."""

    @functools.wraps(method)
    def run(self, X, *args, **kwargs):
        Z = method(self, X, *args, **kwargs)
        return Z if isinstance(Z, LinearOperator) else _wrap_data_with_container("transform", Z, X, self)

    return run
