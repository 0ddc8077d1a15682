"""Base of the estimators of graphs: the feature map, its length scale, and the graph of the rows."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from binfeat._common.array_types import ArrayLike
from binfeat._common.callbacks import CallbackSupportMixin
from binfeat._common.persistence import Persistent
from binfeat._common.validation import CheckedRows, canonical, check_categorical, checked_rows, is_word, seed_of
from binfeat._common.warned import warn
from binfeat._rows.products import Features
from binfeat._rows.sampled import SampledSource
from binfeat._rows.sources import is_source, joined, read_blocks
from binfeat._threads import thread_count
from binfeat.features.binning.bin_matrix import BinMatrix
from binfeat.features.binning.input_checks import ARRAY_CHECKS
from binfeat.features.binning.random_binning import RandomBinning
from binfeat.graph.distances import ScaledRows
from binfeat.graph.missing import FilledBlocks, filled, typical_values
from binfeat.graph.neighbors import NeighborGraph, NeighborMeans
from binfeat.graph.scale import gamma_by_occupancy, warn_of_units, without_copies
from binfeat.graph.similarity import ColumnMeans, Graph, SimilarityGraph
from binfeat.graph.wider_grids import WiderGrids, stages_of

_N_GRIDS = 256
_SAMPLE_ROWS = 10_000  # rows for the choice of a length scale
_MANY_ALONE = 0.1  # share of rows without neighbors above which a warning is issued


class GraphEstimator(Persistent, CallbackSupportMixin, BaseEstimator):
    gamma_: np.ndarray
    features_: Any
    n_iter_: int
    n_features_in_: int
    feature_names_in_: np.ndarray
    _means: dict
    _equal_weights = False  # of the neighbors of a row
    _typical: np.ndarray | None = None  # replaces missing values of each input; None in files of 0.3.0

    def __init__(
        self,
        features: BaseEstimator | None,
        gamma: ArrayLike | None,
        tol: float,
        max_iter: int,
        n_jobs: int | None,
        random_state: int | np.random.RandomState | None,
    ) -> None:
        self.features, self.gamma = features, gamma
        self.tol, self.max_iter = tol, max_iter
        self.n_jobs, self.random_state = n_jobs, random_state

    def _check_map(self) -> None:
        thread_count(self.n_jobs)
        if self.features is None:
            return
        is_map = hasattr(self.features, "get_params") and hasattr(self.features, "fit_transform")
        if not is_map or isinstance(self.features, type):
            raise TypeError(f"features must be a map, such as RandomBinning(), or None, got {self.features!r}.")
        name = "gamma" if getattr(self, "gammas", None) is None else "gammas"
        given = getattr(self, name)
        if given is not None and "gamma" not in self.features.get_params(deep=False):
            raise ValueError(
                f"{name} must be None for features without a parameter gamma, {type(self.features).__name__}; "
                f"got {given!r}."
            )

    def _check(self, X: Any, reset: bool = False) -> CheckedRows:
        """Return X as an array or CSR; TypeError for a source."""
        return canonical(checked_rows(self, X, reset=reset, **ARRAY_CHECKS))

    def _fill(self, X: Any) -> tuple[Any, CheckedRows]:
        """Return X and a sample of its rows; typical values of the sample replace missing values in both."""
        sample = self._sample(X)
        categorical = check_categorical(getattr(self.features, "categorical_features", None), self)
        self._typical = typical_values(sample, categorical)
        table = FilledBlocks(X, self._check, self._typical) if is_source(X) else filled(X, self._typical)
        return table, filled(sample, self._typical)

    def _map(self, gamma: Any) -> Any:
        """Return the map before its fit, with a seed; a binning map returns codes."""
        seed = seed_of(self.random_state)
        made = RandomBinning(n_grids=_N_GRIDS, min_count=2) if self.features is None else clone(self.features)
        known = made.get_params(deep=False)
        own: dict[str, Any] = {"output": "codes"}
        if gamma is not None:
            own["gamma"] = gamma
        if known.get("categorical_features") is not None:  # arrays have no names of columns
            own["categorical_features"] = check_categorical(known["categorical_features"], self)
        defaults = {"random_state": seed, "n_jobs": self.n_jobs}
        own |= {name: value for name, value in defaults.items() if known.get(name, 0) is None}
        return made.set_params(**{name: value for name, value in own.items() if name in known})

    def _sample(self, X: Any) -> CheckedRows:
        """Return rows for the choice of a length scale and of typical values."""
        seed = seed_of(self.random_state)
        if is_source(X):
            X = self._check(SampledSource(self, X, seed).sample, reset=True)
        return X if X.shape[0] <= _SAMPLE_ROWS else X[rows_of_sample(X.shape[0], seed, _SAMPLE_ROWS)]

    def _graph(self, X: Any, sample: CheckedRows, gamma: Any) -> tuple[Any, Features, Graph]:
        """Return the map with this gamma, fitted to the rows, their features, and their graph.

        The length scale is selected by the sample.
        """
        made = self._map(gamma)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Grids are too")  # bins of one row have no weight
            if isinstance(made, RandomBinning) and is_word(made.gamma, "scale"):
                names = getattr(self, "feature_names_in_", None)
                warn_of_units(sample, check_categorical(made.categorical_features, self), names)
                made.set_params(gamma=gamma_by_occupancy(made, without_copies(sample)))
            if isinstance(made, RandomBinning) and not isinstance(made.kernel, WiderGrids):
                made.set_params(kernel=WiderGrids(made.kernel))
            Z = made.fit_transform(X)
        if Z.shape[0] < 2:
            raise ValueError(f"{type(self).__name__} needs at least 2 rows, got n_samples={Z.shape[0]}.")
        graph: Graph = self._graph_of(made, Z, X) if isinstance(Z, BinMatrix) else SimilarityGraph(Z)
        alone = (graph.degrees == 0).mean()
        if alone > _MANY_ALONE:
            message = f"{alone:.0%} of the rows share no bin with another row and have no neighbors. Decrease gamma."
            warn(message)
        return made, Z, graph

    def _graph_of(self, made: Any, Z: BinMatrix, X: Any) -> Graph:
        """Return the graph of rows in bins; rows of a source are kept for distances."""
        while isinstance(made, Pipeline):
            X, made = made[:-1].transform(X) if len(made) > 1 else X, made[-1]
        X = joined([block for _, block, _ in read_blocks(X)]) if is_source(X) else made._check(X)
        rows = ScaledRows.of(X, made.gamma_, made._categorical)
        return NeighborGraph(Z, rows, seed_of(self.random_state), stages_of(made, len(Z.codes)), self._equal_weights)

    def _keep_map(self, made: Any) -> None:
        self.features_ = made
        self.__dict__.pop("gamma_", None)  # of an earlier fit
        if hasattr(made, "gamma_"):
            self.gamma_ = made.gamma_

    def _means_for(self, X: Any) -> np.ndarray:
        """Return means of the values in `_means` over the training rows most similar to the rows of X."""
        check_is_fitted(self)
        X = self._check(X)
        Z = self.features_.transform(X if self._typical is None else filled(X, self._typical))
        if "rows" in self._means:
            return NeighborMeans.from_arrays(self._means).of_rows(Z, stages_of(self.features_, len(Z.codes)))
        return ColumnMeans.from_arrays(self._means).of_rows(Z)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags


def rows_of_sample(n_rows: int, seed: int, n_wanted: int) -> np.ndarray:
    """Return increasing numbers of a random sample of the rows."""
    return np.sort(np.random.default_rng(seed).permutation(n_rows)[:n_wanted])
