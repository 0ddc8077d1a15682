"""Models in files: damaged files, newer versions and foreign types raise errors or have the same predictions."""

import copy
import io
import json
import os
import pickle
import re
import zipfile
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hard import easy
from kernel_models import with_options
from limits import limited
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge

import binfeat
from binfeat import kernels
from binfeat._common import persistence, saved_types

sio = pytest.importorskip("skops.io")

FILES = Path(__file__).parent / "files"
FLIPS = int(os.environ.get("BINFEAT_FLIPS", "60"))  # flipped bits per file
TURNS = 4 if "BINFEAT_FLIPS" in os.environ else 1  # replacements of each array of a file
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + (X[:, 1] > 0)
LABELS = np.where(X[:, 0] > 0, "yes", "no")


def models():
    binning = binfeat.RandomBinning(n_grids=3, gamma=0.5, min_count=2, random_state=0).fit(X)
    Z = binning.transform(X)
    yield binning, X
    yield binfeat.RandomBinning(n_grids=3, n_features=64, random_state=0).fit(X), X
    yield binfeat.RandomFourier(n_components=6, random_state=0).fit(X), X
    yield binfeat.RandomFourier(n_components=5, sampler="fastfood", phase="offset", random_state=0).fit(X), X
    yield binfeat.CGRidge(n_posterior_samples=2).fit(Z, Y), Z
    yield binfeat.CGRidgeClassifier().fit(Z, LABELS), Z
    fixed = {"solver_params": {"n_grids": 4}, "gamma": "scale", "alpha": 0.1, "random_state": 0}
    sampled = with_options(fixed, n_posterior_samples=2)
    yield binfeat.KernelMachineRegressor(features="binning", **sampled).fit(X, Y), X
    yield binfeat.KernelMachineClassifier(features="binning", **fixed).fit(X, LABELS), X
    exact = binfeat.KernelMachineRegressor(features="exact", gamma="scale", random_state=0)
    yield exact.fit(X, Y), X
    grids = {"features": binfeat.RandomBinning(n_grids=4), "gamma": 0.3, "random_state": 0}
    yield binfeat.SpectralEmbedding(**grids).fit(X), X
    yield binfeat.SpectralClustering(2, **grids).fit(X), X
    yield binfeat.LabelSpreading(**grids).fit(X, np.where(np.arange(60) < 9, X[:, 0] > 0, -1)), X
    union = [
        ("bins", binfeat.RandomBinning(n_grids=3, random_state=0)),
        ("waves", binfeat.RandomFourier(n_components=4)),
    ]
    yield binfeat.RandomFeatureUnion(union).fit(X), X


@pytest.fixture(scope="module")
def saved():
    """Return models with their files, the types in the files, and their predictions."""
    with limited(n_fourier=8):
        made = list(models())
    found = []
    for model, rows in made:
        data = sio.dumps(model)
        found.append((type(model).__name__, model, rows, data, sio.get_untrusted_types(data=data)))
    return found


NAMES = [
    "binning",
    "hashed",
    "waves",
    "fastfood",
    "ridge",
    "classes",
    "regressor",
    "classifier",
    "exact",
    "embedding",
    "clusters",
    "spread",
    "union",
]


def answer(model, rows):
    Z = (getattr(model, "predict", None) or model.transform)(rows)
    return Z.toarray() if hasattr(Z, "toarray") else Z


# Messages of zipfile, skops and NumPy about damaged files: check sums, names, versions, arrays.
REFUSALS = zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError, EOFError, ValueError, TypeError


