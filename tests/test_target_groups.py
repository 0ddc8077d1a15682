"""Ridge models that solve for some targets at a time, to save memory."""

from dataclasses import replace

import numpy as np
import pytest
from hard import each_value_once
from interrupts import interrupted
from solving import ProcessRows, SolveInterrupted, SolverOptions, solve_ridge

from binfeat import CGRidge, CGRidgeClassifier, RandomBinning
from binfeat.linear import normal_equations, target_groups

N_TARGETS = 10
EXACT = SolverOptions(tol=1e-10, max_iter=500, solver="cg")


@pytest.fixture
def table(rng):
    """Return codes of 300 rows, and their targets."""
    X = rng.normal(size=(300, 3))
    Z = RandomBinning(gamma=0.5, n_grids=20, output="codes", random_state=0).fit_transform(X)
    return Z, rng.normal(size=(300, N_TARGETS)) + X[:, :1]


@pytest.fixture
def few_bytes(memory_of):
    """Set the memory to the vectors of five targets, for a number of columns."""
    return lambda n_columns: memory_of(4 * 5 * target_groups.VECTORS * 8 * n_columns)


WEIGHTS = {
    "none": lambda rng: None,
    "of rows": lambda rng: rng.random((300, 1)),
    "of rows and targets": lambda rng: rng.random((300, N_TARGETS)),
}


@pytest.mark.parametrize(
    ("n_together", "fit_intercept", "weights"), each_value_once([10, 4, 1], [True, False], WEIGHTS)
)
def test_groups_give_the_solution_of_all_targets(table, rng, weights, fit_intercept, n_together):
    Z, Y = table
    rows, alphas = ProcessRows(Z, Y, WEIGHTS[weights](rng)), [np.linspace(1, 5, N_TARGETS), 0.5]
    options = replace(EXACT, fit_intercept=fit_intercept)
    together = list(solve_ridge(rows, alphas, options))
    apart = list(solve_ridge(rows, alphas, replace(options, targets_at_a_time=n_together)))
    assert len(apart) == len(together) == 2
    for one, other in zip(apart, together, strict=True):
        np.testing.assert_allclose(one.solution, other.solution, atol=1e-7)
        np.testing.assert_allclose(one.intercept, other.intercept, atol=1e-7)
        assert one.residuals.shape == (one.n_iter + 1, N_TARGETS)
        assert one.residuals[-1].max() <= 1e-10
        assert one.status == "converged"


def test_groups_are_as_large_as_memory_allows(table, memory_of):
    """Four targets at least, because products with codes compute four at a time."""
    rows = ProcessRows(*table)
    of_target = target_groups.VECTORS * 8 * rows.shape[1]
    for n_bytes, most in ((1, 4), (7 * of_target, 4), (8 * of_target, 8), (10 * of_target, 10), (None, 10)):
        memory_of(None if n_bytes is None else 4 * n_bytes)
        assert target_groups.targets_at_a_time(rows) == most


@pytest.mark.parametrize("options", [{}, {"alphas": [1.0, 0.1]}, {"early_stopping": True}, {"max_iter": 3}])
@pytest.mark.filterwarnings("ignore:Conjugate gradients")
def test_ridge_models_solve_for_groups_if_memory_is_short(table, few_bytes, options):
    """Except for early stopping, which needs the score of all targets after each iteration."""
    Z, Y = table
    given = {"alpha": 0.1, "tol": 1e-8, "random_state": 0} | options
    together = CGRidge(**given).fit(Z, Y)
    few_bytes(Z.shape[1])
    apart = CGRidge(**given).fit(Z, Y)
    np.testing.assert_allclose(apart.predict(Z), together.predict(Z), atol=1e-6)
    assert apart.alpha_ == together.alpha_


def test_classes_are_solved_for_in_groups(table, few_bytes):
    Z, Y = table
    labels = Y.argmax(axis=1)
    together = CGRidgeClassifier(tol=1e-8).fit(Z, labels)
    few_bytes(Z.shape[1])
    np.testing.assert_array_equal(CGRidgeClassifier(tol=1e-8).fit(Z, labels).predict(Z), together.predict(Z))


def test_a_callback_stops_all_groups(table):
    Z, Y = table
    seen = []

    def watch(state):
        seen.append(state.solution.copy())
        return len(seen) == 3

    options = replace(EXACT, targets_at_a_time=4, callback=watch)
    (result,) = solve_ridge(ProcessRows(Z, Y), [0.1, 0.01], options)
    assert result.status == "stopped"
    np.testing.assert_array_equal(seen[-1], result.solution[:, :4])
    assert not result.solution[:, 4:].any()
    np.testing.assert_allclose(result.intercept[4:], Y[:, 4:].mean(axis=0))


def test_ctrl_c_keeps_the_groups_so_far(table):
    Z, Y = table
    done = next(solve_ridge(ProcessRows(Z, Y), [0.1], replace(EXACT, targets_at_a_time=4)))
    first = []

    def stop(state):
        first.append(state)
        if state is not first[0]:  # in the second group
            raise KeyboardInterrupt

    options = replace(EXACT, targets_at_a_time=4, callback=stop)
    with pytest.raises(SolveInterrupted) as stopped:
        next(solve_ridge(ProcessRows(Z, Y), [0.1], options))
    kept = stopped.value.result.solution
    np.testing.assert_array_equal(kept[:, :4], done.solution[:, :4])
    assert kept[:, 4:8].any()
    assert not kept[:, 8:].any()


def test_ctrl_c_between_groups_keeps_those_so_far(table):
    Z, Y = table
    options = replace(EXACT, targets_at_a_time=4)
    done = next(solve_ridge(ProcessRows(Z, Y), [0.1], options))
    with interrupted(normal_equations, "_moments", 2), pytest.raises(SolveInterrupted) as stopped:
        next(solve_ridge(ProcessRows(Z, Y), [0.1], options))
    result = stopped.value.result
    assert result.status == "interrupted"
    np.testing.assert_array_equal(result.solution[:, :4], done.solution[:, :4])
    assert not result.solution[:, 4:].any()


@pytest.mark.parametrize("kind", ["start", "path"])
def test_targets_that_are_not_solved_keep_the_intercepts_of_their_start(table, kind):
    Z, Y = table
    rows, seen = ProcessRows(Z, Y + 5), []

    def stop(state):
        seen.append(state)
        return is_last

    is_last = kind == "start"
    options = replace(EXACT, targets_at_a_time=4, callback=stop)
    before = next(solve_ridge(rows, [0.1], replace(EXACT, targets_at_a_time=4)))
    if kind == "start":
        (result,) = solve_ridge(rows, [0.2], options, before)
    else:
        path = solve_ridge(rows, [0.1, 0.01], options)
        next(path)
        is_last = True
        result = next(path)
    assert result.status == "stopped"
    np.testing.assert_array_equal(result.solution[:, 4:], before.solution[:, 4:])
    np.testing.assert_array_equal(result.intercept[4:], before.intercept[4:])
