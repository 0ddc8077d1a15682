"""`warm_up`: compiles kernels before the first call that needs them."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from scipy import sparse

from binfeat._engine.compilation import compilations
from binfeat._rows.products import Features
from binfeat._threads import every_version
from binfeat.features.binning.bin_map import BinMap
from binfeat.features.binning.bin_matrix import BinMatrix
from binfeat.features.binning.grids import Grids
from binfeat.features.binning.random_binning import RandomBinning
from binfeat.features.fourier.features import FourierMap
from binfeat.features.fourier.random_fourier import RandomFourier
from binfeat.features.transform import transform
from binfeat.linear.classifier import CGRidgeClassifier
from binfeat.linear.posterior import RidgePosterior
from binfeat.linear.regressor import CGRidge
from binfeat.models.fitted.cell_trees import CellTrees
from binfeat.models.fitted.exact import ExactFunction, ManyRowsPosterior
from binfeat.models.fitted.features import FeatureFunction
from binfeat.models.fitted.fitted import Function, Posterior
from binfeat.models.fitted.kernel_function import HeldOutErrors
from binfeat.models.fitted.local import LocalFunction
from binfeat.models.table.derived import Quantiles

_PREDICTED, _INPUTS, _TARGETS = 400, 5, 3  # rows (more than any model predicts one by one), inputs, targets
_ROOTS = 5  # samples of a posterior
_NUS = (0.0, np.inf, 1.5, 2.5, -1.0)  # parameters nu of all kernels


def _warm_up_models() -> None:
    """Compile every kernel that predictions of kernel models need, of all kinds and for any number of rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(_PREDICTED, _INPUTS))
    X[:, -1] = rng.integers(3, size=_PREDICTED)
    functions: list[Function] = [*_of_kernels(X, rng), *_of_features(rng)]
    with every_version():
        Quantiles.fit(X, np.arange(_INPUTS)).transform(X)
        for function in functions:
            for rows in (X[:1], X):
                function.scores(rows, np.zeros(_TARGETS))
            _posterior(function).variances(X, None)
            if isinstance(function, ExactFunction):
                ManyRowsPosterior(function, None).variances(X, None)
                replace(function, alpha=np.array(1e-6)).posterior(None, None, None)  # in float64


def _posterior(function: Function) -> Posterior:
    errors = HeldOutErrors(np.ones(_TARGETS), np.zeros((1, _TARGETS)))
    samples = None
    if isinstance(function, FeatureFunction):
        n_features = function.coef.shape[1]
        samples = RidgePosterior(np.array(0.1), np.ones((_ROOTS, n_features), np.float32), np.zeros(_ROOTS))
    return function.posterior(samples, errors, None)


def _of_kernels(X: np.ndarray, rng: np.random.Generator) -> Iterator[ExactFunction | LocalFunction]:
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
        "weights": np.ones(_PREDICTED),
        "coef": rng.normal(size=(_TARGETS, _PREDICTED)),
    }
    yield ExactFunction(**given)
    radial = {name: given[name][1:] for name in ("nus", "shares", "gammas")}
    yield ExactFunction(**{**given, **radial, "rotation": np.eye(_INPUTS)})
    tree = CellTrees(np.zeros(1, np.int32), np.zeros(1), np.array([[-1, -2]], np.int32), np.zeros(1, np.int32))
    below = tree(X)[0] == 0
    yield LocalFunction(
        **given,
        **tree.arrays(),
        starts=np.array([0, below.sum(), _PREDICTED]),
        rows=np.append(np.flatnonzero(below), np.flatnonzero(~below)).astype(np.int32),
        cell_alphas=np.full(2, 0.1),
        cell_intercepts=np.zeros((2, _TARGETS)),
    )


def _of_features(rng: np.random.Generator) -> Iterator[FeatureFunction]:
    """Compile models of grids with 16-bit and 32-bit codes, and models of Fourier features."""
    frequencies = rng.normal(size=(_INPUTS, 8))
    for n_bins in (8, 2**16):
        shape, sizes = (2, _INPUTS), np.array([8, n_bins])
        keys = rng.integers(2**63, size=(2, *shape), dtype=np.uint64) | np.uint64(1)
        grids = Grids(np.ones(shape), np.zeros(shape), *keys)
        starts = np.append(0, np.cumsum(sizes))
        bins = BinMap(grids, rng.integers(2**64, size=starts[-1], dtype=np.uint64), starts)
        for fourier, n_features in ((FourierMap(frequencies), starts[-1] + 16), (None, starts[-1])):
            yield FeatureFunction(bins, fourier, np.ones((_TARGETS, n_features)))


