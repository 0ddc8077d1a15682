"""What fitted kernel machines have beside predictions: what is new in rows, explanations, other forms of themselves."""

from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from binfeat._common.derived import Derived
from binfeat._common.validation import check_flag, check_integer, seed_of
from binfeat._engine.policy import blas_threads
from binfeat._machine.estimator import KernelMachineBase
from binfeat._machine.explained.shapley import background_of, contributions
from binfeat._machine.explained.shapley import interactions as pair_values
from binfeat._machine.explained.values import ShapleyValues, shown
from binfeat._machine.fitted.attributes import compacted
from binfeat._machine.fitted.local import LocalFunction
from binfeat._machine.table.columns import RawTable, in_order
from binfeat._machine.table.findings import Findings, NoveltyPolicy
from binfeat._rows.sources import Survey, is_source


class ServedMachineBase(KernelMachineBase):
    """Base of kernel machines in service."""

    def check(self, X: RawTable) -> Findings:
        """What rows have that `fit` had not seen: where predictions are guesses.

        Missing values in a column that was complete in `fit`, categories and codes that were not there, numbers that
        are farther outside the range in `fit` than that range is wide (of a sparse matrix, the range of all columns),
        numbers that come as strings. Predictions take what is far outside for the farthest number that is not. Words
        and infinity in a column of numbers, and columns in another order, or beside those of `fit`, are listed here,
        but refused by predictions, which do not warn of new codes: these count as numbers only. Other types of
        numbers, such as float32 or bool, change nothing. Of rows beyond memory, "in `fit`" is in the sample that
        choices were made on.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs), or source of blocks

        Returns
        -------
        findings : Findings
            A list, empty if nothing is new, of findings with the attributes `column`, `found`, `n_rows`, `examples` and
            `known`. It prints as a table.

        Raises
        ------
        TypeError, ValueError
            If columns are missing, or a column of categories holds infinity.
        """
        encoder = self._fitted.encoder
        if is_source(X):
            return Survey(X, lambda part, _: part, lambda part, *_: self.check(part)).sum
        ordered, found = in_order(self, X)
        return found + encoder.findings(self, ordered)

    def apply(self, X: RawTable) -> np.ndarray:
        """Find the cells of rows, as `apply` of scikit-learn's forests finds leaves.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs)

        Returns
        -------
        cells : ndarray of shape (n_rows, n_trees), int32
            Number of the row's cell in each tree of a local machine; cells of all trees are numbered together.

        Raises
        ------
        ValueError
            If the machine is not local.
        """
        function = self._fitted.function
        if not isinstance(function, LocalFunction):
            raise ValueError(f"apply needs a local machine, features_='local'; this one has {self.features_!r}.")
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
        """Shapley values: what each input adds to the predictions for some rows.

        The value of a set of inputs is the mean output when these are the row's, and every other input is drawn from
        the background rows, each for itself. Where the kernel is a sum of products over inputs, values are in closed
        form, by Owen's integral (1972); Matern's kernel is taken as a mixture of Gaussians, off by less than 3e-4 (nu
        1/2: 1e-3), with which values of targets without noise may be off by a hundredth of the targets' standard
        deviation. Machines with a `linear_map_` or random features are sampled: pairs of a permutation of the inputs
        and its reverse. A date or a missing number counts with all columns that come from it. In a local machine a row
        stays in its cells, whose means are its base value.

        Explained are predictions of a regressor, in the units of y or of transformed targets (logarithms, say), and
        the raw scores of a classifier, one for each class of three or more, before probabilities are calibrated.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs)
        background : array, sparse matrix or data frame of shape (n_background, n_inputs), default=None
            None takes up to 100 rows of `fit` that the machine has kept.
        n_permutations : int, default=16
            Pairs of permutations, where values are sampled: each takes 2 predictions for every input of each row.
        random_state : int, RandomState instance or None, default=0
            Seed of the permutations.
        interactions : bool, default=False
            Whether to find what pairs of inputs add together, too: Shapley interaction values, by the same integral
            with two inputs left out, where values are in closed form.

        Returns
        -------
        values : ShapleyValues
            With attributes `values`, `base_values`, `standard_errors`, `data`, `feature_names` and `interactions`.

        Raises
        ------
        ValueError
            If X is a source of blocks, the machine keeps no rows and no background is given, or interactions are asked
            for where values are sampled.
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
        """Make a copy for deployment: smaller in memory and in files.

        Coefficients, weights and residuals are kept in float32, and the history of the search for length scales is left
        out. All predictions, intervals and explanations go on working, as does a warm start. A prediction changes by at
        most ``2**-24`` of the sum of its coefficients' absolute values, in the standardised targets: some millionths of
        a standard deviation.

        Returns
        -------
        machine : KernelMachineRegressor or KernelMachineClassifier
            Arrays that do not change are those of this machine, not copied.
        """
        check_is_fitted(self, "feature_coef_")
        machine = copy(self)
        machine.__dict__ |= compacted(self.__dict__)
        machine._derived = Derived()
        return machine

    def to_onnx(self) -> Any:
        """Make an ONNX model, for predictions in other languages and runtimes.

        Exact and local machines of tables of numbers can be exported: they are matrix products and elementwise
        functions, in float64. NaN is a missing value; categories have to be numbers. The input is "X",
        (n_rows, n_inputs); outputs are "predictions" of a regressor, and "class_number" and "probabilities" of a
        classifier, whose `classes_` the model's metadata have as JSON. A row of a local machine gathers the rows of its
        cells, 8 bytes for each of their numbers: give it some hundred rows at a time.

        Returns
        -------
        model : onnx.ModelProto
            Its ``SerializeToString()`` is the file. Predictions are those of `predict` but for float32's rounding of
            kernel values.

        Raises
        ------
        ImportError
            If the package onnx is not installed.
        ValueError
            If the machine has random features, dates, categories that are strings, a target transformer of the
            caller's, or several labels a row.
        """
        fitted = self._fitted
        try:
            from binfeat._machine.exported.onnx import model_of

            return model_of(fitted)
        except ImportError as error:
            raise ImportError("Models of ONNX need its package. Install it: pip install 'binfeat[onnx]'.") from error
