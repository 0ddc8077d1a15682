import os
from pathlib import Path

import numba
import numpy as np
import pytest

from binfeat._engine import policy


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def threads(monkeypatch):
    """Set Numba's threads inside a test, where the smallest work is worth them; restored afterwards."""
    monkeypatch.setattr(policy, "_WORTH_THREADS", 0)
    before = numba.get_num_threads()
    yield numba.set_num_threads
    numba.set_num_threads(before)


@pytest.fixture(scope="session")
def data_folder():
    """The paper's data sets, where they are."""
    folder = os.environ.get("BINFEAT_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("BINFEAT_DATA names no folder with the paper's data sets")
    return Path(folder)


@pytest.fixture(autouse=True)
def wrapping_integers():
    """Without JIT the engine's modular arithmetic is NumPy's, which warns of every overflow."""
    if not numba.config.DISABLE_JIT:
        yield
        return
    with np.errstate(over="ignore"):
        yield
