"""Comparisons of a table with the training rows: of values, and of the table as a whole."""

from typing import Any

import numpy as np

from binfeat._common.gamma_scale import gamma_of_varying_inputs
from binfeat._common.validation import names_of_inputs
from binfeat._rows.row_sample import RowSample
from binfeat.features.binning.two_samples import MOST_ROWS, Drift, drift_between
from binfeat.kernels.families import Laplacian
from binfeat.models.fitted.fitted import Fitted
from binfeat.models.fitted.kernel_function import KernelFunction
from binfeat.models.table.columns import RawTable, in_order
from binfeat.models.table.findings import Findings

_SEED = 0


def compared(machine: Any, X: RawTable) -> tuple[Findings, np.ndarray]:
    """Differences between the values of a table and the training rows, and the encoded table."""
    ordered, others = in_order(machine, X)
    found, rows = machine._fitted.encoder.compared(machine, ordered)
    return others.merged(found), rows


class TableCheck:
    """Compares a table, which arrives in blocks, with the training rows of a model."""

    def __init__(self, machine: Any) -> None:
        self._machine, self._fitted = machine, machine._fitted
        self._found, self._sample_of = Findings(), RowSample.in_turn(_SEED)
        self._sample: RowSample | None = None

    def add(self, X: RawTable) -> None:
        """Compare the values in a block, and keep a sample of its rows."""
        found, rows = compared(self._machine, X)
        sample = self._sample_of(self._fitted.scaled(rows))
        self._sample = sample if self._sample is None else self._sample + sample
        self._found = self._found.merged(found)

    @property
    def findings(self) -> Findings:
        """Differences in all blocks, with the test for drift."""
        if self._sample is None:
            return self._found
        names = names_of_inputs(self._machine)
        drift = drift_of(self._fitted, self._sample.rows, names, self._machine.n_jobs)
        return Findings(self._found, self._found.n_rows, drift)


def drift_of(fitted: Fitted, new: np.ndarray, names: Any, n_jobs: int | None) -> Drift | None:
    """Test scaled rows against the rows of `fit` that a model stores; None if there are fewer than two of either.

    Rows count once, whatever their weights: copies that `fit` merged are not independent rows.
    """
    known = fitted.function if isinstance(fitted.function, KernelFunction) else fitted.spread
    if known is None or min(len(new), known.n_rows) < 2:
        return None
    unit, center = known.unit, known.center
    drawn = np.random.default_rng(_SEED).permutation(known.n_rows)[:MOST_ROWS]
    old = known.support.T[drawn] * unit + center
    new = ((new - center) / unit).astype(np.float32) * unit + center  # as stored rows are rounded
    categorical, inputs = fitted.encoder.categorical, fitted.encoder.source
    gamma = gamma_of_varying_inputs(old, categorical)
    return drift_between(old, new, Laplacian(), gamma, categorical, names, n_jobs=n_jobs, inputs=inputs)
