"""Kernels, their exact values, and the distributions (laws) that random features are drawn from.

A kernel object has no length scale: `gamma` is a parameter of the map and of each call. Product kernels are
``prod_j k(gamma_j |x_j - y_j|)`` with a profile ``k`` on ``[0, inf)``, so gamma is an inverse length scale. Radial
kernels depend on ``s = sum_j gamma_j (x_j - y_j)^2``, so their gamma is one over a squared length. A gamma of 0 ignores
the input.

Random binning needs the *pitch law* of a product's profile: the law of the cell widths, with distribution function
``F(t) = 1 - k(t) + t k'(t)`` (Rahimi & Recht 2007, section 4 and Lemma 1, integrated once so that no second derivative
is needed). Random Fourier features need the *spectral law*: the law of frequencies w with
``E[cos(w @ (x - y))] = k(x, y)``. The maps and samplers of each kernel follow; D_j is ``x_j - y_j``, q the share of
`Skip`, k_j its kernel along input j:

============  ==========================================  =======  ==============================
kernel        value                                       binning  Fourier
============  ==========================================  =======  ==============================
`Laplacian`   ``exp(-sum_j gamma_j |x_j - y_j|)``         yes      iid, qmc
`Hat`         ``prod_j max(0, 1 - gamma_j |x_j - y_j|)``  yes      iid, qmc
`GammaPitch`  between the two, by its shape               yes      no
`Product`     ``prod_j k(gamma_j |x_j - y_j|)``           yes      no
`Skip`        ``prod_j (q + (1 - q) k_j)``                yes      no
`Cauchy`      ``prod_j 1 / (1 + (gamma_j D_j)^2)``        no       iid, qmc
`RBF`         ``exp(-s)``                                 no       iid, orthogonal, qmc, fastfood
`Matern`      from ``exp(-sqrt(2 s))`` to the RBF         no       iid, orthogonal, qmc, fastfood
`Spectral`    the kernel of the caller's frequencies      no       iid
============  ==========================================  =======  ==============================
"""

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from scipy import special

