"""Types as C++ declares them, for ptype and whatis."""

from __future__ import annotations

from typing import Any


def declaration(type_: Any, name: str = "") -> str:
    """Return the declaration of a name, or a type without a name: ``float (*)[4]``."""
    kind = type(type_).__name__
    if kind == "Array":
        return declaration(type_.element, f"{name}[{type_.count}]")
    if kind == "Pointer":
        sign = f"{'&' if type_.is_reference else '*'}{name}"
        if type_.target is None:
            return f"void {sign}"
        return declaration(type_.target, f"({sign})" if type(type_.target).__name__ == "Array" else sign)
    return f"{type_.name} {name}".rstrip()


def definition(type_: Any) -> str:
    """Return a type with the members of its structure or the values of its enumeration."""
    inner, around = type_, ""
    while type(inner).__name__ in ("Array", "Pointer"):
        inner = inner.element if type(inner).__name__ == "Array" else inner.target
    if inner is None:
        return declaration(type_)
    if type(inner).__name__ == "Structure":
        members = "".join(f"    {declaration(one.type, one.name)};\n" for one in inner.members)
        around = f"struct {inner.name} {{\n{members}}}"
    elif getattr(inner, "enumerators", ()):
        around = f"enum {inner.name} {{{', '.join(_enumerators(inner.enumerators))}}}"
    return around + declaration(type_).removeprefix(inner.name) if around else declaration(type_)


def _enumerators(values: Any) -> list[str]:
    texts, following = [], 0
    for value, name in values:
        texts.append(name if value == following else f"{name} = {value}")
        following = value + 1
    return texts
