"""Build LLVM operations on vectors of 32 lanes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partialmethod
from typing import Any

from llvmlite import ir

from ..syntax.types import type_size
from .layout import LANES

I1, I8, I16, I32, I64, I128 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64, 128))
F32, F64 = ir.FloatType(), ir.DoubleType()
PTR = ir.PointerType()
Value = Any
# The NaNs that the hardware generates in single and double precision, and the bit that makes a double-precision NaN
# quiet.
NAN_F32, NAN_F64, _QUIET = 0x7FFFFFFF, 0xFFF8 << 48, 1 << 51
_ONE = {F32: 0x3F800000, F64: 0x3FF << 52}
_INTEGERS = {1: I8, 2: I16, 4: I32, 8: I64, 16: I128}


def vector(element: ir.Type, count: int = LANES) -> ir.VectorType:
    """Return the type of a vector of `count` elements."""
    return ir.VectorType(element, count)


def lane_type(ptx_type: str) -> ir.Type:
    """Return the LLVM type of one lane's value of a PTX type; a half is the integer with its bits."""
    if ptx_type == "pred":
        return I1
    return {"f32": F32, "f64": F64}.get(ptx_type) or _INTEGERS[type_size(ptx_type)]


def integer_like(element: ir.Type) -> ir.Type:
    """Return the integer type of the same width as a type."""
    return {F32: I32, F64: I64}.get(element, element)


def follows_from_constants(value: Value) -> bool:
    """Return whether a value is computed from constants alone, which means that LLVM may know its possible values."""
    if isinstance(value, ir.Constant):
        return True
    if isinstance(value, ir.SelectInstr):
        return all(map(follows_from_constants, value.operands[1:]))
    if type(value) in (ir.Instruction, ir.CastInstr):
        return all(map(follows_from_constants, value.operands))
    return False


def _number(value: Value) -> int | None:
    """Return the bits of a constant that is the same for all lanes, or None for any other value."""
    bits = value.operands[0] if isinstance(value, ir.CastInstr) and value.opname == "bitcast" else value
    return bits.number if isinstance(bits, _Same) else None


def _matters(value: Value) -> bool:
    """Return whether LLVM may fold arithmetic with a single-precision constant: ±0, ±1 or a subnormal number.

    A value that is not the same constant in all lanes counts as such, too.
    """
    number = _number(value)
    return number is None or number & 0x7FFFFFFF == 0x3F800000 or not number & 0x7F800000


def _text(kind: ir.Type) -> str:
    """Return a type as the names of intrinsics have it."""
    if isinstance(kind, ir.VectorType):
        return f"v{kind.count}{_text(kind.element)}"
    return {F32: "f32", F64: "f64"}.get(kind) or f"i{kind.width}"


class _Same(ir.Constant):  # type: ignore[misc]  # because llvmlite has no types
    """A vector of the same integer for all lanes, in LLVM's short form, ``splat``."""

    def __init__(self, element: ir.IntType, number: int, count: int = LANES) -> None:
        # All lanes share one object; llvmlite's own initialiser creates one per lane.
        self.type = ir.VectorType(element, count)
        self.constant = [ir.Constant(element, int(number))] * count
        self.number = int(number)
        self._text = f"splat (i{element.width} {self.number})"

    def get_reference(self) -> str:
        """Return the constant's text."""
        return self._text


