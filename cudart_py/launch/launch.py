"""Launches: a kernel with a launch shape and a stream, which is called with arguments or bound to them."""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.arguments import instance, refuse_copy
from ..context import debugging
from ..context.capture import RetainedObjects, captures, hold_node
from ..context.current import activated, this_thread
from ..context.epoch import epoch
from ..driver import enums
from ..driver.calls import api, raw
from ..driver.launch_log import LaunchRecord, log, note_launched
from ..driver.unwrap import failure
from ..hints import KEYWORDS
from ..memory.host_memory import pinned_owner
from ..streams.graphs.nodes import NodeWork
from ..streams.stream import Stream
from .attributes import NAMES
from .shape import LaunchShape

if TYPE_CHECKING:
    from ..context.device import Device
    from .kernel import Kernel

# cuLaunchKernel's `extra`, a list ended by 0: CU_LAUNCH_PARAM_BUFFER_POINTER (1) and the address,
# CU_LAUNCH_PARAM_BUFFER_SIZE (2) and the address of the size. The bindings have these constants only as pointers.
# The list is followed by the size and by the parameters themselves.
_HEAD = struct.Struct("<6Q")
_SIZE_OFFSET = 40
# The size of CUlaunchAttributeValue. For graph nodes, the bindings have a second class.
_ATTRIBUTE_BYTES = 64


