"""Families of kernels, with their exact values and their laws."""

import numbers
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from binfeat.kernels.base import Kernel, ProductKernel, RadialKernel
from binfeat.kernels.quantiles import (
    LOG_RANGE,
    chi_quantile,
    gamma2_quantile,
    matern_profile,
    profile_distribution,
    profile_quantile,
    sinc_quantile,
    student_radius,
    student_scale,
)


@dataclass(frozen=True)
class Laplacian(ProductKernel):
    """``exp(-sum_j gamma_j |x_j - y_j|)``.

    Its pitch law is Gamma(2) with scale ``1 / gamma``, its spectral law independent Cauchy variables of
    scale `gamma`.
    """

    __module__ = "binfeat.kernels"  # as saved files name it

    samplers = ("iid", "qmc")

    def profile(self, t: np.ndarray) -> np.ndarray:
        return np.exp(-t)

    def pitch_quantile(self, u: np.ndarray) -> np.ndarray:
        return gamma2_quantile(u)

    def frequencies(self, u: np.ndarray) -> np.ndarray:
        return np.sign(u - 0.5) / np.tan(np.pi * np.minimum(u, 1.0 - u))  # precise in both tails


@dataclass(frozen=True)
class Hat(ProductKernel):
    """``prod_j max(0, 1 - gamma_j |x_j - y_j|)``.

    Every pitch is ``1 / gamma``. The spectral law is independent variables of density
    ``(1 - cos(w / gamma)) gamma / (pi w^2)``, drawn to 2e-15 in probability.
    """

    __module__ = "binfeat.kernels"  # as saved files name it

    samplers = ("iid", "qmc")

    def profile(self, t: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, 1.0 - t)

    def pitch_quantile(self, u: np.ndarray) -> np.ndarray:
        return np.ones_like(u)

    def frequencies(self, u: np.ndarray) -> np.ndarray:
        return sinc_quantile(u)


def _above(least, value, wanted):
    """The value as a float; TypeError or ValueError unless it is a number above `least`."""
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{wanted}, got {value!r}.")
    value = float(value)
    if not value > least:
        raise ValueError(f"{wanted}, got {value!r}.")
    return value


@dataclass(frozen=True)
class GammaPitch(ProductKernel):
    """The kernel of Gamma-distributed pitches with mean ``2 / gamma``, which vary less for a larger shape.

    With ``t = gamma |x - y| shape / 2`` and Q the regularised upper incomplete gamma function, its
    profile is ``Q(shape, t) - t / (shape - 1) Q(shape - 1, t)``. Shape 2 is the `Laplacian`; an
    infinite shape is ``max(0, 1 - gamma |x - y| / 2)``.

    Parameters
    ----------
    shape : float
        Shape of the Gamma law, above 1; may be `numpy.inf`.

    Raises
    ------
    TypeError, ValueError
        If `shape` is not a number above 1.
    """

    __module__ = "binfeat.kernels"  # as saved files name it

    shape: float

    def __post_init__(self):
        object.__setattr__(self, "shape", _above(1, self.shape, "shape must be a number above 1 (2 is the Laplacian)"))

    def profile(self, t: np.ndarray) -> np.ndarray:
        if np.isinf(self.shape):
            return np.maximum(0.0, 1.0 - np.asarray(t) / 2)
        t = np.asarray(t) * self.shape / 2
        rest = special.gammaincc(self.shape - 1, t)
        return special.gammaincc(self.shape, t) - t / (self.shape - 1) * rest

    def pitch_quantile(self, u: np.ndarray) -> np.ndarray:
        if np.isinf(self.shape):
            return np.full_like(u, 2.0)
        return special.gammaincinv(self.shape, u) * (2 / self.shape)


