r"""
The mathematics
===============

What is computed, with its sources, for those who want to repeat or to improve it. Names of files are those of the
package. Rows are :math:`x_1, \dots, x_n`, targets :math:`Y \in \mathbb R^{n \times T}` are standardised, weights
:math:`v_i` count rows, and :math:`V = \operatorname{diag} v`.

The objective
-------------

A kernel machine minimises, over functions f of the kernel's space and an intercept b,

.. math::

    \sum_i v_i \lVert y_i - f(x_i) - b \rVert^2 + \alpha \left( \lVert f \rVert_k^2 + b^2 \right),
    \qquad f(x) + b = \sum_i c_i \, (k(x_i, x) + 1), \qquad (K + 1 1^\top + \alpha V^{-1}) \, c = Y .

The intercept is one more constant kernel, so that f is the mean of a Gaussian process with noise :math:`\alpha / v_i`
(Rasmussen & Williams 2006, eq. 2.25). With :math:`D = x - x'` and inverse length scales :math:`\gamma_j`, the Laplacian
is :math:`\exp(-\sum_j \gamma_j |D_j|)`, the Gaussian :math:`\exp(-r^2 / 2)` and Matern's kernel that of r, :math:`r^2 =
2 \sum_j \gamma_j^2 D_j^2`. A category that differs multiplies the Laplacian by :math:`e^{-\gamma_j}` and adds :math:`2
\gamma_j^2` to :math:`r^2`. Kernels of a sum have shares that add up to 1.
A linear map A takes the place of :math:`\gamma` in r: :math:`r = \sqrt 2 \, \lVert A^\top D \rVert`.

Machines of random features solve the same for :math:`w`, :math:`f(x) = w^\top z(x)`, with :math:`E\, z(x)^\top z(x') =
k(x, x')` and an intercept that is not penalised (Rahimi & Recht 2007, Algorithms 1 and 2; :doc:`/how_it_works`).

Leaving one row out, and the slope of that
------------------------------------------

With :math:`G = (K + 1 1^\top + \alpha V^{-1})^{-1}`, :math:`c = G Y` and :math:`g = \operatorname{diag} G`, the
residual of row i, left out of the fit, is :math:`r_i = c_i / g_i` (Allen 1974; Rasmussen & Williams 2006, eq. 5.12),
and

.. math::

    L = \frac{1}{n T} \sum_{it} v_i r_{it}^2, \qquad
    \frac{\partial L}{\partial \theta} = \frac 2 n \sum_{ab} M_{ab} \frac{\partial K_{ab}}{\partial \theta}, \qquad
    M = G \operatorname{diag}(w) \, G - \frac 1 T (G u) c^\top,

with :math:`u_{it} = v_i r_{it} / g_i` and :math:`w_i = \frac 1 T \sum_t u_{it} c_{it} / g_i`. It follows from
:math:`dG = -G \, dK \, G`. For :math:`\log \gamma_j` of the Laplacian, :math:`\partial K_{ab} = -\gamma_j |D_j|
K_{ab}`; for :math:`\log \alpha`, :math:`\partial K = \alpha V^{-1}`. The first part of M is the expectation of :math:`G
\operatorname{diag}(w) Z (G Z)^\top` over columns of random signs Z (Hutchinson 1990): a step takes one Cholesky factor
and no product of whole matrices. ``_machine/kernel_algebra/leave_one_out.py``
"""

import matplotlib.pyplot as plt
import numpy as np

from binfeat.kernels import Laplacian

rng = np.random.default_rng(0)
X, v, alpha = rng.normal(size=(40, 3)), np.ones(40), 0.3
Y = np.sin(2 * X[:, :1]) + 0.1 * rng.normal(size=(40, 1))


def error_and_slopes(log_gamma):
    """L, and its slopes by the logarithms of the three gammas."""
    K = Laplacian()(X, X, gamma=np.exp(log_gamma))
    G = np.linalg.inv(K + 1 + alpha * np.diag(1 / v))
    c, g = G @ Y, np.diag(G)[:, None]
    r = c / g
    u = v[:, None] * r / g
    w = (u * c).mean(axis=1) / g[:, 0]
    M = G @ np.diag(w) @ G - G @ u @ c.T / Y.shape[1]
    apart = np.abs(X[:, None] - X[None]) * np.exp(log_gamma)
    return np.mean(v[:, None] * r**2), 2 / len(X) * np.einsum("ab,ab,abj->j", M, K, -apart)


