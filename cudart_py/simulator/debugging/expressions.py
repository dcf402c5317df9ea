"""The values of expressions for all lanes of a group at once, with C++'s types.

Integers smaller than `int` are promoted to it, and operands are converted to a common type, as in C++.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...debugging.expression_syntax import ExpressionError, Node, Type, parse, parse_type
from ...host.arithmetic import device_arithmetic
from ..ptx.windows import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from .symbols.cpp_types import (
    BOOL,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    UNSIGNED,
    UNSIGNED_LONG,
    Array,
    CType,
    Pointer,
    Scalar,
    Structure,
    number_named,
)
from .values import Value, as_address, as_pointer

if TYPE_CHECKING:
    from .scope import Scope

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "|": operator.or_, "^": operator.xor, "&": operator.and_, "==": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge, "<<": operator.lshift, ">>": operator.rshift,
    "+": operator.add, "-": operator.sub, "*": operator.mul,
}  # fmt: skip  # rows of a table
_TYPES = {one.dtype: one for one in (BOOL, INT, UNSIGNED, LONG, UNSIGNED_LONG, FLOAT, DOUBLE)}
# The generic addresses at which the state spaces begin that a pointer may name.
_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}
_MOST_REPEATED = 1 << 20
_ESCAPES = {"n": 10, "t": 9, "r": 13, "0": 0}


def evaluate(text: str, scope: Scope) -> Value:
    """Return the value of an expression for the lanes of a scope; raises ExpressionError if it has none."""
    with device_arithmetic():
        return evaluate_node(parse(text), scope)


def holds(text: str, scope: Scope) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the lanes of a scope for which a condition holds, and those for which it has a value."""
    value = evaluate(text, scope)
    found: NDArray[np.bool_] = value.data.astype(np.bool_) & value.known
    return found, value.known


def evaluate_node(node: Node, scope: Any) -> Value:
    """Return the value of a parsed expression for the lanes of a scope; raises ExpressionError if it has none."""
    kind = node[0]
    if kind == "name":
        return _named(node[1], scope)
    if kind in ("number", "character"):
        return (_number if kind == "number" else _character)(node[1], len(scope.group.lanes))
    if kind == "cast":
        return _cast(node[1], evaluate_node(node[2], scope), scope)
    if kind == "sizeof":
        return _size_of(node[1], node[2], scope)
    if kind == "conditional":
        return _chosen(*(evaluate_node(part, scope) for part in node[1:]))
    if kind == "unary":
        return _unary(node[1], evaluate_node(node[2], scope), scope)
    if kind == "index":
        return _element(evaluate_node(node[1], scope), evaluate_node(node[2], scope), scope)
    if kind == "member":
        return _member(node[1], node[2], scope)
    left, right = evaluate_node(node[2], scope), evaluate_node(node[3], scope)
    return _repeated(left, right) if node[1] == "@" else _binary(node[1], left, right)


def _named(name: str, scope: Scope) -> Value:
    if name in ("true", "false"):
        return Value(BOOL, np.full(len(scope.group.lanes), name == "true"))
    return scope.value(name)


def _number(text: str, lanes: int) -> Value:
    is_hexadecimal = text.lower().startswith("0x")
    if not is_hexadecimal and any(letter in text.lower() for letter in ".ef"):
        type_ = FLOAT if text[-1] in "fF" else DOUBLE
        return Value(type_, np.full(lanes, float(text.rstrip("fFlL")), type_.dtype))
    digits, suffix = text.rstrip("uUlL"), text[len(text.rstrip("uUlL")) :].lower()
    try:
        number = int(digits, 16 if is_hexadecimal else 10)
    except ValueError:
        raise ExpressionError(f"{text!r} is not a number") from None
    # The first type that can hold the number, as in C++: a decimal number is signed without a suffix.
    types = [one for one in (INT, UNSIGNED, LONG, UNSIGNED_LONG) if one.size == LONG.size or "l" not in suffix]
    if "u" in suffix:
        types = [one for one in types if one.dtype.kind == "u"]
    elif not is_hexadecimal:
        types = [one for one in types if one.dtype.kind == "i"]
    type_ = next((one for one in types if number <= np.iinfo(one.dtype).max), UNSIGNED_LONG)
    if number > np.iinfo(type_.dtype).max:
        raise ExpressionError(f"{text} has more than 64 bits")
    return Value(type_, np.full(lanes, number, type_.dtype))


