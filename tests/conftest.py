import os
import sys
import warnings
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

# Fixtures import modules themselves; otherwise the process that distributes tests would import for seconds.

# Otherwise each process started by a test compiles all modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
_WITHOUT_JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"

_UNHURRIED = {
    "deadline": None,  # the first example compiles
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
}
if "BINFEAT_EXAMPLES" in os.environ:
    settings.register_profile("binfeat", max_examples=int(os.environ["BINFEAT_EXAMPLES"]), **_UNHURRIED)
else:
    settings.register_profile("binfeat", max_examples=10, derandomize=True, database=None, **_UNHURRIED)
settings.load_profile("binfeat")


# Modules of `-m quick`: the engine, the features and the linear models, without tests of two seconds and more.
_QUICK = {
    *("test_engine", "test_evaluate"),
    *("test_bin_matrix", "test_binning", "test_fineness", "test_fourier", "test_frequencies", "test_hashed_transform"),
    *("test_kernels", "test_union"),
    *("test_gram", "test_lone_bins", "test_partial_fit", "test_ridge", "test_rows", "test_solver"),
}

_NOT_QUICK = {
    "test_computed_features_take_the_memory_of_one_matrix",
    "test_defaults_work_on_digits",
    "test_few_columns_warn",
    "test_hoeffding_and_rate",
    "test_kernel_estimates_have_the_wanted_error",
    "test_unbiased",
}


_LONG_WITHOUT_JIT = {  # other tests run the same lines of kernels
    "test_a_pickle_is_hardly_larger_than_the_codes",
    "test_copies_of_features_of_a_source",
    "test_inputs_of_several_blocks",
    "test_number_of_threads_follows_the_limit_of_the_process",
    "test_real_signals_leave_the_threads_to_others",
    "test_scipy_solvers",
    "test_threads_wait_for_work_as_the_user_says_or_shortly",
    "test_type_of_codes",
}


# For each worker: the part with threaded kernels that it compiles, for the types in tests of threads, and parts with
# serial kernels that it compiles. Other threaded kernels would take half of all compilation, and few tests use them.
_HALVES = {"gw0": ("linear", ["linear"]), "gw1": ("features", ["features", "models"])}


def pytest_collection_modifyitems(config, items):
    for item in items:
        is_slow = item.get_closest_marker("hard") or getattr(item, "originalname", None) in _NOT_QUICK
        if item.path.stem in _QUICK and not is_slow:
            item.add_marker("quick")
    kept, left_out = [], []  # deselected: a thousand skips would take seconds of each worker
    for item in items:
        (left_out if _is_left_out(item) else kept).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def _is_in_part(name, wanted):
    """Return True if a hard test is in part K of N, K from 1. "1" means all parts, and K = 0 none."""
    part, _, number = wanted.partition("/")
    return crc32(name.encode()) % int(number or 1) == int(part) - 1


def _is_left_out(item):
    if item.get_closest_marker("hard") and not _is_in_part(item.nodeid, os.environ.get("BINFEAT_HARD", "0/1")):
        return True
    return _WITHOUT_JIT and getattr(item, "originalname", None) in _LONG_WITHOUT_JIT


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(autouse=True)
def seed_of_the_global_generator():
    """Tests without a random_state draw the same features in each run."""
    np.random.seed(0)  # noqa: NPY002  scikit-learn uses this generator


