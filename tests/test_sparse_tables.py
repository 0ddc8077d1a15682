"""Sparse matrices with indices outside their arrays: all public methods refuse them, in all formats."""

import copy
import os
import re

import numpy as np
import pytest
from kernel_models import with_options
from scipy import sparse

import binfeat
from binfeat import distributed as remote
from binfeat._common.sparse_tables import check_sparse

pytestmark = [
    pytest.mark.filterwarnings("ignore:Grids are too"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4)).round(1) * (RNG.uniform(size=(40, 4)) < 0.6)
Y = X @ np.array([1.0, 0.5, 0.0, -1.0])
LABELS = np.where(Y > 0, "yes", "no")
FAR = 2**30


def _edited(container, **edits):
    """Return a matrix with replaced numbers of its arrays: name -> (place, number)."""
    matrix = container(X)
    for name, (place, number) in edits.items():
        array = getattr(matrix, name).copy()
        array[place] = number
        setattr(matrix, name, array)
    return matrix


def _cut(container, name, n_left):
    matrix = container(X)
    setattr(matrix, name, getattr(matrix, name)[:n_left])
    return matrix


def _of_coordinates(container, **edits):
    matrix = container(X)
    matrix.coords = tuple(indices.copy() for indices in matrix.coords)
    for axis, (place, number) in edits.items():
        matrix.coords[int(axis[-1])][place] = number
    return matrix


def _list_of_lists():
    matrix = sparse.lil_array(X)
    matrix.rows[3] = [FAR]
    matrix.data[3] = [1.0]
    return matrix


def _longer_values():
    matrix = sparse.lil_array(X)
    matrix.data[3] = [1.0] * 5000
    return matrix


def _diagonals(n_offsets):
    matrix = sparse.dia_array(X)
    matrix.offsets = np.full(n_offsets, 2**31 - 1, np.int32)
    return matrix


def _masked():
    matrix = sparse.csr_array(X)
    matrix.indices = np.ma.masked_array(matrix.indices, mask=np.arange(matrix.nnz) == 0)
    matrix.indices.data[0] = FAR
    return matrix


def _of_short_integers():
    matrix = sparse.csr_array(X)
    matrix.indices = matrix.indices.astype(np.int16)
    return matrix


DAMAGES = {
    "csr index": (lambda: _edited(sparse.csr_matrix, indices=(5, FAR)), r"CSR.*indices should be from 0 to 3, got 107"),
    "csr negative": (
        lambda: _edited(sparse.csr_array, indices=(5, -FAR)),
        r"CSR.*indices should be from 0 to 3, got -",
    ),
    "csr starts": (lambda: _edited(sparse.csr_matrix, indptr=(7, FAR)), "CSR.*indptr should increase from 0"),
    "csr first start": (lambda: _edited(sparse.csr_matrix, indptr=(0, -FAR)), "CSR.*indptr should increase from 0"),
    "csr end": (lambda: _edited(sparse.csr_matrix, indptr=(-1, FAR)), "CSR.*indptr ends at .* but there are"),
    "csr short values": (lambda: _cut(sparse.csr_matrix, "data", 9), "CSR.*indptr ends at .* and 9 values"),
    "csr short indices": (lambda: _cut(sparse.csr_matrix, "indices", 9), "CSR.*there are 9 indices"),
    "csr few starts": (lambda: _cut(sparse.csr_matrix, "indptr", 9), "CSR.*indptr should have 41 numbers, got 9"),
    "csr masked": (_masked, "CSR.*indices should be an int32 or int64 array in one dimension"),
    "csr int16": (_of_short_integers, "CSR.*indices should be an int32 or int64 array .*, got int16"),
    "csc index": (lambda: _edited(sparse.csc_matrix, indices=(5, FAR)), "CSC.*indices should be from 0 to 39"),
    "csc starts": (lambda: _edited(sparse.csc_array, indptr=(2, -5)), "CSC.*indptr should increase"),
    "bsr index": (
        lambda: _edited(lambda X: sparse.bsr_array(X, blocksize=(2, 2)), indices=(1, FAR)),
        "BSR.*from 0 to 1",
    ),
    "coo row": (lambda: _of_coordinates(sparse.coo_array, axis_0=(3, FAR)), "COO.*axis 0 should be from 0 to 39"),
    "coo column": (lambda: _of_coordinates(sparse.coo_matrix, axis_1=(3, -1)), "COO.*axis 1 should be from 0 to 3"),
    "coo short": (lambda: _cut(sparse.coo_array, "data", 9), "COO.*axis 0 has .* coordinates for 9 values"),
    "lil column": (_list_of_lists, "LIL.*columns should be from 0 to 3"),
    "lil values": (_longer_values, "LIL.*a row has .* columns and 5000 values"),
    "dia offsets": (lambda: _diagonals(43), "DIA.*offsets"),
    "dia few offsets": (lambda: _diagonals(1), "DIA.*it has 1 offsets"),
}


