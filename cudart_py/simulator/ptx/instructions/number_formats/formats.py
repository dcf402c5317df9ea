"""The 8-bit and 16-bit float formats as bit patterns: widening to single precision, and rounding from wider numbers.

A pattern is an unsigned integer whose highest bit is the number's sign. Widening turns a NaN into the hardware's NaN of
single precision, but a NaN of bf16 keeps its pattern. Rounding turns a NaN into the pattern in which all bits but the
sign are set.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..values import Value, is_nan, minimum, rarely, real, where
from .rounding import direct, odd_single

_INFINITY_F32 = 0x7F800000
_NAN_F32 = 0x7FFFFFFF


@dataclass(frozen=True)
class Format:
    """A format: its width and its fraction in bits, the exponent of its smallest normal number (`least`), and patterns.

    `above` is the first pattern above the patterns of finite numbers; it represents an infinity or a NaN.
    """

    width: int
    fraction: int
    least: int
    above: int
    has_infinity: bool = True

    @property
    def sign(self) -> int:
        """Return the sign bit."""
        return 1 << self.width - 1

    @property
    def nan(self) -> int:
        """Return the pattern that NaNs become."""
        return self.sign - 1

    @property
    def type(self) -> str:
        """Return the integer type of patterns."""
        return f"u{self.width}"

    @property
    def shift(self) -> int:
        """Return how many more fraction bits single precision has."""
        return 23 - self.fraction

    @property
    def least_normal(self) -> int:
        """Return the pattern of the smallest normal number."""
        return 1 << self.fraction


FORMATS = {
    "f16": Format(16, 10, -14, 0x7C00),
    "bf16": Format(16, 7, -126, 0x7F80),
    "e5m2": Format(8, 2, -14, 0x7C),
    "e4m3": Format(8, 3, -6, 0x7F, has_infinity=False),
}


def flush(kind: str, a: Value) -> Value:
    """Replace subnormal numbers by zeros of the same sign."""
    form = FORMATS[kind]
    return where((a & form.sign - 1) < form.least_normal, a & form.sign, a)


def to_single(kind: str, a: Value, ftz: bool = False) -> Value:
    """Widen patterns to single precision; with ``ftz``, flush subnormal ones first."""
    form = FORMATS[kind]
    if ftz:
        a = flush(kind, a)
    bits = a.to("u32")
    if kind == "bf16":
        return (bits << 16).read_as("f32")
    # Exponent and fraction, moved to their places in single precision, represent the number divided by a power of two.
    size = (bits & form.sign - 1) << form.shift
    power = real(a.builder, "f32", 2.0 ** (126 + form.least))
    scaled = (size.read_as("f32") * power).bits | (bits & form.sign) << 32 - form.width
    above = form.above << form.shift
    special = bits.like(_NAN_F32)
    if form.has_infinity:
        special = where(size > above, special, scaled | _INFINITY_F32)
    return rarely(size >= above, where(size >= above, special, scaled), scaled).read_as("f32")


def half_to_double(a: Value, single: Value) -> Value:
    """Widen a pattern of f16, whose number is `single`, to double precision, in which a NaN keeps its payload."""
    number = single.as_number("f64")
    bits = a.to("u64")
    nan = (bits & 0x8000) << 48 | (bits & 0x3FF | 0x1FFE00) << 42
    return rarely(is_nan(single), where(is_nan(single), nan.read_as("f64"), number), number)


def nearest(kind: str, a: Value, *, finite: bool = False) -> Value:
    """Round single precision to patterns, to nearest even.

    Overflow gives `Format.above`, or with `finite`, which bf16 doesn't support, the largest finite number.
    """
    form = FORMATS[kind]
    bits = a.bits
    size = bits & _NAN_F32
    odd = (size >> form.shift) & 1
    # The smaller exponent bias is accounted for below. A carry out of the fraction increments the exponent, from the
    # largest finite number to the pattern above it.
    rounded = (size + ((1 << form.shift - 1) - 1) + odd) >> form.shift
    if form.least > -126:
        rounded = rounded - (126 + form.least << form.fraction)
        # The last bit of this power of two has the same weight as the last bit of the format's subnormal numbers, so
        # the addition rounds there.
        power = a.real(2.0 ** (form.least - form.fraction + 23))
        subnormal = size < a.real(2.0**form.least).bits
        shifted = (size.read_as("f32") + power).bits - power.bits
        rounded = rarely(subnormal, where(subnormal, shifted, rounded), rounded)
        rounded = minimum(rounded, form.above - finite)
    rounded = rounded | bits >> 32 - form.width & form.sign
    return rarely(is_nan(a), where(size > _INFINITY_F32, rounded.like(form.nan), rounded), rounded).to(form.type)


def narrow(kind: str, high: Value, low: Value | None = None, rounding: str = "rn") -> Value:
    """Round single or double precision, or pairs of double precision, to patterns of a format with an infinity."""
    single = high if high.type == "f32" else odd_single(high, low)
    pattern = nearest(kind, single)
    if rounding == "rn":
        return pattern
    return direct(pattern, single - to_single(kind, pattern), rounding)


def finite(kind: str, a: Value) -> Value:
    """Replace infinities by the largest finite numbers, whose patterns are one less (``.satfinite``)."""
    form = FORMATS[kind]
    return where((a & form.sign - 1).equals(form.above), a - 1, a)


def rectified(kind: str, a: Value) -> Value:
    """Replace negative numbers by +0 (``.relu``); NaNs, which must be canonical, have no sign."""
    return where(a >= FORMATS[kind].sign, a.like(0), a)


def saturated(kind: str, a: Value) -> Value:
    """Clamp to the range from +0 to 1, NaN becoming +0 (``.sat``)."""
    form = FORMATS[kind]
    # Patterns increase with the number; patterns above infinity's are NaNs and negative numbers.
    one = (-form.least + 1) << form.fraction
    return where(a > form.above, a.like(0), minimum(a, one))


def to_tf32(a: Value, rounding: str) -> Value:
    """Round single precision to the ten fraction bits of tf32, as patterns of single precision."""
    bits = a.bits
    bump = {"rn": ((bits >> 13) & 1) + 0xFFF, "rna": bits.like(0x1000), "rz": bits.like(0)}[rounding]
    return where(is_nan(a), bits.like(_NAN_F32), bits + bump & ~0x1FFF)