@pytest.fixture(autouse=True, scope="session")
def own_share_of_cores():
    """Limit the threads of each test process, because waiting threads would use the cores of other processes."""
    import numba
    import scipy.linalg  # noqa: F401  so that its BLAS is limited, too

    share = max(1, numba.get_num_threads() // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1)))
    numba.set_num_threads(share)
    with threadpool_limits(share, "blas"):
        yield


@pytest.fixture(autouse=True, scope="session")
def kernels_by_halves(request, own_share_of_cores):
    """Compile different kernels in each of two workers of a complete run, instead of all kernels twice."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker not in _HALVES or len(request.session.items) <= 3000 or _WITHOUT_JIT:
        return
    from limits import COMMON_TYPES

    import binfeat

    threaded, parts = _HALVES[worker]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in COMMON_TYPES.items():
            patch.setattr(f"binfeat._warm_up.{name}", value)
        binfeat.warm_up(threaded)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("binfeat._warm_up.every_version", nullcontext)
        binfeat.warm_up(*parts)


@pytest.fixture
def threads(monkeypatch):
    """Set Numba's threads for any amount of work in a test; all threads, and two of BLAS, are allowed until its end."""
    import numba

    monkeypatch.setattr("binfeat._threads._WORTH_THREADS", 0)
    before = numba.get_num_threads()
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    with threadpool_limits(2, "blas"):
        yield numba.set_num_threads
    numba.set_num_threads(before)


@pytest.fixture(scope="session")
def data_folder():
    """Return the folder of the paper's data sets, or skip the test."""
    folder = os.environ.get("BINFEAT_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("BINFEAT_DATA names no folder with the paper's data sets")
    return Path(folder)


@pytest.fixture(autouse=True)
def wrapping_integers():
    """Ignore overflows without JIT, because NumPy then warns of the engine's modular arithmetic."""
    if not _WITHOUT_JIT:
        yield
        return
    with np.errstate(over="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "overflow encountered")  # in other threads, which have their own error state
        yield


@pytest.fixture(scope="module")
def cluster():
    """Dask cluster with two worker processes."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with pytest.importorskip("distributed").Client(cluster) as client:
        yield client


@pytest.fixture
def own_scheduler():
    """Reset Dask's scheduler, which is still the client after its death."""
    yield
    pytest.importorskip("dask").config.set(scheduler=None)


@pytest.fixture
def limits(monkeypatch):
    """Limit the search of kernel models in a test, for example by `limits(n_steps=5)`."""
    from limits import set_limits

    return partial(set_limits, monkeypatch)


@pytest.fixture
def memory_of(monkeypatch):
    """Set the memory of the computer in bytes; None means unknown."""
    return lambda n_bytes: monkeypatch.setattr("binfeat._common.memory.memory_limit", lambda: n_bytes)


@pytest.fixture
def sampled_rows(monkeypatch):
    """Set the number of rows of a source on which kernel models decide, and which they store."""
    return partial(monkeypatch.setattr, "binfeat._rows.sampled._MOST_ROWS")


@pytest.fixture
def rows_of_a_pass(monkeypatch):
    """Set the number of rows of a source that are processed at a time, for any blocks."""
    return lambda n_rows: monkeypatch.setattr("binfeat._rows.sources._PASS_ROWS", (n_rows, n_rows))


@pytest.fixture
def bytes_computed_at_a_time(monkeypatch):
    """Set the bytes of blocks of features that are not stored."""
    return partial(monkeypatch.setattr, "binfeat._rows.lazy._BLOCK_BYTES")


@pytest.fixture
def hashed_at_a_time(monkeypatch):
    """Set the numbers of rows and grids that are hashed before their bins are looked up."""

    def set_sizes(n_rows, n_grids):
        for name, size in (("_MOST_ROWS", n_rows), ("_HASH_BYTES", 8 * n_rows * n_grids)):
            monkeypatch.setattr(f"binfeat.features.binning.grids.{name}", size)

    return set_sizes


@pytest.fixture
def rows_met_in_a_bin(monkeypatch):
    """Set the number of rows of each bin that a row is compared with in the search for neighbors."""
    return partial(monkeypatch.setattr, "binfeat.graph.neighbors._MOST_OF_A_BIN")


@pytest.fixture
def bytes_of_a_prediction(monkeypatch):
    """Set the bytes of the blocks in which kernel models predict."""
    return partial(monkeypatch.setattr, "binfeat.models.fitted.features._BLOCK_BYTES")


@pytest.fixture
def clock_of_fits(monkeypatch):
    """Set the clock for time limits, a function."""
    return partial(monkeypatch.setattr, "binfeat.models.run._clock")


@pytest.fixture
def scratch_folder(monkeypatch, tmp_path):
    """Return the empty folder for scratch files."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def without_package(monkeypatch):
    """Make imports of a module fail, as if its package were not installed."""
    return lambda name: monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture
def few_grids(limits):
    """Limit the search of kernel models to a tenth of a second."""
    limits(n_steps=20, sample_grids=(5, 40), n_fourier=128)


@pytest.fixture
def few_steps(limits):
    """Shorten searches for length scales of kernel models."""
    limits(n_steps=10, sample_grids=(10, 40), n_fourier=128)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=400)
    return X, y, np.where(y > 0.3, "yes", "no")


@pytest.fixture(scope="module")
def three():
    """Return rows of three overlapping classes."""
    rng = np.random.default_rng(1)
    labels = rng.integers(3, size=900)
    X = rng.normal(size=(900, 2)) + np.array([[0, 0], [1.5, 0], [0, 1.5]])[labels]
    return X, np.array(["red", "green", "blue"])[labels]
