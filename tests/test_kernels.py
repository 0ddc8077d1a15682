"""Exact values and pitch laws of the kernels."""

import numpy as np
import pytest
from scipy import special, stats
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from binfeat import kernels

BINNING = {
    "laplacian": kernels.Laplacian(),
    "hat": kernels.Hat(),
    "gamma pitch 1.5": kernels.GammaPitch(1.5),
    "gamma pitch 2": kernels.GammaPitch(2),
    "gamma pitch 8": kernels.GammaPitch(8),
    "gamma pitch inf": kernels.GammaPitch(np.inf),
    "rational": kernels.Product(lambda t: 1 / (1 + t)),
    "kinked": kernels.Product(lambda t: np.maximum(0, 1 - t) / 2 + np.maximum(0, 1 - t / 3) / 2),
    "exponential": kernels.Product(lambda t: np.exp(-t)),
}


@pytest.mark.parametrize("gamma", [0.3, [0.1, 0.0, 2.0]])
def test_laplacian_and_rbf_against_sklearn(rng, gamma):
    X, Y = rng.normal(size=(5, 3)), rng.normal(size=(7, 3))
    gamma_each = np.broadcast_to(gamma, 3)
    expected = laplacian_kernel(X * gamma_each, Y * gamma_each, gamma=1.0)
    np.testing.assert_allclose(kernels.Laplacian()(X, Y, gamma=gamma), expected, rtol=1e-13)
    root = np.sqrt(gamma_each)
    np.testing.assert_allclose(kernels.RBF()(X, Y, gamma=gamma), rbf_kernel(X * root, Y * root, gamma=1.0), rtol=1e-12)


def test_one_argument_means_both(rng):
    X = rng.normal(size=(5, 3))
    np.testing.assert_array_equal(kernels.Hat()(X), kernels.Hat()(X, X))


def test_special_shapes(rng):
    t = np.linspace(0, 5, 50)
    np.testing.assert_allclose(kernels.GammaPitch(2).profile(t), np.exp(-t), rtol=1e-12)
    np.testing.assert_allclose(kernels.GammaPitch(np.inf).profile(t), np.maximum(0, 1 - t / 2))
    np.testing.assert_allclose(kernels.GammaPitch(1e6).profile(t), np.maximum(0, 1 - t / 2), atol=1e-3)


@pytest.mark.parametrize("name", BINNING)
def test_pitch_law_gives_the_profile(name):
    """``k(t) = E[max(0, 1 - t / pitch)]``, by the midpoint rule over the law's quantiles."""
    kernel = BINNING[name]
    pitch = kernel.pitch_quantile((np.arange(200_000) + 0.5) / 200_000)
    for t in [0.01, 0.3, 1.0, 2.5]:
        value = np.maximum(0, 1 - t / pitch).mean()
        assert value == pytest.approx(kernel.profile(np.array([t]))[0], abs=1e-5)


def test_quantiles_against_scipy():
    u = np.concatenate([[1e-15, 1e-9, 1 - 1e-9, 1 - 1e-15], np.linspace(0.001, 0.999, 999)])
    np.testing.assert_allclose(kernels.Laplacian().pitch_quantile(u), special.gammaincinv(2, u), rtol=1e-7)
    np.testing.assert_allclose(kernels.Laplacian().pitch_quantile(u[4:]), stats.gamma(2).ppf(u[4:]), rtol=1e-12)
    np.testing.assert_allclose(kernels.GammaPitch(5).pitch_quantile(u), stats.gamma(5, scale=0.4).ppf(u), rtol=1e-10)
    np.testing.assert_allclose(BINNING["exponential"].pitch_quantile(u[4:]), stats.gamma(2).ppf(u[4:]), rtol=1e-6)


@pytest.mark.parametrize("shape", [1, 0.5, -3, np.nan])
def test_gamma_pitch_refuses_shapes(shape):
    with pytest.raises(ValueError, match="shape must be a number above 1"):
        kernels.GammaPitch(shape)


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (lambda t: np.exp(-(t**2)), "must not fall"),
        (lambda t: np.cos(t), "must not fall"),
        (lambda t: 0.5 * np.exp(-t), r"profile\(0\) = 1"),
        (lambda t: 1.0, r"profile\(0\) = 1"),
        (lambda t: np.ones_like(t), "must rise from 0 to 1"),
        (lambda t: 0.5 + 0.5 * np.exp(-t), "must rise from 0 to 1"),
        (lambda t: np.where(t > 2, np.nan, np.exp(-t)), "must not fall"),
    ],
)
def test_product_refuses_profiles(profile, message):
    with pytest.raises(ValueError, match=message):
        kernels.Product(profile)


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="same number of inputs"):
        kernels.Laplacian()(np.ones((2, 3)), np.ones((2, 4)))


def test_names_and_refusals():
    assert kernels.binning_kernel("hat") == kernels.Hat()
    for rbf in ("rbf", kernels.RBF()):
        with pytest.raises(ValueError, match=r"concave near 0.*Use kernel='laplacian'"):
            kernels.binning_kernel(rbf)
    for wrong in ("gauss", 3, None):
        with pytest.raises(ValueError, match="kernel must be 'laplacian', 'hat'"):
            kernels.binning_kernel(wrong)