def _character(text: str, lanes: int) -> Value:
    code = ord(text[1]) if text[1] != "\\" else _ESCAPES.get(text[2], ord(text[2]))
    return Value(CHAR, np.full(lanes, code, np.int8))


def type_of(text: str, scope: Scope) -> CType:
    """Return the type that a text names, unless it names a variable, or that of an expression."""
    written = parse_type(text)
    try:
        if written is None or not (written.is_plain or written.stars):
            return evaluate(text, scope).type
    except ExpressionError:
        if written is None or scope.type_named(written.name) is None:
            raise
    assert written is not None
    return _type_of(written, scope)


def _type_of(written: Type, scope: Any) -> CType:
    """Return a type; raises ExpressionError if it is not known."""
    type_: CType | None = number_named(written.name)
    if type_ is None and written.name == "void" and written.stars:
        return _pointer_to(Pointer(None), written.stars - 1)
    if type_ is None:
        type_ = scope.type_named(written.name)
    if type_ is None:
        raise ExpressionError(
            f"{written.name!r} is not a type: use one such as 'unsigned int', 'float4' or 'long long'"
        )
    return _pointer_to(type_, written.stars)


def _pointer_to(type_: CType, stars: int) -> CType:
    for _ in range(stars):
        type_ = Pointer(type_)
    return type_


def _cast(written: Type, value: Value, scope: Any) -> Value:
    type_ = _type_of(written, scope)
    if isinstance(type_, Scalar):
        return Value(type_, value.data.astype(type_.dtype), None, value.known)
    if not isinstance(type_, Pointer):
        raise ExpressionError(f"a value cannot be cast to {written.name}, but its address can be to {written.name}*")
    addresses = as_address(value).data.astype(np.uint64)
    window = np.uint64(_WINDOWS.get(written.space, 0))
    return Value(type_, np.where(addresses < WINDOW_BYTES, addresses + window, addresses), None, value.known)


def _size_of(written: Type | None, node: Node | None, scope: Any) -> Value:
    """Return the size of a type, or that of an expression, which may consist of the name of a type."""
    try:
        type_ = None if node is None else evaluate_node(node, scope).type
    except ExpressionError:
        if written is None:
            raise
        type_ = None
    if type_ is None:
        assert written is not None
        type_ = _type_of(written, scope)
    return Value(UNSIGNED_LONG, np.full(len(scope.group.lanes), type_.size, np.uint64))


def _repeated(value: Value, count: Value) -> Value:
    """Return an array of as many elements as there are from a value in memory on."""
    counts = np.unique(count.data[count.known])
    if value.addresses is None or len(counts) != 1 or not 0 < counts[0] <= _MOST_REPEATED:
        raise ExpressionError("@ needs a value in memory before it, and after it a number of elements, as in x[0]@4")
    return Value(Array(value.type, int(counts[0])), None, value.addresses, value.known)


def _chosen(condition: Value, first: Value, second: Value) -> Value:
    """Return one of two values per lane."""
    holds_ = condition.data.astype(np.bool_)
    known = condition.known & np.where(holds_, first.known, second.known)
    first, second = as_pointer(first), as_pointer(second)
    if isinstance(first.type, Scalar) and isinstance(second.type, Scalar):
        one, other = _common(first, second)
        return _result(np.where(holds_, one, other), known)
    return Value(first.type, np.where(holds_, first.data, second.data), None, known)


def _member(node: Node, name: str, scope: Scope) -> Value:
    value = evaluate_node(node, scope)
    if name in value.members:
        return value.members[name]
    if isinstance(value.type, Pointer):
        value = _target(value, scope)
    if not isinstance(value.type, Structure) or value.addresses is None:
        raise ExpressionError(f"a {value.type.name} has no members")
    member = next((one for one in value.type.members if one.name == name), None)
    if member is None:
        raise ExpressionError(f"{value.type.name} has no member {name}")
    return scope.memory.load(member.type, value.addresses + np.uint64(member.offset), value.known)


def _element(value: Value, index: Value, scope: Scope) -> Value:
    """Return an element; of an array, an index outside it has none."""
    inside = index.known
    if isinstance(value.type, Array):
        inside = inside & (index.data >= 0) & (index.data < value.type.count)
    found = _target(_sum(value, index, 1), scope)
    found.known = found.known & inside
    found.is_placed = value.known & index.known
    return found


