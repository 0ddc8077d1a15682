"""Frequencies of all kernels and samplers: unbiased, with the correct law, and lower variance if promised."""

import warnings

import naive
import numpy as np
import pytest
from hard import hard
from scipy import stats
from scipy.stats.qmc import Sobol

from binfeat import kernels
from binfeat.features.fourier.frequencies import draw_frequencies, resolve_sampler
from binfeat.kernels import lookup

KERNELS = [
    kernels.RBF(),
    kernels.Laplacian(),
    kernels.Cauchy(),
    kernels.Hat(),
    kernels.Matern(0.3),
    kernels.Matern(0.5),
    kernels.Matern(2.5),
    kernels.Matern(40),
    kernels.Matern(np.inf),
]
PAIRS = [(kernel, sampler) for kernel in KERNELS for sampler in kernel.samplers if sampler != "fastfood"]
ids = [f"{kernel}-{sampler}" for kernel, sampler in PAIRS]


def estimates(kernel, sampler, differences, gamma, n_frequencies, seeds):
    """Return kernel estimates, (seeds, differences)."""
    n_inputs = differences.shape[1]
    scale = kernel.frequency_scale(np.broadcast_to(gamma, n_inputs))
    return np.array(
        [
            np.cos(differences @ (scale * draw_frequencies(kernel, sampler, n_frequencies, n_inputs, seed)).T).mean(1)
            for seed in seeds
        ]
    )


def assert_unbiased(estimates, exact):
    """Check that estimates are within four standard errors, from the spread over independent seeds."""
    error = estimates.std(axis=0, ddof=1) / np.sqrt(len(estimates))
    assert (np.abs(estimates.mean(axis=0) - exact) <= 4 * error).all()


@pytest.mark.parametrize(("kernel", "sampler"), PAIRS, ids=ids)
def test_unbiased(kernel, sampler):
    """Characteristic functions equal exact kernels; 50 frequencies of 3 inputs have an incomplete block."""
    differences = np.array([[0.1, 0, 0], [0.5, -0.3, 0.2], [1, 0, 0], [0.5, 0.5, -0.5], [2, 1, -1.5], [0, 4, 0]])
    gamma = np.array([0.3, 0.6, 1.2])
    got = estimates(kernel, sampler, differences, gamma, 50, range(50))
    assert_unbiased(got, kernel(differences, np.zeros((1, 3)), gamma=gamma)[:, 0])


@pytest.mark.parametrize("sampler", ["iid", "orthogonal", "qmc"])
def test_one_input(sampler):
    differences = np.array([[0.2], [1.0], [3.0]])
    got = estimates(kernels.Matern(1.5), sampler, differences, 0.5, 20, range(200))
    assert_unbiased(got, kernels.Matern(1.5)(differences, [[0.0]], gamma=0.5)[:, 0])


def differences_at(kernel, n_inputs, rng):
    """Return random differences with kernel values between 0.2 and 0.9."""
    directions = rng.normal(size=(20, n_inputs))
    lengths = np.sqrt(-np.log(np.linspace(0.2, 0.9, 20)))
    return directions / np.linalg.norm(directions, axis=1, keepdims=True) * lengths[:, None]


@pytest.mark.parametrize(
    ("sampler", "n_inputs"),
    [("orthogonal", 4), ("qmc", 2), *hard(("orthogonal", 10), ("orthogonal", 54), ("qmc", 5), ("qmc", 10))],
)
def test_variance_below_iid(rng, sampler, n_inputs):
    """The variance is lower at each of 20 differences, by four standard errors of its estimate."""
    kernel, seeds = kernels.RBF(), np.arange(300)
    differences = differences_at(kernel, n_inputs, rng)
    iid = estimates(kernel, "iid", differences, 1.0, 128, seeds).var(axis=0, ddof=1)
    other = estimates(kernel, sampler, differences, 1.0, 128, seeds + 1000).var(axis=0, ddof=1)
    ratio = other / iid
    error = ratio * np.sqrt(4 / len(seeds))  # standard error of a ratio of two chi-squared variances
    assert (ratio + 4 * error < 1).all()


