"""Numbers as normal scores of their ranks, which few far ones do not move."""

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata


def normal_scores(Y: np.ndarray) -> np.ndarray:
    """Scores of the columns of Y, (n, n_columns), centred; equal values share the score of their mean rank."""
    scores = np.column_stack([ndtri((rankdata(column) - 0.5) / len(Y)) for column in Y.T])
    return scores - scores.mean(axis=0)
