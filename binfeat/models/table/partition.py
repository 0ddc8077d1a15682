"""Training and validation rows of a fit."""

from dataclasses import dataclass
from itertools import chain
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator

from binfeat._common.array_types import ArrayLike
from binfeat._common.held_out import check_groups, folds, splits

_NEITHER, _TRAIN, _HELD_OUT = range(3)


@dataclass(frozen=True, eq=False)
class Partition:
    """Row numbers of the parts, and the group or the validation fold of each row, if any."""

    train: np.ndarray
    held_out: np.ndarray
    numbers: np.ndarray | None  # (n_rows,)

    @classmethod
    def of(cls, estimator: BaseEstimator, y: np.ndarray, groups: ArrayLike | None, most: int) -> Self:
        """Split rows by `cv` and `random_state` of the estimator; use folds up to a number of rows."""
        pairs, numbers = splits(estimator, len(y), y, groups), None
        train, held_out = first = next(pairs)
        if len(y) <= most:
            numbers = folds(chain([first], pairs), len(y))
        elif groups is not None and estimator.cv is None:
            numbers = check_groups(groups, len(y))
        return cls(train, held_out, numbers)

    def cells(self, n_rows: int) -> np.ndarray:
        """Return numbers that are equal for rows that are never split."""
        parts = np.full(n_rows, _NEITHER)
        parts[self.train], parts[self.held_out] = _TRAIN, _HELD_OUT
        return parts if self.numbers is None else 3 * self.numbers + parts

    def require_weight(self, weights: np.ndarray | None) -> None:
        """Raise ValueError if all training rows or all validation rows have weight 0."""
        if weights is not None and not (weights[self.train].any() and weights[self.held_out].any()):
            raise ValueError("sample_weight is zero for all training rows or for all validation rows. Change it or cv.")

    def of_rows(self, rows: np.ndarray, n_rows: int) -> Self:
        """Return the partition of some rows, renumbered."""
        cells = self.cells(n_rows)[rows]
        train, held_out = (np.flatnonzero(cells % 3 == part) for part in (_TRAIN, _HELD_OUT))
        return type(self)(train, held_out, None if self.numbers is None else self.numbers[rows])

    def shuffled(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return training and validation rows, each in random order."""
        rng = np.random.default_rng(seed)
        return rng.permutation(self.train), rng.permutation(self.held_out)
