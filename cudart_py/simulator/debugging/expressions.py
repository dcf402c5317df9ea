"""Expressions in a subset of C++: names, members, elements, and arithmetic, for all lanes of a group at once.

Integers are computed with at least 64 bits, so that they don't overflow as they would in the kernel.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .cpp_types import BOOL, DOUBLE, LONG, CType, Pointer, Scalar, Structure
from .values import EvaluationError, Value, as_pointer

if TYPE_CHECKING:
    from .scope import Scope

_TOKEN = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[uUlLfF]*"
    r"|(?P<name>%?[A-Za-z_]\w*)|(?P<sign>->|&&|\|\||[=!<>]=|<<|>>|[-+*/%&|^~!<>()\[\].]))"
)
# Binary operators, those that bind least first.
_LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"),
    ("*", "/", "%"),
)  # fmt: skip  # rows of a table
_UNARY = "-!~*&+"
_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "|": operator.or_, "^": operator.xor, "&": operator.and_, "==": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge, "<<": operator.lshift, ">>": operator.rshift,
    "+": operator.add, "-": operator.sub, "*": operator.mul,
}  # fmt: skip  # rows of a table
# An operator or the kind of a node, and its operands.
Node: TypeAlias = tuple[Any, ...]


class _Parser:
    """The tokens of an expression that have not been read yet."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str]] = []
        position, stripped = 0, text.rstrip()
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if match is None:
                raise EvaluationError(f"{stripped[position:].strip()!r} is not understood in {text.strip()!r}")
            self._tokens.append((match.lastgroup or "", match[match.lastgroup or 0]))
            position = match.end()

    def whole(self) -> Node:
        """Read the whole expression."""
        node = self._binary(0)
        if self._tokens:
            raise self._error(self._tokens[0][1])
        return node

    def _error(self, word: str) -> EvaluationError:
        return EvaluationError(f"{word!r} is not expected in {self._text.strip()!r}")

    def _take(self, *signs: str) -> str:
        """Return the next token and remove it if it is one of these signs; otherwise return ""."""
        if self._tokens and self._tokens[0][0] == "sign" and self._tokens[0][1] in signs:
            return self._tokens.pop(0)[1]
        return ""

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            raise EvaluationError(f"{sign!r} is missing in {self._text.strip()!r}")

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        node = self._binary(level + 1)
        while sign := self._take(*_LEVELS[level]):
            node = ("binary", sign, node, self._binary(level + 1))
        return node

    def _unary(self) -> Node:
        if sign := self._take(*_UNARY):
            return "unary", sign, self._unary()
        node = self._primary()
        while sign := self._take("[", ".", "->"):
            if sign == "[":
                node = ("index", node, self._binary(0))
                self._need("]")
            else:
                node = ("member", node, self._name())
        return node

    def _name(self) -> str:
        if not self._tokens or self._tokens[0][0] != "name":
            raise EvaluationError(f"a member's name is missing in {self._text.strip()!r}")
        return self._tokens.pop(0)[1]

    def _primary(self) -> Node:
        if self._take("("):
            node = self._binary(0)
            self._need(")")
            return node
        if not self._tokens:
            raise EvaluationError(f"{self._text.strip()!r} ends too early")
        kind, text = self._tokens.pop(0)
        if kind == "sign":
            raise self._error(text)
        return kind, text


@lru_cache(maxsize=256)
def parse(text: str) -> Node:
    """Return an expression as a tree; raises EvaluationError if it is not understood."""
    return _Parser(text).whole()


def evaluate(text: str, scope: Scope) -> Value:
    """Return the value of an expression for the lanes of a scope; raises EvaluationError if it has none."""
    with np.errstate(all="ignore"):
        return _evaluate(parse(text), scope)


def holds(text: str, scope: Scope) -> NDArray[np.bool_]:
    """Return for which lanes of a scope a condition holds; for lanes without a value it does not."""
    value = evaluate(text, scope)
    found: NDArray[np.bool_] = value.data.astype(np.bool_) & value.known
    return found


def _evaluate(node: Node, scope: Scope) -> Value:
    kind = node[0]
    if kind == "name":
        return _named(node[1], scope)
    if kind == "number":
        return _number(node[1], len(scope.group.lanes))
    if kind == "unary":
        return _unary(node[1], _evaluate(node[2], scope), scope)
    if kind == "index":
        pointer = _sum(_evaluate(node[1], scope), _evaluate(node[2], scope), 1)
        return _target(pointer, scope)
    if kind == "member":
        return _member(node[1], node[2], scope)
    return _binary(node[1], _evaluate(node[2], scope), _evaluate(node[3], scope))


