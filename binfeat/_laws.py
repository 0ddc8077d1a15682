"""Quantile functions of spectral laws, and the profile of the Matern kernels, as functions of arrays.

A spectral law is the Fourier transform of a kernel (Bochner's theorem): frequencies w drawn from it
have ``E[cos(w @ (x - y))] = k(x, y)``.
"""

import numpy as np
from scipy import special

_FASTEST = 2.0**64  # frequencies of heavy tails stop here: finite in float32, and faster than any data can tell


def cauchy_quantile(u):
    """Of the density ``1 / (pi (1 + w^2))``, to full precision in both tails."""
    return np.minimum(1.0 / np.tan(np.pi * np.minimum(u, 1.0 - u)), _FASTEST) * np.sign(u - 0.5)


def laplace_quantile(u):
    """Of the density ``exp(-|w|) / 2``."""
    return np.log(2.0 * np.minimum(u, 1.0 - u)) * np.sign(0.5 - u)


def chi_quantile(u, degrees):
    """Of the norm of a standard normal vector with `degrees` entries."""
    return np.sqrt(2.0 * special.gammaincinv(degrees / 2, u))