@dataclass(frozen=True)
class Product(ProductKernel):
    """``prod_j profile(gamma_j |x_j - y_j|)`` for a convex profile that falls from 1 to 0.

    Parameters
    ----------
    profile : callable
        Takes an array of distances ``t >= 0`` and returns an array of the same shape.
        ``F(t) = 1 - k(t) + t k'(t)`` must be a distribution function, which holds when k is
        convex with ``k(0) = 1`` and ``k -> 0``; it may have kinks.

    Raises
    ------
    TypeError, ValueError
        If `profile` is not callable, ``k(0)`` is not 1 or F is not a distribution function.

    Examples
    --------
    >>> from binfeat.kernels import Product
    >>> kernel = Product(lambda t: 1 / (1 + t))
    >>> kernel([[0.0]], [[3.0]])
    array([[0.25]])
    """

    __module__ = "binfeat.kernels"  # as saved files name it

    profile: Callable

    def __post_init__(self):
        if not callable(self.profile):
            raise TypeError(f"profile must be a callable of an array of distances, got {self.profile!r}.")
        at_zero = np.asarray(self.profile(np.zeros(1)))
        is_one = at_zero.dtype.kind in "iuf" and at_zero.shape == (1,) and abs(at_zero[0] - 1.0) <= 1e-12
        if not is_one:
            raise ValueError(f"profile must map an array to an array with profile(0) = 1, got {at_zero}.")
        log_t = np.linspace(-LOG_RANGE, LOG_RANGE, 4001)
        F = profile_distribution(self.profile, log_t)
        falls = np.flatnonzero(~(np.diff(F) >= -1e-7))
        if not np.isfinite(F).all() or falls.size:
            where = np.exp(log_t[falls[0] if falls.size else np.flatnonzero(~np.isfinite(F))[0]])
            raise ValueError(
                f"profile has no pitch law: F(t) = 1 - k(t) + t k'(t) must not decrease, and does near "
                f"t = {where:.3g}. A profile for random binning must be convex; exp(-t^2), for example, is not."
            )
        if abs(F[0]) > 1e-3 or abs(F[-1] - 1) > 1e-3:
            raise ValueError(
                f"profile has no pitch law: F(t) = 1 - k(t) + t k'(t) must increase from 0 to 1, got {F[0]:.3g} at "
                f"t = {np.exp(log_t[0]):.3g} and {F[-1]:.3g} at t = {np.exp(log_t[-1]):.3g}."
            )

    def pitch_quantile(self, u: np.ndarray) -> np.ndarray:
        return profile_quantile(self.profile, u)


@dataclass(frozen=True)
class Cauchy(ProductKernel):
    """``prod_j 1 / (1 + (gamma_j (x_j - y_j))^2)``; its spectral law is independent Laplace variables."""

    __module__ = "binfeat.kernels"  # as saved files name it

    samplers = ("iid", "qmc")

    def profile(self, t: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 + np.square(t))

    def frequencies(self, u: np.ndarray) -> np.ndarray:
        return np.log(2.0 * np.minimum(u, 1.0 - u)) * np.sign(0.5 - u)


@dataclass(frozen=True)
class RBF(RadialKernel):
    """``exp(-sum_j gamma_j (x_j - y_j)^2)``; its spectral law is independent normals of variance ``2 gamma``."""

    __module__ = "binfeat.kernels"  # as saved files name it

    def profile(self, s: np.ndarray) -> np.ndarray:
        return np.exp(-s)

    def frequencies(self, u: np.ndarray) -> np.ndarray:
        return special.ndtri(u)

    def radius(self, u: np.ndarray, n_inputs: int) -> np.ndarray:
        return chi_quantile(u, n_inputs)


