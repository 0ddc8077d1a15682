"""Arbitrary arguments of all public names: the slow twin's result, or an error that names the cause.

A long run: ``BINFEAT_EXAMPLES=4000 pytest tests/test_fuzz*.py``.
"""

import re
import warnings

import naive
import numpy as np
import pytest
import tables
from hard import easy, hard
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from outcomes import OF_A_TABLE, nothing_but, of_parameter, outcome
from tables import LABELS, ROWS

import binfeat
from binfeat import kernels

KERNELS = {"laplacian": kernels.Laplacian(), "hat": kernels.Hat(), "gamma_pitch_8": kernels.GammaPitch(8)}
FEWER, FEWEST = (settings(max_examples=max(n, settings().max_examples // each)) for n, each in ((8, 10), (2, 50)))


def assert_same_codes(Z, X, law, gamma, seed, n_grids):
    expected, sizes = naive.codes(X, law, gamma, n_grids, seed)
    np.testing.assert_array_equal(Z.codes, expected)
    np.testing.assert_array_equal(np.diff(Z.offsets), sizes)


SETTINGS = st.fixed_dictionaries(
    {
        "law": st.sampled_from(sorted(KERNELS)),
        "seed": st.integers(0, 2**70),
        "n_grids": st.integers(1, 4),
        "gamma": st.sampled_from([1e-300, 1e-3, 0.1, 1.0, 1e5, 1e300]),
    }
)


def binning_of(law, seed, n_grids, gamma, **others):
    return binfeat.RandomBinning(
        kernel=KERNELS[law], gamma=gamma, n_grids=n_grids, random_state=seed, output="codes", **others
    )


@given(tables.containers(min_rows=1, min_inputs=1), SETTINGS)
def test_binning_against_the_twin(both, own):
    table, X = both
    with nothing_but("Can't check dok sparse matrix"):
        binning = binning_of(**own)
        Z = binning.fit_transform(table)
        again = binning.transform(table)
    np.testing.assert_array_equal(again.codes, Z.codes)
    own["gamma"] = np.full(X.shape[1], own["gamma"])
    assert_same_codes(Z, X.astype(np.float64), **own)


@given(tables.arrays(min_rows=1, min_inputs=1, dtypes=["f8", "f4"], finite=False), SETTINGS)
def test_binning_of_missing_and_infinite_values(X, own):
    Z = outcome(lambda: binning_of(**own).fit_transform(X))
    assert (Z is None) == bool(np.isinf(X).any())
    if Z is not None:
        own["gamma"] = np.full(X.shape[1], own["gamma"])
        assert_same_codes(Z, X.astype(np.float64), **own)


@given(
    tables.arrays(min_rows=1, max_rows=8, min_inputs=2, max_inputs=2, dtypes=["f8"], finite=False),
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.sampled_from([None, 40]),
)
def test_batches_are_the_whole(X, cuts, n_features):
    assume(not np.isinf(X).any())
    parts = [part for part in np.split(X, np.unique(np.minimum(np.cumsum(cuts), len(X)))) if len(part)]
    options = {"gamma": 0.3, "n_grids": 3, "n_features": n_features, "random_state": 1, "output": "codes"}
    with nothing_but():
        whole = binfeat.RandomBinning(**options).fit(X)
        binning = binfeat.RandomBinning(**options)
        for part in parts:
            binning.partial_fit(part)
        codes = [np.concatenate([own.transform(part).codes for part in parts], axis=1) for own in (whole, binning)]
    np.testing.assert_array_equal(codes[0], whole.transform(X).codes)
    for ours, theirs in zip(*codes, strict=True):
        assert naive.same_partition(ours, theirs)


@given(tables.containers(min_rows=1, min_inputs=1), SETTINGS, st.integers(8, 300))
def test_hashed_binning_against_the_twin(both, own, n_features):
    table, X = both
    with nothing_but("Can't check dok sparse matrix"):
        Z = binfeat.transform(
            table,
            kernel=KERNELS[own["law"]],
            gamma=own["gamma"],
            n_grids=own["n_grids"],
            n_features=n_features,
            random_state=own["seed"],
        )
    n_slots = n_features // own["n_grids"]
    gamma = np.full(X.shape[1], own["gamma"])
    rows = naive.cells(X.astype(np.float64), own["law"], gamma, own["n_grids"], own["seed"])
    for p, cells in enumerate(rows):
        parameters = naive.grid(own["law"], gamma, own["seed"], p)
        columns = [((naive.hashed(row, parameters) >> 32) * n_slots >> 32) + p * n_slots for row in cells]
        np.testing.assert_array_equal(Z.indices.reshape(Z.shape[0], -1)[:, p], columns)


@given(
    tables.containers(min_rows=1, min_inputs=1, dtypes=["f8", "f4", ">f8", "i4", "?"]),
    st.sampled_from(["rbf", "laplacian", "cauchy"]),
    st.sampled_from(["pair", "offset"]),
    st.sampled_from(["iid", "orthogonal", "qmc", "fastfood"]),
    st.sampled_from([1e-300, 1e-3, 1.0, 1e5]),
)
def test_fourier_against_its_frequencies(both, kernel, phase, sampler, gamma):
    table, X = both
    assume(sampler not in ("orthogonal", "fastfood") or kernel == "rbf")
    fourier = binfeat.RandomFourier(
        kernel=kernel, gamma=gamma, n_components=6, phase=phase, sampler=sampler, random_state=0
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Can't check dok sparse matrix")
        Z = outcome(lambda: fourier.fit_transform(table))
    if Z is None:
        assert (np.abs(X.astype(np.float64)) > 1e3).any()
        return
    assert Z.shape == (X.shape[0], 6)
    assert np.isfinite(Z).all()
    assert (np.abs(Z) <= np.sqrt(2 / (3 if phase == "pair" else 6)) * (1 + 1e-6)).all()
    if phase == "pair":
        np.testing.assert_allclose((Z.astype(np.float64) ** 2).sum(axis=1), 1, rtol=1e-5)


MAPS = {
    "RandomBinning": lambda X: binfeat.RandomBinning(random_state=0).fit(X).transform(X),
    "RandomBinning, hashed": lambda X: binfeat.RandomBinning(n_grids=9, n_features=99, random_state=0).fit_transform(X),
    "partial_fit": lambda X: binfeat.RandomBinning(gamma=1.0, random_state=0).partial_fit(X).partial_fit(X),
    "transform": lambda X: binfeat.transform(X, n_grids=3),
    "RandomFourier": lambda X: binfeat.RandomFourier(n_components=4, random_state=0).fit_transform(X),
    "RandomFeatureUnion": lambda X: binfeat.RandomFeatureUnion(
        [("bins", binfeat.RandomBinning(gamma=1.0)), ("waves", binfeat.RandomFourier(n_components=4, gamma=1.0))]
    ).fit_transform(X),
}


@pytest.mark.parametrize("name", MAPS)
@given(tables.wild_tables())
def test_maps_take_or_refuse_anything(name, table):
    Z = outcome(lambda: MAPS[name](table))
    assert Z is None or not hasattr(Z, "shape") or Z.shape[0] > 0


@pytest.mark.parametrize("model", [binfeat.CGRidge(), binfeat.CGRidgeClassifier()], ids=lambda own: type(own).__name__)
@given(table=tables.wild_tables(), y=tables.wild_tables(), weight=st.sampled_from(tables.NASTY))
def test_ridge_models_take_or_refuse_anything(model, table, y, weight):
    fitted = outcome(lambda: model.fit(table, y, sample_weight=weight))
    if fitted is not None:
        assert np.isfinite(fitted.coef_).all()


@given(tables.arrays(min_rows=2, min_inputs=1), st.data())
def test_ridge_of_targets_of_any_size(X, data):
    sizes = st.sampled_from([0.0, 1.0, -1e-300, 1e20, -1e60, 1e99, 1e300])
    y = np.array(data.draw(st.lists(sizes, min_size=len(X), max_size=len(X))))
    fitted = outcome(lambda: binfeat.CGRidge().fit(X, y))
    if fitted is not None:
        assert np.isfinite(fitted.coef_).all()


@given(
    tables.containers(min_rows=2, min_inputs=1, dtypes=["f8", "f4", ">f8", "i2", "?"]),
    st.data(),
    st.sampled_from([1e-6, 1.0, 1e6]),
    st.booleans(),
)
def test_ridge_against_dense_least_squares(both, data, alpha, fit_intercept):
    table, X = both
    X = X.astype(np.float64)
    assume(np.abs(X).max() < 1e3)
    bounded = st.floats(-10, 10, width=16)
    y = np.array(data.draw(st.lists(bounded, min_size=len(X), max_size=len(X))))
    weights = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.5, 1, 3]), min_size=len(X), max_size=len(X))))
    assume(weights.any())
    model = binfeat.CGRidge(alpha=alpha, fit_intercept=fit_intercept, tol=1e-12, max_iter=2000)
    with nothing_but("Can't check dok sparse matrix"):
        predicted = model.fit(table, y, sample_weight=weights).predict(table)
    coef, intercept = naive.ridge(X, y, alpha, weights, fit_intercept)
    expected = X @ coef[0] + intercept[0]

    def objective(values, w):
        return (weights * (y - values) ** 2).sum() + alpha * (w**2).sum()

    best = objective(expected, coef[0])
    own = model.coef_.astype(float)
    if model.coef_.dtype == np.float32 and alpha < 1e-6 * (X**2).sum():
        own = 0 * own  # rounding of the Gram matrix along nearly constant inputs does not affect predictions
    assert objective(predicted, own) <= best + 1e-3 * (1e-3 + best)


