"""Arrays of other libraries: their `__cuda_array_interface__`, checked before use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..base import arguments


class ForeignArray(NamedTuple):
    """The content of an array interface. `stream` is the handle of the stream to wait for, or None."""

    pointer: int
    read_only: bool
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...] | None
    stream: int | None


def read_interface(call: str, name: str, interface: Any) -> ForeignArray:
    """Read the CUDA array interface of a call's argument; TypeError or ValueError that names the invalid entry."""
    if not isinstance(interface, Mapping):
        raise arguments.wrong_type(call, f"{name}.__cuda_array_interface__", "a dict", interface)
    for key in ("shape", "typestr", "data"):
        if key not in interface:
            raise arguments.unusable(call, name, f"have a __cuda_array_interface__ with {key!r}", "one without")
    if interface.get("mask") is not None:
        remedy = "pass its data and its mask separately"
        raise arguments.unusable(call, name, "be an array without a mask", "a masked array", remedy)

    def entry(key: str) -> str:
        return f"{name}.__cuda_array_interface__[{key!r}]"

    data = interface["data"]
    if not isinstance(data, tuple) or len(data) != 2:
        raise arguments.wrong_type(call, entry("data"), "a pair of the address and whether it is read-only", data)
    pointer = 0 if data[0] is None else arguments.integer(call, entry("data"), data[0], 0, 2**64 - 1)
    typestr = arguments.text(call, entry("typestr"), interface["typestr"])
    told = interface["descr"] if typestr[1:2] == "V" and "descr" in interface else typestr
    shape, strides, stream = interface["shape"], interface.get("strides"), interface.get("stream")
    if not isinstance(shape, tuple):
        raise arguments.wrong_type(call, entry("shape"), "a tuple of ints", shape)
    sizes = arguments.shape(call, entry("shape"), shape)
    return ForeignArray(
        pointer,
        arguments.flag(call, entry("data"), data[1]),
        sizes,
        arguments.dtype(call, entry("typestr"), told),
        None if strides is None else arguments.integers(call, entry("strides"), strides, len(sizes)),
        None if stream is None else arguments.integer(call, entry("stream"), stream, 1, 2**64 - 1),
    )
