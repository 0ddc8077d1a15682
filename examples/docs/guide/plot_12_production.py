"""
In production
=============

This page is for readers who deploy a kernel model as a file or a service. It describes file sizes, times, errors and
guarantees. Times were measured on two cores.
"""

import tempfile
from pathlib import Path

import numpy as np
import skops.io
from sklearn.datasets import make_friedman1

import binfeat
from binfeat import KernelMachineRegressor

X, y = make_friedman1(n_samples=600, noise=1.0, random_state=0)
model = KernelMachineRegressor(random_state=0).fit(X[:500], y[:500])
folder = Path(tempfile.mkdtemp())
skops.io.dump(model, folder / "model.skops")
loaded = binfeat.load(folder / "model.skops")  # runs no code from the file; raises an error if it is damaged
print("the same predictions:", np.array_equal(loaded.predict(X), model.predict(X)))

# %%
# Size and seconds
# ----------------
# `KernelMachineRegressor.compact` returns a copy for deployment. It stores coefficients, weights and residuals in
# float32, and no history of the fit. Rounding changes predictions by some millionths of a standard deviation of the
# target. All methods remain available.

skops.io.dump(model.compact(), folder / "small.skops")
print({path.name: path.stat().st_size for path in sorted(folder.iterdir())})

# %%
# :ref:`served` lists sizes and times for each kind of model, compared with boosting. The size of a file is 0.5 to 5 MB.
# A new process loads binfeat and the model, and predicts once, in about 0.6 s. A prediction for one row takes 19 to 80
# µs.
#
# The prediction for a row is bitwise the same for any batch and any number of threads, except for rounding errors with
# Fourier features. At its first prediction, a local model copies the rows of its cells, which takes 4 bytes per row,
# input, kernel and tree.
#
# Start
# -----
# Numba compiles functions at their first call, and caches them in ``NUMBA_CACHE_DIR``, or next to the package.
# ``binfeat.warm_up("models")`` compiles all functions that predictions need. It takes 40 s on two cores of a Xeon from
# 2023, and up to twice that on slower processors. Afterwards a new process imports scikit-learn and skops in 1.5 s, and
# binfeat with a model in 0.6 s. :func:`binfeat.warm_up` without arguments also compiles feature maps and ridge models.
# In a Dockerfile:
#
# .. code-block:: dockerfile
#
#    ENV NUMBA_CACHE_DIR=/opt/kernels
#    RUN pip install "binfeat[persist]" && python -c "import binfeat; binfeat.warm_up('models')"
#
# Afterwards the image can be read-only, and any user who can read the folder can run it. Compiled functions are
# specific to a processor model, so build the image on the processor that runs it. If there is no cache and none can be
# written, a warning is issued once.
#
# New data
# --------
# ``on_unseen`` sets the action for rows that differ from the training rows: "warn" (the default), "ignore", or "error".
# `KernelMachineRegressor.check` lists these differences:
#
# - missing values in a column that had none in `fit`,
# - new categories,
# - numbers outside the training range by more than its width,
# - numbers in the form of strings.
#
# A different numeric type is not reported. The list also contains problems for which `predict` always raises an error:
# words or infinity in a numeric column, columns in another order, and additional columns. ``binfeat check`` and
# ``binfeat predict`` print the list. Both commands select columns by name, in any order, and ignore other columns.
#
# `check` also tests for drift (a change of the distribution), by a two-sample test of up to 2,000 new rows and 2,000
# training rows. The attribute `drift` of its result contains the p-value, and ranks the inputs by their share of the
# drift. Classifiers on random features store no training rows, so they skip this test. ``binfeat check MODEL TABLE``
# exits with status 3 if the list is not empty, or if the p-value is at most 0.01.

strange = X[500:].copy()
strange[3, 0], strange[4:6, 1] = 1e30, np.nan
print(loaded.check(strange))

# %%
# Missing numbers are replaced by the training median. New categories match no other category. Numbers far outside the
# training range are clipped. For rows far from the training rows, an exact model predicts its intercept, which is close
# to the mean of the targets; ``predict(X, return_std=True)`` returns a large standard deviation for them.
#
# Threads and processes
# ---------------------
# - Any number of threads can call one model at the same time.
# - After a fork, each child process uses the model of its parent with one thread. Spawned processes, joblib and Dask
#   workers load their own copy.
# - In an event loop, run predictions in threads: ``await asyncio.to_thread(model.predict, rows)``.
# - One call at a time uses several threads; concurrent calls use one thread each. In a service with as many workers as
#   cores, call ``model.set_params(n_jobs=1)``. ``OPENBLAS_NUM_THREADS`` has no effect on predictions of exact and local
#   models, because they do not use BLAS.
# - The first call for standard deviations or intervals in a process factorizes a kernel matrix, while other calls for
#   them wait. The factor takes 64 MB for 4,000 rows, and about 100 MB for more. Quantiles do not need it.
#
# Versions
# --------
# A file contains the version of binfeat that saved it, and a format number. Files of newer versions or formats, and
# files without a version, are refused with an error. A development build, such as ``0.2.0.dev1``, counts as older than
# its release.
#
# Formats 1 to 3 are from checkouts before 0.2, format 4 is from 0.2, and formats 5 and 6 are from later versions.
# Every release reads the formats of all earlier releases.
#
# Without Python
# --------------
# ``model.to_onnx().SerializeToString()`` returns an ONNX model (``pip install "binfeat[onnx]"``) of an exact or local
# model of a numeric table, in float64. Its predictions differ from `predict` by the rounding of kernel values in
# float32: usually at most some ten-thousandths of a standard deviation, and more for smooth targets without noise.
# Models of random features cannot be exported, because ONNX has no tables for 64-bit hashes.
#
# Monitoring
# ----------
# :doc:`/gallery/plot_drift` monitors a stream with the standard deviations of the model. :doc:`plot_13_outliers` tests
# new rows for outliers and drift.