def _with_owners(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Append the owners of the host arrays' pinned or managed memory: unlike the arrays, they know if it was closed."""
    owners = [pinned_owner(thing) for thing in arguments if isinstance(thing, np.ndarray)]
    return (*arguments, *(owner for owner in owners if owner is not None))


class Prepared:
    """The state shared by all launches of a kernel with one shape on one stream.

    It refers to the stream only by its handle. A kernel can therefore cache it without keeping the stream alive.
    `config` is the CUlaunchConfig of a launch with attributes (cuLaunchKernelEx), otherwise None.
    """

    __slots__ = (
        "_leading",
        "device",
        "has_attributes",
        "idle",
        "kernel",
        "mark",
        "pack",
        "record",
        "shape",
        "start",
        "stream",
    )

    def __init__(self, kernel: Kernel, shape: LaunchShape, stream: int, config: Any = None) -> None:
        self.kernel = kernel
        self.device = kernel.device
        self.pack = kernel.pack
        self.shape = shape
        self.stream = stream
        self.record = LaunchRecord(self.device.ordinal, stream, kernel.name, shape.grid, shape.block)
        self.has_attributes = config is not None
        self.start = raw.cuLaunchKernel if config is None else raw.cuLaunchKernelEx
        # Handle objects are faster than ints, which the bindings would first convert to handle objects.
        native = enums.CUfunction(kernel.handle)
        self._leading: tuple[Any, ...] = (
            (native, *shape.grid, *shape.block, shape.shared_bytes, enums.CUstream(stream), 0)
            if config is None
            else (config, native, 0)
        )
        # The epoch mark of the latest check.
        self.mark: object = None
        # Buffers not in use. They can be reused because the driver copies the parameters during the call. A launch
        # takes a buffer from this list, so no other launch, in a thread or a finalizer, uses it at the same time.
        self.idle: list[tuple[memoryview, tuple[Any, ...]]] = []

    def make_buffer(self) -> tuple[memoryview, tuple[Any, ...]]:
        """Return memory for the parameters, and the arguments of the driver call that reads them from there.

        The memory must live as long as the call's arguments, which contain only its address.
        """
        nbytes = self.kernel.signature.size
        memory = ctypes.create_string_buffer(_HEAD.size + nbytes)
        address = ctypes.addressof(memory)
        _HEAD.pack_into(memory, 0, 1, address + _HEAD.size, 2, address + _SIZE_OFFSET, 0, nbytes)
        # Of all objects with the buffer protocol, struct writes fastest into a memoryview.
        return memoryview(memory).cast("B")[_HEAD.size :], (*self._leading, address)

    def check(self, stream: Stream) -> object:
        """Check that neither the module nor the stream was closed; return the epoch mark of the check."""
        mark = epoch.mark()
        if self.kernel.module.closed or stream.closed:
            closed = self.kernel.module if self.kernel.module.closed else stream
            noun = "the stream" if closed is stream else "its module"
            raise ValueError(f"{self.kernel.name}: {noun} is closed{closed._closed_by()}")
        self.mark = mark
        return mark

    def start_on_device(self, call: tuple[Any, ...]) -> tuple[Any]:
        """Call the driver with the kernel's device made current, and return the status."""
        # Not `self.start`, because a trace may have replaced the driver's function since.
        start = raw.cuLaunchKernelEx if self.has_attributes else raw.cuLaunchKernel
        with activated(self.device):
            return start(*call)

    def finish(self, status: Any, arguments: tuple[Any, ...]) -> None:
        """Complete a launch: raise its error, keep the objects that its graph uses, log it, wait in debug mode."""
        if status:
            raise failure(status, self.start.__name__, f"The launch was {self.record}")
        if captures and hold_node(self.stream, self.kernel.name, self.used(arguments)):
            return
        note_launched(self.record)
        if debugging.state.enabled:
            debugging.wait_for(self.record, self.device)

    def used(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the objects that a graph must keep alive for the launch."""
        return *_with_owners(arguments), self.kernel.module


class Launch:
    """A kernel with its launch shape and stream. Calling it with the kernel's arguments launches it (cuLaunchKernel).

    The call returns at once; the kernel runs in stream order. A wrong argument raises a TypeError or ValueError that
    names the kernel, the argument's position, its C++ type and the value. If the stream is being captured, the launch
    becomes part of the graph, which keeps the arguments alive.
    """

    __slots__ = ("_mark", "_prepared", "_stream")

    def __init__(self, prepared: Prepared, stream: Stream) -> None:
        self._prepared = prepared
        # The stream is open now. So the latest check of `prepared`, even for another launch, remains valid for this one
        # until something is closed.
        self._stream = stream
        stream._used = True
        self._mark = prepared.mark

    def __call__(self, *arguments: Any, **named: Any) -> None:
        """Launch the kernel with positional arguments, one for each parameter of its signature."""
        prepared = self._prepared
        if named:
            raise self._by_keyword(named, "launch(grid, block, ..., {})")
        try:
            buffer = prepared.idle.pop()
        except IndexError:  # testing the list first would not help: another thread may take the last buffer
            buffer = prepared.make_buffer()
        parameters, call = buffer
        prepared.pack(parameters, arguments, self._stream)
        # There is no mark during a capture and in debug mode, so that `finish` sees each of these launches.
        is_ready = self._mark is epoch.current and this_thread.device is prepared.device
        if is_ready:
            (status,) = prepared.start(*call)
        else:
            self._mark = prepared.check(self._stream)
            (status,) = prepared.start_on_device(call)
        prepared.idle.append(buffer)
        if status or not is_ready or log[0] is not prepared.record:
            prepared.finish(status, arguments)

    def _by_keyword(self, named: dict[str, Any], call: str) -> TypeError:
        """Return the error for keyword arguments, which says where their values belong.

        `call` is the call of the kernel's method that accepts options, with `{}` as the placeholder for them.
        """
        name = self.kernel.name
        options = ", ".join(f"{option}=..." for option in named if option in NAMES)
        remedy = f"write {name}.{call.format(options)}" if options else ""
        if not NAMES.issuperset(named):
            hints = [KEYWORDS["Kernel"][name] for name in named if name in KEYWORDS["Kernel"]]
            in_order = "pass the arguments in the order of the kernel's parameters"
            remedy = ", and ".join(filter(None, [*(hints or [in_order]), remedy]))
        return TypeError(
            f"{name}: a launch takes no keyword arguments, but got {', '.join(map(repr, named))}; {remedy}"
        )

    @property
    def kernel(self) -> Kernel:
        """The kernel that is launched."""
        return self._prepared.kernel

    @property
    def shape(self) -> LaunchShape:
        """The grid and block shapes, and the size of the dynamic shared memory in bytes."""
        return self._prepared.shape

    @property
    def stream(self) -> Stream:
        """The stream in which the kernel is launched."""
        return self._stream

    def bind(self, *arguments: Any, **named: Any) -> BoundLaunch:
        """Check and pack the arguments once. The result keeps them alive, and is called without arguments."""
        if named:
            raise self._by_keyword(named, "configure(grid, block, {}).bind(...)")
        return BoundLaunch(self, arguments)

    def __repr__(self) -> str:
        return f"<Launch {self._prepared.record}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        refuse_copy(self, "make it again with kernel[grid, block]")


class BoundLaunch(NodeWork):
    """A launch with packed arguments; each call launches the kernel with them.

    It keeps the arguments alive. If one of the arrays has been closed explicitly, a launch raises ValueError.
    """

    __slots__ = ("_arguments", "_call", "_device", "_launch", "_mark", "_parameters", "_prepared", "_record", "_start")

    _kind = "kernel"

    def __init__(self, launch: Launch, arguments: tuple[Any, ...]) -> None:
        self._launch = instance("BoundLaunch", "launch", launch, Launch)
        instance("BoundLaunch", "arguments", arguments, tuple)
        self._prepared = prepared = launch._prepared
        # Copied here, because each attribute lookup adds to the time of a call.
        self._device, self._record, self._start = prepared.device, prepared.record, prepared.start
        self._arguments = _with_owners(arguments)
        self._mark: object = None
        self._parameters, self._call = prepared.make_buffer()
        prepared.pack(self._parameters, arguments, launch.stream)

    @property
    def launch(self) -> Launch:
        """The launch that the arguments are bound to."""
        return self._launch

    def __call__(self) -> None:
        """Launch the kernel with the bound arguments."""
        is_ready = self._mark is epoch.current and this_thread.device is self._device
        if is_ready:
            (status,) = self._start(*self._call)
        else:
            self._check()
            (status,) = self._prepared.start_on_device(self._call)
        if status or not is_ready or log[0] is not self._record:
            self._prepared.finish(status, self._arguments)

    def __repr__(self) -> str:
        return f"<BoundLaunch {self._record}>"

    def _check_node(self, call: str, device: Device, *, adds: bool = False) -> None:
        """Raise ValueError if the launch cannot run in a graph that belongs to a device.

        A change cannot replace the attributes of the node's launch, and no node has a programmatic launch.
        """
        name = self._prepared.kernel.name
        if self._device is not device:
            raise ValueError(
                f"{call}: argument 'work' launches {name}, which is loaded on device {self._device.ordinal}, but the "
                f"graph belongs to device {device.ordinal}"
            )
        if self._prepared.has_attributes and not adds:
            raise ValueError(f"{call}: argument 'work' launches {name} with attributes, which belong to the node")
        programmatic = enums.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        if any(one.id == programmatic for one in self._attributes()):
            raise ValueError(f"{call}: argument 'work' launches {name} with programmatic=True, which nodes cannot have")
        self._check()

    def _attributes(self) -> list[Any]:
        """Return the CUlaunchAttributes of the launch."""
        return list(self._prepared._leading[0].attrs) if self._prepared.has_attributes else []

    def _parameters_of_node(self) -> Any:
        """Return the parameters of a node that launches this kernel with these arguments."""
        made, shape = enums.CUDA_KERNEL_NODE_PARAMS(), self._prepared.shape
        made.func = enums.CUfunction(self._prepared.kernel.handle)
        made.gridDimX, made.gridDimY, made.gridDimZ = shape.grid
        made.blockDimX, made.blockDimY, made.blockDimZ = shape.block
        made.sharedMemBytes = shape.shared_bytes
        made.extra = self._call[-1]
        return made

    def _add_node(self, graph: int, before: list[Any], device: Device) -> Any:
        """Add a node with this launch and its attributes to a graph, and return it."""
        node = api.cuGraphAddKernelNode(graph, before, len(before), self._parameters_of_node())
        try:
            for attribute in self._attributes():
                value = enums.CUkernelNodeAttrValue()
                ctypes.memmove(value.getPtr(), attribute.value.getPtr(), _ATTRIBUTE_BYTES)
                api.cuGraphKernelNodeSetAttribute(node, attribute.id, value)
        except BaseException:  # also an interrupt
            api.cuGraphDestroyNode(node)
            raise
        return node

    def _set_node(self, node: int, device: Device) -> None:
        """Make a node of a graph launch this kernel with these arguments."""
        api.cuGraphKernelNodeSetParams(node, self._parameters_of_node())

    def _change_node(self, executable: int, node: int, device: Device) -> None:
        """Make a node of an executable graph launch this kernel with these arguments."""
        api.cuGraphExecKernelNodeSetParams(executable, node, self._parameters_of_node())

    def _retained_by(self, node: int) -> RetainedObjects:
        """Return the objects that the launch uses, which a graph keeps alive for the node."""
        return RetainedObjects(self._prepared.kernel.name, self._prepared.used(self._arguments), node)

    def __reduce__(self) -> str | tuple[Any, ...]:
        refuse_copy(self, "bind the arguments again with kernel[grid, block].bind(...)")

    def _check(self) -> None:
        """Check that no object that the launch uses was closed."""
        mark = epoch.mark()
        RetainedObjects(self._prepared.kernel.name, self._arguments).check()
        self._prepared.check(self._launch.stream)
        self._mark = mark
