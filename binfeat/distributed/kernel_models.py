"""Kernel models on Dask collections."""

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from binfeat._common.fit_rollback import fit_method
from binfeat._common.labels import AnyLabels, Labels
from binfeat._common.validation import check_weights, require_y
from binfeat.distributed._all_rows import AllDaskRows
from binfeat.distributed._chunks import is_chunked, releasing_data
from binfeat.distributed._scorer import DaskScorer
from binfeat.distributed._table import DaskTable
from binfeat.models import classifier, regressor
from binfeat.models.estimator import KernelMachineBase
from binfeat.models.kernel_algebra.loss import LOSSES
from binfeat.models.run import Clock
from binfeat.models.settings import Settings
from binfeat.models.solvers.all_rows import check_beyond_memory
from binfeat.models.table.findings import Report, warn_of_rare_classes
from binfeat.models.table.targets import Targets, as_columns, first_transform
from binfeat.models.training_data import TrainingTable


class _OnDask(DaskScorer, KernelMachineBase):
    _in_memory: ClassVar[Any]
    _needs = "feature_coef_"

    @fit_method
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : Dask array or dataframe, or X of the class in `binfeat`, of shape (n_rows, n_inputs)
        y : Dask array, series or dataframe, or array-like, of shape (n_rows,) or (n_rows, n_targets), default=None
            Targets or labels. If its chunks differ from the chunks of X and lengths are unknown, one more pass over X
            counts the rows. None for a source of blocks only.
        sample_weight : float, Dask array or series, or array-like of shape (n_rows,), default=None
            Non-negative weights, not all zero.
        groups : Dask array or series, or array-like of shape (n_rows,), default=None
            Group of each row. All rows of a group are in the same split, and the search for length scales leaves out
            groups as a whole.

        Returns
        -------
        self : KernelMachineRegressor or KernelMachineClassifier

        Raises
        ------
        TypeError, ValueError
            As in `binfeat`; the error names the invalid chunk.
        RuntimeError
            If X belongs to a closed client, the scheduler is lost, or a task ends several workers, in most cases for
            lack of memory.
        """
        if not is_chunked(X):
            return self._in_memory.fit(self, X, y, sample_weight, groups)
        settings = self._settings()
        require_y(type(self).__name__, y)
        with releasing_data():
            return self._fit_chunks(X, y, sample_weight, groups, settings)

    def _fit_chunks(self, X: Any, y: Any, sample_weight: Any, groups: Any, settings: Settings) -> Self:
        clock = Clock(settings.max_seconds)
        table = DaskTable(self, X, y, sample_weight, groups, settings.seed)
        self._look_at(table)
        X, y, sample_weight, groups = table.sample()
        given = TrainingTable(X, y, sample_weight, groups, self._targets(y, check_weights(sample_weight, len(y))))
        if not table.is_whole:
            check_beyond_memory(settings, self.cv)
            rows = partial(AllDaskRows, estimator=self, table=table)
            ends = table.ends if isinstance(given.targets, Targets) else None
            given = replace(given, targets=self._targets_of(table, y), all_rows=rows, y_ends=ends)
        return self._fit_rows(given, settings, clock)

    def to_local(self) -> Any:
        """Convert to a model of `binfeat`, which can be loaded and can predict without Dask.

        Returns
        -------
        model : binfeat.KernelMachineRegressor or binfeat.KernelMachineClassifier
            A model that shares the arrays of this model.
        """
        check_is_fitted(self, "feature_coef_")
        local = self._in_memory(**self.get_params(deep=False))
        learned = {name: value for name, value in vars(self).items() if not name.startswith("_skl_")}
        vars(local).update(learned)
        return local

    def _rows_and_scores(self, X: Any, note: Report) -> tuple[np.ndarray, np.ndarray]:
        if is_chunked(X):
            raise TypeError(
                "This method, or return_std=True, requires rows in memory, got a Dask collection. Pass rows in memory, "
                "for example X.compute()."
            )
        return super()._rows_and_scores(X, note)

    def _look_at(self, table: DaskTable) -> None:
        """Check all targets, and change weights accordingly."""

    def _targets_of(self, table: DaskTable, y: np.ndarray) -> Targets | AnyLabels:
        """Return the encoding of the targets of all rows; y contains the targets of the sample."""
        raise NotImplementedError


class KernelMachineRegressor(_OnDask, regressor.KernelMachineRegressor):
    """`binfeat.KernelMachineRegressor` on the rows of a Dask array or dataframe.

    Parameters and attributes are described in `binfeat.KernelMachineRegressor`. A fitted model contains plain arrays:
    it also predicts rows in memory, and `to_local` converts it to a model of `binfeat`. Predictions for a Dask
    collection are a lazy Dask array.

    Notes
    -----
    **Method.** Hyperparameters are selected on a random sample of up to 200,000 rows, which this process fetches. If
    the sample contains all rows, the model is the same as for rows in memory. Otherwise a local model is fitted to all
    rows, or, if their inputs in float32 do not fit into `max_bytes` of this process, a model of binning features.
    Results do not depend on the chunks.

    **Limits.** `features` "exact", losses "log" and "squared_hinge", and several columns of labels require all rows in
    memory. "n_posterior_samples" in `solver_params` requires rows in memory or a source of blocks. A transformer for
    `target_transform` is fitted to the sample. With ``loss="huber"``, limits of outliers are estimated from the sample.

    **Memory and workers.** `max_bytes` limits the memory of this process; None is half of the computer's memory for
    binning features, and a quarter for a local model. A task uses `n_jobs` threads, or one thread for None. One worker
    per computer, with `n_jobs` equal to the number of cores, needs fewer tasks than many workers of one thread. For
    models above 10 MB, ignore Dask's warning about a large graph. The guide describes the memory of the workers and
    lost workers: :doc:`/user_guide/plot_05_many_computers`.

    Examples
    --------
    >>> import dask.array as da
    >>> from binfeat.distributed import KernelMachineRegressor
    >>> X = da.random.default_rng(0).uniform(-2, 2, size=(600, 2), chunks=(200, 2))
    >>> model = KernelMachineRegressor(random_state=0).fit(X, da.sin(3 * X[:, 0]))
    >>> model.predict(X).chunks
    ((200, 200, 200),)
    """

    __module__ = "binfeat.distributed"  # as saved files name it

    _in_memory = regressor.KernelMachineRegressor

    def _look_at(self, table: DaskTable) -> None:
        if "n_posterior_samples" in (self.solver_params or {}) and not table.is_whole:
            raise ValueError(
                "solver_params['n_posterior_samples'] requires rows in memory or a source of blocks; remove it on Dask."
            )
        table.replace_ignored()
        if LOSSES[self.loss].has_link:
            LOSSES[self.loss].check(table.ends, self.loss)

    def _targets_of(self, table: DaskTable, y: np.ndarray) -> Targets:
        transform = first_transform(self.target_transform, as_columns(y), LOSSES[self.loss].is_robust)
        mean, std = table.moments(transform)
        return Targets.of_moments(transform, mean, std, table.flat)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict targets as in `binfeat`; for a Dask collection without ``return_std``, a Dask array."""
        if return_std:
            return super().predict(X, return_std)
        return self._by_chunk("predict", X, lambda: (() if self._one_target else self.intercept_.shape, np.float64))


