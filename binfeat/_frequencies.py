"""Samplers: how the frequencies of random Fourier features are drawn from a kernel's spectral law."""

import numpy as np

from binfeat._streams import DIRECTIONS, FREQUENCIES, RADII, SOBOL, stream, uniforms

_CHUNK = 2**21  # uniforms turned into frequencies at a time


def valid_samplers(kernel):
    """Names of the samplers that can draw from a kernel's spectral law."""
    if kernel.isotropic:
        return "iid", "orthogonal", "qmc", "fastfood"
    return "iid", "qmc"


def resolve_sampler(sampler, kernel, n_inputs):
    """Name of the sampler that `sampler` stands for with this kernel.

    Parameters
    ----------
    sampler : {"auto", "iid", "orthogonal", "qmc", "fastfood"}
    kernel : object of `binfeat.kernels` with a spectral law
    n_inputs : int

    Returns
    -------
    sampler : {"iid", "orthogonal", "qmc", "fastfood"}

    Raises
    ------
    ValueError
        If there is no such sampler, or it cannot draw from this kernel's law.
    """
    if sampler == "auto":
        return "orthogonal" if kernel.isotropic else "iid"
    if sampler not in valid_samplers(kernel):
        raise ValueError(f"sampler={sampler!r} cannot draw for {kernel!r}; valid are {valid_samplers(kernel)}.")
    return sampler


def draw_frequencies(kernel, sampler, n_frequencies, n_inputs, seed):
    """Frequencies from a kernel's spectral law, for a gamma scale of 1.

    Parameters
    ----------
    kernel : object of `binfeat.kernels` with a spectral law
    sampler : {"iid", "orthogonal", "qmc"}
    n_frequencies, n_inputs : int
    seed : int

    Returns
    -------
    frequencies : ndarray of shape (n_frequencies, n_inputs), float64
        To be multiplied by ``kernel.frequency_scale(gamma)``. The first rows do not depend on `n_frequencies`.
    """
    return _DRAW[sampler](kernel, n_frequencies, n_inputs, seed)


def _iid(kernel, n_frequencies, n_inputs, seed):
    bits, width = stream(seed, 0, FREQUENCIES), kernel.n_uniforms(n_inputs)
    out = np.empty((n_frequencies, n_inputs))
    step = max(1, _CHUNK // width)
    for start in range(0, n_frequencies, step):
        rows = out[start : start + step]
        rows[:] = kernel.frequencies(uniforms(bits.random_raw(len(rows) * width)).reshape(-1, width))
    return out


def _qmc(kernel, n_frequencies, n_inputs, seed):
    """Scrambled Sobol points through the quantiles (Avron, Sindhwani, Yang & Mahoney 2016, JMLR 17, section 3)."""
    from scipy.stats.qmc import Sobol  # late: it takes most of a second to import

    width = kernel.n_uniforms(n_inputs)
    points = Sobol(width, bits=_SOBOL_BITS, rng=np.random.Generator(stream(seed, 0, SOBOL)))
    out = np.empty((n_frequencies, n_inputs))
    step = max(1, _CHUNK // width)
    for start in [0, *range(1, n_frequencies, step)]:  # a first draw of one point: SciPy warns of odd first draws
        rows = out[start : start + step if start else 1]
        u = points.random(len(rows)) + 0.5**_SOBOL_BITS / 2  # the middle of its cell, inside (0, 1)
        rows[:] = kernel.frequencies(u)
    return out


_SOBOL_BITS = 30


def _orthogonal(kernel, n_frequencies, n_inputs, seed):
    """Blocks of orthogonal directions, times norms of their own (Yu et al. 2016, NIPS, section 3)."""
    out = np.empty((n_frequencies, n_inputs))
    for block, start in enumerate(range(0, n_frequencies, n_inputs)):
        rows = out[start : start + n_inputs]
        normal = np.random.Generator(stream(seed, block, DIRECTIONS)).standard_normal((len(rows), n_inputs))
        q, r = np.linalg.qr(normal.T)
        rows[:] = (q * np.copysign(1.0, np.diagonal(r))).T  # with this sign the law is uniform (Haar)
    radii = kernel.radius(uniforms(stream(seed, 0, RADII).random_raw(n_frequencies)), n_inputs)
    return out * radii[:, None]


_DRAW = {"iid": _iid, "orthogonal": _orthogonal, "qmc": _qmc}