_N = 300  # rows
_MANY_BINS = 70_000  # per grid: codes need 4 bytes, and two grids have enough columns for merging
_TYPES = np.float64, np.float32


def warm_up(*parts: str) -> None:
    """Compile Numba functions in advance, so that later calls in any process start fast.

    Numba stores compiled functions in the package, or in the folder named by the environment variable
    ``NUMBA_CACHE_DIR``, for one processor model. Call `warm_up` while a container image is built. The image can then be
    read-only. All parts take about two minutes the first time, and some seconds if everything is compiled.

    Parameters
    ----------
    *parts : {"features", "linear", "models"}
        Parts to compile; all if no part is named. "features": `transform`, `RandomBinning` and `RandomFourier`, for
        dense and sparse rows in float32 and float64. "linear": `fit` and predictions of `CGRidge` and
        `CGRidgeClassifier`, for codes (`BinMatrix`), CSR and arrays. "models": predictions of all types of kernel
        models, for any number of rows.

    Raises
    ------
    ValueError
        If a part is unknown.

    Examples
    --------
    >>> import binfeat
    >>> binfeat.warm_up("features", "linear")  # doctest: +SKIP
    """
    unknown = [part for part in parts if part not in _PARTS]
    if unknown:
        raise ValueError(f"parts must be among {', '.join(map(repr, _PARTS))}, got {unknown[0]!r}.")
    with compilations.announced(), every_version(), warnings.catch_warnings(action="ignore"):
        for part in parts or _PARTS:
            _PARTS[part]()


def _warm_up_features() -> None:
    X = np.random.default_rng(0).normal(size=(_N, 3))
    for dtype in _TYPES:
        dense = X.astype(dtype)
        for rows in (dense, sparse.csr_matrix(dense)):
            transform(rows, gamma=0.1, n_grids=4)
            for output in ("csr", "codes"):
                for n_features in (None, 64):
                    binning = partial(RandomBinning, gamma=0.1, n_grids=4, output=output, random_state=0)
                    binning(n_features=n_features).fit_transform(rows)
                    binning(n_features=n_features).fit(rows).transform(rows[:1])
            for sampler, phase in (("iid", "pair"), ("iid", "offset"), ("fastfood", "pair"), ("fastfood", "offset")):
                RandomFourier(n_components=8, sampler=sampler, phase=phase, random_state=0).fit_transform(rows)
        many = np.arange(_MANY_BINS, dtype=dtype)[:, np.newaxis]
        RandomBinning(gamma=1e3, n_grids=1, output="codes", random_state=0).fit_transform(many).tocsr()


def _warm_up_linear() -> None:
    rng = np.random.default_rng(0)
    for Z in _features(rng):
        n_rows = Z.shape[0]
        for n_targets in (1, 2, 3, 4):
            Y = rng.normal(size=(n_rows, n_targets))
            CGRidge(max_iter=2).fit(Z, Y).predict(Z)
        CGRidge(max_iter=2).fit(Z, Y, sample_weight=np.ones(n_rows))
        for loss in ("squared_error", "squared_hinge"):
            for n_classes in (2, 3):
                CGRidgeClassifier(max_iter=2, loss=loss).fit(Z, np.arange(n_rows) % n_classes).predict(Z)


def _features(rng: np.random.Generator) -> Iterator[Features]:
    few = rng.integers(8, size=(4, _N)).astype(np.uint16)
    many = np.arange(_MANY_BINS, dtype=np.min_scalar_type(_MANY_BINS))
    for dtype in _TYPES:
        codes = BinMatrix(few, 8 * np.arange(5), dtype=dtype)
        yield from (codes, codes.tocsr(), rng.normal(size=(_N, 700)).astype(dtype))
        yield BinMatrix(np.stack([many, many[::-1]]), _MANY_BINS * np.arange(3), dtype=dtype)


_PARTS = {"features": _warm_up_features, "linear": _warm_up_linear, "models": _warm_up_models}
