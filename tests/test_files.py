"""Models in files: damaged, of newer versions, with foreign types. Refused in words, or the same predictions."""

import copy
import io
import json
import os
import pickle
import re
import zipfile
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hard import easy
from limits import limited
from sklearn.base import clone

import binfeat
from binfeat import kernels
from binfeat._common import persistence

sio = pytest.importorskip("skops.io")

FILES = Path(__file__).parent / "files"
FLIPS = int(os.environ.get("BINFEAT_FLIPS", "150"))  # in each file
MACHINES = ["binfeat.KernelMachineClassifier", "binfeat.KernelMachineRegressor"]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + (X[:, 1] > 0)
LABELS = np.where(X[:, 0] > 0, "yes", "no")


def machines():
    binning = binfeat.RandomBinning(n_grids=3, gamma=0.5, min_count=2, random_state=0).fit(X)
    Z = binning.transform(X)
    yield binning, X
    yield binfeat.RandomBinning(n_grids=3, n_features=64, random_state=0).fit(X), X
    yield binfeat.RandomFourier(n_components=6, random_state=0).fit(X), X
    yield binfeat.RandomFourier(n_components=5, sampler="fastfood", phase="offset", random_state=0).fit(X), X
    yield binfeat.CGRidge(n_posterior_samples=2).fit(Z, Y), Z
    yield binfeat.CGRidgeClassifier().fit(Z, LABELS), Z
    fixed = {"n_grids": 4, "gamma": "scale", "alpha": 0.1, "random_state": 0}
    sampled = {"n_posterior_samples": 2, **fixed}
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
    """Machines with their files, the types in them, and what they answer."""
    with limited(n_fourier=8):
        made = list(machines())
    found = []
    for machine, rows in made:
        data = sio.dumps(machine)
        found.append((type(machine).__name__, machine, rows, data, sio.get_untrusted_types(data=data)))
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


def answer(machine, rows):
    Z = (getattr(machine, "predict", None) or machine.transform)(rows)
    return Z.toarray() if hasattr(Z, "toarray") else Z


# What zipfile and skops say of a damaged file: its check sums, names, versions; and the package of arrays.
REFUSALS = zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError, EOFError, ValueError, TypeError


def same_or_refused(data, trusted, rows, expected):
    """Whether it was loaded, which must be as it was, or else refused."""
    try:
        machine = sio.loads(data, trusted=trusted)
        found = answer(machine, rows)
    except REFUSALS:
        return False
    np.testing.assert_array_equal(found, expected)
    return True


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_trusted_types_are_those_of_the_package(saved, number):
    name, _, rows, data, trusted = saved[number]
    assert all(own.startswith("binfeat.") for own in trusted)
    assert any(own.endswith(name) for own in trusted)
    assert same_or_refused(data, trusted, rows, answer(saved[number][1], rows))


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_any_bit_flipped(saved, number):
    _, machine, rows, data, trusted = saved[number]
    expected = answer(machine, rows)
    rng = np.random.default_rng(number)
    # The directory at the end and the description before it are what a reader trusts; the arrays have check sums.
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
    _, machine, rows, data, trusted = saved[number]
    expected = answer(machine, rows)
    for length in [0, 1, 100, *np.linspace(200, len(data) - 1, 20).astype(int)]:
        assert not same_or_refused(data[:length], trusted, rows, expected)


