"""
In production
=============

A fitted machine as a file and as a service: what it costs, what may happen to it, and what is promised. Every promise
of this page has a test; seconds are measured, and depend on the computer.
"""

import tempfile
from pathlib import Path

import numpy as np
import skops.io
from sklearn.datasets import make_friedman1

import binfeat
from binfeat import KernelMachineRegressor

X, y = make_friedman1(n_samples=600, noise=1.0, random_state=0)
machine = KernelMachineRegressor(random_state=0).fit(X[:500], y[:500])
folder = Path(tempfile.mkdtemp())
skops.io.dump(machine, folder / "model.skops")
loaded = binfeat.load(folder / "model.skops")  # runs no code of the file, and names what is wrong with a damaged one
print("the same predictions:", np.array_equal(loaded.predict(X), machine.predict(X)))

# %%
# Size and seconds
# ----------------
# `KernelMachineRegressor.compact` makes a copy for deployment: coefficients, weights and residuals in float32, and no
# history of the fit. A prediction changes by 2\ :sup:`-24` of the sum of its coefficients at most, in the standardised
# targets; all methods go on working.

skops.io.dump(machine.compact(), folder / "small.skops")
print({path.name: path.stat().st_size for path in sorted(folder.iterdir())})

# %%
# :ref:`served` has both for machines of each kind, and seconds of fits and predictions beside boosting. A file has 0.5
# to 5 MB; a new process loads binfeat and the machine, and predicts once, in about 0.6 s; a row takes 20 to
# 80 µs.
#
# Predictions of exact and local machines for a row, and those of grids, are bitwise the same, whatever rows stand
# beside it and for any number of threads. A local machine lays out the rows of its cells in memory at its first
# prediction: 4 bytes for each input, kernel and tree of a row. Rows that follow each other in other cells take up to
# half as long again as the same row.
#
# Start
# -----
# A new process starts in 0.6 s, after 1.5 s for scikit-learn and skops, if the kernels are compiled.
# They are where ``NUMBA_CACHE_DIR`` says, or beside the package. ``binfeat.warm_up("models")`` compiles all that
# predictions of any machine need, for one row and for many: in 40 s on two cores of a Xeon of 2023, in up to twice as
# many on slower ones. :func:`binfeat.warm_up` without arguments compiles feature maps and ridge models, too. In the
# file of an image:
#
# .. code-block:: dockerfile
#
#    ENV NUMBA_CACHE_DIR=/opt/kernels
#    RUN pip install "binfeat[persist]" && python -c "import binfeat; binfeat.warm_up('models')"
#
# The image may be read-only afterwards, and run under any user who can read the folder. Kernels suit one kind of
# processor: build the image on the kind that runs it. Where kernels can be kept nowhere, a warning says so, once.
#
# What comes in
# -------------
# ``on_unseen`` says what predictions do about rows that have what `fit` had not seen: "warn" (the default), "ignore",
# or "error". `KernelMachineRegressor.check` lists what counts: missing values in a column that was complete,
# categories that were not there, numbers outside the range in `fit` by more than its width, and numbers that come
# as strings. Other types of numbers change nothing. It also lists what predictions always refuse: words and
# infinity in a column of numbers, and columns in another order or too many, as with scikit-learn. ``binfeat
# predict`` prints the list, and ``binfeat check MODEL TABLE`` exits with 3 if there is any; both take the columns of
# `fit` by their names, wherever they stand, and leave others out.

strange = X[500:].copy()
strange[3, 0], strange[4:6, 1] = 1e30, np.nan
print(loaded.check(strange))

# %%
# Missing numbers are taken for medians, new categories match no other, and numbers far outside for the farthest that
# are not. There an exact machine predicts its intercept, which is near the mean of the targets:
# ``predict(X, return_std=True)`` says how little is known there.
#
# Threads and processes
# ---------------------
# - One machine may be asked by any number of threads at once; what is derived from its arrays is made once.
# - After a fork children predict with the machine of their parent, each with one thread. Spawned children, joblib and
#   Dask load their own.
# - In an event loop, leave predictions to threads: ``await asyncio.to_thread(machine.predict, rows)``.
# - Threads are those of Numba, for grids, and Python's, for all else: one call at a time has them, others run with
#   their own thread. A service with as many workers as cores wants ``machine.set_params(n_jobs=1)``. BLAS takes no part
#   in the predictions of exact and local machines, so ``OPENBLAS_NUM_THREADS`` does not matter to them.
# - Standard deviations and intervals by deviations factorise a kernel matrix at the first call of each process, under
#   one lock: 64 MB for 4,000 rows, some 100 MB for more. Quantiles need none.
#
# Versions
# --------
# A file has the version of binfeat that saved it, and the number of its format. Files of newer versions or formats are
# refused in words, and so are files that name no version. A development build, ``0.2.0.dev1``, comes before its
# release.
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
#
# Every release reads the formats of all releases before it: files of each are kept in the tests.
#
# Without Python
# --------------
# ``machine.to_onnx().SerializeToString()`` is a model of ONNX (``pip install "binfeat[onnx]"``) of an exact or local
# machine of numbers, in float64; its predictions are those of `predict` but for float32's rounding of kernel values:
# some ten-thousandths of a standard deviation at most, and more where a smooth function leaves hardly any error.
# Machines of random features stay with Python: their bins are found by hashes of 64 bits, which ONNX has no tables for.
#
# Watching
# --------
# :doc:`/gallery/plot_drift` watches a stream by the machine's own standard deviations.
