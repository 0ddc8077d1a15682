"""Concatenated features of several maps, for sums of kernels: `RandomFeatureUnion`."""

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from binfeat._common.array_types import ArrayLike
from binfeat._common.fit_rollback import all_or_nothing
from binfeat._common.operators import FeatureMap
from binfeat._common.persistence import Persistent
from binfeat._common.saved_values import check_arrays, check_bounds, check_inputs
from binfeat._common.sparse_tables import csr_container
from binfeat._common.validation import check_flag, checked_array, checked_rows
from binfeat._rows.sources import is_source
from binfeat._rows.stacked import StackedFeatures, as_block


def _check_union(state: dict[str, Any]) -> None:
    """Raise an error for a saved union with maps that do not match each other."""
    n_inputs, named = check_inputs(state), state["transformers_"]
    if type(named) is not list or not named:
        raise TypeError(f"transformers_ should be a list of fitted maps, got {type(named).__name__}.")
    for pair in named:
        name, part = pair
        if type(name) is not str or not hasattr(part, "transform") or getattr(part, "n_features_in_", 0) != n_inputs:
            raise ValueError(f"transformers_ should have names, and maps of {n_inputs} inputs, got {pair!r}.")
    check_arrays(state, {"_scales": (np.float64, "maps")}, {"maps": len(named)})
    check_bounds(state, "_scales", least=0.0)


