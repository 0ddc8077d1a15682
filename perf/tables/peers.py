"""Our model and the peers, with their usual settings and preparation of a table."""

import os
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import numpy as np
from sklearn.compose import TransformedTargetRegressor, make_column_selector, make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from binfeat import KernelMachineClassifier, KernelMachineRegressor
from perf.peers import QUICK, XRFMClassifier, XRFMRegressor, lightgbm
from perf.tables.boosting import Boosting, categories_as_text, slower, stopped, tuned
from perf.tables.mixed import GPBoost, has_levels
from perf.tables.splitting import is_regression

OURS, LIGHTGBM = "binfeat", "lightgbm"
_N_TREES, _N_LEAVES, _N_LEAVES_OF_MANY_ROWS, _MANY_ROWS = 500, 63, 255, 100_000
_N_COMPONENTS = 600
_ALPHAS = np.geomspace(1e-4, 1e3, 8)
_MOST_LENGTH_SCALES = 30
_MOST_ROWS_OF_GAUSSIAN_PROCESS, _MOST_ROWS_OF_SVM, _MOST_ROWS_OF_XRFM = 1_000, 10_000, 20_000


@dataclass(frozen=True)
class Peer:
    """A model of the comparison.

    Parameters
    ----------
    make : callable
        From training inputs, training targets and a seed (for some models also `seconds`) to a model that accepts the
        table.
    package : str
    most_rows : float
        It is not fitted to tables with more training rows.
    takes_our_seconds : bool
        If True, its time limit is the time of our fit to the split.
    needs_levels : bool
        If True, it is only fitted to tables with numeric targets and a category of many levels.
    """

    make: object
    package: str = "sklearn"
    most_rows: float = float("inf")
    takes_our_seconds: bool = False
    needs_levels: bool = False

    def takes(self, X, y):
        """Return True if the model is fitted to a table."""
        return len(y) <= self.most_rows and (not self.needs_levels or (is_regression(y) and has_levels(X)))

    @property
    def installed(self):
        return find_spec(self.package) is not None


def ours(X, y, seed, seconds=None):
    kind = KernelMachineRegressor if is_regression(y) else KernelMachineClassifier
    return kind(random_state=seed, max_seconds=seconds)


def _ours_quick(X, y, seed):
    return ours(X, y, seed).set_params(**QUICK)


def _lightgbm(X, y, seed):
    n_leaves = _N_LEAVES_OF_MANY_ROWS if len(y) >= _MANY_ROWS else _N_LEAVES
    return lightgbm(_N_TREES, n_leaves, regression=is_regression(y)).set_params(random_state=seed)


def _xgboost(X, y, seed):
    from xgboost import XGBClassifier, XGBRegressor

    kind = XGBRegressor if is_regression(y) else XGBClassifier
    return kind(n_jobs=os.cpu_count(), random_state=seed, enable_categorical=True)


def _catboost(X, y, seed):
    from catboost import CatBoostClassifier, CatBoostRegressor

    kind = CatBoostRegressor if is_regression(y) else CatBoostClassifier
    options = {"silent": True, "allow_writing_files": False, "thread_count": os.cpu_count(), "random_seed": seed}
    if not hasattr(X, "columns"):
        return kind(**options)
    names = list(X.select_dtypes("category").columns)
    return make_pipeline(FunctionTransformer(categories_as_text), kind(cat_features=names, **options))


def _boosting(X, y, seed):
    kind = HistGradientBoostingRegressor if is_regression(y) else HistGradientBoostingClassifier
    return kind(random_state=seed)  # by default, it finds categories by dtype


def _stopped(library, X, y, seed):
    return Boosting(library, stopped, seed)


def _tuned(library, X, y, seed, seconds):
    return Boosting(library, tuned, seed, seconds, first_is_whole=True)


def _in_time(library, trials, X, y, seed, seconds):
    return Boosting(library, trials, seed, seconds)


def _trees(X, y, seed):
    kind = ExtraTreesRegressor if is_regression(y) else ExtraTreesClassifier
    return make_pipeline(as_numbers(X), kind(n_jobs=-1, random_state=seed))


def _xrfm(X, y, seed):
    kind = XRFMRegressor if is_regression(y) else XRFMClassifier
    return make_pipeline(as_numbers(X), kind(max_leaf_size=60_000, random_state=seed))