def _named(name: str, scope: Scope) -> Value:
    if name in ("true", "false"):
        return Value(BOOL, np.full(len(scope.group.lanes), name == "true"))
    return scope.value(name)


def _number(text: str, lanes: int) -> Value:
    if not text.lower().startswith("0x") and any(letter in text for letter in ".eE"):
        return Value(DOUBLE, np.full(lanes, float(text)))
    number = int(text, 0 if text.lower().startswith("0x") else 10)
    if number >= 1 << 64:
        raise EvaluationError(f"{text} has more than 64 bits")
    return Value(LONG, np.full(lanes, number, np.int64 if number < 1 << 63 else np.uint64))


def _member(node: Node, name: str, scope: Scope) -> Value:
    if node[0] == "name" and (value := scope.builtin(node[1], name)) is not None:
        return value
    value = _evaluate(node, scope)
    if isinstance(value.type, Pointer):
        value = _target(value, scope)
    if not isinstance(value.type, Structure) or value.addresses is None:
        raise EvaluationError(f"a {value.type.name} has no members")
    member = next((one for one in value.type.members if one.name == name), None)
    if member is None:
        raise EvaluationError(f"{value.type.name} has no member {name}")
    return scope.memory.load(member.type, value.addresses + np.uint64(member.offset), value.known)


def _target(value: Value, scope: Scope) -> Value:
    """Return what a pointer points to."""
    pointer = as_pointer(value)
    if not isinstance(pointer.type, Pointer) or pointer.type.target is None:
        raise EvaluationError(f"a {value.type.name} is not a pointer to values of a known type")
    return scope.memory.load(pointer.type.target, pointer.data, pointer.known)


def _unary(sign: str, value: Value, scope: Scope) -> Value:
    if sign == "*":
        return _target(value, scope)
    if sign == "&":
        if value.addresses is None:
            raise EvaluationError("a value in a register has no address")
        return Value(Pointer(value.type), value.addresses, None, value.known)
    if sign == "!":
        return Value(BOOL, ~value.data.astype(np.bool_), None, value.known)
    data = _wide(value)
    if sign == "~" and data.dtype.kind == "f":
        raise EvaluationError("~ needs an integer")
    return _result(-data if sign == "-" else ~data if sign == "~" else data, value.known)


def _wide(value: Value) -> NDArray[Any]:
    """Return numbers with 64 bits."""
    data = value.data
    if data.dtype.kind == "f":
        return data.astype(np.float64) if data.itemsize < 4 else data
    return data if data.dtype == np.uint64 else data.astype(np.int64)


def _sum(left: Value, right: Value, sign: int) -> Value:
    """Return a pointer moved by a number of elements."""
    pointer = as_pointer(left)
    if not isinstance(pointer.type, Pointer) or pointer.type.target is None:
        raise EvaluationError(f"a {left.type.name} has no elements")
    if right.data.dtype.kind == "f":
        raise EvaluationError("an index must be an integer")
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
    one, other = _wide(left), _wide(right)
    is_float = "f" in (one.dtype.kind, other.dtype.kind)
    if sign in ("/", "%"):
        known = known & ((other != 0) | is_float)
        return _result(_quotient(one, np.where(known, other, 1), sign, is_float=is_float), known)
    if is_float and sign in ("|", "^", "&", "<<", ">>"):
        raise EvaluationError(f"{sign} needs integers")
    if one.dtype != other.dtype and not is_float:
        one, other = one.astype(np.int64), other.astype(np.int64)
    return _result(_OPERATIONS[sign](one, other), known)


def _quotient(one: NDArray[Any], other: NDArray[Any], sign: str, *, is_float: bool) -> NDArray[Any]:
    """Return a quotient, rounded to zero for integers, or a remainder."""
    if is_float:
        if sign == "%":
            raise EvaluationError("% needs integers")
        divided: NDArray[Any] = one / other
        return divided
    rest: NDArray[Any] = np.fmod(one, other)
    whole: NDArray[Any] = (one - rest) // other
    return rest if sign == "%" else whole


def _result(data: NDArray[Any], known: NDArray[np.bool_]) -> Value:
    if data.dtype == np.bool_:
        return Value(BOOL, data, None, known)
    type_: CType = LONG if data.dtype == np.int64 else Scalar(str(data.dtype), data.dtype)
    return Value(type_, data, None, known)
