"""Merged bins of one row: the same ridge model from fewer columns."""

from functools import partial

import naive
import numpy as np
import pytest
from solving import NormalEquations, ProcessRows, SolveInterrupted, SolverOptions, ridge_system, solve_ridge

from binfeat import CGRidge, RandomBinning
from binfeat._rows.products import product, transposed_product
from binfeat.linear import lone_bins, solve

pytestmark = pytest.mark.filterwarnings("ignore:Grids are too")

OPTIONS = SolverOptions(tol=1e-10, max_iter=500)


@pytest.fixture
def merge_from(monkeypatch):
    """Set the number of columns from which bins of one row are merged."""
    return partial(monkeypatch.setattr, lone_bins, "_WORTH_COLUMNS")


@pytest.fixture
def fine(rng, merge_from):
    """Return codes of rows that are mostly alone in their bins, with some unknown bins."""
    merge_from(1)
    X = rng.normal(size=(150, 3))
    binning = RandomBinning(gamma=3.0, n_grids=12, output="codes", random_state=0).fit(X[:140])
    return binning.transform(X[:140])


@pytest.mark.parametrize("n_columns", [1, 3, 6])
def test_merged_columns_are_the_matrix_times_orthonormal_columns(fine, rng, n_columns):
    merged, Z = lone_bins.merge_lone_bins(fine), fine.tocsr().toarray()
    Q = merged.spread(np.eye(merged.shape[1]))
    has_lone = Q.any(axis=0)
    np.testing.assert_allclose(Q.T @ Q, np.diag(has_lone.astype(float)), atol=1e-12)
    np.testing.assert_allclose(Z @ Q @ Q.T, Z, atol=1e-12)
    expected = naive.merged_lone_columns(Z)
    assert has_lone.sum() < expected.shape[1] * 1.2
    np.testing.assert_allclose((Z @ Q) @ (Z @ Q).T, expected @ expected.T, atol=1e-12)
    W, V = rng.normal(size=(merged.shape[1], n_columns)), rng.normal(size=(len(Z), n_columns))
    out, back = np.empty((len(Z), n_columns), order="F"), np.empty((merged.shape[1], n_columns), order="F")
    product(merged, np.asfortranarray(W), out)
    transposed_product(merged, np.asfortranarray(V), back)
    np.testing.assert_allclose(out, Z @ Q @ W, atol=1e-12)
    np.testing.assert_allclose(back, (Z @ Q).T @ V, atol=1e-12)
    wide = rng.normal(size=(Z.shape[1], n_columns))
    np.testing.assert_allclose(merged.merge(wide), Q.T @ wide, atol=1e-12)


@pytest.mark.parametrize("weights", [None, "rows", "targets"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_solutions_are_those_of_all_columns(fine, rng, weights, fit_intercept):
    Y = rng.normal(size=(140, 3))
    weights = {None: None, "rows": rng.random((140, 1)), "targets": rng.random((140, 3))}[weights]
    rows = ProcessRows(fine, Y, weights)
    options = SolverOptions(tol=1e-10, max_iter=500, fit_intercept=fit_intercept)
    assert isinstance(ridge_system(rows, 2, options), solve.MergedEquations)
    alphas = [1.0, np.array([0.3, 0.1, 0.2])]
    expected = NormalEquations(rows, fit_intercept).solve(alphas, options)
    for result, wanted in zip(solve_ridge(rows, alphas, options), expected, strict=True):
        np.testing.assert_allclose(result.solution, wanted.solution, atol=1e-7)
        np.testing.assert_allclose(result.intercept, wanted.intercept, atol=1e-7)
    (again,) = ridge_system(rows, 1, options).solve(alphas[1:], options, result)
    assert again.n_iter < result.n_iter
    np.testing.assert_allclose(again.solution, result.solution, atol=1e-7)


def test_callbacks_and_interrupts_know_all_columns(fine, rng):
    rows, seen = ProcessRows(fine, rng.normal(size=(140, 2))), []

    def stop(state):
        seen.append((state.solution, state.intercept))
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(SolveInterrupted) as raised:
        next(solve_ridge(rows, [0.1], SolverOptions(tol=0, callback=stop)))
    assert raised.value.result.solution.shape == (fine.shape[1], 2)
    np.testing.assert_array_equal(raised.value.result.solution, seen[-1][0])
    np.testing.assert_array_equal(raised.value.result.intercept, seen[-1][1])
    (stopped,) = solve_ridge(rows, [0.1], SolverOptions(tol=0, max_iter=3))
    np.testing.assert_array_equal(stopped.solution, seen[-1][0])


def test_estimators_merge(fine, rng, merge_from):
    y = rng.normal(size=140)
    merged = CGRidge(tol=1e-10, max_iter=500).fit(fine, y)
    merge_from(10**9)
    np.testing.assert_allclose(CGRidge(tol=1e-10, max_iter=500).fit(fine, y).coef_, merged.coef_, atol=1e-7)


def test_some_rows_of_a_matrix(fine, rng):
    """Bins of validation rows only keep the coefficient 0."""
    some = fine[:100]
    Y = rng.normal(size=(100, 1))
    (result,) = solve_ridge(ProcessRows(some, Y), [0.5], OPTIONS)
    (wanted,) = NormalEquations(ProcessRows(some, Y), True).solve([0.5], OPTIONS)
    assert result.solution.shape == (fine.shape[1], 1)
    np.testing.assert_allclose(result.solution, wanted.solution, atol=1e-7)
    np.testing.assert_array_equal(result.solution[~some.tocsr().toarray().any(axis=0)], 0)


def test_columns_stay_as_they_are_where_merging_gains_little(fine, rng, merge_from):
    coarse = RandomBinning(gamma=0.01, n_grids=12, output="codes", random_state=0).fit_transform(
        rng.normal(size=(150, 3))
    )
    assert lone_bins.merge_lone_bins(coarse) is None
    merge_from(fine.shape[1] + 1)
    assert lone_bins.merge_lone_bins(fine) is None