theta = np.log([1.0, 0.5, 0.2])
error, slopes = error_and_slopes(theta)
steps = 1e-5 * np.eye(3)
differences = [(error_and_slopes(theta + s)[0] - error_and_slopes(theta - s)[0]) / 2e-5 for s in steps]
print("slopes             ", slopes.round(7))
print("and by differences ", np.round(differences, 7))

# %%
# The search for length scales
# ----------------------------
# Adam (Kingma & Ba 2015) goes down the gradient of
#
# .. math::
#
#     \log L(\theta) + \frac \lambda N \sum_j (\log \gamma_j - \overline{\log \gamma})^2, \qquad
#     \lambda = 3 \min \left( 1, \sqrt{20 / d} \right),
#
# for :math:`\theta = (\log \gamma_1, \dots, \log \gamma_d, \log \alpha)`, each step with the error L of *fresh* rows,
# 300 to some 1,000 of the N. The prior holds the logarithms of d inputs together where rows are few, less so where
# inputs are many, of which few matter. The rate falls from 0.2 to 0.01 over 60 steps, or up to 150 for many rows. After
# two thirds of them, inputs that seem idle are raised to half of the mean part in the exponent, and keep it where the
# slope on more rows points up. ``_machine/search/length_scales.py``
#
# More rows take shorter scales. Of up to 1,500 rows one factor of all, the penalty, and the shares of a sum are chosen
# afterwards by L of these rows. Of more, all of :math:`\gamma`, the shares and :math:`\alpha` go down the gradient of L
# once more, in whole cells of the trees below, which are as dense as all rows are, and are split anew twice, by the
# kernel so far; exact machines take samples of all rows in turn with them, since inputs that the tree splits hardly
# vary within a cell. There the prior, 50 instead of :math:`\lambda`, holds the gammas of a kernel to what they were
# before, but for a factor of them all, which is free. ``_machine/machines/fine_tuning.py``, ``cell_search.py``
#
# Numbers whose sorted values have a squared correlation below 0.865 with normal scores (Shapiro & Francia 1972) are two
# columns: x and the normal score of its rank, each with a :math:`\gamma` of its own. ``_machine/table/ranks.py``
#
# Linear maps A are learned by the same gradient.
#
# Judging rules
# -------------
# What has many parameters fits the rows that it is learned from. So a linear map is learned from some rows
# and judged by up to 1,000 *others*, with paired differences of their squared leave-one-out residuals: :math:`\bar
# \delta > 2 \, s_\delta / \sqrt m`. A map has no more entries than there are
# rows; it is given up after a fourth of its steps with less than 1 such standard error, after half with less than 1.5.
# A transform of the targets has to lower the error in their own units by 5 %, or to raise the likelihood by half a nat
# a row (Box & Cox 1964). ``_machine/search/linear_maps.py``, ``_machine/target/transform_choice.py``
#
# Many rows
# ---------
# *Exact machines* beyond a few thousand rows are solved by conjugate gradients, with the preconditioner of Frangella,
# Tropp & Udell (2023) from 500 columns. Leave-one-out residuals of all rows need the diagonal of G: it is that of rows
# in cells which know of each other by 200 landmarks (PIC, Snelson & Ghahramani 2007), times one factor, by which a
# random probe tells the mean of the true diagonal.
#
# *Local machines* split rows by a tree along the input with the widest spread in units of the kernel, at about its
# median, until cells have m = 1,500 rows (compare Thomann et al. 2017). In each, :math:`(K_c + 1 1^\top + \alpha
# V_c^{-1}) c = Y_c`. The prediction is the mean over trees whose places and inputs of splits are drawn. The squared
# error of T trees is :math:`E + V / T` if V is the variance of what single trees say of a row, which is half of the
# squared difference of two: trees are added while each takes 0.3 % away. A fit costs n m kernel values and :math:`n m^2
# / 3` multiplications a tree; a prediction m values. Where there is a limit of seconds, m is doubled as long as three
# trees of such cells would end in time, and one of them has a leave-one-out error that is lower by 0.3 %.
#
# Losses, probabilities, quantiles
# --------------------------------
# *Deviances* are squares of working targets: with the derivatives g and h of the deviance by the scores f, weights
# :math:`h` and targets :math:`f - g / h` (McCullagh & Nelder 1989, section 2.5), until rows left out say that the
# deviance rises. *Huber's loss* is squares with the weights :math:`\min(1, 1.345 / |r_i|)`, of residuals r of rows
# left out, in robust standard deviations (Holland & Welsch 1977).
#
# *Probabilities* of classes, whose targets are 1 and -1, are :math:`\operatorname{softmax}(A s + B \log p + b)` of the
# leave-one-out scores s and the shares :math:`p = (1 + s) / 2`, smoothly kept above 0. A and B are multiples of 1 plus
# matrices with a ridge of twenty rows' worth; A, B and b minimise the log-loss, with one row more that is wrong (Platt
# 1999; Guo et al. 2017; Kull et al. 2019). ``_common/calibration.py``
#
# *Quantiles*: :math:`y = f(x) + s(x) \rho`. :math:`\log s` is kernel ridge regression of :math:`\log(|r_i| + c)`, c a
# tenth of the mean size of the residuals, and quantiles of :math:`\rho_i = r_i / s(x_i)` have the ranks of split
# conformal prediction (Lei et al. 2018).
#
# Shapley values
# --------------
# Let :math:`v(S)` be the mean prediction when the inputs in S are those of x, and the others are drawn, one by one,
# from background rows z. For a product kernel, :math:`v(S) = \sum_i c_i \prod_{l \in S} a_{il} \prod_{l \notin S}
# b_{il}` with :math:`a_{il} = k_l(x_l, x_{il})` and :math:`b_{il} = E_z k_l(z_l, x_{il})`, and the Shapley value of
# input j is the integral along the diagonal of the game's multilinear extension (Owen 1972),
#
# .. math::
#
#     \phi_j = \sum_i c_i (a_{ij} - b_{ij}) \int_0^1 \prod_{l \ne j} \left( t \, a_{il} + (1 - t) \, b_{il} \right) dt ,
#
# a polynomial in t of degree d - 1, which Gauss and Legendre integrate exactly with d / 2 nodes; 8 are enough for
# float32. Matern's kernel is a mixture of up to 12 Gaussians, off by less than 3e-4. Where a linear map mixes inputs,
# values are means over random permutations and their reverses. ``_machine/explained/shapley.py``

