"""Quantile functions of pitch and spectral laws, and the profile of the Matern kernels, as functions of arrays.

A spectral law is the Fourier transform of a kernel (Bochner's theorem): frequencies w drawn from it
have ``E[cos(w @ (x - y))] = k(x, y)``. All laws here are symmetric about 0.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.polynomial import Polynomial
from scipy import special

_FASTEST = 2.0**64  # limit of the norms of heavy-tailed laws: finite in float32, and above all frequencies that matter
_NOISE = 4e-15  # in pi times a probability, above the rounding error of Si


def gamma2_quantile(u: np.ndarray) -> np.ndarray:
    """Return quantiles of the density ``t exp(-t)``, t > 0, 12 times as fast as ``scipy.special.gammaincinv(2, u)``."""
    # Newton on the convex t - log(1 + t) = -log(1 - u), from the upper bound y + sqrt(2 y) of its
    # root (Chatzigeorgiou 2013).
    y = -np.log1p(-np.asarray(u))
    t = y + np.sqrt(2 * y)
    for _ in range(6):
        t -= (t - np.log1p(t) - y) * (1 + t) / t
    return t


def sinc_quantile(u: np.ndarray) -> np.ndarray:
    """Return quantiles of the density ``sinc(w / 2)^2 / (2 pi) = (1 - cos w) / (pi w^2)``, to 2e-15 in probability.

    The upper tail is ``S(w) = 1/2 - (Si(w) - (1 - cos w) / w) / pi``. Its reciprocal is within 1.1 of
    ``pi w``, which brackets the root, and nearly ``pi (w - sin w)``. Newton's method is fast for it, except for u
    next to a zero of the density, at the multiples of ``2 pi``.
    """
    tail = np.pi * np.minimum(u, 1.0 - u).ravel()
    w = 1.0 / tail
    low, high = np.maximum(w - 1.1, 0.0), w + 1.1
    left = np.arange(w.size)
    while left.size:
        x, goal = w[left], tail[left]
        mass = 2.0 * np.sin(x / 2) ** 2 / x
        above = np.pi / 2 - special.sici(x)[0] + mass
        far = np.abs(above - goal) > _NOISE
        left, x, goal, mass, above = left[far], x[far], goal[far], mass[far], above[far]
        low[left], high[left] = np.where(above > goal, x, low[left]), np.where(above > goal, high[left], x)
        with np.errstate(divide="ignore", invalid="ignore"):
            x = x + (1.0 / goal - 1.0 / above) * above**2 * x / mass
        inside = (low[left] < x) & (x < high[left])
        w[left] = np.where(inside, x, (low[left] + high[left]) / 2)
    return w.reshape(u.shape) * np.sign(u - 0.5)


LOG_RANGE = 30.0 * np.log(2.0)  # pitches are searched between 2^-30 and 2^30
_LOG_STEP = 2.0**-17  # balances the truncation and the rounding of the central difference: 1e-10 in F


def profile_distribution(profile: Callable[[np.ndarray], np.ndarray], log_t: np.ndarray) -> np.ndarray:
    """Return ``F(t) = 1 - k(t) + t k'(t)`` of a profile k at ``exp(log_t)``; ``t k'(t)`` is ``dk / d log t``."""
    value, above, below = (
        np.asarray(profile(np.exp(log_t + step)), dtype=np.float64) for step in (0.0, _LOG_STEP, -_LOG_STEP)
    )
    return 1.0 - value + (above - below) / (2 * _LOG_STEP)


def profile_quantile(profile: Callable[[np.ndarray], np.ndarray], u: np.ndarray) -> np.ndarray:
    """Return quantiles of the pitch law of a profile, by bisection."""
    u = np.asarray(u)
    low, high = np.full(u.shape, -LOG_RANGE), np.full(u.shape, LOG_RANGE)
    for _ in range(45):  # until the bracket is narrower than 2^-32 of the pitch
        middle = (low + high) / 2
        below = profile_distribution(profile, middle) < u
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.exp((low + high) / 2)


def chi_quantile(u: np.ndarray, degrees: int) -> np.ndarray:
    """Return quantiles of the norm of a vector of `degrees` standard normals."""
    return np.sqrt(2.0 * special.gammaincinv(degrees / 2, u))


def student_scale(u: np.ndarray, nu: float) -> np.ndarray:
    """Return quantiles of ``sqrt(2 nu / c)``, c chi-squared with ``2 nu`` degrees; times normals, Student's t."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.minimum(np.sqrt(nu / special.gammainccinv(nu, u)), _FASTEST)


def student_radius(u: np.ndarray, degrees: int, nu: float) -> np.ndarray:
    """Return quantiles of the norm of a vector of `degrees` normals times one `student_scale`.

    ``|w|^2 = 2 nu b / (1 - b)`` where b follows Beta(degrees / 2, nu). The smaller of b and ``1 - b`` is computed.
    """
    b, rest = special.betaincinv(degrees / 2, nu, u), special.betainccinv(nu, degrees / 2, u)
    with np.errstate(divide="ignore", over="ignore"):
        odds = np.where(b < 0.5, b / (1.0 - b), (1.0 - rest) / rest)
    return np.minimum(np.sqrt(2.0 * nu * odds), _FASTEST)


_LARGE_NU = 30.0  # above, the expansion is exact up to rounding, and K_nu overflows soon
_TERMS = 10


def matern_profile(s: np.ndarray, nu: float) -> np.ndarray:
    """Return ``2^(1-nu) / Gamma(nu) z^nu K_nu(z)`` at ``z = 2 sqrt(nu s)``, with a relative error of about 1e-13.

    For scaled squared distances ``s = r^2 / 2``, so that ``z = sqrt(2 nu) r``, and a finite nu above 0.
    """
    if nu >= _LARGE_NU:
        return _matern_large(s, nu)
    z = 2.0 * np.sqrt(nu * s)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_k = (1.0 - nu) * np.log(2.0) - special.gammaln(nu) + nu * np.log(z) + np.log(special.kve(nu, z)) - z
    # It is not finite if K_nu overflows, near z = 0 where the value is 1, and if z is infinite.
    return np.where(np.isfinite(log_k), np.minimum(np.exp(log_k), 1.0), np.where(z > 1.0, 0.0, 1.0))


@cache
def _debye_polynomials() -> list[np.polynomial.Polynomial]:
    """Return the ``u_k(p)`` of the uniform expansion of ``K_nu(nu x)`` (DLMF 10.41.9), k below `_TERMS`."""
    u = [Polynomial([1.0])]
    for _ in range(_TERMS - 1):
        growth = Polynomial([0, 0, 0.5, 0, -0.5]) * u[-1].deriv()
        u.append(growth + (Polynomial([1, 0, -5]) * u[-1]).integ() / 8)
    return u


def _matern_large(s: np.ndarray, nu: float) -> np.ndarray:
    """Use DLMF 10.41.4, ``1/p = sqrt(1 + x^2)``, ``x^2 = 4 s / nu``; at p = 1 the series is Stirling's for Gamma."""
    x2 = 4.0 * np.minimum(s, 1e300) / nu
    t = x2 / (1.0 + np.sqrt(1.0 + x2))  # 1/p - 1
    series = [u * (-1.0 / nu) ** k for k, u in enumerate(_debye_polynomials())]
    ratio = sum(u(1.0 / (1.0 + t)) for u in series) / sum(u(1.0) for u in series)
    return np.exp(nu * (np.log1p(t / 2) - t) - 0.5 * np.log1p(t)) * ratio
