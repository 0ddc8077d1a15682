"""Methods of fitted kernel models for deployment: checks of new rows, explanations, copies and exports."""

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from binfeat._common.derived import Derived
from binfeat._common.gamma_scale import gamma_of_varying_inputs
from binfeat._common.validation import check_flag, check_integer, names_of_inputs, seed_of
from binfeat._rows.row_sample import RowSample
from binfeat._rows.sources import SourceSummary, is_source
from binfeat._threads import blas_threads
from binfeat.features.binning.two_samples import MOST_ROWS, Drift, drift_between
from binfeat.kernels.families import Laplacian
from binfeat.length_scales.codes import std_without_codes
from binfeat.models.estimator import KernelMachineBase
from binfeat.models.fitted.fitted import Fitted, compacted
from binfeat.models.fitted.local import LocalFunction
from binfeat.models.served.shapley import ShapleyValues, background_of, contributions, shown
from binfeat.models.served.shapley import interactions as pair_values
from binfeat.models.table.columns import RawTable, in_order
from binfeat.models.table.findings import Findings, NoveltyPolicy

if TYPE_CHECKING:
    from onnx import ModelProto


def compared(model: KernelMachineBase, X: RawTable) -> tuple[Findings, np.ndarray]:
    """Return differences between the values of a table and the training rows, and the encoded table."""
    ordered, others = in_order(model, X)
    found, rows = model._fitted.encoder.compared(model, ordered)
    return others.merged(found), rows


class TableCheck:
    """Compares a table, which arrives in blocks, with the training rows of a model."""

    def __init__(self, model: KernelMachineBase) -> None:
        self._model, self._fitted = model, model._fitted
        self._found, self._sample_of = Findings(), RowSample.in_turn(0)
        self._sample: RowSample | None = None

    def add(self, X: RawTable) -> None:
        """Compare the values in a block, and keep a sample of its rows."""
        found, rows = compared(self._model, X)
        sample = self._sample_of(self._fitted.scaled(rows))
        self._sample = sample if self._sample is None else self._sample + sample
        self._found = self._found.merged(found)

    @property
    def findings(self) -> Findings:
        if self._sample is None:
            return self._found
        names = names_of_inputs(self._model)
        drift = _drift_of(self._fitted, self._sample.rows, names, self._model.n_jobs)
        return Findings(self._found, self._found.n_rows, drift)


def _drift_of(fitted: Fitted, new: np.ndarray, names: Sequence[str], n_jobs: int | None) -> Drift | None:
    """Test scaled rows against the training rows that a model stores; None if there are fewer than two of either.

    Each row counts once, for any weight, because copies merged by `fit` are not independent rows.
    """
    known = fitted.with_rows
    if known is None or min(len(new), known.n_rows) < 2:
        return None
    unit, center = known.unit, known.center
    drawn = np.random.default_rng(0).permutation(known.n_rows)[:MOST_ROWS]
    old = known.support.T[drawn] * unit + center
    new = ((new - center) / unit).astype(np.float32) * unit + center  # rounded like stored rows
    categorical, inputs = fitted.encoder.categorical, fitted.encoder.source
    gamma = gamma_of_varying_inputs(std_without_codes(old, categorical), categorical)
    return drift_between(old, new, Laplacian(), gamma, categorical, names, n_jobs=n_jobs, inputs=inputs)