def same_or_refused(data, trusted, rows, expected):
    """Return True if the file was loaded with the same predictions, False if it was refused."""
    try:
        model = sio.loads(data, trusted=trusted)
        found = answer(model, rows)
    except REFUSALS:
        return False
    np.testing.assert_array_equal(found, expected)
    return True


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_trusted_types_are_those_of_the_package(saved, number):
    name, _, rows, data, trusted = saved[number]
    assert set(trusted) <= set(binfeat.TRUSTED_TYPES)
    assert any(own.endswith(name) for own in trusted)
    assert same_or_refused(data, trusted, rows, answer(saved[number][1], rows))


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_load_accepts_all_estimators_under_their_old_and_new_names(saved, number, tmp_path):
    """Files of version 0.2.0 contain old names of modules."""
    _, model, rows, data, _ = saved[number]
    old = {new: before for before, new in saved_types._RENAMED.items()}

    def renamed(node):
        new = f"{node.get('__module__')}.{node.get('__class__')}" if isinstance(node, dict) else ""
        if new in old:
            node["__module__"], _, node["__class__"] = old[new].rpartition(".")
        for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            renamed(child)
        return node

    def change(item, content):
        return json.dumps(renamed(json.loads(content))) if item == "schema.json" else content

    path = tmp_path / "model.skops"
    for content in (data, rewritten(data, change)):
        path.write_bytes(content)
        np.testing.assert_array_equal(answer(binfeat.load(path), rows), answer(model, rows))
    assert any(name.startswith("binfeat.") for name in set(sio.get_untrusted_types(file=path)) & set(old.values()))


def test_every_trusted_type_exists_and_old_names_do_not():
    pytest.importorskip("distributed")
    for name in binfeat.TRUSTED_TYPES:
        module, _, kind = name.rpartition(".")
        assert f"{getattr(import_module(module), kind).__module__}.{kind}" == name
    assert set(saved_types._RENAMED.values()) <= set(binfeat.TRUSTED_TYPES)
    for name in saved_types._RENAMED:
        with pytest.raises(ImportError):
            import_module(name.rpartition(".")[0])


