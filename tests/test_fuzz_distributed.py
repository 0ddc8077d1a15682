"""Arbitrary arguments of estimators on Dask: the results of the same rows in memory, or an error with the cause."""

import os

import numpy as np
import pytest
import tables
from hard import easy
from hypothesis import given
from hypothesis import strategies as st
from outcomes import of_parameter, outcome
from tables import LABELS, ROWS

import binfeat

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
remote = pytest.importorskip("binfeat.distributed")

Y = ROWS[:, 0] + 0.1
CHUNKS = da.from_array(ROWS, chunks=(15, 3))


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@st.composite
def chunked(draw):
    """Strategy for a Dask array and its content."""
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
        # BLAS can round the angles of large numbers by more than a turn.
        moderate = (np.abs(values.astype(np.float64)) < 1e6).all(axis=1)
        np.testing.assert_allclose(there[moderate], here[moderate], atol=1e-5)
        assert there.dtype == here.dtype


MAPS = [
    lambda table: remote.RandomBinning(n_grids=3, random_state=0).fit_transform(table),
    lambda table: remote.RandomFourier(n_components=4, random_state=0).fit_transform(table),
    lambda table: remote.CGRidge().fit(ROWS, Y).predict(table),
]


@pytest.mark.parametrize("call", MAPS)
@given(tables.wild_tables())
def test_maps_of_collections_take_or_refuse_anything(call, table):
    outcome(lambda: call(table), documented=["X has feature names, but CGRidge"])


@pytest.mark.parametrize("model", [remote.CGRidge, remote.CGRidgeClassifier])
@given(y=tables.wild_tables(), weight=st.sampled_from(tables.NASTY))
def test_targets_and_weights_of_collections(model, y, weight):
    outcome(lambda: model().fit(CHUNKS, y))
    outcome(lambda: model().fit(CHUNKS, LABELS, sample_weight=weight))


MADE = [
    remote.RandomBinning(n_grids=3),
    remote.RandomFourier(n_components=4),
    remote.CGRidge(),
    remote.CGRidgeClassifier(),
]


VALUES = tables.NASTY if "BINFEAT_HARD" in os.environ else tables.NASTY[::10]
PARAMETERS = [(made, own) for made in MADE for own in made.get_params()]


def is_tried_of_classifiers(made, parameter):
    return isinstance(made, remote.CGRidge) and parameter in remote.CGRidgeClassifier().get_params()


@pytest.mark.parametrize(
    ("made", "parameter"),
    easy(PARAMETERS, *(pair for pair in PARAMETERS if not is_tried_of_classifiers(*pair))),
    ids=lambda own: own if isinstance(own, str) else type(own).__name__,
)  # fmt: skip
def test_parameters_on_collections(made, parameter):
    for value in VALUES:
        model = made.__class__(**{**made.get_params(), parameter: value})
        outcome(lambda own=model: own.fit(CHUNKS, LABELS), of_parameter(parameter))


@pytest.mark.parametrize("parameter", ["sample_weight", "max_rows", "max_steps", "random_state", "kernel"])
def test_parameters_of_learn_gamma_on_collections(parameter):
    for value in VALUES:
        options = {"max_steps": 2, "random_state": 0, parameter: value}
        outcome(lambda own=options: remote.learn_gamma(CHUNKS, Y, **own), of_parameter(parameter))