def _network(name, X, y, seed):
    import pytabkit

    kind = getattr(pytabkit, f"{name}_{'Regressor' if is_regression(y) else 'Classifier'}")
    model = kind(device="cpu", n_threads=os.cpu_count(), random_state=seed)
    medians = SimpleImputer(strategy="median")
    if not hasattr(X, "columns"):
        return make_pipeline(medians, model)
    numbers = make_column_transformer((medians, make_column_selector(dtype_include="number")), remainder="passthrough")
    return make_pipeline(FunctionTransformer(categories_as_text), numbers.set_output(transform="pandas"), model)


def _rbf_sampler(X, y, seed):
    return make_pipeline(
        as_numbers(X), RBFSampler(gamma="scale", n_components=_N_COMPONENTS, random_state=seed), _ridge(y)
    )


def _nystroem(X, y, seed):
    return make_pipeline(as_numbers(X), Nystroem(n_components=_N_COMPONENTS, random_state=seed), _ridge(y))


def _linear(X, y, seed):
    return make_pipeline(as_numbers(X), _ridge(y))


def _gpboost(X, y, seed):
    return GPBoost()


def _ridge(y):
    return (RidgeCV if is_regression(y) else RidgeClassifierCV)(alphas=_ALPHAS)


def _svm(X, y, seed):
    model = TransformedTargetRegressor(SVR(), transformer=StandardScaler()) if is_regression(y) else SVC()
    return make_pipeline(as_numbers(X), model)


def _gaussian_process(X, y, seed):
    """Maximize the marginal likelihood; with many length scales, a step would take minutes."""
    numbers = as_numbers(X)
    n_inputs = numbers.fit_transform(X).shape[1]
    kernel = ConstantKernel() * RBF(np.ones(n_inputs if n_inputs <= _MOST_LENGTH_SCALES else 1))
    if not is_regression(y):
        return make_pipeline(numbers, GaussianProcessClassifier(kernel, random_state=seed))
    model = GaussianProcessRegressor(kernel + WhiteKernel(), normalize_y=True, random_state=seed)
    return make_pipeline(numbers, model)


def as_numbers(X):
    """Return medians for missing numbers, standard scaling, and one-hot categories."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    if not hasattr(X, "columns"):
        return numbers
    flags = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (flags, make_column_selector(dtype_include="category")),
    )


MACHINES = {
    OURS: Peer(ours, "binfeat"),
    LIGHTGBM: Peer(_lightgbm, "lightgbm"),
    "xgboost": Peer(_xgboost, "xgboost"),
    "catboost": Peer(_catboost, "catboost"),
    "hist_gradient_boosting": Peer(_boosting),
    "extra_trees": Peer(_trees),
    "rbf_sampler": Peer(_rbf_sampler),
    "nystroem": Peer(_nystroem),
    "linear": Peer(_linear),
    "gpboost": Peer(_gpboost, "gpboost", needs_levels=True),
    "gaussian_process": Peer(_gaussian_process, most_rows=_MOST_ROWS_OF_GAUSSIAN_PROCESS),
    "svm": Peer(_svm, most_rows=_MOST_ROWS_OF_SVM),
    "xrfm": Peer(_xrfm, "xrfm", _MOST_ROWS_OF_XRFM),
    "realmlp": Peer(partial(_network, "RealMLP_TD"), "pytabkit"),
    "tabm": Peer(partial(_network, "TabM_D"), "pytabkit"),
}
_LIBRARIES = (LIGHTGBM, "xgboost", "catboost")
MACHINES |= {f"{name}_stopped": Peer(partial(_stopped, name), name) for name in _LIBRARIES}
MACHINES |= {f"{name}_tuned": Peer(partial(_tuned, name), name, takes_our_seconds=True) for name in _LIBRARIES}
PEERS = tuple(name for name in MACHINES if name != OURS)
QUICK_MACHINES = {OURS: Peer(_ours_quick, "binfeat"), **{name: MACHINES[name] for name in ("rbf_sampler", "svm")}}

IN_TIME = {OURS: MACHINES[OURS]}  # models with time limits
IN_TIME |= {f"{name}_slower": Peer(partial(_in_time, name, slower), name) for name in (LIGHTGBM, "catboost")}
IN_TIME |= {f"{name}_tuned": Peer(partial(_in_time, name, tuned), name) for name in (LIGHTGBM, "catboost")}
