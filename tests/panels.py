"""Panels: tables with effects of category levels, and their local models by dense matrices."""

import naive
import numpy as np
import pytest
from kernel_models import moments

from binfeat import kernels

pd = pytest.importorskip("pandas")

GAMMA = [0.5, 0.2, 0.05, 0.03]  # of two numbers and two categories
EFFECTS = ["global_part"]  # the mechanism
N_LEVELS = 40, 5
TOLERANCE = 3e-3  # for float32: levels and intercepts of cells are nearly collinear


def panel(n_rows, seed=0, n_targets=1, sizes=N_LEVELS):
    """Return numbers, codes of categories, and targets with effects of their levels and noise 0.3."""
    rng = np.random.default_rng(seed)
    numbers = rng.uniform(-1, 1, (n_rows, 2))
    codes = np.column_stack([rng.integers(n, size=n_rows) for n in sizes])
    Y = np.sin(3 * numbers[:, :1]) + 0.3 * rng.normal(size=(n_rows, n_targets))
    for n, own in zip(sizes, codes.T, strict=True):
        Y = Y + rng.normal(size=(n, n_targets))[own]
    return numbers, codes, Y if n_targets > 1 else Y[:, 0]


def table(numbers, codes):
    columns = {f"category {g}": pd.Categorical([f"{code:03}" for code in own]) for g, own in enumerate(codes.T)}
    return pd.DataFrame({"x": numbers[:, 0], "z": numbers[:, 1], **columns})


def splits_of(model):
    arrays = model._local
    splits = list(zip(arrays["inputs"], arrays["places"], *arrays["children"].T, strict=True))
    return [(splits, root) for root in arrays["roots"]]


def laplacian(A, B):
    """Return the Laplacian of numbers times the mismatch kernel of categories."""
    same = sum(GAMMA[j] * (A[:, [j]] != B[:, j]) for j in (2, 3))
    return kernels.Laplacian()(A[:, :2], B[:, :2], gamma=GAMMA[:2]) * np.exp(-same)


def twin(model, X, y, n, weights=None, trees=None):
    """Return predictions, leave-one-out residuals of standardized targets, and variances, by dense matrices."""
    mean, std = moments(y[:n], weights)
    Y = ((y[:n] - mean) / std).reshape(n, -1)
    scaled = model._fitted.rows(model, table(X[:, :2], X[:, 2:].astype(int)))
    variances, alpha = model._local["level_variances"], float(model._local["alpha"])
    relative = None if weights is None else weights / weights.mean()
    codes = X[:, 2:]
    trees = splits_of(model) if trees is None else trees
    out = naive.local_model_with_levels(
        scaled[:n], Y, scaled, laplacian, alpha, trees, codes[:n], codes, variances, relative
    )
    return mean, std, *out
