"""Samplers, which draw frequencies of random Fourier features from the spectral law of a kernel."""

from collections.abc import Iterable

import numpy as np

from binfeat._common.array_types import ArrayLike
from binfeat._common.random_words import CALLER, FREQUENCIES, RADII, SOBOL, stream, uniforms
from binfeat._common.subsets import slices
from binfeat._common.validation import check_numbers, is_word
from binfeat.kernels.base import Kernel, ProductKernel
from binfeat.kernels.families import RBF, Cauchy, Hat, Laplacian, Matern, Spectral

_SAMPLERS = ("iid", "orthogonal", "qmc", "fastfood")
_KERNELS = (RBF, Matern, Laplacian, Cauchy, Hat, Spectral)
_SOBOL_BITS = 30  # bits of a Sobol coordinate
_CHUNK = 2**21  # uniform numbers turned into frequencies at a time


def resolve_sampler(sampler: object, kernel: Kernel, n_inputs: int) -> str:
    """Return the sampler for this kernel; "auto" is "orthogonal" for isotropic laws, otherwise "iid".

    ValueError for unknown samplers, and for samplers that do not support the law or the number of inputs.
    """
    if is_word(sampler, "auto"):
        return "orthogonal" if kernel.isotropic else "iid"
    if not isinstance(sampler, str) or sampler not in _SAMPLERS:
        raise ValueError(f"sampler must be 'auto', {_listed(_SAMPLERS)}; got {sampler!r}.")
    if sampler not in kernel.samplers:
        raise ValueError(
            f"sampler={sampler!r} does not work with {kernel!r}: {_reason(sampler, kernel)}. This kernel works with "
            f"sampler='auto', {_listed(kernel.samplers)}; this sampler works with "
            f"{', '.join('kernels.' + law.__name__ for law in _KERNELS if sampler in law.samplers)}."
        )
    if sampler == "qmc":
        _check_sobol(kernel, n_inputs)
    return sampler


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _reason(sampler: str, kernel: Kernel) -> str:
    if sampler == "qmc":
        return "it needs the quantile function of the spectral law, which is not known for the caller's frequencies"
    law = "a product over inputs" if isinstance(kernel, ProductKernel) else "the caller's"
    return f"it draws directions uniformly, and this spectral law is {law}, so estimates would be biased"


def _check_sobol(kernel: Kernel, n_inputs: int) -> None:
    from scipy.stats.qmc import Sobol  # imported late because it takes most of a second

    if kernel.n_uniforms(n_inputs) > Sobol.MAXDIM:
        others = [name for name in kernel.samplers if name != "qmc"]
        raise ValueError(
            f"sampler='qmc' needs {kernel.n_uniforms(n_inputs)} dimensions for {n_inputs} inputs and {kernel!r}, and "
            f"Sobol points have at most {Sobol.MAXDIM}. Use one of sampler={_listed(others)}, or fewer inputs."
        )


def draw_frequencies(kernel: Kernel, sampler: str, n_frequencies: int, n_inputs: int, seed: int) -> np.ndarray:
    """Draw frequencies (n_frequencies, n_inputs) from the spectral law of a kernel, for a frequency scale of 1.

    Row i does not depend on `n_frequencies`, except for rounding with "orthogonal", and for `Spectral`, where it
    depends on the caller's sampler.
    """
    if isinstance(kernel, Spectral):
        return kernel.draw(n_frequencies, n_inputs, np.random.Generator(stream(seed, 0, CALLER)))
    draw = {"iid": _iid, "orthogonal": _orthogonal, "qmc": _qmc}[sampler]
    return draw(kernel, n_frequencies, n_inputs, seed)


def checked_rotation(rotation: ArrayLike | None, n_inputs: int) -> np.ndarray | None:
    """Return a rotation as float64 (n_inputs, rank), or None; TypeError or ValueError for others."""
    if rotation is None:
        return None
    values = check_numbers(rotation, "rotation")
    if values.ndim != 2 or len(values) != n_inputs or not values.size:
        raise ValueError(f"rotation must have a row per input, shape ({n_inputs}, rank); got shape {values.shape}.")
    if not np.isfinite(values).all():
        raise ValueError("rotation must be finite; it contains NaN or infinity.")
    return values


