"""Hashes of rows for finding equal rows; a model stores hashes of its training rows."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from binfeat._common.array_record import ArrayRecord
from binfeat._common.subsets import cached_parts

_KEYS_SEED = 0
_KEPT = 8192  # maximum number of hashes in a model


def row_hashes(table: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """A hash of the numbers and the targets of each row, (n_rows,), uint64."""
    keys = np.random.default_rng(_KEYS_SEED).integers(2**64, size=table.shape[1] + Y.shape[1], dtype=np.uint64) | 1
    hashes = np.empty(len(table), np.uint64)
    for rows in cached_parts(len(table), len(keys)):
        bits = np.hstack([table[rows], Y[rows]]).view(np.uint64)
        hashes[rows] = (bits ^ (bits >> np.uint64(32))) @ keys
    return hashes


@dataclass(frozen=True, eq=False)
class SeenRows(ArrayRecord):
    """The rows of a fit: the hashes of all, or the least ones of many, which are a sample of them."""

    hashes: np.ndarray  # (n_kept,), uint64, sorted

    @classmethod
    def of(cls, hashes: np.ndarray) -> Self:
        """Hashes of all training rows."""
        ordered = np.sort(hashes)  # faster than NumPy's `unique`
        return cls(ordered[np.append(True, ordered[1:] != ordered[:-1])][:_KEPT])

    def share_of(self, hashes: np.ndarray) -> float:
        """Return the share of rows that are training rows; NaN if unknown."""
        told = hashes if len(self.hashes) < _KEPT else hashes[hashes <= self.hashes[-1]]
        return float(np.isin(told, self.hashes).mean()) if told.size else np.nan
