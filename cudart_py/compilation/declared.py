"""The extern "C" kernels and the variables that a source declares, as far as its text alone tells.

What macros and headers declare, and which conditions of the preprocessor hold, is known to the compiler alone.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Declared", "read_declared"]

# Comments, directives and strings.
_NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|^[ \t]*#(?:\\\n|[^\n])*|"(?:\\.|[^"\\\n])*"', re.DOTALL | re.MULTILINE)
_BOUNDARY = re.compile(r"[{};]")
_NAMESPACE = re.compile(r"\s*(?:inline\s+)?namespace\b\s*([\w:]*)\s*")
_LINKAGE = re.compile(r'\s*extern\s*"C"\s*')
_ATTRIBUTE = re.compile(r"\b(?:__\w+__|alignas)\s*\([^()]*\)")
_KERNEL = re.compile(r"__global__\b.*?\bvoid\s+(\w+)\s*\(", re.DOTALL)
_VARIABLE = re.compile(r"\b(?:__(?:device|constant|managed)__|constexpr)\b")
_DECLARATOR = re.compile(r"\b(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=.*)?\Z", re.DOTALL)
# Where commas may stand within a declarator.
_BRACKETED = re.compile(r"[<(]")
# What has no type yet, or declares what another source defines.
_NO_DEFINITION = re.compile(r'\btemplate\b|\bextern\b(?!\s*"C")')
# A statement of more characters is left to the compiler.
_LONGEST_STATEMENT = 4096
_TYPE = re.compile(r"\b(?:struct|class|union|enum)\b")


class Declared(NamedTuple):
    """Names of extern "C" kernels and of variables, each with its namespaces; `managed` are those of managed memory."""

    kernels: list[str]
    variables: list[str]
    managed: list[str]


class _Scope(NamedTuple):
    """What stands before the names of a scope, None inside functions and types, and whether its linkage is C's."""

    prefix: str | None
    is_c: bool


def read_declared(source: str) -> Declared:
    """Return what a source declares outside functions and types."""
    code = _NOT_CODE.sub(lambda match: match[0] if match[0] == '"C"' else " ", source)
    found = Declared([], [], [])
    scopes = [_Scope("", False)]
    start = 0
    for boundary in _BOUNDARY.finditer(code):
        statement, start = code[start : boundary.start()], boundary.end()
        if boundary[0] == "}":
            if len(scopes) > 1:
                scopes.pop()
            continue
        opens = boundary[0] == "{"
        _add(found, statement, scopes[-1], opens)
        if opens:
            scopes.append(_inner(statement, scopes[-1]))
    return found


def _inner(statement: str, outer: _Scope) -> _Scope:
    """Return the scope that a brace behind a statement opens."""
    namespace = _NAMESPACE.fullmatch(statement)
    if outer.prefix is None or not (namespace or _LINKAGE.fullmatch(statement)):
        return _Scope(None, False)
    if namespace is None:
        return _Scope(outer.prefix, True)
    return _Scope(outer.prefix + (f"{namespace[1]}::" if namespace[1] else ""), outer.is_c)


def _add(found: Declared, statement: str, scope: _Scope, opens: bool) -> None:
    """Add the name that a statement declares, if it does."""
    if scope.prefix is None or len(statement) > _LONGEST_STATEMENT or _NO_DEFINITION.search(statement):
        return
    text = _ATTRIBUTE.sub(" ", statement)
    kernel = _KERNEL.search(text)
    if kernel is not None:
        # One in a namespace has a symbol that does not tell which.
        if not scope.prefix and (scope.is_c or '"C"' in text):
            found.kernels.append(kernel[1])
        return
    # A function has parentheses, and a type of its own comes before what has it.
    if not _VARIABLE.search(text) or "(" in text.partition("=")[0] or (opens and _TYPE.search(text)):
        return
    names = found.managed if "__managed__" in text else found.variables
    for piece in [text] if _BRACKETED.search(text) else text.split(","):
        if declarator := _DECLARATOR.search(piece):
            names.append(scope.prefix + declarator[1])
