"""Linear functions of binning features, compared with a slow twin."""

import naive
import numpy as np
import pytest

from binfeat._engine.evaluate import evaluate
from binfeat.features.binning import grids, tables
from binfeat.kernels import Laplacian

pytestmark = pytest.mark.engine

GAMMA = np.array([0.6, 0.0, 0.4, 0.5])
N_GRIDS, SEED, CATEGORICAL = 7, 3, {3}


def table(rng, n_rows):
    X = rng.normal(scale=2, size=(n_rows, 4))
    X[:, 3] = rng.integers(3, size=n_rows)
    X[::4, 0] = np.nan
    X[1::5, 2] = 0.0
    return X


@pytest.fixture
def learned(rng):
    """Return tables of the bins of some rows, their weights, and the same weights by grid and cells."""
    X = table(rng, 25)
    drawn = grids.Grids.draw(Laplacian(), GAMMA, N_GRIDS, SEED, np.isin(np.arange(4), list(CATEGORICAL)))
    codes = np.empty((N_GRIDS, len(X)), np.uint32)
    bins = tables.count_bins(drawn, [X], len(X), codes=codes)
    weights = rng.normal(size=(2, bins.keys.size))
    known = {}
    for p, rows in enumerate(naive.cells(X, "laplacian", GAMMA, N_GRIDS, SEED, CATEGORICAL)):
        for cells, code in zip(rows, codes[p], strict=True):
            known[p, cells] = weights[:, bins.starts[p] + code]
    return (*drawn.arrays, *tables.BinTables(bins.keys, bins.starts).arrays, weights), known


def value(known, row):
    """Return the sum over grids of the weights of the row's bins; unknown bins have weight 0."""
    total = np.zeros(2)
    for p, (cells,) in enumerate(naive.cells([row], "laplacian", GAMMA, N_GRIDS, SEED, CATEGORICAL)):
        total += known.get((p, cells), 0.0)
    return total


def test_evaluate(rng, learned):
    arguments, known = learned
    X = table(rng, 12)  # most of its rows are alone in their bins
    expected = np.array([value(known, row) for row in X])
    assert np.count_nonzero(expected[:, 0]) > 3
    out = np.full((12, 2), np.nan)
    evaluate(X, *arguments, out)
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-13)


def test_evaluate_a_row_that_shares_no_bin(learned):
    arguments, known = learned
    X = np.full((1, 4), 1e6)
    assert not value(known, X[0]).any()
    out = np.full((1, 2), np.nan)
    evaluate(X, *arguments, out)
    np.testing.assert_array_equal(out, 0.0)
