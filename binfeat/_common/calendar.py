"""Dates and durations of data frames as days, and periodic parts of dates: day of year, weekday, hour."""

from collections.abc import Callable, Iterable, Iterator
from datetime import date, timedelta, timezone, tzinfo
from typing import Any

import narwhals as nw
import numpy as np

from binfeat._common.frames import is_missing

_NUMBERS = "b", "i", "u", "f"  # kinds of dtypes
_TIMES = {"M": "dates", "m": "durations"}
_IN_ZONE = "dates in "
_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS


def times_of(series: nw.Series) -> str:
    """Return the kind of times in a series of narwhals: "durations", "dates", "dates in <zone>", or "".

    TypeError for a time zone without a name.
    """
    dtype: Any = series.dtype
    zone = _pandas_zone(series)
    if dtype == nw.Duration:
        return "durations"
    if zone is not None:
        return in_zone(_name_of(zone, series))
    if dtype == nw.Date:
        return "dates"
    if dtype == nw.Datetime:
        return in_zone(dtype.time_zone) if dtype.time_zone else "dates"
    return ""


def with_times(series: nw.Series) -> nw.Series:
    """Return a categorical series of dates or durations as a series of their type, and any other unchanged."""
    if series.dtype not in (nw.Categorical, nw.Enum):
        return series
    native: Any = series.to_native()
    if nw.dependencies.is_pyarrow_chunked_array(native):
        plain = nw.from_native(native.cast(native.type.value_type), series_only=True)
        return plain if times_of(plain) else series
    own: Any = getattr(getattr(native.dtype, "categories", None), "dtype", None)
    if getattr(own, "kind", "") not in ("m", "M"):
        return series
    return nw.from_native(native.astype(own), series_only=True)


def times_in(values: Any) -> Iterator[tuple[str | None, str]]:
    """Yield the columns of a data frame that contain times, with their kind; None as the name of any other object."""
    if nw.dependencies.is_into_dataframe(values):
        if all(getattr(own, "kind", None) in _NUMBERS for own in getattr(values, "dtypes", [None])):
            return  # a frame of pandas with numbers; to read the schema takes much longer
        frame = nw.from_native(values, eager_only=True)
        for name in [name for name, own in frame.schema.items() if not own.is_numeric()]:
            series = with_times(frame.get_column(name))
            times = times_of(series) or (times_of_objects(series.to_numpy()) if series.dtype == nw.Object else "")
            if times:
                yield name, times
        return
    first = values  # the first value of nested lists, which has the type of all values
    while isinstance(first, list | tuple) and first:
        first = first[0]
    array = np.asarray(first)
    times = _TIMES.get(array.dtype.kind) or (times_of_objects(array.ravel()) if array.dtype.kind == "O" else "")
    if times:
        yield None, times


def times_of_objects(values: Iterable[Any]) -> str:
    """Return "durations" or "dates" (without a time zone) if all objects are such or missing, otherwise ""."""
    found = ""
    for value in values:
        if is_missing(value):
            continue
        is_date = isinstance(value, date | np.datetime64) and getattr(value, "tzinfo", None) is None
        times = "durations" if isinstance(value, timedelta | np.timedelta64) else "dates" if is_date else ""
        if not times or found not in ("", times):
            return ""
        found = times
    return found


def in_zone(zone: str) -> str:
    return _IN_ZONE + zone


def zone_in(times: str) -> str:
    return times.removeprefix(_IN_ZONE) if times.startswith(_IN_ZONE) else ""


def _pandas_zone(series: nw.Series) -> tzinfo | None:
    """Return the zone of a pandas column; narwhals 2.29 recognizes only names of letters and slashes."""
    return getattr(getattr(series.to_native(), "dtype", None), "tz", None)


def _name_of(zone: tzinfo, series: nw.Series) -> str:
    """Return the name of the zone of a pandas column, or its hours from UTC; zones of dateutil may have neither."""
    offset, named = zone.utcoffset(None), getattr(zone, "key", None) or getattr(zone, "zone", None)  # zoneinfo, pytz
    name = named or str(zone if offset is None else timezone(offset))
    try:
        type(series.to_native().dtype)(tz=name)
    except (LookupError, TypeError, ValueError):
        raise TypeError(
            f"column {series.name!r} of X has the time zone {zone!r}, which has no name. Convert it to a named zone, "
            "for example by Series.dt.tz_convert('Europe/Berlin')."
        ) from None
    return name


def is_time(times: str) -> bool:
    return times in ("durations", "dates") or (times.startswith(_IN_ZONE) and zone_in(times) != "")


def days_of(series: nw.Series, times: str) -> np.ndarray:
    """Return a series in days, float64 with NaN for missing values: durations, or days since 1970 in local time.

    `times` is the kind of times, with the zone, as `times_of` returns it. Dates of another zone are converted;
    TypeError if the series holds times of another kind.
    """
    own, zone = times_of(series), zone_in(times)
    if own != times and not (zone and zone_in(own)):
        raise TypeError(
            f"contains {own or 'no times'}, but contained {times or 'no times'} in fit. {_remedy(own, times)}"
        )
    if series.dtype == nw.Date:
        series = series.cast(nw.Datetime("us"))
    if zone and _pandas_zone(series) is not None:
        series = nw.from_native(series.to_native().dt.tz_convert(zone).dt.tz_localize(None), series_only=True)
    elif zone:
        series = series.dt.convert_time_zone(zone).dt.replace_time_zone(None)
    values = series.to_numpy()
    unit = np.timedelta64(1, "D")
    return (values - np.datetime64(0, "D") if values.dtype.kind == "M" else values) / unit


def _remedy(own: str, times: str) -> str:
    """Return how to convert a column of pandas from one kind of times, or none, to another."""
    if not (own.startswith("dates") and times.startswith("dates")):
        return "Convert it, for example by pandas.to_datetime, pandas.to_timedelta or Series.astype"
    if zone_in(own):
        return "Remove the time zone by Series.dt.tz_localize(None)"
    return "Add the time zone of the dates, for example by Series.dt.tz_localize('UTC')"


def time_in_words(days: float, times: str) -> str:
    """Convert days to a string: a date with seconds, or a duration."""
    if times == "durations":
        return f"{days:.6g} days"
    second = np.datetime64(0, "s") + np.timedelta64(round(np.clip(days, -1e8, 1e8) * 86_400), "s")
    return str(second).removesuffix("T00:00:00")


def _milliseconds(days: np.ndarray) -> np.ndarray:
    """Return the time of day in rounded milliseconds, so that equal times of two days are equal numbers."""
    return np.rint(days % 1 * _DAY_MS) % _DAY_MS


def _day_of_year(days: np.ndarray) -> np.ndarray:
    dates = np.floor(days).astype(np.int64).astype("M8[D]")
    return (dates - dates.astype("M8[Y]")) / np.timedelta64(1, "D") + 1


# The period in days, and the part as a function of days without NaN; days of the year start at 1, days of the week at 0
# (Monday).
PARTS: dict[str, tuple[float, Callable[[np.ndarray], np.ndarray]]] = {
    "day of year": (366, _day_of_year),
    "day of week": (7, lambda days: (np.floor(days) + 3) % 7),  # 1970 began on a Thursday
    "hour": (1, lambda days: _milliseconds(days) / _HOUR_MS),
}


def parts_in(days: np.ndarray) -> list[str]:
    """Return names of the parts that are periodic within the range of the dates and not constant."""
    days = days[~np.isnan(days)]
    span = np.ptp(days) if days.size else 0.0
    return [name for name, (period, part) in PARTS.items() if span > period and np.ptp(part(days)) > 0]
