"""The signature of a kernel: each parameter's C++ type, and its offset in the parameter buffer.

Sizes, alignments and the order of parameters come from PTX. The C++ types come from the mangled name, or from a query
of `decltype(kernel)` to NVRTC. A parameter whose type remains unknown has the kind "unknown" and its size.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["pointer", "integer", "float", "bool", "enum", "structure", "array", "unknown"]

# CUDA's sizes on the 64-bit platforms that CUDA 13 supports.
_INTEGERS = {
    "char": "int8",
    "signed char": "int8",
    "unsigned char": "uint8",
    "short": "int16",
    "unsigned short": "uint16",
    "int": "int32",
    "unsigned int": "uint32",
    "long": "int64",
    "unsigned long": "uint64",
    "long long": "int64",
    "unsigned long long": "uint64",
    "wchar_t": "int32",
    "char8_t": "uint8",
    "char16_t": "uint16",
    "char32_t": "uint32",
}
_FLOATS = {"float": "float32", "double": "float64", "__half": "float16", "__nv_bfloat16": "bfloat16"}
# The complex numbers of libcu++, Thrust and the C++ library, whose real namespaces include a version.
_COMPLEX = re.compile(r"(?:cuda|thrust|std)::(?:\w+::)*complex<(float|double)>")
_COMPLEX_DTYPES = {"float": "complex64", "double": "complex128"}
_PTX_FLOATS = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
_ITEM_BYTES = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}
# Type names that the demangler leaves unresolved, because only the compiler can resolve them.
_DEPENDENT = re.compile(r">::|\bdecltype\b|\bauto\b|\(\.\.\.\)")
_POINTER_TO_ARRAY = re.compile(r"^(?P<element>.*?) \(\*\) ?(?:\[\w*\])+$")
_QUALIFIERS = re.compile(r"(?:\s*\b(?:const|volatile|__restrict)\b)+$")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel, with its `size`, `alignment` and `offset` in the parameter buffer, all in bytes.

    `type` is the C++ type as the demangler spells it, or empty if it is unknown. `dtype` is the name of the NumPy dtype
    of the scalar, or of a pointer's elements. It is None for structures, and for pointers that accept any dtype
    (`void*`, `char*`, pointers to structures other than complex numbers). The name "bfloat16" has no dtype in NumPy.
    `constant` is True for a pointer to const elements, through which the kernel does not write.

    The other fields describe kernels that were not compiled from C++. The compiler has assumed that the value is a
    multiple of `divisor`. An "array" is Numba's description of an array with `dimensions` dimensions, which also
    contains the shape and the strides. Its `layout` is "C" or "F" for contiguous arrays, and "A" for any strides.
    """

    type: str
    kind: Kind
    size: int
    alignment: int
    offset: int
    dtype: str | None = None
    element: str = ""
    constant: bool = False
    divisor: int = 1
    dimensions: int = 0
    layout: str = ""

    @property
    def bits(self) -> int:
        """The size in bits."""
        return 8 * self.size

    @property
    def signed(self) -> bool:
        """Whether the parameter is a signed integer."""
        return self.dtype is not None and self.dtype.startswith("int")


@dataclass(frozen=True, slots=True)
class Signature:
    """A kernel's name in the image (`entry`), its C++ name and its parameters.

    `zeros` is the size in bytes, with any padding, of further parameters that no argument sets. They are always zero.
    """

    entry: str
    name: str
    parameters: tuple[Parameter, ...]
    zeros: int = 0

    @property
    def size(self) -> int:
        """The size of all parameters in bytes, from the start of the first to the end of the last."""
        last = self.parameters[-1] if self.parameters else None
        return (last.offset + last.size if last else 0) + self.zeros

    @property
    def typed(self) -> bool:
        """Whether the C++ type of any parameter is known, rather than only sizes."""
        return not self.parameters or any(parameter.type for parameter in self.parameters)

    def __str__(self) -> str:
        types = (parameter.type or f"{parameter.size} bytes" for parameter in self.parameters)
        return f"void {self.name}({', '.join(types)})"


def make_parameter(
    type: str, ptx_type: str, size: int, alignment: int, offset: int, *, resolved: bool = False
) -> Parameter:
    """Classify one parameter by its C++ type and its PTX type ("f32", "u64", "b8" for arrays of bytes).

    A C++ structure is an array of bytes in PTX. `resolved` means that the type came from the compiler; an unknown name
    of scalar size can then only be an enumeration.
    """
    place = (size, alignment, offset)
    text = _QUALIFIERS.sub("", type)
    if text in _INTEGERS:
        return Parameter(type, "integer", *place, dtype=_INTEGERS[text])
    if text in _FLOATS:
        return Parameter(type, "float", *place, dtype=_FLOATS[text])
    if text == "bool":
        return Parameter(type, "bool", *place, dtype="bool")
    array = _POINTER_TO_ARRAY.match(text)
    if text.endswith("*") or array:
        element = array["element"] if array else text[:-1].rstrip()
        bare = _QUALIFIERS.sub("", element)
        return Parameter(type, "pointer", *place, dtype=_pointee(bare), element=bare, constant=_is_constant(element))
    if ptx_type == "b8":
        return Parameter(type, "structure", *place)
    if ptx_type in _PTX_FLOATS:
        return Parameter(type, "float", *place, dtype=_PTX_FLOATS[ptx_type])
    plain = bool(text) and text[-1] not in "&)]" and (resolved or not _DEPENDENT.search(text))
    return Parameter(type, "enum" if plain else "unknown", *place)


def make_parameters(
    types: Sequence[str], layout: Sequence[tuple[str, int, int]], *, resolved: bool = False
) -> tuple[Parameter, ...]:
    """Return the parameters of an entry from their C++ types and their (PTX type, size, alignment) tuples.

    If the two sequences differ in length, the C++ types are not trusted and are ignored.
    """
    if len(types) != len(layout):
        types = [""] * len(layout)
    parameters = []
    offset = 0
    for type, (ptx_type, size, alignment) in zip(types, layout, strict=True):
        offset = -(-offset // alignment) * alignment
        parameters.append(make_parameter(type, ptx_type, size, alignment, offset, resolved=resolved))
        offset += size
    return tuple(parameters)


def item_bytes(ptx_type: str) -> int:
    """Return the size in bytes of one item of a PTX type such as "f32", "u64" or "b8"."""
    return _ITEM_BYTES[ptx_type.lstrip("abcdefghijklmnopqrstuvwxyz")] if ptx_type != "pred" else 1


def element_dtype(type: str) -> str | None:
    """Return the name of the dtype of a C++ scalar or pointer type; None for structures."""
    text = _QUALIFIERS.sub("", type)
    if text == "bool":
        return "bool"
    if text.endswith("*"):
        return "uint64"
    return _INTEGERS.get(text) or _FLOATS.get(text)


def needs_compiler(parameter: Parameter) -> bool:
    """Return whether only the compiler can resolve a parameter's type."""
    return not parameter.type or bool(_DEPENDENT.search(parameter.type))


def _pointee(element: str) -> str | None:
    if number := _COMPLEX.fullmatch(element):
        return _COMPLEX_DTYPES[number[1]]
    # In C, a char* often means bytes of any type, while signed and unsigned char are numbers.
    return None if element == "char" else element_dtype(element)


def _is_constant(element: str) -> bool:
    qualifiers = _QUALIFIERS.search(element)
    return qualifiers is not None and "const" in qualifiers[0]
