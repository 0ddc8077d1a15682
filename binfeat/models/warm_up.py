"""`warm_up`: compiles kernels before the first call that needs them."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from binfeat._engine.compilation import compilations
from binfeat._threads import every_version
from binfeat.features.binning.bin_matrix import BinMatrix
from binfeat.features.binning.random_binning import RandomBinning
from binfeat.features.fourier.random_fourier import RandomFourier
from binfeat.features.transform import transform
from binfeat.linear.classifier import CGRidgeClassifier
from binfeat.linear.regressor import CGRidge
from binfeat.models.fitted.warm_up import warm_up_models

_N = 300  # rows
_MANY_BINS = 70_000  # in a grid: codes take 4 bytes, and two grids have enough columns for equal ones to be merged
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
        dense and sparse rows in float32 and float64. "linear": `CGRidge` and `CGRidgeClassifier`, `fit` and
        predictions, on codes, CSR and arrays. "models": predictions of all types of kernel models, for any number of
        rows.

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
                    own: dict[str, Any] = {
                        "gamma": 0.1,
                        "n_grids": 4,
                        "n_features": n_features,
                        "output": output,
                        "random_state": 0,
                    }
                    RandomBinning(**own).fit_transform(rows)
                    RandomBinning(**own).fit(rows).transform(rows[:1])
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


def _features(rng: np.random.Generator) -> Iterator[Any]:
    """Features of all kinds and types."""
    few, many = rng.integers(8, size=(4, _N)).astype(np.uint16), np.arange(_MANY_BINS, dtype=np.uint32)
    for dtype in _TYPES:
        codes = BinMatrix(few, 8 * np.arange(5), dtype=dtype)
        yield from (codes, codes.tocsr(), rng.normal(size=(_N, 700)).astype(dtype))
        yield BinMatrix(np.stack([many, many[::-1]]), _MANY_BINS * np.arange(3), dtype=dtype)


_PARTS = {"features": _warm_up_features, "linear": _warm_up_linear, "models": warm_up_models}
