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
    """Laplacian kernel, ``exp(-sum_j gamma_j |x_j - y_j|)``.

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
    """Hat kernel, ``prod_j max(0, 1 - gamma_j |x_j - y_j|)``, which is 0 beyond a distance of ``1 / gamma_j``.

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


def _above(least: float, value: object, wanted: str) -> float:
    """Return the value as a float; TypeError or ValueError unless it is a number above `least`."""
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{wanted}, got {value!r}.")
    value = float(value)
    if not value > least:
        raise ValueError(f"{wanted}, got {value!r}.")
    return value


@dataclass(frozen=True)
class GammaPitch(ProductKernel):
    """Family of kernels between the Laplacian and the hat kernel, with Gamma-distributed cell widths (pitches).

    Shape 2 is the `Laplacian`. An infinite shape is the `Hat` kernel of twice the length scale,
    ``max(0, 1 - gamma |x - y| / 2)``. The mean pitch is ``2 / gamma``, and pitches vary less for a larger shape. With
    ``t = gamma |x - y| shape / 2`` and Q the regularized upper incomplete gamma function, the profile is
    ``Q(shape, t) - t / (shape - 1) Q(shape - 1, t)``.

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

    def __post_init__(self) -> None:
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
    """Product kernel of a convex profile that decreases from 1 to 0, ``prod_j profile(gamma_j |x_j - y_j|)``.

    Parameters
    ----------
    profile : callable
        Function k of an array of distances ``t >= 0``, which returns an array of the same shape. It must be convex with
        ``k(0) = 1`` and ``k -> 0``, so that ``F(t) = 1 - k(t) + t k'(t)`` is a distribution function. Kinks are
        allowed.

    Raises
    ------
    TypeError, ValueError
        If `profile` is a kernel or not callable, ``k(0)`` is not 1 or F is not a distribution function.

    Examples
    --------
    >>> from binfeat.kernels import Product
    >>> kernel = Product(lambda t: 1 / (1 + t))
    >>> kernel([[0.0]], [[3.0]])
    array([[0.25]])
    """

    __module__ = "binfeat.kernels"  # as saved files name it

    profile: Callable

    def __post_init__(self) -> None:
        if not callable(self.profile) or isinstance(self.profile, Kernel | type):
            raise TypeError(
                f"profile must be a function of one array of distances, not a kernel, got {self.profile!r}. "
                "Pass, for example, lambda t: 1 / (1 + t)."
            )
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
                f"profile has no pitch law: F(t) = 1 - k(t) + t k'(t) must be finite and must not decrease, but this "
                f"fails near t = {where:.3g}. A profile for random binning must be convex; exp(-t^2), for example, is "
                "not."
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
    """Cauchy kernel, ``prod_j 1 / (1 + (gamma_j (x_j - y_j))^2)``; its spectral law is a product of Laplace laws."""

    __module__ = "binfeat.kernels"  # as saved files name it

    samplers = ("iid", "qmc")

    def profile(self, t: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 + np.square(t))

    def frequencies(self, u: np.ndarray) -> np.ndarray:
        return np.log(2.0 * np.minimum(u, 1.0 - u)) * np.sign(0.5 - u)


@dataclass(frozen=True)
class RBF(RadialKernel):
    """Gaussian kernel, ``exp(-sum_j gamma_j (x_j - y_j)^2)``; its spectral law is normal with variance ``2 gamma``."""

    __module__ = "binfeat.kernels"  # as saved files name it

    def profile(self, s: np.ndarray) -> np.ndarray:
        return np.exp(-s)

    def frequencies(self, u: np.ndarray) -> np.ndarray:
        return special.ndtri(u)

    def radius(self, u: np.ndarray, n_inputs: int) -> np.ndarray:
        return chi_quantile(u, n_inputs)


@dataclass(frozen=True)
class Matern(RadialKernel):
    """Matern kernel, from ``exp(-r)`` for ``nu = 1/2`` to the `RBF` of the same gamma for ``nu = inf``.

    With ``r = sqrt(2 sum_j gamma_j (x_j - y_j)^2)``, ``z = sqrt(2 nu) r`` and the modified Bessel function K_nu, it is
    ``2^(1-nu) / Gamma(nu) z^nu K_nu(z)``. Functions drawn from the Gaussian process of this kernel have derivatives of
    all orders below nu. The `length_scale` of `sklearn.gaussian_process.kernels.Matern` is ``1 / sqrt(2 gamma)``. The
    spectral law is the multivariate Student's t with ``2 nu`` degrees of freedom and scale ``sqrt(2 gamma)``.

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "nu", _above(0, self.nu, "nu must be a number above 0 (numpy.inf is the RBF)"))

    @property
    def _is_rbf(self) -> bool:
        return self.nu > 1e12  # the two then differ by less than 1e-12

    def profile(self, s: np.ndarray) -> np.ndarray:
        return np.exp(-s) if self._is_rbf else matern_profile(s, self.nu)

    def n_uniforms(self, n_inputs: int) -> int:
        return n_inputs if self._is_rbf else n_inputs + 1

    def frequencies(self, u: np.ndarray) -> np.ndarray:
        if self._is_rbf:
            return special.ndtri(u)
        # The scale matters most, so it uses the first uniform, for which Sobol points are most even.
        return special.ndtri(u[:, 1:]) * student_scale(u[:, :1], self.nu)

    def radius(self, u: np.ndarray, n_inputs: int) -> np.ndarray:
        return chi_quantile(u, n_inputs) if self._is_rbf else student_radius(u, n_inputs, self.nu)


@dataclass(frozen=True)
class Spectral(Kernel):
    """Kernel of frequencies w from your own sampler, ``E[cos(sum_j gamma_j w_j (x_j - y_j))]``.

    Any distribution of frequencies is allowed. A distribution that is chosen for the task, and not for a kernel, yields
    the random kitchen sinks of Rahimi & Recht (2009).

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

    def __post_init__(self) -> None:
        if not callable(self.sampler):
            raise TypeError(f"sampler must be a callable of n_frequencies, n_inputs and rng, got {self.sampler!r}.")

    def draw(self, n_frequencies: int, n_inputs: int, rng: np.random.Generator) -> np.ndarray:
        """Return frequencies of the caller's sampler; ValueError unless they are finite and have the right shape."""
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
