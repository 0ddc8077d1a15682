"""Saved models with one replaced leaf: loading is refused, or all methods work."""

import copy
import linecache
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from limits import limited
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.preprocessing import PowerTransformer, StandardScaler

import binfeat
from binfeat._common.persistence import Persistent

_RNG = np.random.default_rng(0)
X = _RNG.normal(size=(40, 3))
Y = X[:, 0] + (X[:, 1] > 0)
LABELS = np.where(Y > 0.3, "yes", "no")
_FIXED = {"gamma": "scale", "alpha": 0.1, "random_state": 0}
DELETED = object()


def models() -> Iterator[tuple[str, BaseEstimator, Any]]:
    """Yield fitted models of all kinds by name, each with rows for its methods."""
    binning = binfeat.RandomBinning(n_grids=3, gamma=0.5, min_count=2, random_state=0).fit(X)
    Z = binning.transform(X)
    yield "binning", binning, X
    yield "hashed binning", binfeat.RandomBinning(n_grids=3, n_features=64, gamma=0.5, random_state=0).fit(X), X
    yield "fourier", binfeat.RandomFourier(n_components=6, random_state=0).fit(X), X
    fastfood = {"sampler": "fastfood", "phase": "offset", "random_state": 0}
    yield "fastfood", binfeat.RandomFourier(n_components=5, **fastfood).fit(X), X
    fourier = binfeat.RandomFourier(n_components=64, gamma=0.02, random_state=0)
    maps = [("bins", binfeat.RandomBinning(n_grids=3, random_state=0)), ("fourier", fourier)]
    yield "union", binfeat.RandomFeatureUnion(maps).fit(X), X
    yield "ridge", binfeat.CGRidge(n_posterior_samples=2).fit(Z, Y), Z
    yield "ridge classifier", binfeat.CGRidgeClassifier().fit(Z, np.where(Y > 1, "high", LABELS)), Z
    yield "ridge of codes", binfeat.CGRidge().partial_fit(binning.encode(X), Y), binning.encode(X)
    yield "ridge of rows", binfeat.CGRidge().partial_fit(Z, Y), Z
    yield "ridge of sums", binfeat.CGRidgeClassifier().partial_fit(X, LABELS, classes=["no", "yes"]), X
    yield from _kernel_models()
    graph = {"features": binfeat.RandomBinning(n_grids=4), "gamma": 0.3, "random_state": 0}
    yield "embedding", binfeat.SpectralEmbedding(**graph).fit(X), X
    yield "embedding of columns", binfeat.SpectralEmbedding(features=fourier, gamma=None, random_state=0).fit(X), X
    yield "clusters", binfeat.SpectralClustering(2, **graph).fit(X), X
    yield "labels", binfeat.LabelSpreading(**graph).fit(X, np.where(np.arange(40) < 9, Y > 0.3, -1)), X
    yield "detector", binfeat.OutlierDetector(n_grids=3, random_state=0).fit(X), X
    yield "detector of sparse rows", binfeat.OutlierDetector(n_grids=3, random_state=0).fit(sparse.csr_matrix(X)), X


def _kernel_models() -> Iterator[tuple[str, BaseEstimator, Any]]:
    def numbers(**options):
        return binfeat.KernelMachineRegressor(**(_FIXED | options))

    def classes(**options):
        return binfeat.KernelMachineClassifier(**(_FIXED | options))

    sampled = {"solver_params": {"n_posterior_samples": 2, "n_grids": 4}}
    with limited(n_fourier=8):
        yield "binning model", numbers(features="binning", **sampled).fit(X, Y), X
        yield (
            "fourier model",
            numbers(features="fourier", solver_params={"n_posterior_samples": 2}).fit(X, np.column_stack([Y, -Y])),
            X,
        )
    yield "exact", with_anchors(numbers(features="exact").fit(X**3, np.exp(Y))), X**3
    yield "compact", numbers(features="exact").fit(X, Y).compact(), X
    yield "local", numbers(features="local", target_transform=PowerTransformer()).fit(X, Y), X
    yield "scaled targets", numbers(features="exact", target_transform=StandardScaler()).fit(X, Y), X
    yield "local classifier", classes(features="local").fit(X, np.where(Y > 1, "high", LABELS)), X
    yield "labels of columns", classes().fit(X, np.column_stack([LABELS, np.where(X[:, 2] > 0, "a", "b")])), X
    yield "indicators", classes(loss="squared_hinge").fit(X, (X > 0).astype(int)), X
    yield "frame", numbers(features="exact").fit(frame(), Y), frame()


def with_anchors(model):
    """Return an exact model with every other row as an anchor; models of few rows have none by themselves."""
    anchors = np.arange(0, model.feature_coef_.shape[1], 2, dtype=np.int32)
    model._exact |= {"anchors": anchors, "anchor_coef": np.ascontiguousarray(model.feature_coef_[:, anchors])}
    return model


