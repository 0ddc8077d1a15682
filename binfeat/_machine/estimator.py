"""What the kernel machines share: parameters, the fit from a raw table, predictions, the summary."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from binfeat._binning.grids import Grids
from binfeat._binning.input_checks import require_binning_memory
from binfeat._common.held_out import splits
from binfeat._common.persistence import Derived, Persistent, check_machine
from binfeat._common.progress import Progress
from binfeat._common.validation import (
    check_choice,
    check_flag,
    check_integer,
    check_real,
    check_weights,
    require_y,
    seed_of,
)
from binfeat._engine.compilation import compilations
from binfeat._engine.policy import blas_threads
from binfeat._kernels.parameters import WithKernel
from binfeat._machine.fitted.functions import BinFunction, ExactFunction, FourierFunction, Predictor
from binfeat._machine.fitted.previous import Earlier, fitted_with
from binfeat._machine.limits import Limits
from binfeat._machine.machines.all_rows import MemoryRows, SourceRows
from binfeat._machine.pipeline import MachineFit
from binfeat._machine.problem import Problem
from binfeat._machine.run import HEADER, Budget, Decisions, cells, line
from binfeat._machine.table.doubts import doubt_limit, doubt_rows
from binfeat._machine.table.encoder import TableEncoder
from binfeat._machine.table.scalers import scaler_of
from binfeat._rows.sampled import SampledSource
from binfeat._rows.scored import by_block
from binfeat._rows.sources import check_alone, is_source
from binfeat.kernels import binning_kernel

_RADIAL = "features='fourier' with kernel='auto', which takes Matern(1.5) or RBF"


class KernelMachineBase(WithKernel, Persistent, CallbackSupportMixin, BaseEstimator):
    """Base of the kernel machines."""

    _check_state = staticmethod(check_machine)
    _limits = Limits()

    def _read(self, X, y, sample_weight):
        """A source of blocks with its own targets and weights; anything else as it is."""
        if is_source(X):
            check_alone(y, sample_weight)
            self._check_parameters()
            X = SampledSource(self, X, seed_of(self.random_state))
            y, sample_weight = X.survey.y, X.survey.sample_weight
        return X, require_y(type(self).__name__, y), sample_weight

    def _fit(self, X, y, sample_weight, groups):
        """Fit to y, as an array."""
        self._check_parameters()
        targets = self._targets(y)
        all_rows: Any = MemoryRows
        if isinstance(X, SampledSource):
            if not X.is_whole:
                all_rows = partial(SourceRows, source=X, y=y, weights=check_weights(sample_weight, len(y)))
            y, sample_weight, groups = X.sampled(y, sample_weight, groups)
            X = X.sample
        self._fit_table(X, y, sample_weight, groups, targets, all_rows)

    def _fit_table(self, X, y, sample_weight, groups, targets, all_rows, budget=None):
        """Fit to a table in memory, or to what it is a sample of: to ``all_rows(problem)``."""
        budget = Budget(self.max_seconds) if budget is None else budget
        progress = Progress(self, X, y)
        decisions = Decisions(budget, self.verbose)
        earlier = Earlier.of(self, decisions)
        encoder, table = self._encode(X, y, earlier)
        targets = targets if earlier is None else earlier.targets(targets)
        weights = check_weights(sample_weight, len(table))
        train, held_out = self._split(table, y, weights, groups)
        given: Any = encoder, seed_of(self.random_state), groups is not None
        steps: Any = progress, self._limits, budget, decisions
        rows: Any = weights, train, held_out
        problem, fit = Problem(self, table, y, targets, *rows, *given, *steps), None
        problem = replace(problem, earlier=earlier)
        doubt_rows(table, problem.Y, apart=groups is not None or self.cv is not None)
        try:
            with blas_threads(self.n_jobs), compilations.told_to(progress.compiling, decisions.compiling):
                problem = self._prepared(problem, all_rows is MemoryRows)
                fit = MachineFit(problem, all_rows(problem))
                progress.begin(fit.n_stages)
                fit.run()
        except KeyboardInterrupt:
            if fit is None or not fit.has_machine:
                raise
            self._keep(problem, fit, "interrupted")
            raise
        self._keep(problem, fit, fit.status)
        doubt_limit(self.max_seconds, budget.used)
        progress.end()

    def _targets(self, y):
        """What stands for y: `Targets` or `Labels`."""
        raise NotImplementedError

    def _prepared(self, problem, in_memory):
        """The problem with what is decided before anything else."""
        return problem

    def _encode(self, X, y, earlier):
        """The table as numbers, of enough rows and few enough grids."""
        if earlier is None:
            encoder, table = TableEncoder.fit(self, X, self.categorical_features)
        else:
            encoder, table = earlier.encoder, earlier.encoder.transform(self, X)
        check_consistent_length(table, y)
        if len(table) < 2:
            raise ValueError(f"{type(self).__name__} needs at least 2 rows, to hold some out; got n_samples=1.")
        if not isinstance(self.n_grids, str):
            require_binning_memory(table.shape, int(self.n_grids), 0)
        return encoder, table

    def _check_parameters(self):
        for name, words in (("gamma", ("learn", "scale")), ("alpha", ("auto",)), ("n_grids", ("auto",))):
            value = getattr(self, name)
            if isinstance(value, str) and value not in words:
                known = " or ".join(repr(word) for word in words)
                raise ValueError(f"{name} must be {known}, or a number, got {value!r}.")
        check_choice(self.features, "features", ("auto", "binning", "fourier", "hybrid", "exact"))
        check_choice(self.scaling, "scaling", ("auto", "standard", "arcsinh", "quantile", None))
        check_flag(self.refit, "refit")
        check_flag(self.warm_start, "warm_start")
        check_integer(self.verbose, "verbose", 0)
        if not (isinstance(self.kernel, str) and self.kernel == "auto"):
            binning_kernel(self.kernel, instead=_RADIAL)
        if not isinstance(self.alpha, str):
            check_real(self.alpha, "alpha", minimum=0.0)
        if not isinstance(self.n_grids, str):
            check_integer(self.n_grids, "n_grids", 1)
        check_integer(self.max_grids, "max_grids", 1)
        if self.max_seconds is not None:
            check_real(self.max_seconds, "max_seconds", minimum=0.0)
        if self.max_bytes is not None:
            check_integer(self.max_bytes, "max_bytes", 1)

    def _split(self, table, y, weights, groups):
        """Training rows and held-out rows, each in random order."""
        train, held_out = next(splits(self, len(table), y, groups))
        if weights is not None and not (weights[train].any() and weights[held_out].any()):
            raise ValueError("sample_weight is zero for all training rows or for all rows held out.")
        rng = np.random.default_rng(seed_of(self.random_state))
        return rng.permutation(train), rng.permutation(held_out)

    def _keep(self, problem, fit, status):
        """Set the attributes, which are arrays, numbers and strings."""
        rows, predictions = fit.judged()
        self.__dict__.pop("target_transformer_", None)
        self.__dict__ |= problem.targets.attributes(problem, rows, predictions)
        self.held_out_error_ = _error(problem, rows, predictions)
        kernels, encoder = fit.kernels, problem.encoder
        self._columns = encoder.arrays()
        self._scaler = {} if kernels.scaler is None else kernels.scaler.arrays()
        self._keep_function(fit)
        power = 1 if fit.exact is None else fit.scales.kernel.power
        relevances = kernels.relevances(fit.gamma, power)
        self.gamma_ = fit.gamma ** (1 / power)
        self._rotation = np.empty((0, 0)) if fit.rotation is None else fit.rotation
        self.feature_relevances_ = np.bincount(encoder.source, relevances, minlength=self.n_features_in_)
        self.width_errors_, self.width_gammas_ = kernels.history(fit.scales)
        self.kernel_, self.scaling_ = fit.kernel_name, kernels.scaling
        self.decisions_, self._fitted_with = problem.decisions.table(), fitted_with(self)
        self._derived = Derived()
        self.status_ = status

    def _keep_function(self, fit):
        """What predicts: bins and Fourier features, or kernel values with the rows of the fit."""
        if fit.exact is not None:
            self.features_, self.alpha_, self.n_grids_ = "exact", fit.exact.alpha, 0
            self._exact, self.intercept_ = fit.exact.function.arrays(), fit.exact.intercept
            self.feature_coef_ = self._exact.pop("coef")
            self.learning_curve_ = np.array([[0, fit.exact.error]])
            return
        sizing = fit.sizing
        function, fourier, self.intercept_ = sizing.growth.learned()
        self._scale, self._shift, self._keys, self._nan_keys = function.grids.arrays
        self._bin_keys, self._bin_starts = function.keys, function.starts
        self.feature_coef_ = np.hstack([function.coef, fourier]) if fourier.size else function.coef
        self._frequencies = np.empty((0, 0)) if fit.fourier is None else fit.fourier.frequencies
        self.features_, self.alpha_, self.n_grids_ = fit.features.features, sizing.alpha, len(function.grids)
        self.learning_curve_ = np.array(sizing.curve)
        self._exact = {}

    def _scores(self, X):
        """Predictions of the targets."""
        if not hasattr(self, "feature_coef_"):
            check_is_fitted(self, "feature_coef_")
        if is_source(X):
            return by_block(X, self._scores)[0]
        with blas_threads(self.n_jobs):
            return self._predictor_of_fit()(self, X)

    def _predictor_of_fit(self):
        return self._derived.get(self.feature_coef_, self._predictor)

    def _predictor(self):
        bins = fourier = exact = None
        if self._exact:
            exact = ExactFunction.from_arrays({**self._exact, "coef": self.feature_coef_})
        else:
            bins, fourier = self._functions_of_features()
        parts = bins, fourier, exact, self.intercept_, *self._error_parts()
        return Predictor(TableEncoder.from_arrays(self._columns), scaler_of(self), *parts)

    def _error_parts(self):
        """Samples of the coefficients, and errors of rows held out, of a machine that has error bars."""
        return None, None

    def _functions_of_features(self):
        bins = fourier = None
        n_bins = self._bin_keys.size
        if len(self._scale):
            grids = Grids(self._scale, self._shift, self._keys, self._nan_keys)
            coef = np.ascontiguousarray(self.feature_coef_[:, :n_bins])
            bins = BinFunction(grids, self._bin_keys, self._bin_starts, coef)
        if self._frequencies.size:
            fourier = FourierFunction(self._frequencies, self.feature_coef_[:, n_bins:].T)
        return bins, fourier

    @property
    def feature_importances_(self):
        """`feature_relevances_`, by the name that scikit-learn's selectors of features know."""
        return self.feature_relevances_

    @property
    def rotation_(self):
        """What scaled inputs are mapped by in the kernel that `gamma_` belongs to, or None."""
        check_is_fitted(self, "feature_coef_")
        rotation = getattr(self, "_rotation", np.empty((0, 0)))  # older files have none
        return rotation if rotation.size else None

    def summary(self) -> str:
        """What was decided in `fit`, in order.

        Returns
        -------
        table : str
            A line for each decision: what, the choice, the held-out error after it (mean squared error of the
            standardised targets, or minus the `scoring`) and the seconds since the start.
        """
        check_is_fitted(self, "feature_coef_")
        rows = [HEADER, *(cells(*row) for row in self.decisions_)]
        widths = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join(line(row, widths) for row in rows)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.non_deterministic = False
        return tags


def _error(problem, rows, predictions):
    """Mean error of predictions for some rows, and its standard error, NaN of a score or a single row."""
    if problem.machine.scoring is not None:
        return np.array([problem.decisions.rows[-1][2], np.nan])
    losses = problem.loss_of(rows)(predictions)
    spread = losses.std(ddof=1) / np.sqrt(losses.size) if losses.size > 1 else np.nan
    return np.array([losses.mean(), spread])
