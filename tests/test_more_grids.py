"""`RandomBinning(warm_start=True)`: grids are added to a fitted map."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from binfeat import RandomBinning, blocks, distributed
from binfeat.features.binning import more_grids

BINS = "_bin_keys", "bin_counts_", "bin_offsets_", "_rare_keys", "_rare_counts", "_rare_starts", "kappa_", "gamma_"


def table(rng, n_rows=300):
    X = rng.normal(size=(n_rows, 3))
    X[:, 2] = rng.integers(3, size=n_rows)
    return X


def grown(X, n_grids, then, **options):
    """Return a map with added grids."""
    binning = RandomBinning(n_grids=n_grids, warm_start=True, random_state=0, **options).fit(X)
    return binning.set_params(n_grids=then)


@pytest.mark.parametrize(
    "options",
    [{}, {"min_count": 3}, {"categorical_features": [2]}, {"gamma": [1.0, 0.0, 2.0], "kernel": "hat"}],
    ids=str,
)
@pytest.mark.parametrize("source", [False, True])
def test_the_same_map_as_a_fit_of_all_grids(rng, options, source):
    X = table(rng)
    given = blocks(X, X[:, 0], block_rows=70) if source else X
    whole = RandomBinning(n_grids=25, random_state=0, output="codes", **options)
    Z = whole.fit_transform(given)
    binning = grown(given, 10, 25, output="codes", **options)
    assert_array_equal(binning.fit_transform(given).codes, Z.codes)
    for name in BINS:
        assert_array_equal(getattr(binning, name), getattr(whole, name), err_msg=name)
    assert_array_equal(binning.transform(X).codes, Z.codes)
    if source:
        assert_array_equal(binning.fit_transform(given).y, X[:, 0])


def test_only_added_grids_are_counted(rng, monkeypatch):
    X, counted, real = table(rng), [], more_grids.count_bins

    def count(grids, *arguments, **options):
        counted.append(len(grids))
        return real(grids, *arguments, **options)

    monkeypatch.setattr(more_grids, "count_bins", count)
    binning = grown(X, 10, 25).fit(X)
    assert counted == [15]
    assert len(binning.fit(X).bin_offsets_) == 26  # no grid is added
    assert counted == [15]


def test_gamma_and_bins_stay_for_other_rows(rng):
    X = table(rng)
    first = RandomBinning(n_grids=10, random_state=0).fit(X)
    binning = grown(X, 10, 25).fit(5 * X[:100] + 1)
    assert_array_equal(binning.gamma_, first.gamma_)
    assert_array_equal(binning.bin_offsets_[:11], first.bin_offsets_)
    assert_array_equal(binning.transform(X)[:, : first.n_bins_].toarray() > 0, first.transform(X).toarray() > 0)


def test_learned_gamma_is_not_learned_again(rng, monkeypatch):
    X = table(rng)
    binning = grown(X, 10, 25)
    binning.set_params(gamma="learn").fit(X)  # no targets
    assert len(binning.bin_offsets_) == 26


def test_hashes_in_a_pipeline_of_calls_are_those_of_partial_fit(rng):
    X = table(rng)
    binning = RandomBinning(n_grids=10, gamma=0.5, warm_start=True, random_state=0).partial_fit(X[:200])
    binning.partial_fit(X[200:]).set_params(n_grids=12).fit(X)
    whole = RandomBinning(n_grids=12, gamma=0.5, random_state=0).fit(X)
    assert_array_equal(np.diff(binning.bin_offsets_), np.diff(whole.bin_offsets_))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_grids": 5}, "n_grids must be at least 10, the grids of the earlier fit"),
        ({"n_features": 100}, "warm_start=True keeps bins, which hashed columns do not have"),
        ({"random_state": 1}, "warm_start=True keeps the grids of the earlier fit"),
        ({"random_state": None}, "and random_state, an int, must be the same"),
        ({"kernel": "hat"}, "warm_start=True keeps the grids"),
        ({"categorical_features": [2]}, "warm_start=True keeps the grids"),
    ],
    ids=str,
)
def test_other_grids_are_refused_and_change_nothing(rng, changed, message):
    X = table(rng)
    binning = grown(X, 10, 25)
    before = {name: getattr(binning, name) for name in BINS}
    with pytest.raises(ValueError, match=message):
        binning.set_params(**changed).fit(X)
    for name, value in before.items():
        assert getattr(binning, name) is value


def test_other_widths_and_types_are_refused(rng):
    X = table(rng)
    with pytest.raises(ValueError, match="the number of inputs"):
        grown(X, 10, 25).fit(X[:, :2])
    with pytest.raises(TypeError, match="warm_start must be True or False"):
        RandomBinning(warm_start="yes").fit(X)


def test_dask_is_refused(rng):
    dask_array = pytest.importorskip("dask.array")
    binning = distributed.RandomBinning(n_grids=5, warm_start=True)
    with pytest.raises(TypeError, match="set it to False on Dask"):
        binning.fit(dask_array.from_array(table(rng), chunks=(100, 3)))
