"""Pairs of inputs that say something together and nothing alone, as checkers and waves do."""

from itertools import combinations

import numpy as np
from scipy.stats import rankdata

from binfeat._common.normal_scores import normal_scores

_BINS = 8  # of an input, with equally many rows
_MOST_INPUTS = 40  # 20 to 60 ms
_SURE, _SHARE = 5.0, 0.5  # standard errors, and share of those of the pair that says most


def lengths_of_pairs(X: np.ndarray, Y: np.ndarray, categorical: np.ndarray) -> np.ndarray | None:
    """A length, (n_inputs,), short enough for each input of such a pair, infinite for others; None if there is no pair.

    Analyses of variance of the ranks of Y, (n_rows, n_targets), in the cells of two inputs' bins: what these tell
    beyond the bins of either, as Lou et al. (2013) rank interactions.
    """
    numbers = np.flatnonzero(~categorical)
    if not 2 <= numbers.size <= _MOST_INPUTS:
        return None
    ranks = [rankdata(X[:, j]) - 0.5 for j in numbers]
    bins = [np.unique((_BINS * own / len(X)).astype(int), return_inverse=True)[1] for own in ranks]
    scores = normal_scores(Y)
    alone = [_told(own, scores) for own in bins]
    pairs = list(combinations(range(numbers.size), 2))
    sure = np.array([_surplus(bins[a], bins[b], scores, alone[a] + alone[b]) for a, b in pairs])
    if not sure.max() > _SURE:
        return None
    chosen = np.unique([pairs[k] for k in np.flatnonzero(sure >= max(_SURE, _SHARE * sure.max()))])
    low, high = np.quantile(X[:, numbers[chosen]], [0.1, 0.9], axis=0)
    lengths = np.full(X.shape[1], np.inf)
    lengths[numbers[chosen]] = np.where(high > low, (high - low) / (0.8 * _BINS), np.inf)
    return lengths


def _told(cells: np.ndarray, scores: np.ndarray) -> float:
    """Sum of squares of centred scores that means of cells tell."""
    counts = np.maximum(np.bincount(cells), 1)
    return float(sum((np.bincount(cells, column) ** 2 / counts).sum() for column in scores.T))


def _surplus(first: np.ndarray, second: np.ndarray, scores: np.ndarray, alone: float) -> float:
    """Standard errors by which cells of two inputs tell more than both of them alone do by chance."""
    n_first, n_second = first.max() + 1, second.max() + 1
    free = (n_first - 1) * (n_second - 1)
    told = _told(first * n_second + second, scores)
    if not free or told <= alone:
        return 0.0
    chance = (float((scores**2).sum()) - told) / max(1, len(scores) - n_first * n_second)
    return float(((told - alone) / free - chance) / (chance * np.sqrt(2 / free))) if chance > 0 else np.inf
