"""The parameters of kernels that were compiled from Python, and their places in the PTX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .. import errors
from ..compilation.exports import read_signatures
from ..compilation.names.signatures import Kind, Parameter, Signature

_POINTER_BYTES = 8
_KINDS: dict[str, Kind] = {"b": "bool", "i": "integer", "u": "integer", "f": "float"}


def scalar(type: str, dtype: str, *, divisor: int = 1) -> Parameter:
    """Return a parameter for a number; `dtype` is the name of a NumPy dtype, or "bfloat16"."""
    # NumPy has no bfloat16, which has the size of a float16.
    like = np.dtype("float16" if dtype == "bfloat16" else dtype)
    return Parameter(type, _KINDS[like.kind], like.itemsize, like.itemsize, 0, dtype=dtype, divisor=divisor)


def pointer(type: str, dtype: str | None, *, constant: bool = False, divisor: int = 1) -> Parameter:
    """Return a parameter for an array of which the kernel gets the address; `dtype` is None if any is accepted."""
    size = _POINTER_BYTES
    return Parameter(type, "pointer", size, size, 0, dtype=dtype, constant=constant, divisor=divisor)


def make_signature(call: str, compiler: str, ptx: str, name: str, parameters: Sequence[Parameter]) -> Signature:
    """Return the signature of the only kernel in a PTX text, with the parameters at the offsets that the PTX declares.

    A parameter may correspond to several parameters in the PTX, with the same size in total. Pointers after the last
    parameter are zero at each launch. Raises NotSupportedError, naming the `compiler`, if the PTX declares others.
    """
    (layout,) = read_signatures(ptx).values()
    declared = list(layout.parameters)
    placed: list[Parameter] = []
    for parameter in parameters:
        offset = declared[0].offset if declared else layout.size
        end = offset + parameter.size
        while declared and declared[0].offset + declared[0].size <= end:
            last = declared.pop(0)
            if last.offset + last.size == end:
                placed.append(replace(parameter, offset=offset))
    if len(placed) != len(parameters) or any(rest.size != _POINTER_BYTES for rest in declared):
        raise errors.NotSupportedError(
            f"{call}: {compiler} compiled {name} to a kernel with {len(layout.parameters)} parameters of "
            f"{layout.size} bytes, which do not correspond to its signature. This version of {compiler} may be newer "
            "than this package"
        )
    used = placed[-1].offset + placed[-1].size if placed else 0
    return Signature(layout.entry, name, tuple(placed), layout.size - used)
