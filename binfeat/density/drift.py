"""Two-sample tests by the squared maximum mean discrepancy of binning features."""

from dataclasses import dataclass

import numpy as np

from binfeat._engine.two_samples import squared_distances
from binfeat.features.binning.code_store import CodeStore
from binfeat.features.binning.grids import Grids
from binfeat.features.binning.tables import count_bins

_MOST_ROWS = 2_000  # of each sample
_N_GRIDS = 100
_GRIDS_PER_INPUT = 8
_MULTIPLE_OF_AN_INPUT = 2.0
_N_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Drift:
    """Result of a test for drift between training rows and new rows.

    Attributes
    ----------
    squared_mmd : float
        Unbiased estimate of the squared maximum mean discrepancy (MMD): the squared distance of the mean features of
        training rows and new rows. Near 0, and maybe negative, without drift.
    p_value : float
        Share of random permutations of the rows with at least this squared MMD.
    input_shares : ndarray of shape (n_inputs,)
        Contribution of each input: its own squared MMD beyond the mean over permutations, divided by the sum over
        inputs; 0 for inputs without drift.
    input_p_values : ndarray of shape (n_inputs,)
        P-value of each input alone, not corrected for the number of inputs.
    feature_names : ndarray of shape (n_inputs,)
        Names of the inputs.
    """

    squared_mmd: float
    p_value: float
    input_shares: np.ndarray
    input_p_values: np.ndarray
    feature_names: np.ndarray

    def __str__(self) -> str:
        """Summary: the test, and the inputs with the largest shares."""
        lines = [f"Drift of the table as a whole: p = {self.p_value:.3g}, squared MMD {self.squared_mmd:.3g}."]
        for j in np.argsort(-self.input_shares, kind="stable")[:_N_SHOWN]:
            if self.input_shares[j] > 0:
                name, share, p_value = self.feature_names[j], self.input_shares[j], self.input_p_values[j]
                lines.append(f"  {name}: {share:.0%} of the drift of single inputs, p = {p_value:.3g}")
        return "\n".join(lines)


def drift_between(first, second, kernel, gamma, categorical, names, n_permutations, seed, n_jobs) -> Drift:
    """Test whether two samples of rows, float64, have the same distribution; `gamma` is one unit for each input."""
    rng = np.random.default_rng(seed)
    first, second = (_thinned(rows, name, rng) for rows, name in ((first, "The training rows"), (second, "X")))
    rows = np.concatenate([first, second])
    is_first = np.arange(len(rows)) < len(first)
    assignments = np.stack([is_first, *(rng.permutation(is_first) for _ in range(n_permutations))])
    whole = _distances(rows, assignments, kernel, gamma, _N_GRIDS, seed, categorical, n_jobs)
    units = _MULTIPLE_OF_AN_INPUT * gamma.size * gamma
    alone = np.stack(
        [
            _distances(rows[:, j], assignments, kernel, units[j], _GRIDS_PER_INPUT, seed, categorical[j], n_jobs)
            for j in np.arange(gamma.size)[:, None]
        ]
    )
    rises = np.maximum(alone[:, 0] - alone[:, 1:].mean(axis=1), 0.0)
    shares = rises / rises.sum() if rises.any() else rises
    return Drift(float(whole[0]), float(_p_value(whole)), shares, _p_value(alone.T), np.asarray(names, dtype=object))


def _thinned(rows, name, rng):
    if len(rows) < 2:
        raise ValueError(f"{name} must have at least 2 rows for a test of drift, got {len(rows)}.")
    return rows if len(rows) <= _MOST_ROWS else rows[np.sort(rng.permutation(len(rows))[:_MOST_ROWS])]


def _p_value(distances):
    """Share of permutations, the observed order among them, with at least the observed distance, which is the first."""
    return np.mean(distances >= distances[0], axis=0)


def _distances(rows, assignments, kernel, gamma, n_grids, seed, categorical, n_jobs=None):
    """Squared MMD for each assignment of the rows to two samples."""
    grids, store = Grids.draw(kernel, gamma, n_grids, seed, categorical), CodeStore(len(rows), n_grids)
    bins = count_bins(grids, [rows], len(rows), codes=store, n_jobs=n_jobs)
    out = np.empty((len(assignments), n_grids))
    counts = bins.counts, bins.starts
    squared_distances(store.array, *counts, assignments, np.empty_like(bins.counts), out, n_jobs=n_jobs)
    return out.mean(axis=1)
