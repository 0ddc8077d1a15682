"""Rows in blocks: bins united, sources, and the same answers as in memory."""

from itertools import pairwise

import numpy as np
import pytest

from binfeat import RandomBinning
from binfeat._bins import Bins, codes_among, count_bins, unite_bins
from binfeat._engine.columns import recode

N_GRIDS = 7


def table(rng, n_rows=3000):
    X = rng.normal(size=(n_rows, 3)).round(1)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0) + 0.1 * rng.normal(size=n_rows)


def cuts(rng, n_rows, n_blocks):
    return np.concatenate([[0], np.sort(rng.integers(0, n_rows + 1, n_blocks - 1)), [n_rows]])


def pieces(rng, n_blocks, *arrays):
    """The arrays cut at the same random rows; some pieces may be empty."""
    edges = cuts(rng, len(arrays[0]), n_blocks)
    return [tuple(own[i:j] for own in arrays) for i, j in pairwise(edges)]


def known_bins(binning):
    return Bins(binning._bin_keys, binning.bin_counts_, binning.bin_offsets_)


def assert_same_bins(got, expected):
    for name in ("keys", "counts", "starts"):
        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name))
        assert getattr(got, name).dtype == getattr(expected, name).dtype


@pytest.mark.parametrize("n_blocks", [1, 2, 5, 40])
def test_united_bins_are_those_of_all_rows(rng, n_blocks):
    X, _ = table(rng)
    binning = RandomBinning(gamma=1.5, n_grids=N_GRIDS, random_state=0).fit(X)
    parts, codes = [], []
    for (rows,) in pieces(rng, n_blocks, X):
        if not len(rows):
            parts.append(Bins.none(N_GRIDS))
            continue
        codes.append(np.empty((N_GRIDS, len(rows)), np.uint32))
        parts.append(count_bins(binning._grids, rows, Bins.none(N_GRIDS), codes[-1]))
    united = unite_bins(parts)
    assert_same_bins(united, known_bins(binning))
    backwards = unite_bins([unite_bins(parts[::2][::-1]), *parts[1::2]])
    assert_same_bins(backwards, united)
    parts = [part for part in parts if part.keys.size]
    for part, own in zip(parts, codes, strict=True):
        recode(own, codes_among(part, united), part.starts, own)
    np.testing.assert_array_equal(np.hstack(codes), binning.encode(X).codes)


def test_codes_among_bins_that_lack_some():
    part = Bins(np.array([7, 3, 9, 5], np.uint64), np.ones(4, np.int64), np.array([0, 3, 4]))
    united = Bins(np.array([9, 7], np.uint64), np.ones(2, np.int64), np.array([0, 2, 2]))
    np.testing.assert_array_equal(codes_among(part, united), np.array([1, -1, 0, -1], np.int64).astype(np.uint32))
