"""Files that are written completely or not at all."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from binfeat._common.whole_files import require_writable, written

posix = pytest.mark.skipif(os.name != "posix", reason="modes, links and pipes of POSIX")


def put(path, content):
    with written(path) as out:
        out.write(content)


def interrupt(path):
    with written(path) as out:
        out.write(b"half")
        raise KeyboardInterrupt


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_content_is_replaced_at_the_end(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with written(path) as out:
        out.write(b"new")
        out.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    with pytest.raises(KeyboardInterrupt):
        interrupt(path)
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["a"]


def test_writers_with_the_same_process_number(tmp_path, monkeypatch):
    """Two containers that share a folder, both of whose processes have number 1."""
    monkeypatch.setattr(os, "getpid", lambda: 1)
    path = tmp_path / "a"
    with written(path) as first:
        first.write(b"1" * 100)
        with written(path) as second:
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
        with written(path) as out:
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
    require_writable(pipe)
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
    """Also by a link, as in containers whose logs go to the terminal."""
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
        require_writable(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*none to write a to"):
        require_writable(tmp_path / "none" / "a")
    require_writable(tmp_path / "a")
    assert names(tmp_path) == []


def test_write_protected_files(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"kept")
    monkeypatch.setattr(os, "access", lambda name, mode: Path(name) != path)  # root may write any file
    with pytest.raises(PermissionError, match="a is write-protected; name another file"):
        require_writable(path)
    monkeypatch.setattr(os, "access", lambda name, mode: Path(name) != tmp_path)
    with pytest.raises(PermissionError, match="a cannot be written: its folder is read-only"):
        require_writable(path)
