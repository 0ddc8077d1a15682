"""Parts of `_common`: names in terminals, atomic files, groups, masks, random words, memory."""

import copy
import os
import platform
import stat
import subprocess
import sys
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import naive
import numpy as np
import pytest

from binfeat._common import (
    derived,
    frames,
    gamma_scale,
    held_out,
    memory,
    printable,
    random_words,
    validation,
    whole_files,
)

# Names from users in terminals, on pages and in pictures.


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, größer, 日本, 🙂", "plain, größer, 日本, 🙂"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("evil\u202egnp.exe", r"evil\u202egnp.exe"),
        ("\u2066isolated\u2069", r"\u2066isolated\u2069"),
        ("half \udc80", r"half \udc80"),
        ("\x9b31m", r"\x9b31m"),
        ("a\tb\nc\r\u2028d\u00a0e", "a b c  d e"),
        ("می\u200cخواهم, 👩\u200d🚀", "می\u200cخواهم, 👩\u200d🚀"),
        (12.5, "12.5"),
    ],
)
def test_names(text, shown):
    assert printable.printable(text) == shown
    printable.printable(text).encode()


def test_ends_of_lines():
    assert printable.printable_lines("a\x1b\nb\r\n") == "a\\x1b\nb \n"


# Atomic files.


posix = pytest.mark.skipif(os.name != "posix", reason="modes, links and pipes of POSIX")


def put(path, content):
    with whole_files.written(path) as out:
        out.write(content)


