"""The occupied bins of every grid: counted, ranked, and merged from parts of the rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from binfeat._common.array_types import ArrayLike
from binfeat._engine.bin_tables import rank
from binfeat.features.binning.bin_matrix import code_dtype
from binfeat.features.binning.coded_features import no_bin
from binfeat.features.binning.fineness import Fineness


@dataclass
class Bins:
    """Hashes and training counts of the bins of each grid, in the order of their codes.

    Grid p has the bins from ``starts[p]`` to ``starts[p + 1]``.
    """

    keys: np.ndarray
    counts: np.ndarray
    starts: np.ndarray

    @classmethod
    def none(cls, n_grids: int) -> Self:
        return cls(np.empty(0, np.uint64), np.empty(0, np.int64), np.zeros(n_grids + 1, np.int64))

    @classmethod
    def join(cls, parts: Sequence["Bins"]) -> Self:
        sizes = np.concatenate([np.diff(part.starts) for part in parts])
        keys, counts = (np.concatenate([getattr(part, name) for part in parts]) for name in ("keys", "counts"))
        return cls(keys, counts, starts_of(sizes))

    @classmethod
    def join_within_grids(cls, parts: Sequence["Bins"]) -> Self:
        """Concatenate the bins of parts within each grid."""
        keys, counts = (
            np.concatenate([getattr(part, name)[bins] for pairs in _grid_slices(parts) for part, bins in pairs])
            for name in ("keys", "counts")
        )
        return cls(keys, counts, starts_of(np.sum([part.sizes for part in parts], axis=0)))

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.starts)

    def of(self, grids: slice) -> "Bins":
        starts = self.starts[grids.start : grids.stop + 1]
        bins = slice(starts[0], starts[-1])
        return Bins(self.keys[bins], self.counts[bins], starts - starts[0])

    def first(self, sizes: np.ndarray) -> tuple["Bins", "Bins"]:
        """Split the first ``sizes[p]`` bins of each grid p from the other bins."""
        if (sizes == self.sizes).all():
            return self, Bins.none(sizes.size)
        kept = np.arange(self.keys.size) - np.repeat(self.starts[:-1], self.sizes) < np.repeat(sizes, self.sizes)
        return (
            Bins(self.keys[kept], self.counts[kept], starts_of(sizes)),
            Bins(self.keys[~kept], self.counts[~kept], starts_of(self.sizes - sizes)),
        )


def _grid_slices(parts: Sequence[Bins]) -> Iterator[list[tuple[Bins, slice]]]:
    """Yield, for each grid, pairs of every part and the slice of its bins in the grid."""
    for p in range(parts[0].sizes.size):
        yield [(part, slice(part.starts[p], part.starts[p + 1])) for part in parts]


def starts_of(sizes: ArrayLike) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@dataclass(frozen=True)
class LearnedBins:
    """Bins in the order of their codes, and a map from counted bins to codes.

    A bin that had the number c in grid p while counting has the code ``new_codes[starts[p] + c]``, or "no bin".
    """

    coded: Bins
    rare: Bins  # bins with too few rows
    new_codes: np.ndarray  # (n_counted,), uint32
    starts: np.ndarray  # (n_grids + 1,)

    def fineness(self) -> Fineness:
        return Fineness.of_counts(np.concatenate([self.coded.counts, self.rare.counts]), self.coded.sizes.size)

    @property
    def code_dtype(self) -> type[np.unsignedinteger]:
        return code_dtype(self.coded.sizes.max())


def rank_bins(bins: Bins, min_count: int = 1, n_coded: int | np.ndarray = 0, n_jobs: int | None = None) -> LearnedBins:
    """Assign codes to bins with enough rows by decreasing count, ties by increasing hash; sort in place.

    The first `n_coded` bins of each grid keep their codes; it is a number or an array with a number per grid.
    """
    n_coded = np.array(np.broadcast_to(n_coded, bins.sizes.shape), dtype=np.int64)
    order, spare, new_codes = (np.empty(bins.keys.size, np.uint32) for _ in range(3))
    rank(bins.keys, bins.counts, bins.starts, n_coded, order, spare, new_codes, n_jobs=n_jobs)
    others = zip(bins.starts + np.append(n_coded, 0), bins.starts[1:])
    sizes = n_coded + [np.count_nonzero(bins.counts[start:stop] >= min_count) for start, stop in others]
    coded, rare = bins.first(sizes)
    learned = LearnedBins(coded, rare, new_codes, bins.starts)
    if learned.rare.keys.size:
        new_codes[new_codes >= np.repeat(sizes, bins.sizes)] = no_bin(learned.code_dtype)
    return learned


def unite_bins(parts: Sequence[Bins]) -> Bins:
    """Merge the bins of several parts of the rows, by increasing hash within each grid.

    The result does not depend on the order and the grouping of the parts, and can be a part itself, so that unions
    can be reduced in a tree. Bins with few rows are known only after the last union.
    """
    keys, counts = zip(*map(_unite_grid, _grid_slices(parts)))
    return Bins(np.concatenate(keys), np.concatenate(counts), starts_of([part.size for part in keys]))


def _unite_grid(pairs: list[tuple[Bins, slice]]) -> tuple[np.ndarray, np.ndarray]:
    """Return distinct keys in increasing order, and sums of their counts."""
    keys = np.concatenate([part.keys[bins] for part, bins in pairs])
    order = np.argsort(keys)
    keys = keys[order]
    firsts = np.flatnonzero(np.diff(keys, prepend=~keys[:1]))
    counts = np.concatenate([part.counts[bins] for part, bins in pairs])[order]
    return keys[firsts], np.add.reduceat(counts, firsts) if firsts.size else counts
