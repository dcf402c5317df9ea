"""Build NumPy expressions: the values of lowerings as Python source, on arrays of all lanes of a group or scalars."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..instructions.values import Value
from ..operations.floats.exact import flush_f32
from ..syntax.instructions import Operand, Register
from ..syntax.types import dtype_of
from .writer import Writer

Array = NDArray[Any]

# The comparisons of floats. Those of NumPy fail where an operand is NaN, but for ``!=``.
_FLOATS = {
    "oeq": "({0} == {1})", "one": "(({0} < {1}) | ({0} > {1}))", "olt": "({0} < {1})", "ole": "({0} <= {1})",
    "ogt": "({0} > {1})", "oge": "({0} >= {1})", "ueq": "~(({0} < {1}) | ({0} > {1}))", "une": "({0} != {1})",
    "ult": "~({0} >= {1})", "ule": "~({0} > {1})", "ugt": "~({0} <= {1})", "uge": "~({0} < {1})",
    "ord": "(({0} == {0}) & ({1} == {1}))", "uno": "(({0} != {0}) | ({1} != {1}))",
}  # fmt: skip  # rows of a table


class Expression:
    """A node of a formula: a template of its arguments, and the NumPy type of the result.

    `uniform` says that the result is a scalar: the same for all lanes. A leaf is a constant's `number` or an operand:
    `register` is the one that it reads.
    """

    uniform: bool
    __slots__ = ("arguments", "dtype", "name", "number", "register", "template", "uniform", "uses")

    def __init__(
        self,
        template: str,
        dtype: str,
        arguments: tuple[Expression, ...] = (),
        *,
        uniform: bool = True,
        register: Register | None = None,
        number: Any = None,
    ) -> None:
        self.template = template
        self.dtype = dtype
        self.arguments = arguments
        self.uniform = uniform and all(argument.uniform for argument in arguments)
        self.register = register
        self.number = number
        self.uses = 0
        # The variable that keeps the result, where it is used more than once.
        self.name = ""


class Expressions:
    """The builder of one instruction's expressions; it implements `instructions.values.Builder`.

    Integers are kept as they come, with a sign or without one, and viewed as what an operation needs: a view takes
    time, and most operations are the same for both.
    """

    def __init__(self, w: Writer) -> None:
        self._w = w
        self._known: dict[tuple[Any, ...], Expression] = {}

    # --- operands and results

    def operand(self, operand: Operand, ptx_type: str) -> Expression:
        """Return an operand of the instruction."""
        w, dtype = self._w, dtype_of(ptx_type)
        if isinstance(operand, Register):
            slot = w.code.slot(operand.name)
            storage = dtype_of(w.code.types[slot])
            if storage[0] in "iu" and dtype[0] in "iu" and storage[1:] == dtype[1:]:
                dtype = storage
            name, uniform = w.typed(operand, dtype)
            return Expression(name, dtype, uniform=uniform, register=operand)
        text, uniform = w.value(operand, ptx_type)
        return Expression(text, dtype, uniform=uniform)

    def assign(self, results: list[tuple[Operand, Value]]) -> None:
        """Write the values of registers."""
        w = self._w
        for _, value in results:
            self._count(value.raw)
        temporaries: list[str] = []
        # All are computed before the first is written, which may be an operand of the others.
        texts = [self._text(value.raw, temporaries, keep=len(results) > 1) for _, value in results]
        for (register, value), text in zip(results, texts, strict=True):
            expression: Expression = value.raw
            dtype = expression.dtype
            if isinstance(register, Register) and dtype[0] in "iu":
                kept = dtype_of(w.code.types[w.code.slot(register.name)])
                if kept[1:] != dtype[1:]:
                    text, dtype = _viewed(text, dtype, dtype_of(value.type)), dtype_of(value.type)
            w.write(register, text, dtype, expression.uniform)
        if temporaries:
            w.emit(f"{' = '.join(temporaries)} = None")

    def _count(self, expression: Expression) -> None:
        expression.uses += 1
        if expression.uses == 1:
            for argument in expression.arguments:
                self._count(argument)

    def _text(self, expression: Expression, temporaries: list[str], *, keep: bool = False) -> str:
        """Return an expression's source; what is used more than once is computed before."""
        if expression.name:
            return expression.name
        arguments = [self._text(argument, temporaries) for argument in expression.arguments]
        text = expression.template.format(*arguments) if arguments else expression.template
        if keep or (arguments and expression.uses > 1):
            expression.name = self._w.temporary()
            self._w.emit(f"{expression.name} = {text}")
            temporaries.append(expression.name)
            return expression.name
        return text

    # --- nodes

    def _node(self, template: str, dtype: str, *arguments: Expression) -> Expression:
        key = (template, dtype, *map(id, arguments))
        if key not in self._known:
            self._known[key] = Expression(template, dtype, arguments)
        return self._known[key]

    def _as(self, x: Expression, dtype: str) -> Expression:
        """Return the same bits as another type of the same size."""
        if x.dtype == dtype:
            return x
        if x.number is not None:
            return self._constant(x.number.view(dtype), dtype)
        if x.register is not None and not x.register.negated:
            text, uniform = self._w.typed(x.register, dtype)
            return Expression(text, dtype, uniform=uniform, register=x.register)
        return self._node(f"{{}}.view({dtype})", dtype, x)

    def _signed(self, x: Expression, signed: bool) -> Expression:
        return self._as(x, ("i" if signed else "u") + x.dtype[1:]) if x.dtype != "?" else x

    def _alike(self, x: Expression, y: Expression) -> tuple[Expression, Expression]:
        """Return integers as one type, for an operation to which the sign doesn't matter."""
        if y.number is not None:
            return x, self._as(y, x.dtype)
        return (x, y) if x.dtype == y.dtype else (self._signed(x, False), self._signed(y, False))

    def _pair(self, template: str, x: Expression, y: Expression) -> Expression:
        x, y = self._alike(x, y)
        return self._node(template, x.dtype, x, y)

    def _call(self, function: Any, dtype: str, *arguments: Expression) -> Expression:
        name = self._w.bind(function.__name__, function)
        return self._node(f"{name}({', '.join('{}' for _ in arguments)})", dtype, *arguments)

    # --- the primitives

    def constant(self, type: str, bits: int) -> Expression:
        """Return the same bits for all lanes."""
        dtype = dtype_of(type)
        return self._constant(np.array(bits, "?" if dtype == "?" else f"u{dtype[1:]}").view(dtype)[()], dtype)

    def _constant(self, number: Any, dtype: str) -> Expression:
        return Expression(self._w.constant(number), dtype, number=number)

    def add(self, x: Expression, y: Expression) -> Expression:
        """Return wrapped sums."""
        return self._pair("({} + {})", x, y)

    def sub(self, x: Expression, y: Expression) -> Expression:
        """Return wrapped differences."""
        return self._pair("({} - {})", x, y)

    def mul(self, x: Expression, y: Expression) -> Expression:
        """Return the low halves of products."""
        return self._pair("({} * {})", x, y)

    def fmul(self, x: Expression, y: Expression) -> Expression:
        """Return products of floats."""
        return self._node("({} * {})", x.dtype, x, y)

    def wide_product(self, x: Expression, y: Expression, signed: bool) -> Expression:
        """Return whole products in twice the width."""
        x, y = self._signed(x, signed), self._signed(y, signed)
        wide = f"{x.dtype[0]}{2 * int(x.dtype[1:])}"
        return self._node(f"np.multiply({{}}, {{}}, dtype={wide})", wide, x, y)

    def high_product(self, x: Expression, y: Expression, signed: bool) -> Expression:
        """Return the upper halves of products of 64-bit integers."""
        function = high_product_signed if signed else high_product
        return self._call(function, "i8" if signed else "u8", self._signed(x, signed), self._signed(y, signed))

    def quotient(self, x: Expression, y: Expression, signed: bool) -> Expression:
        """Return quotients rounded toward zero."""
        x, y = self._signed(x, signed), self._signed(y, signed)
        return self._call(truncated, x.dtype, x, y) if signed else self._node("({} // {})", x.dtype, x, y)

    def and_(self, x: Expression, y: Expression) -> Expression:
        """Return the bits that both have."""
        return self._pair("({} & {})", x, y)

    def or_(self, x: Expression, y: Expression) -> Expression:
        """Return the bits that either has."""
        return self._pair("({} | {})", x, y)

    def xor(self, x: Expression, y: Expression) -> Expression:
        """Return the bits that one has."""
        return self._pair("({} ^ {})", x, y)

    def not_(self, x: Expression) -> Expression:
        """Return the opposite bits."""
        return self._node("~{}", x.dtype, x)

    def shift_left(self, x: Expression, by: Expression) -> Expression:
        """Shift left; NumPy defines shifts by the width or more too."""
        return self._pair("({} << {})", self._signed(x, False), by)

    def shift_right(self, x: Expression, by: Expression, signed: bool) -> Expression:
        """Shift right; NumPy defines shifts by the width or more too, but not by negative amounts."""
        most, kind = 8 * int(x.dtype[1:]) - 1, f"u{8 * int(x.dtype[1:])}"
        if signed and by.number is not None:
            by = self.constant(kind, min(int(by.number), most))
        elif signed:
            by = self._signed(self.least(by, self.constant(kind, most), False), True)
        return self._pair("({} >> {})", self._signed(x, signed), by)

    def compare(self, relation: str, x: Expression, y: Expression, signed: bool) -> Expression:
        """Compare integers."""
        either = relation in ("==", "!=")
        x, y = self._alike(x, y) if either else (self._signed(x, signed), self._signed(y, signed))
        return self._node(f"({{}} {relation} {{}})", "?", x, y)

    def floats(self, relation: str, x: Expression, y: Expression) -> Expression:
        """Compare floats."""
        return self._node(_FLOATS[relation], "?", x, y)

    def least(self, x: Expression, y: Expression, signed: bool) -> Expression:
        """Return the lesser integers."""
        return self._pair("np.minimum({}, {})", self._signed(x, signed), self._signed(y, signed))

    def greatest(self, x: Expression, y: Expression, signed: bool) -> Expression:
        """Return the greater integers."""
        return self._pair("np.maximum({}, {})", self._signed(x, signed), self._signed(y, signed))

    def choose(self, truth: Expression, x: Expression, y: Expression) -> Expression:
        """Choose by a predicate; `np.where` would make an array of scalars."""
        x, y = self._alike(x, y)
        uniform = truth.uniform and x.uniform and y.uniform
        return self._node("({1} if {0} else {2})" if uniform else "np.where({}, {}, {})", x.dtype, truth, x, y)

    def resize(self, x: Expression, type: str, signed: bool) -> Expression:
        """Cut or extend integers and predicates."""
        dtype = dtype_of(type)
        dtype = f"{'i' if signed else 'u'}{dtype[1:]}"
        return self._node(f"{{}}.astype({dtype})", dtype, self._signed(x, signed))

    def reinterpret(self, x: Expression, type: str) -> Expression:
        """Return the same bits as another type."""
        return self._as(x, dtype_of(type))

    def flush(self, x: Expression) -> Expression:
        """Return single precision with subnormal numbers as zeros of their sign."""
        return self._call(flush_scalar if x.uniform else flush_f32, "f4", x)

    def compared(self, *values: Expression) -> list[Expression]:
        """Return operands of a comparison with ``.ftz``."""
        return [self.flush(value) for value in values]

    def count_ones(self, x: Expression) -> Expression:
        """Return the number of ones."""
        return self._node("np.bitwise_count({}).astype(u4)", "u4", self._signed(x, False))

    def count_leading_zeros(self, x: Expression) -> Expression:
        """Return the number of zeros above the highest one."""
        return self._call(leading_zeros, "u4", self._signed(x, False))

    def reverse_bits(self, x: Expression) -> Expression:
        """Return the bits in the opposite order."""
        x = self._signed(x, False)
        return self._call(reversed_bits, x.dtype, x)


