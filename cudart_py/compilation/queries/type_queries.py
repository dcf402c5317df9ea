"""Queries for types that mangled names do not contain: the types of extern "C" kernels and of variables.

A query instantiates a template with the type. NVRTC reports the mangled name of the instance, which contains the type.
In a run that generates an image, the template is declared but not defined, so it adds nothing to the image. NVRTC
rejects such a template for types with internal linkage, such as types in an anonymous namespace. In a run that only
checks the syntax, the template is defined.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..diagnostics import NAME_MAP
from ..names.demangling import declared_name, demangle

# A name that no user's source contains, so it cannot collide.
_PROBE = "cudart_py_type_of_3f9c1e"
# Names that the compiler generates for strings and for static variables of functions.
_COMPILERS_OWN = re.compile(r"\$|\b__unnamed_\d")
# The last part of a name, without namespaces and template arguments.
_LAST_PART = re.compile(r"(\w+)(?:<.*>)?$")
# All on one line, which is appended to a line of the source: the line numbers of the source must not change.
_PLAIN = (
    f" template <class {_PROBE}_argument> struct {_PROBE}_bare;"
    f" template <class {_PROBE}_argument> struct {_PROBE}_bare<{_PROBE}_argument&>"
    f" {{ typedef {_PROBE}_argument type; }};"
)
_ASKING = f" template <class {_PROBE}_argument> __global__ void {_PROBE}({_PROBE}_argument*)"
DECLARED = f"{_ASKING};{_PLAIN}"
DEFINED = f"{_ASKING} {{}}{_PLAIN}"


def type_of(name: str, *, managed: bool = False) -> str:
    """Return the C++ spelling of the type of a kernel or of a variable."""
    # In decltype, a managed variable must be in parentheses, which makes the type a reference.
    return f"{_PROBE}_bare<decltype(({name}))>::type" if managed else f"decltype({name})"


def can_be_spelled(name: str) -> bool:
    """Return whether a source can spell a name; it cannot spell names that the compiler generates, as for strings."""
    return _COMPILERS_OWN.search(name) is None


def may_declare(text: str | None, name: str) -> bool:
    """Return whether a text may declare a variable: it contains the last part of the name, or it pastes tokens."""
    if text is None or "##" in text:
        return True
    part = _LAST_PART.search(name)
    return part is None or re.search(rf"\b{re.escape(part[1])}\b", text) is not None


def expression(query: str) -> str:
    """Return the name expression that queries a type."""
    return f"{_PROBE}<{query}>"


def read_types(queries: Iterable[str], lowered: Mapping[str, str]) -> dict[str, str]:
    """Return the types keyed by query; `lowered` maps the queries' expressions to mangled names."""
    types = {}
    for query in queries:
        name = declared_name(demangle(lowered[expression(query)]) or "")
        if name.startswith(f"{_PROBE}<"):
            types[query] = name[len(_PROBE) + 1 : -1].strip()
    return types


def concerns_queries(log: str) -> bool:
    """Return whether a log has messages about name expressions, or quotes the line that the templates are in."""
    return NAME_MAP in log or _PROBE in log
