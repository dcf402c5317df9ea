"""Launches: a kernel in a shape on a stream, called with arguments or bound to them."""

from __future__ import annotations

import ctypes
import operator
import struct
import threading
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from . import _driver, debugging, errors
from .device import activated
from .packing import MAX_PARAMETER_BYTES
from .stream import Stream

if TYPE_CHECKING:
    from .kernel import Kernel

__all__ = ["BoundLaunch", "Launch", "LaunchShape"]

# cuLaunchKernel's `extra`, a list ended by 0: CU_LAUNCH_PARAM_BUFFER_POINTER (1) and the address,
# CU_LAUNCH_PARAM_BUFFER_SIZE (2) and the address of the size. The bindings name these as pointers only.
_EXTRA = struct.Struct("<5Q")
_SIZE_OFFSET = _EXTRA.size
_HEAD = "Q"
_DATA_OFFSET = _SIZE_OFFSET + 8


class LaunchShape(NamedTuple):
    """A checked grid and block, three ints each, and the bytes of dynamic shared memory."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int

    @classmethod
    def checked(cls, kernel: Kernel, grid: Any, block: Any, shared_bytes: Any) -> LaunchShape:
        """Check a shape against the limits of the kernel and its device; TypeError or ValueError."""
        properties = kernel.device.properties
        grid3 = _dimensions(kernel, "grid", grid, properties.max_grid_dim)
        block3 = _dimensions(kernel, "block", block, properties.max_block_dim)
        threads = block3[0] * block3[1] * block3[2]
        if threads > properties.max_threads_per_block:
            raise ValueError(
                f"{kernel.name}: a block of {block3} has {threads} threads, and "
                f"{properties.max_threads_per_block} is the device's limit"
            )
        attributes = kernel.attributes
        if threads > attributes.max_threads_per_block:
            raise ValueError(
                f"{kernel.name}: a block of {block3} has {threads} threads, and "
                f"{attributes.max_threads_per_block} is this kernel's limit ({attributes.registers} registers a thread, or its __launch_bounds__)"
            )
        try:
            dynamic = operator.index(shared_bytes)
        except TypeError:
            raise TypeError(f"{kernel.name}: shared_bytes is an int, not {shared_bytes!r}") from None
        limit = properties.shared_memory_per_block_optin - attributes.shared_bytes
        if not 0 <= dynamic <= limit:
            raise ValueError(
                f"{kernel.name}: {dynamic} bytes of dynamic shared memory are outside 0 to {limit} "
                f"({properties.shared_memory_per_block_optin} a block, less {attributes.shared_bytes} static)"
            )
        return cls(grid3, block3, dynamic)


def _dimensions(kernel: Kernel, name: str, value: Any, limits: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return a grid or block as three ints within the device's limits."""
    given = value if isinstance(value, tuple | list) else (value,)
    if not 1 <= len(given) <= 3:
        raise ValueError(f"{kernel.name}: a {name} has one to three dimensions, not {len(given)}: {value!r}")
    sizes = []
    for axis, size, limit in zip("xyz", given, limits, strict=False):
        try:
            if isinstance(size, bool):
                raise TypeError
            number = operator.index(size)
        except TypeError:
            raise TypeError(
                f"{kernel.name}: {name}.{axis} is an int, not {size!r} of type {type(size).__name__}"
            ) from None
        if not 1 <= number <= limit:
            raise ValueError(f"{kernel.name}: {name}.{axis} = {number} is outside 1 to {limit}")
        sizes.append(number)
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


class _Buffer:
    """Where one thread packs the parameters of its launches; the driver copies them during the call."""

    def __init__(self, nbytes: int) -> None:
        self.memory = ctypes.create_string_buffer(_DATA_OFFSET + nbytes)
        address = ctypes.addressof(self.memory)
        _EXTRA.pack_into(self.memory, 0, 1, address + _DATA_OFFSET, 2, address + _SIZE_OFFSET, 0)
        self.extra = address


