"""Operators as features, and their behavior with NumPy and scikit-learn's `set_output`."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from binfeat._common.array_types import ArrayLike


def row_numbers(rows: ArrayLike) -> np.ndarray:
    """Return the numbers of selected rows as an array; IndexError if they are not integers in one dimension."""
    rows = np.asarray(rows)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise IndexError(f"take needs row numbers in one dimension, got {rows.dtype} of shape {rows.shape}.")
    return rows.astype(np.intp, copy=False)


class RowMatrix(LinearOperator):
    """An operator with row indexing, over which NumPy must not iterate row by row, which is slow and fails.

    Subclasses implement ``take(rows)``, and products with operands of one real dtype, in Fortran order, into `out` of
    the same type: ``_matmat_into(W, out)`` and ``_rmatmat_into(V, out)``.
    """

    _instead = "features of rows in memory"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise TypeError(
            f"A {type(self).__name__} is not an array. It works with CGRidge and CGRidgeClassifier; for other "
            f"estimators use {self._instead}."
        )

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        """Select rows by slice, integers or mask; ``Z[rows, :]`` and ``Z[rows, ...]`` are equivalent."""
        if isinstance(rows, tuple):
            if len(rows) != 2 or not (rows[1] is Ellipsis or (isinstance(rows[1], slice) and rows[1] == slice(None))):
                kind = type(self).__name__
                raise IndexError(f"a {kind} is indexed by rows only: Z[rows]; to pick columns, use {self._instead}.")
            rows = rows[0]
        return self.take(row_numbers(np.atleast_1d(np.arange(self.shape[0])[rows])))

    def sum(self, axis: int | None = None) -> Any:
        """Sum of the entries.

        Parameters
        ----------
        axis : {0, 1, -2, -1}, default=None
            0 sums the rows, which gives one number for each column; 1 sums the columns; None sums all entries.

        Returns
        -------
        sums : ndarray of shape (n_columns,) or (n_rows,), or a number
            Added up in float64, in the type of the entries.

        Raises
        ------
        ValueError
            If the axis is not an axis of a matrix.
        """
        if axis not in (None, 0, 1, -1, -2):
            raise ValueError(f"axis must be 0, 1, -1, -2 or None, got {axis!r}.")
        if axis in (0, -2):
            return (self.T @ np.ones(self.shape[0])).astype(self.dtype)
        sums = self @ np.ones(self.shape[1])
        return self.dtype.type(sums.sum()) if axis is None else sums.astype(self.dtype)

    def _product(self, write: Callable[[np.ndarray, np.ndarray], None], operand: Any, n_rows: int) -> np.ndarray:
        """Return the product computed by `write` for any dtype; real and imaginary parts are multiplied separately."""
        operand = operand.toarray() if issparse(operand) else np.asarray(operand)
        dtype = np.result_type(self.dtype, operand.dtype)
        widest = np.dtype(np.complex128 if dtype.kind == "c" else np.float64)  # no kernels for long doubles and objects
        operand = operand.astype(dtype if np.can_cast(dtype, widest) else widest, copy=False)
        if operand.dtype.kind == "c":
            return self._product(write, operand.real, n_rows) + 1j * self._product(write, operand.imag, n_rows)
        out = np.empty((n_rows, operand.shape[1]), operand.dtype, order="F")
        write(np.asfortranarray(operand), out)
        return out

    def _matmat(self, W: Any) -> Any:
        return self._product(self._matmat_into, W, self.shape[0])

    def _rmatmat(self, V: Any) -> Any:
        return self._product(self._rmatmat_into, V, self.shape[1])

    def _rmatvec(self, v: np.ndarray) -> np.ndarray:
        return self._rmatmat(np.reshape(v, (-1, 1)))


class _Container(TransformerMixin):
    """A class with `set_output`: scikit-learn wraps `transform` to return arrays in the selected container."""

    def transform(self, X: Any, Z: Any) -> Any:
        return Z


class FeatureMap(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Base of transformers that can return operators, which `set_output` cannot convert to a data frame."""

    n_features_in_: int
    feature_names_in_: np.ndarray

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __init_subclass__(cls, **kwargs: Any) -> None:
        own = {name: vars(cls)[name] for name in ("transform", "fit_transform") if name in vars(cls)}
        super().__init_subclass__(**kwargs)
        for name, method in own.items():
            setattr(cls, name, _in_container(method))


def _in_container(method: Callable) -> Callable:
    """Wrap a method to return arrays in the selected container.

    Operators are returned unchanged if the global setting selects it, and raise an error if `set_output` does.
    """

    @functools.wraps(method)
    def run(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        Z = method(self, X, *args, **kwargs)
        if not isinstance(Z, LinearOperator):
            return _Container.transform(self, X, Z)
        own = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        if own != "default":
            kind = type(Z).__name__
            raise ValueError(
                f"set_output(transform={own!r}) requires features in an array, but {type(self).__name__} returns a "
                f"{kind}. Call set_output(transform='default')."
            )
        return Z

    return run
