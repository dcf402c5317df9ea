"""Error-free transformations and single roundings: the arithmetic beneath PTX's floating-point opcodes.

Everything works on float64 arrays. A number that needs more than 53 bits is kept as a pair ``(high, low)``: ``high``
is the rounded value and ``low`` the rest, or something of the rest's sign and smaller than half a unit of ``high``,
which decides every rounding the same way.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# The NaNs that NVIDIA's hardware makes. Single precision always gives this one; double precision keeps the payload
# of the first NaN operand, made quiet, and gives the default only where no operand was NaN. Half precision as single.
NAN_F32 = np.uint32(0x7FFFFFFF).view(np.float32)
NAN_F64 = np.uint64(0xFFF8000000000000).view(np.float64)
NAN_F16 = np.uint16(0x7FFF)
NAN_BF16 = np.uint16(0x7FFF)

LEAST_NORMAL_F32 = np.float32(2.0**-126)
# Any subnormal number times this is inexact, and so is the least normal one.
_SHRINK_F32 = np.float32(1 - 2.0**-24)
# Far enough above the subnormal range of float32, and exact for every float64 that comes from float32.
_UP = 2.0**64

_QUIET_F64 = np.uint64(1 << 51)
_SPLITTER = 2.0**27 + 1.0


class Scratch(threading.local):
    """Work arrays that are kept, so that fresh pages are not faulted in for every temporary.

    The arrays of one slot share storage: a caller uses each slot for one purpose at a time.
    """

    _MOST_VIEWS = 512

    def __init__(self) -> None:
        self._buffers: dict[str, Array] = {}
        self._views: dict[tuple[str, tuple[int, ...]], Array] = {}

    def take(self, slot: str, shape: tuple[int, ...]) -> Array:
        """Return an uninitialised float64 array of a shape."""
        view = self._views.get((slot, shape))
        if view is None:
            size = 1
            for extent in shape:
                size *= extent
            buffer = self._buffers.get(slot)
            if buffer is None or buffer.size < size or len(self._views) >= self._MOST_VIEWS:
                # Older views keep an outgrown buffer alive: let go of them with it.
                self._views.clear()
                buffer = self._buffers[slot] = np.empty(max(size, 4096), np.float64)
            view = self._views[slot, shape] = buffer[:size].reshape(shape)
        return view


scratch = Scratch()


def keep_freed_pages() -> None:
    """Make the C library keep the memory of freed arrays, so that the next temporary needs no fresh pages.

    Its allocator takes blocks above a threshold from the system and returns them at once, but raises the threshold
    to the size of any block up to 32 MiB that it sees freed. No page of such a block is touched, so this costs nothing;
    other allocators just ignore it. Call once before running kernels.
    """
    np.empty((32 << 20) - (64 << 10), np.uint8)


# --- NaN and subnormal results ------------------------------------------------------------------------------------


def has_nan(a: Array) -> bool:
    """Return whether any number is NaN."""
    # The maximum of an array with a NaN is NaN; that is the cheapest search for one.
    greatest = np.maximum.reduce(a, axis=None, initial=-np.inf)
    return bool(greatest != greatest)


def canonical_f32(result: Array) -> Array:
    """Replace NaNs in place by the hardware's one, and give the array back."""
    if has_nan(result):
        np.copyto(result, NAN_F32, where=np.isnan(result))
    return result


def canonical_f64(result: Array, *operands: Array) -> Array:
    """Replace NaNs in place by the first NaN operand, made quiet, or the default NaN; give the array back."""
    if has_nan(result):
        lanes = np.isnan(result)
        chosen = np.where(lanes, NAN_F64, result)
        for operand in reversed(operands):
            quiet = (np.asarray(operand).view(np.uint64) | _QUIET_F64).view(np.float64)
            chosen = np.where(lanes & np.isnan(operand), quiet, chosen)
        result[...] = chosen
    return result


def has_tiny_f32(a: Array) -> bool:
    """Return whether any number is subnormal or the least normal one (of either sign); zeros are neither."""
    # One multiplication whose underflow the processor signals costs less than comparisons of magnitudes.
    try:
        with np.errstate(under="raise"):
            np.multiply(a, _SHRINK_F32)
    except FloatingPointError:
        return True
    return False


def flush_f32(a: Array) -> Array:
    """Return the array with its subnormal numbers as zeros of their sign (``.ftz`` of operands and exact results)."""
    if not has_tiny_f32(a):
        return a
    return np.where(np.abs(a) < LEAST_NORMAL_F32, a * np.float32(0), a)


def flush_rounded_f32(result: Array, high: Array, low: Array | None, rounding: str) -> Array:
    """Return results with zeros of their sign for those whose ``high + low`` is subnormal (``.ftz`` of results).

    Recorded outputs of an H200 settle when a result counts as subnormal: when it is below the least normal number
    after a rounding to 24 bits that knows no least exponent. So 2**-126 * 0x3f7fffff is flushed, although rounding in
    the subnormal range gives the least normal number; 0x00800001 * 0x3f7ffffe in ``rn`` is not.
    """
    if not has_tiny_f32(result):
        return result
    scaled = narrow_f32(high * _UP, None if low is None else low * _UP, rounding)
    tiny = (np.abs(result) <= LEAST_NORMAL_F32) & (np.abs(scaled) < LEAST_NORMAL_F32 * np.float32(_UP))
    return np.where(tiny, result * np.float32(0), result)


