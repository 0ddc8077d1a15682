"""Callbacks during a fit: stages, steps, compilations, progress bars, printed lines."""

import errno
import importlib.util
import logging
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from callbacks import Callback, Recorder
from kernel_models import BINS, FIXED, GROWING
from numba.core import event

from binfeat import CGRidge, KernelMachineClassifier, KernelMachineRegressor, RandomBinning, blocks
from binfeat._common.progress import Progress
from binfeat._engine.compilation import compilations
from binfeat.models.solvers import growth

pytestmark = pytest.mark.usefixtures("few_grids")

SEARCH = "length scales"
STAGES = {
    "exact": ["length scales", "kernel and penalty", "solution"],
    "binning": [SEARCH, "features", "grids", "refit"],
    "fourier": [SEARCH, "features", "Fourier features", "refit"],
}


@pytest.mark.parametrize("features", STAGES)
def test_stages_are_named_by_what_is_decided(table, limits, features):
    limits(sample_grids=(5, 40), n_fourier=128)  # all steps
    X, y, _ = table
    recorder = Recorder()
    KernelMachineRegressor(features=features, random_state=0).set_callbacks(recorder).fit(X, y)
    assert list(recorder.stages()) == STAGES[features]
    assert recorder.root.max_subtasks == len(STAGES[features])
    n_steps, foreseen = recorder.stages()[STAGES[features][0]]
    assert n_steps == foreseen > 10
    assert recorder.shares == sorted(recorder.shares)
    assert sum(0 < share < 1 for share in recorder.shares) > 10


def test_stages_that_are_not_needed_are_left_out(table):
    X, y, _ = table
    recorder = Recorder()
    KernelMachineRegressor(**FIXED, refit=False).set_callbacks(recorder).fit(X, y)
    assert recorder.stages() == {"features": (0, None), "grids": (1, 1)}


def test_many_rows_have_a_stage_for_their_overall_length_scale(table, limits):
    limits(sample_rows=100, sample_grids=(5, 40))
    X, y, _ = table
    recorder = Recorder()
    KernelMachineRegressor(**BINS).set_callbacks(recorder).fit(X, y)
    assert list(recorder.stages()) == [SEARCH, "features", "overall length scale", "grids", "refit"]
    n_steps, foreseen = recorder.stages()["overall length scale"]
    assert 1 <= n_steps <= foreseen == 6


def test_batches_of_grids_are_at_most_as_many_as_foreseen(table):
    X, y, _ = table
    recorder = Recorder()
    model = KernelMachineRegressor(**GROWING).set_callbacks(recorder).fit(X, y)
    n_steps, foreseen = recorder.stages()["grids"]
    assert len(model.learning_curve_) == n_steps <= foreseen == 1 + np.log2(160 / 40)


def test_a_limit_of_time_is_said_by_the_stages(table):
    X, y, _ = table
    recorder = Recorder()
    KernelMachineRegressor(**FIXED, max_seconds=1000).set_callbacks(recorder).fit(X, y)
    assert next(iter(recorder.stages())) in ("features, 1000 s left", "features, 999 s left")


def test_a_callback_that_stops_a_stage_stops_the_fit(table):
    X, y, _ = table
    stopped = KernelMachineRegressor(**BINS).set_callbacks(Callback(SEARCH, stop_at=1)).fit(X, y)
    assert stopped.status_ == "stopped"
    assert len(stopped.learning_curve_) == 1


@pytest.mark.parametrize(
    "make", [lambda X, y: (X, y), lambda X, y: (blocks([(X[:250], y[:250]), (X[250:], y[250:])]),)]
)
def test_blocks_of_a_binning_map(table, hashed_at_a_time, make):
    hashed_at_a_time(100, 3)
    given = make(*table[:2])
    for method in ("fit", "fit_transform"):
        recorder = Recorder()
        getattr(RandomBinning(n_grids=7, random_state=0).set_callbacks(recorder), method)(*given)
        steps = [task.task_name for task in recorder.tasks[1:]]
        assert set(steps) == {"step"}
        if len(given) == 2:
            assert len(steps) == recorder.root.max_subtasks == 4 * 3  # rows and grids
        assert recorder.shares[-1] == 1
    hashed = Recorder()
    RandomBinning(n_grids=7, n_features=70, random_state=0).set_callbacks(hashed).fit_transform(*given)
    assert len(hashed.tasks) > 12