a, b = rng.uniform(size=(2, 6))  # one row x_i, six inputs
nodes, weights = np.polynomial.legendre.leggauss(3)
t = ((nodes + 1) / 2)[:, None]
mixed = t * a + (1 - t) * b
phi = (a - b) * (weights / 2 @ (mixed.prod(axis=1, keepdims=True) / mixed))
print("values add up:", phi.sum().round(12), "=", (a.prod() - b.prod()).round(12))

# %%
# Why there is a prior
# --------------------
# The leave-one-out error of these 40 rows along the length scale of the first input, which matters, and of the third,
# which does not. Where the latter's gamma is small the error is flat: its slope there is chance, and without a prior
# gamma would wander.

figure, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
along = np.linspace(-5, 3, 60)
for j, words in ((0, "first input"), (2, "third input")):
    moved = [np.where(np.arange(3) == j, place, theta) for place in along]
    ax.plot(along, [error_and_slopes(log_gamma)[0] for log_gamma in moved], label=words)
ax.set(xlabel="logarithm of its gamma", ylabel="leave-one-out error")
ax.legend(frameon=False)

# %%
# Sources
# -------
# D. Allen, *Technometrics* 16, 1974. G. Box and D. Cox, *JRSS B* 26, 1964. Z. Frangella, J. Tropp and M. Udell, *SIMAX*
# 44, 2023. C. Guo et al., *ICML* 2017. P. Holland and R. Welsch, *Communications in Statistics* 6, 1977. M. Hutchinson,
# *Communications in Statistics* 19, 1990. D. Kingma and J. Ba, *ICLR* 2015. M. Kull et al., *NeurIPS* 2019. J. Lei et
# al., *JASA* 113, 2018. P. McCullagh and J. Nelder, *Generalized Linear Models*, 1989. G. Owen, *Management Science*
# 18, 1972. J. Platt, *Advances in Large Margin Classifiers*, 1999. A. Rahimi and B. Recht, *NIPS* 2007. C. Rasmussen
# and C. Williams, *Gaussian Processes for Machine Learning*, 2006. E. Snelson and Z. Ghahramani, *AISTATS* 2007. S.
# Shapiro and R. Francia, *JASA* 67, 1972. P. Thomann et al., *AISTATS* 2017.
#
# What was tried besides, with figures, is in the folder ``perf/notes``; :doc:`/measured` has how well it does.
