"""Steps of an overall length scale or a penalty, as long as rows left out gain by them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from binfeat._threads import side_by_side, threads_are_free
from binfeat.models.fitted.kernel_function import KernelPart

_ROUNDS = 2  # of both, as finer kernels take other penalties
_FACTOR, _DECREASE = 1.5, np.sqrt(10.0)  # between two overall factors, and two penalties

_Place = tuple[np.float32, ...]  # of hyperparameters


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """A kernel, or a sum, with a penalty."""

    parts: list[KernelPart]
    alpha: float
    K: np.ndarray | None = None  # float32, if known: values for pairs of known rows, then of those held out

    @property
    def place(self) -> _Place:
        """What they differ from others of the same kernels in, but for rounding."""
        return *(np.float32(part.factor) for part in self.parts), np.float32(self.alpha)


@dataclass(frozen=True, eq=False)
class Try:
    """Hyperparameters, and their loss for rows left out."""

    params: Hyperparameters
    loss: float

    @property
    def parts(self) -> list[KernelPart]:
        return self.params.parts

    @property
    def alpha(self) -> float:
        return self.params.alpha


_Try = TypeVar("_Try", bound=Try)
Move = Callable[[Hyperparameters, float], Hyperparameters]  # by a factor


class Descent(Generic[_Try]):
    """Steps down while that helps, or else steps up; what was tried before, and was not better, is not tried again.

    Of what was tried the best is always at hand. `make` makes a try, `may_try` tells of the best so far whether another
    may gain something. Penalties stay between two ends. A descent that looks ahead tries what may follow in another
    thread, if it is free.
    """

    def __init__(
        self,
        make: Callable[[Hyperparameters], _Try],
        may_try: Callable[[_Try], bool],
        alphas: tuple[float, float],
        n_jobs: int | None = 1,
        looks_ahead: bool = False,
    ) -> None:
        self._make, self._may_try, self._alphas, self._n_jobs = make, may_try, alphas, n_jobs
        self._looks_ahead = looks_ahead
        self._seen: set[_Place] = set()
        self._ahead: dict[_Place, _Try] = {}

    def in_turn(self, start: _Try, learns_alpha: bool, learns_factor: bool) -> _Try:
        """The best penalty and the best overall factor, each in turn."""
        best = start
        for _ in range(_ROUNDS):
            before = best
            if learns_alpha:
                best = self.penalty(best)
            if learns_factor:
                best = self._best(best, _with_factor, _FACTOR)
            if best is before:
                break
        return best

    def penalty(self, start: _Try) -> _Try:
        """The best penalty."""
        return self._best(start, self._with_alpha, _DECREASE)

    def _with_alpha(self, params: Hyperparameters, step: float) -> Hyperparameters:
        return replace(params, alpha=min(max(params.alpha * step, self._alphas[0]), self._alphas[1]))

    def _best(self, start: _Try, move: Move, step: float) -> _Try:
        """The best of the tries that a move leads to from `start`."""
        self._seen.add(start.params.place)
        for factor in (1 / step, step):
            best = start
            while self._may_try(best):
                params = move(best.params, factor)
                if params.place in self._seen:
                    break
                self._seen.add(params.place)
                other = self._tried(params, move(best.params, step) if best is start else move(params, factor))
                if other.loss >= best.loss:
                    break
                best = other
            if best is not start:
                break
        self._ahead.clear()
        return best

    def _tried(self, params: Hyperparameters, following: Hyperparameters) -> _Try:
        if params.place not in self._ahead:
            wanted = {params.place: params}
            if self._looks_ahead and following.place not in self._seen and threads_are_free(self._n_jobs):
                wanted[following.place] = following
            self._ahead |= zip(wanted, side_by_side(self._make, wanted.values(), self._n_jobs), strict=True)
        return self._ahead.pop(params.place)


def _with_factor(params: Hyperparameters, step: float) -> Hyperparameters:
    return Hyperparameters([replace(part, factor=part.factor * step) for part in params.parts], params.alpha)
