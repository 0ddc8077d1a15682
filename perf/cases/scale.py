"""Rows beyond memory: KernelMachineRegressor from Parquet files, and bytes of codes in memory."""

import multiprocessing
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from binfeat import CGRidge, KernelMachineRegressor, RandomBinning, blocks
from perf.measure import peak_memory
from perf.record import Row

N_INPUTS, N_GRIDS, MAX_BYTES = 20, 64, 2 * 10**9
SIZES = (100_000, 1_000_000, 10_000_000)
QUICK_SIZES, QUICK = (4_000, 10_000, 20_000), {"features": "binning", "gamma": 0.1}
FILE_ROWS = 500_000
MEMORY_ROWS, QUICK_MEMORY_ROWS = 4_000_000, 50_000  # with fewer rows, hashes and vectors of bins matter
NARROW, WIDE = 0.05, 0.4  # gammas with fewer and with more than 65,535 bins per grid
TEST_ROWS = 100_000
_POLL = 0.02  # seconds between two measurements of the memory


def rows_of(seed, n_rows):
    """Draw inputs and a smooth target with steps, of six inputs, with noise of a tenth of its standard deviation."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, N_INPUTS))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + (X[:, 3] > 0.2) * X[:, 4] + np.cos(2 * X[:, 5])
    return X, y + 0.1 * y.std() * rng.normal(size=n_rows)


def write_files(folder, n_rows):
    """Write Parquet files with columns x0, x1, ... and y to a new folder."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    own = Path(folder) / str(n_rows)
    own.mkdir()
    for number, start in enumerate(range(0, n_rows, FILE_ROWS)):
        X, y = rows_of(number, min(FILE_ROWS, n_rows - start))
        table = pa.table({**{f"x{j}": values for j, values in enumerate(X.T)}, "y": y})
        pq.write_table(table, own / f"{number:04}.parquet", row_group_size=2**17)
    return own


class AnonymousMemory(threading.Thread):
    """Measure the peak of this process's anonymous memory; None if the system does not report it."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peak, self._done = _anonymous(), threading.Event()

    def run(self):
        while self.peak is not None and not self._done.wait(_POLL):
            self.peak = max(self.peak, _anonymous())

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self._done.set()
        self.join()


def _anonymous():
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon:")), None)


def _fit(folder, options):
    """Fit to a folder of files; return seconds, peak of anonymous bytes, kind of model, and error on new rows."""
    import pyarrow.dataset as ds

    model = KernelMachineRegressor(solver_params={"max_grids": N_GRIDS}, max_bytes=MAX_BYTES, random_state=0, **options)
    with AnonymousMemory() as memory:
        start = time.perf_counter()
        model.fit(blocks(ds.dataset(folder), target="y"))
        seconds = time.perf_counter() - start
    X, y = rows_of(10**6, TEST_ROWS)
    error = 1 - model.score(_named(X), y)
    print(f"{folder.name} rows\n{model.summary()}", flush=True)
    return seconds, memory.peak, model.features_, error


def _named(X):
    import pyarrow as pa

    return pa.table({f"x{j}": values for j, values in enumerate(X.T)})


def in_new_process(function, *arguments):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(function, *arguments).result()


def run(quick):
    sizes = QUICK_SIZES if quick else SIZES
    with tempfile.TemporaryDirectory() as folder:
        folders = [write_files(folder, n_rows) for n_rows in sizes]
        if not quick:
            in_new_process(_fit, folders[0], {})  # compiles; otherwise ratios to this fit would be too low
        fits = [in_new_process(_fit, own, QUICK if quick else {}) for own in folders]
    rows = [
        Row(f"fit, {n_rows:,} rows, {features}, error {error:.4f}", seconds)
        for n_rows, (seconds, _, features, error) in zip(sizes, fits, strict=True)
    ]
    many, memory, *_ = fits[-1]
    for n_rows, (few, *_), reach in zip(sizes[:-1], fits[:-1], (("<=", 1.3), None), strict=True):
        linear = few * sizes[-1] / n_rows
        rows.append(Row(f"fit, {sizes[-1]:,} rows / in proportion to {n_rows:,}", many, linear, reach))
    rows.append(Row(f"fit, {sizes[-1]:,} rows, anonymous memory", memory and memory / 1e9, None, ("<=", 2.5), "GB"))
    n_rows = QUICK_MEMORY_ROWS if quick else MEMORY_ROWS
    for gamma, most in ((NARROW, 3), (WIDE, 5))[: 1 if quick else 2]:
        rows.append(_bytes_in_memory(n_rows, gamma, most))
    return rows


def _bytes_in_memory(n_rows, gamma, most):
    kind = in_new_process(_kind_of_codes, n_rows, gamma)
    peak = peak_memory(_prepare_in_memory, n_rows, gamma)
    what = f"binning and ridge in memory, {n_rows:,} rows, {kind} codes: bytes a row and grid"
    return Row(what, peak and peak / (n_rows * N_GRIDS), None, ("<=", most), "B")


def _binning(gamma):
    return RandomBinning(gamma=gamma, n_grids=N_GRIDS, output="codes", random_state=0)


def _kind_of_codes(n_rows, gamma):
    return _binning(gamma).fit_transform(rows_of(0, n_rows)[0]).codes.dtype.name


def _prepare_in_memory(n_rows, gamma):
    X, y = rows_of(0, n_rows)
    _train(X[:2000], y[:2000], NARROW)
    return partial(_train, X, y, gamma)


def _train(X, y, gamma):
    return CGRidge(max_iter=5, tol=0).fit(_binning(gamma).fit_transform(X), y)
