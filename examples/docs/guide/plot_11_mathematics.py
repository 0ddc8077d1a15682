r"""
Mathematics of kernel models
============================

This page describes the algorithms behind ``KernelMachineRegressor`` and ``KernelMachineClassifier``, with their
sources, for readers who want to reproduce or improve them. File names are relative to the package. Rows are :math:`x_1,
\dots, x_n`, targets :math:`Y \in \mathbb R^{n \times T}` are standardised, sample weights are :math:`v_i`, and :math:`V
= \operatorname{diag} v`.

Objective
---------

A kernel model minimises, over functions f of the kernel's space and an intercept b,

.. math::

    \sum_i v_i \lVert y_i - f(x_i) - b \rVert^2 + \alpha \left( \lVert f \rVert_k^2 + b^2 \right),
    \qquad f(x) + b = \sum_i c_i \, (k(x_i, x) + 1), \qquad (K + 1 1^\top + \alpha V^{-1}) \, c = Y .

The intercept acts as an additional constant kernel, so f is the posterior mean of a Gaussian process with noise
variance :math:`\alpha / v_i` (Rasmussen & Williams 2006, eq. 2.25). A row of weight 2 counts as two equal rows.

With :math:`D = x - x'`, the Laplacian is :math:`\exp(-\sum_j \gamma_j |D_j|)`. Radial kernels depend on :math:`s =
\sum_j \gamma_j D_j^2`: the Gaussian is :math:`e^{-s}`, and the Matern kernel is a function of :math:`r = \sqrt{2 s}`.
Where two rows differ in a category, the Laplacian is multiplied by :math:`e^{-\gamma_j}`, and :math:`s` grows by
:math:`\gamma_j`. A linear map A generalises the radial kernels: :math:`s = \lVert A^\top
\operatorname{diag}(\gamma)^{1/2} D \rVert^2`. In a sum of kernels, the shares of the kernels
add up to 1.

Models on random features solve the same problem for :math:`f(x) = w^\top z(x)` with :math:`E\, z(x)^\top z(x') = k(x,
x')` and an intercept without penalty (Rahimi & Recht 2007, Algorithms 1 and 2; :doc:`/how_it_works`).

Leave-one-out error and its gradient
------------------------------------

With :math:`G = (K + 1 1^\top + \alpha V^{-1})^{-1}`, :math:`c = G Y` and :math:`g = \operatorname{diag} G`, the
leave-one-out residual of row i is :math:`r_i = c_i / g_i` (Allen 1974; Rasmussen & Williams 2006, eq. 5.12), and

.. math::

    L = \frac{1}{n T} \sum_{it} v_i r_{it}^2, \qquad
    \frac{\partial L}{\partial \theta} = \frac 2 n \sum_{ab} M_{ab} \frac{\partial K_{ab}}{\partial \theta}, \qquad
    M = G \operatorname{diag}(w) \, G - \frac 1 T (G u) c^\top,

with :math:`u_{it} = v_i r_{it} / g_i` and :math:`w_i = \frac 1 T \sum_t u_{it} c_{it} / g_i`. This follows from
:math:`dG = -G \, dK \, G`. For :math:`\log \gamma_j` of the Laplacian, :math:`\partial K_{ab} = -\gamma_j |D_j|
K_{ab}`; for :math:`\log \alpha`, :math:`\partial K = \alpha V^{-1}`. The first term of M is the expectation of :math:`G
\operatorname{diag}(w) Z (G Z)^\top` over columns Z of random signs (Hutchinson 1990), so a step needs one Cholesky
factor and no product of two full matrices. ``length_scales/leave_one_out.py``
"""

import matplotlib.pyplot as plt
import numpy as np

from binfeat.kernels import Laplacian

rng = np.random.default_rng(0)
X, v, alpha = rng.normal(size=(40, 3)), np.ones(40), 0.3
Y = np.sin(2 * X[:, :1]) + 0.1 * rng.normal(size=(40, 1))


