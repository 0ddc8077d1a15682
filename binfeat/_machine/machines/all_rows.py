"""All rows that a machine is fitted to once it is decided how: in memory, of a source, or elsewhere."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from binfeat._binning.grids import Grids
from binfeat._binning.tables import count_bins
from binfeat._machine.machines.feature_bytes import bytes_for_features, fit_bytes, least_dtype, most_grids, row_bytes
from binfeat._machine.machines.growth import Growth, TrainingRows

_FACTORS = (1.0, 1.4, 2.0, 2.8, 4.0, 5.6)  # of gamma: more rows take finer grids
_PROBE_GRIDS = 4  # in which bins are counted to foresee how many there will be


class _AllRows:
    """What rows in memory and beyond have in common: how many grids fit in memory.

    Parameters
    ----------
    problem : Problem
    n_rows : int
        To train on.
    max_bytes : float
        For codes and bins.
    """

    def __init__(self, problem, n_rows, max_bytes):
        self._problem, self._n_rows, self._max_bytes = problem, n_rows, max_bytes
        self._n_targets = problem.Y.shape[1]

    def _most_by_bins(self, X, kernel, gamma, fourier=None):
        """Grids that are expected to fit in memory: the bins of one grow with a power of the rows, from X on."""
        most = partial(most_grids, self._max_bytes, self._n_rows)
        of_targets = self._n_targets, least_dtype(self._n_rows, fourier)
        if most(self._n_rows, *of_targets) >= self._problem.machine.max_grids:
            return np.inf
        grids = _draw(self._problem, kernel, gamma)(_PROBE_GRIDS)
        few, many = (self._mean_bins(grids, X[:n]) for n in (-(-len(X) // 4), len(X)))
        power = np.clip(np.log(many / few) / np.log(4), 0.0, 1.0)
        return most(many * (self._n_rows / len(X)) ** power, *of_targets)

    def _mean_bins(self, grids, X):
        return count_bins(grids, [X], len(X), n_jobs=self._problem.n_jobs).keys.size / len(grids)


class MemoryRows(_AllRows):
    """The training rows of a problem, which are in memory.

    Parameters
    ----------
    problem : Problem
    """

    may_mix = True  # bins and Fourier features

    def __init__(self, problem):
        n_rows = len(problem.train)
        super().__init__(problem, n_rows, bytes_for_features(problem.machine.max_bytes, n_rows, problem.Y.shape[1]))

    def new_growth(self, kernels, kernel, gamma, fourier):
        """A machine without grids yet, on the training rows."""
        problem, X, n_jobs = self._problem, kernels.X, self._problem.n_jobs
        train, codes = problem.train, self._max_bytes // 2
        rows = TrainingRows.in_memory(X[train], problem.Y[train], problem.weights_of(train), n_jobs, codes)
        return Growth(rows, X[problem.held_out], _draw(problem, kernel, gamma), fourier, n_jobs, self._max_bytes)

    def factors(self, kernels, kernel, gamma):
        """Overall factors of gamma to try."""
        return _FACTORS

    def first_and_most_grids(self, kernels, kernel, gamma, fourier):
        """Grids to begin with, and to grow to at most."""
        problem = self._problem
        most = int(np.clip(self._most_by_bins(kernels.X, kernel, gamma, fourier), 1, problem.machine.max_grids))
        return min(problem.first_grids(self._n_rows), most), most


@dataclass(frozen=True, eq=False)
class Encoding:
    """From a raw table to the inputs that kernels see."""

    estimator: Any  # of which names and number of the inputs are read
    encoder: Any  # TableEncoder
    scaler: Any  # InputScaler or None
    n_jobs: int | None

    def __call__(self, X):
        """Scaled inputs, (n_rows, n_inputs_inside) float64."""
        table = self.encoder.transform(self.estimator, X)
        return table if self.scaler is None else self.scaler.transform(table, self.n_jobs)


class RowsBeyondMemory(_AllRows):
    """All rows of a table of which a problem has a sample.

    Parameters
    ----------
    problem : Problem
        Of the sample.
    n_rows : int
        Of the table.
    max_bytes : float
        For codes and bins.

    Raises
    ------
    ValueError
        If both kinds of features, or an exact machine, are asked for.
    """

    may_mix = False

    def __init__(self, problem, n_rows, max_bytes):
        wanted = problem.machine.features
        if wanted in ("hybrid", "exact"):
            raise ValueError(f"features={wanted!r} needs all rows in memory; use 'auto', 'binning' or 'fourier'.")
        super().__init__(problem, n_rows, max_bytes)

    def _training_rows(self, encoding, width):
        """All rows but those held out of the sample, `width` inputs in each; what `Growth` takes."""
        raise NotImplementedError

    def new_growth(self, kernels, kernel, gamma, fourier):
        """A machine without grids yet, on all rows but those held out of the sample."""
        problem, X = self._problem, kernels.X
        encoding = Encoding(problem.machine, problem.encoder, kernels.scaler, problem.n_jobs)
        rows = self._training_rows(encoding, X.shape[1])
        draw = _draw(problem, kernel, gamma)
        return Growth(rows, X[problem.held_out], draw, fourier, problem.n_jobs, self._max_bytes)

    def factors(self, kernels, kernel, gamma):
        """Overall factors of gamma to try: those whose bins fit in memory."""
        first, *finer = _FACTORS
        few = self._problem.limits.few_grids
        X = kernels.X[self._problem.train]
        return [first, *(k for k in finer if self._most_by_bins(X, kernel, gamma * k) >= few)]

    def first_and_most_grids(self, kernels, kernel, gamma, fourier):
        """Grids to begin with, and to grow to at most."""
        by_bins = self._most_by_bins(kernels.X[self._problem.train], kernel, gamma, fourier)
        most = int(np.clip(by_bins, 1, self._problem.machine.max_grids))
        return min(self._problem.limits.sample_grids[0], most), most


class SourceRows(RowsBeyondMemory):
    """All rows of a source.

    Parameters
    ----------
    problem : Problem
    source : SampledSource
    y, weights : ndarray of shape (n_rows,) or (n_rows, n_targets), and (n_rows, 1) or None
        Of all rows.

    Raises
    ------
    ValueError
        As of `RowsBeyondMemory`, or if `max_bytes` is too little for vectors of the rows.
    """

    def __init__(self, problem, source, y, weights):
        self._source, self._Y, self._weights = source, problem.targets.encode(y), weights
        n_rows, n_targets = self._Y.shape
        max_bytes = problem.machine.max_bytes
        super().__init__(problem, n_rows, bytes_for_features(max_bytes, n_rows, n_targets))
        if not self._max_bytes:
            raise ValueError(
                f"max_bytes must be more than {n_rows * row_bytes(n_targets):,}, which vectors of {n_rows:,} rows and "
                f"{n_targets} targets take; got {fit_bytes(max_bytes):,}."
            )

    def _training_rows(self, encoding, width):
        blocks = self._source.survey.rows(encoding, width)
        held_out, n_jobs = self._source.rows[self._problem.held_out], self._problem.n_jobs
        return TrainingRows.of_source(blocks, self._Y, self._weights, held_out, n_jobs, self._max_bytes // 2)


def _draw(problem, kernel, gamma):
    return lambda n_grids: Grids.draw(kernel, gamma, n_grids, problem.seed, problem.categorical)
