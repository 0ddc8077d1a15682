"""`warm_up` compiles all kernels of features, linear models and predictions."""

import subprocess
import sys
from pathlib import Path

import pytest
from hard import hard

import binfeat

pytest.importorskip("skops.io")

FILES = Path(__file__).parent / "files" / "format_3"

CODE = """
import gc
import sys
from pathlib import Path
import numpy as np
import pandas as pd
from numba.core.registry import CPUDispatcher
import binfeat
from binfeat import _warm_up

def compiled():
    kernels = [each for each in gc.get_objects() if isinstance(each, CPUDispatcher)]
    ours = [each for each in kernels if each.py_func.__module__.startswith("binfeat")]
    return {(each.py_func.__qualname__, signature) for each in ours for signature in each.signatures}

if sys.argv[2] == "kernels":  # without what models of random features need, which takes long to compile
    _warm_up._of_features = lambda _: []
binfeat.warm_up("models")
before, folder = compiled(), Path(sys.argv[1])
n_predicted = 0
for path in sorted(folder.glob("*.skops")):
    model = binfeat.load(path).set_params(on_unseen="ignore")
    if sys.argv[2] == "kernels" and model.features_ not in ("exact", "local"):
        continue
    few = np.load(folder / "X.npy")
    if path.stem == "frame":
        few = pd.read_csv(folder / "frame.csv", parse_dates=["day"])
    many = pd.concat([few] * 8000) if path.stem == "frame" else np.tile(few, (8000, 1))
    for rows in (few[:1], few, many[:400], many):
        model.predict(rows)
        n_predicted += len(rows)
        if hasattr(model, "predict_quantiles"):
            model.predict_quantiles(rows[:500], [0.4, 0.6])
            model.predict_interval(rows[:500], coverage=0.5, method="deviations")
            if path.stem not in ("fourier", "binning"):
                model.predict(rows[:500], return_std=True)
        else:
            model.predict_proba(rows)
print(len(before), n_predicted, sorted(compiled() - before))
"""


@pytest.mark.parametrize("kinds", hard("kernels", "all"))
def test_predictions_compile_nothing_after_it(kinds):
    """For models from files: one row, few and many, with intervals."""
    run = subprocess.run(
        [sys.executable, "-c", CODE, str(FILES), kinds], capture_output=True, text=True, check=False, timeout=300
    )
    assert run.returncode == 0, run.stderr
    n_kernels, n_predicted, new = run.stdout.strip().split(maxsplit=2)
    assert int(n_kernels) > 10
    assert int(n_predicted) > 40_000 * (4 if kinds == "kernels" else len(list(FILES.glob("*.skops"))))
    assert new == "[]"


LOWER = """
import gc
import logging
import sys
import warnings
import numpy as np
from numba.core.registry import CPUDispatcher
from scipy import sparse
import binfeat
from binfeat import _threads, _warm_up
from limits import COMMON_TYPES

warnings.simplefilter("ignore")

def compiled():
    kernels = [each for each in gc.get_objects() if isinstance(each, CPUDispatcher)]
    ours = [each for each in kernels if each.py_func.__module__.startswith("binfeat")]
    return {(each.py_func.__qualname__, signature) for each in ours for signature in each.signatures}

many = int(sys.argv[1])
if sys.argv[2] == "common":  # the types that other tests compile, too
    vars(_warm_up).update(COMMON_TYPES)
binfeat.warm_up("features", "linear")
before, rng, n_fits = compiled(), np.random.default_rng(1), 0
_threads._WORTH_THREADS *= many / 30_000  # fewer rows have threads, too
for dtype in _warm_up._TYPES:
    for n_rows in (50, many):
        dense = rng.normal(size=(n_rows, 5)).astype(dtype)
        y = dense[:, 0] > 0.3
        for X in (dense, sparse.csr_matrix(dense)):
            codes = binfeat.RandomBinning(n_grids=9, output="codes", random_state=0).fit_transform(X)
            others = [
                binfeat.transform(X, n_grids=7),
                binfeat.RandomBinning(n_grids=9, random_state=0, n_features=2**12).fit_transform(X),
                binfeat.RandomFourier(n_components=40, random_state=0).fit_transform(X),
                binfeat.RandomFourier(n_components=40, sampler="fastfood", phase="offset").fit_transform(X),
            ]
            for Z in (codes, *others):
                binfeat.CGRidge(max_iter=9).fit(Z, y.astype(float)).predict(Z)
                n_fits += 1
            for loss in ("squared_error", "squared_hinge"):
                model = binfeat.CGRidgeClassifier(loss=loss, max_iter=9)
                model.fit(codes, np.argsort(dense[:, 1]) % 5, sample_weight=2.0).predict(codes[:1])
                n_fits += 1
print(len(before), n_fits, sorted(compiled() - before))
"""


@pytest.mark.parametrize(("n_rows", "types"), [("3000", "common"), *hard(("30000", "all"))])
def test_features_and_linear_models_compile_nothing_after_it(n_rows, types):
    run = subprocess.run(
        [sys.executable, "-c", LOWER, n_rows, types],
        cwd=Path(__file__).parent,  # the folder of `limits`
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr
    n_kernels, n_fits, new = run.stdout.strip().split(maxsplit=2)
    assert int(n_kernels) > (40 if types == "all" else 20)
    assert int(n_fits) == 2 * 2 * 7 * (2 if types == "all" else 1)
    assert new == "[]"
    assert "compiling" not in run.stderr  # compilation was requested


def test_parts_are_checked():
    with pytest.raises(ValueError, match="parts must be among 'features', 'linear', 'models', got 'maps'"):
        binfeat.warm_up("features", "maps")
