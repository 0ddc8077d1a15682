"""A fitted kernel model, and its conversion to and from attributes of an estimator."""

from dataclasses import dataclass, field
from typing import cast

import numpy as np
from sklearn.base import BaseEstimator

from binfeat._common.array_types import ArrayLike
from binfeat._common.calibration import Calibration
from binfeat._common.derived import Derived
from binfeat._common.labels import AnyLabels, LabelColumns, Labels, labels_of_model
from binfeat.features.binning.bin_map import BinMap
from binfeat.features.binning.grids import Grids
from binfeat.features.fourier.features import FourierMap
from binfeat.linear.posterior import RidgePosterior
from binfeat.models.fitted.exact import ExactFunction, ExactPosterior, ManyRowsPosterior, NoiseModel
from binfeat.models.fitted.features import FeatureFunction, FeaturePosterior
from binfeat.models.fitted.importance import rises_of_kernels
from binfeat.models.fitted.kernel_function import HeldOutErrors, KernelFunction
from binfeat.models.fitted.local import LocalFunction, LocalPosterior
from binfeat.models.fitted.saved import SINGLES
from binfeat.models.table.derived import scaled_in_older_files
from binfeat.models.table.encoder import TableEncoder
from binfeat.models.table.findings import Report
from binfeat.models.table.targets import Targets, TargetTransform, no_limits

Function = ExactFunction | LocalFunction | FeatureFunction
Posterior = ExactPosterior | ManyRowsPosterior | LocalPosterior | FeaturePosterior


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted model: from a raw table to predictions, with all decisions."""

    features: str  # "exact", "local", "binning" or "fourier"; in older files also "hybrid" (both features)
    kernel: str
    scaling: str
    alpha: float
    encoder: TableEncoder
    targets: Targets | AnyLabels
    function: Function
    intercept: np.ndarray  # (n_targets,)
    gamma: np.ndarray  # (n_columns,): for each encoded column, of the kernel with the larger share
    linear_map: np.ndarray | None  # (n_columns, rank), for scaled columns
    feature_relevances: np.ndarray  # (n_inputs,)
    length_scale_errors: np.ndarray  # (n_steps,), in the search
    length_scale_gammas: np.ndarray  # (n_steps, n_columns)
    held_out_error: np.ndarray  # (2,): mean and standard error
    learning_curve: np.ndarray  # (n_batches, 2): number of grids or trees, and error
    decisions: np.ndarray  # structured
    status: str
    samples: RidgePosterior | None = None  # posterior of the coefficients
    errors: HeldOutErrors | None = None
    noise_model: NoiseModel | None = None  # of numeric targets
    seen: np.ndarray | None = None  # `kept_hashes` of training rows in memory
    scaler: dict[str, np.ndarray] = field(default_factory=dict)  # scaler of the columns in older files
    # (n_inputs,): increase of the loss if an input is shuffled; None if the function stores rows, if inputs are too
    # many, or if `fit` was interrupted.
    rises: np.ndarray | None = None
    _derived: Derived = field(default_factory=Derived, repr=False)
    _derived_rises: Derived = field(default_factory=Derived, repr=False)

    @property
    def inverse_lengths(self) -> np.ndarray:
        """Return the inverse length scale of each encoded column."""
        function = self.function
        power = function.main_power if isinstance(function, KernelFunction) else 1 + (self.features == "fourier")
        return self.gamma ** (1 / power)

    @property
    def with_rows(self) -> KernelFunction | None:
        """Return a function that stores training rows, if any: for predictions, or for sizes of residuals."""
        return self.function if isinstance(self.function, KernelFunction) else self.noise_model

    def rows(self, estimator: BaseEstimator, X: object, note: Report = None) -> np.ndarray:
        """Encode and scale rows of a raw table; names and number of the columns are checked by the estimator."""
        return self.scaled(self.encoder.transform(estimator, X, note))

    def scaled(self, table: np.ndarray) -> np.ndarray:
        """Scale encoded rows."""
        return scaled_in_older_files(table, self.scaling, self.scaler) if self.scaler else table

    def scores(self, rows: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Return predictions of the targets, (n_rows, n_targets), for scaled rows."""
        return self.function.scores(rows, self.intercept, n_jobs)

    def importances(self, n_jobs: int | None) -> np.ndarray:
        """Return roots of the increases of the loss, (n_inputs,), in units of the targets (old files: relevances)."""
        rises = self._derived_rises.get(self, lambda: self._rises(n_jobs))
        return self.feature_relevances if rises is None else np.sqrt(np.maximum(rises, 0.0))

    def _rises(self, n_jobs: int | None) -> np.ndarray | None:
        if isinstance(self.function, KernelFunction):
            return rises_of_kernels(self.function, self.encoder.source, n_jobs)
        return self.rises

    def posterior(self, n_jobs: int | None) -> Posterior:
        """Return error bars; an exact model factorizes its kernel matrix once."""
        return self._derived.get(self, lambda: self.function.posterior(self.samples, self.errors, n_jobs))


