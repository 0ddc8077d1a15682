"""Sizes near the limits of 16, 31 and 32 bits, and memory estimates compared with actual memory."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hard import easy

import binfeat
from binfeat.features.binning.code_store import CodeStore


def test_more_bins_than_two_bytes_in_a_later_batch():
    few, many = np.zeros((10, 1)), np.arange(70_000.0)[:, None]
    binning = binfeat.RandomBinning(kernel="hat", gamma=1.0, n_grids=2, random_state=0, output="codes")
    with pytest.warns(UserWarning, match="too fine"):
        binning.partial_fit(few).partial_fit(many)
    assert binning.transform(few).codes.dtype == np.uint32
    codes = binning.transform(many).codes
    assert [np.unique(own).size for own in codes] == list(np.diff(binning.bin_offsets_))


@pytest.mark.parametrize("n_features", [2**31 - 1, 2**31, 2**31 + 1, 2**33 + 5])
def test_columns_near_the_end_of_int32(n_features):
    X = np.random.default_rng(0).normal(size=(1000, 2))
    Z = binfeat.transform(X, gamma=1.0, n_grids=4, n_features=n_features)
    wide = n_features > 2**31 - 1
    assert Z.indices.dtype == (np.int64 if wide else np.int32)
    assert Z.shape[1] == n_features
    starts = np.arange(4) * (n_features // 4)
    own = Z.indices.reshape(-1, 4) - starts
    assert own.min() >= 0
    assert own.max() < n_features // 4
    assert own.max() > n_features // 4 * 0.99


@pytest.mark.parametrize("n_features", [2**33, 2**33 - 1])  # the last grid has one more column than the first
def test_hashed_columns_beyond_32_bits_of_a_grid_are_refused(n_features):
    assert binfeat.transform([[1.0]], gamma=1.0, n_grids=2, n_features=2**33 - 2).nnz == 2
    with pytest.raises(ValueError, match=r"n_features must be below 2\^32 per grid"):
        binfeat.transform([[1.0]], gamma=1.0, n_grids=2, n_features=n_features)


@pytest.mark.parametrize("n_bins", [65_534, 65_535, 65_536])
def test_codes_at_the_end_of_two_bytes(n_bins):
    X = np.arange(n_bins, dtype=np.float32 if n_bins > 65_535 else np.float64)[:, None]
    binning = binfeat.RandomBinning(kernel="hat", gamma=1.0, n_grids=1, random_state=0, output="codes")
    with pytest.warns(UserWarning, match="too fine"):
        Z = binning.fit_transform(X)
    assert Z.codes.dtype == (np.uint16 if n_bins <= 65_535 else np.uint32)
    np.testing.assert_array_equal(binning.transform(X).codes, Z.codes)
    np.testing.assert_array_equal(Z.tocsr().indices, Z.codes[0])
    np.testing.assert_array_equal(Z @ np.arange(n_bins, dtype=X.dtype), Z.codes[0])


LARGE = int(os.environ.get("BINFEAT_LARGE", "0"))


@pytest.mark.skipif(not LARGE, reason="takes 14 GB and a minute; BINFEAT_LARGE=1 runs it")
def test_more_than_2_to_the_31_rows_times_grids():
    n_rows, n_grids = 2**25 + 3, 64
    X = np.random.default_rng(0).uniform(size=(n_rows, 1)).astype(np.float32)
    binning = binfeat.RandomBinning(gamma=5.0, n_grids=n_grids, random_state=0, output="codes")
    Z = binning.fit_transform(X)
    ends = np.r_[:1000, n_rows - 1000 : n_rows]
    expected = binning.transform(X[ends]).codes
    np.testing.assert_array_equal(Z.codes[:, ends], expected)
    values = Z @ np.ones(Z.shape[1])
    assert values.min() == values.max() == pytest.approx(np.sqrt(n_grids))
    back = Z.T @ np.ones(n_rows)
    np.testing.assert_allclose(back, binning.bin_counts_ / np.sqrt(n_grids))
    with pytest.raises(MemoryError, match="CSR matrix needs about"):
        Z.tocsr()


MEASURED = """
import gc, sys
import numpy as np
import binfeat
from binfeat._common import memory

def status(name):
    return int(next(l for l in open("/proc/self/status") if l.startswith(name + ":")).split()[1]) * 1024

X = np.random.default_rng(0).normal(size={shape})
fitted = {made}.fit(X[:1000])

