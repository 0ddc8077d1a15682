"""Anything that a user could pass to displays, unions and Dask collections: as in memory, or an error that says why."""

import re

import numpy as np
import pytest
import tables
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from outcomes import OF_A_TABLE, outcome

import binfeat
from binfeat import kernels

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = X[:, 0] + 0.1
LABELS = (X[:, 0] > 0).astype(int)
LISTS = st.sampled_from([*tables.NASTY, [0.5, 0.25], [[0.1, 0.2], [0.3, 0.4]], ["a", "b"], [-0.0, np.nan]])

NAMES = "X has feature names, but "


@pytest.fixture(scope="module")
def binning():
    return binfeat.RandomBinning(gamma=0.3, n_grids=5, random_state=0).fit(X)


def drawn(draw):
    """The picture as well: errors may come as late as when it is drawn."""
    display = draw()
    display.figure_.draw_without_rendering()
    return display


@given(LISTS, LISTS, st.sampled_from([1, 2, 20]) | st.sampled_from(tables.NASTY))
def test_relevances_of_any_kind(relevances, names, most):
    def draw():
        return binfeat.RelevanceDisplay(relevances, names).plot(Figure().subplots(), max_features=most)

    outcome(lambda: drawn(draw), "relevances|feature_names|max_features")


@given(LISTS, LISTS)
def test_learning_curves_of_any_kind(x, error):
    outcome(lambda: drawn(lambda: binfeat.LearningCurveDisplay(x, error).plot(Figure().subplots())), "x|error")


@given(LISTS, LISTS)
def test_errors_of_any_kind(exact, approximate):
    def draw():
        return binfeat.KernelErrorDisplay(exact, approximate).plot(Figure().subplots())

    outcome(lambda: drawn(draw), "exact|approximate")


@pytest.mark.parametrize("parameter", ["kernel", "gamma", "n_pairs", "random_state"])
def test_parameters_of_kernel_errors(binning, parameter):
    for value in tables.NASTY:
        options = {"kernel": kernels.Laplacian(), parameter: value, "ax": Figure().subplots()}
        outcome(
            lambda own=options: binfeat.KernelErrorDisplay.from_estimator(binning, X, **own), f"{parameter}|[Ss]eed"
        )


@given(table=tables.wild_tables())
def test_kernel_errors_take_or_refuse_anything(binning, table):
    def draw():
        return binfeat.KernelErrorDisplay.from_estimator(binning, table, ax=Figure().subplots())

    outcome(draw, documented=[f"{NAMES}RandomBinning"])


KERNELS = [
    *(kernels.Laplacian(), kernels.Hat(), kernels.GammaPitch(1.5), kernels.GammaPitch(np.inf), kernels.Cauchy()),
    *(kernels.RBF(), kernels.Matern(0.5), kernels.Matern(np.inf), kernels.Skip(kernels.Laplacian(), 0.3)),
    kernels.Product(lambda t: 1 / (1 + t)),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda own: str(own).partition("<")[0])
@given(tables.arrays(finite=False), tables.wild_tables() | st.none(), st.sampled_from([1.0, 1e300, *tables.NASTY]))
def test_kernel_matrices_take_or_refuse_anything(kernel, table, other, gamma):
    K = outcome(lambda: kernel(table, other, gamma=gamma), re.compile(OF_A_TABLE.pattern + "|gamma"))
    if K is not None:
        assert ((K >= 0) & (K <= 1)).all()
        assert other is not None or (K.diagonal() == 1).all()


UNION = {"bins": binfeat.RandomBinning(gamma=1.0, n_grids=3), "waves": binfeat.RandomFourier(n_components=4, gamma=1.0)}


@pytest.mark.parametrize("parameter", ["transformers", "weights", "sparse_output"])
def test_parameters_of_unions(parameter):
    for value in [*tables.NASTY, [1.0, 2.0], [1.0, -2.0], [("a", None), ("a", 3)], [("a", 1, 2)], [(1, UNION["bins"])]]:
        union = binfeat.RandomFeatureUnion(**{"transformers": list(UNION.items()), parameter: value})
        outcome(lambda own=union: own.fit_transform(X), parameter)


da = pytest.importorskip("dask.array")
import dask  # noqa: E402

