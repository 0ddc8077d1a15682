"""The two sides of the gate: revisions in their own folders, and the processes that run them."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from contextlib import contextmanager
from pathlib import Path

from binfeat._engine.policy import _digest_of_sources

HEAD = Path(__file__).parents[1]
_REASONS = Path("perf", "accepted.txt")
_ENGINE = Path("binfeat", "_engine")


class GateError(Exception):
    """The gate cannot be run."""


class Side:
    """A revision, with a process that runs micro cases on it.

    It uses this interpreter with its own `PYTHONPATH`. Both sides have the installed dependencies and the cases of this
    tree, so only binfeat differs.

    Parameters
    ----------
    name : str
    source : Path
        Folder that contains `binfeat`.
    folder : Path
        Empty folder for the sources of the process and for its cache.
    has_own_cache : bool
        If True, kernels are compiled into an empty cache, instead of the cache next to their source.
    """

    def __init__(self, name, source, folder, has_own_cache):
        self.name, self.source = name, source
        self._view, self.cache = folder / "view", folder / "cache" if has_own_cache else None
        self._view.mkdir(parents=True)
        (self._view / "binfeat").symlink_to(source / "binfeat")
        (self._view / "perf").symlink_to(HEAD / "perf")
        self._process = None

    def _start(self):
        own = {"PYTHONPATH": str(self._view), "NUMBA_CACHE_DIR": str(self.cache or "")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "perf.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self._view,
            env=os.environ | own,
            text=True,
        )

    def stop(self):
        """End the process; the next request starts a new one."""
        if self._process is not None:
            self._process.communicate()  # the process ends at the end of its input
        self._process = None

    def ask(self, case, threads, count=False):
        """Run a case once; `perf.worker` describes the reply.

        Raises
        ------
        GateError
            If the process died.
        """
        if self._process is None:
            self._start()
        return self._reply({"case": case, "threads": threads, "count": count}, f"in {case} with {threads} threads")

    def _reply(self, request, when):
        """Return the reply of the process; raise GateError if it died."""
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise GateError(f"{self.name} died {when}; its last words are above.")
        return json.loads(line)

    @property
    def n_signatures(self):
        """Number of signatures of kernels that the process has compiled or loaded."""
        return self._reply({"case": None}, "before it counted signatures")["signatures"] if self._process else 0

    @property
    def reasons(self):
        """Contents of the file of reasons for changed counters."""
        path = self.source / _REASONS
        return path.read_text() if path.is_file() else ""

    @property
    def dependencies(self):
        return tomllib.loads((self.source / "pyproject.toml").read_text())["project"]["dependencies"]


@contextmanager
def both(revision, repository=HEAD):
    """Yield base, checked out into a worktree, and head, the current tree.

    Raises
    ------
    GateError
        If git does not know the revision.
    """
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        _git(repository, "worktree", "add", "--quiet", "--detach", str(tree), revision)
        sides = []
        try:
            differ = _engine(tree) != _engine(HEAD)
            if not differ:
                _copy_kernels(tree)
            sides = [
                Side(name, source, Path(folder, name), differ) for name, source in (("base", tree), ("head", HEAD))
            ]
            yield sides
        finally:
            for side in sides:
                side.stop()
            _git(repository, "worktree", "remove", "--force", str(tree))


def _engine(tree):
    """Return the sources of all kernels."""
    return {path.name: path.read_bytes() for path in (tree / _ENGINE).glob("*.py")}


def _copy_kernels(tree):
    """Copy compiled kernels of the same sources, and the sources, because Numba compares their times with its cache."""
    for source in (HEAD / _ENGINE).rglob(f"*_{_digest_of_sources()}-*.nb[ci]"):
        target = tree / _ENGINE / source.relative_to(HEAD / _ENGINE)
        target.parent.mkdir(exist_ok=True)
        shutil.copy2(source, target)
    for source in (HEAD / _ENGINE).glob("*.py"):
        shutil.copy2(source, tree / _ENGINE)


def _git(repository, *arguments):
    done = subprocess.run(["git", "-C", str(repository), *arguments], capture_output=True, text=True)
    if done.returncode:
        raise GateError(f"git {' '.join(arguments)} failed in {repository}: {done.stderr.strip()}")
