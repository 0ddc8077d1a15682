"""How a kernel machine sets itself up on a source of blocks: decisions on a sample, grids on all rows."""

import numpy as np

from binfeat._binning.bins import Bins, count_bins, count_bins_of_blocks
from binfeat._binning.code_store import CodeStore, code_budget
from binfeat._binning.grids import Grids
from binfeat._machine import training
from binfeat._machine.growth import Growth
from binfeat._machine.training import Training
from binfeat._rows.streamed import StreamedRows

_PROBE_GRIDS = 4  # in which bins are counted to foresee how many there will be


class StreamedGrowth(Growth):
    """A ridge machine on all rows of a source; those held out stand among them with weight 0.

    Parameters
    ----------
    rows : Rows
        Transformed as the machine's decisions say.
    Y : ndarray of shape (n_rows, n_targets)
    weights : ndarray of shape (n_rows, 1) or None
    held_out : ndarray of int
        Numbers of the rows held out.
    X_out : ndarray of shape (n_out, n_inputs)
        These rows.
    draw, waves, n_jobs : as in `Growth`
    max_bytes : int
        Memory for the codes.
    """

    def __init__(self, rows, Y, weights, held_out, X_out, draw, waves, n_jobs, max_bytes):
        own = np.ones((rows.n_rows, 1)) if weights is None else weights.copy()
        own[held_out] = 0.0
        super().__init__(np.empty((rows.n_rows, 0)), Y, own, X_out, draw, None, n_jobs)
        self._rows, self._all_weights, self._gram = rows, weights, None
        self._store = CodeStore(rows.n_rows, 0, max_bytes)
        if waves is not None:
            n_waves, options = waves.n_components, {"dense": True}
            self._waves, self._dense_out = waves, waves.transform(X_out)
            self._dense = StreamedRows(rows, waves._features, n_waves, np.float64, **options)
            self._coef = np.zeros((n_waves, Y.shape[1]))

    def _count(self, fresh):
        first = self.n_grids
        self._store.grow(first + len(fresh))
        bins = count_bins_of_blocks(fresh, self._rows, self._rows.n_rows, self._store, self._n_jobs, first_grid=first)
        return self._store.array, bins

    def _gram_system(self):
        if self._gram is None:
            self._gram = super()._gram_system()
        return self._gram

    def add_held_out_rows(self, Y, weights):
        """Give the held-out rows their weights."""
        self._weights, self._gram = self._all_weights, None


class StreamedTraining(Training):
    """One fit of a kernel machine to a source.

    Parameters
    ----------
    source : SampledSource
    Y, weights : ndarray of shape (n_rows, n_targets), and (n_rows, 1) or None
        Of all rows of the source.
    others : what `Training` takes, of the sample
    """

    _may_mix = False

    def __init__(self, source, Y, weights, *others):
        super().__init__(*others)
        if self._machine.features == "hybrid":
            raise ValueError("features='hybrid' needs all rows in memory; use 'auto', 'binning' or 'fourier'.")
        self._source, self._all_Y, self._all_weights = source, Y, weights
        n_rows, n_targets = Y.shape
        budget = code_budget(self._machine.max_bytes)
        vectors = 8 * n_rows * (2 + 5 * n_targets)  # targets, weights, and what a solve makes of them
        if vectors >= budget:
            raise ValueError(
                f"max_bytes must be more than {vectors:,}, which vectors of {n_rows:,} rows and {n_targets} targets "
                f"take; got {budget:,}."
            )
        self._share = (budget - vectors) // 2  # for codes, as for bins

    def _new_growth(self, gamma):
        def check(X):
            table = self._columns.transform(self._machine, X)
            return table if self.scaler is None else self.scaler.transform(table, self._n_jobs)

        def draw(n_grids):
            return Grids.draw(self.kernel, gamma, n_grids, self._seed, self._categorical)

        rows = self._source.survey.rows(check, self._X.shape[1])
        held_out, X_out = self._source.rows[self._held_out], self._X[self._held_out]
        waves = self.waves
        return StreamedGrowth(
            rows, self._all_Y, self._all_weights, held_out, X_out, draw, waves, self._n_jobs, self._share
        )

    def _factors(self):
        first, *finer = super()._factors()
        return [first, *(k for k in finer if self._most_by_bins(self.gamma * k) >= training._FEW_GRIDS)]

    def _first_and_most_grids(self):
        if self._machine.n_grids != "auto":
            return self._machine.n_grids, None
        first, largest = training._SAMPLE_GRIDS
        most = min(self._machine.max_grids, max(largest, training._MOST_ENTRIES // len(self._all_Y)))
        most = int(np.clip(self._most_by_bins(self.gamma), 1, most))
        return min(first, most), most

    def _most_by_bins(self, gamma):
        """Grids whose bins are expected to fit in memory: their number grows with a power of the rows."""
        X = self._X[self._train]
        few, many = (self._mean_bins(gamma, X[:n]) for n in (-(-len(X) // 4), len(X)))
        power = np.clip(np.log(many / few) / np.log(4), 0.0, 1.0)
        n_bins = many * (len(self._all_Y) / len(X)) ** power
        return self._share / (n_bins * (48 + 56 * self._all_Y.shape[1]))

    def _mean_bins(self, gamma, X):
        grids = Grids.draw(self.kernel, gamma, _PROBE_GRIDS, self._seed, self._categorical)
        return count_bins(grids, X, Bins.none(_PROBE_GRIDS), n_jobs=self._n_jobs).keys.size / _PROBE_GRIDS