def _fitted():
    """Yield estimators fitted to undamaged rows."""
    fixed = {"gamma": "scale", "random_state": 0}
    codes = binfeat.RandomBinning(n_grids=4, output="codes", random_state=0)
    yield "binning", binfeat.RandomBinning(n_grids=4, random_state=0).fit(X)
    yield "hashed", binfeat.RandomBinning(n_grids=4, n_features=64, gamma=0.5, random_state=0).fit(X)
    yield "fourier", binfeat.RandomFourier(n_components=6, random_state=0).fit(X)
    yield "fastfood", binfeat.RandomFourier(n_components=6, sampler="fastfood", random_state=0).fit(X)
    maps = [("bins", codes), ("fourier", binfeat.RandomFourier(n_components=4))]
    yield "union", binfeat.RandomFeatureUnion(maps).fit(X)
    yield "ridge", binfeat.CGRidge(n_posterior_samples=2).fit(X, Y)
    yield "ridge classes", binfeat.CGRidgeClassifier().fit(X, LABELS)
    for features in ("exact", "local", "binning"):
        model = binfeat.KernelMachineRegressor(features=features, **with_options(fixed, n_posterior_samples=2))
        yield f"{features} model", model.fit(X, Y)
    yield "model of classes", binfeat.KernelMachineClassifier(**fixed).fit(X, LABELS)
    graph = {"features": codes, "gamma": 0.3, "random_state": 0}
    yield "embedding", binfeat.SpectralEmbedding(**graph).fit(X)
    yield "clusters", binfeat.SpectralClustering(2, **graph).fit(X)
    yield "labels", binfeat.LabelSpreading(**graph).fit(X, np.where(np.arange(40) < 9, Y > 0, -1))


_OF_ROWS = (
    "transform",
    "encode",
    "predict",
    "predict_proba",
    "decision_function",
    "predict_quantiles",
    "predict_interval",
    "sample_y",
    "check",
    "apply",
    "shapley_values",
)
_ALONE = {"apply": "local model", "predict_quantiles": "exact model"}
_WITH_TARGETS = ("fit", "fit_transform", "fit_predict", "partial_fit", "score")


def _targets(name):
    return {"labels": np.where(np.arange(40) < 9, 1, -1)}.get(name, LABELS if "classes" in name else Y)


def calls():
    """Yield all public calls with rows: name, and function of the rows."""
    for name, estimator in _fitted():
        y = _targets(name)
        for method in _OF_ROWS:
            if hasattr(estimator, method) and name == _ALONE.get(method, name):
                yield f"{name}.{method}", getattr(estimator, method)
        for method in _WITH_TARGETS:
            if hasattr(estimator, method):
                call = getattr(copy.deepcopy(estimator), method)
                yield f"{name}.{method}", lambda Z, call=call, y=y: call(Z, y)
        if hasattr(estimator, "shapley_values"):
            yield f"{name}.shapley_values background", lambda Z, own=estimator: own.shapley_values(X[:3], background=Z)
        if name in ("binning", "hashed", "fourier", "union"):
            yield f"{name} display", lambda Z, own=estimator: binfeat.KernelErrorDisplay.from_estimator(own, Z)
        if name == "exact model":
            yield "intervals display", lambda Z, own=estimator: binfeat.IntervalDisplay.from_estimator(own, Z, Y)
            yield "shapley display", lambda Z, own=estimator: binfeat.ShapleyDisplay.from_estimator(own, Z)
            yield "report", lambda Z, own=estimator: own.report(os.devnull, Z, Y)
    yield "transform", lambda Z: binfeat.transform(Z, n_grids=4)
    yield "learn_gamma", lambda Z: binfeat.learn_gamma(Z, Y, max_steps=2, random_state=0)
    for name, kernel in (("laplacian", binfeat.kernels.Laplacian()), ("rbf", binfeat.kernels.RBF())):
        yield name, lambda Z, kernel=kernel: kernel(Z, gamma=1.0)
    for where, source in (("blocks", lambda Z: binfeat.blocks(Z, Y, block_rows=11)), ("listed", _listed)):
        yield f"{where} binning", lambda Z, source=source: binfeat.RandomBinning(n_grids=4).fit_transform(source(Z))
        yield f"{where} fourier", lambda Z, source=source: binfeat.RandomFourier(n_components=4).fit(source(Z))
        yield f"{where} ridge", lambda Z, source=source: binfeat.CGRidge().fit(source(Z))
        yield f"{where} model", lambda Z, source=source: binfeat.KernelMachineRegressor(gamma="scale").fit(source(Z))


