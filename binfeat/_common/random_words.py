"""Numbers that are the same on every computer: random words by seed, index and purpose, and rounding."""

import functools
from typing import Any, TypeAlias

import numpy as np

# Purposes. Streams of the same seed and index with different purposes are independent.
PITCH, SHIFT, KEYS, FREQUENCIES, RADII, SOBOL, CALLER, PHASES, SIGNS, ORDER, NORMALS = range(11)

_Halves: TypeAlias = tuple[Any, ...]  # high and low halves of 128-bit numbers, uint64

_PCG_MULTIPLIER, _MODULUS = 0x2360ED051FC65DA44385DF649FCCF645, 2**128  # of O'Neill's PCG64, as in NumPy


def stream(seed: int, index: int, purpose: int) -> np.random.PCG64:
    """Return a bit generator for one purpose; `index` is the number of a grid or a block."""
    return np.random.PCG64(np.random.SeedSequence([seed, index, purpose]))


def words_at(seed: int, index: int, purpose: int, places: np.ndarray) -> np.ndarray:
    """Return the words of a stream at increasing `places`, without computing the words between."""
    state = stream(seed, index, purpose).state["state"]
    powers, sums = _jumps_of(np.ascontiguousarray(places, dtype=np.int64).tobytes())
    high, low = _add(_multiply(powers, _halves(state["state"])), _multiply(sums, _halves(state["inc"])))
    turn, mixed = high >> np.uint64(58), high ^ low
    return (mixed >> turn) | (mixed << ((np.uint64(64) - turn) & np.uint64(63)))


@functools.lru_cache(maxsize=4)
def _jumps_of(places: bytes) -> tuple[_Halves, _Halves]:
    """Return the multiplier and the factor of the increment from the seed's state to the state of each place."""
    powers, sums, power, total, last = [], [], 1, 0, 0
    for place in np.frombuffer(places, np.int64).tolist():
        step, growth, steps = _PCG_MULTIPLIER, 1, place + 1 - last
        while steps:  # by doubling (Brown 1994)
            if steps & 1:
                power, total = power * step % _MODULUS, (total * step + growth) % _MODULUS
            step, growth, steps = step * step % _MODULUS, growth * (step + 1) % _MODULUS, steps >> 1
        last = place + 1
        powers.append(power)
        sums.append(total)
    return _columns(powers), _columns(sums)


def _columns(numbers: list[int]) -> _Halves:
    return tuple(np.array([half(number) for number in numbers], np.uint64) for half in (lambda n: n >> 64, _low))


def _low(number: int) -> int:
    return number & (2**64 - 1)


def _halves(number: int) -> tuple[np.uint64, np.uint64]:
    return np.uint64(number >> 64), np.uint64(_low(number))


def _add(first: _Halves, second: _Halves) -> _Halves:
    low = first[1] + second[1]
    return first[0] + second[0] + (low < first[1]), low


@np.errstate(over="ignore")
def _multiply(numbers: _Halves, factor: tuple[np.uint64, np.uint64]) -> _Halves:
    """Return products modulo 2^128 of numbers and one factor, all as halves."""
    (high, low), (factor_high, factor_low) = numbers, factor
    half, mask = np.uint64(32), np.uint64(2**32 - 1)
    a, b, c, d = low >> half, low & mask, factor_low >> half, factor_low & mask
    middle = (b * d >> half) + (a * d & mask) + (b * c & mask)
    carried = a * c + (a * d >> half) + (b * c >> half) + (middle >> half)
    return carried + high * factor_low + low * factor_high, low * factor_low


def uniforms(words: np.ndarray) -> np.ndarray:
    """Convert 64-bit words to uniform numbers in the open interval (0, 1)."""
    return np.minimum(((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53, 1.0 - 2.0**-53)


def round_significant(x: np.ndarray, bits: int) -> np.ndarray:
    """Round positive numbers to `bits` significant bits, to remove differences in the last digits."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)
