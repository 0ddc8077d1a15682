"""Micro cases: a few milliseconds to 0.2 s each, with counters that do not depend on the clock."""

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse

import binfeat

N_ROWS, N_INPUTS, N_GRIDS, GAMMA = 60_000, 10, 32, 0.1
N_COMPONENTS = 256


@dataclass(frozen=True)
class Micro:
    """A call to time.

    Attributes
    ----------
    prepare : callable
        Creates the input and returns the call.
    count : callable
        From the result of the call to its counters, a dict of str to int or str, which are the same in each run.
    """

    name: str
    prepare: Callable
    count: Callable


def digest(*arrays):
    """Return a hash of the bytes of arrays."""
    state = hashlib.blake2b(digest_size=8)
    for array in arrays:
        state.update(np.ascontiguousarray(array).tobytes())
    return state.hexdigest()


@functools.cache
def _table():
    return np.random.default_rng(0).normal(size=(N_ROWS, N_INPUTS))


@functools.cache
def _binning():
    binning = binfeat.RandomBinning(gamma=GAMMA, n_grids=N_GRIDS, output="codes", random_state=0)
    return binning.fit(_table())


@functools.cache
def _codes():
    return _binning().transform(_table())


@functools.cache
def _target():
    X = _table()
    return np.sin(X[:, 0]) + X[:, 1] * X[:, 2]


@functools.cache
def _model():
    chosen = {"features": "binning", "kernel": "laplacian", "gamma": GAMMA, "alpha": 0.1}
    model = binfeat.KernelMachineRegressor(**chosen, solver_params={"n_grids": 64}, refit=False, random_state=0)
    return model.fit(_table(), _target())


def _hashed():
    return partial(binfeat.transform, _table(), gamma=GAMMA, n_grids=N_GRIDS)


def _fit_transform():
    return partial(binfeat.RandomBinning(**_binning().get_params()).fit_transform, _table())


def _transform():
    return partial(_binning().transform, _table())


def _sparse():
    X = sparse.random(8_000, 1_000, density=0.01, format="csr", random_state=0)
    return partial(binfeat.RandomBinning(gamma=0.1, n_grids=N_GRIDS, output="codes", random_state=0).fit_transform, X)


def _products(n_columns, n_times):
    rng, Z = np.random.default_rng(0), _codes()
    W, V = rng.normal(size=(Z.shape[1], n_columns)), rng.normal(size=(Z.shape[0], n_columns))
    return lambda: [product for _ in range(n_times) for product in (Z @ W, Z.T @ V)]


def _ridge(n_targets):
    sines = np.sin(np.outer(_target(), np.arange(1, n_targets + 1)))
    return partial(binfeat.CGRidge(alpha=0.1).fit, _codes(), sines)


def _fourier():
    X = _table().astype(np.float32)
    return partial(binfeat.RandomFourier(n_components=N_COMPONENTS, random_state=0).fit(X).transform, X)


def _gram():
    return partial(binfeat.CGRidge(alpha=0.1).fit, _fourier()(), _target())


def _predict_one():
    model, row = _model(), _table()[:1]
    return lambda: [model.predict(row) for _ in range(1_000)]


def _predict():
    return partial(_model().predict, _table())


def _count_codes(Z):
    return {"bins": Z.shape[1], "bytes": Z.nbytes, "output": digest(Z.codes)}


def _count_csr(Z):
    return {"bytes": Z.data.nbytes + Z.indices.nbytes + Z.indptr.nbytes, "output": digest(Z.indices, Z.data)}


def _count_arrays(arrays):
    return {"output": digest(*arrays)}


def _count_solve(model):
    return {"iterations": model.n_iter_, "output": digest(model.coef_, model.intercept_)}


def _count_array(array):
    return {"bytes": array.nbytes, "output": digest(array)}


CASES = {
    case.name: case
    for case in (
        Micro("hashed", _hashed, _count_csr),
        Micro("fit_transform", _fit_transform, _count_codes),
        Micro("transform", _transform, _count_codes),
        Micro("sparse", _sparse, _count_codes),
        Micro("products", partial(_products, 1, 10), _count_arrays),
        Micro("products_8", partial(_products, 8, 1), _count_arrays),
        Micro("ridge", partial(_ridge, 1), _count_solve),
        Micro("ridge_7", partial(_ridge, 7), _count_solve),
        Micro("fourier", _fourier, _count_array),
        Micro("gram", _gram, _count_solve),
        Micro("predict_one", _predict_one, _count_arrays),
        Micro("predict", _predict, _count_array),
    )
}
