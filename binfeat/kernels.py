"""Kernels, their exact values, and the laws that random features draw from.

A kernel here has no width of its own: `gamma` belongs to the map and to each call. With a profile
``k`` on ``[0, inf)``, a product kernel is ``prod_j k(gamma_j |x_j - y_j|)``. Random binning needs the
*pitch law* of its profile, whose distribution function is ``F(t) = 1 - k(t) + t k'(t)`` (Rahimi &
Recht 2007, section 4 and Lemma 1, integrated once so that no second derivative is needed).

============  ==========================================  =======
kernel        value                                       binning
============  ==========================================  =======
`Laplacian`   ``exp(-sum_j gamma_j |x_j - y_j|)``         yes
`Hat`         ``prod_j max(0, 1 - gamma_j |x_j - y_j|)``  yes
`GammaPitch`  between the two, by its shape               yes
`Product`     ``prod_j k(gamma_j |x_j - y_j|)``           yes
`RBF`         ``exp(-sum_j gamma_j (x_j - y_j)^2)``       no
============  ==========================================  =======
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from binfeat._laws import cauchy_quantile, chi_quantile

__all__ = ["RBF", "GammaPitch", "Hat", "Laplacian", "Product"]


def _pairs(X, Y, gamma):
    """Check two sets of points and give them with one gamma per input."""
    X = np.asarray(X, dtype=np.float64)
    Y = X if Y is None else np.asarray(Y, dtype=np.float64)
    if X.ndim != 2 or Y.ndim != 2 or X.shape[1] != Y.shape[1]:
        raise ValueError(f"X and Y must be 2-d with the same number of inputs; got shapes {X.shape} and {Y.shape}.")
    return X, Y, np.broadcast_to(np.asarray(gamma, dtype=np.float64), X.shape[1:])


class _Kernel:
    """What kernels share, and the protocol of their laws.

    A kernel that random binning can approximate has `pitch_quantile`, one that random Fourier features
    can approximate has `frequencies`; those that are `isotropic` also have `radius`.
    """

    power: ClassVar[int]  # of the distance that gamma multiplies: 1 or 2
    isotropic: ClassVar[bool] = False  # whether the spectral law depends on the norm of a frequency alone

    def n_uniforms(self, n_inputs):
        """Uniform numbers that one frequency takes."""
        return n_inputs

    def frequency_scale(self, gamma):
        """Factor of each input's frequencies, which `frequencies` draws for a factor of 1."""
        return gamma if self.power == 1 else np.sqrt(2.0 * gamma)


@dataclass(frozen=True)
class _ProductKernel(_Kernel):
    """A kernel that is a product over inputs of one profile of ``gamma_j |x_j - y_j|``."""

    power = 1

    def profile(self, t):
        """Value at scaled distance `t = gamma |x - y|` along one input; an array of the shape of `t`."""
        raise NotImplementedError

    def __call__(self, X, Y=None, *, gamma=1.0):
        """Exact kernel matrix.

        Parameters
        ----------
        X : array-like of shape (n, n_inputs)
        Y : array-like of shape (m, n_inputs), default=None
            None means `X`.
        gamma : float or array-like of shape (n_inputs,), default=1.0
            In units of one over the input's.

        Returns
        -------
        K : ndarray of shape (n, m), float64
        """
        X, Y, gamma = _pairs(X, Y, gamma)
        K = np.ones((X.shape[0], Y.shape[0]))
        for j, width in enumerate(gamma):
            K *= self.profile(width * np.abs(X[:, j, None] - Y[:, j]))
        return K


@dataclass(frozen=True)
class Laplacian(_ProductKernel):
    """``exp(-sum_j gamma_j |x_j - y_j|)``; its pitch law is Gamma(2) with scale ``1 / gamma``."""

    def profile(self, t):
        return np.exp(-t)

    def pitch_quantile(self, u):
        # Newton on the convex t - log(1 + t) = -log(1 - u), from the upper bound y + sqrt(2 y) of its
        # root (Chatzigeorgiou 2013): 12 times faster than scipy.special.gammaincinv(2, u).
        y = -np.log1p(-np.asarray(u))
        t = y + np.sqrt(2 * y)
        for _ in range(6):
            t -= (t - np.log1p(t) - y) * (1 + t) / t
        return t

    def frequencies(self, u):
        return cauchy_quantile(u)


