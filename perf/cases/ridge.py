"""CGRidge on codes of Forest Cover: products, default stopping rule, classes, paths, squared hinge, memory."""

from functools import partial

import numpy as np
from sklearn.linear_model import RidgeClassifier
from sklearn.svm import LinearSVC

from binfeat import CGRidgeClassifier, RandomBinning
from binfeat._engine.simd import FOUR
from binfeat._rows.rows import ProcessRows
from binfeat._rows.vectors import column_dots
from binfeat.linear import cg
from binfeat.linear.normal_equations import NormalEquations
from binfeat.linear.result import SolverOptions
from perf.data import forest_cover_for
from perf.floors import look_up, over_floor, rates
from perf.measure import interleave, peak_memory, stopwatch
from perf.record import Row
from perf.suite import guarded

ALPHA = 0.1
ALPHAS = np.geomspace(10, 1e-3, 20)  # with the default stopping rule
CONVERGED = 1e-4  # residual of the reference solutions
QUICK_ROWS = 15_000
HINGE_ROWS = 100_000


def run(quick):
    Z, labels, Z_test, labels_test, row = _features(QUICK_ROWS if quick else None)
    yield row
    y, y_test = labels == 2, labels_test == 2
    yield Row("bytes per non-zero", Z.codes.nbytes / Z.codes.size, reach=("<=", 4), unit="bytes")
    yield from guarded("products", _products, Z, quick)
    yield from guarded("default fit", _stopping, Z, y, Z_test, y_test)
    yield from guarded("7 classes", _classes, Z, labels, y, quick)
    yield from guarded("20 alphas", _path, Z, y)
    yield from guarded("squared hinge", _squared_hinge, Z, y)
    yield from guarded("peak memory", _memory, Z, quick)


def _features(n_rows):
    """Return codes and labels of the first 90 % of the rows, and of the rest, and a row that names the table."""
    X, gamma, labels, row = forest_cover_for(n_rows)
    n = int(0.9 * len(X))
    binning = RandomBinning(gamma=gamma, n_grids=50, output="codes", random_state=0)
    Z = binning.fit_transform(X[:n])
    return Z, labels[:n], binning.transform(X[n:]), labels[n:], row


def _products(Z, quick):
    csr, rng = Z.tocsr(), np.random.default_rng(0)
    for k, reach in ((1, 2), (8, 4)):
        W, V = (np.asfortranarray(rng.normal(size=(n, k))) for n in reversed(Z.shape))
        rows, columns = (np.zeros((n, k), order="F") for n in Z.shape)
        calls = {
            "ours": stopwatch(lambda W=W, V=V: (Z @ W, Z.T @ V)),
            "SciPy": stopwatch(lambda W=W, V=V: (csr @ W, csr.T @ V)),
            "given memory": stopwatch(partial(_into_given_memory, Z, W, V, rows, columns)),
        }
        times = interleave(calls, 3 if quick else 7)
        what = f"both products, {k} columns, float64"
        yield Row(f"{what} / SciPy", times["ours"], times["SciPy"], (">=", reach))
        yield over_floor(f"{what}, into given memory", times["given memory"], _floor(Z, k, rates(quick)))


def _into_given_memory(Z, W, V, rows, columns):
    """Compute both products as the solver does."""
    Z._matmat_into(W, rows)
    Z._rmatmat_into(V, columns)