@dataclass(frozen=True)
class Matern(RadialKernel):
    """``2^(1-nu) / Gamma(nu) z^nu K_nu(z)`` with ``z = sqrt(2 nu) r``, ``r = sqrt(2 sum_j gamma_j (x_j - y_j)^2)``.

    K_nu is the modified Bessel function. ``nu = 1/2`` is ``exp(-r)``, ``nu = inf`` the `RBF` of the same gamma. A
    function drawn from the Gaussian process of this kernel has derivatives of all orders below nu. The `length_scale`
    of `sklearn.gaussian_process.kernels.Matern` is ``1 / sqrt(2 gamma)``. The spectral law is Student's t with ``2 nu``
    degrees of freedom in as many dimensions as there are inputs, of scale ``sqrt(2 gamma)``.

    Parameters
    ----------
    nu : float
        Smoothness, above 0; may be `numpy.inf`.

    Raises
    ------
    TypeError, ValueError
        If `nu` is not a number above 0.

    Examples
    --------
    >>> from binfeat.kernels import Matern
    >>> Matern(0.5)([[0.0]], [[3.0]], gamma=0.5).round(6)  # exp(-3)
    array([[0.049787]])
    """

    __module__ = "binfeat.kernels"  # as saved files name it

    nu: float

    def __post_init__(self):
        object.__setattr__(self, "nu", _above(0, self.nu, "nu must be a number above 0 (numpy.inf is the RBF)"))

    @property
    def _is_rbf(self):
        return self.nu > 1e12  # the two then differ by less than 1e-12

    def profile(self, s: np.ndarray) -> np.ndarray:
        return np.exp(-s) if self._is_rbf else matern_profile(s, self.nu)

    def n_uniforms(self, n_inputs: int) -> int:
        return n_inputs if self._is_rbf else n_inputs + 1

    def frequencies(self, u: np.ndarray) -> np.ndarray:
        if self._is_rbf:
            return special.ndtri(u)
        # The scale matters most, so it takes the first uniform, where Sobol points are most even.
        return special.ndtri(u[:, 1:]) * student_scale(u[:, :1], self.nu)

    def radius(self, u: np.ndarray, n_inputs: int) -> np.ndarray:
        return chi_quantile(u, n_inputs) if self._is_rbf else student_radius(u, n_inputs, self.nu)


@dataclass(frozen=True)
class Spectral(Kernel):
    """The kernel ``E[cos(sum_j gamma_j w_j (x_j - y_j))]`` of frequencies w that the caller draws.

    Their law may be anything; if it is chosen for the task and not for a kernel, the features are the random kitchen
    sinks of Rahimi & Recht (2009).

    Parameters
    ----------
    sampler : callable
        ``sampler(n_frequencies, n_inputs, rng)`` with a `numpy.random.Generator` returns an array of
        shape (n_frequencies, n_inputs): independent rows of finite numbers.

    References
    ----------
    A. Rahimi and B. Recht, "Weighted Sums of Random Kitchen Sinks: Replacing minimization with
    randomization in learning", NIPS 2009.

    Examples
    --------
    >>> from binfeat.kernels import Spectral
    >>> kernel = Spectral(lambda n_frequencies, n_inputs, rng: rng.uniform(-1, 1, (n_frequencies, n_inputs)))
    """

    __module__ = "binfeat.kernels"  # as saved files name it

    sampler: Callable[[int, int, np.random.Generator], np.ndarray]
    power = 1
    samplers = ("iid",)

    def __post_init__(self):
        if not callable(self.sampler):
            raise TypeError(f"sampler must be a callable of n_frequencies, n_inputs and rng, got {self.sampler!r}.")

    def draw(self, n_frequencies: int, n_inputs: int, rng: np.random.Generator) -> np.ndarray:
        """Frequencies from the caller's sampler; ValueError if they are not finite numbers of the right shape."""
        drawn, shape = np.asarray(self.sampler(n_frequencies, n_inputs, rng)), (n_frequencies, n_inputs)
        wanted = f"sampler must return finite real numbers of shape (n_frequencies, n_inputs) = {shape}"
        if drawn.shape != shape or drawn.dtype.kind not in "iuf":
            raise ValueError(f"{wanted}; got shape {drawn.shape} of dtype {drawn.dtype}.")
        if not np.isfinite(drawn).all():
            raise ValueError(f"{wanted}; got values that are not finite.")
        return drawn.astype(np.float64)

    def _exact(self, X: np.ndarray, Y: np.ndarray, gamma: np.ndarray) -> np.ndarray:
        raise TypeError(
            "kernels.Spectral has no exact value: only the sampler of its frequencies is known. Estimate it with "
            "Z = RandomFourier(kernel=..., n_components=many).fit_transform(X) as Z @ Z.T, or use another kernel."
        )
