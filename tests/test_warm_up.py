"""`warm_up` compiles all that predictions need."""

import subprocess
import sys
from pathlib import Path

import pytest
from hard import hard

pytest.importorskip("skops.io")

FILES = Path(__file__).parent / "files" / "format_3"

CODE = """
import gc
import sys
from pathlib import Path
import numpy as np
import pandas as pd
import skops.io as sio
from numba.core.registry import CPUDispatcher
import binfeat
from binfeat._machine import warm_up

def compiled():
    kernels = [each for each in gc.get_objects() if isinstance(each, CPUDispatcher)]
    ours = [each for each in kernels if each.py_func.__module__.startswith("binfeat")]
    return {(each.py_func.__qualname__, signature) for each in ours for signature in each.signatures}

if sys.argv[2] == "kernels":  # without what machines of random features need, which takes long to compile
    warm_up._of_features = lambda _: []
binfeat.warm_up()
before, folder = compiled(), Path(sys.argv[1])
trusted = ["binfeat.machine.KernelMachineClassifier", "binfeat.machine.KernelMachineRegressor"]
n_predicted = 0
for path in sorted(folder.glob("*.skops")):
    machine = sio.load(path, trusted=trusted).set_params(on_unseen="ignore")
    if sys.argv[2] == "kernels" and machine.features_ not in ("exact", "local"):
        continue
    few = np.load(folder / "X.npy")
    if path.stem == "frame":
        few = pd.read_csv(folder / "frame.csv", parse_dates=["day"])
    many = pd.concat([few] * 8000) if path.stem == "frame" else np.tile(few, (8000, 1))
    for rows in (few[:1], few, many[:400], many):
        machine.predict(rows)
        n_predicted += len(rows)
        if hasattr(machine, "predict_quantiles"):
            machine.predict_quantiles(rows[:500], [0.4, 0.6])
            machine.predict_interval(rows[:500], coverage=0.5, method="deviations")
            if path.stem not in ("fourier", "binning"):
                machine.predict(rows[:500], return_std=True)
        else:
            machine.predict_proba(rows)
print(len(before), n_predicted, sorted(compiled() - before))
"""


@pytest.mark.parametrize("kinds", ["kernels", *hard("all")])
def test_predictions_compile_nothing_after_it(kinds):
    """Of machines in files: for one row, few and many, with their intervals."""
    run = subprocess.run(
        [sys.executable, "-c", CODE, str(FILES), kinds], capture_output=True, text=True, check=False, timeout=300
    )
    assert run.returncode == 0, run.stderr
    n_kernels, n_predicted, new = run.stdout.strip().split(maxsplit=2)
    assert int(n_kernels) > 10
    assert int(n_predicted) > 40_000 * (4 if kinds == "kernels" else len(list(FILES.glob("*.skops"))))
    assert new == "[]"
