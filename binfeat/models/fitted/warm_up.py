"""Compiles what predictions need, before the first one."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from binfeat._threads import every_version
from binfeat.features.binning.bin_map import BinMap
from binfeat.features.binning.grids import Grids
from binfeat.features.fourier.features import FourierMap
from binfeat.linear.posterior import RidgePosterior
from binfeat.models.fitted.cell_trees import CellTrees
from binfeat.models.fitted.exact import ExactFunction
from binfeat.models.fitted.features import FeatureFunction
from binfeat.models.fitted.kernel_function import HeldOutErrors, KernelFunction, Posterior
from binfeat.models.fitted.local import LocalFunction
from binfeat.models.fitted.many_rows import ManyRowsPosterior
from binfeat.models.table.scalers import Quantiles

_N, _INPUTS, _TARGETS = 400, 5, 3  # rows, more than any kind takes one by one
_ROOTS = 5  # samples of a posterior
_NUS = (0.0, np.inf, 1.5, 2.5, -1.0)  # of all kernels
_TINY = 1e-6  # a penalty that takes float64
_WIDE = 2**16  # bins of a grid with 32-bit codes


def warm_up_models() -> None:
    """Compile every kernel that predictions of kernel models need, of all kinds and for any number of rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(_N, _INPUTS))
    X[:, -1] = rng.integers(3, size=_N)
    functions: list[KernelFunction | FeatureFunction] = [*_of_kernels(X, rng), *_of_features(rng)]
    with every_version():
        Quantiles.fit(X, np.zeros(_INPUTS, bool)).transform(X)
        for function in functions:
            for rows in (X[:1], X):
                function.scores(rows, np.zeros(_TARGETS))
            _posterior(function).variances(X)
            if isinstance(function, ExactFunction):
                ManyRowsPosterior(function, None).variances(X)
                replace(function, alpha=np.array(_TINY)).posterior(None, None, None)


def _posterior(function: KernelFunction | FeatureFunction) -> Posterior:
    errors = HeldOutErrors(np.ones(_TARGETS), np.zeros((1, _TARGETS)))
    samples = None
    if isinstance(function, FeatureFunction):
        n_features = function.coef.shape[1]
        samples = RidgePosterior(np.array(0.1), np.ones((_ROOTS, n_features), np.float32), np.zeros(_ROOTS))
    return function.posterior(samples, errors, None)


def _of_kernels(X: np.ndarray, rng: np.random.Generator) -> Iterator[ExactFunction | LocalFunction]:
    """Compile exact and local models."""
    categorical = np.arange(_INPUTS) == _INPUTS - 1
    given: dict = {
        "nus": np.array(_NUS),
        "shares": np.full(len(_NUS), 1 / len(_NUS)),
        "gammas": np.full((len(_NUS), _INPUTS), 0.1),
        "categorical": categorical,
        "support": np.ascontiguousarray(X.T, dtype=np.float32),
        "center": np.zeros(_INPUTS),
        "unit": np.ones(_INPUTS),
        "alpha": np.array(0.1),
        "weights": np.ones(_N),
        "coef": rng.normal(size=(_TARGETS, _N)),
    }
    yield ExactFunction(**given)
    radial = {name: given[name][1:] for name in ("nus", "shares", "gammas")}
    yield ExactFunction(**{**given, **radial, "rotation": np.eye(_INPUTS)})
    tree = CellTrees(np.zeros(1, np.int32), np.zeros(1), np.array([[-1, -2]], np.int32), np.zeros(1, np.int32))
    below = tree(X)[0] == 0
    yield LocalFunction(
        **given,
        **tree.arrays(),
        starts=np.array([0, below.sum(), _N]),
        rows=np.append(np.flatnonzero(below), np.flatnonzero(~below)).astype(np.int32),
        cell_alphas=np.full(2, 0.1),
        cell_intercepts=np.zeros((2, _TARGETS)),
    )


def _of_features(rng: np.random.Generator) -> Iterator[FeatureFunction]:
    """Compile models of grids with 16-bit and 32-bit codes, and models of Fourier features."""
    frequencies = rng.normal(size=(_INPUTS, 8))
    for n_bins in (8, _WIDE):
        shape, sizes = (2, _INPUTS), np.array([8, n_bins])
        keys = rng.integers(2**63, size=(2, *shape), dtype=np.uint64) | np.uint64(1)
        grids = Grids(np.ones(shape), np.zeros(shape), *keys)
        starts = np.append(0, np.cumsum(sizes))
        bins = BinMap(grids, rng.integers(2**64, size=starts[-1], dtype=np.uint64), starts)
        for fourier, n_features in ((FourierMap(frequencies), starts[-1] + 16), (None, starts[-1])):
            yield FeatureFunction(bins, fourier, np.ones((_TARGETS, n_features)))
