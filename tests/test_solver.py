"""Conjugate gradients: stopping, freezing, restarting."""

import numpy as np
import pytest
from hard import hard
from solving import SolveInterrupted, SolverOptions

from binfeat._engine import vectors
from binfeat._rows.vectors import column_dots
from binfeat.linear import cg

pytestmark = pytest.mark.engine


def spd(rng, n=40, condition=1e3):
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    return Q * np.geomspace(1, condition, n) @ Q.T


class System:
    """Equations with an explicit matrix."""

    def __init__(self, A, B, diagonal=None):
        self.A, self.right = A, B
        self.diagonal = np.diag(A)[:, None].copy() if diagonal is None else diagonal

    def apply(self, W, targets):
        return self.A @ W

    def intercept(self, W):
        return np.zeros(W.shape[1])


def solve(A, B, *, diagonal=None, alpha=None, tol=1e-10, max_iter=500, **start):
    alpha = np.zeros(B.shape[1]) if alpha is None else alpha
    return cg.solve(System(A, B, diagonal), alpha, SolverOptions(tol=tol, max_iter=max_iter), **start)


def test_solution_and_history(rng):
    A, B = spd(rng), rng.normal(size=(40, 3))
    result = solve(A, B)
    np.testing.assert_allclose(result.solution, np.linalg.solve(A, B), rtol=1e-6)
    assert result.status == "converged"
    assert result.advice == ""
    assert result.residuals.shape == (result.n_iter + 1, 3)
    np.testing.assert_allclose(result.residuals[0], 1.0)
    assert (result.residuals[-1] <= 1e-10).all()


def test_true_residual_is_refreshed(rng):
    """After more than 50 iterations, the reported residual belongs to the solution."""
    A, B = spd(rng, 120, condition=1e6), rng.normal(size=(120, 1))
    result = solve(A, B, tol=1e-9)
    assert result.n_iter > 50
    inverse = 1 / np.diag(A)[:, None]
    residual = B - A @ result.solution
    true = np.sqrt((residual**2 * inverse).sum() / (B**2 * inverse).sum())
    assert true == pytest.approx(result.residuals[-1, 0], rel=0.1)


def test_finished_columns_are_frozen(rng):
    A = spd(rng)
    easy = A @ np.eye(40)[0]
    B = np.stack([np.zeros(40), easy, rng.normal(size=40)], axis=1)
    widths = []

    class Watched(System):
        def apply(self, W, targets):
            widths.append(W.shape[1])
            np.testing.assert_array_equal(targets, np.arange(3)[-W.shape[1] :])
            return super().apply(W, targets)

    result = cg.solve(Watched(A, B), np.zeros(3), SolverOptions(tol=1e-8, max_iter=500))
    assert widths[0] == 2
    assert widths == sorted(widths, reverse=True)
    np.testing.assert_allclose(result.solution, np.linalg.solve(A, B), atol=1e-6)


def classes(rng, sizes=(12, 9, 8)):
    """Return a system, and right-hand sides that sum to 0."""
    Q, labels = rng.normal(size=(sum(sizes), 20)), np.repeat(np.arange(len(sizes)), sizes)
    Y = np.where(labels[:, np.newaxis] == np.arange(len(sizes)), 1.0, -1.0)
    return Q.T @ Q, Q.T @ (Y - Y.sum(axis=1).mean() / len(sizes))