def rank_of(rotation: np.ndarray | None, n_inputs: int) -> int:
    """Return the number of coordinates of rotated rows; without a rotation, the number of inputs."""
    return n_inputs if rotation is None else rotation.shape[1]


def frequencies_of_inputs(
    kernel: Kernel,
    sampler: str,
    n_frequencies: int,
    scale: np.ndarray,
    seed: int,
    rotation: np.ndarray | None = None,
) -> np.ndarray:
    """Convert frequencies of scaled and rotated rows to frequencies (n_inputs, n_frequencies) of the rows.

    `scale` is ``kernel.frequency_scale(gamma)``; the rotation (n_inputs, rank) applies to scaled inputs.
    """
    frequencies = draw_frequencies(kernel, sampler, n_frequencies, rank_of(rotation, scale.size), seed)
    mapped = frequencies if rotation is None else frequencies @ rotation.T
    return np.ascontiguousarray((mapped * scale).T)


def _iid(kernel: Kernel, n_frequencies: int, n_inputs: int, seed: int) -> np.ndarray:
    bits, width = stream(seed, 0, FREQUENCIES), kernel.n_uniforms(n_inputs)
    frequencies = np.empty((n_frequencies, n_inputs))
    for some in slices(n_frequencies, max(1, _CHUNK // width)):
        rows = frequencies[some]
        rows[:] = kernel.frequencies(uniforms(bits.random_raw(len(rows) * width)).reshape(-1, width))
    return frequencies


def _qmc(kernel: Kernel, n_frequencies: int, n_inputs: int, seed: int) -> np.ndarray:
    """Draw frequencies as quantiles of scrambled Sobol points (Avron, Sindhwani, Yang & Mahoney, JMLR 17, 2016)."""
    from scipy.stats.qmc import Sobol

    width = kernel.n_uniforms(n_inputs)
    sobol = Sobol(width, bits=_SOBOL_BITS, rng=np.random.Generator(stream(seed, 0, SOBOL)))
    frequencies = np.empty((n_frequencies, n_inputs))
    step = max(1, _CHUNK // width)
    starts = [0, *range(1, n_frequencies, step)]  # SciPy warns if the first number of points is not a power of 2
    for start, stop in zip(starts, [*starts[1:], n_frequencies], strict=True):
        u = sobol.random(stop - start) + 0.5 ** (_SOBOL_BITS + 1)  # the middle of its cell, inside (0, 1)
        frequencies[start:stop] = kernel.frequencies(u)
    return frequencies


def _orthogonal(kernel: Kernel, n_frequencies: int, n_inputs: int, seed: int) -> np.ndarray:
    """Draw blocks of n_inputs orthogonal directions with independent norms (Yu et al., NIPS 2016)."""
    frequencies = _iid(RBF(), n_frequencies, n_inputs, seed)
    for some in slices(n_frequencies, max(1, _CHUNK // n_inputs**2) * n_inputs):
        rows = frequencies[some]
        whole = len(rows) // n_inputs * n_inputs
        if whole:  # for zero blocks NumPy would return a square matrix of inputs
            rows[:whole] = _orthonormal(rows[:whole].reshape(-1, n_inputs, n_inputs)).reshape(-1, n_inputs)
        rows[whole:] = _orthonormal(rows[None, whole:])[0]
    u = uniforms(stream(seed, 0, RADII).random_raw(n_frequencies))
    return frequencies * kernel.radius(u, n_inputs)[:, None]


def _orthonormal(normal: np.ndarray) -> np.ndarray:
    """Convert rows of normals to uniformly random (Haar) orthonormal rows, for each matrix of a stack."""
    q, r = np.linalg.qr(normal.swapaxes(1, 2))
    signs = np.copysign(1.0, np.diagonal(r, axis1=1, axis2=2))  # otherwise the law would depend on LAPACK's signs
    return (q * signs[:, None, :]).swapaxes(1, 2)
