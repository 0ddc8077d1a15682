"""The model of what rounds on Dask cost."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("distributed")
dask_cost = pytest.importorskip("perf.dask_cost")

EACH = np.array([0.03, 0.002, 2e-9, 1e-9])
ROUND = dask_cost.Round(10**6, 64, 50_000, 2, 4)


def measured(**changes):
    own = replace(ROUND, **changes)
    return replace(own, seconds=float(own.terms() @ EACH))


def test_the_model_finds_what_rounds_are_made_of():
    changes = [{}, {"n_rows": 10**5}, {"n_chunks": 32}, {"n_columns": 10**6}, {"n_rows": 10**7}, {"n_workers": 1}]
    rounds = [measured(**own) for own in changes]
    cost = dask_cost.Cost.fit(rounds)
    np.testing.assert_allclose(cost.each, EACH, rtol=1e-6)
    other = measured(n_rows=3 * 10**6, n_grids=20, n_columns=10**5)
    assert cost.seconds(other) == pytest.approx(other.seconds)


def test_coefficients_that_an_iteration_carries():
    assert ROUND.sent == 7  # two ways to the scheduler and back, to two workers, half of four sums between them
    assert replace(ROUND, n_workers=1).sent == 4


def test_clusters():
    cost = dask_cost.Cost(EACH)
    fits = [ROUND, ROUND], [replace(ROUND, n_grids=32)]
    few, many = (tuple(dask_cost.scaled(own, 10**9, 0.5, n) for own in fits) for n in (8, 100))
    assert few[0][0].n_columns == int(50_000 * np.sqrt(1000))
    assert many[0][0].n_workers == many[0][0].n_chunks == 800
    parts, more = (dask_cost.of_cluster((cost, cost), own, local=0.01) for own in (few, many))
    assert max(parts, key=parts.get) == "products"
    assert max(more, key=more.get) == "rounds of the scheduler"
    assert parts["products"] == pytest.approx(100 / 8 * more["products"])
    assert parts["the process of the fit"] == 0.01
    assert cost.by_shared_grids(few[0][0]) > cost.on_cluster(few[0][0])["coefficients' way"]


def test_columns_grow_by_a_power_of_the_rows():
    assert dask_cost.growth(ROUND, replace(ROUND, n_rows=10**8, n_columns=500_000)) == pytest.approx(0.5)
    assert dask_cost.growth(ROUND, replace(ROUND, n_rows=10**8)) == 0
