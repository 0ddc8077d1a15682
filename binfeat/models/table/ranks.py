"""Normal scores of ranks as additional columns."""

from itertools import islice

import numpy as np
from scipy.special import ndtr, ndtri

from binfeat._common.subsets import evenly_spaced
from binfeat.models.table.scalers import Quantiles

_ROWS = 2**14  # evenly spaced rows that tell how values are distributed
_FEWEST_VALUES = 20
_NORMAL = 0.865  # least squared correlation with normal scores; samples of an exponential distribution have 0.82
_MOST_COLUMNS = 64
_FARTHEST = 3.0  # normal score
NO_RANKS = {"rank_starts": np.zeros(1, np.int64), "rank_knots": np.empty(0), "rank_values": np.empty(0)}


def columns_to_rank(matrix: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return numeric columns that are far from normal, such as amounts, and counts with many zeros.

    Their statistic of Shapiro and Francia (1972) is small. Where there are very many, as in bags of words, none is
    taken.
    """
    some = evenly_spaced(len(matrix), _ROWS)
    far = (j for j in np.flatnonzero(numbers) if _is_far_from_normal(np.sort(matrix[some, j])))
    first = np.array(list(islice(far, _MOST_COLUMNS + 1)), dtype=np.int64)
    return first if first.size <= _MOST_COLUMNS else first[:0]


def _is_far_from_normal(values: np.ndarray) -> bool:
    if np.count_nonzero(np.diff(values)) < _FEWEST_VALUES:
        return False
    scores = ndtri((np.arange(values.size) + 0.5) / values.size)
    return bool(np.corrcoef(values, scores)[0, 1] ** 2 < _NORMAL)


def scored_ranks(matrix: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts of the knots of these columns, the knots, and their normal scores."""
    ranks = Quantiles.fit(matrix[:, columns], np.zeros(columns.size, dtype=bool))
    return ranks.starts, ranks.knots, ndtri(np.clip(ranks.ranks, *ndtr([-_FARTHEST, _FARTHEST])))
