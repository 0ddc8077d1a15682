"""Kernel machines that Ctrl-C or a callback stops."""

from dataclasses import replace

import numpy as np
import pytest
from callbacks import Callback
from machines import BINS, GROWING
from sklearn.exceptions import NotFittedError

from binfeat import KernelMachineClassifier, KernelMachineRegressor
from binfeat._linear import cg
from binfeat._machine import growth, length_scales, size_and_alpha_choice

pytestmark = pytest.mark.usefixtures("few_grids")


def interrupt_at(monkeypatch, home, name, call):
    """Raise KeyboardInterrupt at a call of a function, counted from 1."""
    real, calls = getattr(home, name), [0]

    def wrapped(*args, **kwargs):
        calls[0] += 1
        if calls[0] == call:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(home, name, wrapped)


@pytest.mark.parametrize(
    ("home", "name", "call"),
    [
        (growth, "count_bins", 2),  # in the second batch
        (growth, "find_codes", 2),
        (growth.Growth, "solve", 4),
        (size_and_alpha_choice.Sizing, "refit", 1),
        (growth.Growth, "add_held_out_rows", 1),
    ],
)
def test_ctrl_c_keeps_the_machine_so_far(table, monkeypatch, home, name, call):
    X, _, labels = table
    machine = KernelMachineClassifier(**GROWING)
    with monkeypatch.context() as patch:
        interrupt_at(patch, home, name, call)
        with pytest.raises(KeyboardInterrupt):
            machine.fit(X, labels)
    assert machine.status_ == "interrupted"
    assert machine.n_grids_ == machine.learning_curve_[-1, 0]
    assert machine.score(X, labels) > 0.8
    np.testing.assert_allclose(machine.predict_proba(X).sum(axis=1), 1.0)
    assert machine.predict(X[:1]) in ("yes", "no")
    assert machine.fit(X, labels).status_ == "converged"


def interrupted(solve, call):
    """The solver, one of whose calls meets Ctrl-C after an iteration."""
    left = [call]

    def stop(state):
        raise KeyboardInterrupt

    def wrapped(system, alpha, options, **start):
        left[0] -= 1
        return solve(system, alpha, replace(options, callback=stop) if left[0] == 0 else options, **start)

    return wrapped


def test_ctrl_c_in_a_solve(table, monkeypatch):
    """In the search there is no machine yet; later the solver's iterate is one."""
    X, y, _ = table
    real, machine = cg.solve, KernelMachineRegressor(**GROWING)
    seen = []
    for call in range(1, 40, 4):
        monkeypatch.setattr(cg, "solve", interrupted(real, call))
        machine = KernelMachineRegressor(**GROWING)
        try:
            machine.fit(X, y)
        except KeyboardInterrupt:
            seen.append(getattr(machine, "status_", "nothing"))
            assert seen[-1] == "nothing" or machine.score(X, y) > 0.3
    assert seen == sorted(seen, reverse=True)
    assert set(seen) == {"nothing", "interrupted"}
    assert machine.status_ == "budget"


def test_ctrl_c_before_there_is_a_machine(table, monkeypatch):
    X, y, labels = table
    for machine, target in ((KernelMachineRegressor(**BINS), y), (KernelMachineClassifier(**BINS), labels)):
        with monkeypatch.context() as patch:
            interrupt_at(patch, length_scales.LengthScaleSearch, "_step", 2)
            with pytest.raises(KeyboardInterrupt):
                machine.fit(X, target)
        with pytest.raises(NotFittedError):
            machine.predict(X)
        with pytest.raises(NotFittedError):
            machine.summary()


def test_callbacks_stop_a_fit(table):
    X, y, _ = table
    watcher = Callback("step")
    machine = KernelMachineRegressor(**BINS).set_callbacks(watcher).fit(X, y)
    assert watcher.ended
    assert watcher.n_tasks > len(machine.learning_curve_)
    for stop_at in (1, watcher.n_tasks - 1):
        stopper = Callback("step", stop_at=stop_at)
        stopped = KernelMachineRegressor(**BINS).set_callbacks(stopper).fit(X, y)
        assert stopped.status_ == "stopped"
        assert stopper.ended
        assert stopped.score(X, y) > 0.5


# What is kept.