def _listed(Z):
    return binfeat.blocks([(X, Y) if not sparse.issparse(Z) else (sparse.csr_array(X), Y), (Z, Y)])


@pytest.fixture(scope="module")
def all_calls():
    return dict(calls())


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_sparse_matrices_are_refused_by_every_public_method(all_calls, damage):
    make, message = DAMAGES[damage]
    for name, call in all_calls.items():
        with pytest.raises(ValueError) as raised:  # noqa: PT011 - its message is searched below, to name the call
            call(make())
        assert re.search(f"(X|it) is a damaged sparse matrix in {message}", str(raised.value)), (name, raised.value)


@pytest.mark.parametrize("damage", ["csr index", "csr starts", "csc index", "coo row", "bsr index"])
def test_damaged_chunks_are_named(damage, own_scheduler):
    da, delayed = pytest.importorskip("dask.array"), pytest.importorskip("dask").delayed
    make, message = DAMAGES[damage]
    chunks = [delayed(sparse.csr_matrix)(X), delayed(make)()]
    rows = da.concatenate([da.from_delayed(chunk, X.shape, meta=sparse.csr_matrix((0, 4))) for chunk in chunks])
    y = da.from_array(np.append(Y, Y), chunks=40)
    binning = remote.RandomBinning(n_grids=3, gamma=0.5, random_state=0)
    for call in (
        lambda: binning.fit(rows),
        lambda: remote.RandomFourier(n_components=4, random_state=0).fit(rows),
        lambda: remote.CGRidge().fit(rows, y),
        lambda: remote.KernelMachineRegressor(gamma="scale").fit(rows, y),
        lambda: remote.learn_gamma(rows, y),
        lambda: remote.CGRidge().fit(np.append(X, X, axis=0), np.append(Y, Y)).predict(rows).compute(),
    ):
        with pytest.raises(ValueError, match=f"Chunk 1 of X: it is a damaged sparse matrix in {message}"):
            call()


@pytest.mark.parametrize("name", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
@pytest.mark.parametrize("shape", [(40, 4), (0, 4), (3, 0), (0, 0)])
def test_undamaged_matrices_pass_and_are_left_as_they_were(name, shape):
    for kind in ("array", "matrix"):
        matrix = getattr(sparse, f"{name}_{kind}")(X[: shape[0], : shape[1]] if 0 not in shape else shape)
        before = copy.deepcopy(matrix)
        check_sparse(matrix)
        assert (matrix != before).nnz == 0
    check_sparse(X)
    check_sparse(None)


def test_spare_room_and_wide_indices_pass():
    matrix = sparse.csr_array(X)
    matrix.indices = np.append(matrix.indices, FAR).astype(np.int64)  # after the last entry
    matrix.data, matrix.indptr = np.append(matrix.data, 0.0), matrix.indptr.astype(np.int64)
    check_sparse(matrix)
    for values in (matrix.indices, matrix.indptr, matrix.data):
        values.flags.writeable = False
    check_sparse(matrix)
    check_sparse(sparse.coo_array(Y))
    check_sparse(sparse.csr_array(Y))
