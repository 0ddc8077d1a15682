"""What the kernel machines share: parameters, the fit from a raw table, predictions, the summary."""

from functools import partial
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from binfeat._binning.grids import Grids
from binfeat._binning.input_checks import require_binning_memory
from binfeat._common.held_out import Loss, SquaredErrors, calibrate, splits
from binfeat._common.persistence import Persistent, check_machine
from binfeat._common.validation import check_choice, check_flag, check_integer, check_real, check_weights, seed_of
from binfeat._machine.growth import BinFunction, WaveFunction
from binfeat._machine.input_scalers import SCALERS
from binfeat._machine.streamed import StreamedTraining
from binfeat._machine.table_encoder import Columns
from binfeat._machine.training import Training
from binfeat._rows.sampled import SampledSource
from binfeat._rows.sources import is_source
from binfeat.kernels import binning_kernel

_functions: WeakKeyDictionary = WeakKeyDictionary()  # what predicts, made of the attributes when it is first needed


class KernelMachineBase(Persistent, CallbackSupportMixin, BaseEstimator):
    """Base of the kernel machines."""

    _check_state = staticmethod(check_machine)

    def __init__(
        self,
        *,
        features="auto",
        kernel="auto",
        gamma="learn",
        alpha="auto",
        n_grids="auto",
        scaling="auto",
        categorical_features="from_dtype",
        max_grids=1600,
        max_seconds=None,
        max_bytes=None,
        cv=None,
        validation_fraction=0.1,
        scoring=None,
        refit=True,
        n_jobs=None,
        random_state=None,
    ):
        self.features = features
        self.kernel = kernel
        self.gamma = gamma
        self.alpha = alpha
        self.n_grids = n_grids
        self.scaling = scaling
        self.categorical_features = categorical_features
        self.max_grids = max_grids
        self.max_seconds = max_seconds
        self.max_bytes = max_bytes
        self.cv = cv
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _read(self, X, y, sample_weight):
        """A source of blocks with its own targets and weights; anything else as it is."""
        if is_source(X):
            if y is not None or sample_weight is not None:
                raise ValueError("y and sample_weight must be None for a source of blocks, which brings its own.")
            self._check_parameters()
            X = SampledSource(self, X, seed_of(self.random_state))
            y, sample_weight = X.survey.y, X.survey.sample_weight
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        return X, y, sample_weight

    def _fit(self, X, y, Y, sample_weight, groups, finish, own, labels=None):
        """Fit to targets Y (n_rows, n_targets) that stand for y; `own` attributes are set with the others."""
        self._check_parameters()
        new_training = Training
        if isinstance(X, SampledSource):
            if not X.is_whole:
                new_training = partial(StreamedTraining, X, Y, check_weights(sample_weight, len(Y)))
            y, Y, sample_weight, groups, labels = X.sampled(y, Y, sample_weight, groups, labels)
            X = X.sample
        columns, table = Columns.fit(self, X, self.categorical_features)
        check_consistent_length(table, Y)
        if len(table) < 2:
            raise ValueError(f"{type(self).__name__} needs at least 2 rows, to hold some out; got n_samples=1.")
        if not isinstance(self.n_grids, str):
            require_binning_memory(*table.shape, int(self.n_grids), 0)
        weights = check_weights(sample_weight, len(table))
        train, held_out = self._split(table, y, groups)
        if weights is not None and not (weights[train].any() and weights[held_out].any()):
            raise ValueError("sample_weight is zero for all training rows or for all rows held out.")
        context = self._init_callback_context(max_subtasks=None).call_on_fit_task_begin(estimator=self, X=X, y=y)

        def judge_of(rows):
            if self.scoring is not None:
                return Loss(self, table[rows], y[rows], finish, own.get("classes_"))
            return SquaredErrors(Y[rows], None if weights is None else weights[rows])

        def going():
            task = context.subcontext(task_name="step").call_on_fit_task_begin(estimator=self)
            return not task.call_on_fit_task_end(estimator=self)

        training = new_training(
            self, table, Y, weights, train, held_out, judge_of, columns, seed_of(self.random_state), going
        )

        def keep(status):
            if labels is not None:
                their_weights = None if weights is None else weights[held_out]
                own["sharpness_"] = calibrate(training.held_out_predictions, labels[held_out], their_weights)
            vars(self).update(own)
            self._keep(training, columns, status)

        try:
            training.run()
        except KeyboardInterrupt:
            if training.sizing is None or not training.sizing.curve:
                raise
            if training.held_out_predictions is None:
                training.held_out_predictions = training.sizing.growth.held_out()
            keep("interrupted")
            raise
        keep(training.status)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)

    def _check_parameters(self):
        for name, words in (("gamma", ("learn", "scale")), ("alpha", ("auto",)), ("n_grids", ("auto",))):
            value = getattr(self, name)
            if isinstance(value, str) and value not in words:
                known = " or ".join(repr(word) for word in words)
                raise ValueError(f"{name} must be {known}, or a number, got {value!r}.")
        check_choice(self.features, "features", ("auto", "binning", "fourier", "hybrid"))
        check_choice(self.scaling, "scaling", ("auto", "standard", "arcsinh", "quantile", None))
        check_flag(self.refit, "refit")
        if not (isinstance(self.kernel, str) and self.kernel == "auto"):
            binning_kernel(self.kernel)
        if not isinstance(self.alpha, str):
            check_real(self.alpha, "alpha", minimum=0.0)
        if not isinstance(self.n_grids, str):
            check_integer(self.n_grids, "n_grids", 1)
        check_integer(self.max_grids, "max_grids", 1)
        if self.max_seconds is not None:
            check_real(self.max_seconds, "max_seconds", minimum=0.0)
        if self.max_bytes is not None:
            check_integer(self.max_bytes, "max_bytes", 1)

    def _split(self, table, y, groups):
        train, held_out = next(splits(self, len(table), y, groups))
        rng = np.random.default_rng(seed_of(self.random_state))
        return rng.permutation(train), rng.permutation(held_out)

    def _keep(self, training, columns, status):
        """Set the attributes, which are arrays, numbers and strings."""
        function, waves, self.intercept_ = training.sizing.growth.learned()
        self._columns = columns.arrays()
        self._scaler = {} if training.scaler is None else training.scaler.arrays()
        self._scale, self._shift, self._keys, self._nan_keys = function.grids.arrays
        self._bin_keys, self._bin_starts = function.keys, function.starts
        self.coef_ = np.hstack([function.coef, waves])
        self._frequencies = np.empty((0, 0)) if training.waves is None else training.waves.random_weights_
        self.gamma_, self.alpha_, self.n_grids_ = training.gamma, training.sizing.alpha, len(function.grids)
        self.kernel_ = repr(training.kernel)
        self.features_, self.scaling_ = training.features, training.scaling
        self.feature_relevances_ = np.bincount(columns.source, training.relevances, minlength=self.n_features_in_)
        self.width_errors_, self.width_gammas_ = training.width_errors, training.width_gammas
        self.learning_curve_ = np.array(training.sizing.curve)
        self.decisions_ = training.decisions.table()
        self.status_ = status

    def _scores(self, X):
        """Predictions of the targets."""
        parts = _functions.get(self)
        if parts is None or parts[0] is not getattr(self, "coef_", None):
            check_is_fitted(self, "coef_")
            grids = Grids(self._scale, self._shift, self._keys, self._nan_keys)
            n_bins = self._bin_keys.size
            bins = BinFunction(grids, self._bin_keys, self._bin_starts, np.ascontiguousarray(self.coef_[:, :n_bins]))
            waves = WaveFunction(self._frequencies, self.coef_[:, n_bins:].T) if self._frequencies.size else None
            scaler = SCALERS[self.scaling_].from_arrays(self._scaler) if self._scaler else None
            parts = _functions[self] = self.coef_, Columns.from_arrays(self._columns), scaler, bins, waves
        _, columns, scaler, bins, waves = parts
        table = columns.transform(self, X)
        if scaler is not None:
            table = scaler.transform(table)
        scores = self.intercept_ + (bins(table, self.n_jobs) if len(self._scale) else 0.0)
        return scores if waves is None else scores + waves(table)

    def summary(self):
        """What was decided in `fit`, in order.

        Returns
        -------
        table : str
            A line for each decision: what, the choice, the held-out error after it (mean squared error of the
            standardised targets, or minus the `scoring`) and the seconds since the start.
        """
        check_is_fitted(self, "coef_")
        rows = [("decision", "choice", "held-out error", "seconds")]
        rows += [(what, choice, f"{error:.4g}", f"{seconds:.1f}") for what, choice, error, seconds in self.decisions_]
        widths = [max(len(row[k]) for row in rows) for k in range(4)]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.non_deterministic = False
        return tags