def test_a_products_law_is_biased_by_even_directions():
    """The Laplacian's frequencies in uniform directions, at L1 distance 1: 0.156 and 0.433 instead of 0.368."""
    differences = np.array([[1, 0, 0, 0, 0], [0.2, 0.2, 0.2, 0.2, 0.2]])
    norms = np.linalg.norm(draw_frequencies(kernels.Laplacian(), "iid", 200_000, 5, 0), axis=1)
    w = draw_frequencies(kernels.RBF(), "orthogonal", 200_000, 5, 1)
    w *= (norms / np.linalg.norm(w, axis=1))[:, None]
    for values, biased in zip(np.cos(differences @ w.T), [0.156, 0.433]):
        assert values.mean() == pytest.approx(biased, abs=4 * values.std() / np.sqrt(len(values)) + 5e-4)
    with pytest.raises(ValueError, match="estimates would be biased"):
        resolve_sampler("orthogonal", kernels.Laplacian(), 5)


@pytest.mark.parametrize(("kernel", "sampler"), PAIRS, ids=ids)
def test_marginal_law(kernel, sampler):
    """Coordinates of the first frequency of 80 seeds follow the samples of the law."""
    first = np.array([draw_frequencies(kernel, sampler, 1, 2, seed)[0] for seed in range(80)])
    law = draw_frequencies(kernel, "iid", 4000, 2, 12345)
    for j in range(2):
        assert stats.ks_2samp(first[:, j], law[:, j]).pvalue > 1e-4


@pytest.mark.parametrize("law", ["rbf", "laplacian", "cauchy"])
def test_iid_is_words_through_quantiles(law):
    got = draw_frequencies(lookup.fourier_kernel(law), "iid", 40, 3, 7)
    np.testing.assert_allclose(got, naive.frequencies(law, 7, 40, 3), rtol=1e-10)


@pytest.mark.parametrize(("kernel", "sampler"), PAIRS, ids=ids)
def test_first_frequencies_do_not_depend_on_their_number(kernel, sampler, monkeypatch):
    many = draw_frequencies(kernel, sampler, 101, 4, 3)
    assert many.shape == (101, 4)
    assert np.isfinite(many).all()
    np.testing.assert_allclose(draw_frequencies(kernel, sampler, 30, 4, 3), many[:30], rtol=1e-12, atol=1e-12)
    monkeypatch.setattr("binfeat.features.fourier.frequencies._CHUNK", 40)  # nor on the number drawn at a time
    np.testing.assert_allclose(draw_frequencies(kernel, sampler, 101, 4, 3), many, rtol=1e-12, atol=1e-12)
    assert not np.isclose(draw_frequencies(kernel, sampler, 101, 4, 4), many).any()


@pytest.mark.parametrize(("n_frequencies", "n_inputs"), [(12, 4), (10, 4), (3, 4), (1, 7), (5, 1), (130, 64)])
def test_blocks_are_orthogonal(n_frequencies, n_inputs):
    w = draw_frequencies(kernels.Matern(1.5), "orthogonal", n_frequencies, n_inputs, 0)
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    for start in range(0, n_frequencies, n_inputs):
        block = w[start : start + n_inputs]
        np.testing.assert_allclose(block @ block.T, np.eye(len(block)), atol=1e-13)


def test_norms_are_independent_of_directions_and_of_one_another():
    """Frequencies in a block have independent norms, with the law of the kernel."""
    w = draw_frequencies(kernels.RBF(), "orthogonal", 3000, 3, 0)
    norms = np.linalg.norm(w, axis=1)
    assert stats.kstest(norms, stats.chi(3).cdf).pvalue > 1e-4
    assert abs(np.corrcoef(norms.reshape(-1, 3), rowvar=False)[np.triu_indices(3, 1)]).max() < 4 / np.sqrt(1000)
    assert stats.kstest(np.abs(w[:, 0]) / norms, stats.uniform.cdf).pvalue > 1e-4  # Archimedes


def test_sobol_never_warns_and_is_even():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (1, 2, 3, 100, 128):
            w = draw_frequencies(kernels.RBF(), "qmc", n, 3, 0)
    cells = np.floor(stats.norm.cdf(w) * 128).astype(int)
    np.testing.assert_array_equal(np.sort(cells, axis=0), np.arange(128)[:, None] + np.zeros((1, 3)))


def test_auto():
    for kernel in KERNELS:
        expected = "orthogonal" if isinstance(kernel, kernels.RBF | kernels.Matern) else "iid"
        assert resolve_sampler("auto", kernel, 3) == expected
        for sampler in kernel.samplers:
            assert resolve_sampler(sampler, kernel, 3) == sampler
    assert resolve_sampler("auto", kernels.Spectral(normal), 3) == "iid"


