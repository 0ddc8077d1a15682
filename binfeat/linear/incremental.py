"""State of `partial_fit`: the rows so far, or, for dense features, the sums that a solve needs."""

from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator
from sklearn.base import BaseEstimator

from binfeat._common.warned import warn
from binfeat._rows.products import Design, Features
from binfeat._rows.rows import ProcessRows
from binfeat._rows.sources import is_source
from binfeat.features.binning.bin_matrix import BinMatrix
from binfeat.linear.design import check_design
from binfeat.linear.gram import GramSystem, gram_fits, gram_system

_SUMS = "matrix", "right", "means", "target_means"


class AccumulatedRows:
    """Rows of all calls, which every solve reads again: codes, CSR or an array, with targets and weights or None."""

    def __init__(self, Z: Features, Y: np.ndarray, weights: np.ndarray | None) -> None:
        self.to_solve = ProcessRows(Z, Y, weights)

    @classmethod
    def first(cls, rows: ProcessRows) -> Self:
        Z: Any = rows.Z
        if isinstance(Z, BinMatrix):
            Z = BinMatrix._trusted(np.array(Z.codes, order="C"), Z.offsets, Z.dtype, Z.n_jobs)
        else:
            Z = Z.copy()
        return cls(Z, np.array(rows.Y, order="C"), rows.weights)

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_columns: int, dtype: np.dtype, n_jobs: int | None) -> Self:
        if "codes" in arrays:
            Z: Any = BinMatrix(arrays["codes"], arrays["offsets"], dtype=dtype, n_jobs=n_jobs)
        elif "indptr" in arrays:
            parts = arrays["data"], arrays["indices"], arrays["indptr"]
            Z = sparse.csr_matrix(parts, shape=(len(parts[2]) - 1, n_columns))
            Z.check_format(full_check=True)
        else:
            Z = arrays["Z"]
        return cls(Z, arrays["Y"], arrays.get("weights"))

    def arrays(self) -> dict[str, np.ndarray]:
        rows = self.to_solve
        kept = {"Y": rows.Y} if rows.weights is None else {"Y": rows.Y, "weights": rows.weights}
        if isinstance(rows.Z, np.ndarray):
            return kept | {"Z": rows.Z}
        names = ("codes", "offsets") if isinstance(rows.Z, BinMatrix) else ("data", "indices", "indptr")
        return kept | {name: getattr(rows.Z, name) for name in names}

    def joined(self, more: ProcessRows) -> "AccumulatedRows":
        """Add rows; ValueError if their features are of another kind, or of other bins."""
        rows = self.to_solve
        weights = None
        if rows.weights is not None or more.weights is not None:
            parts = (np.ones((len(part.Y), 1)) if part.weights is None else part.weights for part in (rows, more))
            weights = np.concatenate(list(parts))
        return AccumulatedRows(_stacked(rows.Z, more.Z), np.concatenate([rows.Y, more.Y]), weights)

    def settled(self, fit_intercept: bool, needs_rows: bool) -> "AccumulatedRows | AccumulatedSums":
        """Return the state, or its sums if they need less memory than the rows and rows are not required."""
        rows = self.to_solve
        if not needs_rows and rows.dense and rows.shape[0] > rows.shape[1] and gram_fits(rows.shape[1]):
            return AccumulatedSums(gram_system(rows, fit_intercept), fit_intercept)
        return self


