"""Methods of fitted kernel models for deployment: checks of new rows, explanations, copies and exports."""

from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from binfeat._common.derived import Derived
from binfeat._common.validation import check_flag, check_integer, seed_of
from binfeat._rows.sources import SourceSummary, is_source
from binfeat._threads import blas_threads
from binfeat.models.estimator import KernelMachineBase
from binfeat.models.explained.shapley import ShapleyValues, background_of, contributions, shown
from binfeat.models.explained.shapley import interactions as pair_values
from binfeat.models.explained.table_check import TableCheck
from binfeat.models.fitted.fitted import compacted
from binfeat.models.fitted.local import LocalFunction
from binfeat.models.table.columns import RawTable
from binfeat.models.table.findings import Findings, NoveltyPolicy


class ServedMachineBase(KernelMachineBase):
    """Base class of kernel models with methods for deployment."""

    def check(self, X: RawTable) -> Findings:
        """List differences between rows and the training rows; predictions for such rows are extrapolations.

        Reported are missing values in a column that was complete in `fit`, new categories and codes, numbers stored as
        strings, and numbers outside the training range by more than its width (for a sparse matrix, the range of all
        columns). Predictions clip numbers to this widened range. Words or infinity in a numeric column, and additional
        or reordered columns, are listed here but raise an error in predictions. Predictions do not warn of
        new codes, which then count as numbers only. Other numeric types, such as float32 or bool, are not reported. If
        `fit` read more rows than fit in memory, rows are compared with the sample used for selections.

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
        means over the row's cells. See :doc:`/user_guide/plot_11_mathematics`.

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
            if interactions:
                found = replace(found, pairs=pair_values(fitted, rows, known, found.values, self.n_jobs))
        return shown(found.in_units_of(fitted.targets), X, list(getattr(self, "feature_names_in_", [])))

    def compact(self) -> Self:
        """Make a smaller copy for deployment.

        Coefficients, weights and residuals are stored in float32, and the history of the search for length scales is
        dropped. Predictions, intervals, explanations and warm starts still work. A prediction changes by at most
        ``2**-24`` times the sum of the absolute values of its coefficients, in units of the standardized targets: some
        millionths of a standard deviation.

        Returns
        -------
        model : KernelMachineRegressor or KernelMachineClassifier
            Unchanged arrays are shared with this model, not copied.
        """
        check_is_fitted(self, "feature_coef_")
        machine = copy(self)
        machine.__dict__ |= compacted(self.__dict__)
        machine._derived = Derived()
        return machine

    def to_onnx(self) -> Any:
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
            from binfeat.models.exported.onnx import model_of

            return model_of(fitted)
        except ImportError as error:
            raise ImportError("to_onnx requires the package onnx. Install it: pip install 'binfeat[onnx]'.") from error
