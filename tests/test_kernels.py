"""Exact values, pitch laws and spectral laws of the kernels."""

import pickle
import re

import naive
import numpy as np
import pytest
from hard import easy, hard
from scipy import special, stats
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from binfeat import RandomBinning, kernels, transform
from binfeat.kernels import lookup

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
    "skip": kernels.Skip(kernels.GammaPitch(8), 0.25),
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


@pytest.mark.parametrize("name", easy(BINNING, *(name for name in BINNING if name not in ("rational", "exponential"))))
def test_pitch_law_gives_the_profile(name):
    """``k(t) = E[max(0, 1 - t / pitch)]``, by the midpoint rule over quantiles of the law."""
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
    ("kernel", "share", "message"),
    [
        (kernels.Laplacian(), 1.0, "share from 0 to below 1, got Laplacian.. and 1.0"),
        (kernels.Laplacian(), -0.1, "share from 0 to below 1"),
        (kernels.Laplacian(), np.nan, "share from 0 to below 1"),
        ("laplacian", 0.5, "requires a kernel object"),
        (kernels.RBF(), 0.5, "cannot be approximated by random binning"),
    ],
)
def test_skip_refuses(kernel, share, message):
    with pytest.raises(ValueError, match=message):
        kernels.Skip(kernel, share)


def test_grids_do_not_skip_categories():
    X, options = [[0.0], [1.0]], {"gamma": 3.0, "n_grids": 2000, "categorical_features": [0]}
    Z = transform(X, kernel=kernels.Skip(kernels.Laplacian(), 0.9), **options)
    assert (Z[0] @ Z[1].T).toarray()[0, 0] == pytest.approx(np.exp(-3), abs=0.02)


def test_skip_of_nothing_is_the_kernel(rng):
    u = rng.random(100)
    skip = kernels.Skip(kernels.Laplacian(), 0.0)
    np.testing.assert_array_equal(skip.pitch_quantile(u), kernels.Laplacian().pitch_quantile(u))


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (lambda t: np.exp(-(t**2)), "must be finite and must not decrease"),
        (lambda t: np.cos(t), "must be finite and must not decrease"),
        (lambda t: 0.5 * np.exp(-t), r"profile\(0\) = 1"),
        (lambda t: 1.0, r"profile\(0\) = 1"),
        (lambda t: np.ones_like(t), "must increase from 0 to 1"),
        (lambda t: 0.5 + 0.5 * np.exp(-t), "must increase from 0 to 1"),
        (lambda t: np.where(t > 2, np.nan, np.exp(-t)), "must be finite and must not decrease"),
    ],
)
def test_product_refuses_profiles(profile, message):
    with pytest.raises(ValueError, match=message):
        kernels.Product(profile)


@pytest.mark.parametrize("profile", [kernels.Hat(), kernels.RBF(), kernels.Hat, "hat"])
def test_product_requires_a_function(profile):
    with pytest.raises(TypeError, match="profile must be a function of one array of distances, not a kernel, got"):
        kernels.Product(profile)


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="same number of inputs"):
        kernels.Laplacian()(np.ones((2, 3)), np.ones((2, 4)))


def test_words_for_gamma_are_those_that_are_taken():
    X = np.ones((2, 3))
    with pytest.raises(TypeError, match="gamma must be a number or one number per input; got 'scale'"):
        kernels.Laplacian()(X, gamma="scale")
    with pytest.raises(
        TypeError, match="gamma must be a number, one number per input, 'scale', or 'learn'; got 'auto'"
    ):
        RandomBinning(gamma="auto").fit(X)


@pytest.mark.parametrize("gamma", [0.3, [0.1, 0.0, 2.0]])
def test_cauchy_pair_by_pair(rng, gamma):
    X, Y = rng.normal(size=(5, 3)), rng.normal(size=(7, 3))
    gamma_each = np.broadcast_to(gamma, 3)
    expected = [[np.prod([1 / (1 + (g * (a - b)) ** 2) for g, a, b in zip(gamma_each, x, y)]) for y in Y] for x in X]
    np.testing.assert_allclose(kernels.Cauchy()(X, Y, gamma=gamma), expected, rtol=1e-13)


