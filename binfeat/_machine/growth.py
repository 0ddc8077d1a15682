"""A ridge machine on binning features whose grids grow in number, and the function that is left of it."""

from dataclasses import dataclass, field

import numpy as np

from binfeat._binning.bin_matrix import BinMatrix, no_bin
from binfeat._binning.bins import Bins, BinTables, count_bins
from binfeat._binning.grids import Grids
from binfeat._engine.evaluate import evaluate
from binfeat._linear import cg
from binfeat._linear.gram import gram_system
from binfeat._rows.features import FeatureBlocks
from binfeat._rows.products import RidgeSystem
from binfeat.fourier import RandomFourier

_FEW_ROWS = 64  # evaluated one by one
_BLOCK_BYTES = 2**26  # of hashes at a time


@dataclass
class BinFunction:
    """A linear function of binning features.

    Attributes
    ----------
    grids : Grids
    keys : ndarray of shape (n_bins,), uint64
    starts : ndarray of shape (n_grids + 1,), int64
    coef : ndarray of shape (n_targets, n_bins)
        Of entries that are ``1 / sqrt(n_grids)``.
    """

    grids: Grids
    keys: np.ndarray
    starts: np.ndarray
    coef: np.ndarray
    _tables: BinTables | None = field(default=None, repr=False)

    def __call__(self, X, n_jobs=None):
        """Values of shape (n_rows, n_targets) for X of shape (n_rows, n_inputs), float64 in C order."""
        if self._tables is None:
            self._tables = BinTables(self.keys, self.starts, n_jobs)
        out = np.empty((X.shape[0], self.coef.shape[0]))
        if X.shape[0] <= _FEW_ROWS:
            evaluate(X, *self.grids.arrays, *self._tables.arrays, self.coef, out)
            out *= 1 / np.sqrt(len(self.grids))
            return out
        step = max(_FEW_ROWS, _BLOCK_BYTES // (8 * len(self.grids)))
        for start in range(0, X.shape[0], step):
            codes = find_codes(self._tables, self.grids, X[start : start + step], n_jobs)
            Z = BinMatrix._trusted(codes, self.starts, np.dtype(np.float64), n_jobs)
            out[start : start + step] = Z @ self.coef.T
        return out


class WaveFunction:
    """A linear function of the Fourier features of known frequencies.

    Parameters
    ----------
    frequencies : ndarray of shape (n_inputs, n_frequencies)
    coef : ndarray of shape (2 * n_frequencies, n_targets)
    """

    def __init__(self, frequencies, coef):
        self._waves = RandomFourier._of_frequencies(frequencies)
        self._coef = np.ascontiguousarray(coef)

    def __call__(self, X):
        """Values of shape (n_rows, n_targets) for X of shape (n_rows, n_inputs), float64."""
        step = max(1, _BLOCK_BYTES // (8 * self._coef.shape[0]))
        blocks = [self._waves._features(X[start : start + step]) @ self._coef for start in range(0, len(X), step)]
        return np.concatenate(blocks)


def find_codes(tables, grids, X, n_jobs):
    """Codes of rows in grids whose bins are known."""
    hashes = grids.hash(X, n_jobs)
    codes = np.empty(hashes.shape, np.uint32)
    tables.find(slice(0, len(grids)), hashes, no_bin(codes.dtype), codes, 0, n_jobs)
    return codes


class Growth:
    """A ridge machine on rows in grids; more of either can be added.

    Each solve starts from 0: from the last solution it takes as many iterations, and where the tolerance stops it
    the error of other rows is higher (perf/README.md).

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_inputs), float64
    Y : ndarray of shape (n_rows, n_targets)
    weights : ndarray of shape (n_rows, 1) or None
    X_out : ndarray of shape (n_out, n_inputs)
        Rows held out, whose codes are kept too.
    draw : callable
        ``draw(n_grids)`` gives that many grids; the first ones are always the same.
    waves : fitted RandomFourier, default=None
        A map whose features stand beside those of the grids.
    """

    def __init__(self, X, Y, weights, X_out, draw, waves=None, n_jobs=None):
        self._X, self._Y, self._weights, self._X_out = X, Y, weights, X_out
        self._draw, self._waves, self._n_jobs = draw, waves, n_jobs
        self._codes = np.empty((0, len(X)), np.uint32)
        self._codes_out = np.empty((0, len(X_out)), np.uint32)
        self._dense, self._dense_out, n_waves = None, None, 0
        if waves is not None:
            self._dense, self._dense_out = waves.transform(X), waves.transform(X_out)
            n_waves = self._dense.shape[1]
        self.grids, self._bins = draw(1)[:0], Bins.none(0)
        self._coef = np.zeros((n_waves, Y.shape[1]))
        self._intercept = np.zeros(Y.shape[1])

    @property
    def n_grids(self):
        return len(self._codes)

    @property
    def n_rows(self):
        return len(self._Y)

    def grow(self, n_grids):
        """Add grids until there are so many. The function so far is spread over all of them."""
        before, grids = self.n_grids, self._draw(n_grids)
        fresh = grids[before:]
        codes, bins = self._count(fresh)
        found = find_codes(BinTables(bins.keys, bins.starts, self._n_jobs), fresh, self._X_out, self._n_jobs)
        old, waves = self._split_coef()
        new = np.zeros((bins.keys.size, old.shape[1]))
        coef = np.concatenate([old * np.sqrt(before / n_grids), new, waves])
        codes_out = np.concatenate([self._codes_out, found])
        bins = Bins.join([self._bins, bins])
        # All at once, so that Ctrl-C in what is slow leaves the last function whole.
        self.grids, self._bins, self._coef, self._codes, self._codes_out = grids, bins, coef, codes, codes_out

    def _count(self, fresh):
        """All codes, with those of fresh grids behind, and the bins of these."""
        codes = np.empty((len(fresh), len(self._X)), np.uint32)
        bins = count_bins(fresh, self._X, Bins.none(len(fresh)), codes, self._n_jobs)
        return np.concatenate([self._codes, codes]), bins

    def add_held_out_rows(self, Y, weights):
        """Take the held-out rows in: their new bins follow those known in each grid."""
        if self.n_grids:
            self._add_bins_of_held_out_rows()
        if self._waves is not None:
            self._dense, self._dense_out = np.concatenate([self._dense, self._dense_out]), None
        self._Y = np.concatenate([self._Y, Y])
        if weights is not None:
            self._weights = np.concatenate([self._weights, weights])
        self._X, self._X_out = None, None

    def _add_bins_of_held_out_rows(self):
        codes = np.empty((self.n_grids, len(self._X_out)), np.uint32)
        bins = count_bins(self.grids, self._X_out, self._bins, codes, self._n_jobs)
        old, waves = self._split_coef()
        coef = np.zeros((bins.keys.size, old.shape[1]))
        moved = np.repeat(bins.starts[:-1] - self._bins.starts[:-1], self._bins.sizes)
        coef[np.arange(moved.size) + moved] = old
        self._bins, self._coef = bins, np.concatenate([coef, waves])
        self._codes, self._codes_out = np.concatenate([self._codes, codes], axis=1), None

    def solve(self, alpha, tol, max_iter):
        """Solve the ridge system for one penalty; the `Result`."""
        Z = self._matrix(self._codes, self._dense)
        shift = np.full(self._Y.shape[1], float(alpha))
        if not self.n_grids:
            gram = self._gram_system()
            result = next(gram.solve([shift]))
            self._coef, self._intercept = result.solution, gram.intercept(result.solution)
            return result
        system = RidgeSystem(Z, self._weights, fit_intercept=True)
        right, diagonal = system.right_side(self._Y), system.diagonal()
        result = cg.solve(system.apply, right, diagonal, shift, tol=tol, max_iter=max_iter)
        self._coef, self._intercept = result.solution, system.mean(self._Y - Z @ result.solution)
        if result.status == "interrupted":
            raise KeyboardInterrupt
        return result

    def _gram_system(self):
        return gram_system(self._dense, self._Y, self._weights, fit_intercept=True)

    @property
    def coefficients(self):
        """What the last solve found, to be set back to."""
        return self._coef, self._intercept

    @coefficients.setter
    def coefficients(self, kept):
        self._coef, self._intercept = kept

    def held_out(self):
        """Predictions for the held-out rows, of shape (n_out, n_targets)."""
        return self._matrix(self._codes_out, self._dense_out) @ self._coef + self._intercept

    def learned(self):
        """What the machine has learned so far: the function of bins, coefficients of waves, and intercepts."""
        bins, waves = (np.ascontiguousarray(part.T) for part in self._split_coef())
        return BinFunction(self.grids, self._bins.keys, self._bins.starts, bins), waves, self._intercept

    def _split_coef(self):
        return self._coef[: self._bins.keys.size], self._coef[self._bins.keys.size :]

    def _matrix(self, codes, dense):
        if not self.n_grids:
            return dense
        Z = BinMatrix._trusted(codes, self._bins.starts, np.dtype(np.float64), self._n_jobs)
        return Z if dense is None else FeatureBlocks([Z, dense], [1.0, 1.0])
