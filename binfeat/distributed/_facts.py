"""Properties of chunks of rows that are known to the process of the fit; targets and weights stay on the workers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from binfeat._common.validation import check_weights


@dataclass(frozen=True)
class Facts:
    n_rows: int
    weight: float
    y_shape: tuple  # shape of the targets of a row
    classes: np.ndarray
    counts: np.ndarray
    kind: Any  # of X: the types of its columns, or True for dense features

    @classmethod
    def of(cls, y: np.ndarray, weights: np.ndarray, kind: Any, has_classes: bool) -> Self:
        classes, counts = np.unique(y if has_classes else y[:0], return_counts=True)
        return cls(len(y), float(weights.sum()), y.shape[1:], classes, counts, kind)


def places_of_rows(facts: Sequence[Facts]) -> list[int]:
    """Return the numbers of non-empty chunks; ValueError if all chunks are empty."""
    places = [place for place, fact in enumerate(facts) if fact.n_rows]
    if not places:
        raise ValueError("X has no rows in any chunk; at least one is needed.")
    return places


def require_targets(facts: Sequence[Facts]) -> None:
    """Raise ValueError if targets of chunks have different columns, or all weights are 0."""
    for fact in facts:
        if fact.y_shape != facts[0].y_shape:
            raise ValueError(f"y must have the same columns in all chunks, got {fact.y_shape} and {facts[0].y_shape}.")
    check_weights([fact.weight for fact in facts], len(facts))
