"""Finds the kernel that a parameter names, and checks that a map or a model supports it."""

from collections.abc import Callable
from typing import TypeGuard

import numpy as np

from binfeat.kernels.base import Kernel, ProductKernel
from binfeat.kernels.families import RBF, Cauchy, Hat, Laplacian, Matern, Spectral

_BY_NAME: dict[str, Callable] = {"cauchy": Cauchy, "hat": Hat, "laplacian": Laplacian, "rbf": RBF}

_CONCAVE = "is concave near 0, so F(t) = 1 - k(t) + t k'(t) is negative and no law of pitches gives it"
_NO_PITCH_LAW: dict[type, str] = {
    RBF: f"its profile exp(-t^2) {_CONCAVE}",
    Cauchy: f"its profile 1 / (1 + t^2) {_CONCAVE}",
    Matern: "it is not a product over inputs of one profile",
    Spectral: "only the sampler of its frequencies is known",
}


EXACT_NUS = (0.5, 1.5, 2.5, np.inf)  # nu of Matern kernels with learnable length scales


def _resolve(kernel: object) -> object:
    return _BY_NAME[kernel]() if isinstance(kernel, str) and kernel in _BY_NAME else kernel


def _known(kernel: object, choice: str) -> Kernel:
    """Return the kernel object for a name or an object; ValueError with the choices for others."""
    found = _resolve(kernel)
    if not isinstance(found, Kernel):
        raise ValueError(f"kernel must be {choice}; got {kernel!r}.")
    return found


def binning_kernel(kernel: object, instead: str = "RandomFourier for this kernel") -> ProductKernel:
    """Return the kernel object for a name or an object; ValueError if it is unknown or has no pitch law."""
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
    """Return the kernel object for a name or an object; ValueError if neither exact models nor grids support it."""
    found = _known(
        kernel,
        "'auto', 'laplacian', 'rbf', 'hat', or one of kernels.Laplacian, RBF, Matern, Hat, GammaPitch, Product, Skip",
    )
    if isinstance(found, Laplacian | RBF | Matern):
        return exact_kernel(found, asked)
    return binning_kernel(kernel, "RandomFourier, which supports this kernel")


def exact_kernel(kernel: object, asked: str) -> Kernel:
    """Return the kernel object for a name or an object; ValueError if exact and local models do not support it."""
    found = _resolve(kernel)
    if is_exact(found):
        return found
    raise ValueError(
        f"{asked} accepts kernel='auto', 'laplacian', 'rbf', or one of kernels.Laplacian, RBF, and Matern with nu 0.5, "
        f"1.5, 2.5 or infinity; got {kernel!r}."
    )


def radial_kernel(kernel: object, asked: str) -> RBF | Matern:
    """Return the kernel object for a name or an object; ValueError if it is no radial kernel of exact models."""
    found = _resolve(kernel)
    if is_exact(found) and isinstance(found, RBF | Matern):
        return found
    raise ValueError(
        f"{asked} accepts kernel='auto', 'rbf', kernels.RBF, or kernels.Matern with nu 0.5, 1.5, 2.5 or infinity; "
        f"got {kernel!r}."
    )


def fourier_kernel(kernel: object) -> Kernel:
    """Return the kernel object for a name or an object; ValueError if it is unknown or has no spectral law."""
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