def error_and_slopes(log_gamma):
    """L and its derivatives with respect to the logarithms of the three gammas."""
    K = Laplacian()(X, X, gamma=np.exp(log_gamma))
    G = np.linalg.inv(K + 1 + alpha * np.diag(1 / v))
    c, g = G @ Y, np.diag(G)[:, None]
    r = c / g
    u = v[:, None] * r / g
    w = (u * c).mean(axis=1) / g[:, 0]
    M = G @ np.diag(w) @ G - G @ u @ c.T / Y.shape[1]
    distances = np.abs(X[:, None] - X[None]) * np.exp(log_gamma)
    return np.mean(v[:, None] * r**2), 2 / len(X) * np.einsum("ab,ab,abj->j", M, K, -distances)


theta = np.log([1.0, 0.5, 0.2])
error, slopes = error_and_slopes(theta)
steps = 1e-5 * np.eye(3)
differences = [(error_and_slopes(theta + s)[0] - error_and_slopes(theta - s)[0]) / 2e-5 for s in steps]
print("closed form        ", slopes.round(7))
print("finite differences ", np.round(differences, 7))

# %%
# From a table to columns
# -----------------------
# *Numbers* are standardised. A missing number is replaced by the training median, and a 0/1 column marks the rows with
# missing numbers. *Categories*: a missing value is a category of its own, and a category that did not occur in ``fit``
# matches no other category. A column with a different category in nearly every row, such as an id, is ignored with a
# warning. *Dates and durations* become numbers of days. Dates that span more than a year, a week or a day also provide
# the day of the year, the day of the week or the hour, in the column's time zone; the relevance of these parts counts
# for the column. ``models/table/encoder.py``
#
# *Codes.* Numbers with repeated values, such as person or district ids, are also encoded as categories if targets are
# unrelated to their order: the mean squared difference between mean targets of neighbouring values, less noise, is at
# least half of its expectation after shuffling (compare von Neumann 1941), and exceeds 4 standard errors. This test is
# skipped if ``features``, ``gamma``, ``cv`` or ``groups`` are set. ``summary`` lists the columns.
# ``models/table/codes.py``
#
# *Ranks.* Numbers that are far from normal (sorted values with a squared correlation below 0.865 with normal scores,
# Shapiro & Francia 1972), for example amounts, or counts with many zeros, become two columns in exact and local models
# with learned length scales: x and the normal score of its rank, each with its own :math:`\gamma`. At most 64 columns
# are added. ``models/table/ranks.py``
#
# *Duplicates.* If more than a fourth of the rows in memory are copies, targets included, and a column has values that
# are too fine to coincide by chance, each set of copies becomes one row with the sum of their weights.
# ``models/table/copies.py``
#
# Length scales
# -------------
# Length scales minimise squared leave-one-out errors for any ``scoring``. Adam (Kingma & Ba 2015) minimises
#
# .. math::
#
#     \log L(\theta) + \frac \lambda N \sum_j (\log \gamma_j - \overline{\log \gamma})^2, \qquad
#     \lambda = 3 \min \left( 1, \sqrt{20 / d} \right),
#
# for :math:`\theta = (\log \gamma_1, \dots, \log \gamma_d, \log \alpha)`. Each step uses the error L of *fresh*
# training rows: 300 to about 1,000 of the N rows, without the validation set. The prior keeps the logarithms of the d
# gammas together where rows are few; it is weaker for many inputs, because few of them matter. The rate falls from 0.2
# to 0.01 over 60 steps, or up to 150 steps for many rows. After two thirds of the steps, inputs with a negligible
# effect are raised to half of the mean term in the exponent; they keep this value if the gradient on more rows points
# upwards. ``length_scales/search.py``
#
# More rows support shorter length scales. Therefore the result is refined:
#
# - Up to 1,500 rows, one common factor, the penalty, and the shares of a sum are selected by L of all rows.
# - With more rows, all of :math:`\gamma`, the shares and :math:`\alpha` follow the gradient of L once more, in sets of
#   rows that are as dense as the table. Exact models take 30 steps in sets of 750 rows, which are cells of a tree and
#   random samples in turn, because inputs that the tree splits hardly vary within a cell. Local models take 60 steps in
#   cells of 500 rows, and split the rows twice more with the current kernel. The prior here is 50 instead of
#   :math:`\lambda`, and pulls each gamma towards its earlier value times one free common factor.
#   ``models/machines/fine_tuning.py``, ``cell_search.py``
#
# Kernels
# -------
# With ``kernel="auto"``, searches for the Laplacian, ``Matern(1.5)`` and the Gaussian run side by side. A search stops
# if its error exceeds 1.12 times the best error, and only the better of the two radial kernels remains. Exact and local
# models then use the better kernel or the sum of both. With more than 1,500 rows, shares are learned with the length
# scales. If only one kernel remained, a second one is added: ``Matern(1.5)`` to the Gaussian, otherwise the same kernel
# with 0.3 times the gammas. A kernel that explains less than 5 % of the variation is dropped at the end.
# ``models/search/race.py``, ``models/machines/fine_tuning.py``
#
# Binning features learn length scales with the Laplacian; ``kernel="auto"`` then compares ``GammaPitch(8)``,
# ``GammaPitch(inf)`` and ``Skip(GammaPitch(8), 0.2)`` on the validation set. Fourier features use the given kernel if
# it is radial, and the best radial kernel of the search otherwise.
#
# Linear maps
# -----------
# With ``gamma="learn"`` a radial kernel of up to 200 numeric inputs also learns A by the same gradient, if there are at
# least 300 rows and at least as many rows as entries of A. Rows of A have norm 1. Because A has many parameters, it is
# learned from some rows and validated on up to 1,000 *other* rows, by paired differences :math:`\delta` of squared
# leave-one-out residuals: it is accepted if :math:`\bar \delta > 2 \, s_\delta / \sqrt m`. The search ends early if the
# gain is below 1 standard error after a fourth of the steps, or below 1.5 after half of them.
# ``models/search/linear_maps.py``
#
# Exact, local, or random features
# --------------------------------
# ``features="auto"`` selects the representation in this order (``models/machines/choice.py``):
#
# 1. *Exact* for up to 10,000 rows in memory (fewer with more than 200 inputs), if "n_grids" is not set, the kernel is
#    supported, and the solution should take at most half of ``max_seconds``. With ``cv`` or ``groups`` the limit is
#    1,500 rows.
# 2. *Local* for more rows, also for sources of blocks and Dask collections. With ``cv`` or ``groups`` only for a radial
#    ``kernel``.
# 3. *Random features* otherwise. Binning features are compared with Fourier features on the validation set if Fourier
#    features need at most 1 GB, no input is a category, and a radial kernel had the lower error in the search.
#
# Grids are doubled until this lowers the validation error by less than 2 %; Fourier features are doubled by the same
# rule, from 1,024 on. A table in memory with more rows than cells can be solved for within ``max_seconds`` is
# subsampled at random.
#
# ``held_out_error_`` reports the error that the selections minimised, for rows that the prediction did not use: the
# mean squared error of the standardised targets, the mean of another loss, or minus the ``scoring``. Its standard error
# is computed by groups if there are any, and is NaN for a score. Because selections minimise this error, it is slightly
# too low.
#
# Exact models
# ------------
# Hyperparameters of an exact model minimise leave-one-out errors; validation rows are excluded if ``refit`` is False.
# Up to 1,500 rows, whole groups are excluded together, and so are the folds of ``cv`` if ``loss`` is based on squares
# and ``refit`` is True; other validation rows of ``cv`` are predicted from the training rows alone, and rows in neither
# part are not used. With more rows, ``features="exact"`` does not accept ``groups``, and ``cv`` selects the training
# rows for leave-one-out errors.
#
# *Solution.* Beyond the limits of a Cholesky factor in memory, the system is solved by conjugate gradients with the
# randomised Nystroem preconditioner of Frangella, Tropp & Udell (2023), from 500 columns. Leave-one-out residuals of
# all rows need the diagonal of G. It is approximated by the diagonal of the PIC approximation with cells of rows and
# 200 landmarks (partially independent conditionals, Snelson & Ghahramani 2007), rescaled by a Hutchinson estimate of
# the mean of the true diagonal (Hutchinson 1990). Predictions for a row are bitwise the same for any other rows in X
# and any number of threads.
#
# *Wide tables.* Tables with more than 1,333 columns of numbers use exact models for any ``max_seconds``. They start
# with one length scale for all inputs, standardised or not, selected by leave-one-out errors: even with little time,
# squared errors are about as low as with ridge regression. One length scale per input is learned while time remains,
# for a radial kernel, and accepted if it clearly lowers the error of rows it was not learned from. If ``max_seconds``
# has passed, the reported error is the leave-one-out error of 1,500 rows. ``models/search/wide.py``
#
# Local models
# ------------
# A tree splits rows along the input with the widest spread in units of the kernel, at about its median, until cells
# have m = 1,500 rows (compare Thomann et al. 2017); equal rows stay in one cell and may exceed m. In each cell an exact
# model is solved: :math:`(K_c + 1 1^\top + \alpha V_c^{-1}) c = Y_c`, with the same kernel and penalty in all cells.
# The first tree is deterministic; other trees randomise the input and the position of each split, and predictions are
# means over trees.
#
# If a category has 20 levels or more, effects of levels that all cells share are tried. With
# :math:`B = \mathrm{blockdiag}(K_c + 1 1^\top + \alpha V_c^{-1})`, one-hot columns Z and prior variances S,
# coefficients are :math:`a = (B + Z S Z^\top)^{-1} Y` and the weights of the levels :math:`w = S Z^\top a`. By
# Woodbury's identity, the inverse is :math:`B^{-1} - B^{-1} Z M^{-1} Z^\top B^{-1}` with
# :math:`M = S^{-1} + Z^\top B^{-1} Z`, so leave-one-out residuals :math:`a_i / ((B + Z S Z^\top)^{-1})_{ii}` are
# exact. Variances are those of the highest likelihood (MacKay 1992), or ten times these; they and the penalty
# minimise leave-one-out errors of at most 20,000 rows. Effects are kept if they reduce the error of the first tree by
# 0.3 %; each further tree then has to remove 1.2 %. ``models/machines/level_search.py``
#
# The squared error of T trees is :math:`E + V / T`, where V, the variance of single trees, is half of the squared
# difference between two trees. Trees are added while each removes at least 0.3 % of the squared error and 1e-8 of the
# variance; cells of the second tree provide the estimate. There are at most 8 trees, and at most 1.6 million rows in
# all trees together. If ``max_seconds`` is set, m is doubled as long as three trees with such cells should finish in
# time and the leave-one-out error of one tree falls by 0.3 %. A fit costs n m kernel values and :math:`n m^2 / 3`
# multiplications per tree; a prediction costs m kernel values per tree.
#
# Hyperparameters minimise leave-one-out errors of all rows. With ``cv`` or ``groups``, the validation set selects the
# penalty and the number of trees. For a source of blocks, kernels are searched on a sample of up to 200,000 rows; one
# more pass reads all rows, refines length scales and penalty, and solves the cells.
# Standard deviations and samples use the first tree, so samples of rows in different cells are independent. Intervals
# use the residuals of the mean of all trees.
#
# Target transformations
# ----------------------
# If targets are skewed (skewness above 1) or have values ten standard deviations from their mean,
# ``target_transform="auto"`` tries ``log(y)``, if all targets are positive, and ``arcsinh((y - median) / interquartile
# range)``. A transformation is accepted in two cases: it lowers the leave-one-out error of y itself by 5 %, or it
# raises the likelihood by half a nat per row (Box & Cox 1964) while the error rises by at most three standard errors.
# The likelihood is not used if more than 5 % of the rows share one value. Later selections use squared errors of the
# transformed targets, or ``scoring``. Predictions then estimate medians of y, or means by smearing over 32 residuals
# (Duan 1983) if these have the lower leave-one-out error. ``models/target/transform_choice.py``
#
# Robust loss and deviances
# -------------------------
# *Huber's loss* (Huber 1964) is least squares with row weights :math:`\min(1, 1.345 / |r_i|)`, multiplied by the sample
# weight (Holland & Welsch 1977). The residual :math:`r_i`, in units of 1.4826 times the median absolute residual, comes
# from an exact model of at most 1,500 rows without row i. Weights are computed in two rounds before all other steps;
# beyond memory, they are computed on the sample, and one more pass computes the weights of all other rows.
#
# *Poisson, gamma and Tweedie deviances* minimise :math:`\sum_i v_i \, d(y_i, e^{f(x_i)}) + \alpha \lVert f \rVert^2`
# with the unit deviance d, as scikit-learn's ``PoissonRegressor`` does for linear inputs. Iteratively reweighted least
# squares use the derivatives g and h of the deviance at the scores f: weights :math:`h` and working targets :math:`f -
# g / h` (McCullagh & Nelder 1989, section 2.5). Kernels are selected near the predictions of an exact model of at most
# 1,500 rows. The penalty of exact and local models minimises the leave-one-out deviance at the minimum, to first order
# (Rad & Maleki 2020), or the deviance in five folds if fewer than 100 targets are above 0. Up to six Newton steps with
# all rows follow, each a pass over the data beyond memory, until logarithms of means change by less than 0.01.
# ``alpha`` has the units of the deviance, and the penalised intercept is close to the logarithm of the mean target. For
# rates with different exposures, pass rates as y and exposures as ``sample_weight``. Standard deviations, samples,
# intervals and quantiles are not available. ``models/target/deviance.py``
#
# Classification
# --------------
# Each class is a target, 1 for its rows and -1 for all others; two classes share one target. Each label of an indicator
# matrix is a target, and several columns of labels have separate classes and the sum of their losses.
#
# *Log loss.* Scores s of two classes minimise :math:`\sum_i v_i \log(1 + e^{-2 y_i s(x_i)}) + \alpha \lVert s
# \rVert^2`, so 2 s are log-odds. More classes minimise twice the cross entropy of the softmax, with a penalty for each
# class. With a linear kernel this would be scikit-learn's ``LogisticRegression`` with ``C = 2 / alpha`` (``1 / alpha``
# for more than two classes) and a penalised intercept. *Squared hinge*: each class minimises :math:`\sum_i v_i \max(0,
# 1 - y_i s(x_i))^2 + \alpha \lVert s \rVert^2`. Length scales, kernels and shares are learned with squared errors, and
# the penalty minimises the first-order leave-one-out loss (Rad & Maleki 2020). L-BFGS (Nocedal 1980) starts from a
# bound of the curvature (Boehning 1992), so one factor of the kernel matrix serves all classes and up to 20 steps. If
# these are not enough, the next 20 steps start from the current curvature. ``models/kernel_algebra/bounded.py``
#
# *Probabilities* are :math:`\operatorname{softmax}(A s + B \log p + b)` of the leave-one-out or validation scores s and
# :math:`p = (1 + s) / 2`, smoothly bounded above 0. A and B are multiples of the identity plus matrices with a ridge
# penalty worth twenty rows. A, B and b minimise the log loss with one additional misclassified row (Platt 1999; Guo et
# al. 2017; Kull et al. 2019). With ``scoring``, every selection uses predictions calibrated in this way.
# ``_common/calibration.py``
#
# Uncertainty
# -----------
# *Standard deviations* belong to the Gaussian process with the prediction as its mean, without noise. Up to 4,000 rows
# they are exact. Larger exact models use cells of about 1,000 rows and 400 landmarks (PIC); standard deviations are
# then a few percent too large, and up to 25 % where landmarks are uninformative. Models on random features use
# posterior samples, drawn on the training rows without the validation set, 8 at a time; Fourier features without grids
# have exact standard deviations instead.
#
# *Quantiles*: :math:`y = f(x) + s(x) \rho`. :math:`\log s` is kernel ridge regression of :math:`\log(|r_i| + c)`, where
# c is a tenth of the mean size of the residuals, and quantiles of :math:`\rho_i = r_i / s(x_i)` have the ranks of split
# conformal prediction (Lei et al. 2018). Residuals are widened by the factor of up to seven additional degrees of
# freedom, because kernel, penalty and length scales were selected with the same rows.
#
# Importances and Shapley values
# ------------------------------
# ``feature_importances_`` shuffles one input at a time in leave-one-out predictions of up to 1,000 rows. The value is
# the square root of the increase in mean squared error, in standard deviations of the targets (1 and -1 for classes).
# For other losses it uses the quadratic approximation of the loss near the minimum. Models on random features compute
# it in ``fit``; with more than about 220 inputs and 200 grids, relevances replace it.
#
# *Shapley values.* Let :math:`v(S)` be the mean prediction when the inputs in S are fixed to x and all other inputs are
# drawn independently from background rows z. For a product kernel, :math:`v(S) = \sum_i c_i \prod_{l \in S} a_{il}
# \prod_{l \notin S} b_{il}` with :math:`a_{il} = k_l(x_l, x_{il})` and :math:`b_{il} = E_z k_l(z_l, x_{il})`, and the
# Shapley value of input j is the integral along the diagonal of the game's multilinear extension (Owen 1972),
#
# .. math::
#
#     \phi_j = \sum_i c_i (a_{ij} - b_{ij}) \int_0^1 \prod_{l \ne j} \left( t \, a_{il} + (1 - t) \, b_{il} \right) dt ,
#
# a polynomial in t of degree d - 1, which Gauss-Legendre quadrature integrates exactly with d / 2 nodes; 8 nodes are
# enough for float32. The Matern kernel is approximated by a mixture of up to 12 Gaussians, with errors below 3e-4. With
# a linear map, values are means over random permutations and their reverses. ``models/explained/shapley.py``