def frame():
    """Return a table with numbers, missing values, categories and dates."""
    import pandas as pd

    columns = {
        "amount": np.exp(3 * X[:, 0]),
        "gaps": np.where(np.arange(40) % 7 == 0, np.nan, X[:, 1]),
        "kind": np.where(X[:, 2] > 0, "left", "right"),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(40) * 9, unit="D"),
    }
    return pd.DataFrame(columns)


class DamagedPartError(Exception):
    """scikit-learn cannot read an object of its own; `binfeat.load` raises a ValueError that names the file."""


class Saved:
    """An estimator as stored in a file: its class, and its state, with nested estimators as `Saved`."""

    def __init__(self, estimator: BaseEstimator) -> None:
        self.kind, self.state = type(estimator), _saved(estimator.__getstate__())

    def load(self) -> BaseEstimator:
        estimator, state = self.kind.__new__(self.kind), _loaded(self.state)
        if isinstance(estimator, Persistent):
            estimator.__setstate__(state)
        elif hasattr(estimator, "__setstate__"):
            try:
                estimator.__setstate__(state)
            except Exception as error:  # errors of scikit-learn, for which `binfeat.load` names the file, too
                raise DamagedPartError from error
        else:
            vars(estimator).update(state)
        return estimator


def _saved(value: Any) -> Any:
    if isinstance(value, BaseEstimator):
        return Saved(value)
    if isinstance(value, dict):
        return {name: _saved(own) for name, own in value.items()}
    return type(value)(map(_saved, value)) if type(value) in (list, tuple) else copy.deepcopy(value)


def _loaded(value: Any) -> Any:
    if isinstance(value, Saved):
        return value.load()
    if isinstance(value, dict):
        return {name: _loaded(own) for name, own in value.items()}
    return type(value)(map(_loaded, value)) if type(value) in (list, tuple) else copy.deepcopy(value)