_NONE = np.empty((0, 0))
# Fields that are attributes of an estimator with a trailing underscore.
_HISTORY = "length_scale_errors", "length_scale_gammas", "held_out_error", "learning_curve", "decisions"
_SAME = "features", "kernel", "scaling", "alpha", "intercept", "gamma", "feature_relevances", *_HISTORY


def attributes_of(fitted: Fitted) -> dict:
    return {
        **_of_targets(fitted),
        **_of_function(fitted),
        **{f"{name}_": getattr(fitted, name) for name in (*_SAME, "status")},
        "_columns": fitted.encoder.arrays(),
        "_scaler": fitted.scaler,
        "_rotation": _NONE if fitted.linear_map is None else fitted.linear_map,
        "n_grids_": fitted.function.n_grids,
        "n_trees_": fitted.function.n_trees,
        "_rises": {} if fitted.rises is None else {"of_inputs": fitted.rises},
        "_seen": {} if fitted.seen is None else {"hashes": fitted.seen},
    }


def require_finite(attributes: dict) -> None:
    error, *arrays = (attributes[name] for name in ("held_out_error_", "feature_coef_", "intercept_"))
    if not (np.isfinite(error[0]) and all(np.isfinite(array).all() for array in arrays)):
        raise ValueError(
            f"The fit is not finite: the validation error is {error[0]:.2g}, or coefficients exceed the range of "
            "float64. Scale X, y and sample_weight to numbers near 1, or use the default alpha and gamma."
        )


# Attributes of models of random features only.
FEATURE_ARRAYS = "_scale", "_shift", "_keys", "_nan_keys", "_bin_keys", "_bin_starts", "_frequencies"


def _of_function(fitted: Fitted) -> dict:
    function = fitted.function
    if isinstance(function, KernelFunction):
        arrays = function.arrays()
        coef, is_local = arrays.pop("coef"), isinstance(function, LocalFunction)
        return {"feature_coef_": coef, "_exact": {} if is_local else arrays, "_local": arrays if is_local else {}}
    bins, fourier = function.bins, function.fourier
    own = *bins.grids.arrays, bins.keys, bins.starts, _NONE if fourier is None else fourier.frequencies
    return {"feature_coef_": function.coef, "_exact": {}, "_local": {}} | dict(zip(FEATURE_ARRAYS, own, strict=True))


def _of_targets(fitted: Fitted) -> dict:
    targets = fitted.targets
    if isinstance(targets, AnyLabels):
        return _of_labels(targets)
    transform = targets.transform
    own, name = {"target_transformer_": transform.transformer}, type(transform.transformer).__name__
    return {
        **(own if transform.name == "given" else {}),
        "target_transform_": name if transform.name == "given" else transform.name,
        "_target_transform": {"center": transform.center, "unit": transform.unit}
        if transform.name == "arcsinh"
        else {},
        "_target_mean": targets.mean,
        "_target_std": targets.std,
        "_target_shifts": targets.shifts,
        "_target_limits": targets.limits,
        "_one_target": targets.flat,
        "_posterior": {} if fitted.samples is None else fitted.samples.arrays(),
        "_held_out": {} if fitted.errors is None else fitted.errors.arrays(),
        "_spread": {} if fitted.noise_model is None else fitted.noise_model.arrays(),
    }


def _of_labels(labels: AnyLabels) -> dict:
    if isinstance(labels, LabelColumns):
        columns = [_of_labels(own) for own in labels.columns]
        return {name: [own[name] for own in columns] for name in columns[0]} | {"multilabel_": False}
    calibration = cast(Calibration, labels.calibration)
    return {
        "classes_": labels.classes,
        "multilabel_": labels.is_multilabel,
        "calibration_coef_": calibration.coef,
        "calibration_intercept_": calibration.intercept,
    }


