"""Texts that the docstrings of the two kernel machines share."""

TEXTS = {
    "choices": """\
features : {"auto", "exact", "binning", "fourier", "hybrid"}, default="auto"
    "exact" is a kernel machine on all rows, without random features; its kernel matrix takes 4 bytes for each pair of
    rows. The others are random binning, random Fourier features with length scales of their own, or both. "auto" is
    "exact" for up to 20,000 rows in memory (fewer with more than 50 inputs) if `kernel` and `n_grids` are "auto",
    `cv` and `groups` are None, and that is expected to take half of `max_seconds` at most. Of more rows it takes
    binning, or "exact" with 20,000 of the rows: if leave-one-out errors of 1,000 rows are below the held-out error of
    grids on 40,000, an exact machine of 6,000 rows is tried, and taken if the same held-out rows say so. Where a
    machine cannot be exact, "auto" takes binning or Fourier features, by the held-out error; the latter are tried if
    they need at most 1 GB, no input is a category, and a radial kernel did better in the search for length scales.
kernel : "auto", str or object of `binfeat.kernels`, default="auto"
    Kernel of the binning features, one with a pitch law. "auto" learns length scales with the `Laplacian`, then takes
    ``GammaPitch(8)``, ``GammaPitch(inf)`` or ``Skip(GammaPitch(8), 0.2)`` if its held-out error is lower. An exact
    machine takes "laplacian", or with "auto" the best of the Laplacian, a radial kernel, and their sums with shares
    1/4, 1/2 and 3/4, and beside it a linear kernel with a share of 0.5, 0.9 or 0.99 if that does better. The radial
    kernel of exact machines and Fourier features is ``Matern(1.5)`` or `RBF`. It takes a linear map of the inputs that
    are numbers, `rotation_`, if `gamma` is "learn" and that leaves less error; see Notes.
gamma : "learn", "scale", float or array-like of shape (n_inputs,), default="learn"
    Inverse length scale of each input. "learn" learns one per input (ARD) by the gradient of a leave-one-out error, as
    `learn_gamma` does; "scale" is ``1 / (n_inputs * std)``. An array may also have the shape of `gamma_`.
alpha : "auto" or float, default="auto"
    Ridge penalty; "auto" is chosen on held-out rows, or by leave-one-out predictions if the machine is exact.
n_grids : "auto" or int, default="auto"
    Number of grids; "auto" adds grids until doubling them lowers the held-out error by less than 2 %. Fourier features
    without grids are doubled by the same rule, from 1,024 on.
scaling : {"auto", "standard", "arcsinh", "quantile", None}, default="auto"
    How inputs are scaled before length scales are learned: "standard" gives every input the same part in the
    kernel, "arcsinh" shortens the tails of inputs that reach further than ten interquartile ranges, "quantile"
    replaces values by their ranks in the training rows, None starts with one gamma for all inputs. "auto" begins to
    learn length scales with each of the first three ("arcsinh" only if there are such inputs), compares the
    leave-one-out errors after 15 steps, and goes on with the best. It then learns a warp of each input if that leaves
    less error; see Notes.
categorical_features : "from_dtype", None or array-like of bool, int or str, default="from_dtype"
    Inputs whose values are categories; "from_dtype" takes the columns of a data frame that hold categories or
    strings. Where two rows differ in such an input, the kernel is multiplied by ``exp(-gamma_j)``, or their squared
    distance in a radial kernel grows by the square of ``gamma_j``.""",
    "targets": """\
loss : {"squared", "huber"}, default="squared"
    "huber" is for targets with gross errors: squares up to 1.345 robust standard deviations, and straight lines beyond.
    Every row gets the weight ``min(1, 1.345 / |r|)``, times its `sample_weight`, in all choices and in the solution. r
    is its residual, divided by 1.4826 times the median absolute residual, under an exact machine of at most 1,500 rows
    that has not seen it. The weights are found in two rounds, before anything else. It needs all rows in memory.
target_transform : "auto", None or transformer, default="auto"
    What is learned is the transformed target. "auto" tries, for targets that are skewed or have values ten standard
    deviations from their mean, ``log(y)`` if they are positive, then ``arcsinh((y - median) / interquartile range)``;
    each has to lower the leave-one-out error of y itself, on up to 1,000 rows, by 5 %, or to raise the likelihood by
    half a nat a row (Box and Cox 1964) and that error by three standard errors at most. Predictions of a target that is
    learned by its logarithm are positive. A transformer is cloned and fitted to y as columns, and needs
    `inverse_transform`. Choices that follow are made by squared errors of the transformed targets, unless there is a
    `scoring`.

    The least squared error of a transformed target estimates something like the median of y. If that has the lower
    error on rows left out, predictions are means instead: of the inverse of the prediction plus each of 32 residuals
    (smearing, Duan 1983).""",
    "target_attributes": """\
target_transform_ : str
    "none", "log" or "arcsinh", or the class of the transformer that was given.
target_transformer_ : object
    That transformer, fitted. A file has to trust its class, unless it is one of scikit-learn's.""",
    "effort": """\
max_grids : int, default=1600
    Largest number of grids for ``n_grids="auto"``. There are fewer where solves take many iterations: the work of all
    solves is bounded for each row.
max_seconds : float, default=None
    Soft time limit of `fit` in seconds; at most a third is spent on length scales. Adding grids and refitting are
    started only if they are expected to end in time; an exact machine is solved in any case. None is no limit.
max_bytes : int, default=None
    Memory limit of `fit` in bytes for codes, bins, coefficients and vectors of the solver; None is a quarter of the
    machine's memory. Up to three copies of the table, and up to 300 MB for samples and hashes, come on top. Codes that
    need more than half of what the vectors of rows leave are kept in a scratch file. Where bins need more than codes
    leave, there are fewer grids; where they need more than that or 2 GB, vectors are float32, and fewer targets are
    solved for at a time, which `summary` says. An exact machine is not chosen if its matrix needs more.
cv : int, splitter or iterable, default=None
    How rows are held out for the choices, as in `sklearn.model_selection.check_cv`; only the first split is used.
    None holds out one random part. Length scales are learned on the other rows. An exact machine is tuned by
    leave-one-out predictions of up to 1,500 rows instead, of all rows if `cv` is None and `refit` is True, else of
    the rows that are not held out.
validation_fraction : float, default=0.1
    Share of the rows in that random part.
scoring : str or callable, default=None
    Score on the held-out rows, or of the leave-one-out predictions, that the choices maximise, as in
    `sklearn.metrics.get_scorer`, without weights; None minimises the mean squared error, weighted by `sample_weight`.
    Length scales and scaling always minimise the squared error.
refit : bool, default=True
    Whether the final coefficients are fitted to all rows, including those held out.
warm_start : bool, default=False
    Whether a second `fit` goes on from the first: how columns are read, scaling, length scales, kernel and kind of
    features stay as they are, and it starts with as many grids. Only the penalty is chosen again, grids are added up to
    `max_grids`, and the coefficients are solved for. The rows of the first fit are not kept: give all rows. Other
    columns, classes or numbers of targets are refused. If `features`, `kernel`, `gamma`, `scaling`,
    `categorical_features` or `target_transform` changed, or rows became too many or too few for the same kind of
    machine, all is searched anew; the first line of `summary` says so.
verbose : int, default=0
    1 prints the lines of `summary` as they are made, and "compiling" if a call is the first of its kind.
$n_jobs
random_state : int, RandomState instance or None, default=None
    Seed of the grids, of the rows held out and of the samples.""",
    "attributes": """\
gamma_ : ndarray
    Inverse length scale of each column inside the machine: the inputs, then parts of dates, then a 0/1 column for each
    input that had missing values. Of two kernels those of the grids, or of the larger share in a sum.
rotation_ : ndarray of shape (n_columns, rank), or None
    For the columns of `gamma_`: the kernel is one of the distance between ``(x * gamma_) @ rotation_`` of two rows.
    Its rows have norm 1, so that `gamma_` is the inverse length scale along each column. None where a rotation was not
    taken, or the kernel of `gamma_` is not radial. Categorical inputs have no part in it.
feature_relevances_, feature_importances_ : ndarray of shape (n_inputs,)
    Share of each input in the kernel's mean exponent; they sum to 1. `sklearn.feature_selection.SelectFromModel` and
    `RFE` read the second name.
features_, kernel_, scaling_ : str
    The choices; `features_` is never "auto", "none" is no scaling, and "warped" a learned one.
alpha_ : float
n_grids_ : int
    0 without binning features.
width_errors_, width_gammas_ : ndarray of shape (n_steps,) and (n_steps, n_columns)
    Before each step of the search for length scales: the leave-one-out mean squared error of the standardised targets
    on the rows of the step, and the gammas (for radial kernels squared inverse length scales), with the scaling that
    was chosen. Of two kernels that of `gamma_`. Empty if `gamma` is not "learn".
held_out_error_ : ndarray of shape (2,)
    Mean error on the rows that choices were made by, of a machine that had not seen them, and its standard error: of
    mean squared errors of the standardised targets, or of minus the `scoring`, which has no standard error. It is too
    low by what the choices made of chance.
learning_curve_ : ndarray of shape (n_batches, 2)
    Number of grids and held-out error each time that grids were added. Without grids it has one row: 0 and the error.
decisions_ : ndarray of shape (n_decisions,), structured
    For each decision its name, the choice, the held-out or leave-one-out error after it, and the seconds since the
    start; see `summary`.
status_ : {"converged", "budget", "stopped", "interrupted"}
    Why the fit ended: by itself, at `max_grids`, `max_seconds`, `max_bytes` or the bound of work, by a callback, or by
    Ctrl-C. After the first step of the search for length scales, Ctrl-C leaves a machine: the one so far, or else one
    of up to 4,000 rows with the length scales as they stand.
feature_coef_ : ndarray of shape (n_targets, n_features)
    Of random features. Of an exact machine (n_targets, n_rows), for each row with a weight above 0; without `refit`
    those held out are left out.
intercept_ : ndarray of shape (n_targets,)""",
    "notes": """\
Notes
-----
A missing number is replaced by the training median, and a 0/1 column marks where numbers were missing. A missing
category is a category. A category that `fit` has not seen matches no other. A column of categories with a different
value in nearly every row, such as an id, counts for nothing, and a warning names it.

Columns of dates or durations in a data frame are numbers of days. The day of the year, the day of the week and the hour
are further inputs if dates span more than a year, a week and a day; their relevance counts for the column. They are
those of the column's time zone.

Callbacks of scikit-learn, such as `sklearn.callback.ProgressBar`, see the stages of a fit: scaling and length scales,
warped inputs if there are any, features, overall length scale, grids or Fourier features, and refit; or, of an exact
machine, scaling and length scales, warped inputs, kernel and penalty, and solution. A stage has steps; with
`max_seconds` its name ends in the seconds that are left. A stage has one more task, "compiling", where kernels are
compiled because the cache on disk lacks them.

Length scales minimise the leave-one-out error of exact kernel ridge machines on a few hundred rows, fresh ones in each
step. More rows take shorter length scales: one overall factor is chosen afterwards.

Where the Laplacian does well with 2,000 rows or more, each input that is a number is then warped: mapped by a monotone
function of up to 16 linear pieces (Snoek et al. 2014), so that length scales vary from place to place, and jumps of the
target take no short length scales elsewhere. The same steps go down the gradient in the logarithms of all slopes, on at
least two thirds of the rows. If the other rows, up to 1,000, then have a leave-one-out error that is lower by two
standard errors and 3 %, all length scales are learned again with warped inputs, and taken if their error is lower. Two
rows are needed for each piece, and four pieces for each input.

A radial kernel of up to 200 inputs is then rotated, where there are 300 rows or more, and as many as the square of the
number of inputs: the same steps go down the gradient in all entries of a matrix that maps the scaled inputs, on at
least two thirds of the rows. The rotation is taken if the other rows, up to 1,000, have a leave-one-out error that is
lower by two standard errors.

References
----------
A. Rahimi and B. Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007.

D. Allen, "The relationship between variable selection and data augmentation and a method for prediction",
Technometrics 16, 1974 (the leave-one-out error in closed form, PRESS).

J. Snoek, K. Swersky, R. Zemel and R. Adams, "Input Warping for Bayesian Optimization of Non-Stationary Functions",
ICML 2014.

D. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015 (the steps of the length scales).

Z. Frangella, J. Tropp and M. Udell, "Randomized Nystroem Preconditioning", SIAM J. Matrix Anal. Appl. 44, 2023 (exact
machines of more than 3,000 rows are solved by conjugate gradients with a preconditioner of this kind).""",
    "target_references": """\
P. Huber, "Robust Estimation of a Location Parameter", Annals of Mathematical Statistics 35, 1964, and P. Holland and
R. Welsch, "Robust Regression Using Iteratively Reweighted Least-Squares", Communications in Statistics 6, 1977.

N. Duan, "Smearing Estimate: A Nonparametric Retransformation Method", Journal of the American Statistical Association
78, 1983.

C. Rasmussen and C. Williams, "Gaussian Processes for Machine Learning", 2006 (standard deviations), and J. Lei,
M. G'Sell, A. Rinaldo, R. Tibshirani and L. Wasserman, "Distribution-Free Predictive Inference for Regression", JASA
113, 2018 (intervals).""",
    "X": """\
X : array, sparse matrix or data frame of shape (n_rows, n_inputs)""",
    "sample_weight": """\
sample_weight : float or array-like of shape (n_rows,), default=None
    Non-negative, not all zero.""",
    "rest_of_fit": """\
$sample_weight
$groups

$self

Raises
------
ValueError
    If a parameter, a target or a weight is out of range, X or y holds infinity or numbers beyond 1e100, lengths
    differ, or labels are of fewer than two classes.""",
}
