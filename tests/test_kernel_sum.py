"""Sums of exact kernels in tiles, compared with sums pair by pair."""

import naive
import numpy as np
import pytest

from binfeat.kernels import Laplacian, Matern
from binfeat.length_scales import kernel_sum, matrices

SHARES, GAMMAS = (0.75, 0.25), (np.array([0.8, 0.0, 0.3]), np.array([0.5, 0.2, 0.4]))
CATEGORICAL = np.array([False, False, True])


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(kernel_sum, "_SIDE", 7)
    monkeypatch.setattr("binfeat._threads._WORTH_THREADS", 1)


@pytest.fixture
def tables(rng):
    return tuple(np.column_stack([rng.normal(size=(n, 2)), rng.integers(0, 3, size=n)]) for n in (20, 15))


def matern(square):
    return (1 + np.sqrt(6 * square)) * np.exp(-np.sqrt(6 * square))


STANDARDIZER = matrices.Standardizer(np.zeros(3), np.ones(3))


def kernel(n_jobs=None):
    of_kernels = [matrices.kernel_matrix(kernel, CATEGORICAL, n_jobs) for kernel in (Matern(1.5), Laplacian())]
    return kernel_sum.KernelValues(of_kernels, SHARES, GAMMAS, n_jobs)


def values(A, B, n_jobs=None):
    first = STANDARDIZER.columns(A)
    return kernel(n_jobs)(first, first if B is A else STANDARDIZER.columns(B))


def expected(A, B):
    radial = naive.kernel_matrix(A, B, GAMMAS[0], matern, categorical={2}, radial=True)
    return 0.75 * radial + 0.25 * naive.kernel_matrix(A, B, GAMMAS[1], lambda t: np.exp(-t), categorical={2})


def test_of_two_tables(tables):
    found = values(*tables)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected(*tables), rtol=2e-5, atol=2e-6)


def test_of_one_table_each_pair_once(tables):
    found = values(tables[0], tables[0])
    np.testing.assert_allclose(found, expected(tables[0], tables[0]), rtol=2e-5, atol=2e-6)
    np.testing.assert_array_equal(found[:7, 7:], found[7:, :7].T)


def test_of_one_table_packed(tables):
    found = kernel().packed(STANDARDIZER.columns(tables[0]))
    whole = values(tables[0], tables[0])
    np.testing.assert_allclose(found.first_rows(len(whole)), whole, atol=0.501 / 65535)


def test_any_number_of_threads(tables):
    np.testing.assert_array_equal(values(*tables, n_jobs=1), values(*tables, n_jobs=2))