@pytest.mark.parametrize("gamma", [0.3, [0.1, 0.0, 2.0]])
@pytest.mark.parametrize("nu", [0.3, 0.5, 1, 1.5, 2.5, 7.2, np.inf])
def test_matern_against_sklearn(rng, nu, gamma):
    X, Y = rng.normal(size=(5, 3)), rng.normal(size=(7, 3))
    root = np.sqrt(2 * np.broadcast_to(gamma, 3))
    expected = Matern(length_scale=1.0, nu=nu)(X * root, Y * root)
    np.testing.assert_allclose(kernels.Matern(nu)(X, Y, gamma=gamma), expected, rtol=1e-11)
    if np.isscalar(gamma):  # the meaning of gamma: 1 / (2 length_scale^2)
        expected = Matern(length_scale=1 / np.sqrt(2 * gamma), nu=nu)(X, Y)
        np.testing.assert_allclose(kernels.Matern(nu)(X, Y, gamma=gamma), expected, rtol=1e-11)


@pytest.mark.parametrize("nu", [0.2, 29.99, 30.0, 300.0, *hard(2.0, 12.5, 45.0, 1e5)])
def test_matern_against_its_mixture_of_gaussians(nu):
    s = np.array([1e-3, 0.05, 0.7, 3.0, 12.0])
    np.testing.assert_allclose(kernels.Matern(nu).profile(s), [naive.matern(each, nu) for each in s], rtol=1e-8)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("nu", [1e-8, 0.01, 0.5, 1, 5, 29.9, 30, 1e3, 1e8, 1e15, 1e300, np.inf])
def test_matern_at_the_ends(nu):
    """Values decrease from 1 to 0 over all possible distances, without NaN or warning."""
    s = np.concatenate([[0.0], np.logspace(-300, 300, 2401), [np.inf]])
    value = kernels.Matern(nu).profile(s)
    assert value[0] == 1
    assert value[-1] == 0
    assert (np.diff(value) <= 1e-12 * value[1:]).all()
    assert ((value >= 0) & (value <= 1)).all()


def test_matern_goes_to_the_rbf():
    s = np.linspace(0, 20, 200)
    for nu in (1e3, 1e6, 1e12):
        np.testing.assert_allclose(kernels.Matern(nu).profile(s), np.exp(-s), atol=1 / nu + 1e-14)
    np.testing.assert_array_equal(kernels.Matern(np.inf).profile(s), kernels.RBF().profile(s))
    u = np.random.default_rng(0).uniform(size=(50, 3))
    np.testing.assert_array_equal(kernels.Matern(np.inf).frequencies(u), kernels.RBF().frequencies(u))
    np.testing.assert_array_equal(kernels.Matern(np.inf).radius(u[:, 0], 3), kernels.RBF().radius(u[:, 0], 3))
    for nu in (1e12, 1e300):
        np.testing.assert_allclose(kernels.Matern(nu).radius(u[:, 0], 3), kernels.RBF().radius(u[:, 0], 3), rtol=1e-9)


def test_spectral_quantiles_against_scipy():
    tails = [2.0**-53, 1e-15, 1e-9, 1 - 1e-9, 1 - 1e-12]
    u = np.concatenate([tails, np.linspace(0.001, 0.999, 999)])
    for kernel, law in [
        (kernels.RBF(), stats.norm),
        (kernels.Laplacian(), stats.cauchy),
        (kernels.Cauchy(), stats.laplace),
    ]:
        np.testing.assert_allclose(kernel.frequencies(u[:, None])[:, 0], law.ppf(u), rtol=1e-9, atol=1e-15)
    # SciPy's Cauchy quantiles lose their tail; ours keep it: 1 / (pi u).
    assert kernels.Laplacian().frequencies(np.array([1 - 2.0**-53]))[0] == pytest.approx(2.0**53 / np.pi, rel=1e-14)


@pytest.mark.parametrize("n_inputs", [1, 2, 7, 100])
def test_radii_against_scipy(n_inputs):
    u = np.concatenate([[1e-12, 1e-6, 1 - 1e-6], np.linspace(0.001, 0.999, 99)])
    np.testing.assert_allclose(kernels.RBF().radius(u, n_inputs), stats.chi(n_inputs).ppf(u), rtol=1e-9)
    low = u < 0.5
    for nu in (0.5, 1.5, 8.0, 200.0):  # |w|^2 / n_inputs is a ratio of mean squares
        law, ratio = stats.f(n_inputs, 2 * nu), kernels.Matern(nu).radius(u, n_inputs) ** 2 / n_inputs
        np.testing.assert_allclose(law.cdf(ratio[low]), u[low], rtol=1e-7)
        np.testing.assert_allclose(law.sf(ratio[~low]), 1 - u[~low], rtol=1e-7)


