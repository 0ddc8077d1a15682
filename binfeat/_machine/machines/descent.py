"""Steps of an overall length scale or a penalty, as long as rows left out gain by them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from binfeat._engine.policy import side_by_side, thread_count
from binfeat._machine.fitted.kernel_function import KernelPart

_Place = tuple[np.float32, ...]  # of a candidate


@dataclass(frozen=True, eq=False)
class Candidate:
    """A kernel, or a sum, with a penalty."""

    parts: list[KernelPart]
    alpha: float
    K: np.ndarray | None = None  # float32, if known: values for pairs of known rows, then of those held out

    @property
    def place(self) -> _Place:
        """What it differs from others of the same kernels in, but for rounding."""
        return *(np.float32(part.factor) for part in self.parts), np.float32(self.alpha)


@dataclass(frozen=True, eq=False)
class Try:
    """A candidate with its kernel values, and its predictions for rows left out."""

    candidate: Candidate
    loss: float
    predictions: np.ndarray  # (n_judged, n_targets)

    @property
    def parts(self) -> list[KernelPart]:
        return self.candidate.parts

    @property
    def alpha(self) -> float:
        return self.candidate.alpha

    @property
    def K(self) -> np.ndarray:
        return cast(np.ndarray, self.candidate.K)


Move = Callable[[Candidate, float], Candidate]  # by a factor


class Descent:
    """Steps down while that helps, or else steps up; what was tried before, and was not better, is not tried again.

    Of what was tried the best is always at hand. `make` makes a try, `may_try` tells of the best so far whether another
    may gain something. A descent that looks ahead tries what may follow in another thread.
    """

    def __init__(
        self, make: Callable[[Candidate], Try], may_try: Callable[[Try], bool], n_jobs: int | None, looks_ahead: bool
    ) -> None:
        self._make, self._may_try, self._n_jobs = make, may_try, n_jobs
        self._looks_ahead = looks_ahead and thread_count(n_jobs) > 1
        self._seen: set[_Place] = set()
        self._ahead: dict[_Place, Try] = {}

    def best(self, start: Try, move: Move, step: float) -> Try:
        """The best of the tries that a move leads to from `start`."""
        self._seen.add(start.candidate.place)
        for factor in (1 / step, step):
            best = start
            while self._may_try(best):
                candidate = move(best.candidate, factor)
                if candidate.place in self._seen:
                    break
                self._seen.add(candidate.place)
                other = self._tried(candidate, move(best.candidate, step) if best is start else move(candidate, factor))
                if other.loss >= best.loss:
                    break
                best = other
            if best is not start:
                break
        self._ahead.clear()
        return best

    def _tried(self, candidate: Candidate, following: Candidate) -> Try:
        if candidate.place not in self._ahead:
            wanted = {candidate.place: candidate}
            if self._looks_ahead and following.place not in self._seen:
                wanted[following.place] = following
            self._ahead |= zip(wanted, side_by_side(self._make, wanted.values(), self._n_jobs), strict=True)
        return self._ahead.pop(candidate.place)