from binfeat._kernels.base import Kernel, PitchKernel, ProductKernel, RadialKernel
from binfeat._kernels.quantiles import (
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

__all__ = ["RBF", "Cauchy", "GammaPitch", "Hat", "Laplacian", "Matern", "Product", "Skip", "Spectral"]


@dataclass(frozen=True)
class Laplacian(ProductKernel):
    """``exp(-sum_j gamma_j |x_j - y_j|)``.

    Its pitch law is Gamma(2) with scale ``1 / gamma``, its spectral law independent Cauchy variables of
    scale `gamma`.
    """

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
class Skip(ProductKernel):
    """``prod_j (share + (1 - share) k(gamma_j |x_j - y_j|))``: every grid skips each input with probability `share`.

    Multiplied out, it is a sum of products of fewer inputs each, which suits targets that are sums of functions of few
    inputs. The pitch is infinite with probability `share`, and else has the pitch law of k.

    Parameters
    ----------
    kernel : object of this module that has a pitch law
        Kernel with the profile k.
    share : float
        At least 0 and below 1.

    Raises
    ------
    ValueError
        If `kernel` has no pitch law or `share` is out of range.
    """

    kernel: PitchKernel
    share: float

    def __post_init__(self):
        binning_kernel(self.kernel)
        if isinstance(self.kernel, str) or not (isinstance(self.share, numbers.Real) and 0 <= self.share < 1):
            raise ValueError(
                f"Skip requires a kernel object and a share from 0 to below 1, got {self.kernel!r} and {self.share!r}."
            )

    def profile(self, t: np.ndarray) -> np.ndarray:
        return self.share + (1.0 - self.share) * self.kernel.profile(t)

    def pitch_quantile(self, u: np.ndarray) -> np.ndarray:
        below = np.asarray(u) / (1.0 - self.share)
        taken = below < 1.0
        return np.where(taken, self.kernel.pitch_quantile(np.where(taken, below, 0.5)), np.inf)


@dataclass(frozen=True)
class Cauchy(ProductKernel):
    """``prod_j 1 / (1 + (gamma_j (x_j - y_j))^2)``; its spectral law is independent Laplace variables."""

    samplers = ("iid", "qmc")

    def profile(self, t: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 + np.square(t))

    def frequencies(self, u: np.ndarray) -> np.ndarray:
        return np.log(2.0 * np.minimum(u, 1.0 - u)) * np.sign(0.5 - u)


@dataclass(frozen=True)
class RBF(RadialKernel):
    """``exp(-sum_j gamma_j (x_j - y_j)^2)``; its spectral law is independent normals of variance ``2 gamma``."""

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


_BY_NAME: dict[str, Callable] = {"cauchy": Cauchy, "hat": Hat, "laplacian": Laplacian, "rbf": RBF}

_CONCAVE = "is concave near 0, so F(t) = 1 - k(t) + t k'(t) is negative and no law of pitches gives it"
_NO_PITCH_LAW: dict[type, str] = {
    RBF: f"its profile exp(-t^2) {_CONCAVE}",
    Cauchy: f"its profile 1 / (1 + t^2) {_CONCAVE}",
    Matern: "it is not a product over inputs of one profile",
    Spectral: "only the sampler of its frequencies is known",
}


EXACT_NUS = (0.5, 1.5, 2.5, np.inf)  # of Matern kernels with learnable length scales


def _resolve(kernel: object) -> object:
    return _BY_NAME[kernel]() if isinstance(kernel, str) and kernel in _BY_NAME else kernel


def _known(kernel: object, choice: str) -> Kernel:
    """The kernel object for a name or an object; ValueError, which says the choice, if it is none."""
    found = _resolve(kernel)
    if not isinstance(found, Kernel):
        raise ValueError(f"kernel must be {choice}; got {kernel!r}.")
    return found


def binning_kernel(kernel: object, instead: str = "RandomFourier for this kernel") -> ProductKernel:
    """The kernel object for a name or an object; ValueError if the name is unknown or it has no pitch law."""
    found = _resolve(kernel)
    if type(found) in _NO_PITCH_LAW:
        raise ValueError(
            f"kernel={kernel!r} cannot be approximated by random binning: {_NO_PITCH_LAW[type(found)]}. Use "
            f"kernel='laplacian' or kernels.GammaPitch(shape) here, or {instead}."
        )
    if not hasattr(found, "pitch_quantile") or not isinstance(found, ProductKernel):
        raise ValueError(
            "kernel must be 'laplacian', 'hat', or one of kernels.Laplacian, Hat, GammaPitch, Product, Skip; "
            f"got {kernel!r}."
        )
    return found


def is_exact(kernel: object) -> TypeGuard[Kernel]:
    """Return True if exact and local models support the kernel."""
    return isinstance(kernel, Laplacian | RBF) or (isinstance(kernel, Matern) and kernel.nu in EXACT_NUS)


def any_kernel(kernel: object, asked: str) -> Kernel:
    """The kernel object for a name or an object; ValueError if neither exact models nor grids support it."""
    found = _known(
        kernel,
        "'auto', 'laplacian', 'rbf', 'hat', or one of kernels.Laplacian, RBF, Matern, Hat, GammaPitch, Product, Skip",
    )
    if isinstance(found, Laplacian | RBF | Matern):
        return exact_kernel(found, asked)
    return binning_kernel(kernel, "RandomFourier, which takes it")


def exact_kernel(kernel: object, asked: str) -> Kernel:
    """The kernel object for a name or an object; ValueError if exact and local models do not support it."""
    found = _resolve(kernel)
    if is_exact(found):
        return found
    raise ValueError(
        f"{asked} accepts kernel='auto', 'laplacian', 'rbf', or one of kernels.Laplacian, RBF, and Matern with nu 0.5, "
        f"1.5, 2.5 or infinity; got {kernel!r}."
    )


def fourier_kernel(kernel: object) -> Kernel:
    """The kernel object for a name or an object; ValueError if the name is unknown or it has no spectral law."""
    found = _known(
        kernel,
        "'rbf', 'laplacian', 'cauchy', 'hat', or one of kernels.RBF, Laplacian, Cauchy, Hat, Matern, Spectral",
    )
    if not found.samplers:
        raise ValueError(
            f"kernel={kernel!r} has no known spectral law, so no random Fourier features. Use RandomBinning for it, "
            "or kernel='laplacian' or 'hat', which have both laws."
        )
    return found