def compacted(attributes: dict) -> dict:
    """Return attributes for predictions only: coefficients, weights and residuals in float32, no history."""
    names = "_exact", "_local", "_held_out", "_spread"
    records = {name: _typed(attributes[name], np.float32) for name in names if name in attributes}
    n_columns, coef, exact = attributes["gamma_"].size, attributes["feature_coef_"], attributes["_exact"]
    if "anchor_coef" in exact:  # missing in older files
        records["_exact"]["anchor_coef"] = _rounded(exact["anchor_coef"], [0, exact["anchor_coef"].shape[1]])
    starts = [0, coef.shape[1]] if exact else attributes["_local"].get("starts", [])
    return {
        **attributes,
        **records,
        "feature_coef_": _rounded(coef, starts),
        "length_scale_errors_": np.empty(0),
        "length_scale_gammas_": np.empty((0, n_columns)),
    }


def _rounded(coef: np.ndarray, starts: ArrayLike) -> np.ndarray:
    """Round coefficients to float32 and keep their sum in each cell, because kernels can be almost constant.

    The smallest coefficient of a cell compensates for the errors of all, because float32 rounds it least.
    """
    rounded, ends = coef.astype(np.float32), np.unique(starts)
    for place in map(slice, ends[:-1], ends[1:]):
        lost = (coef[:, place] - rounded[:, place]).sum(axis=1)
        smallest = np.arange(len(coef)), place.start + np.abs(coef[:, place]).argmin(axis=1)
        rounded[smallest] += lost
    return rounded


def _typed(arrays: dict, dtype: type[np.floating]) -> dict:
    """Convert the arrays of `SINGLES`, which are float32 in a compact model, to a dtype; keep all others."""
    return {name: array.astype(dtype, copy=False) if name in SINGLES else array for name, array in arrays.items()}


def fitted_of(model: BaseEstimator) -> Fitted:
    posterior, held_out = getattr(model, "_posterior", {}), _typed(getattr(model, "_held_out", {}), np.float64)
    linear_map, noise_model = model._rotation, _typed(getattr(model, "_spread", {}), np.float64)
    return Fitted(
        **{name: getattr(model, f"{name}_") for name in _SAME},
        encoder=TableEncoder.from_arrays(model._columns),
        scaler=model._scaler,
        targets=_targets_of(model),
        function=_function_of(model),
        linear_map=linear_map if linear_map.size else None,
        status=vars(model).get("status_", ""),  # a fit in progress removes it
        samples=RidgePosterior.from_arrays(posterior) if posterior else None,
        errors=HeldOutErrors.from_arrays(held_out) if held_out else None,
        noise_model=NoiseModel.from_arrays(noise_model) if noise_model else None,
        seen=getattr(model, "_seen", {}).get("hashes"),
        rises=getattr(model, "_rises", {}).get("of_inputs"),
    )


def _targets_of(model: BaseEstimator) -> Targets | AnyLabels:
    if hasattr(model, "classes_") and isinstance(model.classes_, list):
        parts = zip(model.classes_, model.calibration_coef_, model.calibration_intercept_, strict=True)
        return LabelColumns(tuple(Labels(classes, Calibration(*own)) for classes, *own in parts))
    if hasattr(model, "classes_"):
        return labels_of_model(model)
    if hasattr(model, "target_transformer_"):
        transform = TargetTransform("given", transformer=model.target_transformer_)
    else:
        transform = TargetTransform(model.target_transform_, **model._target_transform)
    mean, std = model._target_mean, model._target_std
    limits = getattr(model, "_target_limits", no_limits(mean.size))  # missing in files of version 0.2.0
    return Targets(transform, mean, std, model._one_target, model._target_shifts, limits)


def _function_of(model: BaseEstimator) -> Function:
    coef = model.feature_coef_.astype(np.float64, copy=False)
    if model._exact:
        return ExactFunction.from_arrays({**_typed(model._exact, np.float64), "coef": coef})
    if model._local:
        return LocalFunction.from_arrays({**_typed(model._local, np.float64), "coef": coef})
    grids = Grids(model._scale, model._shift, model._keys, model._nan_keys)
    fourier = FourierMap(model._frequencies) if model._frequencies.size else None
    bins = BinMap(grids, model._bin_keys, model._bin_starts)
    return FeatureFunction(bins, fourier, np.ascontiguousarray(coef))
