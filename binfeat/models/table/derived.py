"""Columns derived from the columns of a table: ranks, and codes found by the targets."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Self

import numpy as np
from scipy.special import ndtr, ndtri

from binfeat._common.array_record import ArrayRecord
from binfeat._common.normal_scores import normal_scores
from binfeat._common.subsets import evenly_spaced, thinned
from binfeat._engine.quantiles import ROWS, interpolate_columns
from binfeat._threads import thread_count

RANKED_ROWS = 2**17  # evenly spaced rows for ranks: the error is below the distance of two knots


@dataclass(frozen=True, eq=False)
class Quantiles(ArrayRecord):
    """Maps some columns to the ranks of their values in `fit`, from 0 to 1, or to normal scores of these ranks.

    The rank of a value is the share of rows below it plus half the share of rows equal to it. The map is exact at up to
    `n_quantiles` knots, evenly spaced in rank, and is linear between them; values beyond the first or the last
    knot get the rank of that knot.
    """

    columns: np.ndarray  # numbers of the mapped columns, int64
    starts: np.ndarray  # start of the knots of each column, (n_mapped + 1,), int64
    knots: np.ndarray  # values
    ranks: np.ndarray  # ranks of the knots

    @classmethod
    def fit(cls, X: np.ndarray, columns: np.ndarray, n_quantiles: int = 1000) -> Self:
        rows, knots, ranks = evenly_spaced(len(X), RANKED_ROWS), [np.empty(0)], [np.empty(0)]
        for j in columns:
            values = np.sort(X[rows, j])
            column_knots = np.unique(values[np.linspace(0, values.size - 1, n_quantiles).round().astype(np.intp)])
            counts = np.searchsorted(values, column_knots, "left") + np.searchsorted(values, column_knots, "right")
            knots.append(column_knots)
            ranks.append(counts / (2 * values.size))
        starts = np.cumsum([0, *(values.size for values in knots[1:])], dtype=np.int64)
        return cls(columns.astype(np.int64), starts, np.concatenate(knots), np.concatenate(ranks))

    def transform(self, X: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Return the table with its mapped columns."""
        out = np.array(X, order="C")
        out[:, self.columns] = self.mapped(X, n_jobs)
        return out

    def mapped(self, X: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Return only the mapped columns, (n_rows, n_mapped)."""
        rows = np.ascontiguousarray(X[:, self.columns])
        rows.flags.writeable = False  # read-only, so that one compiled signature is enough
        tasks = 1 if len(rows) <= ROWS else min(thread_count(n_jobs), -(-len(rows) // ROWS))
        scratch = np.empty((tasks, ROWS)), np.empty((tasks, ROWS), np.uint64)
        out = np.empty(rows.shape)
        interpolate_columns(rows, self.starts, self.knots, self.ranks, *scratch, out, n_jobs=n_jobs)
        return out


def scaled_in_older_files(X: np.ndarray, scaling: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Return the table with columns mapped to ranks or ``arcsinh((x - center) / unit)``, for files up to format 4."""
    if scaling != "arcsinh":
        return Quantiles.from_arrays(arrays).transform(X)
    out, columns = np.array(X), arrays["columns"]
    out[:, columns] = np.arcsinh((out[:, columns] - arrays["centers"]) / arrays["units"])
    return out


_MOST_RANKED = 64
NO_RANKS = {"rank_starts": np.zeros(1, np.int64), "rank_knots": np.empty(0), "rank_values": np.empty(0)}


def scored_ranks(X: np.ndarray, numbers: np.ndarray) -> Quantiles:
    """Return normal scores of ranks of columns far from normal, given a mask of numbers that are not times."""
    ranks = Quantiles.fit(X, _columns_to_rank(X, numbers))
    return replace(ranks, ranks=ndtri(np.clip(ranks.ranks, *ndtr([-3.0, 3.0]))))


def _columns_to_rank(matrix: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return numeric columns that are far from normal, such as amounts, and counts with many zeros."""
    some = thinned(evenly_spaced(len(matrix), RANKED_ROWS), 2**14)  # ranked rows, so that knots differ
    far = (j for j in np.flatnonzero(numbers) if _is_far_from_normal(np.sort(matrix[some, j])))
    first = np.array(list(islice(far, _MOST_RANKED + 1)), dtype=np.int64)
    return first if first.size <= _MOST_RANKED else first[:0]


def _is_far_from_normal(values: np.ndarray) -> bool:
    if np.count_nonzero(np.diff(values)) < 20:
        return False
    scores = ndtri((np.arange(values.size) + 0.5) / values.size)
    return bool(np.corrcoef(values, scores)[0, 1] ** 2 < 0.865)  # samples of an exponential distribution have 0.82


_ROWS, _RANGES = 2**16, 4  # rows for the test: evenly spaced, or all rows in some ranges of values
_MOST_COLUMNS = 256  # maximum of numeric columns; with more, such as counts of words, there are no codes
_SURE = 4.0  # standard errors
_SHARE = 0.5  # minimum of the mean squared difference of neighbors, relative to shuffled numbers
_ROWS_OF_CODE = 1.5  # minimum rows per number on average
_SAME = 1.1  # maximum ratio of groups of rows by two columns to groups by one


def columns_of_codes(table: np.ndarray, rows: np.ndarray, numbers: np.ndarray, Y: np.ndarray) -> list[int]:
    """Return columns of repeated numbers with an order that is unrelated to the targets Y, (n_rows, n_targets).

    If the order is informative, mean targets of neighboring numbers are similar. Their mean squared difference over
    chance is the statistic of von Neumann (1941): it must be at least half of its value for shuffled numbers.
    """
    columns = np.flatnonzero(numbers).tolist()
    if len(columns) > _MOST_COLUMNS:
        return []
    some = evenly_spaced(len(rows), _ROWS)
    known = {j: own for j in columns if (own := _recurring(table[rows, j], some)) is not None}
    if not known:
        return []
    of_some = normal_scores(Y[some])
    found = {
        j: (own, codes)
        for j, (own, codes) in known.items()
        if _are_codes(codes, of_some if own is some else normal_scores(Y[own]))
    }
    return [j for j in found if _is_name(lambda k: table[rows, k], j, found, known)]


_Groups = tuple[np.ndarray, np.ndarray]  # some rows, and the rank of each row's number among the numbers of a column


def _are_same_groups(groups: _Groups, values: np.ndarray) -> bool:
    """Return True if another column has nearly the same groups of rows."""
    rows, codes = groups
    levels, others = np.unique(values[rows], return_inverse=True)
    few, many = sorted([codes.max() + 1, levels.size])
    return bool(many <= _SAME * few and np.unique(codes * levels.size + others).size <= _SAME * few)


def _recurring(values: np.ndarray, some: np.ndarray) -> _Groups | None:
    """Group `some` rows by the numbers of a column; None if its numbers rarely repeat.

    If too few of these rows have equal numbers, all rows in some ranges of values are grouped instead.
    """
    own = np.sort(values[some])
    if not _repeat_often(own):
        if values.size == some.size:
            return None
        width = max(1, some.size**2 // (_RANGES * values.size))
        firsts = np.linspace(0, some.size - 1 - width, _RANGES).astype(int)
        some = np.flatnonzero(np.any([(values >= own[k]) & (values <= own[k + width]) for k in firsts], axis=0))
        if not _repeat_often(np.sort(values[some])):
            return None
    return some, np.unique(values[some], return_inverse=True)[1]


def _repeat_often(values: np.ndarray) -> bool:
    """Return True if sorted numbers repeat often enough for codes: 8 numbers or more, of some rows on average.

    The most frequent number does not count, so that amounts with many zeros are not codes.
    """
    sizes = np.diff(np.flatnonzero(np.diff(values)), prepend=-1, append=values.size - 1)
    return bool(sizes.size >= 8 and values.size - sizes.max() >= _ROWS_OF_CODE * (sizes.size - 1))


def _is_name(column: Callable[[int], np.ndarray], j: int, found: dict[int, _Groups], known: dict[int, _Groups]) -> bool:
    """Return True if a column is the first integer column, or the only column, with its groups of rows.

    Properties of a person or a material, and settings of an experiment, repeat together, so each of them looks like a
    code because of the others.
    """

    def are_whole(k: int) -> bool:
        values = column(k)[known[k][0]]
        return bool((values == np.rint(values)).all())

    rivals = [k for k in found if k < j and are_whole(k)] if are_whole(j) else list(known)
    return not any(_are_same_groups(found[j], column(k)) for k in rivals if k != j)


def _are_codes(codes: np.ndarray, scores: np.ndarray) -> bool:
    """Return True if means of centered scores jump between numbers, by mean squares per degree of freedom."""
    counts = np.bincount(codes)
    n_codes, n_rows = counts.size, codes.size
    means = np.array([np.bincount(codes, column) for column in scores.T]) / counts
    between = float((counts * means**2).sum())
    chance = max(0.0, float((scores**2).sum()) - between) / (n_rows - n_codes)
    jumps = float((np.diff(means) ** 2 / (1 / counts[1:] + 1 / counts[:-1])).sum()) / (n_codes - 1)
    least = max(_SURE * math.sqrt(2 / n_codes) * chance, _SHARE * (between / (n_codes - 1) - chance))
    return jumps - chance > least