import binfeat.distributed as remote  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@st.composite
def chunked(draw):
    """A Dask array and what it holds."""
    values = draw(tables.arrays(min_inputs=1, finite=False))
    cuts = draw(st.lists(st.integers(0, len(values)), max_size=3))
    lengths = np.diff([0, *sorted(cuts), len(values)])
    widths = draw(st.sampled_from([-1, 1, 2]))
    return da.from_array(values, chunks=(tuple(map(int, lengths)), widths)), values


@given(chunked(), st.sampled_from(["scale", 0.5]), st.sampled_from([None, 40]))
def test_bins_of_chunks_are_those_of_memory(both, gamma, n_features):
    table, values = both
    options = {"gamma": gamma, "n_grids": 3, "n_features": n_features, "random_state": 0, "output": "codes"}
    here = outcome(lambda: binfeat.RandomBinning(**options).fit_transform(values))
    there = outcome(lambda: remote.RandomBinning(**options).fit_transform(table).compute())
    assert (here is None) == (there is None)
    if here is not None:
        np.testing.assert_array_equal(there.codes, here.codes)
        assert there.dtype == here.dtype


@given(chunked())
def test_waves_of_chunks_are_those_of_memory(both):
    table, values = both
    options = {"n_components": 4, "gamma": 1.0, "random_state": 0}
    here = outcome(lambda: binfeat.RandomFourier(**options).fit_transform(values))
    there = outcome(lambda: remote.RandomFourier(**options).fit_transform(table).compute())
    assert (here is None) == (there is None)
    if here is not None:
        moderate = (np.abs(values) < 1e6).all(axis=1)  # BLAS may round the angles of others by more than a turn
        np.testing.assert_allclose(there[moderate], here[moderate], atol=1e-5)
        assert there.dtype == here.dtype


MAPS = [
    lambda table: remote.RandomBinning(n_grids=3, random_state=0).fit_transform(table),
    lambda table: remote.RandomFourier(n_components=4, random_state=0).fit_transform(table),
    lambda table: remote.CGRidge().fit(X, Y).predict(table),
]


@pytest.mark.parametrize("call", MAPS)
@given(tables.wild_tables())
def test_maps_of_collections_take_or_refuse_anything(call, table):
    outcome(lambda: call(table), documented=[f"{NAMES}CGRidge"])


ROWS = da.from_array(X, chunks=(11, 3))


@pytest.mark.parametrize("machine", [remote.CGRidge, remote.CGRidgeClassifier])
@given(y=tables.wild_tables(), weight=st.sampled_from(tables.NASTY))
def test_targets_and_weights_of_collections(machine, y, weight):
    outcome(lambda: machine().fit(ROWS, y))
    outcome(lambda: machine().fit(ROWS, LABELS, sample_weight=weight))


MADE = [
    remote.RandomBinning(n_grids=3),
    remote.RandomFourier(n_components=4),
    remote.CGRidge(),
    remote.CGRidgeClassifier(),
]
ALSO = {"cv": "fold|split|iter|indices", "scoring": "scor", "class_weight": "class", "random_state": "[Ss]eed|random",
        "n_grids": "grids", "n_features": "features|grids", "n_components": "components|frequencies"}  # fmt: skip


@pytest.mark.parametrize(
    ("made", "parameter"), [(made, own) for made in MADE for own in made.get_params()],
    ids=lambda own: own if isinstance(own, str) else type(own).__name__,
)  # fmt: skip
def test_parameters_on_collections(made, parameter):
    for value in tables.NASTY:
        machine = made.__class__(**{**made.get_params(), parameter: value})
        outcome(lambda own=machine: own.fit(ROWS, LABELS), f"{parameter}|{ALSO.get(parameter, parameter)}")


@pytest.mark.parametrize("parameter", ["sample_weight", "max_rows", "validation_fraction", "random_state", "n_grids"])
def test_parameters_of_learn_gamma_on_collections(parameter):
    for value in tables.NASTY:
        options = {"n_grids": 5, "max_rounds": 1, "random_state": 0, parameter: value}
        outcome(lambda own=options: remote.learn_gamma(ROWS, Y, **own), f"{parameter}|{ALSO.get(parameter, parameter)}")
