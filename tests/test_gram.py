"""Ridge from the Gram matrix: the same answers as the iterations, and when it is taken."""

import numpy as np
import pytest
from scipy import sparse

from binfeat import CGRidge, CGRidgeClassifier
from binfeat._linear import gram
from binfeat._linear.normal_equations import NormalEquations
from binfeat._linear.path import solve_path
from binfeat._linear.result import SolverOptions
from binfeat._rows.rows import LocalRows
from tests import naive


@pytest.fixture
def table(rng):
    Z = rng.normal(size=(400, 30)) @ rng.normal(size=(30, 30)) + 5
    return Z, np.stack([Z[:, 0] + rng.normal(size=400), np.sin(Z[:, 1])], axis=1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.5, [0.01, 30.0]])
def test_answers_are_those_of_conjugate_gradients(table, rng, monkeypatch, alpha, fit_intercept, weighted):
    Z, Y = table
    weights = rng.random(len(Z)) * (rng.random(len(Z)) > 0.2) if weighted else None
    machine = CGRidge(alpha=alpha, fit_intercept=fit_intercept, tol=1e-12, max_iter=5000)
    exact = machine.fit(Z, Y, sample_weight=weights)
    coef, intercept, n_iter = exact.coef_, exact.intercept_, exact.n_iter_
    assert (exact.solver_, exact.status_, n_iter) == ("gram", "converged", 1)
    other = machine.fit(sparse.csr_array(Z), Y, sample_weight=weights)
    assert other.solver_ == "cg"
    np.testing.assert_allclose(coef, other.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(intercept, other.intercept_, rtol=1e-6, atol=1e-6)
    monkeypatch.setattr(gram, "_BLOCK_BYTES", 8 * 30 * 77)
    in_blocks = machine.fit(Z, Y, sample_weight=weights)
    np.testing.assert_allclose(in_blocks.coef_, coef, rtol=1e-9, atol=1e-12)


def test_features_far_from_zero(table):
    """Centring loses nothing to features whose mean is a million times their spread."""
    Z, Y = table
    near, far = (CGRidge(alpha=0.5).fit(form, Y) for form in (Z, Z + 1e7))
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_systems_of_parts_of_the_rows_add_up(table, rng, fit_intercept):
    (Z, Y), weights = table, rng.random((400, 1))
    weights[60:70] = 0
    rows = LocalRows(Z, Y, weights)
    cuts = map(slice, [0, 50, 51, 60, 70], [50, 51, 60, 70, 400])
    first, *others = (gram.gram_system(rows.take(part), fit_intercept) for part in cuts)
    whole, added = gram.gram_system(rows, fit_intercept), first + sum(others[1:], others[0])
    for name in ("matrix", "right", "means", "target_means", "total"):
        value = getattr(whole, name)
        np.testing.assert_allclose(getattr(added, name), value, rtol=1e-10, atol=1e-12 * np.abs(value).max())


def test_no_penalty_and_dependent_features(table):
    """The shortest of the least squares solutions, with fewer independent features than features."""
    Z, Y = table
    Z = np.hstack([Z, Z[:, :10], np.zeros((len(Z), 2))])
    machine = CGRidge(alpha=0.0).fit(Z, Y)
    assert machine.solver_ == "gram"
    expected = np.linalg.lstsq(Z - Z.mean(axis=0), Y - Y.mean(axis=0), rcond=None)[0].T
    np.testing.assert_allclose(machine.coef_, expected, rtol=1e-5, atol=1e-7)


def test_path_by_either_factorisation(table, monkeypatch):
    Z, Y = table
    system = gram.gram_system(LocalRows(Z, Y), True)
    alphas = [np.full(2, alpha) for alpha in np.geomspace(100, 1e-3, 20)]
    results = list(system.solve(alphas))
    monkeypatch.setattr(gram, "_EIGEN_COST", np.inf)
    for alpha, by_eigen, by_cholesky in zip(alphas, results, system.solve(alphas), strict=True):
        expected = naive.ridge(Z, Y, alpha[0], None, True)[0].T
        np.testing.assert_allclose(by_eigen.solution, expected, rtol=1e-7)
        np.testing.assert_allclose(by_cholesky.solution, expected, rtol=1e-7)
        assert by_eigen.residuals[-1].max() < 1e-10


def test_chosen_penalty_and_classes(table):
    Z, Y = table
    labels = np.digitize(Y[:, 1], [-0.5, 0.5])
    options = {"alphas": np.geomspace(1e-2, 100, 9), "cv": 3, "tol": 1e-10, "max_iter": 5000}
    dense, csr = (CGRidgeClassifier(**options).fit(form, labels) for form in (Z, sparse.csr_array(Z)))
    assert (dense.solver_, csr.solver_) == ("gram", "cg")
    assert dense.alpha_ == csr.alpha_
    np.testing.assert_allclose(dense.path_scores_, csr.path_scores_)
    np.testing.assert_allclose(dense.coef_, csr.coef_, rtol=1e-5, atol=1e-8)


def test_float32_features(table):
    Z, Y = table
    single, double = CGRidge(alpha=0.5).fit(Z.astype(np.float32), Y), CGRidge(alpha=0.5).fit(Z, Y)
    assert single.coef_.dtype == np.float32
    np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-2, atol=1e-3)


def test_route_goes_by_cost(rng):
    def pays(n_rows, n_columns, n_targets=1, n_alphas=1, tol=1e-2):
        Z, Y = (np.broadcast_to(0.0, (n_rows, n)) for n in (n_columns, n_targets))
        return gram.gram_pays(LocalRows(Z, Y), n_alphas, tol)

    assert pays(10**5, 500)
    assert not pays(10**5, 5000)
    assert pays(10**5, 5000, n_targets=10, tol=1e-6)
    assert not pays(100, 5000)
    assert not pays(10**5, 10**4, n_targets=1000)
    # Where (D^2 n + .5 D^3 alphas, 8 D^3 at most) / 20 meets 30 or, for a path, 60 iterations of 2 n D multiplications.
    assert pays(10**5, 1150)
    assert not pays(10**5, 1250)
    assert pays(10**5, 2300, n_alphas=2)
    assert not pays(10**5, 2450, n_alphas=2)
    assert pays(1000, 450, n_alphas=20)
    assert not pays(1000, 600, n_alphas=20)
    assert not gram.gram_pays(LocalRows(sparse.csr_array((10**5, 10)), np.empty((10**5, 1))), 1, 1e-2)
    Z = rng.normal(size=(50, 4))
    assert CGRidge(early_stopping=True, random_state=0).fit(Z, Z[:, 0]).solver_ == "cg"
    assert CGRidgeClassifier(loss="squared_hinge").fit(Z, Z[:, 0] > 0).solver_ == "newton-cg"


def test_path_that_keeps_one_solution(rng):
    """A small memory bound makes a path slower, not different."""
    Z, y = rng.normal(size=(100, 20)), rng.normal(size=(100, 3))
    system, alphas = NormalEquations(LocalRows(Z, y), True), [100.0, 10.0, 1.0, 0.1]
    options = SolverOptions(tol=1e-10, max_iter=500)
    free, bound = (list(solve_path(system, alphas, options, **kept)) for kept in ({}, {"kept_bytes": 0}))
    for a, b in zip(free, bound, strict=True):
        np.testing.assert_allclose(a.solution, b.solution, rtol=1e-6, atol=1e-9)