@pytest.mark.parametrize("sampler", ["sobol", None, 3, ["iid"], np.array(["iid", "qmc"])])
def test_unknown_samplers(sampler):
    with pytest.raises(ValueError, match="sampler must be 'auto', 'iid', 'orthogonal', 'qmc', 'fastfood'; got"):
        resolve_sampler(sampler, kernels.RBF(), 3)


@pytest.mark.parametrize("sampler", ["orthogonal", "fastfood"])
@pytest.mark.parametrize("kernel", [kernels.Laplacian(), kernels.Cauchy(), kernels.Hat()])
def test_even_directions_need_an_isotropic_law(kernel, sampler):
    message = (
        rf"sampler='{sampler}' does not work with {type(kernel).__name__}\(\): .* a product over inputs, .* biased\. "
        r"This kernel works with sampler='auto', 'iid', 'qmc'; this sampler works with kernels\.RBF, kernels\.Matern\."
    )
    with pytest.raises(ValueError, match=message):
        resolve_sampler(sampler, kernel, 3)


@pytest.mark.parametrize("sampler", ["orthogonal", "fastfood", "qmc"])
def test_the_callers_law_is_drawn_by_the_caller(sampler):
    with pytest.raises(ValueError, match=r"the caller's.*sampler='auto', 'iid'; this sampler works with kernels\.RBF"):
        resolve_sampler(sampler, kernels.Spectral(normal), 3)


def test_qmc_has_so_many_dimensions():
    most = Sobol.MAXDIM
    assert resolve_sampler("qmc", kernels.RBF(), most) == "qmc"
    with pytest.raises(
        ValueError, match=rf"{most + 1} dimensions.*at most {most}\. Use .*'iid', 'orthogonal'.*fewer inp"
    ):
        resolve_sampler("qmc", kernels.RBF(), most + 1)
    assert resolve_sampler("qmc", kernels.Matern(1.5), most - 1) == "qmc"
    with pytest.raises(ValueError, match=rf"needs {most + 1} dimensions for {most} inputs and Matern"):
        resolve_sampler("qmc", kernels.Matern(1.5), most)
    with pytest.raises(ValueError, match=r"Use one of sampler='iid', or fewer inputs"):
        resolve_sampler("qmc", kernels.Laplacian(), most + 1)


def normal(n_frequencies, n_inputs, rng):
    return rng.normal(size=(n_frequencies, n_inputs))


def test_spectral_draws_the_callers_law():
    kernel = kernels.Spectral(normal)
    w = draw_frequencies(kernel, "iid", 50, 3, 0)
    np.testing.assert_array_equal(w, draw_frequencies(kernel, "iid", 50, 3, 0))
    assert (w != draw_frequencies(kernel, "iid", 50, 3, 1)).all()
    differences = np.array([[0.5, 0, 0], [1, -0.3, 0.2]])
    gamma = np.array([1.0, 0.5, 2.0])  # multiplies frequencies: exp(-|gamma D|^2 / 2)
    assert_unbiased(
        estimates(kernel, "iid", differences, gamma, 50, range(200)),
        np.exp(-0.5 * ((gamma * differences) ** 2).sum(axis=1)),
    )


def test_spectral_takes_whole_numbers():
    assert (
        draw_frequencies(kernels.Spectral(lambda n, d, rng: np.ones((n, d), int)), "iid", 5, 2, 0).dtype == np.float64
    )


@pytest.mark.parametrize(
    ("sampler", "got"),
    [
        (lambda n, d, rng: rng.normal(size=n), r"shape \(5,\)"),
        (lambda n, d, rng: rng.normal(size=(d, n)), r"shape \(2, 5\)"),
        (lambda n, d, rng: np.full((n, d), np.inf), "values that are not finite"),
        (lambda n, d, rng: np.full((n, d), np.nan), "values that are not finite"),
        (lambda n, d, rng: np.full((n, d), 1j), "dtype complex128"),
        (lambda n, d, rng: np.full((n, d), "1"), "dtype <U1"),
        (lambda n, d, rng: None, r"shape \(\) of dtype object"),
    ],
)
def test_spectral_checks_what_it_gets(sampler, got):
    with pytest.raises(ValueError, match=rf"of shape \(n_frequencies, n_inputs\) = \(5, 2\); got .*{got}"):
        draw_frequencies(kernels.Spectral(sampler), "iid", 5, 2, 0)
