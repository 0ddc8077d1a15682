"""Ridge machines for a whole path of penalties, each started from what the last ones learned."""

import numpy as np

from binfeat._linear import cg

_MOST_KEPT = 3  # earlier solutions whose best combination starts the next solve
_KEPT_BYTES = 2**31  # for them and their images; the last one is kept in any case


def solve_path(system, Y, alphas, *, tol, max_iter, monitor=None):
    """Solve one ridge system for falling penalties.

    The Jacobi preconditioner ties the Krylov space to the penalty, so that nothing of it serves another one
    (on binning features the objective is then off by its own size). Solutions do: the next solve starts from
    the combination of the last three that minimises the new objective, which costs one product; of fewer where
    they would take more than 2 GB.

    Parameters
    ----------
    system : RidgeSystem
    Y : ndarray of shape (n_rows, n_targets)
    alphas : ndarray of shape (n_alphas,)
        Falling.
    tol, max_iter, monitor : as in `cg.solve`, for each penalty

    Yields
    ------
    result : Result
        One for each penalty, in order.
    """
    rhs, diagonal = system.right_side(Y), system.diagonal()
    kept = int(np.clip(_KEPT_BYTES // (2 * rhs.nbytes), 1, _MOST_KEPT))
    every = np.arange(rhs.shape[1])
    solutions: list[np.ndarray] = []
    images: list[np.ndarray] = []
    for alpha in alphas:
        start = start_image = None
        if solutions:
            image = np.empty_like(rhs)
            system.apply(solutions[-1], every, image)
            images = [*images, image][-kept:]
            start, start_image = _best_combination(rhs, solutions, images, alpha)
        result = cg.solve(
            system.apply,
            rhs,
            diagonal,
            np.full(rhs.shape[1], float(alpha)),
            tol=tol,
            max_iter=max_iter,
            start=start,
            start_image=start_image,
            monitor=monitor,
        )
        yield result
        if result.status in ("interrupted", "stopped"):
            return
        solutions = [*solutions, result.solution][-kept:]


def _best_combination(rhs, solutions, images, alpha):
    """Minimiser of the objective among combinations of earlier solutions, for each target, and its image."""
    m, n_targets = len(solutions), rhs.shape[1]
    gram, right = np.empty((n_targets, m, m)), np.empty((n_targets, m))
    for i in range(m):
        right[:, i] = cg.column_dots(solutions[i], rhs)
        for j in range(i + 1):
            both = cg.column_dots(solutions[i], images[j]) + alpha * cg.column_dots(solutions[i], solutions[j])
            gram[:, i, j] = gram[:, j, i] = both
    weights = [np.linalg.lstsq(gram[k], right[k], rcond=1e-12)[0] for k in range(n_targets)]
    weights = np.array(weights, dtype=rhs.dtype).T
    return tuple(sum(w * part for w, part in zip(weights, parts, strict=True)) for parts in (solutions, images))
