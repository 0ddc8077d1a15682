"""Steps of a common length scale or a penalty while the leave-one-out error falls."""

from collections.abc import Callable
from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np

from binfeat._threads import side_by_side, threads_are_free
from binfeat.length_scales.kernel_sum import KernelSum, Trial

_ROUNDS = 2  # of both, as finer kernels take other penalties
_FACTOR, _DECREASE = 1.5, np.sqrt(10.0)  # between two overall factors, and two penalties

_Trial = TypeVar("_Trial", bound=Trial)
Move = Callable[[KernelSum, float], KernelSum]  # by a factor


def place(kernel: KernelSum) -> tuple[np.float32, ...]:
    """What differs between kernels of one descent, up to rounding."""
    return *(np.float32(part.factor) for part in kernel.parts), np.float32(kernel.alpha)


class Descent(Generic[_Trial]):
    """Step down while that helps, otherwise up; hyperparameters that were not better are not tried again.

    `make` tries a kernel next to a trial that is known, which may have the same parts. `may_try` decides by the best
    trial so far whether another one may gain something. Penalties stay between two ends. A descent that looks ahead
    makes the trial that may follow in another thread, if a thread is free.
    """

    def __init__(
        self,
        make: Callable[[KernelSum, _Trial], _Trial],
        may_try: Callable[[_Trial], bool],
        alphas: tuple[float, float],
        n_jobs: int | None = 1,
        looks_ahead: bool = False,
    ) -> None:
        self._make, self._may_try, self._alphas, self._n_jobs = make, may_try, alphas, n_jobs
        self._looks_ahead = looks_ahead
        self._seen: set[tuple[np.float32, ...]] = set()
        self._ahead: dict[tuple[np.float32, ...], _Trial] = {}

    def in_turn(self, start: _Trial, learns_alpha: bool, learns_factor: bool) -> _Trial:
        """The best penalty and the best overall factor, each in turn."""
        best = start
        for _ in range(_ROUNDS):
            before = best
            if learns_alpha:
                best = self.penalty(best)
            if learns_factor:
                best = self._best(best, KernelSum.scaled, _FACTOR)
            if best is before:
                break
        return best

    def penalty(self, start: _Trial) -> _Trial:
        """The best penalty."""
        return self._best(start, self._with_alpha, _DECREASE)

    def _with_alpha(self, kernel: KernelSum, step: float) -> KernelSum:
        return replace(kernel, alpha=min(max(kernel.alpha * step, self._alphas[0]), self._alphas[1]))

    def _best(self, start: _Trial, move: Move, step: float) -> _Trial:
        """The best of the trials that a move leads to from `start`."""
        self._seen.add(place(start.kernel))
        for factor in (1 / step, step):
            best = start
            while self._may_try(best):
                kernel = move(best.kernel, factor)
                if place(kernel) in self._seen:
                    break
                self._seen.add(place(kernel))
                following = move(best.kernel, step) if best is start else move(kernel, factor)
                other = self._tried(kernel, following, best)
                if other.error >= best.error:
                    break
                best = other
            if best is not start:
                break
        self._ahead.clear()
        return best

    def _tried(self, kernel: KernelSum, following: KernelSum, near: _Trial) -> _Trial:
        if place(kernel) not in self._ahead:
            wanted = {place(kernel): kernel}
            if self._looks_ahead and place(following) not in self._seen and threads_are_free(self._n_jobs):
                wanted[place(following)] = following
            made = side_by_side(lambda own: self._make(own, near), wanted.values(), self._n_jobs)
            self._ahead |= zip(wanted, made, strict=True)
        return self._ahead.pop(place(kernel))
