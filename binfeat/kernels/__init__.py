"""Kernels, their exact values, and the distributions (laws) that random features are drawn from.

A kernel object has no length scale: `gamma` is a parameter of the map and of each call. Product kernels are
``prod_j k(gamma_j |x_j - y_j|)`` with a profile ``k`` on ``[0, inf)``, so gamma is an inverse length scale. Radial
kernels depend on ``s = sum_j gamma_j (x_j - y_j)^2``, so their gamma is one over a squared length. A gamma of 0 ignores
the input.

Random binning needs the *pitch law* of a product's profile: the law of the cell widths, with distribution function
``F(t) = 1 - k(t) + t k'(t)`` (Rahimi & Recht 2007, section 4 and Lemma 1, integrated once so that no second derivative
is needed). Random Fourier features need the *spectral law*: the law of frequencies w with
``E[cos(w @ (x - y))] = k(x, y)``. The maps and samplers of each kernel follow; D_j is ``x_j - y_j``, q the share of
`Skip`, k_j its kernel along input j:

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
