"""All rows that a machine is fitted to once it is decided how: in memory, or of a source."""

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


class SourceRows:
    """All rows of a source, of which a problem has a sample.

    Parameters
    ----------
    problem : Problem
        Of the sample.
    source : SampledSource
    y, weights : ndarray of shape (n_rows,) or (n_rows, n_targets), and (n_rows, 1) or None
        Of all rows.

    Raises
    ------
    ValueError
        If both kinds of features are asked for, or `max_bytes` is too little for vectors of the rows.
    """

    may_mix = False

    def __init__(self, problem, source, y, weights):
        wanted = problem.machine.features
        if wanted in ("hybrid", "exact"):
            raise ValueError(f"features={wanted!r} needs all rows in memory; use 'auto', 'binning' or 'fourier'.")
        self._problem, self._source, self._weights = problem, source, weights
        self._Y = problem.targets.encode(y)
        n_rows, n_targets = self._Y.shape
        budget = code_budget(problem.machine.max_bytes)
        vectors = 8 * n_rows * (2 + 5 * n_targets)  # targets, weights, and what a solve makes of them
        if vectors >= budget:
            raise ValueError(
                f"max_bytes must be more than {vectors:,}, which vectors of {n_rows:,} rows and {n_targets} targets "
                f"take; got {budget:,}."
            )
        self._share = (budget - vectors) // 2  # for codes, as for bins

    def new_growth(self, kernels, kernel, gamma, fourier):
        """A machine without grids yet, on all rows but those held out of the sample."""
        problem, scaler = self._problem, kernels.scaler

        def scaled(X):
            table = problem.encoder.transform(problem.machine, X)
            return table if scaler is None else scaler.transform(table, problem.n_jobs)

        blocks = self._source.survey.rows(scaled, kernels.X.shape[1])
        held_out = self._source.rows[problem.held_out]
        rows = TrainingRows.of_source(blocks, self._Y, self._weights, held_out, problem.n_jobs, self._share)
        X_out = kernels.X[problem.held_out]
        return Growth(rows, X_out, _draw(problem, kernel, gamma), fourier, problem.n_jobs)

    def factors(self, kernels, kernel, gamma):
        """Overall factors of gamma to try: those whose bins fit in memory."""
        first, *finer = _FACTORS
        few = self._problem.limits.few_grids
        return [first, *(k for k in finer if self._most_by_bins(kernels, kernel, gamma * k) >= few)]

    def first_and_most_grids(self, kernels, kernel, gamma):
        """Grids to begin with, and to grow to at most."""
        machine, limits = self._problem.machine, self._problem.limits
        first, largest = limits.sample_grids
        most = min(machine.max_grids, max(largest, limits.most_entries // len(self._Y)))
        most = int(np.clip(self._most_by_bins(kernels, kernel, gamma), 1, most))
        return min(first, most), most

    def _most_by_bins(self, kernels, kernel, gamma):
        """Grids whose bins are expected to fit in memory: their number grows with a power of the rows."""
        X = kernels.X[self._problem.train]
        grids = _draw(self._problem, kernel, gamma)(_PROBE_GRIDS)
        few, many = (self._mean_bins(grids, X[:n]) for n in (-(-len(X) // 4), len(X)))
        power = np.clip(np.log(many / few) / np.log(4), 0.0, 1.0)
        n_bins = many * (len(self._Y) / len(X)) ** power
        return self._share / (n_bins * (48 + 56 * self._Y.shape[1]))

    def _mean_bins(self, grids, X):
        return count_bins(grids, [X], len(X), n_jobs=self._problem.n_jobs).keys.size / len(grids)


def _draw(problem, kernel, gamma):
    return lambda n_grids: Grids.draw(kernel, gamma, n_grids, problem.seed, problem.categorical)