def call(X):
    return {call}

call(X[:100])
memory.memory_limit = lambda: 2**50
require, needed = memory.require_memory, []
for module in list(sys.modules.values()):
    if getattr(module, "require_memory", None) is require:
        module.require_memory = lambda n_bytes, *words: needed.append(n_bytes)
gc.collect()
before = status("VmRSS")
open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew
Z = call(X)
print(max(needed), status("VmHWM") - before)
"""
TALL, WIDE = (400_000, 8), (1000, 512)
BINNING = "binfeat.RandomBinning(gamma=0.1, n_grids=64, random_state=0{})"
WAVES = "binfeat.RandomFourier(n_components={}, gamma=1.0, random_state=0)"
FASTFOOD = "binfeat.RandomFourier(n_components=2**22, gamma=1.0, sampler='fastfood')"
MEMORY = {
    "csr": (TALL, BINNING.format(""), "fitted.transform(X)"),
    "csr, fit": (TALL, BINNING.format(""), "fitted.fit_transform(X.astype(np.float32))"),
    "codes": (TALL, BINNING.format(", n_features=2**20, output='codes'"), "fitted.transform(X)"),
    "codes, fit": (TALL, BINNING.format(", output='codes'"), "fitted.fit_transform(X)"),
    "waves": (TALL, WAVES.format(256), "fitted.transform(X)"),
    "frequencies": (TALL, WAVES.format(2**20), WAVES.format(2**20) + ".fit(X)"),
    "fastfood": (WIDE, FASTFOOD, FASTFOOD + ".fit(X)"),
}


AT_ONCE = ("codes, fit",)


@pytest.mark.parametrize("name", easy(MEMORY, *AT_ONCE))
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_estimates_are_within_a_fifth_of_the_peak(name):
    shape, made, call = MEMORY[name]
    code = MEASURED.format(shape=shape, made=made, call=call)
    returned = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "100000"}  # return freed memory to the system
    options = {"capture_output": True, "text": True, "check": False, "timeout": 300}
    run = subprocess.run([sys.executable, "-c", code], env=returned, **options)
    assert run.returncode == 0, run.stderr
    needed, peak = map(int, run.stdout.split())
    assert 0.8 * peak <= needed <= 1.2 * peak, (needed, peak)


def test_nothing_is_allocated_before_a_refusal(monkeypatch, memory_of):
    memory_of(10**6)

    def none(shape, *arguments, **options):
        assert np.prod(shape) < 100, "allocated"
        return np.full(shape, 0, *arguments, **options)

    X = np.zeros((10_000, 2))
    monkeypatch.setattr(np, "empty", none)
    monkeypatch.setattr(np, "zeros", none)
    for call in (
        lambda: binfeat.transform(X, n_grids=64),
        lambda: binfeat.RandomBinning(gamma=1.0).fit_transform(X),
        lambda: binfeat.RandomBinning(gamma=1.0, n_grids=10**5).fit(X),
        lambda: binfeat.RandomFourier(n_components=10**6, gamma=1.0).fit(X),
    ):
        with pytest.raises(MemoryError, match=r"needs about [\d,]+ bytes and this computer has 1,000,000"):
            call()


def test_a_fit_takes_rows_whose_features_do_not_fit_in_memory(memory_of):
    X = np.random.default_rng(0).normal(size=(10_000, 2))
    memory_of(10**6)
    binning = binfeat.RandomBinning(gamma=0.1, n_grids=64, random_state=0).fit(X)
    with pytest.raises(MemoryError, match="binning 10000 rows in 64 grids needs about"):
        binning.transform(X)
    assert binning.transform(X[:500]).shape[0] == 500


def test_stores_of_more_than_2_to_the_32_codes(scratch_folder, monkeypatch):
    """The file is sparse, and only a page at each end is written."""
    monkeypatch.setattr("binfeat.features.binning.code_store._allocate", lambda file, n_bytes: file.truncate(n_bytes))
    n_rows, n_grids = 2**26 + 1, 65
    store = CodeStore(n_rows, n_grids, max_bytes=0)
    store.array[0, 0], store.array[-1, -1] = 7, 9
    assert store.array.size > 2**32
    assert store.array.shape == (n_grids, n_rows)
    assert (store.array[0, 0], store.array[-1, -1], store.array[-1, 0]) == (7, 9, 0)
