"""The two sides of the gate: revisions in folders of their own, and the processes that run them."""

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from contextlib import contextmanager
from pathlib import Path

HEAD = Path(__file__).parents[1]
_REASONS = Path("perf", "accepted.txt")


class GateError(Exception):
    """The gate cannot be run."""


class Side:
    """A revision, with a process that runs micro cases on it.

    Its environment is this interpreter with its own `PYTHONPATH` and its own Numba cache. Both sides have
    the installed dependencies and this tree's cases, so that only binfeat differs.

    Parameters
    ----------
    name : str
    source : Path
        Folder that holds `binfeat`.
    folder : Path
        Empty folder for the view that the process has, and for its cache.
    """

    def __init__(self, name, source, folder):
        self.name, self.source = name, source
        self._view, self.cache = folder / "view", folder / "cache"
        self._view.mkdir(parents=True)
        (self._view / "binfeat").symlink_to(source / "binfeat")
        (self._view / "perf").symlink_to(HEAD / "perf")
        self._process = None

    def _start(self):
        own = {"PYTHONPATH": str(self._view), "NUMBA_CACHE_DIR": str(self.cache)}
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
            self._process.communicate()  # the end of its input ends it
        self._process = None

    def ask(self, case, threads, count=False):
        """Run a case once; see `perf.worker` for the reply.

        Raises
        ------
        GateError
            If the process died.
        """
        if self._process is None:
            self._start()
        request = json.dumps({"case": case, "threads": threads, "count": count})
        try:
            print(request, file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise GateError(f"{self.name} died in {case} with {threads} threads; its last words are above.")
        return json.loads(line)

    @property
    def n_compiled(self):
        """Signatures compiled so far: Numba's cache, empty before, holds one file for each."""
        return sum(1 for _ in self.cache.rglob("*.nbc"))

    @property
    def reasons(self):
        """Text of the file that says why counters changed."""
        path = self.source / _REASONS
        return path.read_text() if path.is_file() else ""

    @property
    def dependencies(self):
        return tomllib.loads((self.source / "pyproject.toml").read_text())["project"]["dependencies"]


@contextmanager
def both(revision, repository=HEAD):
    """Base, checked out into a worktree, and head, this tree as it is.

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
            sides = [Side("base", tree, Path(folder, "base")), Side("head", HEAD, Path(folder, "head"))]
            yield sides
        finally:
            for side in sides:
                side.stop()
            _git(repository, "worktree", "remove", "--force", str(tree))


def _git(repository, *arguments):
    done = subprocess.run(["git", "-C", str(repository), *arguments], capture_output=True, text=True)
    if done.returncode:
        raise GateError(f"git {' '.join(arguments)} failed in {repository}: {done.stderr.strip()}")