def test_matern_frequencies_are_students():
    """In one dimension, the law is Student's t with 2 nu degrees of freedom, by the midpoint rule over the scale."""
    scale = (np.arange(4000) + 0.5) / 4000
    for nu in (0.5, 2.0, 20.0):
        factor = kernels.Matern(nu).frequencies(np.column_stack([scale, np.full(4000, special.ndtr(1.0))]))[:, 0]
        assert (np.diff(factor) >= 0).all()
        for w in (0.3, 1.0, 4.0):
            assert special.ndtr(w / factor).mean() == pytest.approx(stats.t(2 * nu).cdf(w), abs=1e-4)


@pytest.mark.parametrize("nu", [1e-8, 1e-3, 0.05])
@pytest.mark.filterwarnings("error")
def test_heaviest_tails_stay_finite(nu):
    u = np.concatenate([[2.0**-54, 0.5], 1 - 0.5 ** np.arange(1, 54)])
    kernel = kernels.Matern(nu)
    for w in (kernel.frequencies(np.column_stack([u, u])), kernel.radius(u, 5)):
        assert np.isfinite(w.astype(np.float32)).all()


def test_hats_spectral_quantile():
    """It inverts the integral of the density, also near its zeros at multiples of 2 pi."""
    w = np.concatenate([[1e-9, 0.1, 1.0, 5.0, 40.3, 200.1], 2 * np.pi * np.array([1, 2, 9]), [6.28, 6.2831853]])
    u = 0.5 + np.array([naive.oscillating_integral(each) for each in w])
    flat = 1 - np.cos(w) < 1e-4
    got = kernels.Hat().frequencies(u[:, None])[:, 0]
    np.testing.assert_allclose(got[~flat], w[~flat], rtol=1e-8, atol=1e-14)
    np.testing.assert_allclose(got[flat], w[flat], rtol=2e-4)  # the cube root of the rounding of u

    def distribution(w):
        return 0.5 + (special.sici(w)[0] - 2 * np.sin(w / 2) ** 2 / w) / np.pi

    u = np.concatenate([np.linspace(0.0005, 0.9995, 9998), 1 - np.logspace(-15, -3, 100), u])
    np.testing.assert_allclose(distribution(kernels.Hat().frequencies(u)), u, rtol=0, atol=3e-15)
    np.testing.assert_array_equal(kernels.Hat().frequencies(np.array([0.5])), 0)
    np.testing.assert_array_equal(
        kernels.Hat().frequencies(np.array([0.25])), -kernels.Hat().frequencies(np.array([0.75]))
    )


@pytest.mark.parametrize(
    "kernel", [kernels.RBF(), kernels.Matern(0.7), kernels.Matern(1e12), kernels.Laplacian(), kernels.Cauchy()]
)
def test_laws_are_finite_on_all_uniforms(kernel):
    u = np.array([2.0**-54, 0.5, 1 - 2.0**-53])
    assert np.isfinite(kernel.frequencies(np.column_stack([u] * kernel.n_uniforms(2)))).all()


def test_frequency_scale():
    gamma = np.array([0.5, 0.0, 2.0])
    np.testing.assert_array_equal(kernels.Cauchy().frequency_scale(gamma), gamma)
    np.testing.assert_array_equal(kernels.Matern(1.5).frequency_scale(gamma), [1, 0, 2])


@pytest.mark.parametrize("nu", [0, -0.5, np.nan, -np.inf])
def test_matern_refuses_values(nu):
    with pytest.raises(ValueError, match="nu must be a number above 0"):
        kernels.Matern(nu)


@pytest.mark.parametrize("nu", ["1.5", None, [1.5]])
def test_matern_refuses_types(nu):
    with pytest.raises(TypeError, match="nu must be a number above 0"):
        kernels.Matern(nu)


