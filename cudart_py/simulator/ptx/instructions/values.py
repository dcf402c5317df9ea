"""The values that lowerings compute with, and the primitives from which an engine builds them."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from functools import partialmethod
from typing import Any, Protocol, TypeAlias

# A builder's representation of a value: an LLVM vector, or a NumPy expression.
Raw = Any
_Unary: TypeAlias = Callable[[Raw], Raw]
_Binary: TypeAlias = Callable[[Raw, Raw], Raw]

_FOLDS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "and_": operator.and_, "or_": operator.or_, "xor": operator.xor, "least": min, "greatest": max,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip  # rows of a table
# LLVM's names of the same comparisons for floats.
_ORDERS = {"==": "oeq", "!=": "une", "<": "olt", "<=": "ole", ">": "ogt", ">=": "oge"}
_UNTYPED = {
    "b": "u",
    "f16": "u16",
    "bf16": "u16",
    "tf32": "u32",
    "e4m3": "u8",
    "e5m2": "u8",
    "f16x2": "u32",
    "bf16x2": "u32",
    "u16x2": "u32",
    "s16x2": "s32",
    "e4m3x2": "u16",
    "e5m2x2": "u16",
}


class Builder(Protocol):
    """The primitives that an engine implements.

    Each primitive takes one raw value per operand and returns one for the same lanes. Types are the PTX types that
    `Value` has. Integers are bit patterns; where it matters, `signed` says how to interpret them. Floats are rounded to
    nearest even. `flushes` says that the processor itself flushes subnormal operands and results of single precision.
    Primitives that LLVM's builder has, too, have its names.
    """

    flushes: bool

    # Wrapped sums and differences, and the low halves of products, of integers.
    add: _Binary
    sub: _Binary
    mul: _Binary
    # The bits that are set in both, in either, and in exactly one, and the complement.
    and_: _Binary
    or_: _Binary
    xor: _Binary
    not_: _Unary
    # Sums, differences, products, quotients and square roots of floats.
    fadd: _Binary
    fsub: _Binary
    fmul: _Binary
    fdiv: _Binary
    root: _Unary
    # The smaller and the larger floats; if both are equal or one is NaN, either of them.
    float_least: _Binary
    float_greatest: _Binary

    def constant(self, type: str, bits: int) -> Raw:
        """Return the same bits for all lanes."""

    def wide_product(self, x: Raw, y: Raw, signed: bool) -> Raw:
        """Return whole products of integers of at most 32 bits, in twice the width."""

    def high_product(self, x: Raw, y: Raw, signed: bool) -> Raw:
        """Return the upper halves of products of 64-bit integers."""

    def quotient(self, x: Raw, y: Raw, signed: bool) -> Raw:
        """Return quotients rounded toward zero; any value if the divisor is 0."""

    def shift_left(self, x: Raw, by: Raw) -> Raw:
        """Shift left by unsigned amounts of the same width; an amount of at least the width gives zero."""

    def shift_right(self, x: Raw, by: Raw, signed: bool) -> Raw:
        """Shift right by unsigned amounts of the same width; at least the width gives zero, or copies of the sign."""

    def compare(self, relation: str, x: Raw, y: Raw, signed: bool) -> Raw:
        """Compare integers; `relation` is Python's operator."""

    def floats(self, relation: str, x: Raw, y: Raw) -> Raw:
        """Compare floats; `relation` is LLVM's name, such as ``olt`` or ``uno``."""

    def least(self, x: Raw, y: Raw, signed: bool) -> Raw:
        """Return the smaller integers."""

    def greatest(self, x: Raw, y: Raw, signed: bool) -> Raw:
        """Return the larger integers."""

    def choose(self, truth: Raw, x: Raw, y: Raw) -> Raw:
        """Return the values of `x` where a predicate holds, and of `y` elsewhere."""

    def resize(self, x: Raw, type: str, signed: bool) -> Raw:
        """Truncate integers or predicates to another width, or extend them with zeros or the sign."""

    def reinterpret(self, x: Raw, type: str) -> Raw:
        """Return the same bits as another type of the same width, one of the two a float."""

    def flush(self, x: Raw) -> Raw:
        """Replace subnormal numbers of single precision by zeros of the same sign."""

    def flushed(self, *values: Raw) -> list[Raw]:
        """Flush the operands of an instruction with ``.ftz``, unless the processor does it."""

    def joined(self, low: Raw, high: Raw) -> Raw:
        """Return 128 bits made of 64-bit halves."""

    def halves(self, x: Raw) -> tuple[Raw, Raw]:
        """Return the lower and the upper half of 128 bits."""

    def count_ones(self, x: Raw) -> Raw:
        """Return the number of set bits, as u32."""

    def count_leading_zeros(self, x: Raw) -> Raw:
        """Return the number of leading zeros of 32 or 64 bits, as u32."""

    def reverse_bits(self, x: Raw) -> Raw:
        """Return the bits in the opposite order."""

    def fused(self, x: Raw, y: Raw, z: Raw) -> Raw:
        """Return the fused multiply-adds ``x * y + z`` of floats, rounded once."""

    def elementary(self, name: str, x: Raw) -> Raw:
        """Apply the function with this name in C and NumPy, in double precision."""

    def integral(self, rounding: str, x: Raw) -> Raw:
        """Return floats rounded to integers: ``rint``, ``trunc``, ``floor``, ``ceil``."""

    def saturate(self, x: Raw) -> Raw:
        """Clamp floats to the range from +0 to 1, NaN becoming +0."""

    def convert(self, x: Raw, type: str, signed: bool) -> Raw:
        """Convert numbers from or to a float type; the result is arbitrary if an integer can't represent it."""

    def quiet(self, x: Raw, *operands: Raw) -> Raw:
        """Replace NaNs of double precision by the hardware's: the first NaN operand, made quiet, or the default."""

    def tiny(self, x: Raw) -> Raw:
        """Return which single-precision numbers are subnormal or the smallest normal number; only for `rarely`."""

    def opaque(self, x: Raw) -> Raw:
        """Return the same bits, hiding from LLVM that they are constant."""

    def rarely(self, suspect: Raw, mended: Raw, x: Raw) -> Raw:
        """Return `mended`, which is `x` in all lanes that aren't suspect, so it needn't be computed if none is."""