def saturate(a: Array) -> Array:
    """Clamp to the range from +0 to 1, NaN becoming +0 (``.sat``)."""
    zero, one = a.dtype.type(0), a.dtype.type(1)
    # Adding zero turns a negative zero positive.
    result: Array = np.asarray(np.clip(a, zero, one) + zero)
    if has_nan(result):
        np.copyto(result, zero, where=np.isnan(result))
    return result


# --- error-free transformations -----------------------------------------------------------------------------------


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Add exactly: the rounded sum and its error. Overflow gives an error that is not finite."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def ordered_two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Add exactly whenever the sum itself is finite, by ordering the operands by size."""
    larger = np.abs(a) >= np.abs(b)
    total = a + b
    error: Array = np.where(larger, b, a) - (total - np.where(larger, a, b))
    return total, error


def _split(a: Array) -> tuple[Array, Array]:
    """Cut into two halves of 26 bits, whose products are exact."""
    scaled = a * _SPLITTER
    high: Array = scaled - (scaled - a)
    return high, a - high


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Multiply exactly: the rounded product and its error, for operands far from overflow and underflow."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    error: Array = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def to_odd(high: Array, low: Array) -> Array:
    """Round a pair to odd: where a rest is cut off, the last bit of the result is one.

    A later rounding to fewer bits (two at least) then gives what a single rounding would. NaN rests count as none.
    """
    bits = np.array(high).view(np.int64)
    inexact = (np.abs(low) > 0) & (bits & 1 == 0)
    # Away from zero the pattern grows, toward zero it shrinks.
    bits += np.where((low > 0) == (high > 0), 1, -1) * inexact
    return bits.view(np.float64)


def multiply_add_by_power(a: Array, b: Array, c: Array) -> Array | None:
    """Multiply by one factor for all lanes and add, where the product is exact in the operands' own format.

    That is so for zeros and powers of two, but for the limits of the exponent. Elsewhere the result is None.
    """
    if a.ndim != 0 or np.abs(np.frexp(a)[0]) not in (0.0, 0.5):
        return None
    try:
        with np.errstate(over="raise", under="raise"):
            product = np.multiply(a, b)
    except FloatingPointError:
        return None
    return np.asarray(np.add(product, c))


# --- directed rounding --------------------------------------------------------------------------------------------


def direct(nearest: Array, rest: Array, rounding: str) -> Array:
    """Return a result rounded to nearest as one of a directed rounding (``rz``, ``rm``, ``rp``; ``rn`` keeps it).

    ``rest`` has the sign of the exact result minus ``nearest``. Works for float32 and float64 results.
    """
    if rounding == "rn":
        return nearest
    infinity = nearest.dtype.type(np.inf)
    if rounding == "rz":
        step = ((rest < 0) & (nearest > 0)) | ((rest > 0) & (nearest < 0))
        target = nearest.dtype.type(0)
    elif rounding == "rm":
        step, target = rest < 0, -infinity
    else:
        step, target = rest > 0, infinity
    moved = np.nextafter(nearest, target)
    # A step down from the least positive number, or up from the greatest negative one, keeps the sign of its zero.
    moved = np.where(moved == 0, np.copysign(moved, nearest), moved)
    return np.where(step, moved, nearest)


def narrow_f32(high: Array, low: Array | None, rounding: str) -> Array:
    """Round float64 numbers, or pairs, to float32 with one rounding."""
    if rounding == "rn":
        return (high if low is None else to_odd(high, low)).astype(np.float32)
    nearest = high.astype(np.float32)
    rest: Array = high - nearest
    if low is not None:
        rest = np.where(rest == 0, low, rest)
    return direct(nearest, rest, rounding)


def overflow_rest(nearest: Array, rest: Array, finite: Array) -> Array:
    """Set the rest to point back from an infinity that finite operands overflowed to."""
    return np.where(np.isinf(nearest) & finite, -np.sign(nearest), rest)


def round_scaled(high: Array, low: Array, exponent: Array, rounding: str) -> Array:
    """Round ``(high + low) * 2**exponent`` once into float64, through its subnormal range and into overflow.

    The pair must be non-overlapping or ``high`` zero, its ``low`` rounded to odd, and its size moderate.
    """
    total = high + low
    rest = low - (total - high)
    size = np.frexp(total)[1] + exponent
    subnormal = (size <= -1022) & (total != 0)
    if np.any(subnormal):
        # In scaled terms one unit of the subnormal range; a far greater one rounds to the same zero or least number.
        unit_exponent = np.minimum(-1074 - exponent, 500)
        # Adding 2**52 units makes that unit the last bit of the sum, so that the addition rounds where it must.
        magic = np.copysign(np.ldexp(1.0, unit_exponent + 52), total)
        shifted, error = two_sum(magic, high)
        tail = to_odd(*two_sum(error, low))
        rounded = shifted + tail
        count = np.copysign(rounded - magic, total)
        scale = np.where(subnormal, -1074 - unit_exponent, exponent)
        total, rest = (
            np.where(subnormal, count, total),
            np.where(subnormal, tail - (rounded - shifted), rest),
        )
        exponent = scale
    result = np.ldexp(total, exponent)
    return direct(result, overflow_rest(result, rest, np.isfinite(total)), rounding)