class RandomFeatureUnion(FeatureMap, Persistent):
    """Concatenate the random features of several maps, which adds their kernels.

    With maps z_i of kernels k_i and weights w_i, the features of a row x are
    ``[sqrt(w_1) z_1(x), sqrt(w_2) z_2(x), ...]``. The inner product of the features of x and y estimates
    ``sum_i w_i k_i(x, y)``. Use it for targets that are partly smooth and partly have steps (Rahimi & Recht 2007,
    section 6).

    Parameters
    ----------
    transformers : list of (str, transformer)
        Names and maps, for example `RandomBinning` and `RandomFourier`.
    weights : array-like of shape (n_transformers,), default=None
        Non-negative weight of each kernel. None: all weights are 1.
    sparse_output : bool, default=True
        If True, `transform` returns CSR, otherwise a dense array. It is ignored if a map returns an operator, such as
        the `BinMatrix` of ``RandomBinning(output="codes")``. `transform` then returns blocks, as `encode` does, but
        with Fourier features in memory.

    Attributes
    ----------
    transformers_ : list of (str, transformer)
        The fitted maps.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_inputs,)
        Number of inputs, and their names, when X has string column names.

    See Also
    --------
    CGRidge, CGRidgeClassifier : Accept the blocks without conversion.

    Examples
    --------
    >>> import numpy as np
    >>> from binfeat import CGRidge, RandomBinning, RandomFeatureUnion, RandomFourier
    >>> from sklearn.pipeline import make_pipeline
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> y = np.sin(X[:, 0]) + (X[:, 0] > 1)
    >>> union = RandomFeatureUnion([
    ...     ("steps", RandomBinning(gamma=1.0, n_grids=100, output="codes", random_state=0)),
    ...     ("cosines", RandomFourier(gamma=1.0, n_components=100, random_state=0)),
    ... ])
    >>> bool(make_pipeline(union, CGRidge(alpha=0.1)).fit(X, y).score(X, y) > 0.99)
    True
    """

    __module__ = "binfeat"  # as saved files name it

    transformers_: list[tuple[str, Any]]

    _check_state = staticmethod(_check_union)

    def __init__(
        self,
        transformers: Sequence[tuple[str, Any]],
        *,
        weights: Sequence[float] | np.ndarray | None = None,
        sparse_output: bool = True,
    ):
        self.transformers = transformers
        self.weights = weights
        self.sparse_output = sparse_output

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the union and, if `deep`, of its maps as ``name__parameter``.

        Parameters
        ----------
        deep : bool, default=True

        Returns
        -------
        params : dict
        """
        params = super().get_params(deep=deep)
        for name, part in self._named() if deep else []:
            nested = part.get_params() if hasattr(part, "get_params") else {}
            params |= {name: part} | {f"{name}__{key}": value for key, value in nested.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the union, of its maps (``name__parameter``), or a map itself (``name``).

        The list of maps is set first, then maps, then the other parameters.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self : RandomFeatureUnion
        """
        if "transformers" in params:
            self.transformers = params.pop("transformers")
        replaced = {name: params.pop(name) for name, _ in self._named() if name in params and "__" not in name}
        if replaced:
            self.transformers = [(name, replaced.get(name, part)) for name, part in self._named()]
        return super().set_params(**params)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({"_binfeat_version": "0.1", **state})  # files of version 0.2.0 do not have it

    def _named(self) -> list[tuple[str, Any]]:
        """Return names and maps; an empty list if `transformers` is invalid, which `fit` refuses."""
        pairs: Sequence[Any] = self.transformers if isinstance(self.transformers, list | tuple) else [None]
        well_formed = all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs)
        return list(pairs) if well_formed else []

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit each map.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows
        y : array-like, default=None
            Passed to the maps.
        sample_weight : float or array-like of shape (n_rows,), default=None
            Passed to each map with a `fit` that accepts it.

        Returns
        -------
        self : RandomFeatureUnion

        Raises
        ------
        ValueError
            If `transformers` is not a list of pairs of a unique name and a map, or `weights` does not have a
            number for each map.
        """
        self._begin(X)
        self.transformers_ = [
            (name, clone(part).fit(X, y, **_weights_for(part, sample_weight))) for name, part in self.transformers
        ]
        self.__dict__.update(_inputs_of_source(X, self.transformers_))
        return self

    @config_context(transform_output="default")  # of the maps inside
    @all_or_nothing
    def fit_transform(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> sparse.csr_matrix | Any:
        """Fit each map and transform the same rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows
        y : array-like, default=None
            Passed to the maps.
        sample_weight : float or array-like of shape (n_rows,), default=None
            Passed to each map with a `fit` that accepts it.

        Returns
        -------
        Z : CSR, ndarray or blocks of shape (n_rows, n_features)
        """
        self._begin(X)
        fitted = [(name, clone(part)) for name, part in self.transformers]
        blocks = [part.fit_transform(X, y, **_weights_for(part, sample_weight)) for _, part in fitted]
        self.transformers_ = fitted
        self.__dict__.update(_inputs_of_source(X, fitted))
        return self._side_by_side(blocks)

    @config_context(transform_output="default")  # of the maps inside
    def transform(self, X: Any) -> sparse.csr_matrix | Any:
        """Map rows to their features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows

        Returns
        -------
        Z : CSR, ndarray or blocks of shape (n_rows, n_features)
            Of the type set by `sparse_output`; blocks if a map returns a `BinMatrix`.
        """
        self._check_inputs(X)
        return self._side_by_side([part.transform(X) for _, part in self.transformers_])

    @config_context(transform_output="default")  # of the maps inside
    def encode(self, X: Any) -> StackedFeatures:
        """Return the features as blocks: binning features as codes, Fourier features recomputed for each product.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_inputs), or a source of blocks of its rows

        Returns
        -------
        Z : LinearOperator of shape (n_rows, n_features)
            With `take`, row indexing, `gram_diagonal`, `tocsr` and `toarray`.
        """
        self._check_inputs(X)
        maps = [part for _, part in self.transformers_]
        encoded = [
            part.transform(X) if is_source(X) or not hasattr(part, "encode") else part.encode(X) for part in maps
        ]
        return StackedFeatures(encoded, self._scales)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Return the names of the columns: the name of the map, two underscores, and the column's name in that map.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Only checked against the names seen in `fit`.

        Returns
        -------
        names : ndarray of shape (n_columns,), object
        """
        check_is_fitted(self)
        parts = ((name, part.get_feature_names_out(input_features)) for name, part in self.transformers_)
        return np.array([f"{name}__{column}" for name, columns in parts for column in columns], dtype=object)

    def _begin(self, X: Any) -> None:
        """Check parameters, and store number and names of the inputs."""
        if not (isinstance(self.transformers, list | tuple) and self.transformers):
            raise ValueError(f"transformers must be a list of (name, transformer) pairs, got {self.transformers!r}.")
        for pair in self.transformers:
            if not (isinstance(pair, tuple) and len(pair) == 2 and hasattr(pair[1], "transform")):
                raise ValueError(f"transformers must be a list of (name, transformer) pairs; it contains {pair!r}.")
        names = [name for name, _ in self.transformers]
        if not all(isinstance(name, str) for name in names):
            raise TypeError(f"transformers must have names that are strings, got {names}.")
        if len(set(names)) < len(names):
            raise ValueError(f"transformers must have unique names, got {names}.")
        taken = [name for name in names if "__" in name or name in self.get_params(deep=False)]
        if taken:
            raise ValueError(f"transformers must have names without '__' that are not parameters, got {taken}.")
        check_flag(self.sparse_output, "sparse_output")
        self._scales = np.sqrt(self._check_weights())
        if is_source(X):
            self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        else:
            checked_rows(self, X, skip_check_array=True)

    def _check_inputs(self, X: Any) -> None:
        """Raise an error for new rows that are not a table, or have other inputs than in `fit`."""
        check_is_fitted(self)
        if is_source(X):  # the maps check its blocks
            return
        try:
            checked_rows(self, X, reset=False, skip_check_array=True)
        except ValueError:
            checked_array(X, accept_sparse=True, dtype=None, ensure_all_finite=False)  # names a wrong shape first
            raise

    def _check_weights(self) -> np.ndarray:
        n = len(self.transformers)
        weights = np.ones(n) if self.weights is None else np.asarray(self.weights)
        if weights.shape != (n,) or weights.dtype.kind not in "iuf":
            raise ValueError(f"weights must be one number per transformer, {n}; got {self.weights!r}.")
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise ValueError(f"weights must be finite and non-negative, got {self.weights!r}.")
        return weights.astype(np.float64)

    def _side_by_side(self, parts: Iterable[Any]) -> Any:
        blocks: list[Any] = [as_block(part) for part in parts]
        if any(isinstance(block, LinearOperator) for block in blocks):
            return StackedFeatures(blocks, self._scales)
        scaled = [block * block.dtype.type(scale) for block, scale in zip(blocks, self._scales, strict=True)]
        if self.sparse_output:
            parts = [part if sparse.issparse(part) else sparse.csr_array(part) for part in scaled]
            return csr_container()(sparse.hstack(parts, "csr"))
        return np.hstack([part.toarray() if sparse.issparse(part) else part for part in scaled])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        known = [part for _, part in self._named() if hasattr(part, "__sklearn_tags__")]
        tags.input_tags.allow_nan = all(part.__sklearn_tags__().input_tags.allow_nan for part in known)
        return tags


def _inputs_of_source(X: Any, fitted: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return number and names of the inputs of a source, as the first map read them; nothing for a table."""
    names = ("n_features_in_", "feature_names_in_") if is_source(X) else ()
    return {name: getattr(fitted[0][1], name) for name in names if hasattr(fitted[0][1], name)}


def _weights_for(part: Any, sample_weight: ArrayLike | None) -> dict[str, Any]:
    """Return the weights as an argument of `fit`, or no argument if there are no weights or `fit` has none."""
    accepts = sample_weight is not None and has_fit_parameter(part, "sample_weight")
    return {"sample_weight": sample_weight} if accepts else {}