class Builder(ir.IRBuilder):  # type: ignore[misc]  # because llvmlite has no types
    """LLVM's builder with the operations that PTX instructions are made of.

    A number that is passed instead of a value is the same for all lanes. `flushes` says that the processor flushes
    subnormal operands and results of single precision to zero. LLVM doesn't know that: it simplifies ``x * 1`` to x and
    folds constants, and neither flushes. So `operands` hides constants from it.
    """

    flushes = False

    # --- constants

    def const(self, element: ir.Type, number: float) -> Value:
        """Return a number as a vector; for floats, `number` is the integer with the same bits."""
        if element in (F32, F64):
            width = 32 if element == F32 else 64
            return self.bitcast(_Same(_INTEGERS[width // 8], int(number)), vector(element))
        return _Same(element, int(number))

    def each(self, element: ir.Type, numbers: Sequence[int]) -> Value:
        """Return a vector of one number per lane."""
        return ir.Constant(ir.VectorType(element, len(numbers)), list(numbers))

    def lanes(self, element: ir.Type = I32, step: int = 1) -> Value:
        """Return each lane's index, times a step."""
        return self.each(element, [lane * step for lane in range(LANES)])

    def like(self, value: Value, number: int | Value) -> Value:
        """Return a number, or a scalar, as another value's type: that of a vector or of a scalar."""
        if not isinstance(value.type, ir.VectorType):
            return value.type(number) if isinstance(number, int) else number
        return self.const(value.type.element, number) if isinstance(number, int) else self.splat(number)

    def splat(self, scalar: Value, count: int = LANES) -> Value:
        """Return a scalar as a vector."""
        kind = ir.VectorType(scalar.type, count)
        one = self.insert_element(ir.Constant(kind, ir.Undefined), scalar, I32(0))
        return self.shuffle_vector(one, ir.Constant(kind, ir.Undefined), _Same(I32, 0, count))

    # --- masks

    def bits(self, truth: Value) -> Value:
        """Return one truth value per lane as the bits of a word."""
        return self.bitcast(truth, I32)

    def truth(self, bits: Value) -> Value:
        """Return the bits of a word as one truth value per lane."""
        return self.bitcast(bits, vector(I1))

    def every(self, truth: Value) -> Value:
        """Return whether one truth value per lane is true in all lanes."""
        return self.icmp_unsigned("==", self.bits(truth), I32(0xFFFFFFFF))

    # --- types

    def as_type(self, value: Value, element: ir.Type) -> Value:
        """Return the same bits as a vector of another type of the same width."""
        return value if value.type.element == element else self.bitcast(value, vector(element))

    def as_integer(self, value: Value) -> Value:
        """Return the bits of a vector as integers."""
        return self.as_type(value, integer_like(value.type.element))

    def resized(self, value: Value, element: ir.IntType, signed: bool) -> Value:
        """Return integers truncated or extended to another width."""
        have = value.type.element.width
        if have == element.width:
            return value
        if have > element.width:
            return self.trunc(value, vector(element))
        return (self.sext if signed and have > 1 else self.zext)(value, vector(element))

    def joined(self, low: Value, high: Value) -> Value:
        """Return 128-bit integers made of 64-bit halves."""
        low, high = (self.zext(half, vector(I128)) for half in (low, high))
        return self.or_(low, self.shl(high, self.const(I128, 64)))

    def halves(self, x: Value) -> tuple[Value, Value]:
        """Return the lower and the upper 64 bits of 128-bit integers."""
        return self.trunc(x, vector(I64)), self.trunc(self.lshr(x, self.const(I128, 64)), vector(I64))

    # --- the operations that the package `instructions` asks for

    def constant(self, type: str, bits: int) -> Value:
        """Return the same bits for all lanes."""
        return self.const(lane_type(type), bits)

    def resize(self, x: Value, type: str, signed: bool) -> Value:
        """Return integers or predicates truncated or extended to another width."""
        return self.resized(x, lane_type(type), signed)

    def reinterpret(self, x: Value, type: str) -> Value:
        """Return the same bits as another type of the same width."""
        return self.as_type(x, lane_type(type))

    def _doubled(self, x: Value, signed: bool) -> Value:
        return self.resized(x, ir.IntType(2 * x.type.element.width), signed)

    def wide_product(self, x: Value, y: Value, signed: bool) -> Value:
        """Return full products of integers, at twice the width."""
        return self.mul(self._doubled(x, signed), self._doubled(y, signed))

    def high_product(self, x: Value, y: Value, signed: bool) -> Value:
        """Return the upper halves of products."""
        product = self.wide_product(x, y, signed)
        return self.trunc(self.lshr(product, self.like(product, x.type.element.width)), x.type)

    def quotient(self, x: Value, y: Value, signed: bool) -> Value:
        """Return quotients rounded toward zero; a division by zero, which would trap, returns the dividend."""
        bad = self.compare("==", y, 0)
        width = x.type.element.width
        if width == 64 and signed:
            # The smallest integer divided by -1 overflows to itself; the processor would trap.
            overflow = self.and_(self.compare("==", x, 1 << 63), self.compare("==", y, (1 << 64) - 1))
            bad = self.or_(bad, overflow)
        divisor = self.select(bad, self.like(y, 1), y)
        if width == 64:
            return (self.sdiv if signed else self.udiv)(x, divisor)
        # For at most 32 bits, the truncated quotient in double precision equals the integer quotient.
        to, back = (self.sitofp, self.fptosi) if signed else (self.uitofp, self.fptoui)
        quotient = self.fdiv(to(x, vector(F64)), to(divisor, vector(F64)))
        return self.trunc(back(quotient, vector(I64)), x.type)

    def _inside(self, x: Value, by: Value) -> tuple[Value, Value]:
        """Return shift amounts clamped to the width minus 1, beyond which LLVM defines no result, and that maximum."""
        most = self.like(by, x.type.element.width - 1)
        return self.least(by, most, False), most

    def _shifted(self, shift: Any, x: Value, by: Value) -> Value:
        """Shift logically; an amount of at least the width gives zero."""
        number = _number(by)
        if number is not None:
            return shift(x, by) if number < x.type.element.width else self.like(x, 0)
        inside, most = self._inside(x, by)
        return self.select(self.compare(">", by, most), self.like(x, 0), shift(x, inside))

    def shift_left(self, x: Value, by: Value) -> Value:
        """Shift left; an amount of at least the width gives zero."""
        return self._shifted(self.shl, x, by)

    def shift_right(self, x: Value, by: Value, signed: bool) -> Value:
        """Shift right; an amount of at least the width gives zero, or the sign in every bit if `signed`."""
        return self.ashr(x, self._inside(x, by)[0]) if signed else self._shifted(self.lshr, x, by)

    def choose(self, truth: Value, x: Value, y: Value) -> Value:
        """Select `x` where a predicate is true, else `y`, without flushing."""
        if (
            self.flushes
            and not isinstance(truth, ir.ICMPInstr)
            and not any(map(follows_from_constants, (x, y)))
            and integer_like(x.type.element) == I32
        ):
            # LLVM merges a comparison and a selection of the same operands into one minimum or maximum instruction,
            # which would flush the result.
            x = self.opaque(x)
        return self.select(truth, x, y)

    def flushed(self, *values: Value) -> list[Value]:
        """Return operands of an instruction with ``.ftz``, flushed here unless the processor does so."""
        return self.operands(*values) if self.flushes else [self.flush(value) for value in values]

    def count_ones(self, x: Value) -> Value:
        """Return the number of bits that are 1, as u32."""
        return self.resized(self.intrinsic("ctpop", x), I32, False)

    def count_leading_zeros(self, x: Value) -> Value:
        """Return the number of leading zero bits, as u32."""
        return self.resized(self.intrinsic("ctlz", x, I1(0)), I32, False)

    def elementary(self, name: str, x: Value) -> Value:
        """Return the result of a double-precision function of the C library."""
        return self.invoke(f"math.{name}", x.type, x)

    def saturate(self, x: Value) -> Value:
        """Clamp floats to the range from +0 to 1, NaN becoming +0."""
        zero, one = self.like(x, 0), self.like(x, _ONE[x.type.element])
        return self.float_least(self.float_greatest(x, zero), one)

    def convert(self, x: Value, type: str, signed: bool) -> Value:
        """Return numbers converted to another type, where at least one of the two types is a float."""
        have, kind = x.type.element, vector(lane_type(type))
        if have in (F32, F64) and kind.element in (F32, F64):
            return self.fptrunc(x, kind) if have == F64 else self.fpext(x, kind)
        if have in (F32, F64):
            return (self.fptosi if signed else self.fptoui)(x, kind)
        return (self.sitofp if signed else self.uitofp)(x, kind)

    def canonical(self, x: Value) -> Value:
        """Return single-precision numbers with every NaN replaced by the only NaN that the hardware generates."""
        return self.select(self.floats("uno", x, x), self.const(F32, NAN_F32), x)

    def quiet(self, x: Value, *operands: Value) -> Value:
        """Return double-precision numbers; replace NaNs by the first NaN operand, made quiet, or by the default NaN."""
        chosen = self.const(F64, NAN_F64)
        for operand in reversed(operands):
            quiet = self.as_type(self.or_(self.as_integer(operand), self.const(I64, _QUIET)), F64)
            chosen = self.select(self.floats("uno", operand, operand), quiet, chosen)
        return self.select(self.floats("uno", x, x), chosen, x)

    def tiny(self, x: Value) -> Value:
        """Return which single-precision numbers are subnormal or the smallest normal number, of either sign."""
        size = self.and_(self.as_integer(x), self.const(I32, 0x7FFFFFFF))
        return self.compare("<", self.sub(size, self.const(I32, 1)), 0x00800000)

    def rarely(self, suspect: Value, mended: Value, x: Value) -> Value:
        """Return the corrected value without testing `suspect`: that is cheaper than a branch."""
        return mended

    # --- subnormal numbers of single precision

    def signed_zero(self, x: Value) -> Value:
        """Return zeros with the signs of the given floats."""
        bits = self.as_integer(x)
        return self.as_type(self.and_(bits, self.like(bits, 1 << bits.type.element.width - 1)), x.type.element)

    def flush(self, x: Value) -> Value:
        """Return single-precision numbers with subnormal ones flushed to zeros of the same sign."""
        exponent = self.and_(self.as_integer(x), self.const(I32, 0x7F800000))
        return self.select(self.compare("==", exponent, 0), self.signed_zero(x), x)

    # --- hiding values from LLVM while the processor flushes

    def operands(self, *values: Value) -> list[Value]:
        """Return operands; hide constants with which LLVM could fold an operation that the processor must perform."""
        if not self.flushes:
            return list(values)
        known = [follows_from_constants(value) for value in values]
        hides = [of_constants and (all(known) or _matters(x)) for x, of_constants in zip(values, known, strict=True)]
        return [self.opaque(value) if hide else value for value, hide in zip(values, hides, strict=True)]

    def opaque(self, value: Value) -> Value:
        """Return the same constant, or the same 32-bit words or floats, but hide from LLVM where they come from."""
        number = _number(value)
        if number is not None:
            return self.splat(self._variable(number, value.type.element))
        return self.as_type(self.xor(self.as_integer(value), self.splat(self._variable(0, I32))), value.type.element)

    def _variable(self, number: int, kind: ir.Type) -> Value:
        """Return a number loaded from a global variable that never changes, although LLVM doesn't know this."""
        bits = integer_like(kind)
        name = f"number.{number:0{bits.width // 4}x}"
        variable = self.module.globals.get(name)
        if variable is None:
            variable = ir.GlobalVariable(self.module, bits, name)
            variable.initializer = bits(number)
            # With this linkage other modules could change it, so LLVM can't fold it, yet code reaches it without a
            # global offset table.
            variable.linkage = "hidden"
        found = self.load(variable, typ=kind)
        found.set_metadata("invariant.load", self.module.add_metadata([]))
        return found

    # --- calls

    def declared(self, name: str, result: ir.Type, arguments: Sequence[ir.Type]) -> ir.Function:
        """Return a function of the module; declare it on first use."""
        known = self.module.globals.get(name)
        return known or ir.Function(self.module, ir.FunctionType(result, arguments), name)

    def invoke(self, name: str, result: ir.Type, *arguments: Value) -> Value:
        """Call a function, which is declared with the types of the arguments on first use."""
        return self.call(self.declared(name, result, [argument.type for argument in arguments]), arguments)

    def invoke_at(self, place: Value, *arguments: Value) -> None:
        """Call a function without a result to which a pointer in memory leads."""
        pointer = ir.PointerType()
        pointer.pointee = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
        self.call(self.load(place, typ=pointer), arguments)

    def intrinsic(self, name: str, *operands: Value) -> Value:
        """Call an intrinsic that maps words or vectors to one of the first operand's type."""
        kind = operands[0].type
        return self.invoke(f"llvm.{name}.{_text(kind)}", kind, *operands)

    integral = intrinsic
    reverse_bits = partialmethod(intrinsic, "bitreverse")
    fused = partialmethod(intrinsic, "fma")
    root = partialmethod(intrinsic, "sqrt")
    ones = partialmethod(intrinsic, "ctpop")

    def reduced(self, name: str, value: Value) -> Value:
        """Return a reduction of a vector's elements (umin, umax, or)."""
        return self.invoke(f"llvm.vector.reduce.{name}.{_text(value.type)}", value.type.element, value)

    def trailing_zeros(self, word: Value) -> Value:
        """Return the number of trailing zero bits of a word, or the word's width if it is zero."""
        return self.intrinsic("cttz", word, I1(0))

    def leading_zeros(self, word: Value) -> Value:
        """Return the number of leading zero bits of a word, or the word's width if it is zero."""
        return self.intrinsic("ctlz", word, I1(0))

    # --- memory

    def alloca(self, kind: ir.Type) -> Value:
        """Return the pointer to a new stack variable, which is allocated in the function's first block."""
        with self.goto_entry_block():
            variable = super().alloca(kind)
        # LLVM has opaque pointers: one type for all.
        variable.type = PTR
        variable.align = 64 if isinstance(kind, ir.VectorType) else None
        return variable

    def at(self, base: Value, offset: Value | int) -> Value:
        """Return the pointer `offset` bytes after another."""
        if isinstance(offset, int):
            offset = I64(offset)
        return self.gep(base, [offset], source_etype=I8)

    def word(self, context: Value, place: int) -> Value:
        """Return a word of the context."""
        return self.load(self.at(context, 8 * place), typ=I64)

    def set_word(self, context: Value, place: int, value: Value) -> None:
        """Set a word of the context."""
        self.store(value, self.at(context, 8 * place))

    def pointer(self, context: Value, place: int) -> Value:
        """Return a word of the context as a pointer."""
        return self.load(self.at(context, 8 * place), typ=PTR)

    def fill(self, place: Value, size: Value) -> None:
        """Set bytes of memory to 0."""
        self.invoke("llvm.memset.p0.i64", ir.VoidType(), place, I8(0), size, I1(0))

    # --- comparisons and selections

    def compare(self, relation: str, a: Value, b: Value | int, signed: bool = False) -> Value:
        """Return a comparison of integers (``==``, ``<`` and so on)."""
        if isinstance(b, int):
            b = self.like(a, b)
        return (self.icmp_signed if signed else self.icmp_unsigned)(relation, a, b)

    def floats(self, relation: str, a: Value, b: Value) -> Value:
        """Return a comparison of floats by LLVM's name for it (oeq, une and so on)."""
        if relation in ("ord", "uno"):
            return (self.fcmp_ordered if relation == "ord" else self.fcmp_unordered)(relation, a, b)
        sign = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[relation[1:]]
        return (self.fcmp_ordered if relation[0] == "o" else self.fcmp_unordered)(sign, a, b)

    def _by_floats(self, relation: str, a: Value, b: Value) -> Value:
        return self.select(self.floats(relation, a, b), a, b)

    float_least = partialmethod(_by_floats, "olt")
    float_greatest = partialmethod(_by_floats, "ogt")

    def _by_integers(self, relation: str, a: Value, b: Value, signed: bool) -> Value:
        return self.select(self.compare(relation, a, b, signed), a, b)

    least = partialmethod(_by_integers, "<")
    greatest = partialmethod(_by_integers, ">")
