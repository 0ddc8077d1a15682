"""Figures that probabilities are judged by; see `results.error_of` for errors."""

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

_LEAST_SHARE = 1e-7  # that a probability is taken for, so that one row does not decide


def log_loss_of(classes, shares, y):
    """Mean of -log(probability of the true class)."""
    known = np.clip(shares, _LEAST_SHARE, None)
    return log_loss(y, known / known.sum(axis=1, keepdims=True), labels=classes)


def auc_of(classes, shares, y):
    """Area under the curve; of several classes the mean of each against the others."""
    if len(classes) == 2:
        return roc_auc_score(y == classes[1], shares[:, 1])
    present = [k for k, own in enumerate(classes) if 0 < np.mean(y == own) < 1]
    return np.mean([roc_auc_score(y == classes[k], shares[:, k]) for k in present])
