"""Which rows of a table a fit is trained on, and which are held out."""

from dataclasses import dataclass
from itertools import chain
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from binfeat._common.held_out import check_groups, folds, splits

_NEITHER, _TRAIN, _HELD_OUT = range(3)


@dataclass(frozen=True, eq=False)
class Partition:
    """Numbers of rows, and the number of each row's group, or of the fold in which it is held out, if there are any."""

    train: np.ndarray
    held_out: np.ndarray
    numbers: np.ndarray | None  # (n_rows,)

    @classmethod
    def of(cls, estimator: BaseEstimator, y: np.ndarray, groups: ArrayLike | None, most: int) -> Self:
        """By the estimator's `cv` and `random_state`; with folds, of at most so many rows."""
        pairs, numbers = splits(estimator, len(y), y, groups), None
        train, held_out = first = next(pairs)
        if len(y) <= most:
            numbers = folds(chain([first], pairs), len(y))
        elif groups is not None and estimator.cv is None:
            numbers = check_groups(groups, len(y))
        return cls(train, held_out, numbers)

    def cells(self, n_rows: int) -> np.ndarray:
        """Numbers that are equal for rows that are always held out together."""
        parts = np.full(n_rows, _NEITHER)
        parts[self.train], parts[self.held_out] = _TRAIN, _HELD_OUT
        return parts if self.numbers is None else 3 * self.numbers + parts

    def require_weight(self, weights: np.ndarray | None) -> None:
        """ValueError if no row that is trained on has a weight, or none that is held out."""
        if weights is not None and not (weights[self.train].any() and weights[self.held_out].any()):
            raise ValueError("sample_weight is zero for all training rows or for all rows held out.")

    def of_rows(self, rows: np.ndarray, n_rows: int) -> Self:
        """That of some of so many rows, by new numbers."""
        cells = self.cells(n_rows)[rows]
        train, held_out = (np.flatnonzero(cells % 3 == part) for part in (_TRAIN, _HELD_OUT))
        return type(self)(train, held_out, None if self.numbers is None else self.numbers[rows])

    def shuffled(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Training rows and rows held out, each in random order."""
        rng = np.random.default_rng(seed)
        return rng.permutation(self.train), rng.permutation(self.held_out)
