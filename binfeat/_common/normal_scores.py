"""Normal scores of ranks, which are robust to outliers."""

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata


def normal_scores(Y: np.ndarray) -> np.ndarray:
    """Return centered scores of the columns of Y, (n, n_columns); equal values share the score of their mean rank."""
    scores = np.column_stack([ndtri((rankdata(column) - 0.5) / len(Y)) for column in Y.T])
    return scores - scores.mean(axis=0)