def test_unions_of_transformers_that_are_not_listed_are_refused(tmp_path):
    map_of_others = RBFSampler(n_components=4, random_state=0)
    union = binfeat.RandomFeatureUnion([("bins", binfeat.RandomBinning(n_grids=3)), ("other", map_of_others)]).fit(X)
    sio.dump(union, tmp_path / "union.skops")
    with pytest.raises(ValueError, match=r"transformers.* in .*union\.skops is a RBFSampler; only .*Scaler"):
        binfeat.load(tmp_path / "union.skops")


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_any_bit_flipped(saved, number):
    _, model, rows, data, trusted = saved[number]
    expected = answer(model, rows)
    rng = np.random.default_rng(number)
    # Readers trust the directory at the end and the description before it; arrays have check sums.
    anywhere, at_the_end = rng.integers(0, len(data), FLIPS // 2), len(data) - rng.integers(1, 3000, FLIPS // 2)
    places = np.concatenate([anywhere, at_the_end])
    loaded = 0
    for place in places:
        broken = bytearray(data)
        broken[place] ^= 1 << rng.integers(8)
        loaded += same_or_refused(bytes(broken), trusted, rows, expected)
    assert loaded < len(places)


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_cut_short(saved, number):
    _, model, rows, data, trusted = saved[number]
    expected = answer(model, rows)
    for length in [0, 1, 100, *np.linspace(200, len(data) - 1, 20).astype(int)]:
        assert not same_or_refused(data[:length], trusted, rows, expected)


def rewritten(data, change):
    """Return the file with changed arrays, and correct check sums."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for item in old.namelist():
            new.writestr(item, change(item, old.read(item)))
    return out.getvalue()


def changed_array(array, rng):
    """Return a replacement of an array, with another type or shape, or other numbers."""
    kind = rng.integers(5)
    if kind == 0 and array.size:
        return array.ravel()[:-1] if array.ndim == 1 else array[:-1]
    if kind == 1 and array.dtype.kind in "iuf":
        return array.astype(np.float32 if array.dtype != np.float32 else np.int16)
    if kind == 2:
        return np.concatenate([array, array])
    if kind == 3 and array.dtype.kind in "iu" and array.size:
        out = array.copy()
        out.flat[rng.integers(out.size)] = np.iinfo(array.dtype).max // int(rng.integers(1, 2**20))
        return out
    return array.T[None].copy()


@pytest.mark.parametrize(
    "number",
    easy(range(len(NAMES)), *(n for n, name in enumerate(NAMES) if name not in ("regressor", "classifier", "exact"))),
    ids=NAMES.__getitem__,
)
def test_arrays_that_do_not_fit_together(saved, number):
    """Deliberate changes lead to other predictions or an error, and never to reads outside an array."""
    _, _, rows, data, trusted = saved[number]
    rng = np.random.default_rng(number)
    arrays = [name for name in zipfile.ZipFile(io.BytesIO(data)).namelist() if name.endswith(".npy")]
    for turn in range(TURNS * len(arrays)):
        chosen = arrays[turn % len(arrays)]

        def change(item, content, chosen=chosen):
            if item != chosen:
                return content
            out = io.BytesIO()
            np.save(out, changed_array(np.load(io.BytesIO(content)), rng))
            return out.getvalue()

        with suppress(ValueError, TypeError, IndexError, MemoryError):
            answer(sio.loads(rewritten(data, change), trusted=trusted), rows)


def replaced(**arrays):
    return lambda state: state.update(arrays)


def one_knot(state):
    state["_columns"].update(rank_starts=np.array([0, 1]), rank_knots=np.zeros(1), rank_values=np.zeros(1))


def one_knot_of_a_scaler(state):
    """Some files of version 0.2.0 contain such scalers."""
    starts, knots = np.array([0, 1]), np.zeros(1)
    state["_scaler"] = {"columns": np.zeros(1, np.int64), "starts": starts, "knots": knots, "ranks": knots}


def not_a_source(state):
    state["_columns"]["source"][0] = 9


DAMAGES = [
    ("binning", replaced(_shift=np.zeros((3, 2))), r"_shift should be of shape \(3, 3\) in C order, got float64 and"),
    ("binning", replaced(_keys=np.zeros((3, 3), np.int64)), "_keys should be of shape .*, got int64"),
    ("binning", replaced(_scale=np.zeros(3)), "_scale should be an array of 2 dimensions"),
    ("binning", lambda state: state.pop("_nan_keys"), "KeyError: '_nan_keys'"),
    ("binning", lambda state: state["bin_offsets_"].__setitem__(1, -1), "bin_offsets_ should increase from 0 to"),
    ("hashed", replaced(bin_offsets_=np.array([0, 1, 2, 3])), "bin_offsets_ should give each grid at least 2"),
    (
        "hashed",
        replaced(bin_offsets_=np.array([0, 2**32, 2**33, 2**34])),
        "bin_offsets_ should give each grid at least 2",
    ),
    (
        "hashed",
        replaced(bin_offsets_=np.array([0, 2**32 - 1, 2**33 - 2, 3 * 2**32 - 2])),
        "bin_offsets_ should give each grid at least 2",
    ),
    ("waves", replaced(_n_features_out=7), "_n_features_out should be 6, above 0, got 7"),
    ("fastfood", lambda state: state["fastfood_order_"].__setitem__((0, 0), 9), "fastfood_order_ should be a permut"),
    (
        "fastfood",
        replaced(fastfood_norms_=np.ones(99), random_offset_=np.ones(99)),
        "fastfood_norms_ should have at most 8 elements, got 99",
    ),
    ("regressor", not_a_source, "source should name columns, all of them"),
    (
        "regressor",
        lambda state: state["_columns"].update(times=np.array(["", "dates"])),
        r"times should be of shape \(3,\)",
    ),
    ("regressor", one_knot_of_a_scaler, r"scaler should have two knots|_scaler lacks \[\]"),
    ("regressor", one_knot, "ranks should have two knots"),
    (
        "regressor",
        lambda state: state["_held_out"].update(variance_factor=np.zeros(())),
        "variance_factor should be above 0",
    ),
    ("exact", lambda state: state["_exact"].pop("support"), r"_exact lacks \['support'\]"),
    ("exact", lambda state: state["_exact"].update(shares=np.ones(9)), "shares should be of shape"),
    ("exact", lambda state: state["_exact"].update(center=np.zeros(2)), "center should be of shape"),
    ("exact", lambda state: state["_exact"].update(rotation=np.ones((9, 1))), "rotation should be of shape"),
    ("exact", lambda state: state["_exact"]["weights"].__setitem__(0, 1e-300), "weights should be from 1e-30"),
    ("exact", lambda state: state["_exact"].update(weights_are_counts="yes"), "weights_are_counts should be an array"),
    ("exact", replaced(loss=sparse.eye_array(2)), "loss should not be a sparse matrix"),
    ("exact", replaced(feature_coef_=np.zeros((1, 59))), "feature_coef_ should be of shape"),
    ("exact", replaced(_target_shifts=np.zeros((1, 2))), "_target_shifts should be of shape"),
    ("exact", replaced(_target_limits=np.zeros((1, 2))), "_target_limits should be of shape"),
]


@pytest.mark.parametrize(("name", "damage", "message"), DAMAGES)
def test_arrays_that_do_not_fit_together_are_named(saved, name, damage, message):
    model = copy.deepcopy(saved[NAMES.index(name)][1])
    state = model.__getstate__()
    damage(state)
    with pytest.raises(ValueError, match=f"This {type(model).__name__} is damaged: .*{message}"):
        model.__setstate__(state)


@pytest.mark.parametrize(
    "estimator",
    [
        binfeat.RandomBinning(n_grids=3, random_state=0),
        binfeat.RandomFourier(n_components=4, random_state=0),
        binfeat.RandomFourier(n_components=4, sampler="fastfood", random_state=0),
        binfeat.OutlierDetector(n_grids=3, random_state=0),
        binfeat.SpectralEmbedding(features=binfeat.RandomBinning(n_grids=3), gamma=1e105, random_state=0),
    ],
    ids=lambda own: type(own).__name__,
)
def test_estimators_of_inputs_near_zero_persist(estimator):
    fitted = clone(estimator).fit(X * 1e-105)
    copied = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(answer(copied, X * 1e-105), answer(fitted, X * 1e-105))


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_models_without_a_fit_persist(saved, number):
    model = clone(saved[number][1])
    assert str(pickle.loads(pickle.dumps(model))) == str(model)


@pytest.fixture
def version(monkeypatch):
    """Set the version of binfeat."""
    return lambda number: monkeypatch.setattr(persistence, "_version", lambda: number)


@pytest.mark.parametrize("number", range(len(NAMES) - 1), ids=NAMES[:-1])
def test_newer_versions_are_refused(saved, number, version):
    name, model, *_ = saved[number]
    version("1.2.3.dev4")
    data, pickled = sio.dumps(model), pickle.dumps(model)
    assert "1.2.3" in str(pickled)
    assert sio.loads(data, trusted=sio.get_untrusted_types(data=data)) is not None
    for here, refused in (("1.2.2", True), ("1.3", False)):
        version(here)
        if refused:
            message = rf"This ({name}|RandomBinning) was saved by binfeat 1\.2\.3.* this is 1\.2\.2; update"
            with pytest.raises(ValueError, match=message):
                pickle.loads(pickled)
        else:
            pickle.loads(pickled)


@pytest.mark.parametrize(
    ("saved_by", "here", "refused"),
    [
        ("1.2.0", "1.2.0.dev7", True),  # a development build is older than its release
        ("1.2.0.dev7", "1.2.0", False),
        ("1.2.0.dev7", "1.2.0.dev3", False),  # distinguished by the number of the format
        ("1.3.dev0", "1.2.9", True),
        ("1.10", "1.9.1", True),
        ("1.2.0+local", "1.2.0", False),
    ],
)
def test_development_builds_are_told_from_releases(saved, version, saved_by, here, refused):
    version(saved_by)
    pickled = pickle.dumps(saved[0][1])
    version(here)
    if refused:
        with pytest.raises(ValueError, match=f"was saved by binfeat {re.escape(saved_by)}, and this is {here}; update"):
            pickle.loads(pickled)
    else:
        pickle.loads(pickled)


@pytest.mark.parametrize("version", [None, "", "garbage", 7, "v1.2", "."])
def test_files_without_a_version_are_refused(saved, version):
    model = copy.deepcopy(saved[0][1])
    state = model.__getstate__()
    if version is None:
        del state["_binfeat_version"]
    else:
        state["_binfeat_version"] = version
    with pytest.raises(ValueError, match=r"This RandomBinning is damaged: it should name the version of binfeat that"):
        model.__setstate__(state)


class Foreign(BaseEstimator):
    """An estimator of another package."""


def test_load_names_what_is_wrong_with_a_file(saved, tmp_path):
    _, model, rows, data, _ = saved[NAMES.index("exact")]
    path = tmp_path / "model.skops"
    path.write_bytes(data)
    np.testing.assert_array_equal(binfeat.load(path).predict(rows), model.predict(rows))
    np.testing.assert_array_equal(binfeat.load(str(path)).predict(rows), model.predict(rows))
    for content in (b"", b"garbage", data[: len(data) // 2], data[:-9]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"Cannot load a model from .*model\.skops: "):
            binfeat.load(path)
    for foreign, held in ((Ridge(), "no estimator of binfeat"), (Foreign(), r"test_files\.Foreign")):
        sio.dump(foreign, path)
        with pytest.raises(ValueError, match=rf"model\.skops contains {held}; load accepts only estimators of binfeat"):
            binfeat.load(path)
    with pytest.raises(FileNotFoundError, match="There is no file"):
        binfeat.load(tmp_path / "nothing")


@pytest.mark.parametrize(
    "kernel",
    [kernels.Laplacian(), kernels.RBF(), kernels.Matern(0.5), kernels.Hat(), kernels.GammaPitch(8.0)],
    ids=repr,
)
def test_load_knows_kernels(rng, kernel, tmp_path):
    sio = pytest.importorskip("skops.io")
    X = rng.normal(size=(40, 2))
    given = {"gamma": "scale", "alpha": 0.1, "solver_params": {"max_grids": 10}}
    model = binfeat.KernelMachineRegressor(kernel=kernel, **given).fit(X, X[:, 0])
    sio.dump(model, tmp_path / "model.skops")
    loaded = binfeat.load(tmp_path / "model.skops")
    assert loaded.kernel == kernel
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_newer_formats_are_refused_and_older_ones_brought_up_to_date(saved, monkeypatch):
    model = copy.deepcopy(saved[NAMES.index("waves")][1])
    pickled = pickle.dumps(model)
    read_up_to = partial(monkeypatch.setattr, persistence, "_FORMAT")
    newest = persistence._FORMAT
    read_up_to(newest - 1)
    message = rf"This RandomFourier was saved in file format {newest}, .* up to {newest - 1}; update binfeat\."
    with pytest.raises(ValueError, match=message):
        pickle.loads(pickled)
    seen = []

    def migrate(state, file_format):
        seen.append(file_format)
        state["n_features_in_"] = state.pop("n_inputs_in_")

    read_up_to(newest + 1)
    monkeypatch.setattr(type(model), "_migrate", staticmethod(migrate))
    state = model.__getstate__()
    assert model.__setstate__(state) is None
    assert not seen
    state["n_inputs_in_"] = state.pop("n_features_in_")
    model.__setstate__(state | {"_binfeat_format": newest})
    del state["_binfeat_format"]
    model.__setstate__(state)
    assert seen == [newest, 1]
    assert not hasattr(model, "_binfeat_format")
    np.testing.assert_array_equal(model.transform(X), saved[NAMES.index("waves")][1].transform(X))
    for damaged in (saved[2][1].__getstate__() | {"_binfeat_format": 2}, state | {"_binfeat_format": "2"}):
        with pytest.raises(ValueError, match="This RandomFourier is damaged: "):
            model.__setstate__(damaged)


KEPT = sorted(path for path in FILES.glob("format_*/*.skops"))
# All models of the oldest and the newest format, and the model of a frame of the others.
KEPT_FIRST = [own for own in KEPT if own.stem == "frame" or own.parent in (KEPT[0].parent, KEPT[-1].parent)]


@pytest.mark.parametrize("path", easy(KEPT, *KEPT_FIRST), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_files_of_this_and_older_formats_give_the_same_predictions(path):
    if path.stem == "frame":
        rows = pytest.importorskip("pandas").read_csv(path.with_name("frame.csv"), parse_dates=["day"])
    else:
        rows = np.load(path.with_name("X.npy"))[:5]
    expected = np.load(path.with_suffix(".npy"))
    model = binfeat.load(path)
    found = model.predict(rows)
    if expected.dtype.kind == "U":
        np.testing.assert_array_equal(found, expected)
    else:  # kernel values in float32
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    again = sio.loads(sio.dumps(model), trusted=binfeat.TRUSTED_TYPES)
    np.testing.assert_array_equal(again.predict(rows), found)
    assert str(again) == str(model)  # prints all parameters


def test_files_with_warped_inputs_predict():
    """Version 0.2.0 could learn values for ranks."""
    path = FILES / "format_4" / "binning.skops"
    rows, model = np.load(path.with_name("X.npy"))[:5], binfeat.load(path)
    state = model.__getstate__() | {"scaling_": "warped", "_binfeat_format": 4}
    warped = type(model).__new__(type(model))
    warped.__setstate__(state)
    np.testing.assert_array_equal(warped.predict(rows), model.predict(rows))


@pytest.fixture
def mapped():
    """Return an exact model with mapped columns, as version 0.2.0 could save it."""
    grids, exact = (binfeat.load(FILES / "format_4" / f"{name}.skops") for name in ("binning", "exact"))
    model = type(exact).__new__(type(exact))
    model.__setstate__(exact.__getstate__() | {"scaling_": "quantile", "_scaler": grids._scaler})
    return model


def test_warm_starts_do_not_keep_mapped_columns(mapped, rng):
    X = rng.normal(size=(60, 3))
    mapped.set_params(warm_start=True, max_seconds=0.0).fit(X, X[:, 0])
    notes = mapped.decisions_["choice"][mapped.decisions_["what"] == "warm start"].tolist()
    assert notes == ["none: columns are mapped by ranks or arcsinh (version 0.2.0)"]
    assert mapped.scaling_ == "standard"


def test_models_with_mapped_columns_have_no_onnx_graph(mapped):
    pytest.importorskip("onnx")
    with pytest.raises(ValueError, match=r"to_onnx does not support models of version 0\.2\.0 with scaled columns"):
        mapped.to_onnx()


@pytest.mark.parametrize(
    ("name", "expected"),
    [("local", {"n_trees": 2, "cell_rows": 20}), ("binning", {"n_grids": 4}), ("exact", None)],
)
def test_options_of_older_files_become_solver_params(name, expected):
    """Up to format 5 they were parameters; "auto" and other defaults are omitted."""
    model = binfeat.load(FILES / "format_5" / f"{name}.skops")
    assert model.solver_params == expected
    assert not {"n_trees", "cell_rows", "n_grids", "max_grids", "n_posterior_samples"} & vars(model).keys()
    state = {k: v for k, v in model.__getstate__().items() if k != "solver_params"}
    older = type(model).__new__(type(model))
    older.__setstate__(state | {"_binfeat_format": 5, "max_grids": 1600, "n_trees": "auto", "n_grids": np.int64(7)})
    assert older.solver_params == {"n_grids": 7}


def test_files_of_a_loss_that_is_gone_are_refused():
    """Their predictions would be means instead."""
    model = binfeat.load(FILES / "format_4" / "exact.skops")
    with pytest.raises(ValueError, match=r"saved with loss='quantile', .*loss='squared', and call predict_quantiles"):
        model.__setstate__(model.__getstate__() | {"loss": "quantile"})


def test_files_of_every_format_are_kept():
    """Except format 2, which no release wrote; a new format needs new files here, and a line in the guide."""
    formats = {int(path.parent.name.removeprefix("format_")) for path in KEPT}
    assert formats == set(range(1, persistence._FORMAT + 1)) - {2}


def test_foreign_types_are_refused_and_nothing_is_executed(saved, tmp_path):
    _, _, _, data, trusted = saved[0]
    marker = tmp_path / "executed"

    def change(item, content):
        if item != "schema.json":
            return content
        schema = json.loads(content)
        evil = {
            "__class__": "system",
            "__module__": "os",
            "__loader__": "FunctionNode",
            "content": f"touch {marker}",
            "__id__": 1,
        }
        schema["content"]["content"]["n_jobs"] = evil
        return json.dumps(schema)

    with pytest.raises(Exception, match=r"os\.system|posix\.system|[Uu]ntrusted"):
        sio.loads(rewritten(data, change), trusted=trusted)
    assert not marker.exists()
    with pytest.raises(Exception, match="binfeat"):
        sio.loads(data)
