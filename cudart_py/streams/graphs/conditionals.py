"""Conditional nodes of graphs: parts that run once, repeatedly or not at all, as a kernel decides."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ... import errors
from ...base import arguments
from ...context.capture import BodyCapture, Capture, find, relaxed
from ...context.current import activated
from ...context.device import Device
from ...context.lifetimes import finalize
from ...driver import enums
from ...driver.calls import api
from ...driver.unwrap import failure

if TYPE_CHECKING:
    from ..stream import Stream

_Streams = TypeVar("_Streams")


class Condition:
    """The value that controls one conditional node of a graph, created by `stream.condition()`.

    Kernels take it as a `cudaGraphConditionalHandle` and set it with `cudaGraphSetConditional(handle, value)`. With
    NVRTC, the source must declare that function:

        extern "C" __device__ __cudart_builtin__ void CUDARTAPI
        cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);
    """

    __slots__ = ("_bodies", "_capture", "_default", "_device", "_handle", "_used")

    def __init__(self, capture: Capture, device: Device, handle: int, default: int) -> None:
        self._capture: Capture | None = capture
        self._device = device
        self._handle = handle
        self._default = default
        self._used = False
        # The graphs of the conditional node's bodies; they exist as long as the whole graph.
        self._bodies: tuple[Any, ...] = ()

    def _release(self) -> None:
        """Drop the capture, which has ended, and with it all objects that it keeps alive."""
        self._capture = None

    @property
    def handle(self) -> int:
        """The cudaGraphConditionalHandle as an int."""
        return self._handle

    @property
    def device(self) -> Device:
        """The device of the graph."""
        return self._device

    @property
    def default(self) -> int:
        """The value at the beginning of each launch of the graph."""
        return self._default

    def __repr__(self) -> str:
        return f"<Condition {self._handle:#x}, default {self._default}>"


def _recorded(call: str, stream: Stream) -> Capture:
    """Return the capture that a stream records into, or raise CaptureError."""
    capture = find(stream.handle)
    if capture is None:
        raise errors.CaptureError(f"{call}: the stream is not being captured; only graphs have conditions")
    return capture


def _information(stream: Stream) -> Any:
    """Return a captured stream's status, capture id, graph, dependencies, their edge data and their number.

    Raises CaptureError if the capture is not active, because it was invalidated.
    """
    info = api.cuStreamGetCaptureInfo(stream.native)
    if info[0] != enums.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE:
        raise failure(enums.CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "cuStreamGetCaptureInfo")
    return info


def make_condition(stream: Stream, default: int) -> Condition:
    """Create a condition for the graph that a stream records into; see `Stream.condition`."""
    call = "Stream.condition"
    default = arguments.integer(call, "default", default, 0, 2**32 - 1)
    capture, device = _recorded(call, stream), stream.device
    with activated(device):
        flags = enums.CU_GRAPH_COND_ASSIGN_DEFAULT
        handle = api.cuGraphConditionalHandleCreate(_information(stream)[2], device.context, default, flags)
    condition = Condition(capture, device, int(handle), default)
    capture.conditions.append(condition)
    return condition


class ConditionalNode(Generic[_Streams]):
    """A conditional node of a graph, made by `stream.if_then(...)` and related calls; its block records the bodies."""

    __slots__ = ("_call", "_captures", "_condition", "_kind", "_make_stream", "_shape", "_size", "_stream")

    def __init__(
        self,
        call: str,
        stream: Stream,
        condition: Condition,
        kind: str,
        size: int,
        *,
        make_stream: Callable[[], Stream],
        shape: Callable[[list[Stream]], _Streams],
    ) -> None:
        self._captures: list[BodyCapture] = []
        self._call = call
        self._stream = stream
        self._condition = arguments.instance(call, "condition", condition, Condition)
        self._kind = kind
        self._size = size
        self._make_stream = make_stream
        self._shape = shape
        self._checked()

    def __repr__(self) -> str:
        return f"<ConditionalNode of {self._call} in {self._stream!r}>"

    def _checked(self) -> Capture:
        """Return the capture that records the node, after checking that the condition is unused and of that graph."""
        call, condition, capture = self._call, self._condition, _recorded(self._call, self._stream)
        if condition._used:
            raise ValueError(
                f"{call}: argument 'condition' already belongs to a conditional node; make one condition per node"
            )
        if not any(one is condition._capture for one in capture.lineage):
            raise ValueError(f"{call}: argument 'condition' was made for another graph")
        return capture

    def __enter__(self) -> _Streams:
        """Add the node after the stream's work so far, and return the streams of the bodies."""
        stream, condition, capture = self._stream, self._condition, self._checked()
        device = stream.device
        with activated(device):
            info = _information(stream)
            parameters = enums.CUgraphNodeParams()
            parameters.type = enums.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
            node = parameters.conditional
            node.handle = enums.CUgraphConditionalHandle(condition.handle)
            node.type = getattr(enums.CUgraphConditionalNodeType, f"CU_GRAPH_COND_TYPE_{self._kind}")
            node.size = self._size
            node.ctx = enums.CUcontext(int(device.context))
            made = api.cuGraphAddNode(info[2], info[3], info[4], info[5], parameters)
            condition._used = True
            condition._bodies = tuple(node.phGraph_out)
            flags = enums.CUstreamUpdateCaptureDependencies_flags.CU_STREAM_SET_CAPTURE_DEPENDENCIES
            api.cuStreamUpdateCaptureDependencies(stream.native, [made], None, 1, int(flags))
            try:
                return self._shape([self._begin(graph, capture, device) for graph in condition._bodies])
            except BaseException:  # also an interrupt
                self._drop()
                raise

    def _begin(self, graph: Any, parent: Capture, device: Device) -> Stream:
        """Return a new stream that records into a body's graph."""
        with relaxed():
            stream = self._make_stream()
        capture = BodyCapture(stream.handle, device, graph, parent)
        # The stream is destroyed once the capture of the whole graph has ended.
        parent.root.later(stream.close)
        self._captures.append(capture)
        capture.begin(enums.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
        return stream

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        captures, self._captures = self._captures, []
        closed = any(capture.ended for capture in captures)
        statuses = [capture.close_body() for capture in captures]
        if kind is not None:
            return
        if closed:
            raise errors.CaptureError(f"{self._call}: the stream of a body was closed while it was being captured")
        for status in statuses:
            if status:
                raise failure(status, "cuStreamEndCapture")
        # If another body has nodes, an empty body is a branch that was left empty on purpose.
        with activated(self._stream.device):
            counts = [int(api.cuGraphGetNodes(graph, 0)[1]) for graph in self._condition._bodies]
        if not any(counts):
            raise errors.CaptureError(
                f"{self._call}: the {'body' if self._size == 1 else 'bodies'} recorded nothing. Launch in "
                f"{'the stream' if self._size == 1 else 'the streams'} bound by 'as', not in the captured stream"
            )

    def _drop(self) -> None:
        """End the captures of the bodies."""
        captures, self._captures = self._captures, []
        for capture in captures:
            capture.close_body()

    def __del__(self, _finalize: Callable[[Any], None] = finalize) -> None:
        # A caller that called `__enter__` without `with`, or was interrupted before the block, leaves the end to the
        # garbage collector. An interrupt may even have come before the constructor's first line.
        if getattr(self, "_captures", None):
            _finalize(self._drop)