def _target(value: Value, scope: Scope) -> Value:
    """Return what a pointer points to."""
    pointer = as_pointer(value)
    if not isinstance(pointer.type, Pointer) or pointer.type.target is None:
        raise ExpressionError(f"a {value.type.name} is not a pointer to values of a known type")
    return scope.memory.load(scope.whole(pointer.type.target), pointer.data, pointer.known)


def _unary(sign: str, value: Value, scope: Scope) -> Value:
    if sign == "*":
        return _target(value, scope)
    if sign == "&":
        if value.addresses is None:
            raise ExpressionError("a value in a register has no address")
        return Value(Pointer(value.type), value.addresses, None, value.is_placed)
    if sign == "!":
        return Value(BOOL, ~value.data.astype(np.bool_), None, value.known)
    data = _promoted(value)
    if sign == "~" and data.dtype.kind == "f":
        raise ExpressionError("~ needs an integer")
    return _result(-data if sign == "-" else ~data if sign == "~" else data, value.known)


def _promoted(value: Value) -> NDArray[Any]:
    """Return numbers after C++'s promotions; a half counts as a float."""
    data = value.data
    if data.dtype.kind == "f":
        return data.astype(np.float32) if data.itemsize < FLOAT.size else data
    return data.astype(np.int32) if data.itemsize < INT.size else data


def _common(left: Value, right: Value) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return two numbers after C++'s usual arithmetic conversions."""
    one, other = _promoted(left), _promoted(right)
    floats = [data.dtype for data in (one, other) if data.dtype.kind == "f"]
    if floats:
        dtype = max(floats, key=lambda dtype: dtype.itemsize)
    elif one.itemsize != other.itemsize:
        dtype = max(one.dtype, other.dtype, key=lambda dtype: dtype.itemsize)
    else:
        dtype = one.dtype if one.dtype.kind == "u" else other.dtype
    return one.astype(dtype), other.astype(dtype)


def _sum(left: Value, right: Value, sign: int) -> Value:
    """Return a pointer moved by a number of elements."""
    pointer = as_pointer(left)
    if not isinstance(pointer.type, Pointer) or pointer.type.target is None:
        raise ExpressionError(f"a {left.type.name} has no elements")
    if right.data.dtype.kind == "f":
        raise ExpressionError("an index must be an integer")
    distance = right.data.astype(np.int64) * (sign * pointer.type.target.size)
    moved = (pointer.data.view(np.int64) + distance).view(np.uint64)
    return Value(pointer.type, moved, None, left.known & right.known)


def _binary(sign: str, left: Value, right: Value) -> Value:
    known = left.known & right.known
    left, right = as_pointer(left), as_pointer(right)
    if sign in ("&&", "||"):
        first, second = (left.data.astype(np.bool_) & left.known, right.data.astype(np.bool_) & right.known)
        return Value(BOOL, first & second if sign == "&&" else first | second, None, known)
    if sign in "+-" and isinstance(left.type, Pointer) and not isinstance(right.type, Pointer):
        return _sum(left, right, 1 if sign == "+" else -1)
    if sign == "-" and isinstance(left.type, Pointer) and left.type.target is not None:
        distance = left.data.view(np.int64) - right.data.view(np.int64)
        return Value(LONG, distance // left.type.target.size, None, known)
    one, other = _common(left, right)
    if sign in ("/", "%"):
        is_float = one.dtype.kind == "f"
        known = known & ((other != 0) | is_float)
        return _result(_quotient(one, np.where(known, other, 1), sign, is_float=is_float), known)
    if one.dtype.kind == "f" and sign in ("|", "^", "&", "<<", ">>"):
        raise ExpressionError(f"{sign} needs integers")
    if sign in ("<<", ">>"):
        # The result has the type of the left operand.
        one = _promoted(left)
        other = _promoted(right).astype(one.dtype)
    return _result(_OPERATIONS[sign](one, other), known)


def _quotient(one: NDArray[Any], other: NDArray[Any], sign: str, *, is_float: bool) -> NDArray[Any]:
    """Return a quotient, rounded to zero for integers, or a remainder."""
    if is_float:
        if sign == "%":
            raise ExpressionError("% needs integers")
        divided: NDArray[Any] = one / other
        return divided
    rest: NDArray[Any] = np.fmod(one, other)
    whole: NDArray[Any] = (one - rest) // other
    return rest if sign == "%" else whole


def _result(data: NDArray[Any], known: NDArray[np.bool_]) -> Value:
    return Value(_TYPES[data.dtype], data, None, known)
