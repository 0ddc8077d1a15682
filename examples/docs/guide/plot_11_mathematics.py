r"""
Mathematics of kernel models
============================

This page is for researchers who want to reproduce or improve ``KernelMachineRegressor`` and
``KernelMachineClassifier``. It describes their algorithms, with references to papers and to files of the package. You
do not need it to use the models.

Notation. Rows are :math:`x_1, \dots, x_n`, targets :math:`Y \in \mathbb R^{n \times T}` are standardized, sample
weights are :math:`v_i`, and :math:`V = \operatorname{diag} v`.

Objective
---------

A kernel model minimizes, over functions f of the kernel's space and an intercept b,

.. math::

    \sum_i v_i \lVert y_i - f(x_i) - b \rVert^2 + \alpha \left( \lVert f \rVert_k^2 + b^2 \right),
    \qquad f(x) + b = \sum_i c_i \, (k(x_i, x) + 1), \qquad (K + 1 1^\top + \alpha V^{-1}) \, c = Y .

The intercept acts as an additional constant kernel, so f is the posterior mean of a Gaussian process with noise
variance :math:`\alpha / v_i` (Rasmussen & Williams 2006, eq. 2.25). A row of weight 2 counts as two equal rows.

With :math:`D = x - x'`, the Laplacian is :math:`\exp(-\sum_j \gamma_j |D_j|)`. Radial kernels depend on :math:`s =
\sum_j \gamma_j D_j^2`: the Gaussian is :math:`e^{-s}`, and the Matern kernel is a function of :math:`r = \sqrt{2 s}`.
If two rows differ in the category j, the Laplacian is multiplied by :math:`e^{-\gamma_j}`, and :math:`s` increases by
:math:`\gamma_j`. A linear map A generalizes the radial kernels: :math:`s = \lVert A^\top
\operatorname{diag}(\gamma)^{1/2} D \rVert^2`. A sum of two kernels is a weighted mean; its weights are called *shares*.

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
\operatorname{diag}(w) Z (G Z)^\top` over columns Z of random signs (Hutchinson 1990). So one gradient needs one
Cholesky factor, and no product of two full matrices. ``length_scales/leave_one_out.py``
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
# *Numbers* are standardized. A missing number is replaced by the training median, and a 0/1 column marks the rows with
# missing numbers. *Categories*: a missing value is a separate category. A category that did not occur in ``fit``
# matches no other category. A column with a different category in nearly every row, such as an id, is ignored with a
# warning. *Dates and durations* become numbers of days. If dates span more than a year, a week or a day, the day of the
# year, the day of the week or the hour is a further column. ``models/table/encoder.py``
#
# *Codes.* Numbers with repeated values, such as person or district ids, are also encoded as categories if targets are
# unrelated to their order. The test statistic is the mean squared difference between the mean targets of neighboring
# values, minus its expectation from noise (compare von Neumann 1941). It must be at least half of its value after
# shuffling, and at least 4 standard errors. This test is skipped if ``features``, ``gamma``, ``cv`` or ``groups`` are
# set. ``summary`` lists the columns. ``models/table/derived.py``
#
# *Ranks.* Exact and local models with learned length scales encode numbers that are far from normal, such as amounts,
# or counts with many zeros, as two columns: x and the normal score of its rank, each with its own :math:`\gamma`. "Far
# from normal" means a squared correlation below 0.865 between the sorted values and the normal scores (Shapiro &
# Francia 1972). At most 64 columns are added. ``models/table/derived.py``
#
# *Duplicates.* If more than a quarter of the rows are copies of other rows, including the targets, each set of copies
# becomes one row with the sum of their weights. The rule applies only if some column other than codes has many
# different values, because then copies are not a coincidence. It does not apply to a table that seems to be drawn from
# few different rows, such as a list of sales of few products. ``models/table/unique_rows.py``
#
# Length scales
# -------------
# Length scales minimize squared leave-one-out errors, also with another loss or with ``scoring``. Adam (Kingma & Ba
# 2015) minimizes
#
# .. math::
#
#     \log L(\theta) + \frac \lambda N \sum_j (\log \gamma_j - \overline{\log \gamma})^2, \qquad
#     \lambda = 3 \min \left( 1, \sqrt{20 / d} \right),
#
# for :math:`\theta = (\log \gamma_1, \dots, \log \gamma_d, \log \alpha)`. Each step uses the error L of *fresh*
# training rows: 300 to about 1,000 of the N rows, without the validation set. The second term is a prior. It keeps the
# logarithms of the d gammas close to each other if N is small. It is weaker for many inputs, because usually few of
# them are relevant. The learning rate falls from 0.2 to 0.01 over 60 steps, or up to 150 steps for many rows.
# ``length_scales/search.py``
#
# The best length scales are shorter for more rows. Therefore one learner refines the result for the rows of the model:
# all gammas, the shares of a sum, and :math:`\alpha`, by Adam on the gradient of :math:`\log L`. The prior has the
# weight 50 instead of :math:`\lambda`, and pulls each gamma towards its earlier value times one free common factor per
# kernel. Up to 1,500 rows, this factor moves three times as fast as the gammas. The kinds of models differ in the rows
# of a step:
#
# - Exact models of up to 1,500 rows use 8 steps on two random samples of 750 rows, or of all rows if there are fewer.
#   Then L of all rows, or the loss of the validation rows, selects :math:`\alpha` by steps of :math:`\sqrt{10}`.
# - Exact models of more rows use 30 steps on two sets of 750 rows: a cell of a tree, in which rows are as dense as in
#   the table, and a random sample, because an input that the tree splits hardly varies within a cell.
# - Local models use 60 steps on two cells of 500 rows. With more than 150,000 rows, they build the tree again twice,
#   with the current kernel.
#
# Exact models use half of the steps if the error of the search exceeds 0.3 of the variance of the targets.
# ``models/solvers/learner.py``
#
# Kernels
# -------
# With ``kernel="auto"``, length scales are searched for the Laplacian, ``Matern(1.5)`` and the Gaussian in parallel. A
# search stops if its error exceeds 1.12 times the best error, and only the better of the two radial kernels remains.
# Exact and local models then begin with a sum of both, in which the better kernel has a share of 0.75. If only one
# kernel remained, a second one is added first: ``Matern(1.5)`` to the Gaussian, otherwise the same kernel with 0.3
# times the gammas. The shares are learned together with the length scales. A kernel that explains less than 5 % of the
# variance of the predictions is dropped at the end. ``models/search/kernel_search.py``, ``models/solvers/learner.py``
#
# Binning features learn length scales with the Laplacian; ``kernel="auto"`` then compares ``GammaPitch(8)``,
# ``GammaPitch(inf)`` and ``Skip(GammaPitch(8), 0.2)`` on the validation set. Fourier features use the given kernel if
# it is radial, otherwise the best radial kernel of the search.
#
# Linear maps
# -----------
# With ``gamma="learn"`` a radial kernel of up to 200 numeric inputs also learns A by the same gradient, if there are at
# least 300 rows and at least as many rows as entries of A. Rows of A have norm 1. Because A has many parameters, it is
# learned from some rows and validated on m other rows, at most 1,000. It is accepted if the mean reduction :math:`\bar
# \delta` of the squared leave-one-out residuals exceeds two standard errors: :math:`\bar \delta > 2 \, s_\delta / \sqrt
# m`. In addition, an exact model of up to 1,500 of the other rows must predict these m rows with a lower squared error,
# by one standard error. The search ends early if the gain is below 1 standard error after a fourth of the steps, or
# below 1.5 after half of them. ``models/search/linear_maps.py``
#
# Exact, local, or random features
# --------------------------------
# ``features="auto"`` selects the representation in this order (``models/solvers/choice.py``):
#
# 1. *Exact* for up to 10,000 rows in memory (fewer with more than 200 inputs), if "n_grids" is not set, the kernel is
#    supported, and the estimated time of the solution is at most half of ``max_seconds``. With ``cv`` or ``groups`` the
#    limit is 1,500 rows.
# 2. *Local* for more rows, also in files or on Dask. With ``cv`` or ``groups``, only if ``kernel`` is radial.
# 3. *Random features* otherwise. Binning features are compared with Fourier features on the validation set if Fourier
#    features need at most 1 GB, no input is a category, and a radial kernel had the lower error in the search.
#
# Grids are doubled until this lowers the validation error by less than 2 %; Fourier features are doubled by the same
# rule, from 1,024 on. If ``max_seconds`` is too short for all rows of a table in memory, the table is subsampled at
# random.
#
# ``held_out_error_`` contains the leave-one-out or validation error that was minimized: the mean squared error of the
# standardized targets, the mean of another loss, or minus the ``scoring``. For deviances with fewer than 100 targets
# above 0 it is an error of five folds. Its standard error is computed by groups if there are any, and is NaN for a
# score. Because it was minimized, this error is slightly too low.
#
# Exact models
# ------------
# Hyperparameters of an exact model minimize leave-one-out errors. With ``groups`` or ``cv`` and up to 1,500 rows, the
# penalty minimizes leave-one-group-out or leave-one-fold-out errors; leave-one-fold-out requires a loss based on
# squares and ``refit=True``. In all other cases with ``cv``, the validation rows are predicted from the training rows,
# and rows in neither part are not used. With more than 1,500 rows, ``features="exact"`` accepts neither ``groups`` nor
# ``cv``.
#
# *Solution.* Up to 3,000 rows with one target, and 14,000 with many, the system is solved by a Cholesky factor. Larger
# systems are solved by conjugate gradients with the randomized Nystroem preconditioner of Frangella, Tropp & Udell
# (2023), from 500 columns. Then leave-one-out residuals need an estimate of the diagonal of G. A PIC approximation P
# (partially independent conditionals, Snelson & Ghahramani 2007), with cells of rows and 400 landmarks, has a diagonal
# that is too small. To correct it, the system is also solved for a vector z of random signs: the expectation of
# :math:`z_i (G z - P z)_i` is the error of entry i (Hutchinson 1990), and a linear function of :math:`P_{ii}` smooths
# these values. Standard deviations of models of more than 4,000 rows use P as well, and one factor corrects the mean
# of their squares. ``models/solvers/exact.py``
#
# *Wide tables.* Tables with more than 1,333 columns of numbers use exact models, even if ``max_seconds`` is short.
# Leave-one-out errors first select one length scale for all inputs, and whether inputs are standardized. So even with
# little time, errors are about as low as with ridge regression. If time remains, one length scale per input is learned
# for a radial kernel, and accepted if it clearly lowers the error of other rows. If ``max_seconds`` has passed, the
# reported error is the leave-one-out error of 1,500 rows. ``models/search/high_dimensional.py``
#
# Local models
# ------------
# A k-d tree splits rows along the input with the largest spread in units of its length scale, at about the median,
# until cells have m = 1,500 rows (compare Thomann et al. 2017). Equal rows stay in one cell, which may then exceed m.
# In each cell an exact model is solved: :math:`(K_c + 1 1^\top + \alpha V_c^{-1}) c = Y_c`, with the same kernel and
# penalty in all cells. The first tree is deterministic; other trees randomize the input and the position of each split,
# and predictions are means over trees.
#
# If a category has 20 levels or more, one additive effect per level, common to all cells, is tried. With :math:`B =
# \mathrm{blockdiag}(K_c + 1 1^\top + \alpha V_c^{-1})`, one-hot columns Z and prior variances S, coefficients are
# :math:`a = (B + Z S Z^\top)^{-1} Y` and the weights of the levels :math:`w = S Z^\top a`. By Woodbury's identity, the
# inverse is :math:`B^{-1} - B^{-1} Z M^{-1} Z^\top B^{-1}` with :math:`M = S^{-1} + Z^\top B^{-1} Z`, so leave-one-out
# residuals :math:`a_i / ((B + Z S Z^\top)^{-1})_{ii}` of the first tree are exact. Further trees are solved given these
# effects, which then take the same share of the diagonal. Variances are the maximum likelihood estimates (MacKay
# 1992) or ten times these. This choice and the penalty minimize leave-one-out errors of at most 10,000 rows.
#
# First, effects replace categories with 20 levels or more in the kernel of the search, and cells have 750 rows. This is
# kept if it reduces the leave-one-out error by 5 %, and the kernel is not learned further. Otherwise the learned kernel
# keeps its categories, and effects are added if they reduce the error by 1 %, and the error of the first tree by
# 0.3 %. With effects, each further tree must reduce the error by 1.2 %. ``models/solvers/levels.py``
#
# Tables of up to 10,000 rows have an exact model first. If the table has categories, one tree with effects is tried, in
# cells of up to 4,000 rows. It replaces the exact model if the leave-one-out error falls by 1 % on up to 750 rows (10 %
# if there are several cells), and by 2 % on all rows. Here, categories with few levels have effects as well.
#
# The squared error of T trees is :math:`E + V / T`, where V, the variance of single trees, is half of the squared
# difference between two trees. Trees are added while each should reduce the squared error by at least 0.3 % and by 1e-8
# of the target's variance. If the first tree explains less than 23 % of the variance, 1 % of the explained part, but at
# least 0.03 % of the error, replaces these 0.3 %. Some cells of a second tree provide the estimate. There are at most 8
# trees, and at most 1.6 million rows in all trees together. If ``max_seconds`` is set, m is doubled while three trees
# with larger cells should finish in time, and the leave-one-out error of one tree falls by 0.3 %. A fit needs n m
# kernel values and :math:`n m^2 / 3` multiplications per tree. The prediction of a row needs m kernel values per tree.
#
# Hyperparameters minimize leave-one-out errors of all rows. With ``cv`` or ``groups``, the validation set selects the
# penalty and the number of trees. For a source of blocks, the search uses a sample of up to 200,000 rows. One more pass
# reads all rows, refines length scales and penalty, and solves the cells. Standard deviations and posterior samples use
# the first tree, so samples for rows in different cells are independent. Intervals use the residuals of the mean of all
# trees.
#
# Target transformations
# ----------------------
# If targets are skewed (skewness above 1) or have values ten standard deviations from their mean,
# ``target_transform="auto"`` tries ``log(y)``, if all targets are positive, and ``arcsinh((y - median) / interquartile
# range)``. A transformation is accepted in two cases: it lowers the leave-one-out error of y itself by 5 % and by one
# standard error, or it increases the log-likelihood by 0.5 per row (Box & Cox 1964) and does not raise the error. The
# second case is excluded if more than 5 % of the rows share one value. Later selections use squared errors of the
# transformed targets, or ``scoring``. Predictions then estimate either medians of y, or means by smearing over 32
# residuals (Duan 1983), whichever has the lower leave-one-out error. ``models/table/targets.py``
#
# Robust loss and deviances
# -------------------------
# *Huber's loss* (Huber 1964) is least squares with row weights :math:`\min(1, 1.345 / |r_i|)`, multiplied by the sample
# weight (Holland & Welsch 1977). The residual :math:`r_i`, in units of 1.4826 times the median absolute residual, comes
# from an exact model of at most 1,500 rows without row i. Before all other steps, model and weights are computed in
# turn until the weights change by less than 0.5 % (root mean square), at most 10 times. If rows are read in blocks,
# weights are computed on the sample first, and one more pass computes the weights of all other rows. Targets are
# clipped after their transformation, at 60 times the upper quartile of their distances from the median (about 70
# standard deviations of a normal distribution). ``models/kernel_algebra/loss.py``, ``models/table/targets.py``
#
# *Poisson, gamma and Tweedie deviances* minimize :math:`\sum_i v_i \, d(y_i, e^{f(x_i)}) + \alpha \lVert f \rVert^2`
# with the unit deviance d, as scikit-learn's ``PoissonRegressor`` does for linear inputs. Iteratively reweighted least
# squares use the derivatives g and h of the deviance at the scores f (for gamma, the expected h): weights :math:`h` and
# working targets :math:`f - g / h` (McCullagh & Nelder 1989, section 2.5). Kernels are selected with the weights and
# working targets of an exact model of at most 1,500 rows. The penalty of exact and local models minimizes a first-order
# approximation of the leave-one-out deviance (Rad & Maleki 2020), or the deviance in five folds if fewer than 100
# targets are above 0. Up to six Newton steps with all rows follow, until the root mean square change of the logarithms
# of means is below 0.01; logarithms of single rows can change more. Several targets share ``alpha`` and the weight of a
# row, the largest h. To make them comparable, the deviance of a target is divided by :math:`u_j = m_j^{2 - p}` and
# multiplied by the mean of these units, for the mean :math:`m_j` of the target and the power p of the variance (1 for
# Poisson, 1.5 for Tweedie, 2 for gamma). The penalty of target j in units of its own deviance is therefore ``alpha``
# times :math:`u_j` divided by the mean of all u, and depends on the other targets unless the loss is gamma. ``alpha``
# has the units of the deviance, and the penalized intercept is close to the logarithm of the mean target. For rates
# with different exposures, pass rates as y and exposures as ``sample_weight``. Standard deviations, samples, intervals
# and quantiles are not available. ``models/kernel_algebra/loss.py``
#
# Classification
# --------------
# Each class is a target, 1 for its rows and -1 for all others; two classes share one target. Each label of an indicator
# matrix is a target. For several columns of labels, the losses of the columns are added.
#
# *Log loss.* Scores s of two classes minimize :math:`\sum_i v_i \log(1 + e^{-2 y_i s(x_i)}) + \alpha \lVert s
# \rVert^2`, so 2 s are log-odds. More classes minimize twice the cross entropy of the softmax, with a penalty for each
# class. With a linear kernel this would be scikit-learn's ``LogisticRegression`` with ``C = 2 / alpha`` (``1 / alpha``
# for more than two classes) and a penalized intercept. *Squared hinge*: each class minimizes :math:`\sum_i v_i \max(0,
# 1 - y_i s(x_i))^2 + \alpha \lVert s \rVert^2`. Length scales, kernels and shares are learned with squared errors, and
# the penalty minimizes the first-order leave-one-out loss (Rad & Maleki 2020). L-BFGS (Nocedal 1980) starts from the
# curvature at scores of 0, so one factor of the kernel matrix serves all classes and up to 20 steps. If these are not
# enough, the next 20 steps start from the current curvature. The same steps minimize deviances when their penalties are
# selected. ``models/kernel_algebra/solve.py``
#
# *Probabilities* are :math:`\operatorname{softmax}(A s + B \log p + b)`, with the scores s and :math:`p = (1 + s) / 2`,
# smoothly bounded above 0. A and B are multiples of the identity plus matrices with a ridge penalty equivalent to
# twenty rows. A, B and b minimize the log loss of leave-one-out or validation scores, with one additional misclassified
# row (Platt 1999; Guo et al. 2017; Kull et al. 2019). If they would decrease with the scores, A and B are 0, and
# probabilities equal the shares of the classes. With ``scoring``, every selection uses predictions calibrated in this
# way. ``_common/calibration.py``
#
# Uncertainty
# -----------
# *Standard deviations* are the posterior standard deviations of the Gaussian process; its posterior mean is the
# prediction. They do not include the noise, and are multiples of its standard deviation for a row of mean weight: the
# root of the mean of :math:`v_i r_i^2 / (1 + v_i u_i)` for leave-one-out residuals with variances :math:`u_i` of the
# predictions, relative to the noise. Up to 4,000 rows they are exact. Larger exact models use the PIC
# approximation with cells of about 1,000 rows and 400 landmarks. Its standard deviations are a few percent too large,
# or up to 25 % for rows that the landmarks do not represent well. Models on binning features use posterior samples,
# from the training rows without the validation set. Models on Fourier features have exact standard deviations.
#
# *Quantiles*: :math:`y = f(x) + s(x) \rho`. :math:`\log s` is a kernel ridge regression of :math:`\log(|r_i| + c)` on
# x, for leave-one-out residuals :math:`r_i`, where c is a tenth of their mean absolute value. Quantiles of
# :math:`\rho_i = r_i / s(x_i)` use the ranks of split conformal prediction (Lei et al. 2018). With weights, ranks count
# weights, and the number of rows is the effective one, :math:`(\sum v_i)^2 / \sum v_i^2` (Kish 1965). Residuals are
# multiplied by a factor for up to seven additional degrees of freedom, because the hyperparameters were selected with
# the same rows.
#
# Importances and Shapley values
# ------------------------------
# ``feature_importances_`` shuffles one input at a time in leave-one-out predictions of up to 1,000 rows. The value is
# the square root of the increase in mean squared error, in standard deviations of the targets (1 and -1 for classes).
# For other losses it uses the quadratic approximation of the loss at the minimum. Models on random features compute it
# in ``fit``. With more than about 220 inputs and 200 grids they return relevances instead.
#
# *Shapley values.* Let :math:`v(S)` be the mean prediction when the inputs in S are fixed to x and all other inputs are
# drawn independently from background rows z. For a product kernel and the prediction :math:`\sum_i c_i k(x_i, x)`,
# :math:`v(S) = \sum_i c_i \prod_{l \in S} a_{il} \prod_{l \notin S} b_{il}` with :math:`a_{il} = k_l(x_l, x_{il})` and
# :math:`b_{il} = E_z k_l(z_l, x_{il})`. Then the Shapley value of input j is (Owen 1972, the integral along the
# diagonal of the game's multilinear extension)
#
# .. math::
#
#     \phi_j = \sum_i c_i (a_{ij} - b_{ij}) \int_0^1 \prod_{l \ne j} \left( t \, a_{il} + (1 - t) \, b_{il} \right) dt .
#
# The integrand is a polynomial in t of degree d - 1. Gauss-Legendre quadrature with d / 2 nodes is exact; 8 nodes are
# enough for float32. The Matern kernel is approximated by a mixture of up to 12 Gaussians, with errors below 3e-4. With
# a linear map, values are means over random permutations and their reverses. ``models/served/shapley.py``

a, b = rng.uniform(size=(2, 6))  # one row x_i, six inputs
nodes, weights = np.polynomial.legendre.leggauss(3)
t = ((nodes + 1) / 2)[:, None]
mixed = t * a + (1 - t) * b
phi = (a - b) * (weights / 2 @ (mixed.prod(axis=1, keepdims=True) / mixed))
print("values add up:", phi.sum().round(12), "=", (a.prod() - b.prod()).round(12))

# %%
# Memory
# ------
# ``max_bytes`` limits the memory for codes, bins, coefficients and solver vectors, and for copies of the table and the
# targets beyond 300 MB. It therefore limits the number of grids, and the number of rows of an exact model. If memory is
# short, the solver uses float32 and fewer targets at a time, and ``summary`` reports it. ``max_bytes`` also determines
# how sums are divided into blocks, so another value can change the last digits of results.
#
# - An *exact model* needs 4 bytes per pair of rows while the kernel matrix is factorized, for up to 3,000 rows with one
#   target and 14,000 with many, and 1 byte if it is solved by iterations.
# - A *local model* keeps the inputs in float32: 4 bytes for each value, twice that while it is fitted to blocks, plus
#   20 bytes for each row and tree. If the rows of a source do not fit, "auto" uses binning features, and
#   ``features="local"`` raises an error.
# - *Codes* that need more than half of ``max_bytes`` are kept in a scratch file.
# - *Posterior samples* take 4 bytes for each feature and sample. Each sample is solved like an additional target, which
#   can dominate the time of ``fit``. Exact standard deviations of Fourier features take 4 bytes for each pair of
#   features.
# - *Copies of the table* that need more than ``max_bytes`` (None: the computer's memory) plus 300 MB raise an error
#   before any work. The limit counts up to three copies in float64, and seven for a table with more than 1,333 columns.
#   Sparse matrices become dense.
#
# What each part is worth
# -----------------------
# The table shows the error of a default fit without one mechanism, divided by the error with it, as geometric means
# over tables: the log-loss for classes, the RMSE for numbers. Values above 1 mean that the mechanism helps. The 47 and
# the 161 random tables were not used during development, and the 49 chosen tables were. "Worse" and "better" are
# numbers of random tables: without the mechanism, their error rises or falls by 2 % or more. "Without two" excludes the
# two most extreme tables. Lines of code are approximate.
#
# ==========================  =========  ==========  ===========  =====  ======  =========  =====
# switched off                47 tables  161 random  without two  worse  better  49 chosen  lines
# ==========================  =========  ==========  ===========  =====  ======  =========  =====
# codes                       0.999      1.033       1.014        17     3       1.001      120
# learning of all parameters             1.025       1.009        28     12      1.050      290
# calibration matrix                     1.008       1.005        14     4       1.025      35
# ranks                       1.009      1.007       0.999        9      13      1.027      60
# Gaussian kernel                        1.007       1.004        4      4       1.010      20
# second kernel of a sum      1.010      1.001       1.002        13     13      1.031      30
# linear maps                 1.015      0.995       0.9995       2      2       0.987      134
# target transforms                      0.982       0.998        2      6       1.000      150
# average of trees                       1.0003      1.000        1      0       1.013      60
# ==========================  =========  ==========  ===========  =====  ======  =========  =====
#
# The random tables are one split of 161 tables of two draws, with 260 to 80,003 rows; 77 have classes. Codes are
# numbers that act as categories. Transforms were used on 11 tables, which led to the stricter rule above. Linear maps
# were used on 14, and one of these has 2.5 times the error with a map; since then, they must also reduce the error of
# predictions. Averages were used on 10, which have more than 10,000 rows. Effects of levels, not in this table, were
# used on 8 of 124 tables with categories and up to 10,000 rows: 1.007, without the two most extreme tables 1.003.
#
# Four further mechanisms did not help and were deleted: monotone transformations of inputs (1.000), a search for
# interactions in residuals (1.000), a linear kernel (0.999), and a step that raised the gamma of inputs that
# seemed irrelevant (0.9995 on 17 random tables). Without the search for interactions, the model fits interactions badly
# if their inputs have no effect alone. Details are in ``perf/notes/ablation.md``, and ``python -m perf ablation``
# measures each mechanism.
#
# Warm start and interruption
# ---------------------------
# A warm start selects the penalty again, adds grids up to "max_grids", and solves for coefficients. It raises an error
# if the columns, the classes or the number of targets differ. A new search starts if ``features``, ``kernel``,
# ``gamma``, ``categorical_features``, ``loss`` or ``target_transform`` changed, if a complete column now has missing
# values, if a constant column varies, or if the number of rows requires another representation; the first line of
# ``summary`` gives the reason.
#
# *Time limit.* At most a third of ``max_seconds`` is spent on length scales. Additional grids or trees, larger cells
# and the final refit start only if they should finish in time. An exact model is always solved.
#
# *Interruption.* Ctrl-C after the first step of the search leaves a fitted model: the current one, or a model of up to
# 4,000 rows with the current length scales. After the solution, only quantiles and importances can be missing.
# Callbacks, for example ``sklearn.callback.ProgressBar``, receive the stages of a fit, with the remaining seconds if
# ``max_seconds`` is set.
#
# Why the search needs a prior
# ----------------------------
# The curves show the leave-one-out error of the 40 rows at the top of this page as a function of one gamma. The first
# input is relevant, the third is not. For small gammas of the third input the error is flat, so without a prior its
# gamma would drift randomly.

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
# D. Allen, *Technometrics* 16, 1974. G. Box and D. Cox, *JRSS B* 26, 1964. N. Duan, *JASA* 78, 1983. Z. Frangella, J.
# Tropp and M. Udell, "Randomized Nystroem Preconditioning", *SIMAX* 44, 2023. C. Guo et al., *ICML* 2017. P. Holland
# and R. Welsch, *Communications in Statistics* 6, 1977. P. Huber, *Annals of Mathematical Statistics* 35, 1964. M.
# Hutchinson, *Communications in Statistics* 19, 1990. D. Kingma and J. Ba, "Adam", *ICLR* 2015. M. Kull et al., "Beyond
# temperature scaling", *NeurIPS* 2019. J. Lei et al., *JASA* 113, 2018. D. MacKay, "Bayesian Interpolation", *Neural
# Computation* 4, 1992. P. McCullagh and J. Nelder, *Generalized Linear Models*, 1989. J. von Neumann, *Annals of
# Mathematical Statistics* 12, 1941. J. Nocedal, *Mathematics of Computation* 35, 1980. G. Owen, *Management Science*
# 18, 1972. J. Platt, *Advances in Large Margin Classifiers*, 1999. K. Rad and A. Maleki, "A scalable estimate of the
# out-of-sample prediction error", *JRSS B* 82, 2020. A. Rahimi and B. Recht, "Random Features for Large-Scale Kernel
# Machines", *NIPS* 2007. C. Rasmussen and C. Williams, *Gaussian Processes for Machine Learning*, 2006. S. Shapiro and
# R. Francia, *JASA* 67, 1972. E. Snelson and Z. Ghahramani, "Local and Global Sparse Gaussian Process Approximations",
# *AISTATS* 2007. P. Thomann et al., "Spatial Decompositions for Large Scale SVMs", *AISTATS* 2017.
#
# Experiments that did not lead to a mechanism, with figures, are in the folder ``perf/notes``. :doc:`/measured` lists
# accuracy and times.