def interrupt(path):
    with whole_files.written(path) as out:
        out.write(b"half")
        raise KeyboardInterrupt


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_content_is_replaced_at_the_end(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with whole_files.written(path) as out:
        out.write(b"new")
        out.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    with pytest.raises(KeyboardInterrupt):
        interrupt(path)
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["a"]


def test_writers_with_the_same_process_number(tmp_path, monkeypatch):
    """Two containers with a shared folder can both have a process with number 1."""
    monkeypatch.setattr(os, "getpid", lambda: 1)
    path = tmp_path / "a"
    with whole_files.written(path) as first:
        first.write(b"1" * 100)
        with whole_files.written(path) as second:
            second.write(b"2" * 50)
        assert path.read_bytes() == b"2" * 50
        first.write(b"1" * 100)
    assert path.read_bytes() == b"1" * 200
    assert names(tmp_path) == ["a"]


@posix
def test_mode_and_owner_are_kept(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    for mode in (0o600, 0o640, 0o666):
        path.chmod(mode)
        with whole_files.written(path) as out:
            (part,) = (name for name in tmp_path.iterdir() if name != path)
            assert stat.S_IMODE(part.stat().st_mode) == mode
            out.write(b"new")
        assert stat.S_IMODE(path.stat().st_mode) == mode
    if os.geteuid() == 0:
        os.chown(path, 12345, 23456)
        put(path, b"newer")
        assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)
    known = os.umask(0o027)
    try:
        put(tmp_path / "b", b"new")
    finally:
        os.umask(known)
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o640


@posix
def test_links_stay_links(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to(Path("real") / "c")
    for content in (b"first", b"second"):
        put(tmp_path / "a", content)
        assert (tmp_path / "real" / "c").read_bytes() == content
    assert names(tmp_path) == ["a", "b", "real"]
    assert (tmp_path / "a").is_symlink()


@posix
def test_pipes_and_devices_are_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    whole_files.require_writable(pipe)
    put(pipe, b"content")
    reader.join(10)
    assert got == [b"content"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    put(Path("/dev/null"), b"content")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    assert names(tmp_path) == ["pipe"]


@posix
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_open_files_are_written_to_where_they_are(tmp_path, name):
    """Also through a link, as in containers that log to the terminal."""
    if not Path("/proc/self/fd").exists():
        pytest.skip("no descriptors in the file system")
    (tmp_path / "link").symlink_to("/dev/stdout")
    words = "from pathlib import Path; from binfeat._common.whole_files import require_writable, written\n"
    words += f"path = Path({name!r})\nrequire_writable(path)\nwith written(path) as out: out.write(b'added')"
    (tmp_path / "log").write_bytes(b"kept, ")
    with (tmp_path / "log").open("ab") as log:
        subprocess.run([sys.executable, "-c", words], stdout=log, check=True, cwd=tmp_path, env=environment())
    assert (tmp_path / "log").read_bytes() == b"kept, added"
    assert Path("/dev/stdout").is_symlink()


def environment():
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}


def test_files_that_cannot_be_written(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder; name a file"):
        whole_files.require_writable(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"The folder .*none for the file a does not exist"):
        whole_files.require_writable(tmp_path / "none" / "a")
    whole_files.require_writable(tmp_path / "a")
    assert names(tmp_path) == []


def test_write_protected_files(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"kept")
    monkeypatch.setattr(os, "access", lambda name, mode: Path(name) != path)  # root can write any file
    with pytest.raises(PermissionError, match="a is write-protected; name another file"):
        whole_files.require_writable(path)
    monkeypatch.setattr(os, "access", lambda name, mode: Path(name) != tmp_path)
    with pytest.raises(PermissionError, match="a cannot be written: its folder is read-only"):
        whole_files.require_writable(path)


# Groups, masked arrays, seeds and random words.


def test_numbers_of_groups():
    assert held_out.check_groups(None, 3) is None
    np.testing.assert_array_equal(held_out.check_groups(["b", "a", "b"], 3), [1, 0, 1])
    np.testing.assert_array_equal(held_out.check_groups([[7], [5]], 2), [1, 0])
    with pytest.raises(TypeError, match="groups must contain only numbers or only strings"):
        held_out.check_groups(np.array([1, "a"], dtype=object), 2)


@pytest.mark.parametrize(
    ("masked", "expected"),
    [
        (np.ma.array([1, 2], mask=[0, 1]), np.array([1.0, np.nan])),
        (np.ma.array([True, False], mask=[0, 1]), np.array([1.0, np.nan])),
        (np.ma.array([1, 2**53 + 1], mask=[1, 0]), np.array([np.nan, 2**53 + 1], dtype=object)),
        (np.ma.array(["a", "b"], mask=[0, 1]), np.array(["a", np.nan], dtype=object)),
        (np.ma.array(["2026-01-01", "2026-01-02"], "M8[D]", mask=[0, 1]), np.array(["2026-01-01", "NaT"], "M8[D]")),
        (np.ma.array([1.5, 2.5], np.float32, mask=[0, 1]), np.array([1.5, np.nan], np.float32)),
        (np.ma.array([1, 2], mask=[1, 1]), np.array([np.nan, np.nan])),
        (np.ma.array([1, 2], np.uint8), np.array([1, 2], np.uint8)),
    ],
)
def test_unmasked_values(masked, expected):
    found = frames.unmasked(masked)
    assert type(found) is np.ndarray
    assert found.dtype == expected.dtype
    assert repr(found) == repr(expected)


def test_seeds():
    assert [validation.seed_of(own) for own in (0, 1, 2**70)] == [0, 1, 2**70]
    drawn = [validation.seed_of(np.random.RandomState(own)) for own in range(200)]
    assert len(set(drawn)) == 200
    assert max(drawn) > 2**30
    assert validation.seed_of(np.random.RandomState(7)) == drawn[7]


def test_uniforms_exclude_both_ends():
    ends = random_words.uniforms(np.array([0, 2**64 - 1], dtype=np.uint64))
    assert 0 < ends[0] < 2.0**-53
    assert 1 - 2.0**-52 < ends[1] < 1


@pytest.mark.parametrize("n_inputs", [1, 3, 1000, 2**20])
def test_words_at_places_are_those_of_the_stream(n_inputs, rng):
    places = np.unique(rng.integers(n_inputs, size=50))
    words = random_words.stream(3, 7, random_words.PITCH).random_raw(n_inputs + 1)
    np.testing.assert_array_equal(random_words.words_at(3, 7, random_words.PITCH, places), words[places])


# Derived values and memory.

N_THREADS = 16


def test_what_is_derived_is_made_by_one_thread_while_others_wait():
    made, barrier = [], threading.Barrier(N_THREADS)

    class Owner:
        @derived.locked_cached_property
        def value(self):
            made.append(self)
            time.sleep(0.1)
            return np.ones(3)

    owner = Owner()

    def ask(_):
        barrier.wait(timeout=60)
        return owner.value

    with ThreadPoolExecutor(N_THREADS) as pool:
        found = list(pool.map(ask, range(N_THREADS), timeout=60))
    assert made == [owner]
    assert all(each is owner.value for each in found)
    assert copy.deepcopy(owner).value is not owner.value  # a lock prevents neither copies nor pickles


def test_memory_limit():
    limit = memory.memory_limit()
    assert limit is None or limit > 2**20


def test_memory_limit_unknown(monkeypatch):
    monkeypatch.setattr(memory, "_CGROUP_LIMITS", ("/nowhere",))
    monkeypatch.delattr(memory.os, "sysconf", raising=False)
    assert memory.memory_limit() is None
    memory.require_memory(2**80, "this", "that")


FREED = """
import ctypes, re
import numpy as np
from binfeat._common.memory import give_back_memory

ctypes.CDLL(None).mallopt(-3, 2**25)  # arrays of less than 32 MB are in the heap, as in long processes
resident = lambda: int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
arrays = [np.ones(2**17) for _ in range(80)]
kept = arrays.pop()  # at the end of the heap
del arrays
before = resident()
give_back_memory()
print(before - resident())
"""


@pytest.mark.skipif("glibc" not in "".join(platform.libc_ver()), reason="other C libraries keep no memory")
def test_freed_memory_is_given_back():
    run = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, check=True, timeout=120)
    assert int(run.stdout) > 40 * 2**20


def test_no_function_to_give_back_memory(monkeypatch):
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: object())
    memory.give_back_memory()


@pytest.mark.parametrize("error", [2.0, -2.0])
def test_an_error_less_by_a_share_is_lower_for_each_sign(error):
    assert held_out.less_by(0.25, error) == error - 0.5


def test_ranks_of_weighted_residuals():
    rng = np.random.default_rng(0)
    residuals, weights = rng.normal(size=(30, 2)), rng.exponential(size=30)
    found = held_out.sorted_residuals(residuals, weights)
    for column, own in zip(residuals.T, found.T):
        assert own.tolist() == [naive.weighted_quantile(column, weights, rank / 31) for rank in range(1, 31)]
    for equal in (None, np.full(30, 0.1)):
        np.testing.assert_array_equal(held_out.sorted_residuals(residuals, equal), np.sort(residuals, axis=0))


def test_positive_weights_copy_no_rows():
    X = np.ones((100_000, 10))
    tracemalloc.start()
    gamma_scale.Moments.of(X, np.ones(len(X)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 2
