"""Tables of `BINFEAT_DATA`."""

from functools import partial

from perf import data
from perf.data import Split
from perf.tables.splitting import OfficialTable, Table, with_shared_categories

_PMLB = (
    "503_wind",
    "225_puma8NH",
    "344_mv",
    "4544_GeographicalOriginalofMusic",
    "1201_BNG_breastTumor",
    "phoneme",
    "spambase",
    "churn",
    "wine_quality_white",
    "satimage",
    "optdigits",
    "connect_4",
    "krkopt",
    "sleep",
)
_COVER_TEST_SHARE = 0.1
_COMMONEST_COVER = 2


def _of_arrays(load):
    return Table(*load())


def _pmlb(name):
    return Table(*data.pmlb(name))


def _cover_one_class():
    """Forest Cover: the most frequent class against the rest."""
    X, y = data.forest_cover()
    return Table(X, y == _COMMONEST_COVER, _COVER_TEST_SHARE)


def _cover_all_classes():
    X, y = data.forest_cover()
    return Table(X, y, _COVER_TEST_SHARE)


def _a9a():
    """Adult a9a as dense numbers, because some peers do not accept sparse ones."""
    parts = data.adult_a9a()
    X, X_test = (part.toarray() for part in (parts.X, parts.X_test))
    return OfficialTable(Split(X, parts.y > 0, X_test, parts.y_test > 0))


def _official(load):
    return OfficialTable(with_shared_categories(load()))


def _short(name):
    """Return a name of PMLB without its number."""
    number, _, rest = name.partition("_")
    return rest if number.isdecimal() else name


TABLES = {
    "forest_cover_2": _cover_one_class,
    "forest_cover_7": _cover_all_classes,
    "kddcup99": partial(_official, data.kddcup99),
    "adult": partial(_official, data.adult_table),
    "adult_a9a": _a9a,
    **{load.__name__: partial(_of_arrays, load) for load in (data.cpu_act, data.census, data.kin8nm)},
    **{load.__name__: partial(_of_arrays, load) for load in (data.abalone, data.pendigits)},
    **{_short(name): partial(_pmlb, name) for name in _PMLB},
}
