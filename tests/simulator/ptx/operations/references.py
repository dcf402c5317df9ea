"""Exact references, by Python's integers and fractions, and difficult operands for the tests of PTX operations."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cudart_py.simulator.ptx.arrays.expressions import array_function
from cudart_py.simulator.ptx.compiling.emitters.lowered import Lowers, plan_of
from cudart_py.simulator.ptx.compiling.opcode_table.opcodes import find_forms

Array = NDArray[Any]

# By format: significand bits including the hidden one, exponent of the least normal number, largest exponent.
FORMATS = {
    "f64": (53, -1022, 1023),
    "f32": (24, -126, 127),
    "f16": (11, -14, 15),
    "bf16": (8, -126, 127),
    "tf32": (11, -126, 127),
}


def operation(opcode: str) -> Callable[..., Array]:
    """Return the function of arrays that implements an opcode in the table of opcodes."""
    form = find_forms(opcode)[0]
    emit = form.row.emit
    assert isinstance(emit, Lowers), opcode
    told, types, keywords = plan_of(emit, form)
    return array_function(partial(emit.lowering, *told, **keywords), *(type for type in types if type))


def integers(dtype: Any, count: int, seed: int) -> Array:
    """Draw integers of all magnitudes, including the limits of the type and small values."""
    rng = np.random.default_rng(seed)
    info = np.iinfo(dtype)
    edges = [info.min, info.max, info.max - 1, 0, 1, 2, info.max // 2, info.max // 2 + 1]
    raw = rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
    raw = np.right_shift(raw, rng.integers(0, info.bits, count).astype(dtype))
    chosen = rng.integers(0, 4, count) == 0
    raw[chosen] = rng.choice(np.array(edges, dtype), int(chosen.sum()))
    return raw


def floats(dtype: Any, count: int, seed: int) -> Array:
    """Draw floats: random bit patterns, values near one, values with few significant bits, and special values."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    info = np.finfo(kind)
    patterns = rng.integers(0, 1 << info.bits, count, f"u{kind.itemsize}").view(kind)
    near_one = rng.standard_normal(count).astype(kind)
    few_bits = (rng.integers(-64, 64, count) * 2.0 ** rng.integers(-4, 4, count)).astype(kind)
    tiny = (rng.integers(1, 2000, count) * float(info.smallest_subnormal)).astype(kind)
    small = (near_one * float(info.smallest_normal) * 4).astype(kind)
    specials = np.array([0, 1, 0.5, math.inf, math.nan, info.max, info.smallest_normal, info.smallest_subnormal], kind)
    special = rng.choice(np.concatenate([specials, -specials]), count)
    table = np.stack([patterns, near_one, near_one, few_bits, tiny, small, special])
    result: Array = table[rng.integers(0, len(table), count), np.arange(count)]
    return result


def round_exact(exact: Fraction, kind: str, rounding: str, negative_zero: bool = False) -> float:
    """Round an exact number once to a format; ``negative_zero`` is the sign of an exact zero."""
    if exact == 0:
        return -0.0 if negative_zero else 0.0
    digits, least, largest = FORMATS[kind]
    negative = exact < 0
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, least) - digits + 1)
    whole, rest = divmod(size / unit, 1)
    directed = {"rz": False, "rm": negative, "rp": not negative}
    half_up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and (whole & 1 == 1 or rounding == "rna"))
    whole += directed.get(rounding, half_up) if rest else False
    limit = Fraction(2) ** (largest + 1)
    if whole * unit < limit:
        value = float(whole * unit)
    else:
        value = math.inf if directed.get(rounding, True) else float(limit - Fraction(2) ** (largest + 1 - digits))
    return -value if negative else value


def ieee_sum(x: float, y: float, z: float, kind: str, rounding: str = "rn") -> float:
    """Return ``x * y + z`` with one rounding, as IEEE 754 requires."""
    if not math.isfinite(x) or not math.isfinite(y) or not math.isfinite(z):
        # A finite product is not rounded before it is added to an infinity.
        return (0.0 if math.isfinite(x) and math.isfinite(y) else x * y) + z
    signs = math.copysign(1, x) != math.copysign(1, y), math.copysign(1, z) < 0
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    return round_exact(exact, kind, rounding, any(signs) if rounding == "rm" else all(signs))


def ieee_product(x: float, y: float, kind: str, rounding: str = "rn") -> float:
    return ieee_sum(x, y, math.copysign(0.0, x * y), kind, rounding)


def ieee_quotient(x: float, y: float, kind: str, rounding: str = "rn") -> float:
    if not math.isfinite(x) or not math.isfinite(y) or y == 0:
        return float(np.float64(x) / np.float64(y))
    return round_exact(Fraction(x) / Fraction(y), kind, rounding, math.copysign(1, x) != math.copysign(1, y))


def ieee_root(x: float, kind: str, rounding: str = "rn") -> float:
    """Return the square root as IEEE 754 requires, from an integer root with many spare bits and a sticky bit."""
    if not math.isfinite(x) or x <= 0:
        return float(np.sqrt(np.float64(x)))
    scaled = int(Fraction(x) * 4**1200)
    root = math.isqrt(scaled)
    return round_exact(Fraction(2 * root + (root * root != scaled), 2 * 2**1200), kind, rounding)


def bits_of(value: float, kind: str) -> int:
    """Return the bit pattern of a value that the format can represent; a NaN is the canonical one."""
    if math.isnan(value):
        return 0x7FFFFFFF if kind == "tf32" else 0x7FFF
    if kind == "f16":
        return int(np.float16(value).view(np.uint16))
    single = int(np.float32(value).view(np.uint32))
    return single if kind == "tf32" else single >> 16


def assert_same_floats(actual: Array, expected: list[float], *operands: Array) -> None:
    """Compare values and the signs of zeros; all NaNs are equal. A failure gives the first wrong lane's operands."""
    wanted = np.array(expected, actual.dtype)
    same = (actual == wanted) & (np.signbit(actual) == np.signbit(wanted)) | np.isnan(actual) & np.isnan(wanted)
    if not same.all():
        lane = int(np.argmin(same))
        shown = [float(o[lane]).hex() for o in operands]
        raise AssertionError(f"lane {lane}: operands {shown} gave {actual[lane]!r}, expected {wanted[lane]!r}")
