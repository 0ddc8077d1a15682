"""Samplers: how the frequencies of random Fourier features are drawn from a kernel's spectral law.

RMS errors of the estimated kernel divided by those of iid, for random pairs with kernel values between 0.15 and 0.9 and
400 seeds, by number of inputs d and number of frequencies:

=======================  ===========  ===========  ===========  ===========  ===========
64, 256, 1,024           d = 2        d = 5        d = 10       d = 20       d = 54
=======================  ===========  ===========  ===========  ===========  ===========
RBF, orthogonal          .79 .78 .78  .63 .63 .63  .58 .55 .55  .61 .58 .57  .65 .59 .56
RBF, qmc                 .21 .09 .05  .45 .28 .16  .62 .44 .30  .79 .65 .59  1.0 .76 .62
Matern(1.5), orthogonal  .87 .86 .87  .85 .82 .81  .82 .81 .78  .82 .83 .81  .85 .80 .79
Matern(1.5), qmc         .48 .37 .28  .69 .54 .46  .71 .62 .56  .80 .74 .67  .94 .78 .71
Laplacian, qmc           .53 .39 .30  .72 .61 .50  .78 .71 .61  .85 .77 .72  .92 .84 .78
Cauchy, qmc              .32 .19 .11  .55 .40 .27  .67 .52 .39  .82 .69 .59  .99 .80 .66
=======================  ===========  ===========  ===========  ===========  ===========

For kernel values near 0 only qmc with few inputs is better than iid. Drawing 8,192 frequencies for 1,000 inputs takes
0.3 s by iid, 0.2 s by qmc and 0.8 s by orthogonal.
"""

import numpy as np

from binfeat._common.random_words import CALLER, FREQUENCIES, RADII, SOBOL, stream, uniforms
from binfeat._common.subsets import slices
from binfeat._common.validation import is_word
from binfeat.kernels.base import ProductKernel
from binfeat.kernels.families import RBF, Cauchy, Hat, Laplacian, Matern, Spectral

_SAMPLERS = ("iid", "orthogonal", "qmc", "fastfood")
_KERNELS = (RBF, Matern, Laplacian, Cauchy, Hat, Spectral)
_SOBOL_BITS = 30  # of a Sobol coordinate
_CHUNK = 2**21  # uniform numbers turned into frequencies at a time


def resolve_sampler(sampler, kernel, n_inputs):
    """The sampler to use with this kernel: for "auto" "orthogonal" if its law is isotropic, else "iid".

    ValueError if there is no such sampler, or it cannot draw from this kernel's law or for so many inputs.
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


def _listed(names):
    return ", ".join(repr(name) for name in names)


def _reason(sampler, kernel):
    if sampler == "qmc":
        return "it needs the quantile function of the spectral law, which is not known for the caller's frequencies"
    law = "a product over inputs" if isinstance(kernel, ProductKernel) else "the caller's"
    return f"it draws directions uniformly, and this spectral law is {law}, so estimates would be biased"


def _check_sobol(kernel, n_inputs):
    from scipy.stats.qmc import Sobol  # late: it takes most of a second to import

    if kernel.n_uniforms(n_inputs) > Sobol.MAXDIM:
        others = [name for name in kernel.samplers if name != "qmc"]
        raise ValueError(
            f"sampler='qmc' needs {kernel.n_uniforms(n_inputs)} dimensions for {n_inputs} inputs and {kernel!r}, and "
            f"Sobol points have at most {Sobol.MAXDIM}. Use one of sampler={_listed(others)}, or fewer inputs."
        )


def draw_frequencies(kernel, sampler, n_frequencies, n_inputs, seed):
    """Frequencies (n_frequencies, n_inputs) from a kernel's spectral law, for a frequency scale of 1.

    Row i does not depend on `n_frequencies`, except for rounding with "orthogonal", and for `Spectral`, where it
    depends on the caller's sampler.
    """
    if isinstance(kernel, Spectral):
        return kernel.draw(n_frequencies, n_inputs, np.random.Generator(stream(seed, 0, CALLER)))
    draw = {"iid": _iid, "orthogonal": _orthogonal, "qmc": _qmc}[sampler]
    return draw(kernel, n_frequencies, n_inputs, seed)


def rank_of(rotation, n_inputs):
    """The number of coordinates of rotated rows; without a rotation, the number of inputs."""
    return n_inputs if rotation is None else rotation.shape[1]


def frequencies_of_inputs(kernel, sampler, n_frequencies, scale, seed, rotation=None):
    """Frequencies of the kernel of scaled and rotated rows, as frequencies (n_inputs, n_frequencies) of the rows.

    `scale` is ``kernel.frequency_scale(gamma)``; the rotation (n_inputs, rank) is of scaled inputs.
    """
    frequencies = draw_frequencies(kernel, sampler, n_frequencies, rank_of(rotation, scale.size), seed)
    mapped = frequencies if rotation is None else frequencies @ rotation.T
    return np.ascontiguousarray((mapped * scale).T)


def _iid(kernel, n_frequencies, n_inputs, seed):
    bits, width = stream(seed, 0, FREQUENCIES), kernel.n_uniforms(n_inputs)
    frequencies = np.empty((n_frequencies, n_inputs))
    for some in slices(n_frequencies, max(1, _CHUNK // width)):
        rows = frequencies[some]
        rows[:] = kernel.frequencies(uniforms(bits.random_raw(len(rows) * width)).reshape(-1, width))
    return frequencies


def _qmc(kernel, n_frequencies, n_inputs, seed):
    """Scrambled Sobol points through the quantiles (Avron, Sindhwani, Yang & Mahoney, JMLR 17, 2016)."""
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


def _orthogonal(kernel, n_frequencies, n_inputs, seed):
    """Blocks of n_inputs orthogonal directions with independent norms (Yu et al., NIPS 2016)."""
    frequencies = _iid(RBF(), n_frequencies, n_inputs, seed)
    for some in slices(n_frequencies, max(1, _CHUNK // n_inputs**2) * n_inputs):
        rows = frequencies[some]
        whole = len(rows) // n_inputs * n_inputs
        if whole:  # of no blocks NumPy would return a matrix with a row and a column for every input
            rows[:whole] = _orthonormal(rows[:whole].reshape(-1, n_inputs, n_inputs)).reshape(-1, n_inputs)
        rows[whole:] = _orthonormal(rows[None, whole:])[0]
    u = uniforms(stream(seed, 0, RADII).random_raw(n_frequencies))
    return frequencies * kernel.radius(u, n_inputs)[:, None]


def _orthonormal(normal):
    """Uniformly random (Haar) orthonormal rows from rows of normals, for each matrix of a stack."""
    q, r = np.linalg.qr(normal.swapaxes(1, 2))
    signs = np.copysign(1.0, np.diagonal(r, axis1=1, axis2=2))  # without them the law depends on LAPACK's choice
    return (q * signs[:, None, :]).swapaxes(1, 2)
