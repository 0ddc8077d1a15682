"""The model of what rounds on Dask cost."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("distributed")
dask_cost = pytest.importorskip("perf.dask_cost")

DOUBLING = "doubling of a grid's bins, for each row and grid"
EACH = {"round": 0.03, "chunk": 0.002, "row and grid": 2e-9, DOUBLING: 3e-10, "byte": 1e-9}
BINNING = {**EACH, "row, grid and input": 5e-11}
ROUND = dask_cost.Round("iteration", 10**6, 20, 64, 50_000, 2, 4)
CHANGES = [
    {},
    {"n_rows": 10**5},
    {"n_chunks": 32},
    {"n_columns": 10**6},
    {"n_rows": 10**7, "n_columns": 200_000},
    {"n_workers": 1},
    {"n_inputs": 40},
]


def measured(each=EACH, **changes):
    own = replace(ROUND, **changes)
    return replace(own, seconds=sum(each[name] * amount for name, amount in own.amounts().items() if name in each))


@pytest.mark.parametrize(("kind", "each"), [("iteration", EACH), ("first sums", EACH), ("binning", BINNING)])
def test_the_model_finds_what_rounds_are_made_of(kind, each):
    rounds = [measured(each, kind=kind, **own) for own in CHANGES]
    cost = dask_cost.costs_of([*rounds, rounds[0]])[kind]
    assert cost.each == pytest.approx(each, rel=1e-6)
    other = measured(each, kind=kind, n_rows=3 * 10**6, n_grids=20, n_columns=10**5, n_inputs=7)
    assert cost.seconds(other) == pytest.approx(other.seconds)


def test_errors_are_relative():
    """A round of a minute that is a tenth off counts as one of a millisecond does."""
    rounds = [measured(**own) for own in CHANGES]
    off = [replace(own, seconds=own.seconds * factor) for own, factor in zip(rounds, [1.1, 0.9] * 4, strict=False)]
    cost = dask_cost.Cost.fit(off)
    assert all(1 / 1.25 < cost.seconds(own) / own.seconds < 1.25 for own in rounds)


def test_the_least_seconds_of_the_same_work():
    one, other = replace(ROUND, seconds=1.0, carried=5.0), replace(ROUND, n_grids=32, seconds=3.0, carried=7.0)
    fits = [[one, one, other], [replace(one, seconds=0.5), one, replace(other, seconds=4.0)]]
    assert dask_cost.least(fits) == [replace(one, seconds=0.5), replace(one, seconds=0.5), other]


def test_coefficients_that_an_iteration_carries():
    assert ROUND.sent == 7  # two ways to the scheduler and back, to two workers, half of four sums between them
    assert replace(ROUND, n_workers=1).sent == 4


def test_clusters():
    costs = {"iteration": dask_cost.Cost(EACH), "binning": dask_cost.Cost(BINNING)}
    fit = [ROUND, ROUND, replace(ROUND, kind="binning", n_grids=32)]
    few, many, coarse = (
        dask_cost.scaled(fit, 10**9, 50, 0.5, n_machines, each) for n_machines, each in ((8, 8), (100, 8), (100, 1))
    )
    assert few[0].n_columns == int(50_000 * np.sqrt(1000))
    assert (many[0].n_workers, many[0].n_chunks, many[0].n_inputs) == (800, 800, 50)
    parts, more, less = (
        dask_cost.of_cluster(costs, own, 0.01, n_machines) for own, n_machines in ((few, 8), (many, 100), (coarse, 100))
    )
    assert max(parts, key=parts.get) == "work on rows"
    assert max(more, key=more.get) == "rounds of the scheduler"
    assert parts["work on rows"] == pytest.approx(100 / 8 * more["work on rows"])
    assert less["rounds of the scheduler"] == pytest.approx(3 * (0.03 + 0.002 * 100))
    assert parts["the process of the fit"] == 0.01
    way = costs["iteration"].on_cluster(few[0], 8)["coefficients' way"]
    assert dask_cost.by_shared_grids(few[0]) > way


def test_columns_grow_by_a_power_of_the_rows():
    assert dask_cost.growth(ROUND, replace(ROUND, n_rows=10**8, n_columns=500_000)) == pytest.approx(0.5)
    assert dask_cost.growth(ROUND, replace(ROUND, n_rows=10**8)) == 0
