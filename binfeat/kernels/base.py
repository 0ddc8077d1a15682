"""Base classes of the kernels in `binfeat.kernels`."""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from binfeat._common.array_types import ArrayLike
from binfeat._common.validation import check_gamma, checked_array

_MOST = 1e150  # its square is finite


def _pairs(
    X: ArrayLike, Y: ArrayLike | None, gamma: float | ArrayLike, power: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Check two sets of points, and return them with one gamma per input."""
    checks: dict[str, Any] = {"dtype": np.float64, "ensure_min_samples": 0, "ensure_min_features": 0}
    A = checked_array(X, input_name="X", **checks)
    B = A if Y is None else checked_array(Y, input_name="Y", **checks)
    if A.shape[1] != B.shape[1]:
        raise ValueError(f"X and Y must have the same number of inputs; got shapes {A.shape} and {B.shape}.")
    return A, B, check_gamma(gamma, A.shape[1], power, some=False)


def _scaled(gamma: float, distance: np.ndarray) -> np.ndarray:
    """Return the product, limited so that it is neither infinite nor NaN."""
    if gamma == 0:
        return np.zeros_like(distance)
    with np.errstate(over="ignore"):
        return np.minimum(gamma * distance, _MOST)


class Kernel:
    """Base of all kernels, and the interface of their laws.

    A kernel that random binning can approximate has `pitch_quantile`. A kernel that random Fourier features can
    approximate has `samplers`; for samplers that draw by quantiles it has `frequencies`, and if it is `isotropic` also
    `radius`. Frequencies are for a frequency scale of 1.
    """

    power: ClassVar[int]  # gamma multiplies this power of the distance: 1 or 2
    isotropic: ClassVar[bool] = False  # True if the spectral law depends only on the norm of a frequency
    samplers: ClassVar[tuple[str, ...]] = ()  # samplers that can draw from the spectral law

    def n_uniforms(self, n_inputs: int) -> int:
        """Number of uniform numbers that one frequency needs."""
        return n_inputs

    def frequencies(self, u: np.ndarray) -> np.ndarray:
        """Return frequencies (n, n_inputs) from uniforms in (0, 1) of shape (n, n_uniforms)."""
        raise NotImplementedError

    def radius(self, u: np.ndarray, n_inputs: int) -> np.ndarray:
        """Return quantiles of the norm of a frequency at `u` in (0, 1), an array."""
        raise NotImplementedError

    def frequency_scale(self, gamma: np.ndarray) -> np.ndarray:
        """Return the factor of each input's frequencies."""
        with np.errstate(over="ignore"):
            return gamma if self.power == 1 else np.sqrt(2.0 * gamma)

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None, *, gamma: float | ArrayLike = 1.0) -> np.ndarray:
        """Compute the exact kernel matrix.

        Parameters
        ----------
        X : array-like of shape (n, n_inputs)
        Y : array-like of shape (m, n_inputs), default=None
            None means `X`.
        gamma : float or array-like of shape (n_inputs,), default=1.0
            Inverse length scale, one for all inputs or one per input; for `RBF` and `Matern` the inverse squared length
            scale.

        Returns
        -------
        K : ndarray of shape (n, m), float64

        Raises
        ------
        TypeError, ValueError
            If `X` or `Y` are not finite numbers or differ in their number of inputs, or `gamma` is negative.
        """
        checked = _pairs(X, Y, gamma, self.power)
        with np.errstate(over="ignore"):
            return self._exact(*checked)

    def _exact(self, X: np.ndarray, Y: np.ndarray, gamma: np.ndarray) -> np.ndarray:
        raise NotImplementedError


@dataclass(frozen=True)
class ProductKernel(Kernel):
    """A product over inputs of one profile of ``gamma_j |x_j - y_j|``."""

    power = 1

    def profile(self, t: np.ndarray) -> np.ndarray:
        """Return values at scaled distances `t = gamma |x - y|` along one input, with the shape of `t`."""
        raise NotImplementedError

    def _exact(self, X: np.ndarray, Y: np.ndarray, gamma: np.ndarray) -> np.ndarray:
        K = np.ones((X.shape[0], Y.shape[0]))
        for j, gamma_j in enumerate(gamma):
            K *= self.profile(_scaled(gamma_j, np.abs(X[:, j, None] - Y[:, j])))
        return K


class PitchKernel(Protocol):
    """A product kernel with a pitch law."""

    def profile(self, t: np.ndarray) -> np.ndarray:
        """See `ProductKernel`."""

    def pitch_quantile(self, u: np.ndarray) -> np.ndarray:
        """Return quantiles of the pitch at `u` in (0, 1) for gamma = 1, with the shape of `u`."""


@dataclass(frozen=True)
class RadialKernel(Kernel):
    """A function of ``s = sum_j gamma_j (x_j - y_j)^2``."""

    power = 2
    isotropic = True
    samplers = ("iid", "orthogonal", "qmc", "fastfood")

    def profile(self, s: np.ndarray) -> np.ndarray:
        """Return values at scaled squared distances `s`, with the shape of `s`."""
        raise NotImplementedError

    def _exact(self, X: np.ndarray, Y: np.ndarray, gamma: np.ndarray) -> np.ndarray:
        s = np.zeros((X.shape[0], Y.shape[0]))
        for j, gamma_j in enumerate(gamma):
            s += _scaled(gamma_j, (X[:, j, None] - Y[:, j]) ** 2)
        return self.profile(np.minimum(s, _MOST))