class AccumulatedSums:
    """The normal equations of dense rows of all calls; the memory does not depend on the number of rows."""

    def __init__(self, system: GramSystem, fit_intercept: bool) -> None:
        self.to_solve, self._fit_intercept = system, fit_intercept

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], dtype: np.dtype) -> Self:
        sums = {name: arrays[name] for name in _SUMS}
        return cls(GramSystem(**sums, dtype=dtype, total=float(arrays["total"])), bool(arrays["fit_intercept"]))

    def arrays(self) -> dict[str, np.ndarray]:
        system = self.to_solve
        others = {"total": np.array(system.total), "fit_intercept": np.array(self._fit_intercept)}
        return {name: getattr(system, name) for name in _SUMS} | others

    def joined(self, more: ProcessRows) -> "AccumulatedSums":
        """Add rows; ValueError unless their features are an array."""
        if not isinstance(more.Z, np.ndarray):
            raise ValueError(_another_kind("an array", more.Z))
        return AccumulatedSums(self.to_solve + gram_system(more, self._fit_intercept), self._fit_intercept)

    def settled(self, fit_intercept: bool, needs_rows: bool) -> "AccumulatedSums":
        """Return the state; ValueError if rows are required, or if `fit_intercept` has changed."""
        if needs_rows:
            raise ValueError(
                "loss must be 'squared_error', as in earlier calls of partial_fit, because only their sums are stored; "
                "got 'squared_hinge'."
            )
        if fit_intercept != self._fit_intercept:
            raise ValueError(
                f"fit_intercept must be {self._fit_intercept}, as in earlier calls of partial_fit, because only their "
                f"sums are stored; got {fit_intercept}."
            )
        return self


def check_next(estimator: BaseEstimator, X: Design) -> tuple[Features, bool]:
    """Return checked features of additional rows in memory, and True if these are the first rows."""
    first = not hasattr(estimator, "_kept")
    if is_source(X) or (isinstance(X, LinearOperator) and not isinstance(X, BinMatrix)):
        raise TypeError(
            f"partial_fit requires an array, a sparse matrix or a BinMatrix in memory; got {type(X).__name__}."
        )
    if first and hasattr(estimator, "coef_"):
        warn(
            "fit stores no rows, so partial_fit starts again with these rows. To accumulate rows, pass all of them "
            "to partial_fit.",
        )
    return check_design(estimator, X, reset=first), first


def kept_with(estimator: BaseEstimator, rows: ProcessRows, flat: bool) -> AccumulatedRows | AccumulatedSums:
    """Return the state of an estimator with additional rows; `flat` is for one-dimensional targets."""
    if not hasattr(estimator, "_kept"):
        return AccumulatedRows.first(rows)
    n_jobs = getattr(rows.Z, "n_jobs", None)
    kept = kept_of(estimator._kept, estimator.n_features_in_, estimator.coef_.dtype, n_jobs)
    if flat != (estimator.coef_.ndim == 1) or rows.n_targets != kept.to_solve.n_targets:
        raise ValueError("y must have the same number of targets in all calls of partial_fit.")
    return kept.joined(rows)


def kept_of(
    arrays: dict[str, np.ndarray], n_columns: int, dtype: np.dtype, n_jobs: int | None = None
) -> AccumulatedRows | AccumulatedSums:
    if "matrix" in arrays:
        return AccumulatedSums.from_arrays(arrays, dtype)
    return AccumulatedRows.from_arrays(arrays, n_columns, dtype, n_jobs)


def _stacked(Z: Features, more: Features) -> Features:
    if isinstance(Z, BinMatrix) and isinstance(more, BinMatrix):
        if Z.codes.dtype != more.codes.dtype or not np.array_equal(Z.offsets, more.offsets):
            raise ValueError(
                "X must have the same bins as in earlier calls of partial_fit. Fit RandomBinning once, or set its "
                "n_features, so that columns do not change."
            )
        codes = np.concatenate([Z.codes, more.codes], axis=1)
        return BinMatrix._trusted(codes, Z.offsets, np.result_type(Z.dtype, more.dtype), more.n_jobs)
    if sparse.issparse(Z) and sparse.issparse(more):
        return sparse.vstack([Z, more], format="csr")
    if isinstance(Z, np.ndarray) and isinstance(more, np.ndarray):
        return np.concatenate([Z, more])
    raise ValueError(_another_kind({BinMatrix: "codes", np.ndarray: "an array"}.get(type(Z), "a sparse matrix"), more))


def _another_kind(before: str, Z: Features) -> str:
    return f"X must be {before}, as in the earlier calls of partial_fit; got {type(Z).__name__}."