class _Thread(threading.local):
    def __init__(self) -> None:
        self.buffer = _Buffer(MAX_PARAMETER_BYTES)


_thread = _Thread()


class Launch:
    """A kernel in a shape on a stream. Calling it with the kernel's arguments launches it (cuLaunchKernel).

    Returns at once; the kernel runs in the order of the stream. A wrong argument is a TypeError or
    ValueError that names the kernel, the position, the C++ type and what came.
    """

    HEAD: ClassVar[str] = _HEAD

    __slots__ = ("_fixed", "_record", "_stream_handle", "kernel", "shape", "stream")

    def __init__(self, kernel: Kernel, shape: LaunchShape, stream: Stream) -> None:
        if not isinstance(stream, Stream):
            raise TypeError(f"{kernel.name}: stream is a cudart_py Stream or None, not {type(stream).__name__}")
        if stream.device is not kernel.device:
            raise ValueError(
                f"{kernel.name} is loaded on device {kernel.device.ordinal}, and the stream belongs to "
                f"device {stream.device.ordinal}"
            )
        self.kernel = kernel
        self.shape = shape
        self.stream = stream
        self._stream_handle = stream.handle
        self._fixed = (kernel.handle, *shape.grid, *shape.block, shape.shared_bytes, stream.handle, 0)
        self._record = debugging.LaunchRecord(
            kernel.device.ordinal, stream.handle, kernel.name, shape.grid, shape.block
        )

    def __call__(self, *arguments: Any) -> None:
        """Launch with these arguments."""
        kernel = self.kernel
        values = kernel.pack(*arguments)
        buffer = _thread.buffer
        kernel.layout.pack_into(buffer.memory, _SIZE_OFFSET, kernel.signature.size, *values)
        self._start(buffer.extra)

    def bind(self, *arguments: Any) -> BoundLaunch:
        """Check and pack the arguments once; the result is called with none and keeps them alive."""
        return BoundLaunch(self, arguments)

    def _start(self, extra: int) -> None:
        kernel = self.kernel
        if kernel.module.closed:
            raise ValueError(f"{kernel.name}: its module is closed")
        if self.stream.closed:
            raise ValueError(f"{kernel.name}: the stream is closed")
        with activated(kernel.device):
            (status,) = _driver.raw.cuLaunchKernel(*self._fixed, extra)
        if status:
            raise errors.failure(status, "cuLaunchKernel", f"The launch was {self._record}")
        debugging.state.log.append(self._record)
        if debugging.state.enabled:
            self._finish()

    def _finish(self) -> None:
        """Debug mode: wait for the kernel, and name it and its caller if it failed."""
        with activated(self.kernel.device):
            (status,) = _driver.raw.cuStreamSynchronize(self._stream_handle)
        if status:
            raise errors.failure(
                status, "cuStreamSynchronize", f"It was {self._record}, launched at {debugging.call_site()}"
            )
        debugging.note_synchronized(self._record.device, self._stream_handle)

    def __repr__(self) -> str:
        return f"<Launch {self._record}>"


class BoundLaunch:
    """A launch whose arguments are packed already; calling it launches the kernel again.

    The arguments stay alive with it. An array that is closed by hand meanwhile is a ValueError.
    """

    __slots__ = ("_arguments", "_buffer", "_launch")

    def __init__(self, launch: Launch, arguments: tuple[Any, ...]) -> None:
        kernel = launch.kernel
        values = kernel.pack(*arguments)
        self._launch = launch
        self._arguments = arguments
        self._buffer = _Buffer(kernel.signature.size)
        kernel.layout.pack_into(self._buffer.memory, _SIZE_OFFSET, kernel.signature.size, *values)

    @property
    def launch(self) -> Launch:
        """The launch that the arguments are bound to."""
        return self._launch

    def __call__(self) -> None:
        """Launch again."""
        for position, argument in enumerate(self._arguments):
            if getattr(argument, "closed", False):
                raise ValueError(f"argument {position} of {self._launch.kernel.name}: the array is closed")
        self._launch._start(self._buffer.extra)
