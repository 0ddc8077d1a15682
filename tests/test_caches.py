"""Numba's caches: none to write, two processes at once, sources edited. It works, at worst slower."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import binfeat

ENGINE = """
import numpy as np
from binfeat._engine import hadamard
x = np.arange(8.0)
hadamard.hadamard_row(x)
print(*x)
"""


def package_in(folder):
    """A copy of the package without caches."""
    source = Path(binfeat.__file__).parent
    shutil.copytree(source, folder / "binfeat", ignore=shutil.ignore_patterns("__pycache__"))
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


def test_two_processes_compile_at_once(tmp_path):
    folder, cache = package_in(tmp_path), tmp_path / "cache"
    both = [start(folder, ENGINE, NUMBA_CACHE_DIR=str(cache)) for _ in range(2)]
    assert len({printed(own) for own in both}) == 1
    assert kept_in(cache)


def test_neither_a_writable_package_nor_a_home(tmp_path):
    """Root may write anywhere: a file stands where the folder of the cache would be."""
    folder = package_in(tmp_path)
    expected = printed(start(folder, ENGINE, NUMBA_CACHE_DIR=str(tmp_path / "cache")))
    (folder / "binfeat" / "_engine" / "__pycache__").write_text("in the way")
    nowhere = str(tmp_path / "missing" / "file")
    (tmp_path / "missing").write_text("in the way too")
    own = start(folder, ENGINE, HOME=nowhere, XDG_CACHE_HOME=nowhere, PYTHONDONTWRITEBYTECODE="1")
    assert printed(own) == expected
    assert not kept_in(folder / "binfeat")


WAVES = """
import numpy as np
import binfeat
fourier = binfeat.RandomFourier(n_components=8, gamma=1.0, sampler="fastfood", random_state=0)
print(*fourier.fit_transform(np.ones((1, 8)))[0])
"""


def test_an_edited_kernel_is_compiled_again_and_what_calls_it(tmp_path):
    """Even with the times of the old file, and from another file."""
    folder, cache = package_in(tmp_path), str(tmp_path / "cache")
    before = [printed(start(folder, code, NUMBA_CACHE_DIR=cache)) for code in (ENGINE, WAVES)]
    source = folder / "binfeat" / "_engine" / "hadamard.py"
    text, times = source.read_text(), source.stat()
    edited = text.replace("return a + c, b + d, a - c, b - d", "return a - c, b + d, a + c, b - d")
    assert edited != text
    source.write_text(edited)
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    after = [printed(start(folder, code, NUMBA_CACHE_DIR=cache)) for code in (ENGINE, WAVES)]
    assert all(a != b for a, b in zip(after, before, strict=True))
    source.write_text(text)
    assert [printed(start(folder, code, NUMBA_CACHE_DIR=cache)) for code in (ENGINE, WAVES)] == before
