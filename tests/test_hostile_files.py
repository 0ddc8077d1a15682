"""Files from others: zip bombs, empty files, other classes, damaged parts."""

import copy
import io
import json
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, StandardScaler

import binfeat

sio = pytest.importorskip("skops.io")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X[:, 0] + (X[:, 1] > 0)
LABELS = np.where(Y > 0.3, "yes", "no")
EXACT = {"features": "exact", "gamma": "scale", "alpha": 0.1, "random_state": 0}


@pytest.fixture(scope="module")
def model():
    return binfeat.KernelMachineRegressor(**EXACT).fit(X, Y)


def changed(estimator, change, path):
    """Return a file with a changed description of the estimator."""
    with zipfile.ZipFile(io.BytesIO(sio.dumps(estimator))) as old, zipfile.ZipFile(path, "w") as new:
        for item in old.namelist():
            content = old.read(item)
            if item == "schema.json":
                schema = json.loads(content)
                change(schema)
                content = json.dumps(schema).encode()
            new.writestr(item, content)
    return path


def test_files_that_unpack_to_far_more_than_their_size_are_refused_unread(model, tmp_path, monkeypatch):
    path = tmp_path / "bomb.skops"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for part in range(3):
            packed.writestr(f"{part}.npy", bytes(2**27))
        packed.writestr("schema.json", "{}")
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_, **__: pytest.fail("a part was unpacked"))
    with pytest.raises(ValueError, match=r"Cannot load a model from .*bomb\.skops: it would unpack to 402,653,186"):
        binfeat.load(path)


def test_compressed_models_load(model, tmp_path):
    sio.dump(model, tmp_path / "model.skops", compression=zipfile.ZIP_DEFLATED, compresslevel=9)
    np.testing.assert_array_equal(binfeat.load(tmp_path / "model.skops").predict(X), model.predict(X))


def test_models_larger_than_the_memory_are_refused(model, tmp_path, memory_of):
    sio.dump(model, tmp_path / "model.skops")
    memory_of(1000)
    with pytest.raises(ValueError, match=r"the model .*Load it on a computer with more memory"):
        binfeat.load(tmp_path / "model.skops")


def test_files_without_content_are_refused(model, tmp_path):
    def emptied(schema):
        schema["content"]["content"] = {}

    path = changed(model, emptied, tmp_path / "model.skops")
    with pytest.raises(ValueError, match="is damaged: it should name the version of binfeat that saved it"):
        binfeat.load(path)
    for kind in (type(model), binfeat.RandomBinning, binfeat.CGRidge, binfeat.LabelSpreading):
        state = {"_binfeat_version": "0.1", "_binfeat_format": 4}
        with pytest.raises(ValueError, match=f"This {kind.__name__} is damaged: ValueError: it lacks the parameters"):
            kind.__new__(kind).__setstate__(state)


@pytest.mark.parametrize("number", [-1, 0, True, False, 1.0, None, "4"])
def test_formats_that_are_no_number_from_1_are_refused(model, number):
    state = copy.deepcopy(model).__getstate__() | {"_binfeat_format": number}
    with pytest.raises(ValueError, match=f"is damaged: its file format should be a number from 1, got {number!r}"):
        model.__class__.__new__(model.__class__).__setstate__(state)


def test_files_whose_class_is_another_one_are_refused(model, tmp_path):
    def renamed(schema):
        schema["__class__"] = "KernelMachineClassifier"

    path = changed(model, renamed, tmp_path / "model.skops")
    with pytest.raises(ValueError, match=r"This KernelMachineClassifier is damaged: .*lacks the parameters"):
        binfeat.load(path)
    binning = binfeat.RandomBinning(n_grids=3).fit(X)
    ridge = binfeat.CGRidge().fit(X, Y)
    graph = {"features": binfeat.RandomBinning(n_grids=4), "gamma": 0.3}
    clusters = binfeat.SpectralClustering(2, **graph).fit(X)
    others = (
        (ridge, binfeat.CGRidgeClassifier),
        (binfeat.CGRidgeClassifier().fit(X, LABELS), binfeat.CGRidge),
        (binning, binfeat.RandomFourier),
        (clusters, binfeat.SpectralEmbedding),
        (binfeat.KernelMachineClassifier(**EXACT).fit(X, LABELS), binfeat.KernelMachineRegressor),
    )
    for other, kind in others:
        state = {**kind().get_params(deep=False), **other.__getstate__()}
        with pytest.raises(ValueError, match=f"This {kind.__name__} is damaged: "):
            kind.__new__(kind).__setstate__(state)


