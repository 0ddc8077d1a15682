"""Classes of pandas' nullable, Arrow and categorical labels have the corresponding NumPy type."""

from datetime import date
from decimal import Decimal

import numpy as np
import pytest
from hard import each_value_once
from scipy import sparse

from binfeat import CGRidgeClassifier, KernelMachineClassifier, LabelSpreading, blocks

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

ROWS = np.random.default_rng(0).normal(size=(60, 2))
LABELS = ROWS[:, 0] > 0
ESTIMATORS = [
    CGRidgeClassifier(),
    KernelMachineClassifier(gamma="scale", alpha=0.1, random_state=0),
    LabelSpreading(gamma=0.3, random_state=0),
]
KINDS = {
    "boolean": bool,
    "bool[pyarrow]": bool,
    "Int64": np.int64,
    "Int8": np.int8,
    "UInt16": np.uint16,
    "int32[pyarrow]": np.int32,
    "Float32": np.float32,
}


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
@pytest.mark.parametrize(("container", "kind"), each_value_once(["array", "series", "categorical", "frame"], KINDS))
def test_classes_keep_their_type(estimator, kind, container):
    y = pd.Series(LABELS.astype(KINDS[kind])).astype(kind)
    y = {"array": y.array, "series": y, "categorical": y.astype("category"), "frame": y.to_frame("y")}[container]
    estimator.fit(ROWS, y)
    assert estimator.classes_.dtype == KINDS[kind]
    assert estimator.classes_.tolist() == [False, True]
    assert estimator.predict(ROWS).dtype == KINDS[kind]
    assert estimator.score(ROWS, y if container != "frame" else y["y"]) > 0.8


@pytest.mark.parametrize("estimator", ESTIMATORS[:2], ids=lambda estimator: type(estimator).__name__)
def test_classes_of_blocks_keep_their_type(estimator):
    y = pd.Series(LABELS).astype("boolean")
    assert estimator.fit(blocks(ROWS, y, block_rows=20)).classes_.dtype == bool


@pytest.mark.parametrize("estimator", [CGRidgeClassifier, KernelMachineClassifier])
def test_class_weights_of_wrong_labels_are_named(estimator):
    with pytest.raises(ValueError, match=r"not classes: \['z'\]. Classes without a weight: \[False, True\]"):
        estimator(class_weight={"z": 1.0}).fit(ROWS, LABELS)
    digits = LABELS.astype(int).astype(str)
    estimator(class_weight={"0": 1.0, "1": 2.0}).fit(ROWS, digits)


def test_columns_of_labels_keep_their_types():
    y = pd.DataFrame({"a": pd.array(LABELS, "boolean"), "b": pd.array(LABELS.astype(int) + 3, "Int16")})
    model = KernelMachineClassifier(gamma="scale", alpha=0.1, random_state=0).fit(ROWS, y)
    assert [classes.tolist() for classes in model.classes_] == [[False, True], [3, 4]]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
@pytest.mark.parametrize("kind", ["boolean", "Int64"])
def test_missing_labels_are_refused(estimator, kind):
    with pytest.raises(ValueError, match="Input y contains NaN"):
        estimator.fit(ROWS, pd.array([None, *LABELS[1:].astype(int)], dtype=kind))


def test_long_labels_are_different_classes():
    y = pd.array(np.where(LABELS, 2**53 + 1, 2**53), dtype="Int64")
    assert CGRidgeClassifier().fit(ROWS, y).classes_.tolist() == [2**53, 2**53 + 1]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
@pytest.mark.parametrize(("kind", "labels"), [(bool, [False, True]), (np.int64, [3, 7])])
def test_objects_that_are_bools_or_integers_are_labels(estimator, kind, labels):
    y = np.array(labels, dtype=object)[LABELS.astype(int)]
    for given in (y, pd.Series(y)):
        estimator.fit(ROWS, given)
        assert estimator.classes_.dtype == kind
        assert estimator.classes_.tolist() == labels
        assert estimator.score(ROWS, given) > 0.8
        if not isinstance(estimator, LabelSpreading):
            assert estimator.score(blocks(ROWS, given, block_rows=25)) == estimator.score(ROWS, given)