def test_spectral_has_no_exact_value():
    kernel = kernels.Spectral(sphere)
    with pytest.raises(TypeError, match=r"no exact value.*Estimate it with Z = RandomFourier"):
        kernel(np.ones((2, 3)))
    with pytest.raises(TypeError, match="sampler must be a callable"):
        kernels.Spectral("iid")


def sphere(n_frequencies, n_inputs, rng):
    w = rng.normal(size=(n_frequencies, n_inputs))
    return w / np.linalg.norm(w, axis=1, keepdims=True)


@pytest.mark.parametrize("kernel", [kernels.Matern(1.5), kernels.Spectral(sphere), kernels.Cauchy()])
def test_kernels_are_values(kernel):
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert hash(kernel) == hash(pickle.loads(pickle.dumps(kernel)))
    assert kernels.Matern(1.5) != kernels.Matern(2.5)


def test_the_table_says_what_the_classes_say():
    rule, _, _, *rows, _ = kernels.__doc__.strip().splitlines()[-13:]
    columns = [(m.start(), m.end()) for m in re.finditer("=+", rule)]
    table = {row[slice(*columns[0])].strip("` "): [row[a:b].strip() for a, b in columns[2:]] for row in rows}
    assert sorted(table) == sorted(kernels.__all__)
    for name, (binning, samplers) in table.items():
        kernel = getattr(kernels, name)
        assert (binning == "yes") == hasattr(kernel, "pitch_quantile")
        assert samplers == (", ".join(kernel.samplers) or "no")


def test_names_and_refusals():
    assert lookup.binning_kernel("hat") == kernels.Hat()
    for rbf in ("rbf", kernels.RBF(), "cauchy", kernels.Cauchy()):
        with pytest.raises(ValueError, match=r"concave near 0.*Use kernel='laplacian'.*RandomFourier"):
            lookup.binning_kernel(rbf)
    with pytest.raises(ValueError, match=r"kernel=Matern\(nu=1.5\) cannot.*not a product over inputs.*RandomFourier"):
        lookup.binning_kernel(kernels.Matern(1.5))
    with pytest.raises(ValueError, match=r"cannot be .* random binning: only the sampler.*Use kernel='laplacian'"):
        lookup.binning_kernel(kernels.Spectral(sphere))
    for wrong in ("gauss", 3, None, kernels.Laplacian):
        with pytest.raises(ValueError, match="kernel must be 'laplacian', 'hat'"):
            lookup.binning_kernel(wrong)


def test_fourier_names_and_refusals():
    for name, kernel in {
        "rbf": kernels.RBF(),
        "laplacian": kernels.Laplacian(),
        "cauchy": kernels.Cauchy(),
        "hat": kernels.Hat(),
    }.items():
        assert lookup.fourier_kernel(name) == kernel
    spectral = kernels.Spectral(sphere)
    assert lookup.fourier_kernel(spectral) is spectral
    for kernel in (kernels.GammaPitch(8), kernels.Product(lambda t: np.exp(-t))):
        with pytest.raises(ValueError, match=r"has no known spectral law.*Use RandomBinning.*'laplacian' or 'hat'"):
            lookup.fourier_kernel(kernel)
    for wrong in ("gauss", 3, None, kernels.RBF):
        with pytest.raises(ValueError, match=r"kernel must be 'rbf', 'laplacian', 'cauchy', 'hat', .* Spectral"):
            lookup.fourier_kernel(wrong)


@pytest.mark.parametrize(
    ("kernel", "distance", "gamma", "expected"),
    [
        (kernels.Laplacian(), 1e300, 1e-300, np.exp(-1)),
        (kernels.Hat(), 1e300, 1e-300, 0.0),
        (kernels.RBF(), 1e80, 1e-160, np.exp(-1)),
        (kernels.Matern(0.5), 1e80, 1e-160, np.exp(-np.sqrt(2))),
        (kernels.Laplacian(), 1e308, 0.5, 0.0),
        (kernels.RBF(), 1e308, 0.5, 0.0),
    ],
)
def test_large_distances_and_small_gammas(kernel, distance, gamma, expected):
    other = -distance if distance > 1e307 else 0.0
    assert kernel([[distance]], [[other]], gamma=gamma)[0, 0] == pytest.approx(expected, abs=1e-12)
    assert kernel([[distance, 1.0]], [[0.0, 1.0]], gamma=[0.0, 1.0])[0, 0] == 1.0
