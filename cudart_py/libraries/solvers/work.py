"""Calls of cuSOLVER's dense functions with their workspaces and statuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...context.device import Device
from ...context.lifetimes import Handle  # releases the parameters at the right time
from ...driver.calls import library
from ...errors import InvalidValueError
from ...memory.creation import empty
from ...streams.stream import Stream
from ..failures import failure
from ..handles import allocate_workspace, library_handle, thread_cache

TYPES = ("float32", "float64", "complex64", "complex128")
WITH_VECTORS = 1  # CUSOLVER_EIG_MODE_VECTOR


class _Parameters(Handle):
    """Parameters that functions of cuSOLVER require, such as a cusolverDnParams_t. Their defaults are never changed."""

    __slots__ = ("_kind",)

    def __init__(self, kind: str) -> None:
        self._kind, self._owned = kind, True
        self._value = getattr(library("cusolverDn"), f"create_{kind}")()

    def _release(self, value: Any) -> None:
        getattr(library("cusolverDn"), f"destroy_{self._kind}")(value)


def parameters_of(kind: str) -> Any:
    """Return the thread's parameters: "params" of the 64-bit functions, or "gesvdj_info" of the Jacobi method."""
    cache = thread_cache("cusolverDn")
    if kind not in cache:
        cache[kind] = _Parameters(kind)
    return cache[kind].handle


def _symbol(name: str) -> str:
    """Return the name of a cuSOLVER function from that of its binding: "cusolverDnXgetrf" for "xgetrf"."""
    first, *rest = name.split("_")
    return "".join((f"cusolverDn{first[:1].upper()}{first[1:]}", *(word.capitalize() for word in rest)))


class Work:
    """One use of cuSOLVER: its handle, its stream, and the status (`info`) that it writes to device memory.

    For a batch, there is one status per matrix.
    """

    def __init__(self, stream: Stream, device: Device, count: int = 1) -> None:
        self.stream = stream
        handle = library_handle("cusolverDn", stream, device)
        self.handle, self.functions = handle.native, handle.functions
        self.parameters = parameters_of("params")
        self.info = empty(count, np.int32, stream=stream)
        self._held: list[Any] = []

    def run(self, name: str, *operands: Any, sizing: tuple[Any, ...] | None = None, last: tuple[int, ...] = ()) -> None:
        """Call a function of the 64-bit interface, "xgetrf" for cusolverDnXgetrf, with the workspaces that it needs.

        `sizing` has the arguments of the function that returns the workspace sizes, if they differ from `operands`.
        Both functions also take the arguments in `last`, such as the size of a batch.
        """
        functions = self.functions
        try:
            ask = getattr(functions, f"{name}_buffer_size")
            sizes = ask(self.handle, self.parameters, *(operands if sizing is None else sizing), *last)
            device_bytes, host_bytes = int(sizes[0]), int(sizes[1])
            memory = allocate_workspace(device_bytes, self.stream)
            host = np.empty(max(host_bytes, 1), np.uint8)
            self._held.append(host)  # kept alive until `status` has waited
            getattr(functions, name)(
                self.handle, self.parameters, *operands, memory.pointer, device_bytes, host.ctypes.data, host_bytes,
                self.info.pointer, *last,
            )  # fmt: skip  # grouped by meaning
        except Exception as error:
            raise failure(_symbol(name), error) from error

    def run_typed(self, name: str, *operands: Any) -> None:
        """Call a function of the older interface, "dormqr" for cusolverDnDormqr, with the workspace that it needs."""
        self.run_typed_batch(name, [operands])

    def run_typed_batch(self, name: str, batch: Sequence[tuple[Any, ...]]) -> None:
        """Call such a function for one problem after the other, all of the same size, in the same workspace."""
        functions = self.functions
        try:
            count = int(getattr(functions, f"{name}_buffer_size")(self.handle, *batch[0]))
            # The count is in elements, which have at most 16 bytes.
            memory = allocate_workspace(16 * count, self.stream)
            for operands in batch:
                getattr(functions, name)(self.handle, *operands, memory.pointer, count, self.info.pointer)
        except Exception as error:
            raise failure(_symbol(name), error) from error

    def run_jacobi(self, name: str, *operands: Any) -> None:
        """Call a batched function of the Jacobi method, "dgesvdj_batched", with the workspace that it needs."""
        functions, ends = self.functions, (parameters_of("gesvdj_info"), self.info.size)
        try:
            count = int(getattr(functions, f"{name}_buffer_size")(self.handle, *operands, *ends))
            memory = allocate_workspace(16 * count, self.stream)
            getattr(functions, name)(self.handle, *operands, memory.pointer, count, self.info.pointer, *ends)
        except Exception as error:
            raise failure(_symbol(name), error) from error

    def call(self, name: str, *operands: Any) -> None:
        """Call a function of the older interface that needs no workspace."""
        try:
            getattr(self.functions, name)(self.handle, *operands)
        except Exception as error:
            raise failure(_symbol(name), error) from error

    def run_plain(self, name: str, *operands: Any) -> None:
        """Call a function of the 64-bit interface that needs no workspace."""
        try:
            getattr(self.functions, name)(self.handle, self.parameters, *operands, self.info.pointer)
        except Exception as error:
            raise failure(_symbol(name), error) from error

    def status(self, name: str) -> int:
        """Wait, and return the status of a function, "xgetrf" for cusolverDnXgetrf: 0 for success, or positive.

        It is the failed pivot, counted from 1, the order of the minor that is not positive, or the number of values
        that did not converge. Raises InvalidValueError for a negative status.
        """
        return int(self.statuses(name)[0])

    def statuses(self, name: str) -> NDArray[np.int32]:
        """Wait and return the statuses of all matrices of a batch, as `status` does for one."""
        info = self.info.to_host(stream=self.stream)
        self._held.clear()
        if info.min(initial=0) < 0:
            symbol = _symbol(name)
            raise InvalidValueError(f"{symbol}: argument {-info.min()} of the library's function is wrong", call=symbol)
        return info