@given(st.data())
def test_bin_matrix_takes_or_refuses_anything(data):
    n_grids, n_rows = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 6))
    dtype = data.draw(st.sampled_from([np.uint16, np.uint32, np.int64, np.float64]))
    most = data.draw(st.sampled_from([2, 5, 2**16 - 1]))
    codes = np.array(
        data.draw(st.lists(st.integers(0, most), min_size=n_grids * n_rows, max_size=n_grids * n_rows)), dtype
    ).reshape(n_grids, n_rows)
    offsets = data.draw(
        st.lists(st.sampled_from([0, 0, 3, 6, 9, 2**33, -1]), min_size=0, max_size=4) | st.sampled_from(tables.NASTY)
    )
    Z = outcome(lambda: binfeat.BinMatrix(codes, offsets), re.compile("codes|offsets"))
    if Z is None or Z.shape[1] > 100:
        return
    dense = np.zeros(Z.shape)
    none = np.iinfo(dtype).max
    for p in range(n_grids):
        for i in np.flatnonzero(codes[p] != none):
            dense[i, offsets[p] + codes[p, i]] = 1 / np.sqrt(n_grids)
    np.testing.assert_allclose(Z.tocsr().toarray(), dense)
    W = np.arange(2.0 * Z.shape[1]).reshape(-1, 2)
    V = np.arange(2.0 * n_rows).reshape(-1, 2)
    np.testing.assert_allclose(Z @ W, dense @ W)
    np.testing.assert_allclose(Z.T @ V, dense.T @ V)


