"""`check` tests whether the table as a whole has drifted: models that store rows, weights, blocks, the command."""

import numpy as np
import pytest
from hard import hard
from limits import limited
from scipy import stats

import binfeat
from binfeat.__main__ import main

pd = pytest.importorskip("pandas")
FIXED = {"gamma": "scale", "alpha": 0.1, "random_state": 0}


def frame_of(n_rows, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=["width", "age", "dose"])
    frame["color"] = rng.choice(["red", "green", "blue"], n_rows)
    frame.loc[frame.index[::9], "age"] = np.nan
    return frame


def fitted(features, frame=None, kind=binfeat.KernelMachineRegressor, **weights):
    frame = frame_of(400, 0) if frame is None else frame
    y = frame["width"].to_numpy() > 0 if kind is binfeat.KernelMachineClassifier else frame["width"] ** 2
    with limited(n_steps=3):
        return kind(features=features, **FIXED).fit(frame, y, **weights)


@pytest.mark.parametrize("features", ["exact", "binning", *hard("local", "fourier")])
def test_drift_is_found_and_attributed(features):
    numbers = ["width", "age", "dose"] if features == "fourier" else ["width", "age", "dose", "color"]
    model, new = fitted(features, frame_of(400, 0)[numbers]), frame_of(300, 1)[numbers]
    found = model.check(new)
    assert not found
    assert not found.drift.is_significant
    assert "The table has not drifted significantly: p = " in repr(found)
    drifted = model.check(new.assign(dose=new["dose"] + 0.8))
    assert drifted.drift.p_value == 1 / 200
    assert list(drifted.drift.feature_names)[drifted.drift.input_shares.argmax()] == "dose"
    assert "The table has drifted: p = 0.005" in repr(drifted)
    assert "dose: " in repr(drifted)


@pytest.mark.parametrize(
    "change",
    [
        lambda new: new.assign(color=np.where(new["color"] == "red", "blue", new["color"])),
        lambda new: new.assign(age=new["age"].where(np.arange(len(new)) % 2 == 0)),
    ],
    ids=["categories", "missing values"],
)
def test_drift_of_categories_and_of_missing_values(change):
    new = frame_of(300, 1)
    drift = fitted("exact").check(change(new)).drift
    changed = next(name for name in new if not new[name].equals(change(new)[name]))
    assert drift.is_significant
    assert drift.feature_names[drift.input_shares.argmax()] == changed


def test_classifiers_with_grids_store_no_rows():
    found = fitted("binning", kind=binfeat.KernelMachineClassifier).check(frame_of(300, 1))
    assert found.drift is None
    assert "drifted" not in repr(found)
    assert fitted("exact", kind=binfeat.KernelMachineClassifier).check(frame_of(300, 1)).drift is not None
    assert fitted("exact").check(frame_of(1, 1)).drift is None


def test_discrete_tables_have_no_false_alarm():
    frames = [frame_of(600, seed)[["width", "dose", "color"]].assign(age=seed) for seed in (0, 1)]
    coarse = [frame.assign(width=frame["width"].round(), dose=frame["dose"] > 0, age=0.0) for frame in frames]
    assert fitted("exact", coarse[0]).check(coarse[1]).drift.p_value > 0.01


@pytest.mark.parametrize("n_draws", [10, *hard(30)])
def test_false_alarms(n_draws):
    pairs = [(frame_of(100, 2 * seed), frame_of(80, 2 * seed + 1)) for seed in range(n_draws)]
    p_values = [fitted("exact", old).check(new).drift.p_value for old, new in pairs]
    assert stats.kstest(p_values, "uniform").pvalue > 0.001


def test_blocks_have_the_drift_of_the_table():
    model, X = fitted("exact", frame_of(400, 0)[["width", "dose"]]), frame_of(300, 1)[["width", "dose"]] + 0.1
    whole, parts = model.check(X), model.check(binfeat.blocks(X, np.zeros(300), block_rows=70))
    assert parts.drift.p_value == whole.drift.p_value
    assert parts.drift.squared_mmd == whole.drift.squared_mmd
    assert model.check(X).drift.squared_mmd == whole.drift.squared_mmd


def test_the_command_reports_drift(tmp_path, capsys):
    frame = frame_of(400, 0)
    table, model = tmp_path / "new.csv", tmp_path / "model.skops"
    sio = pytest.importorskip("skops.io")
    sio.dump(fitted("exact", frame), model)
    new = frame_of(300, 1)
    new.to_csv(table, index=False)
    assert main(["check", str(model), str(table)]) == 0
    assert "The table has not drifted significantly: p = " in capsys.readouterr().out
    new.assign(dose=new["dose"] + 0.8).to_csv(table, index=False)
    assert main(["check", str(model), str(table)]) == 3
    assert "The table has drifted: p = 0.005" in capsys.readouterr().out