def _viewed(text: str, dtype: str, other: str) -> str:
    return text if dtype == other else f"{text}.view({other})"


# --- what takes several of NumPy's calls; each serves arrays and scalars


def high_product(a: Array, b: Array) -> Array:
    """Return the upper halves of products without a sign, from those of the operands' halves."""
    low = np.uint64(0xFFFFFFFF)
    a_low, a_high = a & low, a >> 32
    b_low, b_high = b & low, b >> 32
    middle = a_high * b_low + (a_low * b_low >> 32)
    other = a_low * b_high + (middle & low)
    result: Array = a_high * b_high + (middle >> 32) + (other >> 32)
    return result


def high_product_signed(a: Array, b: Array) -> Array:
    """Return the upper halves of products with a sign."""
    high = high_product(a.view(np.uint64), b.view(np.uint64)).view(np.int64)
    # A negative operand read as unsigned is 2**64 too large.
    result: Array = high - (b & (a >> 63)) - (a & (b >> 63))
    return result


def truncated(a: Array, b: Array) -> Array:
    """Return quotients with a sign, rounded toward zero."""
    quotient: Array = a // b
    if ((a | b) < 0).any():
        remainder = a - quotient * b
        # NumPy floors: the quotient is one too small where the remainder has not the dividend's sign.
        quotient = quotient + ((remainder != 0) & ((remainder ^ a) < 0))
    return quotient


def leading_zeros(a: Array) -> Array:
    """Count the zeros above the highest one, as u32."""
    if a.dtype.itemsize == 8:
        high, low = leading_zeros((a >> 32).astype(np.uint32)), leading_zeros(a.astype(np.uint32))
        both: Array = high + low * (high == 32)
        return both
    # A 32-bit integer is exact in double precision, so its exponent is the position of its highest one.
    exponent = a.astype(np.float64).view(np.int64) >> 52
    zeros: Array = np.minimum(1023 + 31 - exponent, 32).astype(np.uint32)
    return zeros


def reversed_bits(a: Array) -> Array:
    """Reverse the order of the bits."""
    for shift, byte in ((1, 0x55), (2, 0x33), (4, 0x0F)):
        mask = a.dtype.type(int.from_bytes(bytes([byte] * a.dtype.itemsize)))
        a = ((a >> shift) & mask) | ((a & mask) << shift)
    return a.byteswap()


def flush_scalar(a: Any) -> Any:
    """Return a scalar of single precision, a subnormal one as a zero of its sign."""
    return flush_f32(np.array([a]))[0]
