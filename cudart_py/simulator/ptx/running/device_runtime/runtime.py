"""The runtime's functions for kernels, such as launching a kernel, for the lanes of a chunk (dynamic parallelism).

Launches, copies and fills run after the grid that calls these functions, in the order of the calls: CUDA guarantees no
earlier time, because kernels cannot wait for it. So all streams but the tail launch's are equivalent, and events have
no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partialmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..groups import split

if TYPE_CHECKING:
    from ...syntax.instructions import Instruction
    from ...syntax.parser import Entry
    from ..groups import Group
    from ..launch import LaunchState

Array = NDArray[Any]
Extents = tuple[int, int, int]

_SUCCESS = 0
_INVALID_VALUE = 1
_OUT_OF_MEMORY = 2
# The error of a machine that has no runtime for kernels.
_NOT_SUPPORTED = 801
# The only flags that kernels may pass for streams and events.
_NON_BLOCKING = 1
_DISABLE_TIMING = 2


class DeviceRuntime:
    """The driver's part of the runtime: functions that return an error of the runtime, 0 for success.

    A driver overrides all of them. Without a driver, they refuse everything.
    """

    device = 0
    device_count = 1
    version = 0

    def parameter_buffer(self, kernel: Entry | None, grid: Extents, block: Extents, shared: int) -> tuple[int, int]:
        """Return an error, and the address of a buffer for the parameters of a launch; 0 after an error."""
        return _NOT_SUPPORTED, 0

    def launch(self, buffer: int, stream: int) -> int:
        """Launch the kernel for which a buffer was made."""
        return _NOT_SUPPORTED

    def error_text(self, error: int, *, name: bool) -> int:
        """Return the address of an error's name or description in the device's memory."""
        return 0

    def attribute(self, number: int, device: int) -> tuple[int, int]:
        """Return an error, and an attribute of a device."""
        return _NOT_SUPPORTED, 0

    def create(self) -> int:
        """Return the handle of a new stream or event."""
        return 0

    def copy(self, to: int, source: int, size: int, stream: int) -> int:
        """Copy bytes."""
        return _NOT_SUPPORTED

    def fill(self, to: int, value: int, size: int, stream: int) -> int:
        """Set bytes to a value."""
        return _NOT_SUPPORTED


class RuntimeCalls:
    """The runtime's functions, which keep the last error of each lane."""

    def __init__(self, state: LaunchState) -> None:
        self._state = state
        self._errors: dict[int, int] = {}

    # --- launches

    def parameter_buffer(self, group: Group, kernel: Any, *shape: Any, site: Instruction) -> Array:
        """Return a buffer for the parameters of each lane's launch, 0 after an error (cudaGetParameterBufferV2)."""
        runtime, module = self._state.runtime, self._state.launch.entry.module
        found = []
        for address, x, y, z, width, height, depth, shared in _rows(group, kernel, *shape):
            extents = (x, y, z), (width, height, depth)
            found.append(runtime.parameter_buffer(module.kernel_at(address), *extents, shared))
        errors, buffers = zip(*found, strict=True)
        self._note(group, errors)
        return np.array(buffers, np.uint64)

    def launch(self, group: Group, buffer: Any, stream: Any, *, site: Instruction) -> Array:
        """Launch the kernels for which the lanes' buffers were made (cudaLaunchDeviceV2)."""
        errors = [self._state.runtime.launch(*row) for row in _rows(group, buffer, stream)]
        return self._note(group, errors)

    # --- errors

    def _error(self, look: Callable[..., int], group: Group, *, site: Instruction) -> Array:
        return np.array([look(self._errors, int(lane), _SUCCESS) for lane in group.lane_numbers], np.uint32)

    # Return the last error of each lane, and forget it (cudaGetLastError) or not (cudaPeekAtLastError).
    last_error = partialmethod(_error, dict.pop)
    peek_at_last_error = partialmethod(_error, dict.get)

    def _texts(self, name: bool, group: Group, error: Any, *, site: Instruction) -> Array:
        found = [self._state.runtime.error_text(one, name=name) for (one,) in _rows(group, error)]
        return np.array(found, np.uint64)

    # Return the addresses of the lanes' errors' names (cudaGetErrorName) and descriptions (cudaGetErrorString).
    error_name = partialmethod(_texts, True)
    error_string = partialmethod(_texts, False)

    def _note(self, group: Group, errors: Any) -> Array:
        """Keep the lanes' errors, and return all results."""
        for lane, error in zip(group.lane_numbers, errors, strict=True):
            if error:
                self._errors[int(lane)] = int(error)
        return np.array(errors, np.uint32)

    # --- queries

    def attribute(self, group: Group, pointer: Any, number: Any, device: Any, *, site: Instruction) -> Array:
        """Store an attribute of a device (cudaDeviceGetAttribute)."""
        found = [self._state.runtime.attribute(*row) for row in _rows(group, number, device)]
        return self._stored(group, pointer, found, np.uint32, site)

    def _told(self, name: str, group: Group, pointer: Any, *, site: Instruction) -> Array:
        value = getattr(self._state.runtime, name)
        return self._stored(group, pointer, [(_SUCCESS, value)] * group.n, np.uint32, site)

    # Store the device that runs the kernel (cudaGetDevice), the number of devices (cudaGetDeviceCount), and the version
    # of the runtime (cudaRuntimeGetVersion).
    device = partialmethod(_told, "device")
    device_count = partialmethod(_told, "device_count")
    version = partialmethod(_told, "version")

    def _stored(self, group: Group, pointer: Any, found: list[tuple[int, int]], kind: Any, site: Instruction) -> Array:
        """Store the values of the lanes without an error at their pointers, and return the errors."""
        errors, values = zip(*found, strict=True)
        chosen = np.flatnonzero(np.array(errors) == _SUCCESS)
        if len(chosen):
            part = group if len(chosen) == group.n else split(group, [chosen], [group.pc])[0]
            pointers = np.broadcast_to(pointer, group.n)[chosen]
            self._store(part, pointers, np.array(values, kind)[chosen], site)
        return self._note(group, errors)

    def _store(self, group: Group, pointers: Array, stored: Array, site: Instruction) -> None:
        state, dtype = self._state, stored.dtype
        address = state.memory_access.generic(group, pointers)
        if state.observer is not None:
            state.observer.access(group, "st", address, 0, dtype.itemsize, site, (stored,))
        shift = dtype.itemsize.bit_length() - 1
        state.memory_access.store(address, 0, dtype.str[1:], shift, (stored,), site)

    # --- streams and events

    def _created(self, required: int, group: Group, pointer: Any, flags: Any, *, site: Instruction) -> Array:
        runtime = self._state.runtime
        found = [
            (_SUCCESS, runtime.create()) if one == required else (_INVALID_VALUE, 0) for (one,) in _rows(group, flags)
        ]
        return self._stored(group, pointer, found, np.uint64, site)

    # Store a new stream, which must be non-blocking (cudaStreamCreateWithFlags), or a new event, which must be without
    # timing (cudaEventCreateWithFlags).
    create_stream = partialmethod(_created, _NON_BLOCKING)
    create_event = partialmethod(_created, _DISABLE_TIMING)

    def nothing(self, group: Group, *arguments: Any, site: Instruction) -> Array:
        """Do nothing: streams and events end with the grid, and all work runs in the order of the calls.

        So cudaEventRecord and cudaStreamWaitEvent have no effect, and cudaStreamDestroy and cudaEventDestroy need none.
        """
        return np.zeros(group.n, np.uint32)

    # --- memory

    def malloc(self, group: Group, pointer: Any, size: Any, *, site: Instruction) -> Array:
        """Allocate on the device's heap, and store the addresses (cudaMalloc)."""
        memory, found = self._state.memory, []
        for (one,) in _rows(group, size):
            address = memory.allocate(one) if one else 0
            found.append((_SUCCESS if address or not one else _OUT_OF_MEMORY, address))
        return self._stored(group, pointer, found, np.uint64, site)

    def free(self, group: Group, pointer: Any, *, site: Instruction) -> Array:
        """Return memory to the device's heap (cudaFree)."""
        memory = self._state.memory
        errors = [_SUCCESS if not one or memory.release(one) else _INVALID_VALUE for (one,) in _rows(group, pointer)]
        self._state.memory_access.look_up()
        return self._note(group, errors)

    def copy(
        self, group: Group, to: Any, source: Any, size: Any, kind: Any, stream: Any, *, site: Instruction
    ) -> Array:
        """Copy bytes after the grid (cudaMemcpyAsync)."""
        return self._note(group, [self._state.runtime.copy(*row) for row in _rows(group, to, source, size, stream)])

    def fill(self, group: Group, to: Any, value: Any, size: Any, stream: Any, *, site: Instruction) -> Array:
        """Set bytes after the grid (cudaMemsetAsync)."""
        return self._note(group, [self._state.runtime.fill(*row) for row in _rows(group, to, value, size, stream)])


def _rows(group: Group, *arguments: Any) -> list[list[int]]:
    """Return the arguments of each lane."""
    columns = [np.broadcast_to(argument, group.n).tolist() for argument in arguments]
    return [list(row) for row in zip(*columns, strict=True)]
