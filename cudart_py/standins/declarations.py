"""Declarations: the C functions of CUDA's libraries, read from the files of `cuda.bindings`.

The bindings come with Cython's declarations of all functions under the names that the libraries export, including the
suffixes of their versions such as `cuMemAlloc_v2`.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

# Some versions also declare functions that are not the library's, such as make_cudaExtent.
_FUNCTION = re.compile(r"^cdef (?:const )?(\w+\*?) _((?:cu|nv)\w+)\((.*?)\) except", re.MULTILINE)
_PARAMETER = re.compile(r"(.*?[\s*])(\w+)$")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a C function, such as ``CUdeviceptr*`` and ``dptr``.

    `constant` says whether the function only reads what a pointer refers to; `const` is not part of the type.
    """

    type: str
    name: str
    constant: bool = False

    @property
    def is_pointer(self) -> bool:
        """Return whether the type is written as a pointer. A handle, such as CUstream, is not."""
        return self.type.endswith("*")

    @property
    def pointee(self) -> str:
        """Return the type that a pointer refers to."""
        return self.type[:-1].rstrip()


@dataclass(frozen=True)
class Declaration:
    """A C function: the name that the library exports, its parameters, and the type of its result."""

    symbol: str
    parameters: tuple[Parameter, ...]
    result: str = "int"


def parameters_of(text: str) -> tuple[Parameter, ...]:
    """Return the parameters of a C parameter list, without its parentheses."""
    return tuple(_parameter(part.strip()) for part in text.split(",") if part.strip() not in ("", "void"))


def _parameter(text: str) -> Parameter:
    match = _PARAMETER.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a type and a name")
    kind, constant = re.subn(r"^const\s+", "", match[1].strip())
    kind = re.sub(r"\s+\*", "*", kind)
    # A function that returns text or an array writes a pointer to something constant.
    return Parameter(kind, match[2], bool(constant) and not kind.endswith("**"))


@functools.cache
def declarations(module: str) -> dict[str, Declaration]:
    """Return the functions of a library by the names that it exports; `module` is the bindings' module for it.

    A few functions of the runtime are missing, because only C++ can call them.
    """
    found = _FUNCTION.findall(declarations_file(module).read_text())
    return {symbol: Declaration(symbol, parameters_of(listed), result) for result, symbol, listed in found}


def declarations_file(module: str) -> Path:
    """Return the file that declares the functions of a library; its place depends on the version of the bindings."""
    bindings = importlib.util.find_spec("cuda.bindings")
    for folder in bindings.submodule_search_locations or () if bindings else ():
        for name in (f"_internal/{module}.pxd", f"_bindings/cy{module}.pxd"):
            if (path := Path(folder, name)).is_file():
                return path
    raise FileNotFoundError(f"cuda-bindings comes without the declarations of {module}")