def leaves(value: Any, path: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    """Yield paths and values of all leaves, and of containers."""
    if path:
        yield path, value
    own = value.state if isinstance(value, Saved) else value
    if isinstance(own, dict):
        for name in own:
            yield from leaves(own[name], (*path, name))
    elif type(own) in (list, tuple):
        for place, part in enumerate(own):
            yield from leaves(part, (*path, place))


def replaced(value: Any, path: tuple, new: Any) -> Any:
    """Return a copy with one leaf replaced or deleted; only objects on the path are copied."""
    if isinstance(value, Saved):
        own = copy.copy(value)
        own.state = replaced(value.state, path, new)
        return own
    first, *others = path
    parts = dict(value) if isinstance(value, dict) else list(value)
    if others:
        parts[first] = replaced(value[first], tuple(others), new)
    elif new is DELETED:
        del parts[first]
    else:
        parts[first] = new
    return tuple(parts) if isinstance(value, tuple) else parts


def mutants(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield replacements of a value by name."""
    yield "deleted", DELETED
    yield "None", None
    if isinstance(value, np.ndarray):
        yield from _arrays(value)
    others = ("x", -1, 0, 1, True, 2**40, 0.5, np.nan, np.inf, [], {}, np.zeros(3), np.array(["a", None], dtype=object))
    yield from ((f"{other!r}", other) for other in others)
    yield "a sparse matrix", sparse.csr_matrix((np.ones(2), np.array([0, 2**30]), np.array([0, 1, 2])), shape=(2, 3))
    if isinstance(value, dict | list):
        yield "empty", type(value)()


def _arrays(array: np.ndarray) -> Iterator[tuple[str, Any]]:
    yield "scalar", np.zeros((), array.dtype)
    yield "empty", array.ravel()[:0]
    yield "wider", array[None]
    yield "flat", array.ravel()
    yield "transposed", array.T.copy()
    yield "doubled", np.concatenate([array, array]) if array.ndim else array
    yield "Fortran order", np.asfortranarray(array)
    yield "masked", np.ma.masked_array(array, mask=np.ones(array.shape, dtype=bool))
    yield "a subclass", array.view(np.matrix) if array.ndim == 2 else array.view(np.recarray)
    if array.ndim:
        yield "halved", array[: len(array) // 2].copy()
        yield "one fewer", array[:-1].copy()
        yield "no last axis", array[..., :0].copy()
        yield "backwards", array[::-1].copy()
        yield "strides", np.repeat(array, 2, axis=-1)[..., ::2]
    if array.dtype.names:
        return
    for dtype in ("f4", "f8", "i2", "i8", "u8", ">f8", "?", "O", "U8", "c16"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield dtype, array.astype(dtype)
        except (ValueError, TypeError):
            continue
    yield from _values(array)


def _values(array: np.ndarray) -> Iterator[tuple[str, Any]]:
    kind = array.dtype.kind
    if not array.size or kind not in "iufU":
        return
    numbers = {"f": [np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300, 1e-300], "U": ["", "\0", "x"]}.get(kind)
    if numbers is None:
        limits = np.iinfo(array.dtype)
        numbers = [limits.max, limits.min, 0, 1, limits.max // 2**12]
    for number in numbers:
        with np.errstate(over="ignore"):
            for where, places in (("first", 0), ("last", -1), ("all", slice(None))):
                own = array.copy()
                own.ravel()[places] = number
                yield f"{where} {number}", own
    if kind in "iu":
        yield "one more", array + array.dtype.type(1)
        yield "negative", (-array.astype(np.int64)).astype(array.dtype)


_METHODS = (
    "transform",
    "encode",
    "predict",
    "predict_proba",
    "decision_function",
    "predict_quantiles",
    "predict_interval",
    "sample_y",
    "check",
    "apply",
    "shapley_values",
    "density",
    "contributions",
    "drift",
)
_WITHOUT_ROWS = "summary", "compact", "get_feature_names_out", "__getstate__"
_ATTRIBUTES = "feature_importances_", "linear_map_", "_n_features_out"


def calls(model: BaseEstimator, rows: Any) -> Iterator[tuple[str, Any]]:
    """Yield all calls of a fitted model that read its attributes, by name."""
    for name in _METHODS:
        if hasattr(type(model), name):
            yield name, lambda name=name: getattr(model, name)(rows)
    if hasattr(type(model), "predict_interval"):
        yield "deviations", lambda: model.predict_interval(rows, 0.5, method="deviations")
        yield "quantiles", lambda: model.predict_quantiles(rows, [0.5])
        yield "predict std", lambda: model.predict(rows, return_std=True)
    for name in _WITHOUT_ROWS:
        if hasattr(type(model), name):
            yield name, lambda name=name: getattr(model, name)()
    for name in _ATTRIBUTES:
        if hasattr(type(model), name):
            yield name, lambda name=name: getattr(model, name)
    yield "repr", lambda: repr(model)
    if hasattr(type(model), "partial_fit") and hasattr(model, "_kept"):
        y = LABELS if hasattr(model, "classes_") else Y
        yield "partial_fit", lambda: copy.deepcopy(model).partial_fit(rows, y)


def is_named(error: BaseException) -> bool:
    """Return True if an error was raised on purpose: its last frame is a `raise` of this package or of scikit-learn."""
    if not isinstance(error, ValueError | TypeError | MemoryError | AttributeError):
        return False
    last = traceback.extract_tb(error.__traceback__)[-1]
    is_ours = "/binfeat/" in last.filename or "/sklearn/" in last.filename
    return is_ours and linecache.getline(last.filename, last.lineno).lstrip().startswith("raise")


def _is_finite(value: Any) -> bool:
    if sparse.issparse(value):
        value = value.data
    if isinstance(value, list | tuple):
        return all(map(_is_finite, value))
    return not (isinstance(value, np.ndarray) and value.dtype.kind == "f") or bool(np.isfinite(value).all())


def outcome(saved: Saved, rows: Any, known: set[str]) -> tuple[str, str]:
    """Return the outcome of loading and calling all methods, and the fault. `known` fail without a mutation."""
    try:
        model = saved.load()
    except DamagedPartError:
        return "refused", ""
    except (ValueError, TypeError) as error:
        return ("refused", "") if is_named(error) else ("raw error at load", repr(error))
    except Exception as error:
        return "raw error at load", repr(error)
    refused = ""
    for name, call in calls(model, rows):
        try:
            result = call()
        except Exception as error:
            if name in known:
                continue
            if not is_named(error):
                last = traceback.extract_tb(error.__traceback__)[-1]
                return "raw error later", f"{name}: {error!r} in {last.filename.rpartition('/')[2]}:{last.lineno}"
            refused = f"{name}: {error}"
        else:
            if name not in ("__getstate__", "predict_interval") and not _is_finite(result) and name not in known:
                return "not finite", name
    return ("named error later", refused) if refused else ("works", "")


def failing(saved: Saved, rows: Any) -> set[str]:
    """Return calls of a model that fail, or are not finite, without a mutation."""
    found = set()
    for name, call in calls(saved.load(), rows):
        try:
            if not _is_finite(call()):
                found.add(name)
        except Exception:
            found.add(name)
    return found


_FEWEST = 8  # least number of mutants of a model


def outcomes(name: str, model: BaseEstimator, rows: Any, share: float, seed: int = 0) -> tuple[Counter, list[str]]:
    """Count the outcomes of a share of all mutants of a model, and describe the faults."""
    saved, rng = Saved(model), np.random.default_rng(seed)
    known, counts, faults = failing(saved, rows), Counter[str](), []
    found = [(path, *mutant) for path, value in leaves(saved) for mutant in mutants(value)]
    share = max(share, _FEWEST / len(found))
    for path, mutation, new in found:
        if rng.random() >= share:
            continue
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            kind, fault = outcome(replaced(saved, path, new), rows, known)
        counts[kind] += 1
        if kind not in ("works", "refused", "named error later"):
            faults.append(f"{name} {'.'.join(map(str, path))} {mutation}: {kind}: {fault}"[:300])
    return counts, faults
