"""Numba's caches: none to write, two processes at once, sources edited. It works, at worst slower."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import binfeat

KERNEL = """
from binfeat._engine import evaluate, hashing
print(hashing.add_term(2.5, 1.0, 0.25, 7, 9))
"""


def package_in(folder):
    """A copy of the engine without caches, in a package of nothing else, which is imported at once."""
    source = Path(binfeat.__file__).parent
    shutil.copytree(source / "_engine", folder / "binfeat" / "_engine", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "binfeat" / "__init__.py").touch()
    return folder


def start(folder, code, **environment):
    inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    kept = {**inherited, "PYTHONPATH": str(folder), **environment}
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=kept, cwd=folder
    )


def printed(process):
    out, error = process.communicate(timeout=300)
    assert process.returncode == 0, error
    return out.strip()


def kept_in(folder):
    return list(folder.rglob("*.nbc"))


@pytest.mark.hard
def test_two_processes_compile_at_once(tmp_path):
    folder, cache = package_in(tmp_path), tmp_path / "cache"
    both = [start(folder, KERNEL, NUMBA_CACHE_DIR=str(cache)) for _ in range(2)]
    assert len({printed(own) for own in both}) == 1
    assert kept_in(cache)


def test_neither_a_writable_package_nor_a_home(tmp_path):
    """Root may write anywhere: a file stands where the folder of the cache would be."""
    folder = package_in(tmp_path)
    expected = printed(start(folder, KERNEL, NUMBA_CACHE_DIR=str(tmp_path / "cache"), PYTHONDONTWRITEBYTECODE="1"))
    (folder / "binfeat" / "_engine" / "__pycache__").write_text("in the way")
    nowhere = str(tmp_path / "missing" / "file")
    (tmp_path / "missing").write_text("in the way too")
    own = start(folder, KERNEL, HOME=nowhere, XDG_CACHE_HOME=nowhere, PYTHONDONTWRITEBYTECODE="1")
    assert printed(own) == expected
    assert not kept_in(folder / "binfeat")


CALLER = """
import numpy as np
two, keys = np.full(2, 2.5), np.full(2, 7, np.uint64)
print(evaluate.sum_terms(two, two, two, keys, keys))
"""


def test_an_edited_kernel_is_compiled_again_and_what_calls_it(tmp_path):
    """Even with the times of the old file, and from another file."""
    folder = package_in(tmp_path)

    def hashes():
        return printed(start(folder, KERNEL + CALLER, NUMBA_CACHE_DIR=str(tmp_path / "cache"))).split()

    before = hashes()
    source = folder / "binfeat" / "_engine" / "hashing.py"
    text, times = source.read_text(), source.stat()
    edited = text.replace("return np.uint64(np.int64(cell)) * key", "return np.uint64(np.int64(cell)) * key + key")
    assert edited != text
    source.write_text(edited)
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert all(a != b for a, b in zip(hashes(), before, strict=True))
    source.write_text(text)
    assert hashes() == before


WRITER = """
import numpy as np
from binfeat._engine.trig import WRITERS
write_pairs, _ = WRITERS[np.dtype(np.float32)]
write_pairs(np.ones((1, 2), np.float32), np.float32(1), np.empty((1, 4), np.float32))
print(sum(write_pairs.stats.cache_hits.values()))
"""


def test_a_closure_is_found_again_and_is_compiled_for_one_type(tmp_path):
    folder, cache = package_in(tmp_path), tmp_path / "cache"
    assert [printed(start(folder, WRITER, NUMBA_CACHE_DIR=str(cache))) for _ in range(2)] == ["0", "1"]
    assert len(kept_in(cache)) == 1
