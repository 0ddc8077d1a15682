"""Error of the estimated kernel against D, every kernel and sampler, and against P, with the paper's bounds."""

import numpy as np

from binfeat import RandomBinning, RandomFourier
from binfeat.kernels import RBF, Cauchy, GammaPitch, Hat, Laplacian, Matern, Product
from perf import paper
from perf.record import Row

N_INPUTS, N_PAIRS = 8, 400
GAMMA = 1 / N_INPUTS
SIZES, TAIL_SIZE = (16, 64, 256, 1024), 256  # D or P; that of the tails
QUICK_SIZES = (16, 256)
DRAWS, QUICK_DRAWS = 40, 5
TAIL_BOUNDS = (1.0, 0.5, 0.2, 0.05, 0.01, 1e-3, 1e-4)  # of the probability, at whose distances shares are judged
FOURIER_KERNELS = {
    "Laplacian": Laplacian(),
    "Hat": Hat(),
    "Cauchy": Cauchy(),
    "RBF": RBF(),
    "Matern(0.5)": Matern(0.5),
    "Matern(1.5)": Matern(1.5),
}
BINNING_KERNELS = {
    "Laplacian": Laplacian(),
    "Hat": Hat(),
    "GammaPitch(8)": GammaPitch(8),
    "GammaPitch(inf)": GammaPitch(np.inf),
    "Product(1 / (1 + t))": Product(lambda t: 1 / (1 + t)),
}


def run(quick):
    X = pairs()
    draws, sizes = (range(QUICK_DRAWS), QUICK_SIZES) if quick else (range(DRAWS), SIZES)
    rows = [Row("Fourier, Spectral: skipped, it has no exact value to compare with", None)]
    for name, kernel in FOURIER_KERNELS.items():
        exact = exact_values(kernel, X)
        for sampler in kernel.samplers:
            for size in sizes:
                gaps = np.array([fourier_estimates(kernel, sampler, size, X, seed) for seed in draws]) - exact
                rows += _rows("Fourier", name, sampler, size, gaps)
    for name, kernel in BINNING_KERNELS.items():
        exact = exact_values(kernel, X)
        for size in sizes:
            gaps = np.array([binning_estimates(kernel, size, X, seed) for seed in draws]) - exact
            rows += _rows("binning", name, None, size, gaps)
    shares = [row.ours / row.at["bound"] for row in rows if row.at and row.at.get("bound", 100) < 100]
    what = f"pairs beyond a distance / the paper's bound on them, most of {len(shares)} places"
    return [Row(what, max(shares), reach=("<=", 1), unit=""), *rows]


def pairs():
    """Rows of which the first half are paired with the second, at distances from nothing to far."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_PAIRS, N_INPUTS))
    steps = np.linspace(0, 1, N_PAIRS)[:, None] * rng.normal(size=X.shape)
    return np.vstack([X, X + steps])


def exact_values(kernel, X):
    """Kernel of every pair."""
    return np.diagonal(kernel(X[:N_PAIRS], X[N_PAIRS:], gamma=GAMMA))


def fourier_estimates(kernel, sampler, n_frequencies, X, seed):
    """Inner product of the features of every pair."""
    options = {"gamma": GAMMA, "n_components": 2 * n_frequencies, "sampler": sampler, "random_state": seed}
    Z = RandomFourier(kernel=kernel, **options).fit_transform(X)
    return np.einsum("ij,ij->i", Z[:N_PAIRS], Z[N_PAIRS:])


def binning_estimates(kernel, n_grids, X, seed):
    """The same for binning: the share of grids in which the two share a bin."""
    options = {"gamma": GAMMA, "n_grids": n_grids, "output": "codes", "random_state": seed}
    codes = RandomBinning(kernel=kernel, **options).fit_transform(X).codes
    return (codes[:, :N_PAIRS] == codes[:, N_PAIRS:]).mean(axis=0)


def _rows(features, kernel, sampler, size, gaps):
    """RMS error over pairs and draws, and for one size the shares of pairs beyond distances."""
    own = f"{features}, {kernel}{f', {sampler}' if sampler else ''}, {'D' if sampler else 'P'} = {size}"
    at = {"kernel": kernel, "sampler": sampler, "series": sampler or kernel, "x": size}
    rms = float(np.sqrt(np.mean(gaps**2)))
    yield Row(f"{own}, RMS error", rms, unit="", at={"panel": features, **at})
    for bound in TAIL_BOUNDS if size == TAIL_SIZE else ():
        distance = float((paper.fourier_distance if sampler else paper.binning_distance)(size, bound))
        share = 100 * float(np.mean(np.abs(gaps) >= distance))
        what = f"{own}, pairs beyond {distance:.2g}, where the bound is {100 * bound:g} %"
        tail = {"panel": f"{features} tail", "x": distance, "series": kernel, "bound": 100 * bound}
        yield Row(what, share, unit="%", at={**at, **tail})


def pictures(record):
    from perf import plots

    return {"kernels.png": plots.kernels(record)}
