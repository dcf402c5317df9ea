"""The driver's part of dynamic parallelism: the work that one grid launches, which runs when the grid has ended."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING

from cuda.bindings.driver import CUresult

from ....base.error_texts import ERROR_TEXTS, UNRECOGNIZED
from ... import ptx
from ...state import memory
from ...state.devices import find_device, state
from ...state.errors import StatusError
from ...state.handles import next_handle
from ...state.queue.operations import Operation
from ..memory.fills import checked_fill
from ..memory.transfers.copies import Copy
from ..modules.functions import LoadedFunction
from .shapes import Extents, checked_launch

if TYPE_CHECKING:
    from ...state.contexts import Context

# CUDA's limit for kernels that launch kernels, and so on.
DEEPEST = 24
# The stream of work that runs after the grid and everything else that it has launched.
_TAIL = 3
# Errors of the runtime that are not among the driver's statuses, whose other numbers are the same.
_INVALID_CONFIGURATION, _MAX_DEPTH_EXCEEDED, _INVALID_FUNCTION = 9, 65, 98
_SUCCESS: int = CUresult.CUDA_SUCCESS.value
_INVALID_VALUE: int = CUresult.CUDA_ERROR_INVALID_VALUE.value
_OUT_OF_RESOURCES: int = CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES.value


class DeviceRuntime(ptx.DeviceRuntime):
    """The launches of one grid's threads: `children` in the order of the calls, and then the `tail`.

    `operation` makes the operation that launches a kernel. `depth` is the number of grids around the grid's children.
    """

    def __init__(
        self,
        context: Context,
        kernels: dict[str, LoadedFunction],
        depth: int,
        operation: Callable[[LoadedFunction, ptx.Launch, int], Operation],
        version: int,
    ) -> None:
        self.children: list[Operation] = []
        self.tail: list[Operation] = []
        self.device = context.device.ordinal
        self.device_count = len(state.devices)
        self.version = version
        self._context = context
        self._kernels = kernels
        self._depth = depth
        self._operation = operation
        self._texts: dict[tuple[int, bool], int] = {}
        self._buffers: dict[int, tuple[LoadedFunction, Extents, Extents, int]] = {}

    def parameter_buffer(self, kernel: ptx.Entry | None, grid: Extents, block: Extents, shared: int) -> tuple[int, int]:
        """Return an error, and the address of a buffer for the parameters of a launch; 0 after an error."""
        if kernel is None:
            return _INVALID_FUNCTION, 0
        if self._depth > DEEPEST:
            return _MAX_DEPTH_EXCEEDED, 0
        # An error that the kernel may ignore would hide this, so it ends the grid.
        ptx.refuse_unsupported(kernel)
        function = self._kernels[kernel.name]
        try:
            checked_launch(function, (*grid, *block), shared, b"")
        except StatusError as error:
            status = error.status
            return (_INVALID_CONFIGURATION if status == CUresult.CUDA_ERROR_INVALID_VALUE else status.value), 0
        address = self._context.memory.allocate(max(kernel.parameter_bytes, 1))
        if not address:
            return _OUT_OF_RESOURCES, 0
        self._buffers[address] = function, grid, block, shared
        return _SUCCESS, address

    def launch(self, buffer: int, stream: int) -> int:
        """Launch the kernel for which a buffer was made, with the parameters that it contains."""
        if buffer not in self._buffers:
            return _INVALID_VALUE
        function, grid, block, shared = self._buffers.pop(buffer)
        parameters = ctypes.string_at(buffer, function.entry.parameter_bytes)
        self._context.memory.release(buffer)
        launch = checked_launch(function, (*grid, *block), shared, parameters)
        # A chain of tail launches is not nested, and may have any length.
        depth = self._depth - 1 if stream == _TAIL else self._depth
        return self._add(self._operation(function, launch, depth), stream)

    def error_text(self, error: int, *, name: bool) -> int:
        """Return the address of an error's name or description, valid until the grid ends; 0 without memory."""
        if (error, name) not in self._texts:
            from cuda.bindings import runtime  # imported late, because few kernels use these names

            known = error in {int(each) for each in runtime.cudaError_t}
            found = runtime.cudaError_t(error).name if name and known else ERROR_TEXTS.get(error, UNRECOGNIZED)
            text = found.encode() + b"\0"
            address = self._context.memory.allocate(len(text))
            if address:
                ctypes.memmove(address, text, len(text))
                self._context.memory.shadow(address).initialised = True
            self._texts[error, name] = address
        return self._texts[error, name]

    def attribute(self, number: int, device: int) -> tuple[int, int]:
        """Return an error, and an attribute of a device."""
        try:
            return _SUCCESS, find_device(device).answer(number)
        except StatusError as error:
            return int(error.status.value), 0

    def create(self) -> int:
        """Return the handle of a new stream or event."""
        return next_handle()

    def copy(self, to: int, source: int, size: int, stream: int) -> int:
        """Copy bytes between addresses that the device can access."""
        if not size:
            return _SUCCESS
        if memory.find(to, size) is None or memory.find(source, size) is None:
            return _INVALID_VALUE
        return self._add(Copy(to, source, size, (True, True)), stream)

    def fill(self, to: int, value: int, size: int, stream: int) -> int:
        """Set bytes to a value."""
        try:
            operation = checked_fill(to, value, size, self._context, element=1, rows=(0, 1))
        except StatusError as error:
            return int(error.status.value)
        return _SUCCESS if operation is None else self._add(operation, stream)

    def _add(self, operation: Operation, stream: int) -> int:
        (self.tail if stream == _TAIL else self.children).append(operation)
        return _SUCCESS

    def close(self) -> None:
        """Free the texts, and the buffers of launches that were never made."""
        for address in filter(None, (*self._buffers, *self._texts.values())):
            self._context.memory.release(address)
        self._buffers.clear()
        self._texts.clear()
