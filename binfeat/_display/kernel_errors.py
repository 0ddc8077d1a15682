"""Values of a display of kernel errors: the exact kernel of a map, pairs spread over it, and quantiles of errors."""

import numpy as np

from binfeat._common.subsets import equal_groups
from binfeat._common.validation import check_real
from binfeat.binning import RandomBinning
from binfeat.fourier import RandomFourier
from binfeat.kernels import binning_kernel, fourier_kernel
from binfeat.union import RandomFeatureUnion

_BANDS = 20  # intervals of the exact value, with error quantiles for each


def exact_kernel(estimator, X, kernel, gamma):
    """The kernel matrix that a map approximates."""
    if kernel is not None:
        if not callable(kernel):
            raise TypeError(f"kernel must be callable, got {kernel!r}.")
        if gamma is None and not hasattr(estimator, "gamma_"):
            raise ValueError("gamma must be given with kernel, because the map has no gamma_.")
        return kernel(X, gamma=estimator.gamma_ if gamma is None else gamma)
    if gamma is not None:
        raise ValueError("gamma must be None without kernel; give both, or neither for those of the map.")
    if isinstance(estimator, RandomFeatureUnion):
        parts = [exact_kernel(part, X, None, None) for _, part in estimator.transformers_]
        weights = np.ones(len(parts)) if estimator.weights is None else estimator.weights
        return sum(check_real(w, "weights", 0.0) * part for w, part in zip(weights, parts, strict=True))
    if isinstance(estimator, RandomFourier):
        return _of_fourier(estimator, X)
    if isinstance(estimator, RandomBinning):
        return _of_binning(estimator, X)
    raise TypeError(f"kernel must be given for {type(estimator).__name__}, whose kernel is not known.")


def _of_fourier(fourier, X):
    """The kernel of the scaled rows, or of these rows after the linear map if there is one."""
    kernel = fourier_kernel(fourier.kernel)
    if fourier.rotation is None:
        return kernel(X, gamma=fourier.gamma_)
    return kernel((X * fourier.gamma_ ** (1 / kernel.power)) @ np.asarray(fourier.rotation), gamma=1.0)


def _of_binning(binning, X):
    """The kernel of the numbers, times that of the categories."""
    categorical = binning._categorical
    K = binning_kernel(binning.kernel)(X[:, ~categorical], gamma=binning.gamma_[~categorical])
    for j in np.flatnonzero(categorical):
        K *= np.exp(-binning.gamma_[j] * (X[:, j, None] != X[:, j]))
    return K


def spread_out(exact, n_pairs, rng):
    """Pairs with evenly spread exact values: the same number from each interval, as far as it has so many."""
    if exact.size <= n_pairs:
        return np.arange(exact.size)
    order = rng.permutation(exact.size)
    interval = np.digitize(exact[order], np.linspace(exact.min(), exact.max(), _BANDS + 1)[1:-1])
    by_interval = np.argsort(interval, kind="stable")
    sizes = np.bincount(interval, minlength=_BANDS)
    place = np.empty(exact.size, np.intp)  # of each pair within its interval
    place[by_interval] = np.arange(exact.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return order[np.argsort(place, kind="stable")[:n_pairs]]


def quantile_bands(exact, error):
    """Mean exact value, 5 % quantile, mean and 95 % quantile of the errors, in intervals of equally many pairs."""
    parts = equal_groups(exact, _BANDS, 25)
    centres, means = np.transpose([(exact[part].mean(), error[part].mean()) for part in parts])
    low, high = np.transpose([np.quantile(error[part], (0.05, 0.95)) for part in parts])
    return centres, low, means, high