OTHERS = {
    "datetime64": (np.array(["2026-01-01", "2026-01-02"], "M8[D]"), r"got datetime64\[D\]. Convert y to strings"),
    "timedelta64": (np.array([1, 2], "m8[s]"), r"got timedelta64\[s\]. Convert y to strings"),
    "dates": (np.array([date(2026, 1, 1), date(2026, 1, 2)]), r"got datetime.date\(2026, 1, .\). Convert y to strings"),
    "decimals": (np.array([Decimal(1), Decimal(2)]), r"got Decimal\('.'\). Convert y to strings"),
    "words and numbers": (np.array(["no", 1], dtype=object), "got objects of type int and str. Convert y"),
    "numbers and words": (np.array([1.5, "no"], dtype=object), "got objects of type float and str. Convert y"),
}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
@pytest.mark.parametrize("kind", OTHERS)
def test_labels_of_other_types_are_refused(estimator, kind):
    labels, message = OTHERS[kind]
    with pytest.raises(TypeError, match=f"^y must have labels .*numbers or.* strings, {message}"):
        estimator.fit(ROWS, labels[LABELS.astype(int)])


@pytest.mark.parametrize("kind", ["words and numbers", "numbers and words"])
def test_columns_with_labels_of_several_types_are_refused(kind):
    labels, message = OTHERS[kind]
    column = labels[LABELS.astype(int)]
    for y in (np.column_stack([column, column]), pd.DataFrame({"a": LABELS, "b": column})):
        with pytest.raises(TypeError, match=f"^y must have labels of one kind, .* {message}"):
            KernelMachineClassifier(gamma="scale", alpha=0.1, random_state=0).fit(ROWS, y)


def test_labels_of_a_series_are_not_read_one_by_one(monkeypatch):
    monkeypatch.setattr(pd.Series, "items", lambda _: pytest.fail("labels are read one by one"))
    CGRidgeClassifier().fit(ROWS, pd.Series(LABELS))


@pytest.mark.parametrize("kind", ["datetime64", "timedelta64"])
def test_times_in_columns_and_blocks_are_refused(kind):
    y = OTHERS[kind][0][LABELS.astype(int)]
    for arguments in ((ROWS, np.column_stack([y, y])), (blocks(ROWS, y),)):
        with pytest.raises(TypeError, match="y must have labels that are numbers or strings"):
            KernelMachineClassifier(gamma="scale", alpha=0.1, random_state=0).fit(*arguments)


@pytest.mark.parametrize("estimator", ESTIMATORS[:2], ids=lambda estimator: type(estimator).__name__)
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.coo_array])
def test_a_sparse_indicator_matrix_is_refused(estimator, kind):
    y = kind(np.column_stack([LABELS, ~LABELS]))
    with pytest.raises(TypeError, match=r"y.* dense .*toarray\(\)"):
        estimator.fit(ROWS, y)
    with pytest.raises(TypeError, match=r"^y must be a dense array, got c.._\w+\. Pass y\.toarray\(\)"):
        blocks(ROWS, y)
    with pytest.raises(TypeError, match=r"Block 0 .*: y must be a dense array, .* Pass y\.toarray\(\)"):
        estimator.fit(blocks([(ROWS, y)]))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
@pytest.mark.parametrize("kind", ["S3", object])
def test_labels_of_bytes_are_refused_by_name(estimator, kind):
    with pytest.raises(TypeError, match=r"labels that are numbers or strings, got b'(no|yes)'\. Decode y"):
        estimator.fit(ROWS, np.array([b"no", b"yes"], dtype=kind)[LABELS.astype(int)])
