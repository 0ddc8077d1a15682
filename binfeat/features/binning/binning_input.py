"""Checked rows for binning, in memory or from a source."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from binfeat._common.progress import Progress
from binfeat._common.validation import CheckedRows, float_dtype
from binfeat._rows.sources import SourceSummary
from binfeat.features.binning.code_store import CodeStore, code_budget
from binfeat.features.binning.grids import n_hash_blocks


@dataclass(frozen=True)
class BinningInput:
    """Checked rows, in memory or from a source."""

    blocks: Iterable[CheckedRows]
    n_rows: int
    dtype: np.dtype  # of the features
    max_bytes: float = np.inf  # for codes in memory
    summary: SourceSummary | None = None  # of a source with y and weights
    y: np.ndarray | None = None
    sample_weight: np.ndarray | None = None
    progress: Progress | None = None  # of a fit with callbacks

    @classmethod
    def of(cls, X: CheckedRows) -> Self:
        return cls([X], X.shape[0], float_dtype(X.dtype))

    @classmethod
    def of_source(cls, summary: SourceSummary, max_bytes: int | None) -> Self:
        given = code_budget(max_bytes), summary, summary.y, summary.sample_weight
        return cls(summary.rows(), summary.n_rows, float_dtype(summary.dtype), *given)

    @property
    def tell(self) -> Callable[[], object] | None:
        """Return a function to call after every hashed block, or None."""
        return None if self.progress is None else self.progress.step

    def watched(self, progress: Progress, n_grids: int) -> "BinningInput":
        """Return the same rows with the `Progress` of a fit, which begins now."""
        progress.begin(n_hash_blocks(n_grids, self.n_rows) if self.summary is None else None)
        return replace(self, progress=progress)

    def end(self) -> None:
        """End the progress of a fit."""
        if self.progress is not None:
            self.progress.end()

    def store(self, n_grids: int) -> CodeStore:
        """Return a store for the codes of the rows."""
        return CodeStore(self.n_rows, n_grids, self.max_bytes)