PARAMETRISED = {
    "RandomBinning": binfeat.RandomBinning(n_grids=4, random_state=0),
    "RandomBinning, hashed": binfeat.RandomBinning(n_grids=4, n_features=64, random_state=0),
    "RandomFourier": binfeat.RandomFourier(n_components=4, random_state=0),
    "CGRidge": binfeat.CGRidge(),
    "CGRidge, alphas": binfeat.CGRidge(alphas=[0.1, 1.0]),
    "CGRidgeClassifier": binfeat.CGRidgeClassifier(),
    "CGRidgeClassifier, hinge": binfeat.CGRidgeClassifier(loss="squared_hinge"),
    "OutlierDetector": binfeat.OutlierDetector(n_grids=4, random_state=0),
}


OF_PARAMETERS = [(name, own) for name, made in PARAMETRISED.items() for own in made.get_params(deep=False)]
SECOND = {  # settings of an estimator above, and the parameters that use other code then
    "RandomBinning, hashed": {"n_features", "random_state"},
    "CGRidge, alphas": {"alphas", "cv"},
    "CGRidgeClassifier, hinge": {"loss", "max_iter"},
}


@pytest.mark.parametrize(
    ("name", "parameter"),
    easy(OF_PARAMETERS, *(own for own in OF_PARAMETERS if own[1] in SECOND.get(own[0], {own[1]}))),
)
def test_parameters_of_any_kind(name, parameter):
    for value in tables.NASTY:
        model = PARAMETRISED[name].__class__(**{**PARAMETRISED[name].get_params(deep=False), parameter: value})
        fitted = outcome(lambda m=model: m.fit(ROWS, LABELS), of_parameter(parameter))
        if fitted is not None:
            outcome(lambda m=fitted: getattr(m, "transform", getattr(m, "predict", None))(ROWS), "large values|memory")


