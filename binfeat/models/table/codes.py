"""Detection of numeric codes, such as ids of people or districts: neighbouring values have unrelated targets."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from binfeat._common.normal_scores import normal_scores
from binfeat._common.subsets import evenly_spaced

_ROWS, _RANGES = 2**16, 4  # rows that tell, evenly spaced ones, or those in ranges of values
_MOST_COLUMNS = 256  # of numbers; with more, as of counts of words, none is looked at
_SURE = 4.0  # standard errors
_SHARE = 0.5  # of what codes tell, that neighbours differ by
_SAME = 1.1  # groups of rows by two columns, over those by one


def columns_of_codes(table: np.ndarray, rows: np.ndarray, numbers: np.ndarray, Y: np.ndarray) -> list[int]:
    """Return columns of repeated numbers with an order that is unrelated to the targets Y, (n_rows, n_targets).

    If the order is informative, mean targets of neighbouring numbers are similar. Their mean squared difference over
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
        j: own
        for j, own in known.items()
        if _are_codes(own.codes, of_some if own.rows is some else normal_scores(Y[own.rows]))
    }
    return [j for j in found if _is_name(lambda k: table[rows, k], j, found, known)]


@dataclass(frozen=True, eq=False)
class _Recurring:
    """A column of numbers that come again."""

    rows: np.ndarray  # that tell it
    codes: np.ndarray  # of these
    n_codes: int
    are_whole: bool

    def is_as(self, values: np.ndarray) -> bool:
        """Return True if another column has nearly the same groups of rows."""
        levels, others = np.unique(values[self.rows], return_inverse=True)
        few, many = sorted([self.n_codes, levels.size])
        return many <= _SAME * few and np.unique(self.codes * levels.size + others).size <= _SAME * few


def _recurring(values: np.ndarray, some: np.ndarray) -> _Recurring | None:
    """The rows that tell of a column, if its numbers come again: `some`, or of more all in some ranges of values."""
    own = np.sort(values[some])
    if not _come_again(own):
        if values.size == some.size:
            return None
        width = max(1, some.size**2 // (_RANGES * values.size))
        firsts = np.linspace(0, some.size - 1 - width, _RANGES).astype(int)
        some = np.flatnonzero(np.any([(values >= own[k]) & (values <= own[k + width]) for k in firsts], axis=0))
        if not _come_again(np.sort(values[some])):
            return None
    levels, codes = np.unique(values[some], return_inverse=True)
    return _Recurring(some, codes, levels.size, bool((levels == np.rint(levels)).all()))


def _come_again(values: np.ndarray) -> bool:
    """Return True if sorted numbers repeat often enough for codes: 8 numbers or more, of 1.5 rows on average."""
    n_codes = 1 + np.count_nonzero(np.diff(values))
    return bool(8 <= n_codes <= values.size / 1.5)


def _is_name(
    column: Callable[[int], np.ndarray], j: int, found: dict[int, _Recurring], known: dict[int, _Recurring]
) -> bool:
    """Return True if a column is the first integer column, or the only column, with its groups of rows.

    Measures of a person or of a material, and the settings of an experiment, come again with it: to each of them all
    others look like jumps.
    """
    own = found[j]
    rivals = [k for k, other in found.items() if k < j and other.are_whole] if own.are_whole else list(known)
    return not any(own.is_as(column(k)) for k in rivals if k != j)


def _are_codes(codes: np.ndarray, scores: np.ndarray) -> bool:
    """Return True if means of centred scores jump between numbers, by mean squares per degree of freedom."""
    counts = np.bincount(codes)
    n_codes, n_rows = counts.size, codes.size
    means = np.array([np.bincount(codes, column) for column in scores.T]) / counts
    told = float((counts * means**2).sum())
    chance = max(0.0, float((scores**2).sum()) - told) / (n_rows - n_codes)
    jumps = float((np.diff(means) ** 2 / (1 / counts[1:] + 1 / counts[:-1])).sum()) / (n_codes - 1)
    least = max(_SURE * math.sqrt(2 / n_codes) * chance, _SHARE * (told / (n_codes - 1) - chance))
    return jumps - chance > least