a, b = rng.uniform(size=(2, 6))  # one row x_i, six inputs
nodes, weights = np.polynomial.legendre.leggauss(3)
t = ((nodes + 1) / 2)[:, None]
mixed = t * a + (1 - t) * b
phi = (a - b) * (weights / 2 @ (mixed.prod(axis=1, keepdims=True) / mixed))
print("values add up:", phi.sum().round(12), "=", (a.prod() - b.prod()).round(12))

# %%
# Memory
# ------
# ``max_bytes`` covers codes, bins, coefficients and solver vectors, and copies of the table and the targets beyond
# 300 MB. It limits the number of grids, and the number of rows up to which "auto" selects an exact model. If bins are
# many, solver vectors are float32 and fewer targets are solved for at a time; ``summary`` reports it. Because
# ``max_bytes`` also determines how sums are divided into blocks, another value can change the last digits, and
# selections that depend on them.
#
# - An *exact model* needs 4 bytes per pair of rows while the kernel matrix is factorised, for up to 3,000 rows with one
#   target and 14,000 with many, and 1 byte if it is solved by iterations.
# - A *local model* keeps the inputs in float32: 4 bytes for each value, twice that while it is fitted to blocks, plus
#   20 bytes for each row and tree. If blocks have more rows than fit, binning features replace it, or
#   ``features="local"`` raises an error.
# - *Codes* that need more than half of ``max_bytes`` are kept in a scratch file.
# - *Posterior samples* take 4 bytes for each feature and sample. They are solved for like additional targets and can
#   dominate the time of ``fit``. Exact standard deviations of Fourier features take 4 bytes for each pair of features.
# - *Copies of the table* larger than ``max_bytes`` (None: the computer's memory) raise an error before any work. There
#   are up to three copies in float64, and seven for a table with more than 1,333 columns; sparse matrices become dense.
#
# What each part is worth
# -----------------------
# The table shows errors of a default fit without one mechanism, divided by the errors with it: geometric means over
# tables, log-loss for classes and root mean squared error for numbers. Above 1 the mechanism helps. The first column is
# from 47 tables on which nothing had been tuned, the second from random tables of ``python -m perf ablation --drawn
# 6127``.
#
# ===============================  =========  ================
# switched off                     47 tables  random tables
# ===============================  =========  ================
# linear maps                      1.015      1.014
# the second kernel of a sum       1.010      not measured
# ranks                            1.009      not measured
# codes                            0.999      1.014
# revival of unused inputs         0.995      1.036
# duplicates as weights            not alone  1.000
# ===============================  =========  ================
#
# Warps, residual interactions and a linear kernel had 1.000, 1.000 and 0.999, and were deleted. The cost is known:
# residual interactions had found sums of waves of two inputs each, which are now fitted badly if no single input of a
# pair has an effect. ``perf/notes/ablation.md`` has the details, and ``python -m perf ablation`` measures again.
#
# Warm start and interruption
# ---------------------------
# A warm start selects the penalty again, adds grids up to "max_grids", and solves for coefficients. Other columns,
# classes or numbers of targets raise an error. A new search starts if ``features``, ``kernel``, ``gamma``,
# ``categorical_features``, ``loss`` or ``target_transform`` changed, or if the number of rows requires another
# representation; the first line of ``summary`` gives the reason. At most a third of ``max_seconds`` is spent on length
# scales. Additional grids or trees, larger cells and the final refit start only if they should finish in time; an exact
# model is solved in any case. Ctrl-C after the first step of the search leaves a fitted model: the current one, or a
# model of up to 4,000 rows with the current length scales. Callbacks, for example ``sklearn.callback.ProgressBar``,
# receive the stages of a fit, with the remaining seconds if ``max_seconds`` is set, and a task "compiling" for kernels
# without a cache.
#
# Why the search needs a prior
# ----------------------------
# The curves show the leave-one-out error of the 40 rows above along the length scale of the first input, which matters,
# and of the third input, which does not. For small gammas of the third input the error is flat: its gradient is noise,
# and without a prior its gamma would drift.

