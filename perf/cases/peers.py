"""Every peer beside ours on 20,000 rows of Forest Cover: maps, solvers on the same features, whole machines."""

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import lsqr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomTreesEmbedding
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import RidgeClassifier, RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from binfeat import CGRidgeClassifier, KernelMachineClassifier, RandomBinning, RandomFourier
from perf import numpy_binning
from perf.data import Split, forest_cover_hand_widths, forest_cover_labels
from perf.peers import QUICK, contest, fit_times, lightgbm, mean_error, xgboost, xrfm
from perf.record import Row
from perf.suite import guarded

N_ROWS, QUICK_ROWS = 20_000, 2_000
N_GRIDS, N_COMPONENTS = 50, 1_000
ALPHA, ALPHAS = 0.1, np.geomspace(0.01, 10, 4)
# Of inputs in hand widths: the best on held-out training rows of 0.03, 0.1, 0.3, 1; binning warns of more than 0.5.
BINNING_GAMMA, MAP_GAMMA, SVC_GAMMA = 0.5, 0.1, 1.0


def run(quick):
    split = _split(QUICK_ROWS if quick else N_ROWS)
    rounds = 1 if quick else 3
    yield from guarded("maps", _maps, split, rounds)
    yield from guarded("solvers", _solvers, split, rounds)
    yield from guarded("penalties", _penalties, split, rounds)
    yield from guarded("machines", _machines, split, quick)


def _split(n_rows):
    """So many rows to train on, the same number to test with, inputs in units of their hand widths."""
    X, gamma = forest_cover_hand_widths(2 * n_rows)
    X, y = X * gamma, forest_cover_labels(2 * n_rows) == 2
    return Split(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])


def _beside(group, makers, split, rounds):
    """Error and time of each peer beside those of the first machine, which is fitted once before."""
    what, *peers = makers
    makers[what]().fit(split.X[:1_000], split.y[:1_000])
    trials, failures = contest(makers, [split] * rounds)
    yield from failures
    for peer in peers:
        if what in trials and peer in trials:
            pair = trials[what], trials[peer]
            yield Row(f"{group}: {what} / {peer}, error", *map(mean_error, pair), unit="%")
            yield Row(f"{group}: {what} / {peer}, fit", *map(fit_times, pair))


def _binning(output):
    return RandomBinning(gamma=BINNING_GAMMA, n_grids=N_GRIDS, output=output, random_state=0)


def _fourier():
    return RandomFourier(gamma=MAP_GAMMA, n_components=N_COMPONENTS, random_state=0)


def _maps(split, rounds):
    """A map and a ridge machine."""
    peers = {
        "RBFSampler + Ridge(sparse_cg)": RBFSampler(gamma=MAP_GAMMA, n_components=N_COMPONENTS, random_state=0),
        "Nystroem + Ridge(sparse_cg)": Nystroem(gamma=MAP_GAMMA, n_components=N_COMPONENTS, random_state=0),
        "RandomTreesEmbedding + Ridge(sparse_cg)": RandomTreesEmbedding(N_GRIDS, max_depth=10, random_state=0),
    }
    theirs = {name: lambda map=map: make_pipeline(map, _sklearn_ridge("sparse_cg")) for name, map in peers.items()}
    numpy_scipy = {"NumPy binning + SciPy lsqr": lambda: make_pipeline(_NumpyBinning(), _ScipyRidge())}
    for name, ours in (("binning", _binning("codes")), ("Fourier", _fourier())):
        ours = {f"{name} + CGRidge": lambda ours=ours: make_pipeline(ours, CGRidgeClassifier(alpha=ALPHA))}
        yield from _beside("maps", {**ours, **theirs, **(numpy_scipy if name == "binning" else {})}, split, rounds)


def _sklearn_ridge(solver):
    return RidgeClassifier(alpha=ALPHA, solver=solver, tol=1e-3)


def _solvers(split, rounds):
    """Ridge and support vector machines on the same binning features, CSR for the peers."""
    binning = _binning("csr").fit(split.X)
    features = Split(binning.transform(split.X), split.y, binning.transform(split.X_test), split.y_test)
    makers = {
        "CGRidge": lambda: CGRidgeClassifier(alpha=ALPHA),
        "Ridge(sparse_cg)": lambda: _sklearn_ridge("sparse_cg"),
        "Ridge(lsqr)": lambda: _sklearn_ridge("lsqr"),
        "SciPy lsqr": _ScipyRidge,
        "LinearSVC": lambda: LinearSVC(C=1 / (2 * ALPHA), dual=False, tol=1e-3),
    }
    yield from _beside("solvers", makers, features, rounds)


def _penalties(split, rounds):
    """A path of penalties on the same Fourier features."""
    fourier = _fourier().fit(split.X)
    features = Split(fourier.transform(split.X), split.y, fourier.transform(split.X_test), split.y_test)
    makers = {
        "CGRidge(alphas)": lambda: CGRidgeClassifier(alphas=ALPHAS, random_state=0),
        "RidgeCV": lambda: RidgeClassifierCV(alphas=ALPHAS),
    }
    yield from _beside("penalties", makers, features, rounds)


def _machines(split, quick):
    n_trees = 20 if quick else 500
    makers = {
        "KernelMachine": lambda: KernelMachineClassifier(**(QUICK if quick else {}), random_state=0),
        "SVC": lambda: SVC(gamma=SVC_GAMMA, C=10),
        "ExtraTrees": lambda: ExtraTreesClassifier(n_trees, n_jobs=-1, random_state=0),
        "HistGradientBoosting": lambda: HistGradientBoostingClassifier(max_iter=n_trees, random_state=0),
        "LightGBM": lambda: lightgbm(n_trees, 31),
        "XGBoost": lambda: xgboost(n_trees, 6),
        "xRFM": xrfm,
    }
    yield from _beside("machines", makers, split, 1)


class _NumpyBinning(BaseEstimator):
    """Hashed random binning in plain NumPy, on the grids of ours."""

    def fit(self, X, y=None):
        self.grids_ = _binning("csr").fit(X)._grids
        return self

    def transform(self, X):
        slots = [hashes.view(np.uint64) >> np.uint64(48) for hashes in numpy_binning.hash_by_input(X, self.grids_)]
        columns = np.stack([slot.astype(np.int64) + (p << 16) for p, slot in enumerate(slots)], axis=1)
        starts = np.arange(0, columns.size + 1, columns.shape[1])
        values = np.full(columns.size, 1 / np.sqrt(columns.shape[1]))
        return sparse.csr_array((values, columns.ravel(), starts), shape=(len(X), len(slots) << 16))


class _ScipyRidge(ClassifierMixin, BaseEstimator):
    """Ridge on labels of -1 and 1 by SciPy's least squares."""

    def fit(self, Z, y):
        signs = np.where(y, 1.0, -1.0)
        self.intercept_ = signs.mean()
        self.coef_ = lsqr(Z, signs - self.intercept_, damp=np.sqrt(ALPHA), atol=1e-3, btol=1e-3)[0]
        return self

    def predict(self, Z):
        return Z @ self.coef_ + self.intercept_ > 0
