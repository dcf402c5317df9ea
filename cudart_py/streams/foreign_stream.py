"""Streams of other libraries: of cuda.core, CuPy and PyTorch, and handles of the bindings."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import arguments
from .stream_base import StreamBase


def foreign_handle(stream: Any) -> int:
    """Return the handle of a stream of this package or another library as an int; TypeError for other objects."""
    call, name = "Stream.borrow", "stream"
    if isinstance(stream, int | np.integer) and not isinstance(stream, bool):
        return arguments.integer(call, name, stream, 0, 2**64 - 1)
    if not isinstance(stream, type):  # a class has the attributes of its instances too
        protocol = getattr(stream, "__cuda_stream__", None)
        if protocol is not None:
            told = arguments.function(call, f"{name}.__cuda_stream__", protocol)()
            if not isinstance(told, tuple) or len(told) != 2 or told[0] != 0:
                raise TypeError(
                    f"{call}: argument {name!r}, of type {type(stream).__name__}, returned {told!r} from "
                    "__cuda_stream__; only version 0 of the protocol is supported, which returns (0, handle)"
                )
            return arguments.integer(call, f"{name}.__cuda_stream__()", told[1], 0, 2**64 - 1)
        # This package's streams lack the protocol if other libraries cannot use them.
        if isinstance(stream, StreamBase):
            return arguments.opened(call, name, stream, StreamBase).handle
        # Streams of CuPy and PyTorch, recognised by the class name. Other objects have a `ptr` too, and the driver
        # would dereference it as a stream.
        if any("Stream" in kind.__name__ for kind in type(stream).__mro__):
            for attribute in ("ptr", "cuda_stream"):
                handle = getattr(stream, attribute, None)
                if isinstance(handle, int):
                    return arguments.integer(call, f"{name}.{attribute}", handle, 0, 2**64 - 1)
        if type(stream).__name__ in ("CUstream", "cudaStream_t"):
            return int(stream)
    raise TypeError(
        f"{call}: argument {name!r}, of type {type(stream).__name__}, is not a stream: it is not a handle and has no "
        "__cuda_stream__ method"
    )