def value_type(ptx_type: str) -> str:
    """Return the type of a `Value` for a PTX type: untyped bits, halves and packed types become integers."""
    if ptx_type in _UNTYPED:
        return _UNTYPED[ptx_type]
    return _UNTYPED.get(ptx_type[0], ptx_type[0]) + ptx_type[1:]


class Value:
    """One number or predicate per lane, with operators that follow its type, like the operators of NumPy's arrays.

    `type` is ``pred``, ``u8`` to ``s64``, ``f32`` or ``f64``. An int operand means the same number in all lanes.
    Integers wrap. Shifts, comparisons, minima, maxima and conversions are signed or unsigned as the type says. The bits
    of a constant are `known`, and integer constants are folded while code is generated. A `loose` result may have NaNs
    of any pattern, while the hardware has only one in single precision.
    """

    __slots__ = ("_raw", "builder", "known", "loose", "type")

    def __init__(
        self, builder: Builder, type: str, raw: Raw = None, known: int | None = None, *, loose: bool = False
    ) -> None:
        self.builder = builder
        self.type = type
        self.known = known
        self.loose = loose
        self._raw = raw

    def __bool__(self) -> bool:
        raise TypeError("a value differs between lanes: choose with where()")

    @property
    def raw(self) -> Raw:
        """Return the builder's value; a constant is created on first use."""
        if self._raw is None:
            assert self.known is not None
            self._raw = self.builder.constant(self.type, self.known)
        return self._raw

    @property
    def width(self) -> int:
        """Return the number of bits."""
        return 1 if self.type == "pred" else int(self.type[1:])

    @property
    def signed(self) -> bool:
        """Return whether the type is a signed integer."""
        return self.type[0] == "s"

    def like(self, number: int) -> Value:
        """Return a number as a constant of the same type."""
        return Value(self.builder, self.type, known=number & (1 << self.width) - 1)

    def real(self, number: float) -> Value:
        """Return a number as a constant of the same float type."""
        return real(self.builder, self.type, number)

    def of(self, raw: Raw, type: str | None = None) -> Value:
        """Wrap a builder's value, with the same type unless another is given."""
        return Value(self.builder, type or self.type, raw)

    # --- types

    @property
    def bits(self) -> Value:
        """Return the bits as an unsigned integer."""
        return self.read_as(f"u{self.width}")

    def read_as(self, type: str) -> Value:
        """Return the same bits as a type of the same width."""
        if self.type == type:
            return self
        if "f" in (self.type[0], type[0]) and self.known is None:
            return self.of(self.builder.reinterpret(self.raw, type), type)
        return Value(self.builder, type, self._raw if "f" not in (self.type[0], type[0]) else None, self.known)

    def to(self, type: str) -> Value:
        """Truncate integers or predicates to another type, or extend them with zeros or the sign."""
        result = Value(self.builder, type)
        if self.known is not None:
            result.known = self._number(self.known) & (1 << result.width) - 1
        elif result.width == self.width:
            result._raw = self.raw
        else:
            result._raw = self.builder.resize(self.raw, type, self.signed)
        return result

    def as_number(self, type: str) -> Value:
        """Return the number as another type, rounded to nearest; one of the two is a float."""
        return self.of(self.builder.convert(self.raw, type, "s" in (self.type[0], type[0])), type)

    def _number(self, bits: int) -> int:
        return bits - (1 << self.width) if self.signed and bits >> self.width - 1 else bits

    # --- arithmetic

    def _other(self, other: Value | int) -> Value:
        return other if isinstance(other, Value) else self.like(other)

    def _apply(self, name: str, other: Value | int, *, type: str | None = None, signed: bool | None = None) -> Value:
        """Apply a primitive of two operands, or fold constants; `signed` is for primitives that take it."""
        y = self._other(other)
        if self.known is not None and y.known is not None:
            x = self if not signed or self.signed else self.read_as("s" + self.type[1:])
            result = Value(self.builder, type or self.type)
            result.known = int(_FOLDS[name](x._number(self.known), x._number(y.known))) & (1 << result.width) - 1
            return result
        arguments = (self.raw, y.raw) if signed is None else (self.raw, y.raw, signed)
        if type == "pred":
            return self.of(self.builder.compare(name, *arguments), type)
        return self.of(getattr(self.builder, name)(*arguments), type)

    def _with(self, name: str, other: Value | int) -> Value:
        """Apply the primitive for floats or the primitive for integers, by the type."""
        if self.type[0] == "f":
            return self.of(getattr(self.builder, f"f{name}")(self.raw, self._other(other).raw))
        return self._apply(name, other)

    __add__ = partialmethod(_with, "add")
    __sub__ = partialmethod(_with, "sub")
    __mul__ = partialmethod(_with, "mul")
    __and__ = partialmethod(_apply, "and_")
    __or__ = partialmethod(_apply, "or_")
    __xor__ = partialmethod(_apply, "xor")

    def __rsub__(self, other: int) -> Value:
        return self.like(other) - self

    def __neg__(self) -> Value:
        if self.type[0] == "f":
            return (self.bits ^ 1 << self.width - 1).read_as(self.type)
        return 0 - self

    def __abs__(self) -> Value:
        """Return floats without their sign."""
        return (self.bits & (1 << self.width - 1) - 1).read_as(self.type)

    def __truediv__(self, other: Value) -> Value:
        return self.of(self.builder.fdiv(self.raw, other.raw))

    def __invert__(self) -> Value:
        if self.known is not None:
            return self.like(~self.known)
        return self.of(self.builder.not_(self.raw))

    def _amount(self, by: Value | int) -> Value:
        """Return a shift amount in the width of the shifted value; an amount that doesn't fit becomes the width."""
        amount = by if isinstance(by, Value) else self.like(min(by, self.width))
        if amount.width > self.width:
            amount = minimum(amount.read_as(f"u{amount.width}"), self.width)
        return amount.read_as(f"u{amount.width}").to(f"u{self.width}")

    def __lshift__(self, by: Value | int) -> Value:
        amount = self._amount(by)
        if amount.known == 0:
            return self
        if amount.known is not None and (self.known is not None or amount.known >= self.width):
            return self.like((self.known or 0) << min(amount.known, self.width))
        return self.of(self.builder.shift_left(self.raw, amount.raw))

    def __rshift__(self, by: Value | int) -> Value:
        amount = self._amount(by)
        if amount.known == 0:
            return self
        if amount.known is not None and self.known is not None:
            return self.like(self._number(self.known) >> min(amount.known, self.width))
        return self.of(self.builder.shift_right(self.raw, amount.raw, self.signed))

    # --- comparisons

    def compare(self, relation: str, other: Value | int) -> Value:
        """Compare by Python's operator; for floats, all comparisons but ``!=`` are false if either is NaN."""
        if self.type[0] == "f":
            return self.of(self.builder.floats(_ORDERS[relation], self.raw, self._other(other).raw), "pred")
        return self._apply(relation, other, type="pred", signed=self.signed)

    # These return in which lanes the comparisons hold.
    equals = partialmethod(compare, "==")
    differs = partialmethod(compare, "!=")
    __lt__ = partialmethod(compare, "<")
    __le__ = partialmethod(compare, "<=")
    __gt__ = partialmethod(compare, ">")
    __ge__ = partialmethod(compare, ">=")