class Counted(System):
    """Equations that record the multiplied targets."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.seen = []

    def apply(self, W, targets):
        self.seen.append(list(targets))
        return super().apply(W, targets)


@pytest.mark.parametrize("start", [None, 3.0])
@pytest.mark.parametrize("tol", [1e-2, 1e-9])
def test_a_class_follows_from_the_others(rng, tol, start):
    """It needs no products, and is solved to the same tolerance; one of the large classes is derived."""
    A, B = classes(rng)
    A = A + np.eye(20)
    system, inverse = Counted(A, B), 1 / np.diag(A)[:, np.newaxis]
    start = None if start is None else start * rng.normal(size=B.shape)
    result = cg.solve(system, np.zeros(3), SolverOptions(tol=tol, max_iter=500), start=start)
    assert result.status == "converged"
    begun = start is not None  # with a product of all columns
    together = system.seen[begun]
    (left_out,) = {0, 1, 2} - set(together)
    assert all(targets == [left_out] or set(targets) <= set(together) for targets in system.seen[begun:])
    sizes = np.sqrt((B**2 * inverse).sum(axis=0))
    assert sizes[left_out] >= 0.9 * sizes.max()
    norms = np.sqrt(((B - A @ result.solution) ** 2 * inverse).sum(axis=0) / (B**2 * inverse).sum(axis=0))
    assert (norms <= 1.001 * tol).all()
    np.testing.assert_allclose(norms, result.residuals[-1], rtol=1e-3, atol=1e-12)


def test_a_class_that_follows_is_never_missing(rng):
    """Also if a solve ends early, with at most the reported residual."""
    A, B = classes(rng)
    A = A + np.eye(20)
    seen = []
    result = cg.solve(System(A, B), np.zeros(3), SolverOptions(tol=1e-9, max_iter=2, callback=seen.append))
    assert result.status == "max_iter"
    np.testing.assert_allclose(result.solution.sum(axis=1), 0, atol=1e-12)
    assert (np.abs(result.solution).max(axis=0) > 0).all()
    inverse = 1 / np.diag(A)
    true = np.sqrt(((B - A @ result.solution) ** 2).T @ inverse / ((B**2).T @ inverse))
    assert (true <= 1.001 * result.residuals[-1]).all()
    assert seen[0] is seen[1]


@pytest.mark.parametrize("alpha", [np.zeros(3), np.array([1.0, 1.0, 2.0])])
def test_only_columns_that_sum_to_zero_in_one_system_follow(rng, alpha):
    A, B = classes(rng)
    if not alpha.any():
        B[0, 0] += 1e-3
    system = Counted(A + np.eye(20), B)
    cg.solve(system, alpha, SolverOptions(tol=1e-6, max_iter=500))
    assert system.seen[0] == [0, 1, 2]


def test_columns_with_their_own_systems(rng):
    A, B = spd(rng), rng.normal(size=(40, 2))
    shifts = np.array([0.5, 50.0])
    result = solve(A, B, alpha=shifts, max_iter=300)
    for k, shift in enumerate(shifts):
        np.testing.assert_allclose(result.solution[:, k], np.linalg.solve(A + shift * np.eye(40), B[:, k]), rtol=1e-6)


def test_start(rng):
    A, B = spd(rng), rng.normal(size=(40, 2))
    exact = np.linalg.solve(A, B)
    assert len(solve(A, B, start=exact).residuals) == 1
    near = solve(A, B, start=exact + 1e-6 * rng.normal(size=(40, 2)))
    assert near.n_iter < solve(A, B).n_iter
    np.testing.assert_allclose(near.solution, exact, rtol=1e-6)
    zero = solve(A, np.zeros((40, 1)), start=np.ones((40, 1)))
    np.testing.assert_array_equal(zero.solution, 0)


def test_statuses(rng):
    A, B = spd(rng), rng.normal(size=(40, 1))
    assert solve(A, B, max_iter=3).status == "max_iter"
    assert "max_iter" in solve(A, B, max_iter=3).advice
    broken = solve(-A, B, diagonal=np.ones((40, 1)))
    assert broken.status == "breakdown"
    np.testing.assert_array_equal(broken.solution, 0)


@pytest.mark.parametrize("dtype", [np.float64, *hard(np.float32)])
def test_iterations_beyond_the_precision_do_no_harm(rng, dtype):
    """The recursive residual falls without limit, so directions must begin anew when the true one replaces it."""
    Q, B = rng.normal(size=(60, 40)).astype(dtype), rng.normal(size=(40, 2)).astype(dtype)
    A = Q.T @ Q + np.eye(40, dtype=dtype)

    def residual(result):
        return np.linalg.norm(B.astype(float) - A.astype(float) @ result.solution) / np.linalg.norm(B)

    first = solve(A, B, tol=0, max_iter=49)
    for max_iter in (51, 60, 120, 1000):
        more = solve(A, B, tol=0, max_iter=max_iter)
        assert residual(more) <= max(1.1 * residual(first), 50 * np.finfo(dtype).eps)
    assert more.status == "breakdown"
    assert more.n_iter < 1000


def test_zero_of_the_diagonal_leaves_its_unknown(rng):
    A, B = np.diag([2.0, 0.0, 4.0]), np.array([[1.0], [0.0], [1.0]])
    np.testing.assert_allclose(solve(A, B).solution.ravel(), [0.5, 0.0, 0.25])


def test_reduction_and_start_image(rng):
    Q = rng.normal(size=(30, 30))
    A, B = Q @ Q.T + np.eye(30), rng.normal(size=(30, 1))
    calls = []

    class Watched(System):
        def apply(self, W, targets):
            calls.append(W.shape)
            return super().apply(W, targets)

    system, start = Watched(A, B), rng.normal(size=(30, 1))
    options = SolverOptions(tol=0, max_iter=500)
    rough = cg.solve(system, np.zeros(1), options, reduction=0.1, start=start)
    assert rough.residuals[-1] <= 0.1 * rough.residuals[0] < rough.residuals[-2] * 1.0001
    before = len(calls)
    known = cg.solve(system, np.zeros(1), options, reduction=0.1, start=start, start_image=A @ start)
    assert len(calls) - before == known.n_iter == rough.n_iter


def test_interrupted_solve_carries_its_result(rng):
    def stop(state):
        if state.n_iter == 3:
            raise KeyboardInterrupt

    A, B = spd(rng), rng.normal(size=(40, 1))
    with pytest.raises(SolveInterrupted) as raised:
        cg.solve(System(A, B), np.zeros(1), SolverOptions(tol=1e-10, callback=stop))
    result = raised.value.result
    assert (result.status, result.n_iter) == ("interrupted", 3)
    np.testing.assert_array_equal(result.solution, solve(A, B, max_iter=3).solution)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vector_kernels(rng, dtype):
    n = 2 * vectors.BLOCK + 101
    a, b, x, r = (rng.normal(size=(2, n)).astype(dtype) for _ in range(4))
    rtol = 1e-10
    targets, partial = np.arange(2), np.empty((2, 3))
    np.testing.assert_allclose(column_dots(a.T, b.T), (a.astype(float) * b).sum(axis=1), rtol=rtol, atol=1e-9)
    for inverse in (rng.random((1, n)).astype(dtype), rng.random((2, n)).astype(dtype)):
        step, shift = np.array([0.5, -0.25]), np.array([0.5, 2.0])
        solution, residual, direction = x.copy(), r.copy(), a.copy()
        vectors.curvature(a, b, shift, partial)
        expected = (a.astype(float) * (b + shift[:, None] * a)).sum(axis=1)
        np.testing.assert_allclose(partial.sum(axis=1), expected, rtol=1e-6, atol=1e-6)
        vectors.advance(step, shift, targets, direction, b, inverse, solution, residual, partial)
        tolerance = {"rtol": 1e-5, "atol": 1e-5} if dtype == np.float32 else {"rtol": rtol, "atol": 1e-12}
        step, shift = step[:, None], shift[:, None]
        np.testing.assert_allclose(solution, x + step * a, **tolerance)
        np.testing.assert_allclose(residual, r - step * (b + shift * a), **tolerance)
        expected = (residual.astype(float) ** 2 * inverse).sum(axis=1)
        np.testing.assert_allclose(partial.sum(axis=1), expected, rtol=1e-6)
        vectors.partial_squares(residual, inverse, partial)
        np.testing.assert_allclose(partial.sum(axis=1), expected, rtol=1e-6)
        vectors.redirect(step[:, 0], targets, residual, inverse, direction)
        np.testing.assert_allclose(direction, inverse * residual + step * a, **tolerance)
        vectors.center(np.array([1.0, 2.0]), inverse, direction)
        np.testing.assert_allclose(direction, (inverse * residual + step * a - [[1], [2]]) * inverse, **tolerance)


def test_vectors_of_some_targets(rng):
    """Only the vectors of the active target change."""
    n = 50
    a, b, x, r = (rng.normal(size=(3, n)) for _ in range(4))
    inverse, targets, step, partial = rng.random((3, n)), np.array([2]), np.array([0.5]), np.empty((1, 1))
    solution, residual, direction = x.copy(), r.copy(), a[:1].copy()
    vectors.advance(step, np.zeros(1), targets, direction, b[:1], inverse, solution, residual, partial)
    np.testing.assert_array_equal(solution[:2], x[:2])
    np.testing.assert_allclose(solution[2], x[2] + 0.5 * a[0])
    np.testing.assert_allclose(partial[0, 0], (residual[2] ** 2 * inverse[2]).sum())
    vectors.redirect(step, targets, residual, inverse, direction)
    np.testing.assert_allclose(direction[0], inverse[2] * residual[2] + 0.5 * a[0])
