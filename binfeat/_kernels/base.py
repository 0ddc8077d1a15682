"""What the kernels of `binfeat.kernels` share."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from binfeat._common.validation import check_gamma, checked_array

_MOST = 1e150  # profiles may square it


def _pairs(X, Y, gamma):
    """Check two sets of points and give them with one gamma per input."""
    checks = {"dtype": np.float64, "ensure_min_samples": 0, "ensure_min_features": 0}
    X = checked_array(X, input_name="X", **checks)
    Y = X if Y is None else checked_array(Y, input_name="Y", **checks)
    if X.shape[1] != Y.shape[1]:
        raise ValueError(f"X and Y must have the same number of inputs; got shapes {X.shape} and {Y.shape}.")
    return X, Y, check_gamma(gamma, X.shape[1], some=False)


def _scaled(width, distance):
    """Their product, limited, so that a profile meets neither infinity nor infinity times 0."""
    return np.minimum(width * np.minimum(distance, _MOST), _MOST)


class Kernel:
    """What kernels share, and the protocol of their laws.

    A kernel that random binning can approximate has `pitch_quantile`. One that random Fourier features
    can approximate has `samplers`, and for those that draw by quantiles `frequencies`; those that are
    `isotropic` also have `radius`. All of them are for a frequency scale of 1.
    """

    power: ClassVar[int]  # of the distance that gamma multiplies: 1 or 2
    isotropic: ClassVar[bool] = False  # whether the spectral law depends on the norm of a frequency alone
    samplers: ClassVar[tuple[str, ...]] = ()  # that can draw from the spectral law

    def n_uniforms(self, n_inputs):
        """Uniform numbers that one frequency takes."""
        return n_inputs

    def frequencies(self, u):
        """Frequencies of shape (n, n_inputs) from uniforms in (0, 1) of shape (n, n_uniforms)."""
        raise NotImplementedError

    def radius(self, u, n_inputs):
        """Norm of a frequency whose distribution function is `u`; an array like `u` in (0, 1)."""
        raise NotImplementedError

    def frequency_scale(self, gamma):
        """Factor of each input's frequencies."""
        with np.errstate(over="ignore"):
            return gamma if self.power == 1 else np.sqrt(2.0 * gamma)

    def __call__(self, X, Y=None, *, gamma=1.0):
        """Exact kernel matrix.

        Parameters
        ----------
        X : array-like of shape (n, n_inputs)
        Y : array-like of shape (m, n_inputs), default=None
            None means `X`.
        gamma : float or array-like of shape (n_inputs,), default=1.0
            In units of one over the input's, or over their square for `RBF` and `Matern`.

        Returns
        -------
        K : ndarray of shape (n, m), float64

        Raises
        ------
        TypeError, ValueError
            If `X` or `Y` are no finite numbers or differ in their inputs, or `gamma` is negative.
        """
        checked = _pairs(X, Y, gamma)
        with np.errstate(over="ignore"):
            return self._exact(*checked)

    def _exact(self, X, Y, gamma):
        raise NotImplementedError


@dataclass(frozen=True)
class ProductKernel(Kernel):
    """A product over inputs of one profile of ``gamma_j |x_j - y_j|``."""

    power = 1

    def profile(self, t):
        """Value at scaled distance `t = gamma |x - y|` along one input; an array of the shape of `t`."""
        raise NotImplementedError

    def _exact(self, X, Y, gamma):
        K = np.ones((X.shape[0], Y.shape[0]))
        for j, width in enumerate(gamma):
            K *= self.profile(_scaled(width, np.abs(X[:, j, None] - Y[:, j])))
        return K


@dataclass(frozen=True)
class RadialKernel(Kernel):
    """A function of ``s = sum_j gamma_j (x_j - y_j)^2``."""

    power = 2
    isotropic = True
    samplers = ("iid", "orthogonal", "qmc", "fastfood")

    def profile(self, s):
        """Value at scaled squared distance `s`; an array of the shape of `s`."""
        raise NotImplementedError

    def _exact(self, X, Y, gamma):
        s = np.zeros((X.shape[0], Y.shape[0]))
        for j, width in enumerate(gamma):
            s += _scaled(width, (X[:, j, None] - Y[:, j]) ** 2)
        return self.profile(np.minimum(s, _MOST))
