"""Queries for types that mangled names do not contain: those of extern "C" kernels and of variables.

NVRTC reports the mangled name of a template's instance, which contains the type that the instance is for. In a run that
generates an image, the template is declared but not defined, so it adds nothing to the image. NVRTC rejects that for
types with internal linkage, such as those in an anonymous namespace. In a run that only checks the syntax, the template
is defined.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..diagnostics import NAME_MAP
from ..names.demangling import declared_name, demangle

# A name that no user's source contains, so it cannot collide.
_PROBE = "cudart_py_type_of_3f9c1e"
# Names that the compiler gives to strings and to static variables of functions.
_COMPILERS_OWN = re.compile(r"\$|\b__unnamed_\d")
# A name without its namespaces, and without the arguments of a template's instance.
_LAST_PART = re.compile(r"(\w+)(?:<.*>)?$")
# On one line, which is appended to a line of the source, so that the line numbers of the source do not change.
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
    """Return whether a source can spell a name, unlike names that the compiler makes up, for example for strings."""
    return _COMPILERS_OWN.search(name) is None


def may_declare(text: str | None, name: str) -> bool:
    """Return whether a text may declare a variable: it contains the last part of its name, or pastes tokens."""
    if text is None or "##" in text:
        return True
    part = _LAST_PART.search(name)
    return part is None or re.search(rf"\b{re.escape(part[1])}\b", text) is not None


def expression(query: str) -> str:
    """Return the name expression that queries a type."""
    return f"{_PROBE}<{query}>"


def read_types(queries: Iterable[str], lowered: Mapping[str, str]) -> dict[str, str]:
    """Return the type for each query; `lowered` has the mangled names of the queries' expressions."""
    types = {}
    for query in queries:
        name = declared_name(demangle(lowered[expression(query)]) or "")
        if name.startswith(f"{_PROBE}<"):
            types[query] = name[len(_PROBE) + 1 : -1].strip()
    return types


def concerns_queries(log: str) -> bool:
    """Return whether a log has messages about name expressions, or quotes the line that the templates are in."""
    return NAME_MAP in log or _PROBE in log
