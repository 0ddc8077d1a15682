"""
In production
=============

This page is for readers who deploy a kernel model as a file or a service. It describes sizes, times, errors and
guarantees. Every guarantee has a test. Times were measured, and depend on the computer.
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
loaded = binfeat.load(folder / "model.skops")  # runs no code in the file, and reports the damage of a damaged file
print("the same predictions:", np.array_equal(loaded.predict(X), model.predict(X)))

# %%
# Size and seconds
# ----------------
# `KernelMachineRegressor.compact` returns a copy for deployment. It stores coefficients, weights and residuals in
# float32, and no history of the fit. A prediction changes by at most 2\ :sup:`-24` of the sum of its coefficients, in
# standardized targets. All methods remain available.

skops.io.dump(model.compact(), folder / "small.skops")
print({path.name: path.stat().st_size for path in sorted(folder.iterdir())})

# %%
# :ref:`served` lists sizes and times for each kind of model, compared with boosting. A file has 0.5 to 5 MB. A new
# process loads binfeat and the model, and predicts once, in about 0.6 s. A prediction of one row takes 20 to 80 µs.
#
# The prediction for a row is bitwise the same for any batch and any number of threads. A local model arranges the rows
# of its cells in memory at the first prediction, which takes 4 bytes per row, input, kernel and tree. Consecutive rows
# from different cells take up to 50 % longer than repetitions of one row.
#
# Start
# -----
# If the kernels are already compiled, a new process starts in 0.6 s, after 1.5 s for scikit-learn and skops. Compiled
# kernels are cached in ``NUMBA_CACHE_DIR``, or next to the package. ``binfeat.warm_up("models")`` compiles all kernels
# that predictions need, for one row and for many. It takes 40 s on two cores of a Xeon from 2023, and up to twice that
# on slower processors. :func:`binfeat.warm_up` without arguments also compiles feature maps and ridge models. In the
# file of a container image:
#
# .. code-block:: dockerfile
#
#    ENV NUMBA_CACHE_DIR=/opt/kernels
#    RUN pip install "binfeat[persist]" && python -c "import binfeat; binfeat.warm_up('models')"
#
# Afterwards the image can be read-only, and any user who can read the folder can run it. Compiled kernels fit one kind
# of processor, so build the image on the kind that runs it. If there is no writable cache, a warning is issued once.
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
# Other numeric types make no difference. The list also contains problems that always make predictions fail: words or
# infinity in a numeric column, columns in another order, and additional columns, as in scikit-learn.
# ``binfeat predict`` prints the list. Both commands select columns by name, in any order, and ignore other columns.
#
# `check` also tests whether the table as a whole has drifted, by a two-sample test of up to 2,000 new rows and 2,000
# training rows. The attribute `drift` of its result has the p-value and ranks the inputs by their share of the drift.
# Exact and local models compare new rows with the rows that they store, and regressors with random features with the
# rows of their prediction intervals. Classifiers with random features store no rows, so they skip this test.
# ``binfeat check MODEL TABLE`` exits with status 3 if the list is not empty, or if the p-value is at most 0.01.

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
# - Any number of threads can call one model at the same time. Quantities derived from its arrays are computed once.
# - After a fork, children use the model of their parent with one thread each. Spawned children, joblib and Dask load
#   their own copy.
# - In an event loop, run predictions in threads: ``await asyncio.to_thread(model.predict, rows)``.
# - Models of grids use the threads of Numba, and all other models use Python threads. One call at a time uses the pool,
#   and concurrent calls run in their own thread. In a service with as many workers as cores, call
#   ``model.set_params(n_jobs=1)``. Predictions of exact and local models do not use BLAS, so ``OPENBLAS_NUM_THREADS``
#   has no effect on them.
# - Standard deviations, and intervals based on them, factorize a kernel matrix at the first call in each process, under
#   one lock. It takes 64 MB for 4,000 rows, and about 100 MB for more. Quantiles do not need it.
#
# Versions
# --------
# A file contains the version of binfeat that saved it, and a format number. Files of newer versions or formats, and
# files without a version, are refused with an error. A development build, such as ``0.2.0.dev1``, precedes its release.
#
# .. list-table::
#    :header-rows: 1
#
#    * - format
#      - written by
#      - read by
#    * - 1
#      - checkouts before 0.2
#      - 0.2
#    * - 2
#      - checkouts before 0.2
#      - 0.2
#    * - 3
#      - checkouts before 0.2
#      - 0.2
#    * - 4
#      - 0.2, checkouts before it
#      - 0.2
#    * - 5
#      - checkouts after 0.2
#      - checkouts after 0.2
#    * - 6
#      - checkouts after 0.2
#      - checkouts after 0.2
#
# Every release reads the formats of all earlier releases. The tests contain files of each.
#
# Without Python
# --------------
# ``model.to_onnx().SerializeToString()`` returns an ONNX model (``pip install "binfeat[onnx]"``) of an exact or local
# model of a numeric table, in float64. Its predictions differ from `predict` only by the rounding of kernel values in
# float32: at most some ten-thousandths of a standard deviation, and more for smooth functions with almost no error.
# Models of random features cannot be exported, because ONNX has no tables for 64-bit hashes.
#
# Monitoring
# ----------
# :doc:`/gallery/plot_drift` monitors a stream with the standard deviations of the model. :doc:`plot_13_outliers` tests
# new rows for outliers and drift.
