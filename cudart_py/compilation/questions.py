"""Ask the compiler for the types that mangled names do not tell: those of extern "C" kernels and of variables.

A name expression of NVRTC may be an instance of a template, and the instance's symbol tells the type that it is for.
The template below is declared and nowhere defined, so that nothing of it gets into an image.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from .declared import read_declared
from .demangling import declared_name, demangle

__all__ = ["SOURCE", "answers", "can_be_asked", "expression", "of_kernel", "of_text", "of_variable"]

# A name that no user's source contains, so that it cannot collide.
_PROBE = "cudart_py_type_of_3f9c1e"
_COMPILERS_OWN = re.compile(r"[$]|\b__|^(?:vtable|typeinfo) ")
# What is put behind the user's source.
SOURCE = f"""
template <class {_PROBE}_argument> __global__ void {_PROBE}({_PROBE}_argument*);
template <class {_PROBE}_argument> struct {_PROBE}_bare;
template <class {_PROBE}_argument> struct {_PROBE}_bare<{_PROBE}_argument&> {{ typedef {_PROBE}_argument type; }};
"""


def can_be_asked(name: str) -> bool:
    """Return whether a source can have spelled a name: the compiler's own have other characters or are reserved."""
    return _COMPILERS_OWN.search(name) is None


def of_kernel(name: str) -> str:
    """Return the type to ask for of a kernel or of an instance of a template."""
    return f"decltype({name})"


def of_variable(name: str, *, managed: bool) -> str:
    """Return the type to ask for of a variable."""
    # A managed one may stand in decltype within parentheses alone, as a reference.
    return f"{_PROBE}_bare<decltype(({name}))>::type" if managed else f"decltype({name})"


def of_text(source: str) -> list[str]:
    """Return the types to ask for of what a source seems to declare."""
    declared = read_declared(source)
    asked = [of_kernel(name) for name in declared.kernels]
    asked += [of_variable(name, managed=False) for name in declared.variables]
    asked += [of_variable(name, managed=True) for name in declared.managed]
    return list(dict.fromkeys(asked))


def expression(question: str) -> str:
    """Return the name expression whose symbol tells a type."""
    return f"{_PROBE}<{question}>"


def answers(questions: Iterable[str], lowered: Mapping[str, str]) -> dict[str, str]:
    """Return the types that were asked for, by what was asked; `lowered` has the symbols of name expressions."""
    declarations = {question: demangle(lowered[expression(question)]) for question in questions}
    return {
        question: declared_name(declaration)[len(_PROBE) + 1 : -1].strip()
        for question, declaration in declarations.items()
        if declaration
    }