def rewritten(data, change):
    """The file with arrays changed, and check sums that fit."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for item in old.namelist():
            new.writestr(item, change(item, old.read(item)))
    return out.getvalue()


def changed_array(array, rng):
    """An array for the place of another array, of another type or shape, or with other numbers."""
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
    easy(range(len(NAMES)), *(n for n, name in enumerate(NAMES) if name != "regressor")),
    ids=NAMES.__getitem__,
)
def test_arrays_that_do_not_fit_together(saved, number):
    """Whoever changes numbers on purpose gets other predictions or an error, and nothing reads outside an array."""
    _, _, rows, data, trusted = saved[number]
    rng = np.random.default_rng(number)
    arrays = [name for name in zipfile.ZipFile(io.BytesIO(data)).namelist() if name.endswith(".npy")]
    for turn in range(4 * len(arrays)):
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
    """As files of version 0.2.0 have some."""
    starts, knots = np.array([0, 1]), np.zeros(1)
    state["_scaler"] = {"columns": np.zeros(1, np.int64), "starts": starts, "knots": knots, "ranks": knots}


def not_a_source(state):
    state["_columns"]["source"][0] = 9


DAMAGES = [
    ("binning", replaced(_shift=np.zeros((3, 2))), r"_shift should be of shape \(3, 3\) in C order, got float64 and"),
    ("binning", replaced(_keys=np.zeros((3, 3), np.int64)), "_keys should be of shape .*, got int64"),
    ("binning", replaced(_scale=np.zeros(3)), "_scale should be an array of 2 dimensions"),
    ("binning", lambda state: state.pop("_nan_keys"), "KeyError: '_nan_keys'"),
    ("binning", lambda state: state["bin_offsets_"].__setitem__(1, -1), "bin_offsets_ should rise from 0 to"),
    ("hashed", replaced(bin_offsets_=np.array([0, 1, 2, 3])), "bin_offsets_ should give each grid at least 2"),
    (
        "hashed",
        replaced(bin_offsets_=np.array([0, 2**32, 2**33, 2**34])),
        "bin_offsets_ should give each grid at least 2",
    ),
    ("waves", replaced(_n_features_out=7), "_n_features_out should be 6, above 0, got 7"),
    ("fastfood", lambda state: state["fastfood_order_"].__setitem__((0, 0), 9), "fastfood_order_ should hold permut"),
    (
        "fastfood",
        replaced(fastfood_norms_=np.ones(99), random_offset_=np.ones(99)),
        "fastfood_norms_ should be",
    ),
    ("regressor", not_a_source, "source should name columns, all of them"),
    (
        "regressor",
        lambda state: state["_columns"].update(times=np.array(["", "dates"])),
        r"times should be of shape \(3,\)",
    ),
    ("regressor", one_knot_of_a_scaler, r"scaler should have two knots|_scaler lacks \[\]"),
    ("regressor", one_knot, "ranks should have two knots"),
    ("exact", lambda state: state["_exact"].pop("support"), r"_exact lacks \['support'\]"),
    ("exact", lambda state: state["_exact"].update(shares=np.ones(9)), "shares should be of shape"),
    ("exact", lambda state: state["_exact"].update(center=np.zeros(2)), "center should be of shape"),
    ("exact", lambda state: state["_exact"].update(rotation=np.ones((9, 1))), "rotation should be of shape"),
    ("exact", replaced(feature_coef_=np.zeros((1, 59))), "feature_coef_ should be of shape"),
    ("exact", replaced(_target_shifts=np.zeros((1, 2))), "_target_shifts should be of shape"),
    ("exact", replaced(_target_limits=np.zeros((1, 2))), "_target_limits should be of shape"),
]


@pytest.mark.parametrize(("name", "damage", "message"), DAMAGES)
def test_arrays_that_do_not_fit_together_are_named(saved, name, damage, message):
    machine = copy.deepcopy(saved[NAMES.index(name)][1])
    state = machine.__getstate__()
    damage(state)
    with pytest.raises(ValueError, match=f"This {type(machine).__name__} is damaged: .*{message}"):
        machine.__setstate__(state)


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_machines_without_a_fit_persist(saved, number):
    machine = clone(saved[number][1])
    assert str(pickle.loads(pickle.dumps(machine))) == str(machine)


@pytest.fixture
def version(monkeypatch):
    """Set the version that reads and writes."""
    return lambda number: monkeypatch.setattr(persistence, "_version", lambda: number)


@pytest.mark.parametrize("number", range(len(NAMES) - 1), ids=NAMES[:-1])
def test_newer_versions_are_refused(saved, number, version):
    name, machine, *_ = saved[number]
    version("1.2.3.dev4")
    data, pickled = sio.dumps(machine), pickle.dumps(machine)
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
        ("1.2.0", "1.2.0.dev7", True),  # a development build comes before its release
        ("1.2.0.dev7", "1.2.0", False),
        ("1.2.0.dev7", "1.2.0.dev3", False),  # which the number of the format tells apart
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
    machine = copy.deepcopy(saved[0][1])
    state = machine.__getstate__()
    if version is None:
        del state["_binfeat_version"]
    else:
        state["_binfeat_version"] = version
    with pytest.raises(ValueError, match=r"This RandomBinning is damaged: it should name the version of binfeat that"):
        machine.__setstate__(state)


def test_load_names_what_is_wrong_with_a_file(saved, tmp_path):
    _, machine, rows, data, _ = saved[NAMES.index("exact")]
    path = tmp_path / "model.skops"
    path.write_bytes(data)
    np.testing.assert_array_equal(binfeat.load(path).predict(rows), machine.predict(rows))
    np.testing.assert_array_equal(binfeat.load(str(path)).predict(rows), machine.predict(rows))
    for content in (b"", b"garbage", data[: len(data) // 2], data[:-9]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"Cannot load a model from .*model\.skops: "):
            binfeat.load(path)
    for number, held in ((0, "binfeat.RandomBinning"), (NAMES.index("ridge"), "binfeat.CGRidge")):
        path.write_bytes(saved[number][3])
        with pytest.raises(ValueError, match=rf"model\.skops contains .*{held}.*; load accepts only kernel models"):
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
    machine = binfeat.KernelMachineRegressor(kernel=kernel, gamma="scale", max_grids=10).fit(X, X[:, 0])
    sio.dump(machine, tmp_path / "model.skops")
    loaded = binfeat.load(tmp_path / "model.skops")
    assert loaded.kernel == kernel
    np.testing.assert_array_equal(loaded.predict(X), machine.predict(X))


def test_newer_formats_are_refused_and_older_ones_brought_up_to_date(saved, monkeypatch):
    machine = copy.deepcopy(saved[NAMES.index("waves")][1])
    pickled = pickle.dumps(machine)
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
    monkeypatch.setattr(type(machine), "_migrate", staticmethod(migrate))
    state = machine.__getstate__()
    assert machine.__setstate__(state) is None
    assert not seen
    state["n_inputs_in_"] = state.pop("n_features_in_")
    machine.__setstate__(state | {"_binfeat_format": newest})
    del state["_binfeat_format"]
    machine.__setstate__(state)
    assert seen == [newest, 1]
    assert not hasattr(machine, "_binfeat_format")
    np.testing.assert_array_equal(machine.transform(X), saved[NAMES.index("waves")][1].transform(X))
    for damaged in (saved[2][1].__getstate__() | {"_binfeat_format": 2}, state | {"_binfeat_format": "2"}):
        with pytest.raises(ValueError, match="This RandomFourier is damaged: "):
            machine.__setstate__(damaged)


KEPT = sorted(path for path in FILES.glob("format_*/*.skops"))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_files_of_this_and_older_formats_give_the_same_predictions(path):
    if path.stem == "frame":
        rows = pytest.importorskip("pandas").read_csv(path.with_name("frame.csv"), parse_dates=["day"])
    else:
        rows = np.load(path.with_name("X.npy"))[:5]
    expected, trusted = np.load(path.with_suffix(".npy")), MACHINES
    machine = sio.load(path, trusted=trusted)
    found = machine.predict(rows)
    if expected.dtype.kind == "U":
        np.testing.assert_array_equal(found, expected)
    else:  # of kernel values in float32
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    again = sio.loads(sio.dumps(machine), trusted=trusted)
    np.testing.assert_array_equal(again.predict(rows), found)
    assert str(again) == str(machine)  # has all parameters


def test_files_with_warped_inputs_predict():
    """Version 0.2.0 could learn values in place of ranks."""
    path = FILES / "format_4" / "binning.skops"
    rows, machine = np.load(path.with_name("X.npy"))[:5], sio.load(path, trusted=MACHINES)
    state = machine.__getstate__() | {"scaling_": "warped", "_binfeat_format": 4}
    warped = type(machine).__new__(type(machine))
    warped.__setstate__(state)
    np.testing.assert_array_equal(warped.predict(rows), machine.predict(rows))


def test_files_of_a_loss_that_is_gone_are_refused():
    """Their predictions would be means."""
    machine = sio.load(FILES / "format_4" / "exact.skops", trusted=MACHINES)
    with pytest.raises(ValueError, match=r"saved with loss='quantile', .*loss='squared', and call predict_quantiles"):
        machine.__setstate__(machine.__getstate__() | {"loss": "quantile"})


def test_files_of_every_format_are_kept():
    """But for the second one, which no release wrote; a new format wants new files here, and a line in the guide."""
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