def real(builder: Builder, type: str, number: float) -> Value:
    """Return a number as a constant of a float type."""
    letters = {"f32": "<fI", "f64": "<dQ"}[type]
    [bits] = struct.unpack(f"<{letters[2]}", struct.pack(letters[:2], number))
    return Value(builder, type, known=bits)


def rarely(suspect: Value, mended: Value, x: Value) -> Value:
    """Return `mended`, which is `x` in all lanes that aren't suspect: NumPy computes it only if any lane is."""
    return x.of(x.builder.rarely(suspect.raw, mended.raw, x.raw))


def is_nan(x: Value) -> Value:
    """Return which floats are NaN."""
    return x.compare("!=", x)


def where(truth: Value, x: Value, y: Value | int) -> Value:
    """Return the values of `x` where a predicate holds, and of `y` elsewhere."""
    other = x.like(y) if isinstance(y, int) else y
    if truth.known is not None:
        return x if truth.known else other.read_as(x.type)
    return x.of(x.builder.choose(truth.raw, x.raw, other.raw))


def minimum(x: Value, y: Value | int) -> Value:
    """Return the smaller integers."""
    return x._apply("least", y, signed=x.signed)


def maximum(x: Value, y: Value | int) -> Value:
    """Return the larger integers."""
    return x._apply("greatest", y, signed=x.signed)


def wide_product(x: Value, y: Value) -> Value:
    """Return whole products of integers of at most 32 bits, in the type of twice the width."""
    wide = f"{x.type[0]}{2 * x.width}"
    if None not in (x.known, y.known):
        return x.to(wide) * y.to(wide)
    return x.of(x.builder.wide_product(x.raw, y.raw, x.signed), wide)
