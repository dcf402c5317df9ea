"""Demangle C++ names, and take demangled declarations apart.

The demangler is in the C++ library, which the bindings load anyway. If it cannot be loaded, names stay mangled, and
signatures have only the information in the PTX.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable

_LIBRARY = "libstdc++.so.6"
# Numba keeps the options of a compilation in such tags of a kernel's name.
_ABI_TAG = re.compile(r"\[abi:\w+\]")
# The qualifiers after the arguments of a member function.
_QUALIFIERS = re.compile(r"(?<=\))(?: const| volatile| &&?)+$")


@functools.cache
def _functions() -> tuple[Callable[..., int | None], Callable[..., None]] | None:
    """Return `__cxa_demangle` and the `free` that belongs to it, or None if there is no C++ library."""
    try:
        demangler = ctypes.CDLL(_LIBRARY).__cxa_demangle
        free = ctypes.CDLL(None).free
    except (OSError, AttributeError):
        return None
    demangler.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    demangler.restype = ctypes.c_void_p
    free.argtypes = [ctypes.c_void_p]
    free.restype = None
    return demangler, free


def demangle(name: str) -> str | None:
    """Return the C++ declaration of a mangled name, such as `z::k(double*, short const*)`.

    Returns None for a name that is not mangled (extern "C"), and if the C++ library is missing.
    """
    functions = _functions()
    if functions is None or not name.startswith("_Z"):
        return None
    demangler, free = functions
    status = ctypes.c_int()
    address = demangler(name.encode(), None, None, ctypes.byref(status))
    if not address:
        return None
    try:
        return ctypes.string_at(address).decode()
    finally:
        free(address)


def function_name(symbol: str) -> str:
    """Return a function's qualified C++ name with its template arguments, such as `z::reduce<float, 256>`.

    Returns the symbol itself if it is not mangled.
    """
    declaration = demangle(symbol)
    return symbol if declaration is None else _ABI_TAG.sub("", declared_name(_QUALIFIERS.sub("", declaration)))


def _list_start(declaration: str) -> int:
    """Return the index of the parenthesis that opens the argument list at a declaration's end; -1 without a list."""
    if not declaration.endswith(")"):
        return -1
    depth = 0
    for position in range(len(declaration) - 1, -1, -1):
        character = declaration[position]
        if character == ")":
            depth += 1
        elif character == "(":
            depth -= 1
            if depth == 0:
                return position
    return -1


def declared_name(declaration: str) -> str:
    """Return the qualified name with its template arguments: `reduce<float, 256>`, without return type."""
    start = _list_start(declaration)
    name = (declaration if start < 0 else declaration[:start]).strip()
    if "operator" in name:
        return name.removeprefix("void ")
    # Templates are demangled with their return type.
    depth = start = 0
    for position, character in enumerate(name):
        depth += (character in "<([{") - (character in ">)]}")
        if character == " " and depth == 0:
            start = position + 1
    return name[start:]


def argument_list(declaration: str) -> tuple[str, ...]:
    """Return the argument types of a demangled function, or of a function type `void (float, int)`."""
    start = _list_start(declaration)
    return () if start < 0 else split_arguments(declaration[start + 1 : -1])


def split_arguments(text: str) -> tuple[str, ...]:
    """Split a list at its outermost commas: those inside `<>`, `()`, `[]` and `{}` belong to one type."""
    arguments: list[str] = []
    depth = start = 0
    for position, character in enumerate(text):
        if character in "<([{":
            depth += 1
        elif character in ">)]}" and text[position - 1 : position + 1] != "->":
            depth -= 1
        elif character == "," and depth == 0:
            arguments.append(text[start:position].strip())
            start = position + 1
    last = text[start:].strip()
    if last and not (last == "void" and not arguments):
        arguments.append(last)
    return tuple(arguments)
