"""Warnings about features that cannot generalize, are nearly constant, collide or are empty; no other warnings."""

import re
import warnings

import numpy as np
import pytest
from hard import hard
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from binfeat import CGRidgeClassifier, RandomBinning, transform
from binfeat.features.binning.fineness import Fineness, warn_of_collisions

FINE = r"too fine: 500 rows occupy kappa = \d+ bins per grid on average.*Decrease gamma or scale the inputs"
COARSE = r"too coarse: 500 rows occupy kappa = [\d.]+ bins per grid.*nearly constant. Increase gamma or scale"


@pytest.fixture(autouse=True)
def silence_fails():
    """Treat unexpected warnings as errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def fits(**parameters):
    """Yield all ways to compute features of training rows."""
    return {
        "fit": lambda X: RandomBinning(**parameters).fit(X),
        "fit_transform": lambda X: RandomBinning(**parameters).fit_transform(X),
        "partial_fit": lambda X: RandomBinning(**parameters).partial_fit(X),
        "hashed": lambda X: RandomBinning(n_features=2**14, **parameters).fit(X),
        "transform": lambda X: transform(X, **parameters),
        "sparse": lambda X: transform(sparse.csr_array(X), **parameters),
    }


@pytest.mark.parametrize("call", fits())
@pytest.mark.parametrize(("gamma", "message"), [(50.0, FINE), (1e-6, COARSE)])
def test_useless_features_warn(rng, call, gamma, message):
    X = rng.normal(size=(500, 5))
    with pytest.warns(UserWarning, match=message) as seen:
        fits(gamma=gamma, n_grids=4)[call](X)
    assert seen[0].filename == __file__
    fits(gamma=gamma, n_grids=4)[call](X[:100])


@pytest.mark.parametrize("call", fits())
def test_useful_features_do_not_warn(rng, call):
    fits(gamma=0.2, n_grids=8)[call](rng.normal(size=(500, 5)))


@pytest.mark.hard
@pytest.mark.parametrize(("scaled", "least"), [(False, 0.96), *hard((True, 0.93))])
def test_defaults_work_on_digits(scaled, least):
    """Raw and scaled pixels: default features and a default linear model."""
    X, y = load_digits(return_X_y=True)
    Z = transform(StandardScaler().fit_transform(X) if scaled else X)
    assert CGRidgeClassifier().fit(Z[:1200], y[:1200]).score(Z[1200:], y[1200:]) > least - 0.03  # one split
    with pytest.warns(UserWarning, match="too fine"):
        transform(X, gamma=1.0)


def test_sampled_fineness_is_the_fineness_of_all_rows(rng):
    """A sample warns only if more rows would, too."""
    X = rng.normal(size=(5000, 3))
    for gamma in (0.3, 3.0, 30.0, 300.0):
        binning = RandomBinning(gamma=gamma, n_grids=16, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            binning.fit(X)
        of_all = Fineness.of_counts(binning.bin_counts_, 16)
        sampled = Fineness.of_rows(binning._grids, X)
        assert sampled.too_fine == of_all.too_fine
        if of_all.too_fine:
            assert (sampled.n_rows, sampled.kappa) == (of_all.n_rows, of_all.kappa)
        assert sampled.shared == pytest.approx(of_all.shared, rel=0.2, abs=2e-3)


def test_shared_bins_are_the_mean_of_the_kernel(rng):
    X = rng.normal(size=(400, 2))
    exact = np.exp(-0.5 * np.abs(X[:, None] - X).sum(axis=2)).mean()
    shares = [
        Fineness.of_counts(RandomBinning(gamma=0.5, n_grids=50, random_state=seed).fit(X).bin_counts_, 50).shared
        for seed in range(20)
    ]
    assert abs(np.mean(shares) - exact) < 4 * np.std(shares, ddof=1) / np.sqrt(20)


def test_partial_fit_warns_of_all_rows_so_far(rng):
    """Later batches share bins with earlier ones: one warning, at the first batch that is too fine."""
    binning = RandomBinning(gamma=50.0, n_grids=4)
    batches = [rng.normal(size=(200, 5)) for _ in range(3)]
    with pytest.warns(UserWarning, match="too fine: 200 rows"):
        binning.partial_fit(batches[0])
    for batch in batches[1:]:
        binning.partial_fit(batch)
    with pytest.warns(UserWarning, match="too fine: 600 rows"):
        binning.fit(np.concatenate(batches))


def test_a_search_warns_with_one_text(rng):
    """Candidates of a search have the same text, which Python shows once; the final fit has its own."""
    X = rng.normal(size=(600, 5))
    pipeline = make_pipeline(RandomBinning(n_grids=4, random_state=0), CGRidgeClassifier())
    search = GridSearchCV(pipeline, {"randombinning__gamma": [40.0, 50.0, 60.0]}, cv=3)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        search.fit(X, X[:, 0] > 0)
    texts = [str(one.message) for one in seen]
    assert len({text for text in texts if "candidates of this search" in text}) == 1
    assert sum("too fine: 600 rows" in text for text in texts) == 1


def test_rows_far_from_training_warn(rng):
    X = rng.normal(size=(500, 3))
    binning = RandomBinning(n_grids=20, random_state=0).fit(X)
    binning.transform(rng.normal(size=(500, 3)))
    binning.transform(X[:50] + 100)
    with pytest.warns(UserWarning, match=r"100% of the rows share a bin with training rows in fewer than 1 of 10"):
        binning.transform(X + 100)


def test_unseen_shares_are_those_of_csr(rng):
    X = rng.normal(size=(300, 3))
    binning = RandomBinning(n_grids=20, random_state=0).fit(X)
    new = np.concatenate([X[:5], X[:5] + 100, rng.normal(size=(20, 3))])
    shares = binning.unseen_shares(new)
    np.testing.assert_allclose(shares, 1 - np.diff(binning.transform(new).indptr) / 20)
    assert (shares[:5] == 0).all()
    assert (shares[5:10] == 1).all()
    assert not hasattr(RandomBinning(n_features=100), "unseen_shares")


def test_few_columns_warn(rng):
    X = rng.normal(size=(500, 4))
    with pytest.warns(UserWarning, match=r"leaves 64 columns for each of 16,384 grids.*Pass n_features=4,194,304"):
        transform(X[:5], n_grids=2**14)
    transform(X[:5], n_grids=2**14, n_features=2 * 2**21)
    with pytest.warns(UserWarning, match=r"of the 100 hashed columns of a grid are occupied, by an estimated \d+ bins"):
        transform(X, gamma=0.5, n_grids=4, n_features=400)
    with pytest.warns(UserWarning, match="hashed columns of a grid are occupied"):
        RandomBinning(gamma=0.5, n_grids=4, n_features=400, random_state=0).fit_transform(X)


def test_the_recommended_number_of_columns_is_the_smallest_without_a_warning():
    for n_grids in (*range(2, 300), 1000, 10_007, 2**14):
        codes = np.zeros((n_grids, 1), dtype=np.uint16)
        with pytest.warns(UserWarning, match="columns for each of") as seen:
            warn_of_collisions(codes, 2 * np.arange(n_grids + 1))
        wanted = int(re.search(r"Pass n_features=([\d,]+)", str(seen[0].message))[1].replace(",", ""))
        with pytest.warns(UserWarning, match="columns for each of"):
            warn_of_collisions(codes, (wanted // n_grids - 1) * np.arange(n_grids + 1))
        warn_of_collisions(codes, wanted // n_grids * np.arange(n_grids + 1))


def test_kernel_error_is_within_theory_or_warned_of(rng):
    """The root mean squared error of hashed features is at most 1.2 times the error of unhashed ones."""
    X = rng.normal(size=(60, 4))
    pairs = np.triu_indices(60, 1)
    exact = np.exp(-0.2 * np.abs(X[:, None] - X).sum(axis=2))[pairs]
    for n_grids in (2**8, 2**10, 2**12):
        Z = transform(X, gamma=0.2, n_grids=n_grids)
        error = np.sqrt(np.mean((np.asarray((Z @ Z.T).todense())[pairs] - exact) ** 2))
        assert error < 1.2 * np.sqrt(np.mean(exact * (1 - exact)) / n_grids) * 1.25  # pairs share grids