@pytest.mark.parametrize("parameter", ["kernel", "n_grids", "n_features", "dtype", *hard("gamma", "random_state")])
def test_parameters_of_transform(parameter):
    for value in tables.NASTY:
        outcome(lambda v=value: binfeat.transform(ROWS, **{parameter: v}), parameter)


@pytest.mark.parametrize("call", [kernels.GammaPitch, kernels.Matern, kernels.Product, kernels.Spectral])
def test_parameters_of_kernels(call):
    for value in tables.NASTY:
        made = outcome(lambda v=value: call(v), "shape|nu|profile|sampler")
        if made is not None:
            binning = binfeat.RandomBinning(kernel=made, gamma=1.0, n_grids=3)
            outcome(lambda own=binning: own.fit(ROWS), "kernel|frequencies|shape|nu")


@pytest.fixture
def small_searches(limits):
    limits(sample_grids=(5, 20), n_fourier=64)


MACHINES = {
    "KernelMachineRegressor": binfeat.KernelMachineRegressor,
    "KernelMachineClassifier": binfeat.KernelMachineClassifier,
}
FEW = {"features": "binning", "solver_params": {"n_grids": 5}, "kernel": "laplacian", "random_state": 0}


@pytest.mark.parametrize("features", ["binning", "exact"])
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.usefixtures("small_searches")
@given(table=tables.wild_tables(), data=st.data())
@FEWER
def test_models_take_or_refuse_anything(name, features, table, data):
    rows = (
        len(table)
        if hasattr(table, "__len__") and not hasattr(table, "shape")
        else (*getattr(table, "shape", ()), 2)[0]
    )
    y = data.draw(st.sampled_from([np.arange(rows) % 2, np.arange(rows) * 1.5, ["a"] * rows, None]))
    model = MACHINES[name](**{"gamma": "scale", "alpha": 0.1, **FEW, "features": features})
    fitted = outcome(lambda: model.fit(table, y))
    if fitted is not None:
        assert len(outcome(lambda: fitted.predict(table))) == rows


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("parameter", sorted(binfeat.KernelMachineClassifier().get_params()))
@pytest.mark.usefixtures("small_searches")
@given(value=st.sampled_from(tables.NASTY), features=st.sampled_from(["binning", "exact"]))
@FEWEST
def test_parameters_of_models(name, parameter, value, features):
    kind = MACHINES[name]
    if parameter not in kind().get_params():
        return
    model = kind(**{"gamma": "scale", "alpha": 0.1, **FEW, "features": features, parameter: value})
    outcome(lambda: model.fit(ROWS, LABELS), of_parameter(parameter))


LEARN = ["kernel", "categorical_features", "sample_weight", "max_steps", "max_rows"]


@pytest.mark.parametrize("parameter", [*LEARN, "n_jobs", "random_state"])
@given(value=st.sampled_from(tables.NASTY))
@FEWEST
def test_parameters_of_learn_gamma(parameter, value):
    options = {"max_steps": 2, "random_state": 0, parameter: value}
    outcome(lambda: binfeat.learn_gamma(ROWS, LABELS, **options), of_parameter(parameter))


@given(tables.wild_tables(), tables.wild_tables())
@FEWER
def test_learn_gamma_takes_or_refuses_anything(table, y):
    learned = outcome(lambda: binfeat.learn_gamma(table, y, max_steps=2, random_state=0))
    assert learned is None or np.isfinite(learned.gamma).all()


@given(table=tables.wild_tables(), y=tables.wild_tables(), block_rows=st.sampled_from([1, 2, 5, 0, -1, 1.5, None, "a"]))
def test_sources_take_or_refuse_anything(table, y, block_rows):
    def fit():
        source = binfeat.blocks(table, y, block_rows=block_rows)
        return binfeat.RandomBinning(gamma=1.0, n_grids=3, random_state=0).fit(source)

    outcome(fit, re.compile(OF_A_TABLE.pattern + "|block_rows|[Bb]lock|source"))
