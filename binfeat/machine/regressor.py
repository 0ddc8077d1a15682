"""`KernelMachineRegressor`."""

from __future__ import annotations  # signatures print as they are written

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin

from binfeat._common.validation import (
    check_choice,
    check_flag,
    check_integer,
    checked_targets,
)
from binfeat._machine.number_estimator import NumbersMachineBase
from binfeat._machine.settings import Settings
from binfeat._machine.target.deviance import DEVIANCES
from binfeat._machine.target.targets import Targets, as_columns
from binfeat._machine.target.transforms import check_transform, first_transform
from binfeat._report.method import Reporting
from binfeat._rows.scored import SourceScorer


class KernelMachineRegressor(SourceScorer, MultiOutputMixin, RegressorMixin, Reporting, NumbersMachineBase):
    """Kernel ridge regression that chooses its settings: a raw table in, predictions out.

    Minimises ``sum_i v_i |y_i - f(x_i)|^2 + alpha |w|^2`` over w and b, with ``f(x) = w @ z(x) + b``, standardised
    targets y, sample weights v (a weight of two is a row that is there twice), and random features z of a kernel. Where
    rows are few, an exact machine solves that for the kernel itself, with ``b^2`` added to ``|w|^2``. It learns one
    length scale per input (ARD), and chooses scaling, kernel, features and alpha by held-out rows or leave-one-out
    predictions.

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
    loss : {"squared", "huber", "poisson", "gamma", "tweedie"}, default="squared"
        "huber" is for targets with gross errors: it is linear beyond 1.345 robust standard deviations, by weights of
        rows. "poisson" (counts), "gamma" (amounts above 0) and "tweedie" (amounts, of which some are 0; power 1.5) are
        deviances: predictions are above 0. For quantiles of the targets see `predict_quantiles`. See Notes.
    target_transform : "auto", None or transformer, default="auto"
        Transform of the targets. "auto" tries logarithm and arcsinh where tails are long; see Notes. A transformer is
        cloned and fitted to y as columns, and needs `inverse_transform`.
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
    n_posterior_samples : int, default=None
        Number of samples of the coefficients that `fit` draws, 32 say; None draws none. Machines of random features
        need them for ``predict(X, return_std=True)`` and `sample_y`, and `predict_interval` by "deviations" uses them;
        see Notes.

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
    target_transform_ : str
        "none", "log" or "arcsinh", or the class of the transformer that was given.
    target_transformer_ : object
        That transformer, fitted. A file has to trust its class, unless it is one of scikit-learn's.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_inputs,)
        Names of the inputs, when X has string column names.

    See Also
    --------
    learn_gamma : Learns the length scales only.
    RandomBinning, RandomFourier, CGRidge : The parts of the machine.

    Notes
    -----
    **Inputs.** A missing number is replaced by the training median, and a 0/1 column marks where numbers were missing.
    A missing category is a category; a category that `fit` has not seen matches no other. Where two rows differ in a
    category, the kernel is multiplied by ``exp(-gamma_j)``, or the squared distance in a radial kernel grows by
    ``gamma_j``. A column with a different category in nearly every row, such as an id, is ignored with a warning.
    Dates and durations are numbers of days. Dates that span more than a year, a week or a day also give the day of the
    year, the day of the week or the hour, in the column's time zone; their relevance counts for the column. Numbers
    that come again and whose order the targets do not know, such as those of people or districts, are categories, too,
    unless `features`, `gamma`, `cv` or `groups` ask for something else; `summary` names them as codes.

    **Features.** ``features="auto"`` is "exact" for up to 10,000 rows in memory (fewer with more than 200 inputs) if
    `n_grids` is "auto", exact machines take the `kernel`, and the solution should take half of `max_seconds` at most,
    with `cv` or `groups` up to 1,500; and "local" for more rows without these, also of a source of blocks, or for a
    radial `kernel` in any case. Where neither is possible, grids are compared with Fourier features on held-out rows,
    if these need at most 1 GB, no input is a category, and a radial kernel did better in the search for length scales.
    Fourier features without grids are doubled, from 1,024 on, by the rule of `n_grids`. Choices for an exact machine
    are made by leave-one-out predictions of its rows, without those held out if `refit` is False. Of up to 1,500 rows
    those of a group are left out together, as are those of a fold, if `cv` gives folds, `loss` stands for squares and
    `refit` is True; other rows of `cv` are predicted from the training rows alone, and rows in neither take no part.
    With more rows, "exact" refuses `groups`, `cv` leaves training rows out one by one, and the machine is judged by all
    its rows, with an inverse whose diagonal goes up and down like that of rows in cells and of 200 landmarks (partially
    independent conditionals, Snelson & Ghahramani 2007), and whose mean a probe with random signs tells (Hutchinson
    1990). Its predictions for a row are bitwise the same, whatever rows stand beside it and for any number of threads.

    **Wide tables**, of more than 1,333 columns of numbers, have exact machines for any `max_seconds`, which begin with
    one length scale for all inputs, standardised or as they are, by leave-one-out errors: with little time they have
    about the squared errors of ridge regression. One length scale for each input is learned while there is time, for a
    radial kernel, and taken if it surely does better for rows that it was not learned from. Where `max_seconds` are
    over, 1,500 rows, each left out in turn, judge the machine.

    **Local machines** are the means of trees (compare Thomann et al. 2017). A tree splits the rows, about in half,
    along the input with the widest spread in units of the kernel, until cells have `cell_rows` at most; all trees but
    the first choose input and place of a split partly at random. In each cell an exact machine of its rows is solved: a
    fit costs rows times `cell_rows`, and a prediction `cell_rows` kernel values for each tree. Kernel and penalty are
    the same for all cells. Choices are made by leave-one-out predictions of all rows; with `cv` or `groups` the rows
    held out choose the penalty and judge the trees. Standard deviations and samples are those of the first tree:
    samples at rows of different cells are independent. Of a source of blocks, scaling and kernels are searched on a
    sample of up to 200,000 rows, whose leave-one-out predictions, or held-out rows, make the later choices; length
    scales and penalty are refined, and cells are solved, with all rows, which one more pass reads. Intervals rest on
    residuals of the mean of all trees, and hold what they say.

    **Kernels.** Grids learn length scales with the `Laplacian`; ``kernel="auto"`` then tries ``GammaPitch(8)``,
    ``GammaPitch(inf)`` and ``Skip(GammaPitch(8), 0.2)`` on held-out rows. Exact and local machines take the
    Laplacian, a radial kernel (``Matern(1.5)`` or `RBF`), or their sum, whose shares are learned from 1,500 rows on.

    **Length scales** minimise the squared leave-one-out error, whatever the `scoring`, of exact machines on a few
    hundred rows that are not held out, fresh rows in each step. More rows take shorter length scales: up to 1,500 rows
    one factor for all is chosen afterwards. With more rows length scales, shares of kernels and penalty take 30 steps
    along the gradient in sets of 750 rows, which are cells, as dense as all rows are, and samples in turn; of a local
    machine 60 steps in cells of 500 rows, split anew twice.

    **Ranks.** Numbers that are far from normal, such as amounts, or counts of which many are 0, enter exact and local
    machines with learned length scales twice, as they are and by the normal scores of their ranks, where their
    statistic of Shapiro and Francia (1972) is below 0.865, up to 64 of them.

    **Linear map.** With ``gamma="learn"``, a radial kernel of up to 200 numeric inputs also learns a matrix that maps
    the scaled inputs, if there are 300 rows or more, and as many as the matrix has entries. It is taken if it lowers
    the leave-one-out error of up to 1,000 rows that it was not learned from by two standard errors.

    **Targets.** For targets that are skewed or have values ten standard deviations from their mean,
    ``target_transform="auto"`` tries ``log(y)``, if all are positive, and ``arcsinh((y - median) / interquartile
    range)``. A transform has to lower the leave-one-out error of y itself by 5 %, or, unless a twentieth of the rows
    share a value, to raise the likelihood by half a nat a row (Box and Cox 1964) and the error by three standard errors
    at most. Later choices are made by squared errors of the transformed targets, or by `scoring`. Predictions then
    estimate medians of y, or means by smearing over 32 residuals (Duan 1983) if that has the lower error on rows left
    out.

    **Huber's loss.** A row gets the weight ``min(1, 1.345 / |r|)``, times its `sample_weight`, in all choices and in
    the solution. Its residual r, in units of 1.4826 times the median absolute residual, is that of an exact machine of
    at most 1,500 rows that has not seen the row. The weights are found in two rounds, before anything else, on the
    sample where rows are beyond memory: one more pass gives all other rows theirs.

    **Deviances.** Poisson's, gamma's and Tweedie's minimise ``sum_i v_i d(y_i, exp(f(x_i))) + alpha |w|^2`` with the
    unit deviance d (as `sklearn.linear_model.PoissonRegressor` does on linear inputs), by iteratively reweighted least
    squares: kernels are chosen near the predictions of an exact machine of at most 1,500 rows, the penalty of exact and
    local machines by the deviance of predictions that leave each row out at the minimum, to first order (Rad & Maleki
    2020), or by five folds if fewer than 100 targets are above 0; up to six Newton steps of all rows follow, each one
    more pass where rows are beyond memory, until logarithms of means move by less than 0.01. `alpha` counts in these
    units, and the square of f's intercept is about the logarithm of the mean target. For rates of different exposure
    give rates as y, and exposures as `sample_weight`. Standard deviations, samples, intervals and quantiles need
    another `loss`.

    **Memory.** `max_bytes` covers codes, bins, coefficients and vectors of the solver. It limits the number of grids,
    and the rows up to which "auto" takes an exact machine; where bins are many, vectors are float32 and fewer targets
    are solved for at a time, which `summary` says; sums are divided by it, so that last digits, and choices that hang
    on them, may differ. Codes that need more than half of it are kept in a scratch file. A local machine has the inputs
    of its rows in float32: 4 bytes for each, and as much again while it is fitted to blocks, beside 20 bytes for each
    row and tree. Blocks of more rows than fit have grids, or are refused where `features` is "local". Samples,
    hashes, and copies of the table and of the targets come on top if they take 300 MB at most; larger copies are
    refused before any work where they exceed `max_bytes`, or the computer's memory if it is None. There are up to three
    copies in float64, and seven of a table with more than 1,333 columns; sparse matrices become dense. The kernel
    matrix of an exact machine takes 4 bytes for each pair of rows while it is factorised, for up to 3,000 rows with one
    target and 14,000 with many, and 1 byte where it is solved by iterations. Posterior samples take 4 bytes for each
    feature, and are solved for like more targets, 8 at a time, on the rows that are not held out, which may take longer
    than all else in `fit`; Fourier features without grids have exact deviations instead, for 4 bytes a pair of
    features.

    **Going on and ending.** A warm start only chooses the penalty again, adds grids up to `max_grids`, and solves for
    coefficients. It refuses other columns, classes or numbers of targets. It searches anew, as the first line of
    `summary` says, if `features`, `kernel`, `gamma`, `categorical_features`, `loss` or `target_transform`
    changed, or the number of rows asks for another kind of machine. Ctrl-C after the first step of the search leaves a
    machine: the one so far, or one of up to 4,000 rows with the length scales as they stand. Callbacks, such as
    `sklearn.callback.ProgressBar`, see the stages of a fit, which with `max_seconds` tell the seconds left, and a task
    "compiling" for kernels that the cache on disk lacks.

    References
    ----------
    A. Rahimi and B. Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007. D. Allen, Technometrics 16,
    1974 (leave-one-out errors). D. Kingma and J. Ba, "Adam", ICLR 2015. S. Shapiro and R. Francia, JASA 67, 1972. Z.
    Frangella, J. Tropp and M. Udell, "Randomized Nystroem Preconditioning", SIMAX 44, 2023. P. Huber, Annals of
    Mathematical Statistics 35, 1964. P. Holland and R. Welsch, Communications in Statistics 6, 1977 (weights). N. Duan,
    JASA 78, 1983. C. Rasmussen and C. Williams, "Gaussian Processes for Machine Learning", 2006. J. Lei et al., JASA
    113, 2018 (intervals). P. Thomann et al., "Spatial Decompositions for Large Scale SVMs", AISTATS 2017 (cells). K.
    Rad and A. Maleki, JRSS B 82, 2020 (rows left out of a deviance's minimum). E. Snelson and Z. Ghahramani, "Local and
    Global Sparse Gaussian Process Approximations", AISTATS 2007. M. Hutchinson, Communications in Statistics 19, 1990
    (probes). G. Box and D. Cox, JRSS B 26, 1964 (transforms).

    Examples
    --------
    >>> import numpy as np
    >>> from binfeat import KernelMachineRegressor
    >>> X = np.random.default_rng(0).uniform(-2, 2, size=(600, 4))
    >>> y = np.sin(3 * X[:, 0]) + (X[:, 1] > 0)
    >>> machine = KernelMachineRegressor(random_state=0).fit(X[:400], y[:400])
    >>> bool(machine.score(X[400:], y[400:]) > 0.9)
    True
    """

    __module__ = "binfeat.machine"  # as saved files name it

    target_transform_: str
    target_transformer_: Any

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
        target_transform: Any = "auto",
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
        n_posterior_samples: int | None = None,
    ):
        self.features, self.kernel, self.gamma, self.alpha = features, kernel, gamma, alpha
        self.n_grids, self.max_grids = n_grids, max_grids
        self.n_trees, self.cell_rows = n_trees, cell_rows
        self.categorical_features, self.target_transform = categorical_features, target_transform
        self.loss = loss
        self.max_seconds, self.max_bytes, self.verbose, self.n_jobs = max_seconds, max_bytes, verbose, n_jobs
        self.cv, self.scoring, self.refit = cv, scoring, refit
        self.on_unseen = on_unseen
        self.warm_start, self.random_state, self.n_posterior_samples = warm_start, random_state, n_posterior_samples

    def __setstate__(self, state: dict) -> None:
        if state.get("loss") == "quantile":
            raise ValueError(
                "This KernelMachineRegressor was saved with loss='quantile', which binfeat no longer has. "
                "Fit it again with loss='squared', and call predict_quantiles."
            )
        super().__setstate__(state)

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> np.ndarray: ...
    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[np.ndarray, np.ndarray]: ...
    def predict(self, X, return_std=False):
        """Predict targets.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs), or source of blocks
        return_std : bool, default=False
            Whether to return the standard deviations of the predictions, too.

        Returns
        -------
        y : ndarray of shape (n_rows,) or (n_rows, n_targets)
        std : ndarray like y
            Only with ``return_std=True``: of the Gaussian process whose mean is the prediction, without noise, as
            scikit-learn's `GaussianProcessRegressor` gives it. The first call for an exact machine of up to 4,000 rows
            factorises its kernel matrix again, in 8 bytes for each pair of rows, and keeps the factor, of 4 bytes. More
            rows are split into cells of 1,000 or more, which know of each other by 400 landmarks: deviations are then
            some hundredths too large, where landmarks tell little up to a fourth, and the factors take some 100 MB.
            Threads share what is kept. For a machine of random features set `n_posterior_samples`.

        Raises
        ------
        ValueError, MemoryError
            If `return_std` needs samples that `fit` did not draw, or a factor that does not fit in memory.
        """
        if check_flag(return_std, "return_std"):
            return self._with_std(X)
        return self._own_targets.decode(self._scores(X))

    def _settings(self) -> Settings:
        check_choice(self.loss, "loss", ("squared", "huber", *DEVIANCES))
        check_transform(self.target_transform)
        if self.loss in DEVIANCES:
            self._check_for_deviance()
        if self.n_posterior_samples is not None:
            check_integer(self.n_posterior_samples, "n_posterior_samples", 1)
            if self.alpha == 0:
                raise ValueError("n_posterior_samples needs an alpha above 0; got alpha=0.")
        return replace(
            super()._settings(),
            loss=self.loss,
            chooses_transform=isinstance(self.target_transform, str),
            n_posterior_samples=self.n_posterior_samples,
        )

    def _checked(self, y: Any, sample_weight: Any) -> tuple[np.ndarray, Any]:
        y = checked_targets(y)
        if self.loss in DEVIANCES:
            DEVIANCES[self.loss].check(y, self.loss)
        return y, sample_weight

    def _check_for_deviance(self) -> None:
        """Refuse with a ValueError what machines do not have whose predictions are exponentials."""
        if not (self.target_transform is None or isinstance(self.target_transform, str)):
            raise ValueError(f"loss={self.loss!r} learns logarithms of means: target_transform must be None or 'auto'.")
        if self.n_posterior_samples is not None:
            raise ValueError(f"n_posterior_samples must be None with loss={self.loss!r}.")

    def _targets(self, y: np.ndarray, weights: np.ndarray | None = None) -> Targets:
        return Targets.of(first_transform(self.target_transform, as_columns(y)), y, weights)
