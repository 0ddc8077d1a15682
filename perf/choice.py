"""Models of random features and least squares; validation rows select scaling, kernel, gamma and penalty.

Neither the coarse nor the fine search uses test rows; paper.md explains the lists of candidates. Scalings and bins are
fitted to the inputs of the validation rows, too, but not to their targets. The measured model is fitted again to
training rows.
"""

import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, StandardScaler

from binfeat import CGRidge, CGRidgeClassifier, RandomBinning, RandomFourier, learn_gamma
from binfeat._common.memory import memory_limit
from binfeat.kernels import RBF, GammaPitch, Laplacian, Matern

BINNING_KERNELS = (Laplacian(), GammaPitch(np.inf))  # GammaPitch(8) is between these
FOURIER_KERNELS, LEARNED_FOURIER_KERNELS = (RBF(), Matern(1.5), Laplacian()), (RBF(), Matern(1.5))
EXPONENTS = np.geomspace(0.3, 30, 5)  # mean of sum_j gamma_j |x_j - y_j|^power over pairs of rows
FOURIER_EXPONENTS = np.geomspace(0.03, 10, 6)
LEARNED_FACTORS = (1.0, 3.0, 9.0)  # of learned gammas: more rows need larger ones
BINNING_ALPHAS, FOURIER_ALPHAS = np.geomspace(10, 1e-3, 5), np.geomspace(1, 1e-5, 6)
FACTORS = (0.55, 1.0, 1.8)  # of gamma in the fine search, about half a step of the exponents
NEAR = np.array([np.sqrt(10), 1.0, 1 / np.sqrt(10)])  # factors of the penalty in the fine search
SCALERS = (MinMaxScaler(), StandardScaler())
LEARNING_SCALERS = (StandardScaler(), QuantileTransformer(n_quantiles=100, random_state=0))
COARSE_ROWS = 50_000
FOURIER_ROWS, FOURIER_COMPONENTS = 20_000, 2_000  # in the coarse search with Fourier features
FINE_FOURIER_ROWS, FINE_FOURIER_COMPONENTS = 100_000, 4_000
FOURIER_TOL = 1e-6  # so low that the exact solution by the Gram matrix takes less time than iterations
LEARNING_ROWS, LEARNING_STEPS = 1_000, 150  # in the search for length scales; more steps gain nothing
_DISTANCE_ROWS = 5_000
_HELD_OUT = 0.25
_HELD_SHARE = 0.25  # of the memory, for features


class StreamableFourier(RandomFourier):
    """Fourier features in memory, or computed on demand if they do not fit."""

    def transform(self, X):
        held = X.shape[0] * self.n_components * X.dtype.itemsize <= _HELD_SHARE * (memory_limit() or np.inf)
        return super().transform(X) if held else self.encode(X)


@contextmanager
def quiet():
    """Without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def mean_exponent(X, power):
    """Mean over pairs of rows of ``sum_j |x_j - y_j|^power``."""
    X = X[:_DISTANCE_ROWS]
    X = X.toarray() if sparse.issparse(X) else X
    others = X[np.random.default_rng(0).permutation(len(X))]
    return float(np.mean(np.sum(np.abs(X - others).astype(np.float64) ** power, axis=1)))


def model(scaler, features, regression):
    """Scaling, features and least squares in a pipeline."""
    ridge = CGRidge() if regression else CGRidgeClassifier()
    return Pipeline([("scale", clone(scaler, safe=False)), ("features", features), ("ridge", ridge)])


def scaled(scaler, X):
    """Return X scaled by a scaler that is fitted to X."""
    return X if scaler == "passthrough" else clone(scaler).fit_transform(X)


def _scalers(X, some):
    """Return the scalers to try; CSR input consists of flags, and is not scaled."""
    return ["passthrough"] if sparse.issparse(X) else some


def one_gamma(X, y, n_grids):
    """Yield binning models with one gamma for all inputs."""
    for scaler in _scalers(X, SCALERS):
        distance = mean_exponent(scaled(scaler, X), 1)
        for kernel in BINNING_KERNELS:
            for exponent in EXPONENTS:
                yield model(scaler, _binning(kernel, exponent / distance, n_grids), y.dtype.kind == "f")


def learned_binning(X, y, n_grids):
    """Yield binning models with learned length scales."""
    for scaler, kernel, gamma in _learned(X, y, BINNING_KERNELS):
        yield model(scaler, _binning(kernel, gamma, n_grids), y.dtype.kind == "f")


def _learned(X, y, kernels):
    """Yield each scaling and kernel with the gammas from `learn_gamma`, times a factor."""
    for scaler in _scalers(X, LEARNING_SCALERS):
        X_scaled = scaled(scaler, X)
        for kernel in kernels:
            learned = learn_gamma(
                X_scaled, y, kernel=kernel, max_steps=LEARNING_STEPS, max_rows=LEARNING_ROWS, random_state=0
            )
            gamma = learned.gamma
            for factor in LEARNED_FACTORS:
                yield scaler, kernel, factor * gamma


def _binning(kernel, gamma, n_grids):
    return RandomBinning(kernel=kernel, gamma=gamma, n_grids=n_grids, output="codes", random_state=0)


def fourier(X, y, n_frequencies):
    """Yield models of Fourier features with one gamma, and with fewer features than the measured model."""
    for scaler in _scalers(X, SCALERS):
        for kernel in FOURIER_KERNELS:
            distance = mean_exponent(scaled(scaler, X), kernel.power)
            for exponent in FOURIER_EXPONENTS:
                yield _fourier_model(scaler, kernel, exponent / distance, n_frequencies, y)


def learned_fourier(X, y, n_frequencies):
    """Yield models of Fourier features with learned length scales."""
    for scaler, kernel, gamma in _learned(X, y, LEARNED_FOURIER_KERNELS):
        yield _fourier_model(scaler, kernel, gamma, n_frequencies, y)


def _fourier_model(scaler, kernel, gamma, n_frequencies, y):
    n_components = min(2 * n_frequencies, FOURIER_COMPONENTS)
    features = StreamableFourier(kernel=kernel, gamma=gamma, n_components=n_components, random_state=0)
    return model(scaler, features, y.dtype.kind == "f").set_params(ridge__tol=FOURIER_TOL)


def finer(best):
    """Yield copies of the model with gamma multiplied by each of `FACTORS`."""
    for factor in FACTORS:
        yield clone(best).set_params(features__gamma=best.get_params()["features__gamma"] * factor)


def best_of(models, X, y, alphas):
    """Return the model and penalty with the best score on validation rows: R^2, or the share of correct labels.

    Returns
    -------
    best : Pipeline
        Not fitted.
    score : float
    """
    held_out = list(ShuffleSplit(1, test_size=_HELD_OUT, random_state=0).split(X))
    best, best_score = None, -np.inf
    for candidate in models:
        with quiet():  # candidates that are too fine, or do not converge, have low scores
            Z = candidate[:-1].fit_transform(X)
            ridge = clone(candidate[-1]).set_params(alphas=alphas, cv=held_out).fit(Z, y)
        scores = ridge.path_scores_.mean(axis=0)
        if scores.max() > best_score:
            best_score = float(scores.max())
            best = clone(candidate).set_params(ridge__alpha=float(ridge.alphas_[scores.argmax()]))
    return best, best_score


@dataclass(frozen=True)
class Method:
    """A way to choose a model: candidates for X, y and the paper's D or P, then a finer search around the best.

    Attributes
    ----------
    name : str
    column : str
        Column of the paper's table.
    candidates : callable
    alphas : ndarray
        Penalties of the coarse search.
    max_rows : tuple of int or None
        Maximum numbers of rows in the coarse and in the fine search; None is all.
    """

    name: str
    column: str
    candidates: Callable
    alphas: np.ndarray
    max_rows: tuple[int | None, int | None] = (COARSE_ROWS, None)

    def choose(self, X, y, size, step=1):
        """Return the model to train on these rows, which are in random order; it is not fitted.

        `step` above 1 skips candidates, for a quick run.
        """
        some, more = map(slice, self.max_rows)
        candidates = islice(self.candidates(X[some], y[some], size), 0, None, step)
        best, _ = best_of(candidates, X[some], y[some], self.alphas)
        if self.column == "fourier":
            best.set_params(features__n_components=min(2 * size, FINE_FOURIER_COMPONENTS))
        best, _ = best_of(finer(best), X[more], y[more], best.get_params()["ridge__alpha"] * NEAR)
        if self.column == "fourier":
            best.set_params(features__n_components=2 * size)
        return best


_LEARNED, _FOURIER_ROWS = "learned length scales", (FOURIER_ROWS, FINE_FOURIER_ROWS)
FOURIER = Method("Fourier + LS", "fourier", fourier, FOURIER_ALPHAS, _FOURIER_ROWS)
LEARNED_FOURIER = Method(f"Fourier + LS, {_LEARNED}", "fourier", learned_fourier, FOURIER_ALPHAS, _FOURIER_ROWS)
ONE_GAMMA = Method("Binning + LS, one gamma", "binning", one_gamma, BINNING_ALPHAS)
LEARNED_BINNING = Method(f"Binning + LS, {_LEARNED}", "binning", learned_binning, BINNING_ALPHAS)


def describe(best):
    """Describe the choice."""
    parameters = best.get_params()
    scaler, gamma = parameters["scale"], parameters["features__gamma"]
    parts = [
        "no scaling" if scaler == "passthrough" else type(scaler).__name__,
        str(parameters["features__kernel"]),
        _LEARNED if np.ndim(gamma) else f"gamma {gamma:.3g}",
        f"alpha {parameters['ridge__alpha']:.2g}",
    ]
    return ", ".join(parts)