class Shift(BaseEstimator):
    """A transformer of the caller."""

    def fit(self, Y, y=None):
        self.by_ = Y.mean(axis=0)
        return self

    def transform(self, Y):
        return Y - self.by_

    def inverse_transform(self, Z):
        return Z + self.by_


def test_only_listed_transformers_of_targets_are_loaded(tmp_path):
    path = tmp_path / "model.skops"
    for transformer in (StandardScaler(), FunctionTransformer(np.arcsinh, np.sinh)):
        own = binfeat.KernelMachineRegressor(**EXACT, target_transform=transformer).fit(X, Y)
        sio.dump(own, path)
        np.testing.assert_array_equal(binfeat.load(path).predict(X), own.predict(X))
    discrete = KBinsDiscretizer(5, encode="ordinal", quantile_method="averaged_inverted_cdf")
    sio.dump(binfeat.KernelMachineRegressor(**EXACT, target_transform=discrete), path)
    with pytest.raises(ValueError, match=r"target_transform in .*model\.skops is a KBinsDiscretizer; only .*Scaler"):
        binfeat.load(path)


def test_transformers_of_callers_are_checked_in_any_file():
    own = binfeat.KernelMachineRegressor(**EXACT, target_transform=Shift()).fit(X, Y)
    loaded = copy.deepcopy(own)
    np.testing.assert_array_equal(loaded.predict(X), own.predict(X))
    immense = r"should transform the mean back to numbers of at most 1e\+100"
    for by, fault in (
        (np.array([np.nan]), immense),
        (np.array([1e300]), immense),
        (np.zeros((3, 4)), "cannot transform targets back"),
        (sparse.csr_array(np.ones((1, 1))), "by_ should not be a sparse matrix"),
        (np.ma.masked_array([1.0], mask=[True]), "by_ should be a plain array, got MaskedArray"),
    ):
        state = copy.deepcopy(own.__getstate__())
        state["target_transformer_"].by_ = by
        with pytest.raises(ValueError, match=f"This KernelMachineRegressor is damaged: .*{fault}"):
            type(own).__new__(type(own)).__setstate__(state)


def test_damaged_random_generators_are_refused():
    generator = np.random.RandomState(3)
    model = binfeat.KernelMachineRegressor(random_state=generator)
    assert copy.deepcopy(model).random_state.randint(10) == np.random.RandomState(3).randint(10)
    for place in (2**30, -5, 625):
        state = model.__getstate__() | {"random_state": _at(place)}
        with pytest.raises(ValueError, match=f"is damaged: .*random_state is a random generator with pos={place}"):
            type(model).__new__(type(model)).__setstate__(state)


def _at(place):
    generator = np.random.RandomState(3)
    state = generator.get_state(legacy=False)
    state["state"]["pos"] = place
    generator.set_state(state)
    return generator


def test_hashed_bins_of_unequal_widths_are_refused():
    binning = binfeat.RandomBinning(n_grids=3, n_features=64, gamma=0.5).fit(X)
    assert copy.deepcopy(binning).transform(X).shape == (40, 64)  # 21, 21 and 22 columns
    for offsets in ([0, 21, 21, 21], [0, 21, 43, 64], [0, 20, 42, 64], [0, 0, 0, 0]):
        state = binning.__getstate__() | {"bin_offsets_": np.array(offsets)}
        with pytest.raises(ValueError, match=r"is damaged: .*bin_offsets_ should give each grid at least 2 columns"):
            type(binning).__new__(type(binning)).__setstate__(state)
    with pytest.raises(ValueError, match=r"is damaged: .*_hashed should be a value of type bool"):
        type(binning).__new__(type(binning)).__setstate__(binning.__getstate__() | {"_hashed": 1})
    with pytest.raises(ValueError, match="is damaged: KeyError"):
        type(binning).__new__(type(binning)).__setstate__(binning.__getstate__() | {"_hashed": False})
