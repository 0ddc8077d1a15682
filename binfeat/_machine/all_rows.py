"""All rows that a machine is fitted to once it is decided how: in memory, of a source, or elsewhere."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from binfeat._binning.code_store import code_budget
from binfeat._binning.grids import Grids
from binfeat._binning.tables import count_bins
from binfeat._machine.growth import Growth, TrainingRows

_FACTORS = (1.0, 1.4, 2.0, 2.8, 4.0, 5.6)  # of gamma: more rows take finer grids
_PROBE_GRIDS = 4  # in which bins are counted to foresee how many there will be


class MemoryRows:
    """The training rows of a problem, which are in memory.

    Parameters
    ----------
    problem : Problem
    """

    may_mix = True  # bins and Fourier features

    def __init__(self, problem):
        self._problem = problem

    def new_growth(self, kernels, kernel, gamma, fourier):
        """A machine without grids yet, on the training rows."""
        problem, X = self._problem, kernels.X
        train = problem.train
        rows = TrainingRows.in_memory(X[train], problem.Y[train], problem.weights_of(train), problem.n_jobs)
        return Growth(rows, X[problem.held_out], _draw(problem, kernel, gamma), fourier, problem.n_jobs)

    def factors(self, kernels, kernel, gamma):
        """Overall factors of gamma to try."""
        return _FACTORS

    def first_and_most_grids(self, kernels, kernel, gamma):
        """Grids to begin with, and to grow to at most."""
        machine, limits, n_rows = self._problem.machine, self._problem.limits, len(self._problem.train)
        most = min(machine.max_grids, max(limits.sample_grids[1], limits.most_entries // n_rows))
        if machine.max_bytes is not None:  # codes of 4 bytes, as much again while they grow
            most = int(np.clip(machine.max_bytes // (8 * len(self._problem.table)), 1, most))
        return min(self._problem.first_grids(n_rows), most), most


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


class RowsBeyondMemory:
    """All rows of a table of which a problem has a sample.

    Parameters
    ----------
    problem : Problem
        Of the sample.
    n_rows, n_targets : int
        Of the table, and of what is learned.
    bytes_for_bins : float

    Raises
    ------
    ValueError
        If both kinds of features, or an exact machine, are asked for.
    """

    may_mix = False

    def __init__(self, problem, n_rows, n_targets, bytes_for_bins):
        wanted = problem.machine.features
        if wanted in ("hybrid", "exact"):
            raise ValueError(f"features={wanted!r} needs all rows in memory; use 'auto', 'binning' or 'fourier'.")
        self._problem, self._n_rows, self._n_targets = problem, n_rows, n_targets
        self._bytes_for_bins = bytes_for_bins

    def _training_rows(self, encoding, width):
        """All rows but those held out of the sample, `width` inputs in each; what `Growth` takes."""
        raise NotImplementedError

    def new_growth(self, kernels, kernel, gamma, fourier):
        """A machine without grids yet, on all rows but those held out of the sample."""
        problem, X = self._problem, kernels.X
        encoding = Encoding(problem.machine, problem.encoder, kernels.scaler, problem.n_jobs)
        rows = self._training_rows(encoding, X.shape[1])
        return Growth(rows, X[problem.held_out], _draw(problem, kernel, gamma), fourier, problem.n_jobs)

    def factors(self, kernels, kernel, gamma):
        """Overall factors of gamma to try: those whose bins fit in memory."""
        first, *finer = _FACTORS
        few = self._problem.limits.few_grids
        return [first, *(k for k in finer if self._most_by_bins(kernels, kernel, gamma * k) >= few)]

    def first_and_most_grids(self, kernels, kernel, gamma):
        """Grids to begin with, and to grow to at most."""
        machine, limits = self._problem.machine, self._problem.limits
        first, largest = limits.sample_grids
        most = min(machine.max_grids, max(largest, limits.most_entries // self._n_rows))
        most = int(np.clip(self._most_by_bins(kernels, kernel, gamma), 1, most))
        return min(first, most), most

    def _most_by_bins(self, kernels, kernel, gamma):
        """Grids whose bins are expected to fit in memory: their number grows with a power of the rows."""
        X = kernels.X[self._problem.train]
        grids = _draw(self._problem, kernel, gamma)(_PROBE_GRIDS)
        few, many = (self._mean_bins(grids, X[:n]) for n in (-(-len(X) // 4), len(X)))
        power = np.clip(np.log(many / few) / np.log(4), 0.0, 1.0)
        n_bins = many * (self._n_rows / len(X)) ** power
        return self._bytes_for_bins / (n_bins * (48 + 56 * self._n_targets))

    def _mean_bins(self, grids, X):
        return count_bins(grids, [X], len(X), n_jobs=self._problem.n_jobs).keys.size / len(grids)


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
        budget = code_budget(problem.machine.max_bytes)
        vectors = 8 * n_rows * (2 + 5 * n_targets)  # targets, weights, and what a solve makes of them
        self._share = (budget - vectors) // 2  # for codes, as for bins
        super().__init__(problem, n_rows, n_targets, self._share)
        if vectors >= budget:
            raise ValueError(
                f"max_bytes must be more than {vectors:,}, which vectors of {n_rows:,} rows and {n_targets} targets "
                f"take; got {budget:,}."
            )

    def _training_rows(self, encoding, width):
        blocks = self._source.survey.rows(encoding, width)
        held_out, n_jobs = self._source.rows[self._problem.held_out], self._problem.n_jobs
        return TrainingRows.of_source(blocks, self._Y, self._weights, held_out, n_jobs, self._share)


def _draw(problem, kernel, gamma):
    return lambda n_grids: Grids.draw(kernel, gamma, n_grids, problem.seed, problem.categorical)
