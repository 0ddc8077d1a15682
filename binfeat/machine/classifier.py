"""`KernelMachineClassifier`."""

from __future__ import annotations  # signatures print as they are written

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags

from binfeat._common.labels import (
    AnyLabels,
    check_label_columns,
    columns_of,
    is_indicator,
    labels_in,
    require_two,
    weights_by_class,
)
from binfeat._common.validation import check_choice, is_word
from binfeat._machine.fitted.saved import check_classifier
from binfeat._machine.kernel_algebra.bounded import BOUNDED_LOSSES
from binfeat._machine.served_estimator import ServedMachineBase
from binfeat._machine.settings import Settings
from binfeat._machine.table.doubts import doubt_classes
from binfeat._report.method import Reporting
from binfeat._rows.scored import SourceScorer
from binfeat.kernels import exact_kernel


class KernelMachineClassifier(SourceScorer, ClassifierMixin, Reporting, ServedMachineBase):
    """Kernel ridge classification that chooses its settings: a raw table in, labels out.

    Each class is a target of `KernelMachineRegressor`, 1 for its rows and -1 for the others; two classes share one
    target. Probabilities are calibrated on rows that the machine had not seen, and the most probable class is the
    answer. Each label of an indicator matrix is a target of its own, and of several columns of labels each has classes
    of its own, as in scikit-learn's forests.

    Parameters
    ----------
    features : {"auto", "exact", "local", "binning", "fourier"}, default="auto"
        What the kernel is represented by: its matrix for all pairs of rows ("exact"), or for pairs of neighbouring rows
        ("local"), random grids ("binning"), or random Fourier features ("fourier"). "auto" is "exact"
        for up to 10,000 rows, and "local" for more, in memory, in blocks or on Dask; see Notes.
    kernel : "auto", str or object of `binfeat.kernels`, default="auto"
        "auto" chooses among several. Exact and local machines take "laplacian", "rbf", a `Laplacian`, `RBF`, or
        `Matern` of nu 1/2, 3/2, 5/2 or infinity, or with "auto" a sum of kernels; grids take a kernel with a pitch law,
        and Fourier features the given one if it is radial, else one of their own; see Notes.
    gamma : "learn", "scale", float or array-like of shape (n_inputs,), default="learn"
        Inverse length scale of each input. "learn" learns one per input (ARD) by the gradient of a leave-one-out error,
        as `learn_gamma` does; "scale" is ``1 / (n_inputs * std_j)``, for radial kernels ``1 / (n_inputs * std_j^2)``.
        An array may also have the shape of `gamma_`. The kernel defines its meaning, as in `binfeat.kernels` and in
        scikit-learn: the Gaussian is ``exp(-sum_j gamma_j (x_j - y_j)^2)``.
    alpha : "auto" or float, default="auto"
        Ridge penalty. "auto" chooses it by held-out rows, or by leave-one-out predictions of an exact machine.
    n_grids : "auto" or int, default="auto"
        Number of grids. "auto" adds grids until doubling them lowers the held-out error by less than 2 %.
    n_trees : "auto" or int, default="auto"
        Number of trees of a local machine. "auto" takes up to 8, with up to 1.6 million rows in all trees together, as
        long as one more should lower the squared error by 0.3 % and 1e-8 of the variance; cells of the second tell.
    cell_rows : "auto" or int, default="auto"
        Largest number of rows in a cell of a local machine; equal rows may exceed it. "auto" is 1,500, doubled, if
        `max_seconds` is set and leaves time, while the loss of rows left out falls by 0.3 %.
    categorical_features : "from_dtype", None or array-like of bool, int or str, default="from_dtype"
        Inputs that are categories. "from_dtype" takes the columns of a data frame that hold categories or strings.
        Strings that are numbers, or dates such as 2026-12-31, in all rows are read as such, with a warning.
    loss : {"squared", "log", "squared_hinge"}, default="squared"
        What scores of the classes minimise, before probabilities are calibrated: squares, the deviance of logistic
        regression, or that of support vector machines. The last two need all rows in memory, ``n_grids="auto"``, and
        `features` "auto", "exact" or "local"; see Notes.
    class_weight : dict or "balanced", default=None
        Weights of the classes, as in `sklearn.utils.class_weight.compute_class_weight`. Not with several labels a row.
    max_grids : int, default=1600
        Largest number of grids for ``n_grids="auto"``. There are fewer where solves would take too much work.
    max_seconds : float, default=None
        Soft time limit of `fit` in seconds; None is no limit. At most a third goes to length scales. Adding grids or
        trees, larger cells (see `cell_rows`), and refitting, start only if they are expected to end in time; an exact
        machine is solved in any case. With ``features="auto"`` a table in memory of more rows than cells can be solved
        of in time is thinned at random: `summary` says to how many, and `status_` is "budget".
    max_bytes : int, default=None
        Memory limit of `fit` in bytes, which covers copies of the table beyond 300 MB; None is a quarter of the
        computer's memory. See Notes.
    cv : int, splitter or iterable, default=None
        How rows are held out: by the first split of `sklearn.model_selection.check_cv`. None takes a random tenth. To
        hold out the last rows give ``[(earlier, last)]``: the first split of a `TimeSeriesSplit` has the oldest rows.
        Exact machines leave out each part in turn where splits are folds, as those of `KFold`.
    scoring : str or callable, default=None
        Score to maximise, unweighted, as in `sklearn.metrics.get_scorer`; None is minus the weighted squared error.
    refit : bool, default=True
        Whether the final coefficients are fitted to all rows, including those held out.
    warm_start : bool, default=False
        Whether a second `fit`, to all rows again, keeps scaling, length scales, kernel and kind of features; see Notes.
    on_unseen : {"warn", "ignore", "error"}, default="warn"
        Action if rows of a prediction differ from the training rows: missing values in a complete column, new
        categories, or numbers far outside the training range. "warn" warns once per fitted model, if a category is new
        or more than 1 % of the rows (at least two) are affected. `check` lists all differences.
    verbose : int, default=0
        1 prints the lines of `summary` as they are made, and "compiling" if a call is the first of its kind.
    n_jobs : int, default=None
        Number of threads; None is Numba's setting, all threads at first. With 1, BLAS has one, too.
    random_state : int, RandomState instance or None, default=None
        Seed of the grids, of the rows held out and of the samples.

    Attributes
    ----------
    gamma_ : ndarray of shape (n_columns,)
        Gamma of each column inside the machine, as the kernel defines it: inputs, then parts of dates, then a 0/1
        column for each input that had missing values. In a sum of kernels, the kernel with the larger share.
    linear_map_ : ndarray of shape (n_columns, rank), or None
        Linear map of scaled inputs x: the radial kernel depends on distances between rows of
        ``(x * sqrt(gamma_)) @ linear_map_``. Its rows have norm 1 and leave out categories. None without a map, or if
        the kernel of `gamma_` is not radial.
    feature_importances_ : ndarray of shape (n_inputs,)
        What each input does for the loss: the root of what the mean squared error of rows left out rises by when values
        of the input are shuffled, in standard deviations of the targets, of classes for targets 1 and -1; with another
        `loss` than squares, of the squares that stand for it near its minimum. It is computed when first asked for, on
        up to 1,000 rows; for random features in `fit`; with more than about 220 inputs and 200 grids, relevances
        replace it. `SelectFromModel` and `RFE` read it.
    feature_relevances_ : ndarray of shape (n_inputs,)
        Share of each input in the kernel's mean exponent; they sum to 1. It tells how finely the machine resolves an
        input, not what the input is worth: a linear effect, however strong, takes a long length scale.
    features_, kernel_, scaling_ : str
        The choices. `features_` is never "auto". `scaling_` is "ranks" where some numbers enter by their ranks as well,
        else "standard".
    alpha_ : float
        Ridge penalty.
    n_grids_ : int
        Number of grids; 0 without binning features.
    n_trees_ : int
        Number of trees; 0 unless the machine is local.
    length_scale_errors_, length_scale_gammas_ : ndarray of shape (n_steps,) and (n_steps, n_columns)
        Leave-one-out mean squared error of the standardised targets, and gammas, before each step of the search that
        led to `gamma_`. Empty if `gamma` is not "learn".
    held_out_error_ : ndarray of shape (2,)
        Mean squared error of the standardised targets, or the mean of another `loss`, or minus the `scoring`, on the
        rows that choices were made by, for a machine that had not seen them, and its standard error (NaN of a score),
        by groups, if there are any. Choices make it a little too low.
    learning_curve_ : ndarray of shape (n_batches, 2)
        Number of grids, or of trees, and held-out error each time that some were added; without both one row, 0 and the
        error.
    decisions_ : ndarray of shape (n_decisions,), structured
        Fields `what`, `choice`, `error` (held-out or leave-one-out, after it) and `seconds` (since the start).
    status_ : {"converged", "budget", "stopped", "interrupted"}
        Why the fit ended: by itself, by a limit of grids, time, memory or work, which `summary` names, by a callback,
        or by Ctrl-C.
    feature_coef_ : ndarray of shape (n_targets, n_features)
        Coefficients of random features, or of the rows of an exact machine, or of the rows of all cells.
    intercept_ : ndarray of shape (n_targets,)
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted; 0 to ``n_labels - 1`` for an indicator matrix. A list of arrays for several columns of labels,
        and so are `calibration_coef_` and `calibration_intercept_`.
    multilabel_ : bool
        Whether y was an indicator matrix.
    calibration_coef_, calibration_intercept_ : ndarray of shape (2, n_classes, n_classes) and (n_classes,)
        What makes log-odds of predictions of the targets and of logarithms; two classes for labels of an indicator
        matrix.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_inputs,)
        Names of the inputs, when X has string column names.

    See Also
    --------
    KernelMachineRegressor : The same machine for numbers.
    RandomBinning, RandomFourier, CGRidgeClassifier : The parts of the machine.

    Notes
    -----
    Choices are made as the Notes of `KernelMachineRegressor` say. With s the predictions of the targets for a row, its
    log-odds are ``A s + B log(p) + b``, where ``p = (1 + s) / 2``, smoothly kept above 0: what s says of the shares of
    the classes. A and B are multiples of the identity plus matrices with a ridge penalty (matrix scaling, Guo et al.
    2017; of logarithms, Kull et al. 2019). They maximise the likelihood of leave-one-out predictions, or of those for
    held-out rows; with `scoring`, all choices are made by predictions that are calibrated so.

    **Losses.** With ``loss="log"`` scores s of two classes minimise ``sum_i v_i log(1 + exp(-2 y_i s(x_i))) + alpha
    |w|^2``, y being -1 and 1, so that 2 s are log-odds; of more classes twice the cross entropy of their softmax, and a
    penalty for each class. On a linear kernel that is `sklearn.linear_model.LogisticRegression` with ``C = 2 / alpha``,
    or ``1 / alpha`` for more classes, and a penalised intercept. With "squared_hinge" each class minimises ``sum_i v_i
    max(0, 1 - y_i s(x_i))^2 + alpha |w|^2``. Several columns of labels have the sum of what each minimises. Length
    scales, kernel and sums of kernels are those of squares; the penalty is chosen by the loss of scores that leave each
    row out, to first order (Rad & Maleki 2020). Steps of L-BFGS begin with a bound of the curvature (Boehning 1992), so
    that one factor of the kernel matrix serves all classes and up to 20 steps; where these are not enough, the next 20
    begin with the curvature that was reached. "auto" is "exact" for up to 10,000 rows, with `cv` or `groups` up to
    1,500, and "local" for more.

    References
    ----------
    D. Boehning, "Multinomial logistic regression algorithm", Annals of the Institute of Statistical Mathematics 44,
    1992. C. Guo et al., "On Calibration of Modern Neural Networks", ICML 2017. M. Kull et al., "Beyond temperature
    scaling", NeurIPS 2019. J. Nocedal, Mathematics of Computation 35, 1980 (L-BFGS). K. Rad and A. Maleki, "A scalable
    estimate of the out-of-sample prediction error", JRSS B 82, 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from binfeat import KernelMachineClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = KernelMachineClassifier(random_state=0).fit(X[::2], y[::2])
    >>> bool(machine.score(X[1::2], y[1::2]) > 0.9)
    True
    """

    __module__ = "binfeat.machine"  # as saved files name it

    classes_: np.ndarray
    multilabel_: bool
    calibration_coef_: np.ndarray
    calibration_intercept_: np.ndarray

    _check_state = staticmethod(check_classifier)

    def __init__(
        self,
        *,
        features: str = "auto",
        kernel: Any = "auto",
        gamma: ArrayLike = "learn",
        alpha: float | str = "auto",
        n_grids: int | str = "auto",
        n_trees: int | str = "auto",
        cell_rows: int | str = "auto",
        categorical_features: ArrayLike | None = "from_dtype",
        loss: str = "squared",
        class_weight: Mapping | str | None = None,
        max_grids: int = 1600,
        max_seconds: float | None = None,
        max_bytes: int | None = None,
        cv: Any = None,
        scoring: str | Callable | None = None,
        refit: bool = True,
        warm_start: bool = False,
        on_unseen: str = "warn",
        verbose: int = 0,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.features, self.kernel, self.gamma, self.alpha = features, kernel, gamma, alpha
        self.n_grids, self.max_grids = n_grids, max_grids
        self.n_trees, self.cell_rows = n_trees, cell_rows
        self.categorical_features, self.loss, self.class_weight = categorical_features, loss, class_weight
        self.max_seconds, self.max_bytes, self.verbose, self.n_jobs = max_seconds, max_bytes, verbose, n_jobs
        self.cv, self.scoring, self.refit = cv, scoring, refit
        self.on_unseen = on_unseen
        self.warm_start, self.random_state = warm_start, random_state

    def decision_function(self, X: Any) -> np.ndarray | list[np.ndarray]:
        """Log-odds of the classes, whose softmax is `predict_proba`.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs), or source of blocks

        Returns
        -------
        odds : ndarray of shape (n_rows,) or (n_rows, n_classes)
            With two classes one number, above 0 for ``classes_[1]``; of more classes each row's mean is 0. Of an
            indicator matrix the log-odds of each label, above 0 if the row has it. A list for columns of labels.
        """
        return self._labels.decision(self._scores(X))

    def predict(self, X: Any) -> np.ndarray:
        """Predict labels.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs), or source of blocks

        Returns
        -------
        y : ndarray of shape (n_rows,), (n_rows, n_labels) or (n_rows, n_outputs)
            Two dimensions are an indicator matrix of 0 and 1, or a label of each column, if `fit` was given that.
        """
        return self._labels.decode(self._scores(X))

    def predict_proba(self, X: Any) -> np.ndarray | list[np.ndarray]:
        """Class probabilities.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs), or source of blocks

        Returns
        -------
        p : ndarray of shape (n_rows, n_classes)
            Of an indicator matrix the probability of each label. A list for columns of labels.
        """
        return self._labels.probabilities(self._scores(X))

    @property
    def _labels(self) -> AnyLabels:
        return cast(AnyLabels, self._fitted.targets)

    def _settings(self) -> Settings:
        check_choice(self.loss, "loss", ("squared", *BOUNDED_LOSSES))
        if self.loss in BOUNDED_LOSSES:
            self._check_for_matrix()
        return replace(super()._settings(), loss=self.loss)

    def _check_for_matrix(self) -> None:
        """Refuse with a ValueError what only machines of random features have."""
        own = f"loss={self.loss!r} is minimised over a kernel matrix"
        if self.features in ("binning", "fourier"):
            raise ValueError(f"{own}: features must be 'exact', 'local' or 'auto', got {self.features!r}.")
        if not is_word(self.n_grids, "auto"):
            raise ValueError(f"{own}: n_grids must be 'auto', got {self.n_grids!r}.")
        if not is_word(self.kernel, "auto"):
            exact_kernel(self.kernel, f"loss={self.loss!r}")

    def _checked(self, y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray | None]:
        y = check_label_columns(y)
        columns = [y] if y.ndim == 1 else [] if is_indicator(y) else columns_of(y)
        for column in columns:
            classes, counts = np.unique(column, return_counts=True)
            require_two(classes)
            doubt_classes(classes, counts)
        self._check_scoring(columns)
        weights = weights_by_class(sample_weight, self.class_weight, y)
        return y, None if weights is None else weights.ravel()

    def _check_scoring(self, columns: list[np.ndarray]) -> None:
        """Refuse with a ValueError scores by name that columns of labels do not have."""
        if len(columns) > 1 and isinstance(self.scoring, str):
            raise ValueError(
                f"scoring={self.scoring!r} is of one column of labels; got {len(columns)}: a callable may do."
            )
        if columns and is_word(self.scoring, "roc_auc") and (n_classes := len(np.unique(columns[0]))) > 2:
            raise ValueError(
                f"scoring='roc_auc' is of two classes; got {n_classes}: use 'roc_auc_ovr' or 'roc_auc_ovo'."
            )

    def _targets(self, y: np.ndarray, weights: np.ndarray | None = None) -> AnyLabels:
        return labels_in(y)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags
