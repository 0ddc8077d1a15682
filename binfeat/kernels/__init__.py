"""Kernels: their exact values, and the distributions (laws) from which random features are drawn.

Call a kernel for its exact values: ``kernel(X, Y, gamma=...)``. Pass it as ``kernel=`` to a feature map. A kernel
object has no length scale; `gamma` is a parameter of the map and of the call. A gamma of 0 ignores the input. There are
two kinds of kernels:

- Product kernels, ``prod_j k(gamma_j |x_j - y_j|)`` with a profile k on ``[0, inf)``. Gamma is an inverse length scale.
- Radial kernels, functions of ``s = sum_j gamma_j (x_j - y_j)^2``. Gamma is an inverse squared length scale.

Random binning draws cell widths from the *pitch law* of the profile, with the distribution function
``F(t) = 1 - k(t) + t k'(t)`` (Rahimi & Recht 2007, section 4 and Lemma 1, integrated once). Random Fourier features
draw frequencies w from the *spectral law*, for which ``E[cos(w @ (x - y))] = k(x, y)``. The table lists the features of
each kernel. D_j is ``x_j - y_j``, q is the share of `Skip`, and k_j is its kernel along input j:

============  ==========================================  =======  ==============================
kernel        value                                       binning  Fourier
============  ==========================================  =======  ==============================
`Laplacian`   ``exp(-sum_j gamma_j |x_j - y_j|)``         yes      iid, qmc
`Hat`         ``prod_j max(0, 1 - gamma_j |x_j - y_j|)``  yes      iid, qmc
`GammaPitch`  between the two, by its shape               yes      no
`Product`     ``prod_j k(gamma_j |x_j - y_j|)``           yes      no
`Skip`        ``prod_j (q + (1 - q) k_j)``                yes      no
`Cauchy`      ``prod_j 1 / (1 + (gamma_j D_j)^2)``        no       iid, qmc
`RBF`         ``exp(-s)``                                 no       iid, orthogonal, qmc, fastfood
`Matern`      from ``exp(-sqrt(2 s))`` to the RBF         no       iid, orthogonal, qmc, fastfood
`Spectral`    the kernel of the caller's frequencies      no       iid
============  ==========================================  =======  ==============================
"""

from binfeat.kernels.families import RBF, Cauchy, GammaPitch, Hat, Laplacian, Matern, Product, Spectral
from binfeat.kernels.skip import Skip

__all__ = ["RBF", "Cauchy", "GammaPitch", "Hat", "Laplacian", "Matern", "Product", "Skip", "Spectral"]