class KernelMachineClassifier(_OnDask, classifier.KernelMachineClassifier):
    """`binfeat.KernelMachineClassifier` on the rows of a Dask array or dataframe.

    Parameters and attributes are described in `binfeat.KernelMachineClassifier`. The Notes of
    `binfeat.distributed.KernelMachineRegressor` describe the differences on Dask.
    """

    __module__ = "binfeat.distributed"  # as saved files name it

    _in_memory = classifier.KernelMachineClassifier

    def _look_at(self, table: DaskTable) -> None:
        self._check_scoring([table.classes[0]])
        warn_of_rare_classes(*table.classes)
        table.weigh_classes(self.class_weight)

    def _targets_of(self, table: DaskTable, y: np.ndarray) -> Labels:
        return Labels(table.classes[0])

    def decision_function(self, X: Any) -> Any:
        """Return log-odds of the classes as in `binfeat`; for a Dask collection, a Dask array."""
        return self._by_chunk(
            "decision_function",
            X,
            lambda: (self.classes_.shape if self.multilabel_ or self.classes_.size > 2 else (), np.float64),
        )

    def predict(self, X: Any) -> Any:
        """Predict labels as in `binfeat`; for a Dask collection, a Dask array."""
        return self._by_chunk(
            "predict", X, lambda: (self.classes_.shape if self.multilabel_ else (), self.classes_.dtype)
        )

    def predict_proba(self, X: Any) -> Any:
        """Return class probabilities as in `binfeat`; for a Dask collection, a Dask array."""
        return self._by_chunk("predict_proba", X, lambda: (self.classes_.shape, np.float64))