figure, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
along = np.linspace(-5, 3, 60)
for j, label in ((0, "first input"), (2, "third input")):
    moved = [np.where(np.arange(3) == j, place, theta) for place in along]
    ax.plot(along, [error_and_slopes(log_gamma)[0] for log_gamma in moved], label=label)
ax.set(xlabel="logarithm of its gamma", ylabel="leave-one-out error")
ax.legend(frameon=False)

# %%
# References
# ----------
# D. Allen, *Technometrics* 16, 1974. D. Boehning, *Annals of the Institute of Statistical Mathematics* 44, 1992. G. Box
# and D. Cox, *JRSS B* 26, 1964. N. Duan, *JASA* 78, 1983. Z. Frangella, J. Tropp and M. Udell, "Randomized Nystroem
# Preconditioning", *SIMAX* 44, 2023. C. Guo et al., *ICML* 2017. P. Holland and R. Welsch, *Communications in
# Statistics* 6, 1977. P. Huber, *Annals of Mathematical Statistics* 35, 1964. M. Hutchinson, *Communications in
# Statistics* 19, 1990. D. Kingma and J. Ba, "Adam", *ICLR* 2015. M. Kull et al., "Beyond temperature scaling",
# *NeurIPS* 2019. J. Lei et al., *JASA* 113, 2018. P. McCullagh and J. Nelder, *Generalized Linear Models*, 1989. J. von
# Neumann, *Annals of Mathematical Statistics* 12, 1941. J. Nocedal, *Mathematics of Computation* 35, 1980. G. Owen,
# *Management Science* 18, 1972. J. Platt, *Advances in Large Margin Classifiers*, 1999. K. Rad and A. Maleki, "A
# scalable estimate of the out-of-sample prediction error", *JRSS B* 82, 2020. A. Rahimi and B. Recht, "Random Features
# for Large-Scale Kernel Machines", *NIPS* 2007. C. Rasmussen and C. Williams, *Gaussian Processes for Machine
# Learning*, 2006. S. Shapiro and R. Francia, *JASA* 67, 1972. E. Snelson and Z. Ghahramani, "Local and Global Sparse
# Gaussian Process Approximations", *AISTATS* 2007. P. Thomann et al., "Spatial Decompositions for Large Scale SVMs",
# *AISTATS* 2017.
#
# Experiments that did not lead to a mechanism, with figures, are in the folder ``perf/notes``. :doc:`/measured` lists
# accuracy and times.
