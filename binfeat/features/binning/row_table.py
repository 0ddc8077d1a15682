"""Checked rows to bin, in memory or of a source."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from binfeat._common.validation import float_dtype
from binfeat.features.binning.code_store import CodeStore, code_budget
from binfeat.features.binning.grids import n_hash_blocks


@dataclass(frozen=True)
class RowTable:
    """Checked rows, in memory or of a source."""

    blocks: Any  # iterable of ndarray or CSR
    n_rows: int
    dtype: np.dtype  # of the features
    max_bytes: float = np.inf  # for codes in memory
    survey: Any = None  # of a source, which gave y and the weights
    y: Any = None
    sample_weight: Any = None
    progress: Any = None  # of a fit that callbacks see

    @classmethod
    def of(cls, X):
        return cls([X], X.shape[0], float_dtype(X.dtype))

    @classmethod
    def of_source(cls, survey, max_bytes):
        given = code_budget(max_bytes), survey, survey.y, survey.sample_weight
        return cls(survey.rows(), survey.n_rows, float_dtype(survey.dtype), *given)

    @property
    def tell(self):
        """A function to call after every hashed block, or None."""
        return None if self.progress is None else self.progress.step

    def watched(self, progress, n_grids):
        """The same rows with the `Progress` of a fit, which begins now."""
        progress.begin(n_hash_blocks(n_grids, self.n_rows) if self.survey is None else None)
        return replace(self, progress=progress)

    def store(self, n_grids):
        """Space for the rows' codes."""
        return CodeStore(self.n_rows, n_grids, self.max_bytes)
