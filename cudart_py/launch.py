"""Launches: a kernel in a shape on a stream, called with arguments or bound to them."""

from __future__ import annotations

import ctypes
import functools
import struct
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from . import debugging, errors
from ._driver import raw
from ._lifetime import closes
from .arguments import instance, integer
from .capture import Held, captures, hold, with_owners
from .device import _thread as this_thread
from .device import activated, process
from .packing import MISSING, specialized
from .stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from .kernel import Kernel

__all__ = ["DATA_OFFSET", "BoundLaunch", "Launch", "LaunchShape", "Prepared", "dimensions", "launch_function"]

# cuLaunchKernel's `extra`, a list ended by 0: CU_LAUNCH_PARAM_BUFFER_POINTER (1) and the address,
# CU_LAUNCH_PARAM_BUFFER_SIZE (2) and the address of the size. The bindings name these as pointers only.
# Behind the list come the size and the parameters themselves.
_HEAD = struct.Struct("<6Q")
_SIZE_OFFSET = 40
DATA_OFFSET = _HEAD.size

# What follows is written for speed: a launch is a few microseconds of the driver's, and all that happens here comes
# on top. So the hot paths look at slots instead of calling properties, and enter `activated` only where they must.
_debug = debugging.state


class LaunchShape(NamedTuple):
    """A checked grid and block, three ints each, and the bytes of dynamic shared memory."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int

    @classmethod
    def checked(cls, kernel: Kernel, grid: Any, block: Any, shared_bytes: Any) -> LaunchShape:
        """Check a shape against the limits of the kernel and its device; TypeError or ValueError."""
        properties = kernel.device.properties
        grid3 = dimensions(kernel, "grid", grid, properties.max_grid_dim)
        block3 = dimensions(kernel, "block", block, properties.max_block_dim)
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
                f"{attributes.max_threads_per_block} is this kernel's limit "
                f"({attributes.registers} registers a thread, or its __launch_bounds__)"
            )
        dynamic = integer(kernel.name, "shared_bytes", shared_bytes, 0, 2**64 - 1)
        limit = properties.shared_memory_per_block_optin - attributes.shared_bytes
        if dynamic > limit:
            raise ValueError(
                f"{kernel.name}: shared_bytes = {dynamic} bytes of dynamic shared memory are outside 0 to {limit} "
                f"({properties.shared_memory_per_block_optin} a block, less {attributes.shared_bytes} static)"
            )
        return cls(grid3, block3, dynamic)


def dimensions(kernel: Kernel, name: str, value: Any, limits: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return a grid, block or cluster as three ints within limits; TypeError or ValueError naming the axis."""
    given = value if isinstance(value, tuple | list) else (value,)
    if not 1 <= len(given) <= 3:
        raise ValueError(f"{kernel.name}: a {name} has one to three dimensions, not {len(given)}: {value!r}")
    sizes = [
        integer(kernel.name, f"{name}.{axis}", size, 1, limit)
        for axis, size, limit in zip("xyz", given, limits, strict=False)
    ]
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _make_call(nbytes: int, arguments: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Make a buffer for the parameters, and the arguments of a driver call that ends with its address."""
    buffer = ctypes.create_string_buffer(DATA_OFFSET + nbytes)
    address = ctypes.addressof(buffer)
    _HEAD.pack_into(buffer, 0, 1, address + DATA_OFFSET, 2, address + _SIZE_OFFSET, 0, nbytes)
    # Of all that has a buffer's bytes, a memoryview gives them to a struct fastest.
    return memoryview(buffer).cast("B"), (*arguments, address)


class Prepared:
    """What all launches of a kernel in one shape on one stream share.

    It knows the stream by its handle alone, so that a kernel can keep it and no stream lives longer for that.
    `config` is a CUlaunchConfig with attributes, for a launch that has any (cuLaunchKernelEx).
    """

    __slots__ = (
        "_arguments",
        "attributed",
        "checked",
        "device",
        "home",
        "idle",
        "kernel",
        "module",
        "record",
        "shape",
        "stream",
    )

    def __init__(self, kernel: Kernel, shape: LaunchShape, stream: int, config: Any = None) -> None:
        from cuda.bindings import driver as enums

        self.kernel = kernel
        self.module = kernel.module
        self.device = kernel.device
        self.shape = shape
        self.stream = stream
        self.attributed = config is not None
        # The device on which a launch needs nothing but cuLaunchKernel; False, which no thread has, with attributes.
        self.home = False if self.attributed else self.device
        self.checked: object = None
        # The bindings take handle objects faster than ints, which they would turn into such first.
        function = enums.CUfunction(kernel.handle)
        self._arguments: tuple[Any, ...] = (
            (config, function, 0)
            if config is not None
            else (function, *shape.grid, *shape.block, shape.shared_bytes, enums.CUstream(stream), 0)
        )
        self.record = debugging.LaunchRecord(kernel.device.ordinal, stream, kernel.name, shape.grid, shape.block)
        # The driver copies the parameters during the call, so that buffers are used again; each is used by one
        # launch at a time, whatever the threads and the finalizers do.
        self.idle: list[tuple[Any, tuple[Any, ...]]] = []

    def make_call(self) -> tuple[Any, tuple[Any, ...]]:
        """Make a buffer and the driver call's arguments with it."""
        return _make_call(self.kernel.signature.size, self._arguments)

    def start(self, arguments: tuple[Any, ...]) -> Any:
        """Launch, whatever device is current and with attributes or without, and return the status."""
        if this_thread.device is self.home:
            return raw.cuLaunchKernel(*arguments)[0]
        with activated(self.device):
            return (raw.cuLaunchKernelEx if self.attributed else raw.cuLaunchKernel)(*arguments)[0]

    def start_first(self, status: Any, arguments: tuple[Any, ...]) -> Any:
        """Return the status of a launch that failed, or launch once more if it was this thread's first CUDA work."""
        return status if this_thread.device is self.home else self.start(arguments)

    def check(self, stream: Stream) -> None:
        """Check that neither module nor stream was closed; of the module needed only after something was."""
        latest = closes.latest
        if self.module.closed or stream.closed:
            raise ValueError(f"{self.kernel.name}: {'its module' if self.module.closed else 'the stream'} is closed")
        self.checked = latest

    def settle(self, status: Any, arguments: tuple[Any, ...], record: debugging.LaunchRecord) -> None:
        """Do what rarely has to be done after a launch: raise, keep what a graph uses, wait in debug mode."""
        if status:
            call = "cuLaunchKernelEx" if self.attributed else "cuLaunchKernel"
            raise errors.failure(status, call, f"The launch was {record}")
        if captures and hold(self.stream, self.kernel.name, (*with_owners(arguments), self.module)):
            return
        debugging.note_launched(record)
        _debug.last = None
        if _debug.enabled:
            debugging.wait_for(record, self.device)


class Launch(functools.partial[None]):
    """A kernel in a shape on a stream. Calling it with the kernel's arguments launches it (cuLaunchKernel).

    Returns at once; the kernel runs in the order of the stream. A wrong argument is a TypeError or
    ValueError that names the kernel, the position, the C++ type and what came. On a stream under capture
    the launch becomes part of the graph, which keeps the arguments alive.
    """

    # It is the kernel's own function, of `launch_function`, with a pair of what is prepared and the stream as its one
    # argument given: an object that C calls starts sooner than one with a method for it, and one argument is put before
    # the others without a copy of them.
    __slots__ = ()

    def __get__(self, instance: object, owner: type | None = None) -> Self:
        # A launch kept in a class is no method of it, which Python 3.14 makes of a partial.
        return self

    @property
    def prepared(self) -> Prepared:
        """What it shares with other launches of the kernel in this shape."""
        prepared: Prepared = self.args[0][0]
        return prepared

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.prepared.kernel

    @property
    def shape(self) -> LaunchShape:
        """The grid, the block and the bytes of dynamic shared memory."""
        return self.prepared.shape

    @property
    def stream(self) -> Stream:
        """The stream."""
        stream: Stream = self.args[0][1]
        return stream

    def bind(self, *arguments: Any) -> BoundLaunch:
        """Check and pack the arguments once; the result is called with none and keeps them alive."""
        return BoundLaunch(self, arguments)

    def __repr__(self) -> str:
        return f"<Launch {self.prepared.record}>"


# Collecting arguments in a tuple and taking them out again would cost as much as all their checks, and so would
# another function in between. So each kernel has this function with its own parameters, and near its end stands what
# debugging.note_launched does. While the record is the last one logged, nothing was closed since, no stream is captured
# and there is no debug mode.
_LAUNCH = """
def launch(where, {parameters}/, *more):
    prepared, stream = where
    try:
        call = prepared.idle.pop()
    except IndexError:
        call = prepared.make_call()
    packed = False
    try:
        if {plain}:
            pack_into(call[0], {packing})
            packed = True
    except (AttributeError, ValueError, OverflowError, struct_error):
        pass
    if more or not packed:
        pack(call[0], given({arguments}*more))
    record = prepared.record
    again = debug.last is record
    if not again and prepared.checked is not closes.latest or stream._value is None:
        prepared.check(stream)
    if process.sole is prepared.home or this_thread.device is prepared.home:
        (status,) = raw.cuLaunchKernel(*call[1])
        if status:
            status = prepared.start_first(status, call[1])
    else:
        status = prepared.start(call[1])
    prepared.idle.append(call)
    if again and not status:
        return
    if status or captures or debug.enabled:
        prepared.settle(status, given({arguments}), record)
        return
    debug.last = record
    if not log or log[-1] is not record:
        log.append(record)
    if prepared.checked is not closes.latest or captures or debug.enabled:
        debug.last = None
"""


def launch_function(kernel: Kernel) -> Callable[..., None]:
    """Return the function that launches a kernel; it takes the pair of a Launch and the kernel's arguments."""

    def given(*arguments: Any) -> tuple[Any, ...]:
        return tuple(argument for argument in arguments if argument is not MISSING)

    names = {
        "captures": captures,
        "debug": _debug,
        "given": given,
        "closes": closes,
        "log": _debug.log,
        "pack": kernel.pack,
        "process": process,
        "raw": raw,
        "this_thread": this_thread,
    }
    return specialized(_LAUNCH, kernel, DATA_OFFSET, names)


class BoundLaunch:
    """A launch whose arguments are packed already; calling it launches the kernel again.

    The arguments stay alive with it. An array that is closed by hand meanwhile is a ValueError.
    """

    __slots__ = ("_arguments", "_buffer", "_call", "_checked", "_home", "_launch", "_prepared", "_record", "_start")

    def __init__(self, launch: Launch, arguments: tuple[Any, ...]) -> None:
        self._launch = instance("BoundLaunch", "launch", launch, Launch)
        instance("BoundLaunch", "arguments", arguments, tuple)
        self._prepared = launch.prepared
        # Each step on the way to a value counts in a call. A forked child does not get as far as to use the function,
        # since no launch is the last one there. The record is this one's own: while it is the last in the log, nothing
        # was closed since, there is no capture and no debug mode.
        self._home, self._record = self._prepared.home, self._prepared.record._replace()
        self._start = raw.cuLaunchKernel
        self._arguments = with_owners(arguments)
        self._buffer, self._call = self._prepared.make_call()
        self._checked: object = None
        self._prepared.kernel.pack(self._buffer, arguments)

    @property
    def launch(self) -> Launch:
        """The launch that the arguments are bound to."""
        return self._launch

    def __call__(self) -> None:
        """Launch again."""
        if _debug.last is self._record and (process.sole is self._home or this_thread.device is self._home):
            (status,) = self._start(*self._call)
            if status and (status := self._prepared.start_first(status, self._call)):
                self._prepared.settle(status, self._arguments, self._record)
        else:
            self._launch_carefully()

    def _launch_carefully(self) -> None:
        """Launch after something else happened: a close, a launch, a synchronisation, a change of the device."""
        latest = closes.latest
        if self._checked is not latest:
            Held(self._prepared.kernel.name, self._arguments).check()
            self._prepared.check(self._launch.stream)
            self._checked = latest
        status = self._prepared.start(self._call)
        if status or captures or _debug.enabled:
            self._prepared.settle(status, self._arguments, self._record)
            return
        debugging.note_launched(self._record)
        # What another thread closed or began meanwhile must be seen at the next call.
        if latest is not closes.latest or captures or _debug.enabled:
            _debug.last = None
