"""The tables that the cases run on."""

import os
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_covtype

N_NUMERIC = 10
HAND_WIDTHS = np.array([0.05, 0.3, 0.3, 0.15, 0.2, 0.08, 0.3, 0.3, 0.3, 0.08])


class MissingDataError(Exception):
    """A table is neither on this machine nor can it be fetched."""


def forest_cover():
    """Forest Cover, rows in a fixed random order.

    Returns
    -------
    X : ndarray of shape (n_rows, 54)
        Ten numeric inputs and 44 flags; 426,598 rows from `BINFEAT_DATA`, 581,012 from scikit-learn.
    y : ndarray of shape (n_rows,)
        Cover type, 1 to 7.
    """
    folder = os.environ.get("BINFEAT_DATA")
    if folder is None:
        return _fetch_forest_cover()
    path = Path(folder) / "forest_cover.npz"
    if not path.is_file():
        raise MissingDataError(f"BINFEAT_DATA must be a folder that holds forest_cover.npz; there is no {path}.")
    with np.load(path) as arrays:
        return arrays["X"], arrays["y"]


def _fetch_forest_cover():
    try:
        return fetch_covtype(return_X_y=True, shuffle=True, random_state=0)
    except OSError as error:
        raise MissingDataError(
            "Forest Cover could not be fetched by scikit-learn; set BINFEAT_DATA to a folder that holds "
            f"forest_cover.npz (arrays X and y). The error was: {error}"
        ) from error


def forest_cover_hand_widths(n_rows=None):
    """Forest Cover scaled to [0, 1], with the hand widths.

    Parameters
    ----------
    n_rows : int, default=None
        How many rows to take; None is all. The scaling is that of all rows.

    Returns
    -------
    X : ndarray of shape (n_rows, 54), float64
    gamma : ndarray of shape (54,)
        One over the width of each input; 1 for the flags.
    """
    X, _ = forest_cover()
    low, high = X.min(axis=0).astype(np.float64), X.max(axis=0)
    gamma = np.ones(X.shape[1])
    gamma[:N_NUMERIC] = 1 / HAND_WIDTHS
    return (X[:n_rows] - low) / (high - low), gamma


def forest_cover_labels(n_rows=None):
    """Cover types 1 to 7 of the first rows of Forest Cover; None is all."""
    return forest_cover()[1][:n_rows]