@dataclass(frozen=True)
class Hat(_ProductKernel):
    """``prod_j max(0, 1 - gamma_j |x_j - y_j|)``; every pitch is ``1 / gamma``."""

    def profile(self, t):
        return np.maximum(0.0, 1.0 - t)

    def pitch_quantile(self, u):
        return np.ones_like(u)


@dataclass(frozen=True)
class GammaPitch(_ProductKernel):
    """The kernel of Gamma-distributed pitches of mean ``2 / gamma``: smoother widths for a larger shape.

    With ``t = gamma |x - y| shape / 2`` and Q the regularised upper incomplete gamma function, its
    profile is ``Q(shape, t) - t / (shape - 1) Q(shape - 1, t)``. Shape 2 is the `Laplacian`; an
    infinite shape is ``max(0, 1 - gamma |x - y| / 2)``.

    Parameters
    ----------
    shape : float
        Shape of the Gamma law, above 1; may be `numpy.inf`.

    Raises
    ------
    ValueError
        If `shape` is not a number above 1.
    """

    shape: float

    def __post_init__(self):
        if not self.shape > 1:
            raise ValueError(f"shape must be a number above 1 (2 is the Laplacian), got {self.shape!r}.")

    def profile(self, t):
        if np.isinf(self.shape):
            return np.maximum(0.0, 1.0 - np.asarray(t) / 2)
        t = np.asarray(t) * self.shape / 2
        rest = special.gammaincc(self.shape - 1, t)
        return special.gammaincc(self.shape, t) - t / (self.shape - 1) * rest

    def pitch_quantile(self, u):
        if np.isinf(self.shape):
            return np.full_like(u, 2.0)
        return special.gammaincinv(self.shape, u) * (2 / self.shape)


_LOG_STEP = 2.0**-17  # balances the truncation and the rounding of the central difference: 1e-10 in F
_TOLERANCE = 1e-7
_LOG_RANGE = 30.0 * np.log(2.0)  # pitches are looked for between 2^-30 and 2^30


@dataclass(frozen=True)
class Product(_ProductKernel):
    """``prod_j profile(gamma_j |x_j - y_j|)`` for a convex profile that falls from 1 to 0.

    Parameters
    ----------
    profile : callable
        Takes an array of distances ``t >= 0`` and returns an array of the same shape.
        ``F(t) = 1 - k(t) + t k'(t)`` must be a distribution function, which holds when k is
        convex with ``k(0) = 1`` and ``k -> 0``; kinks are welcome.

    Raises
    ------
    ValueError
        If ``k(0)`` is not 1 or F is not a distribution function.

    Examples
    --------
    >>> from binfeat.kernels import Product
    >>> kernel = Product(lambda t: 1 / (1 + t))
    >>> kernel([[0.0]], [[3.0]])
    array([[0.25]])
    """

    profile: Callable

    def __post_init__(self):
        at_zero = np.asarray(self.profile(np.zeros(1)), dtype=np.float64)
        if at_zero.shape != (1,) or not np.isclose(at_zero[0], 1.0, rtol=0, atol=1e-12):
            raise ValueError(f"profile must map an array to an array with profile(0) = 1, got {at_zero}.")
        log_t = np.linspace(-_LOG_RANGE, _LOG_RANGE, 4001)
        F = self._distribution(log_t)
        falls = np.flatnonzero(~(np.diff(F) >= -_TOLERANCE))
        if not np.isfinite(F).all() or falls.size:
            where = np.exp(log_t[falls[0] if falls.size else np.flatnonzero(~np.isfinite(F))[0]])
            raise ValueError(
                f"profile has no pitch law: F(t) = 1 - k(t) + t k'(t) must not fall, and does near t = {where:.3g}. "
                "A profile for random binning must be convex; exp(-t^2), for one, is not."
            )
        if abs(F[0]) > 1e-3 or abs(F[-1] - 1) > 1e-3:
            raise ValueError(
                f"profile has no pitch law: F(t) = 1 - k(t) + t k'(t) must rise from 0 to 1, got {F[0]:.3g} at "
                f"t = {np.exp(log_t[0]):.3g} and {F[-1]:.3g} at t = {np.exp(log_t[-1]):.3g}."
            )

    def _distribution(self, log_t):
        """``F(exp(log_t))``, with ``t k'(t)`` as the derivative of k in ``log t``."""
        value, above, below = (
            np.asarray(self.profile(np.exp(log_t + step)), dtype=np.float64) for step in (0.0, _LOG_STEP, -_LOG_STEP)
        )
        return 1.0 - value + (above - below) / (2 * _LOG_STEP)

    def pitch_quantile(self, u):
        u = np.asarray(u)
        low, high = np.full(u.shape, -_LOG_RANGE), np.full(u.shape, _LOG_RANGE)
        for _ in range(45):  # until the bracket is narrower than 2^-32 of the pitch
            middle = (low + high) / 2
            below = self._distribution(middle) < u
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.exp((low + high) / 2)


