"""
Random binning in pictures
==========================

This example shows why random grids estimate a kernel. Two close points are usually in the same cell of a random grid,
and two distant points almost never. A cell that contains a point is called a bin. For a suitable distribution of cell
sizes, the probability that two points are in the same cell equals their Laplacian kernel value. So the share of grids
in which they are in the same cell estimates the kernel. The method is from section 4 of Rahimi & Recht, "Random
Features for Large-Scale Kernel Machines" (NIPS 2007).
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from binfeat import RandomBinning, kernels

BLUE, RED = "#1f5fa8", "#c8452d"
points = np.random.default_rng(5).normal(size=(80, 2))
x, y = pair = np.array([[-0.4, -0.3], [0.3, 0.2]])
k = kernels.Laplacian()(pair, gamma=1.0)[0, 1]  # exp(-(0.7 + 0.5))

# %%
# Grids
# -----
# Each grid has a random pitch (cell width) and a random shift along each input. For the Laplacian kernel the pitch
# follows a Gamma distribution of shape 2, so cells differ in size and are rarely square. The upper row of the picture
# shows three grids, with one color per bin. To draw the cells, `RandomBinning` is fitted to a dense mesh of points:
# ``codes[p]`` contains the bin of each point in grid p.

ticks = np.linspace(-3, 3, 300)
mesh = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
binning = RandomBinning(gamma=1.0, n_grids=300, random_state=2).fit(mesh)
mesh_codes, point_codes, pair_codes = (binning.encode(these).codes for these in (mesh, points, pair))
met = pair_codes[:, 0] == pair_codes[:, 1]

figure, axes = plt.subplots(2, 3, figsize=(11, 7.8), layout="constrained")
for p, ax in enumerate(axes[0]):
    cells = mesh_codes[p].reshape(300, 300)
    colors = plt.get_cmap("tab20")(np.arange(cells.max() + 1) % 20)
    ax.imshow(colors[cells], origin="lower", extent=(-3, 3, -3, 3), alpha=0.25)
    for place in ticks[np.flatnonzero(np.diff(cells[0]))]:
        ax.axvline(place, color="0.4", lw=0.7)
    for place in ticks[np.flatnonzero(np.diff(cells[:, 0]))]:
        ax.axhline(place, color="0.4", lw=0.7)
    ax.scatter(*points.T, s=18, c=colors[point_codes[p]], edgecolors="0.25", linewidths=0.5)
    ax.set_title(f"grid {p}: x and y {'share a bin' if met[p] else 'are in different bins'}")
# sphinx_gallery_defer_figures

# %%
# From grids to a kernel
# ----------------------
# In the lower row, the color of each point is the share of grids in which the point is in the same bin as x. With three
# grids there are only a few different shares. With 300 grids the shares are close to the kernel ``exp(-|x - y|_1)``,
# which is drawn as contours.

exact = kernels.Laplacian()(x[None], mesh, gamma=1.0).reshape(300, 300)
for n_grids, ax in zip((3, 300), axes[1], strict=False):
    share = (mesh_codes[:n_grids] == pair_codes[:n_grids, :1]).mean(axis=0).reshape(300, 300)
    image = ax.imshow(share, origin="lower", extent=(-3, 3, -3, 3), cmap="Blues", vmin=0, vmax=1)
    ax.contour(ticks, ticks, exact, levels=[0.1, 0.3, 0.6], colors=RED, linewidths=0.9)
    ax.set_title(f"{n_grids} grids: share in the bin of x")
figure.colorbar(image, ax=axes[1, :2], location="bottom", shrink=0.5, aspect=30, pad=0.02)

for ax in axes.flat[:5]:
    for name, place, offset in (("x", x, (-13, -12)), ("y", y, (5, 4))):
        ax.plot(*place, "o", color="black", ms=5)
        ax.annotate(name, place, xytext=offset, textcoords="offset points", weight="bold", size=12)
    ax.set(xticks=[], yticks=[], xlim=(-3, 3), ylim=(-3, 3))
# sphinx_gallery_defer_figures

# %%
# How many grids
# --------------
# In each grid x and y share a bin with probability k. By Hoeffding's inequality, the error of the share of P grids
# exceeds e with probability at most ``2 exp(-2 P e^2)``. This probability is 5 % at the shaded bounds,
# ``e = sqrt(log(40) / (2 P))``. So 100 times as many grids reduce the error to a tenth.

n_grids = np.arange(1, 4097)
ax = axes[1, 2]
for seed in range(12):
    codes = RandomBinning(gamma=1.0, n_grids=n_grids.size, random_state=seed, output="codes").fit_transform(pair).codes
    estimate = np.cumsum(codes[:, 0] == codes[:, 1]) / n_grids
    ax.plot(n_grids, estimate, color=BLUE, lw=0.8, alpha=0.6, label="estimates, 12 seeds" if seed == 0 else None)
bound = np.sqrt(np.log(40) / (2 * n_grids))
ax.fill_between(n_grids, k - bound, k + bound, color=RED, alpha=0.12, lw=0, label="Hoeffding, 95 %")
ax.axhline(k, color=RED, label=f"exp(-|x - y|) = {k:.3f}")
ax.set(xscale="log", xlim=(1, n_grids[-1]), ylim=(0, 1), xlabel="number of grids P")
ax.set_title("share of P grids in which x and y share a bin")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="upper right")

figure.savefig("binning_explained.png", dpi=130)
print("wrote", Path("binning_explained.png").resolve())
