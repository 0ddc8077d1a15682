"""Numba's caches: not writable, shared by two processes, edited sources. All work, possibly slower."""

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import binfeat
from binfeat._engine import caches, hashing

KERNEL = """
from binfeat._engine import evaluate, hashing
print(hashing.add_term(2.5, 1.0, 0.25, 7, 9))
"""


def package_in(folder):
    """Return a copy of the engine and its threads, without caches, in a package of its own."""
    source = Path(binfeat.__file__).parent
    shutil.copytree(source / "_engine", folder / "binfeat" / "_engine", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(source / "_threads.py", folder / "binfeat")
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


@pytest.mark.hard
def test_neither_a_writable_package_nor_a_home(tmp_path):
    """Root can write anywhere, so a file replaces the folder of the cache."""
    folder = package_in(tmp_path)
    expected = printed(start(folder, KERNEL, NUMBA_CACHE_DIR=str(tmp_path / "cache"), PYTHONDONTWRITEBYTECODE="1"))
    (folder / "binfeat" / "_engine" / "__pycache__").write_text("in the way")
    nowhere = str(tmp_path / "missing" / "file")
    (tmp_path / "missing").write_text("in the way too")
    own = start(folder, KERNEL, HOME=nowhere, XDG_CACHE_HOME=nowhere, PYTHONDONTWRITEBYTECODE="1")
    out, error = own.communicate(timeout=300)
    assert out.strip() == expected
    assert error.count("RuntimeWarning: binfeat's kernels are compiled anew in each process") == 1
    assert not kept_in(folder / "binfeat")


HITS = """
from numba.core import event
class Compiled(event.Listener):
    names = []
    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event):
        pass
event.register("numba:compile", Compiled())
from binfeat._engine import hashing
print(hashing.add_term(2.5, 1.0, 0.25, 7, 9))
print(len(Compiled.names))
"""


class Kept:
    """A cache of one compilation that records its calls."""

    cache_path = "here"

    def __init__(self, **known):
        self.known, self.calls = known, []

    def load_overload(self, signature, _):
        return self.known.get(signature)

    def save_overload(self, signature, compiled):
        self.known[signature] = compiled

    def __getattr__(self, name):
        return lambda: self.calls.append(name)


@pytest.mark.engine
def test_filled_folders_come_first_and_stay_as_they_are():
    filled, own = Kept(one=1), Kept(two=2)
    both = caches._FilledFirst(filled, own)
    both.save_overload("three", 3)
    assert [both.load_overload(name, None) for name in ("one", "two", "three", "four")] == [1, 2, 3, None]
    both.flush()
    assert (own.calls, filled.calls) == (["flush"], [])
    assert filled.known == {"one": 1}


@pytest.mark.engine
def test_which_folder_is_taken(tmp_path, monkeypatch):
    function = getattr(hashing.add_term, "py_func", hashing.add_term)
    monkeypatch.setattr(caches.config, "CACHE_DIR", str(tmp_path))
    own = caches.cache_of(function)
    assert own.cache_path.startswith(str(tmp_path))
    monkeypatch.setattr(caches.os, "access", lambda *_: False)
    assert isinstance(caches.cache_of(function), caches.FunctionCache)  # it is empty
    Path(own._cache_file._index_path).touch()
    assert isinstance(caches.cache_of(function), caches._FilledFirst)
    monkeypatch.setattr(caches, "FunctionCache", nowhere)
    assert isinstance(caches.cache_of(function)._own, caches.NullCache)
    Path(own._cache_file._index_path).unlink()
    monkeypatch.setattr(caches, "_warned", False)
    with warnings.catch_warnings(action="error"):
        assert caches.cache_of(function).load_overload("one", None) is None  # nothing is compiled yet
    with pytest.warns(RuntimeWarning, match="compiled anew .* Set NUMBA_CACHE_DIR to a folder, and fill it") as told:
        [caches.cache_of(function).save_overload("one", 1) for _ in range(2)]
    assert len(told) == 1


def nowhere(_):
    raise RuntimeError("no locator available")


@pytest.fixture
def read_only():
    """Return the first words of a command that makes a folder read-only for any user."""
    if os.name != "posix" or os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root can mount a folder again")
    words = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"']
    if subprocess.run([*words, "/tmp", "true"], capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    return words


@pytest.mark.hard
def test_a_filled_cache_that_may_only_be_read_is_used(tmp_path, read_only):
    """Missing kernels are cached in another folder, if there is one."""
    folder, cache, home = package_in(tmp_path), tmp_path / "cache", tmp_path / "home"
    environment = {"NUMBA_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}

    def hash_and_compilations(*before, code=HITS):
        own = subprocess.run(
            [*before, sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env={
                **os.environ,
                **environment,
                "PYTHONPATH": str(folder),
                "HOME": str(home),
                "XDG_CACHE_HOME": str(home),
            },
        )
        assert own.returncode == 0, own.stderr
        n_compiled = own.stdout.split()[1]
        assert own.stderr.count("binfeat is compiling kernels") == len(own.stderr.splitlines()) == (n_compiled != "0")
        return own.stdout.split()

    value, n_compiled = hash_and_compilations()
    assert int(n_compiled) > 0
    kept = set(kept_in(cache))
    assert kept
    assert not home.exists()
    in_image = [*read_only, str(tmp_path / "cache")]
    assert hash_and_compilations(*in_image) == [value, "0"]
    others = HITS.replace("2.5, 1.0, 0.25", "np.float32(2.5), 1.0, 0.25").replace(
        "print", "import numpy as np; print", 1
    )
    assert int(hash_and_compilations(*in_image, code=others)[1]) > 0
    assert hash_and_compilations(*in_image, code=others)[1] == "0"
    assert set(kept_in(cache)) == kept
    assert set(kept_in(folder)) > kept


CALLER = """
import numpy as np
two, keys = np.full(2, 2.5), np.full(2, 7, np.uint64)
print(evaluate.sum_terms(two, two, two, keys, keys))
"""


@pytest.mark.hard
def test_an_edited_kernel_is_compiled_again_and_what_calls_it(tmp_path):
    """Also if the file has the same times as before, and for callers in another file."""
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


@pytest.mark.hard
def test_a_closure_is_found_again_and_is_compiled_for_one_type(tmp_path):
    folder, cache = package_in(tmp_path), tmp_path / "cache"
    assert [printed(start(folder, WRITER, NUMBA_CACHE_DIR=str(cache))) for _ in range(2)] == ["0", "1"]
    assert len(kept_in(cache)) == 1
