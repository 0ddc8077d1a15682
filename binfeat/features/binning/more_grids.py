"""More grids for a fitted `RandomBinning`, with the bins of the earlier grids."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from binfeat.features.binning.bins import Bins, LearnedBins, rank_bins
from binfeat.features.binning.grids import Grids
from binfeat.features.binning.saved import check_offsets
from binfeat.features.binning.tables import BinningInput, count_bins


@dataclass(frozen=True, eq=False)
class EarlierFit:
    """Grids and bins of an earlier fit, with and without a column."""

    grids: Grids
    coded: Bins
    rare: Bins

    @classmethod
    def of(cls, binning: Any) -> Self | None:
        """Return the fit that `warm_start` keeps, or None, for checked parameters; ValueError if it cannot be kept."""
        if not (binning.warm_start and hasattr(binning, "bin_offsets_")):
            return None
        n_grids, before = int(binning.n_grids), len(binning._scale)
        if binning._hashed or binning.n_features is not None:
            raise ValueError("warm_start=True keeps bins, which hashed columns do not have; set n_features=None.")
        if n_grids < before:
            raise ValueError(
                f"n_grids must be at least {before}, the grids of the earlier fit, if warm_start=True; got {n_grids}."
            )
        check_offsets(binning.__dict__)
        return cls(binning._grids, *bins_of(binning))

    def require(self, grids: Grids) -> None:
        """Raise a ValueError if the first new grids differ from the grids of the earlier fit."""
        first = grids[: len(self.grids)]
        same = zip(first.arrays, self.grids.arrays, strict=True)
        if not all(np.array_equal(one, other) for one, other in same):
            raise ValueError(
                "warm_start=True keeps the grids of the earlier fit, so kernel, categorical_features, the number of "
                "inputs and random_state, an int, must be the same. Set them back, or set warm_start=False."
            )

    def with_grids(self, grids: Grids, table: BinningInput, min_count: int, n_jobs: int | None) -> LearnedBins:
        """Return the bins of all grids; the rows are read for added grids only."""
        before = len(self.grids)
        if len(grids) == before:
            return LearnedBins(self.coded, self.rare, np.empty(0, np.uint32), self.coded.starts)
        found = count_bins(grids[before:], table.blocks, table.n_rows, n_jobs=n_jobs, on_block=table.on_block)
        added = rank_bins(found, min_count, n_jobs=n_jobs)
        coded, rare = Bins.join([self.coded, added.coded]), Bins.join([self.rare, added.rare])
        return LearnedBins(coded, rare, added.new_codes, added.starts)


def bins_of(binning: Any) -> tuple[Bins, Bins]:
    """Return the bins of a fitted map with a column, and the bins without a column."""
    coded = Bins(binning._bin_keys, binning.bin_counts_, binning.bin_offsets_)
    return coded, Bins(binning._rare_keys, binning._rare_counts, binning._rare_starts)
