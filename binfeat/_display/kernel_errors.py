"""What a display of kernel errors shows: a map's exact kernel, pairs of rows spread over it, and quantiles."""

import numpy as np

from binfeat._common.validation import check_real
from binfeat.binning import RandomBinning
from binfeat.fourier import RandomFourier
from binfeat.kernels import binning_kernel, fourier_kernel
from binfeat.union import RandomFeatureUnion

_BANDS = 20  # stretches of the exact value that have errors' quantiles of their own


def exact_kernel(estimator, X, kernel, gamma):
    """The kernel matrix that a map approximates."""
    if kernel is not None:
        if not callable(kernel):
            raise TypeError(f"kernel must be callable, got {kernel!r}.")
        if gamma is None and not hasattr(estimator, "gamma_"):
            raise ValueError("gamma must be given with kernel, for a map that has none of its own.")
        return kernel(X, gamma=estimator.gamma_ if gamma is None else gamma)
    if gamma is not None:
        raise ValueError("gamma goes with kernel; give both, or neither for the map's own.")
    if isinstance(estimator, RandomFeatureUnion):
        parts = [exact_kernel(part, X, None, None) for _, part in estimator.transformers_]
        weights = np.ones(len(parts)) if estimator.weights is None else estimator.weights
        return sum(check_real(w, "weights", 0.0) * part for w, part in zip(weights, parts, strict=True))
    if isinstance(estimator, RandomFourier):
        return fourier_kernel(estimator.kernel)(X, gamma=estimator.gamma_)
    if isinstance(estimator, RandomBinning):
        return _of_binning(estimator, X)
    raise TypeError(f"kernel must be given for {type(estimator).__name__}, whose own is not known.")


def _of_binning(binning, X):
    """The kernel of the numbers, times that of the categories."""
    own = binning._categorical
    K = binning_kernel(binning.kernel)(X[:, ~own], gamma=binning.gamma_[~own])
    for j in np.flatnonzero(own):
        K *= np.exp(-binning.gamma_[j] * (X[:, j, None] != X[:, j]))
    return K


def spread_out(exact, n_pairs, rng):
    """Pairs whose exact values are as even as can be: the same number from each stretch, as far as it has them."""
    if exact.size <= n_pairs:
        return np.arange(exact.size)
    order = rng.permutation(exact.size)
    stretch = np.digitize(exact[order], np.linspace(exact.min(), exact.max(), _BANDS + 1)[1:-1])
    by_stretch = np.argsort(stretch, kind="stable")
    sizes = np.bincount(stretch, minlength=_BANDS)
    place = np.empty(exact.size, np.intp)  # each pair's within its stretch
    place[by_stretch] = np.arange(exact.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return order[np.argsort(place, kind="stable")[:n_pairs]]


def quantile_bands(exact, error):
    """Mean exact value, 5 % quantile, mean and 95 % quantile of the errors, in stretches of equally many pairs."""
    parts = np.array_split(np.argsort(exact, kind="stable"), max(1, min(_BANDS, exact.size // 25)))
    return np.array([[exact[own].mean(), *_summary(error[own])] for own in parts]).T


def _summary(error):
    low, high = np.quantile(error, (0.05, 0.95))
    return low, error.mean(), high
