"""The syntax of expressions, a subset of C++: names, members, elements, numbers, operators, casts and ``sizeof``.

Calls, assignments, strings and templates are not part of it. As in gdb, ``x[0]@4`` is an array of four elements, and
``(@shared int*)0x400`` names a state space.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[uUlLfF]*)"
    r"|(?P<character>'(?:[^'\\]|\\.)')"
    r"|(?P<name>%?[A-Za-z_]\w*|\$(?:\$|\d+|\w+)?)|(?P<sign>->|&&|\|\||::|[=!<>]=|<<|>>|[-+*/%&|^~!<>()\[\].?:@]))"
)
# Binary operators, those that bind least first.
_LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"), ("@",), ("+", "-"),
    ("*", "/", "%"),
)  # fmt: skip  # rows of a table
_UNARY = "-!~*&+"
# The words before a structure's name.
_TAGS = frozenset({"struct", "class", "union", "enum"})
# The state spaces that pointers may name, as in cuda-gdb.
SPACES = ("shared", "local", "global", "generic")
_TYPE_WORDS = frozenset({"bool", "char", "short", "int", "long", "signed", "unsigned", "float", "double"})
# An operator or the kind of a node, and its operands.
Node: TypeAlias = tuple[Any, ...]


class Type(NamedTuple):
    """A type in an expression: its name, how many ``*`` follow it, and the state space that a pointer names, or "".

    `is_plain` says that the name consists of C++'s own words.
    """

    name: str
    stars: int
    space: str
    is_plain: bool


class ExpressionError(ValueError):
    """An expression that is not understood, or that has no value here; the text says why."""


class _Parser:
    """The tokens of an expression that have not been read yet."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str]] = []
        position, stripped = 0, text.rstrip()
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if match is None:
                raise ExpressionError(f"{stripped[position:].strip()!r} is not understood in {text.strip()!r}")
            self._tokens.append((match.lastgroup or "", match[match.lastgroup or 0]))
            position = match.end()

    def whole(self) -> Node:
        """Read the whole expression."""
        node = self._conditional()
        if self._tokens:
            raise self._error(self._tokens[0][1])
        return node

    def _error(self, word: str) -> ExpressionError:
        return ExpressionError(f"{word!r} is not expected in {self._text.strip()!r}")

    def _take(self, *signs: str) -> str:
        """Return the next token and remove it if it is one of these signs; otherwise return ""."""
        if self._tokens and self._tokens[0][0] == "sign" and self._tokens[0][1] in signs:
            return self._tokens.pop(0)[1]
        return ""

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            raise ExpressionError(f"{sign!r} is missing in {self._text.strip()!r}")

    def _conditional(self) -> Node:
        condition = self._binary(0)
        if not self._take("?"):
            return condition
        chosen = self._conditional()
        self._need(":")
        return "conditional", condition, chosen, self._conditional()

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        node = self._binary(level + 1)
        while sign := self._take(*_LEVELS[level]):
            node = ("binary", sign, node, self._binary(level + 1))
        return node

    def _unary(self) -> Node:
        if cast := self._cast():
            return "cast", *cast, self._unary()
        if sign := self._take(*_UNARY):
            return "unary", sign, self._unary()
        node = self._primary()
        while sign := self._take("[", ".", "->"):
            if sign == "[":
                node = ("index", node, self._conditional())
                self._need("]")
            else:
                node = ("member", node, self._name())
        return node

    def _cast(self) -> tuple[Type, ...] | None:
        """Read a type in parentheses, if there is one. A type that is not made of C++'s own words must be a pointer.

        Otherwise the parentheses of ``(count) - 1`` would be taken for a cast.
        """
        if not self._tokens or self._tokens[0][1] != "(":
            return None
        tokens = list(self._tokens)
        self._take("(")
        found = self._type()
        if found is None or not (found.is_plain or found.stars) or not self._take(")"):
            self._tokens = tokens
            return None
        return (found,)

    def _type(self) -> Type | None:
        """Read a type: its words, and how many ``*`` follow them."""
        words: list[str] = []
        space = ""
        if len(self._tokens) > 1 and self._tokens[0][1] == "@" and self._tokens[1][1] in SPACES:
            space = self._tokens[1][1]
            del self._tokens[:2]
        while self._tokens and self._tokens[0][1] in _TYPE_WORDS:
            words.append(self._tokens.pop(0)[1])
        is_plain = bool(words)
        if self._tokens and self._tokens[0][1] in _TAGS:
            del self._tokens[0]
        if not words and self._tokens and self._tokens[0][0] == "name":
            words.append(self._tokens.pop(0)[1])
            while self._take("::"):
                words = [f"{words[0]}::{self._name()}"]
        stars = 0
        while self._take("*"):
            stars += 1
        return Type(" ".join(words), stars, space, is_plain) if words else None

    def type_alone(self) -> Type | None:
        """Read a type that is the whole text, or return None for an expression."""
        found = self._type()
        return None if self._tokens else found

    def _name(self) -> str:
        if not self._tokens or self._tokens[0][0] != "name":
            raise ExpressionError(f"a name is missing in {self._text.strip()!r}")
        return self._tokens.pop(0)[1]

    def _primary(self) -> Node:
        if self._take("("):
            node = self._conditional()
            self._need(")")
            return node
        if not self._tokens:
            raise ExpressionError(f"the expression {self._text.strip()!r} is incomplete")
        is_global = bool(self._take("::"))
        kind, text = self._tokens.pop(0) if self._tokens else ("sign", "::")
        if kind == "sign" or (is_global and kind != "name"):
            raise self._error(text)
        while kind == "name" and self._take("::"):
            text = f"{text}::{self._name()}"
        if text == "sizeof":
            return self._size()
        return kind, text

    def _size(self) -> Node:
        """Read what follows ``sizeof``: a type in parentheses, or an expression."""
        tokens = list(self._tokens)
        if self._take("(") and (found := self._type()) is not None and self._take(")"):
            # Only the scope knows whether a single name is that of a variable.
            self._tokens, rest = tokens, self._tokens
            node = self._unary() if not (found.is_plain or found.stars) else None
            if node is None:
                self._tokens = rest
            return "sizeof", found, node
        self._tokens = tokens
        return "sizeof", None, self._unary()


@lru_cache(maxsize=256)
def parse_type(text: str) -> Type | None:
    """Return the type that a text may be, or None if it can only be an expression."""
    try:
        return _Parser(text).type_alone()
    except ExpressionError:
        return None


@lru_cache(maxsize=256)
def parse(text: str) -> Node:
    """Return an expression as a tree; raises ExpressionError if it is not understood."""
    return _Parser(text).whole()
