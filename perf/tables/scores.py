"""Losses of probabilities; `results.error_of` computes errors."""

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

_LEAST_SHARE = 1e-7  # least probability, so that one row does not dominate


def log_loss_of(classes, shares, y):
    """Return the mean of -log(probability of the true class)."""
    known = np.clip(shares, _LEAST_SHARE, None)
    return log_loss(y, known / known.sum(axis=1, keepdims=True), labels=classes)


def auc_of(classes, shares, y):
    """Return the area under the curve; for several classes, the mean of each class against the others."""
    if len(classes) == 2:
        return roc_auc_score(y == classes[1], shares[:, 1])
    present = [k for k, own in enumerate(classes) if 0 < np.mean(y == own) < 1]
    return np.mean([roc_auc_score(y == classes[k], shares[:, k]) for k in present])