class ServedModelBase(KernelMachineBase):
    def check(self, X: RawTable) -> Findings:
        """List differences between rows and the training rows; predictions for such rows are extrapolations.

        Reported are missing values in a column that was complete in `fit`, new categories and codes, numbers stored as
        strings, and numbers outside the training range by more than its width. Predictions clip numbers to this widened
        range. In a sparse matrix, only numbers outside the widened range of all columns are reported, but predictions
        clip each column to its own. Words or infinity in a numeric column, and additional or reordered columns, are
        listed here but raise an error in predictions. Predictions do not warn of new codes, which then count as numbers
        only. Other numeric types, such as float32 or bool, are not reported. If `fit` read more rows than fit in
        memory, rows are compared with the sample used for selections.

        A two-sample test compares the distributions of up to 2,000 new rows and 2,000 training rows as a whole; see
        `OutlierDetector.drift`. It ranks the inputs by their share of the drift. Exact and local models store training
        rows; regressors with random features store the rows that their prediction intervals are based on. Classifiers
        with random features store no rows, so the test is skipped.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs), or source of blocks

        Returns
        -------
        findings : Findings
            List of findings with the attributes `column`, `found`, `n_rows`, `examples` and `known`; empty if there are
            no differences. Its attribute `drift` is the test of the table as a whole, or None. It prints as a table.

        Raises
        ------
        TypeError, ValueError
            If columns are missing, or a categorical column contains infinity.
        """
        compared = TableCheck(self)
        if is_source(X):
            SourceSummary(X, lambda part, _: part, lambda part, *_: compared.add(part))
        else:
            compared.add(X)
        return compared.findings

    def apply(self, X: RawTable) -> np.ndarray:
        """Find the cells of rows, as `apply` of scikit-learn's forests finds leaves.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs)

        Returns
        -------
        cells : ndarray of shape (n_rows, n_trees), int32
            Index of the row's cell in each tree of a local model. Indices are unique across trees.

        Raises
        ------
        ValueError
            If the model is not local.
        """
        function = self._fitted.function
        if not isinstance(function, LocalFunction):
            raise ValueError(f"apply requires a local model with features_='local', got {self.features_!r}.")
        with NoveltyPolicy(self) as note:
            rows = self._fitted.rows(self, X, note)
        return function.trees(rows).T

    def shapley_values(
        self,
        X: RawTable,
        background: RawTable | None = None,
        n_permutations: int = 16,
        random_state: int | np.random.RandomState | None = 0,
        interactions: bool = False,
    ) -> ShapleyValues:
        """Shapley values: how much each input moves the prediction of a row away from the average prediction.

        The value of a set of inputs is the mean prediction when these inputs are fixed to the row's values and all
        other inputs are drawn independently from the background rows. For a regressor, values explain predictions in
        the units of y, or of the transformed targets (for example logarithms). For a classifier, they explain the raw
        scores before calibration, one per class for three or more classes.

        Values are exact, by Owen's integral (1972), if the kernel is a sum of products over inputs. The Matern kernel
        is approximated by a mixture of Gaussians with errors below 3e-4 (nu 1/2: 1e-3); for targets without noise,
        values can then be wrong by 1 % of the target's standard deviation. For models with a `linear_map_` or random
        features, values are averaged over pairs of a random permutation of the inputs and its reverse. All internal
        columns of a date or of an input with missing values count for that input. In a local model, base values are
        means over the row's cells: the function of these cells replaces the prediction, also for background values
        beyond them, so the values of an input that only separates cells are near 0. See
        :doc:`/user_guide/plot_11_mathematics`.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs)
        background : array, sparse matrix or data frame of shape (n_background, n_inputs), default=None
            Background rows. None uses up to 100 training rows stored in the model.
        n_permutations : int, default=16
            Number of pairs of permutations for sampled values. Each pair needs 2 predictions per input of each row.
        random_state : int, RandomState instance or None, default=0
            Seed of the permutations.
        interactions : bool, default=False
            If True, also compute Shapley interaction values of all pairs of inputs. Only for exact values.

        Returns
        -------
        values : ShapleyValues
            With attributes `values`, `base_values`, `standard_errors`, `data`, `feature_names` and `interactions`.

        Raises
        ------
        ValueError
            If X is a source of blocks, the model stores no rows and `background` is None, or `interactions` is True for
            sampled values.
        """
        check_flag(interactions, "interactions")
        n_permutations = check_integer(n_permutations, "n_permutations", 1)
        if is_source(X) or is_source(background):
            raise ValueError("X and background must be rows in memory; got a source of blocks.")
        fitted = self._fitted
        with NoveltyPolicy(self) as note:
            rows = fitted.rows(self, X, note)
        known = background_of(fitted) if background is None else fitted.rows(self, background)
        with blas_threads(self.n_jobs):
            found = contributions(fitted, rows, known, n_permutations, seed_of(random_state), self.n_jobs)
            pairs = pair_values(fitted, rows, known, found[0], self.n_jobs) if interactions else None
        return shown(fitted.targets, found, pairs, X, list(getattr(self, "feature_names_in_", [])))

    def compact(self) -> Self:
        """Make a smaller copy for deployment.

        Coefficients, weights and residuals are stored in float32, and the history of the search for length scales is
        dropped. Predictions, intervals, explanations and warm starts still work. A prediction changes by at most
        ``2**-24`` times the sum of the absolute values of its coefficients, in units of the standardized targets. It
        usually changes by some millionths of a standard deviation. With an `alpha` below 0.0001, it can change by some
        thousandths.

        Returns
        -------
        model : KernelMachineRegressor or KernelMachineClassifier
            Unchanged arrays are shared with this model, not copied.
        """
        check_is_fitted(self, "feature_coef_")
        model = copy(self)
        model.__dict__ |= compacted(self.__dict__)
        model._derived = Derived()
        return model

    def to_onnx(self) -> "ModelProto":
        """Export an ONNX model, for predictions in other languages and runtimes.

        Exact and local models of numeric tables can be exported, in float64. NaN is a missing value, and categories
        have to be numbers. The input is "X" of shape (n_rows, n_inputs). The outputs are "predictions" of a regressor,
        or "class_number" and "probabilities" of a classifier; the model's metadata contains `classes_` as JSON. A local
        model gathers all rows of the cells of a row, 8 bytes per number, so pass a few hundred rows at a time.

        Returns
        -------
        model : onnx.ModelProto
            Write ``SerializeToString()`` to a file. Predictions equal `predict` up to the float32 rounding of kernel
            values.

        Raises
        ------
        ImportError
            If the package onnx is not installed.
        ValueError
            If the model has random features, dates, string categories, a custom target transformer, or several labels
            per row.
        """
        fitted = self._fitted
        try:
            from binfeat.models.served.onnx import model_of

            return model_of(fitted)
        except ImportError as error:
            raise ImportError("to_onnx requires the package onnx. Install it: pip install 'binfeat[onnx]'.") from error
