"""Ridge machines for a whole path of penalties, each started from the solutions of the last penalties."""

from collections.abc import Iterator

import numpy as np

from binfeat._rows.vectors import column_dots
from binfeat.linear import cg
from binfeat.linear.result import Penalties, Result, SolverOptions

_MOST_KEPT = 3  # earlier solutions whose best combination starts the next solve
_KEPT_BYTES = 2**31  # for these and their images; the last solution is kept in any case


def solve_path(
    system: cg.System, alphas: Penalties, options: SolverOptions, first: np.ndarray | None = None
) -> Iterator[Result]:
    """Solve one ridge system for falling penalties, the first from `first` or 0; yields a result for each penalty.

    The next solve starts from the combination of the last three solutions that minimises the new objective, which
    costs one product; of fewer solutions where three would take more than 2 GB. The Krylov space itself is of no use
    for another penalty, because the Jacobi preconditioner depends on the penalty: on binning features the objective
    would be off by its own size.
    """
    right = system.right
    n_kept = int(np.clip(_KEPT_BYTES // (2 * right.nbytes), 1, _MOST_KEPT))
    every = np.arange(right.shape[1])
    solutions, images = list[np.ndarray](), list[np.ndarray]()
    for alpha in alphas:
        penalties = np.array(np.broadcast_to(alpha, every.shape), dtype=np.float64)
        start, start_image = first, None
        if solutions:
            images = [*images, system.apply(solutions[-1], every).copy(order="F")][-n_kept:]
            start, start_image = _best_combination(right, solutions, images, penalties)
        result = cg.solve(system, penalties, options, start=start, start_image=start_image)
        yield result
        if result.status == "stopped":
            return
        solutions = [*solutions, result.solution][-n_kept:]


def _best_combination(
    right: np.ndarray, solutions: list[np.ndarray], images: list[np.ndarray], alpha: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Minimiser of the objective among combinations of earlier solutions, for each target, and its image."""
    m, n_targets = len(solutions), right.shape[1]
    gram, sides = np.empty((n_targets, m, m)), np.empty((n_targets, m))
    for i in range(m):
        sides[:, i] = column_dots(solutions[i], right)
        for j in range(i + 1):
            both = column_dots(solutions[i], images[j]) + alpha * column_dots(solutions[i], solutions[j])
            gram[:, i, j] = gram[:, j, i] = both
    shares = [np.linalg.lstsq(gram[k], sides[k], rcond=1e-12)[0] for k in range(n_targets)]
    weights = np.array(shares, dtype=right.dtype).T
    start, image = (sum(w * part for w, part in zip(weights, parts, strict=True)) for parts in (solutions, images))
    return np.asarray(start), np.asarray(image)