def _floor(Z, n_columns, known):
    """Return floors: codes are read once for four columns, and for the remaining two or one, with adjacent values."""
    widths = [FOUR] * (n_columns // FOUR) + [2] * (n_columns % FOUR // 2) + [1] * (n_columns % 2)
    bins_of_grid = Z.shape[1] / len(Z.codes)

    def look_ups(kind):
        return Z.codes.size * sum(look_up(kind, width * bins_of_grid, known) for width in widths)

    read = 2 * len(widths) * Z.codes.nbytes * known["memory: read"]
    return {"memory read": read, "gathers": look_ups("gather"), "scatters": look_ups("scatter")}


def _stopping(Z, y, Z_test, y_test):
    ours, converged = CGRidgeClassifier(alpha=ALPHA), CGRidgeClassifier(alpha=ALPHA, tol=1e-5, max_iter=1000)
    sparse_cg = RidgeClassifier(alpha=ALPHA, solver="sparse_cg")  # also with its default stopping rule
    csr = Z.tocsr()
    calls = {
        "ours": stopwatch(partial(ours.fit, Z, y)),
        "sparse_cg": stopwatch(partial(sparse_cg.fit, csr, y)),
    }
    times = interleave(calls, {"ours": 5, "sparse_cg": 1})
    errors = [100 * (1 - model.score(Z_test, y_test)) for model in (ours, converged.fit(Z, y))]
    yield Row("default fit / RidgeClassifier(sparse_cg)", times["ours"], times["sparse_cg"], (">=", 15))
    yield Row("default fit, iterations", ours.n_iter_, unit="")
    yield Row("a fit to a residual of 1e-2, iterations", _loose_iterations(Z, y), unit="")
    yield Row("default fit, test error", errors[0], unit="%")
    away = abs(errors[0] - errors[1])
    yield Row("default fit, test error minus the converged error", away, reach=("<=", 0.1), unit="points")
    yield Row("sparse_cg, test error", 100 * (1 - sparse_cg.score(Z_test.tocsr(), y_test)), unit="%")


def _loose_iterations(Z, y):
    return CGRidgeClassifier(alpha=ALPHA, tol=1e-2).fit(Z, y).n_iter_


def _classes(Z, labels, y, quick):
    model = CGRidgeClassifier(alpha=ALPHA)
    calls = {"all": stopwatch(partial(model.fit, Z, labels)), "one": stopwatch(partial(model.fit, Z, y))}
    times = interleave(calls, 2 if quick else 4)
    yield Row("7 classes / 1", times["all"], times["one"], ("<=", 3))


def _path(Z, y):
    Y = np.where(y, 1.0, -1.0)[:, None]
    system = NormalEquations(ProcessRows(Z, Y), True)

    def path(tol):
        return [result.solution for result in system.solve(ALPHAS, SolverOptions(tol=tol, max_iter=1000))]

    def alone():
        return cg.solve(system, ALPHAS[-1:], SolverOptions(max_iter=1000))

    times = interleave({"path": stopwatch(partial(path, None)), "alone": stopwatch(alone)}, 2)
    fixed, converged = np.sum((Y - Y.mean()) ** 2), path(CONVERGED)

    def gap(found, best, alpha):
        return (fixed + _objective(system, found, alpha)) / (fixed + _objective(system, best, alpha)) - 1

    gaps = [gap(*solutions) for solutions in zip(path(None), converged, ALPHAS, strict=True)]
    of_alone = gap(alone().solution, converged[-1], ALPHAS[-1])
    yield Row("20 alphas from 0.001 to 10 / the smallest alone", times["path"], times["alone"], ("<=", 4))
    yield Row("20 alphas, largest relative gap of the objective", max(gaps), reach=("<=", 1e-3), unit="")
    yield Row("the smallest alpha alone, relative gap of the objective", of_alone, unit="")


def _objective(system, W, alpha):
    """Return the ridge objective minus the objective of zero coefficients."""
    quadratic = column_dots(W, system.apply(W, np.arange(1))) + alpha * column_dots(W, W)
    return float((quadratic - 2 * column_dots(W, system.right))[0])


def _squared_hinge(Z, y):
    Z, y = Z[:HINGE_ROWS], np.where(y[:HINGE_ROWS], 1.0, -1.0)
    csr = Z.tocsr()
    theirs = LinearSVC(C=1 / (2 * ALPHA), dual=False, fit_intercept=False, tol=1e-3)
    ours = CGRidgeClassifier(alpha=ALPHA, loss="squared_hinge", fit_intercept=False, tol=1e-4, max_iter=5000)
    calls = {"ours": stopwatch(partial(ours.fit, Z, y)), "LinearSVC": stopwatch(partial(theirs.fit, csr, y))}
    times = interleave(calls, {"ours": 2, "LinearSVC": 1})
    objectives = [
        np.sum(np.maximum(0, 1 - y * (csr @ model.coef_[0])) ** 2) + ALPHA * model.coef_[0] @ model.coef_[0]
        for model in (ours, theirs)
    ]
    what = f"squared hinge, 100,000 rows, objective {objectives[0]:.6g} / LinearSVC, objective {objectives[1]:.6g}"
    yield Row(what, times["ours"], times["LinearSVC"], (">=", 1))


def _memory(Z, quick):
    budget = 1.5 * Z.codes.nbytes + 6 * 8 * Z.shape[1]
    peak = peak_memory(_prepare_memory, QUICK_ROWS if quick else None)
    whole = peak and (peak + Z.codes.nbytes) / 1e6
    yield Row("codes and peak of a fit / 1.5 codes + 6 coefficients", whole, budget / 1e6, ("<=", 1), "MB")


def _prepare_memory(n_rows):
    Z, labels, *_ = _features(n_rows)
    CGRidgeClassifier(alpha=ALPHA).fit(Z[:1000], labels[:1000] == 2)
    return partial(CGRidgeClassifier(alpha=ALPHA, max_iter=5, tol=0).fit, Z, labels == 2)
