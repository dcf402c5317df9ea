"""What a kernel takes: each parameter's C++ type, and where it lies in the parameter buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Kind", "Parameter", "Signature"]

Kind = Literal["pointer", "integer", "float", "bool", "enum", "structure", "unknown"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel; `size`, `alignment` and `offset` are bytes of the parameter buffer.

    `type` is the C++ type as the demangler spells it, empty where it is not known. `dtype` is the name
    of the NumPy dtype of the scalar, or of what a pointer points to; None for structures, and for
    pointers that take any dtype (`void*`, `char*`, structures). "bfloat16" is a dtype of its own name,
    which NumPy has not. `constant` tells that the kernel does not write through the pointer.
    """

    type: str
    kind: Kind
    size: int
    alignment: int
    offset: int
    dtype: str | None = None
    element: str = ""
    constant: bool = False

    @property
    def bits(self) -> int:
        """Return the width in bits."""
        return 8 * self.size

    @property
    def signed(self) -> bool:
        """Tell whether an integer is a signed one."""
        return self.dtype is not None and self.dtype.startswith("int")


@dataclass(frozen=True, slots=True)
class Signature:
    """A kernel's name in the image (`entry`), its C++ name and its parameters."""

    entry: str
    name: str
    parameters: tuple[Parameter, ...]

    @property
    def size(self) -> int:
        """Return the bytes from the first parameter's start to the last one's end."""
        return self.parameters[-1].offset + self.parameters[-1].size if self.parameters else 0

    @property
    def typed(self) -> bool:
        """Tell whether any C++ type is known, and not only sizes."""
        return not self.parameters or any(parameter.type for parameter in self.parameters)

    def __str__(self) -> str:
        types = (parameter.type or f"{parameter.size} bytes" for parameter in self.parameters)
        return f"void {self.name}({', '.join(types)})"