def test_the_fit_ends_if_hashed_codes_do_not_fit_on_the_disk(table, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("binfeat.features.binning.code_store._allocate", full)
    recorder = Recorder()
    binning = RandomBinning(n_grids=7, n_features=70, max_bytes=10, random_state=0).set_callbacks(recorder)
    assert type(binning.fit_transform(blocks(*table[:2]))).__name__ == "StreamedFeatures"
    assert recorder.shares[-1] == 1


def test_penalties_of_a_path(table):
    X, y, _ = table
    recorder = Recorder()
    CGRidge(alphas=[0.1, 1.0, 10.0], cv=2).set_callbacks(recorder).fit(
        RandomBinning(random_state=0).fit_transform(X), y
    )
    names = [stage.task_name for stage in recorder.root._children_map.values()]
    assert names == ["penalty 10", "penalty 1", "penalty 0.1"] * 2 + ["solution"]
    assert recorder.root.max_subtasks == 7
    assert recorder.shares == sorted(recorder.shares)


def test_a_progress_bar_moves(table, capfd):
    pytest.importorskip("rich")
    ProgressBar = pytest.importorskip("sklearn.callback").ProgressBar

    X, y, _ = table
    for model in (KernelMachineRegressor(**BINS), RandomBinning(random_state=0), CGRidge()):
        model.set_callbacks(ProgressBar()).fit(X, y)
        shown = capfd.readouterr().out
        assert f"{type(model).__name__} - fit" in shown
        if model.__class__ is KernelMachineRegressor:
            assert all(name in shown for name in STAGES["binning"])


# Lines.


def test_lines_are_printed_as_decisions_are_made(table, capsys):
    X, y, labels = table
    for model, target in (
        (KernelMachineRegressor(**BINS, verbose=1), y),
        (KernelMachineClassifier(verbose=2), labels),
    ):
        model.fit(X, target)
        shown = [line.split() for line in capsys.readouterr().out.splitlines() if not line.startswith("compiling")]
        assert shown == [line.split() for line in model.summary().splitlines()]


@pytest.mark.parametrize(
    ("verbose", "error"), [(-1, ValueError), (0.5, TypeError), ("a", TypeError), (None, TypeError)]
)
def test_bad_verbose(table, verbose, error):
    with pytest.raises(error, match="verbose must be"):
        KernelMachineRegressor(verbose=verbose).fit(*table[:2])


# The first call in a process.


def compile_a_kernel(module="binfeat._engine.products", name="multiply_0123abcd"):
    """Emit Numba's event of a compilation."""

    def kernel():
        pass

    kernel.__module__, kernel.__name__ = module, name
    with event.trigger_event("numba:compile", data={"dispatcher": SimpleNamespace(py_func=kernel)}):
        pass


@pytest.fixture
def first_of_a_process(monkeypatch):
    monkeypatch.setattr(compilations, "_announced", False)


@pytest.mark.engine
@pytest.mark.usefixtures("first_of_a_process")
def test_the_first_compilation_is_logged_at_the_default_level(caplog):
    """It is logged once, and not by `warm_up`."""
    with compilations.announced():
        compile_a_kernel()
    compile_a_kernel("another.package")
    assert not caplog.records
    for _ in range(3):
        compile_a_kernel()
    assert [(record.name, record.levelname) for record in caplog.records] == [("binfeat", "WARNING")]
    assert caplog.records[0].message == (
        "binfeat is compiling kernels, so this call takes several seconds longer. Later calls and processes reuse "
        "them; binfeat.warm_up() compiles them in advance."
    )


@pytest.mark.engine
def test_names_of_compiled_functions_are_whole(caplog):
    caplog.set_level("INFO", "binfeat")
    for name in ("decay", "<lambda>", "add_rows", "add_rows_0123abcd"):
        compile_a_kernel(name=name)
    found = [record.args[0] for record in caplog.records if record.args]
    assert found == ["decay", "<lambda>", "add_rows", "add_rows"]


@pytest.mark.engine
def test_compilations_are_logged_and_told(caplog, monkeypatch):
    monkeypatch.setattr(compilations, "_announced", True)
    told = []
    with caplog.at_level(logging.INFO, logger="binfeat"):
        with compilations.notifying(lambda: told.append(1)):
            compile_a_kernel()
            compile_a_kernel("another.package")
        compile_a_kernel()
    assert [record.message for record in caplog.records] == [
        "compiling multiply, which the cache does not have yet"
    ] * 2
    assert told == [1]


def test_a_fit_says_that_it_compiles(table, monkeypatch, capsys):
    X, y, _ = table
    real, recorder = growth.count_bins, Recorder()

    def counted(*args, **kwargs):
        compile_a_kernel()
        compile_a_kernel()
        return real(*args, **kwargs)

    monkeypatch.setattr(growth, "count_bins", counted)
    KernelMachineRegressor(**FIXED, verbose=1).set_callbacks(recorder).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("decision")
    assert sum(line.startswith("compiling") for line in lines) == 1
    stages = [task.parent.task_name for task in recorder.tasks if task.task_name == "compiling"]
    assert "grids" in stages
    assert len(stages) == len(set(stages))
    assert recorder.shares[-1] == 1


@pytest.fixture
def without_callbacks(monkeypatch):
    """Return our module of callbacks as with scikit-learn before version 1.9."""
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)
    spec = importlib.util.find_spec("binfeat._common.callbacks")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_fits_go_on_where_scikit_learn_has_no_callbacks(without_callbacks):
    class Estimator(without_callbacks.CallbackSupportMixin):
        @without_callbacks.with_callbacks
        def fit(self):
            progress = Progress(self, [[0.0]], None)
            progress.begin(2)
            with progress.stage("search", 3):
                progress.compiling()
                steps = [progress.step() for _ in range(3)]
            progress.end()
            return steps

    assert Estimator().set_callbacks().fit() == [True] * 3
    with pytest.raises(ImportError, match=r"callbacks need scikit-learn 1\.9 or later; got .*: upgrade it\."):
        Estimator().set_callbacks(print)
