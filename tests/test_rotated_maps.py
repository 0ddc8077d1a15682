"""RandomFourier with a rotation: the kernel of scaled and rotated rows."""

import pickle

import naive
import numpy as np
import pytest
from hard import hard
from scipy import sparse
from sklearn.base import clone

from binfeat import RandomFourier, blocks, kernels

SCALE = np.array([0.5, 0.0, 1.5])
FLAT, TALL = np.array([[1.0, 0.5], [3.0, 3.0], [-0.8, 0.6]]), np.linspace(-1, 1, 12).reshape(3, 4)
CALLERS = kernels.Spectral(lambda n_frequencies, rank, rng: rng.normal(size=(n_frequencies, rank)))


def estimates(X, Y, n_runs=100, **parameters):
    """Return z(x)'z(y) of each pair of rows, for this number of seeds."""
    maps = (RandomFourier(n_components=60, random_state=seed, **parameters).fit(X) for seed in range(n_runs))
    return np.array([np.sum(fourier.transform(X) * fourier.transform(Y), axis=1) for fourier in maps])


def worst_z(runs, exact):
    """Return the largest deviation of the mean over runs, in standard errors."""
    return np.max(np.abs(runs.mean(axis=0) - exact) / (runs.std(axis=0, ddof=1) / np.sqrt(len(runs))))


@pytest.fixture
def pairs(rng):
    X = rng.normal(size=(12, 3))
    return X, X + rng.normal(size=(12, 3)) * np.geomspace(0.05, 2, 12)[:, None]


@pytest.mark.parametrize(
    ("kernel", "sampler", "phase"),
    [
        (kernels.RBF(), "orthogonal", "pair"),
        (kernels.Matern(1.5), "qmc", "offset"),
        (kernels.Laplacian(), "iid", "pair"),
        (CALLERS, "iid", "offset"),
    ],
)
@pytest.mark.parametrize("rotation", [FLAT, *hard(TALL)], ids=["flat", "tall"])
def test_unbiased(pairs, kernel, sampler, phase, rotation):
    parameters = {"kernel": kernel, "sampler": sampler, "phase": phase, "gamma": SCALE**kernel.power}
    runs = estimates(*pairs, **parameters, rotation=rotation)
    known = kernels.RBF() if kernel is CALLERS else kernel
    gamma = 0.5 if kernel is CALLERS else 1.0  # normal frequencies belong to exp(-D^2 / 2)
    mapped = [naive.rotated(rows, SCALE**2, rotation) for rows in pairs]
    assert worst_z(runs, np.diag(known(*mapped, gamma=gamma))) < 4
    assert worst_z(runs, np.diag(known(*mapped, gamma=1.5 * gamma))) > 4
    assert worst_z(runs, np.diag(known(*(rows * SCALE for rows in pairs), gamma=gamma))) > 4


def test_frequencies_are_those_of_the_kernel_mapped_back():
    parameters = {"kernel": "cauchy", "gamma": SCALE, "rotation": FLAT, "n_components": 80, "random_state": 7}
    found = RandomFourier(**parameters).fit(np.eye(3)).random_weights_
    expected = naive.rotated(np.eye(3), SCALE**2, FLAT) @ naive.frequencies("cauchy", 7, 40, 2).T
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_map_of_rows_that_are_rotated_already(rng, dtype):
    """With one gamma for all inputs, for dense rows, CSR, blocks and Dask arrays."""
    da = pytest.importorskip("dask.array")
    from binfeat import distributed

    X = rng.normal(size=(50, 3)).astype(dtype)
    parameters = {"gamma": 0.3, "n_components": 8, "random_state": 0}
    expected = RandomFourier(**parameters).fit_transform(X @ FLAT.astype(dtype))
    fourier = RandomFourier(**parameters, rotation=FLAT.tolist()).fit(X)
    assert fourier.random_weights_.dtype == dtype
    close = {"rtol": 0, "atol": 30 * np.finfo(dtype).eps}
    for rows in (X, sparse.csr_array(X)):
        found = fourier.transform(rows)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, **close)
    streamed = RandomFourier(**parameters, rotation=FLAT).fit_transform(blocks(X, X[:, 0], block_rows=20))
    np.testing.assert_allclose(streamed @ np.eye(8), expected, **close)
    chunked = distributed.RandomFourier(**parameters, rotation=FLAT).fit_transform(da.from_array(X, chunks=(20, 3)))
    np.testing.assert_allclose(chunked.compute(), expected, **close)


def test_none_is_the_identity(rng):
    X = rng.normal(size=(20, 3))
    plain, same = (RandomFourier(rotation=rotation, random_state=0).fit(X) for rotation in (None, np.eye(3)))
    np.testing.assert_array_equal(plain.gamma_, same.gamma_)  # "scale" depends on X only
    np.testing.assert_allclose(plain.random_weights_, same.random_weights_, rtol=1e-14)


def test_clones_and_files(rng):
    sio = pytest.importorskip("skops.io")
    X = rng.normal(size=(20, 3))
    fourier = RandomFourier(rotation=FLAT, random_state=0).fit(X)
    again = clone(fourier).fit(X)
    loaded = sio.loads(sio.dumps(fourier), trusted=["binfeat.RandomFourier"])
    for other in (again, loaded, pickle.loads(pickle.dumps(fourier))):
        np.testing.assert_array_equal(other.transform(X), fourier.transform(X))
    fourier.set_params(rotation=None).fit(X)
    assert not np.allclose(again.random_weights_, fourier.random_weights_)


@pytest.mark.parametrize(
    ("rotation", "options", "error", "message"),
    [
        (np.ones((2, 3)), {}, ValueError, r"rotation must have a row per input, shape \(3, rank\); got shape \(2, 3\)"),
        (np.ones(3), {}, ValueError, r"rotation must have a row per input, shape \(3, rank\); got shape \(3,\)"),
        (np.ones((3, 0)), {}, ValueError, r"rotation must have a row per input, .* got shape \(3, 0\)"),
        ([[1.0], [np.nan], [1.0]], {}, ValueError, "rotation must be finite; it contains NaN or infinity"),
        ([[1.0], [np.inf], [1.0]], {}, ValueError, "rotation must be finite; it contains NaN or infinity"),
        ("learn", {}, TypeError, "rotation must be numbers, got 'learn'"),
        (np.ones((3, 1)) * 1j, {}, TypeError, "rotation must be numbers, got array"),
        (
            FLAT,
            {"sampler": "fastfood"},
            ValueError,
            "sampler='fastfood' does not support rotation. Use another sampler, or rota",
        ),
    ],
)
def test_bad_rotations(rng, rotation, options, error, message):
    fourier = RandomFourier(rotation=rotation, **options)
    with pytest.raises(error, match=message):
        fourier.fit(rng.normal(size=(10, 3)))
    assert not hasattr(fourier, "gamma_")
