"""Steps down a noisy slope."""

import numpy as np

from binfeat._common.arrays import quotients

_MOMENTUM, _SECOND = 0.9, 0.99


class Adam:
    """Steps of about the same length in every parameter (Kingma & Ba 2015), for an array of parameters."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._mean, self._square, self._n_steps = np.zeros(shape), np.zeros(shape), 0

    def step(self, slopes: np.ndarray | float) -> np.ndarray:
        """Return the step to subtract from the parameters, for a rate of 1."""
        self._n_steps += 1
        self._mean += (1 - _MOMENTUM) * (slopes - self._mean)
        self._square += (1 - _SECOND) * (slopes**2 - self._square)
        direction = self._mean / (1 - _MOMENTUM**self._n_steps)
        scale = np.sqrt(self._square / (1 - _SECOND**self._n_steps))
        return quotients(direction, scale)
