"""Two-sample tests by the squared maximum mean discrepancy of binning features."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from binfeat._common.arrays import quotients
from binfeat._common.subsets import slices
from binfeat._engine.two_samples import squared_distances
from binfeat.features.binning.code_store import CodeStore
from binfeat.features.binning.grids import Grids
from binfeat.features.binning.tables import count_bins
from binfeat.kernels.base import Kernel

MOST_ROWS = 2_000  # maximum rows of each sample
_N_GRIDS = 100
N_PERMUTATIONS = 199
_GRIDS_PER_INPUT = 8
_MULTIPLE_OF_AN_INPUT = 2.0
_N_SHOWN = 5
_LEVEL = 0.01
# Maximum rows of grids and assignments per kernel call (under a second), so that Ctrl-C is handled.
_ROWS_AT_A_TIME = 2**27


@dataclass(frozen=True, eq=False)
class Drift:
    """Result of a test for drift between training rows and new rows.

    Attributes
    ----------
    squared_mmd : float
        Unbiased estimate of the squared maximum mean discrepancy (MMD): the squared distance of the mean features of
        training rows and new rows. Near 0, and maybe negative, without drift.
    p_value : float
        P-value of the table. One test uses all inputs together, the other the single input with the largest
        standardized distance. The smaller of their two p-values is compared with the smaller ones of random
        permutations of the rows, so two tests cause no more false alarms than one.
    is_significant : bool
        Whether the p-value is at most 0.01.
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

    @property
    def is_significant(self) -> bool:
        """True if the p-value is at most 0.01."""
        return self.p_value <= _LEVEL

    def __str__(self) -> str:
        """Return a summary: the test, and the inputs with the largest shares."""
        verb = "has drifted" if self.is_significant else "has not drifted significantly"
        lines = [f"The table {verb}: p = {self.p_value:.3g}, squared MMD {self.squared_mmd:.3g}."]
        for j in np.argsort(-self.input_shares, kind="stable")[:_N_SHOWN]:
            if self.input_shares[j] > 0:
                name, share, p_value = self.feature_names[j], self.input_shares[j], self.input_p_values[j]
                lines.append(f"  {name}: {share:.0%} of the drift of single inputs, p = {p_value:.3g}")
        return "\n".join(lines)


def drift_between(
    first: np.ndarray,
    second: np.ndarray,
    kernel: Kernel,
    gamma: np.ndarray,
    categorical: np.ndarray,
    names: Sequence[str],
    n_permutations: int = N_PERMUTATIONS,
    seed: int = 0,
    n_jobs: int | None = None,
    inputs: np.ndarray | None = None,
) -> Drift:
    """Test whether two samples of rows, float64, have the same distribution.

    `gamma` contains one unit per column. `inputs` contains the input of each column; None if columns are inputs.
    """
    inputs = np.arange(gamma.size) if inputs is None else inputs
    rng = np.random.default_rng(seed)
    first, second = (_thinned(rows, name, rng) for rows, name in ((first, "The training rows"), (second, "X")))
    rows = np.concatenate([first, second])
    is_first = np.arange(len(rows)) < len(first)
    assignments = np.stack([is_first, *(rng.permutation(is_first) for _ in range(n_permutations))])
    whole = _distances(rows, assignments, kernel, gamma, _N_GRIDS, seed, categorical, n_jobs)
    found = []
    for columns in map(np.flatnonzero, inputs == np.arange(len(names))[:, None]):
        own = _MULTIPLE_OF_AN_INPUT * gamma.size / columns.size * gamma[columns], _GRIDS_PER_INPUT, seed
        found.append(_distances(rows[:, columns], assignments, kernel, *own, categorical[columns], n_jobs))
    alone = np.array(found).T
    rises = np.maximum(alone[0] - alone[1:].mean(axis=0), 0.0)
    shares = rises / rises.sum() if rises.any() else rises
    p_value, own_p_values = _p_value_of_table(whole, alone), _p_values(alone)[0]
    return Drift(float(whole[0]), p_value, shares, own_p_values, np.asarray(names, dtype=object))


def _thinned(rows: np.ndarray, name: str, rng: np.random.Generator) -> np.ndarray:
    if len(rows) < 2:
        raise ValueError(f"{name} must have at least 2 rows for a test of drift, got {len(rows)}.")
    return rows if len(rows) <= MOST_ROWS else rows[np.sort(rng.permutation(len(rows))[:MOST_ROWS])]


def _p_values(distances: np.ndarray) -> np.ndarray:
    """Return the share of assignments (axis 0) with at least the distance of each assignment, which counts."""
    return rankdata(-distances, "max", axis=0) / len(distances)


def _p_value_of_table(whole: np.ndarray, alone: np.ndarray) -> float:
    """Return the p-value of the first assignment for all inputs together (n_assignments,) and alone (..., n_inputs).

    The p-values of two tests are compared, because the maximum over all tests would lose power if many inputs drift.
    """
    apart = alone - alone[0]  # exactly 0 for constant inputs
    largest = quotients(apart - apart.mean(axis=0), apart.std(axis=0)).max(axis=1)
    smallest = _p_values(np.column_stack([whole, largest])).min(axis=1)
    return float(np.mean(smallest <= smallest[0]))


def _distances(
    rows: np.ndarray,
    assignments: np.ndarray,
    kernel: Kernel,
    gamma: np.ndarray,
    n_grids: int,
    seed: int,
    categorical: np.ndarray,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Return the squared MMD for each assignment of the rows to two samples."""
    grids, store = Grids.draw(kernel, gamma, n_grids, seed, categorical), CodeStore(len(rows), n_grids)
    bins = count_bins(grids, [rows], len(rows), codes=store, n_jobs=n_jobs)
    out = np.empty((len(assignments), n_grids))
    arrays, scratch = (store.array, bins.counts, bins.starts), np.empty_like(bins.counts)
    for part in slices(len(assignments), max(1, _ROWS_AT_A_TIME // store.array.size)):  # Ctrl-C works between the parts
        squared_distances(*arrays, assignments[part], scratch, out[part], n_jobs=n_jobs)
    return out.mean(axis=1)