@dataclass(frozen=True)
class _RadialKernel(_Kernel):
    """A kernel that is a function of ``sum_j gamma_j (x_j - y_j)^2``."""

    power = 2
    isotropic = True

    def profile(self, s):
        """Value at the scaled squared distance `s`; an array of the shape of `s`."""
        raise NotImplementedError

    def __call__(self, X, Y=None, *, gamma=1.0):
        """Exact kernel matrix.

        Parameters
        ----------
        X : array-like of shape (n, n_inputs)
        Y : array-like of shape (m, n_inputs), default=None
            None means `X`.
        gamma : float or array-like of shape (n_inputs,), default=1.0
            In units of one over the input's squared.

        Returns
        -------
        K : ndarray of shape (n, m), float64
        """
        X, Y, gamma = _pairs(X, Y, gamma)
        distances = np.zeros((X.shape[0], Y.shape[0]))
        for j, width in enumerate(gamma):
            distances += width * (X[:, j, None] - Y[:, j]) ** 2
        return self.profile(distances)


@dataclass(frozen=True)
class RBF(_RadialKernel):
    """``exp(-sum_j gamma_j (x_j - y_j)^2)``: no pitch law, hence no random binning."""

    def profile(self, s):
        return np.exp(-s)

    def frequencies(self, u):
        return special.ndtri(u)

    def radius(self, u, n_inputs):
        return chi_quantile(u, n_inputs)


_BY_NAME: dict[str, Callable] = {"laplacian": Laplacian, "hat": Hat, "rbf": RBF}


def binning_kernel(kernel):
    """The kernel object that `kernel` names, if random binning can approximate it.

    Raises
    ------
    ValueError
        If the name is unknown or the kernel has no pitch law.
    """
    if isinstance(kernel, str) and kernel in _BY_NAME:
        kernel = _BY_NAME[kernel]()
    if isinstance(kernel, RBF):
        raise ValueError(
            "kernel='rbf' cannot be approximated by random binning: its profile exp(-t^2) is concave near 0, so "
            "F(t) = 1 - k(t) + t k'(t) falls below 0 and no law of pitches has it. Use kernel='laplacian' or "
            "kernels.GammaPitch(shape) here, or random Fourier features for the RBF."
        )
    if not isinstance(kernel, _ProductKernel):
        raise ValueError(
            f"kernel must be 'laplacian', 'hat', or one of kernels.Laplacian, Hat, GammaPitch, Product; got {kernel!r}."
        )
    return kernel


def fourier_kernel(kernel):
    """The kernel object that `kernel` names, if random Fourier features can approximate it.

    Raises
    ------
    ValueError
        If the name is unknown or the kernel has no spectral law.
    """
    if isinstance(kernel, str) and kernel in _BY_NAME:
        kernel = _BY_NAME[kernel]()
    if not isinstance(kernel, _Kernel) or not hasattr(kernel, "frequencies"):
        raise ValueError(f"kernel must be 'rbf' or 'laplacian'; got {kernel!r}.")
    return kernel
