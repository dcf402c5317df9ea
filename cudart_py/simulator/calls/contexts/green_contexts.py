"""Green contexts: parts of a device's multiprocessors, with streams whose kernels run only there.

The simulator runs the work of all streams one piece after another, so a partition changes no timing. It changes the
multiprocessor that kernels read from %smid, and the number of blocks of a cooperative launch that are resident.
"""

from __future__ import annotations

from typing import Any

from cuda.bindings.driver import (
    CUdevResourceDesc,
    CUdevResourceType,
    CUgreenCtx,
    CUgreenCtxCreate_flags,
    CUresult,
    CUstream,
    CUstream_flags,
)

from ...state.arguments import number
from ...state.contexts import current, find_context, primary
from ...state.devices import find_device
from ...state.errors import StatusError
from ...state.handles import Handles
from ...state.partitions import (
    UNIT,
    UNIT_ALONE,
    GreenContext,
    Partition,
    all_of,
    find_partition,
    green_contexts,
)
from ...state.queue import captures
from ...state.queue.scheduling import mark_all
from ...state.queue.stream import Stream
from ...state.streams import GREATEST_PRIORITY, LEAST_PRIORITY, find_stream, streams
from ..entry import entry
from ..streams.events import find_event, set_mark
from .contexts import release, retain

_SM = CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM.value
_IGNORE_COSCHEDULING = 1  # the name of the enumeration changed between versions of the bindings
# Together with the flag for the largest clusters. The driver ignores unknown flags.
_BOTH = 3

# One of an H200's groups of multiprocessors has only 12, and therefore room for one part of 8.
_FULL_UNITS = 15

_descriptors: Handles[Partition] = Handles(CUresult.CUDA_ERROR_INVALID_VALUE)


@entry(values=1)
def cuDeviceGetDevResource(device: Any, typename: Any) -> Any:
    """Return all multiprocessors of a device (cuDeviceGetDevResource)."""
    return _described(all_of(find_device(device)), typename)


@entry(values=1)
def cuCtxGetDevResource(hCtx: Any, typename: Any) -> Any:
    """Return the multiprocessors of a context, which are all of its device (cuCtxGetDevResource)."""
    return _described(all_of(find_context(hCtx).device), typename)


@entry(values=1)
def cuGreenCtxGetDevResource(hCtx: Any, typename: Any) -> Any:
    """Return the multiprocessors of a green context (cuGreenCtxGetDevResource)."""
    return _described(green_contexts.find(hCtx).partition, typename)


def _described(partition: Partition, typename: Any) -> Any:
    if number(typename) != _SM:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_RESOURCE_TYPE)
    return partition.resource()


@entry(values=3)
def cuDevSmResourceSplitByCount(nbGroups: Any, input_: Any, flags: Any, minCount: Any) -> tuple[list[Any], int, Any]:
    """Split multiprocessors into groups of at least `minCount`, and a remainder (cuDevSmResourceSplitByCount).

    With no groups, return how many there could be. As in the bindings, there is a structure for each requested group.
    """
    whole, value, least = find_partition(input_), number(flags), number(minCount)
    if value & _BOTH == _BOTH:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    total = len(whole.multiprocessors)
    if whole.split is not None or least > total:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION)
    unit = UNIT_ALONE if value & _IGNORE_COSCHEDULING else UNIT
    size = min(max(1, -(-least // unit)) * unit, total)
    most, wanted = total // size - (size == UNIT and total > _FULL_UNITS * UNIT), number(nbGroups)
    count = min(wanted, most) if wanted else most
    split = object()

    def part(first: int, last: int) -> Any:
        return Partition(whole.device, whole.multiprocessors[first:last], split).resource()

    groups = [part(place * size, min(place + 1, count) * size) for place in range(wanted)]
    return groups, count, part(count * size if wanted else total, total)


@entry(values=1)
def cuDevResourceGenerateDesc(resources: Any, nbResources: Any) -> Any:
    """Return a descriptor of multiprocessors: a whole, or parts from the same split (cuDevResourceGenerateDesc)."""
    found = [find_partition(resource) for resource in (resources or [])[: number(nbResources)]]
    if not found:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    first, numbers = found[0], [place for partition in found for place in partition.multiprocessors]
    if len(found) > 1 and (first.split is None or any(other.split is not first.split for other in found)):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION)
    return CUdevResourceDesc(_descriptors.add(Partition(first.device, sorted(set(numbers)))))


@entry(values=1)
def cuGreenCtxCreate(desc: Any, dev: Any, flags: Any) -> Any:
    """Create a green context, which retains the device's primary context (cuGreenCtxCreate)."""
    partition, device = _descriptors.find(desc), find_device(dev)
    # Driver 580 requires the flag for a default stream.
    if number(flags) != CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM.value or partition.device is not device:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    context = primary(device)
    retain(context)
    return CUgreenCtx(GreenContext(context, partition).handle)


@entry(frees=True)
def cuGreenCtxDestroy(hCtx: Any) -> None:
    """Destroy a green context; every call with its streams then returns CUDA_ERROR_CONTEXT_IS_DESTROYED.

    Destroying such a stream returns it too (cuGreenCtxDestroy).
    """
    green = green_contexts.find(hCtx)
    green_contexts.remove(green.handle)
    green.destroyed = True
    for stream in list(green.streams):
        if stream.capture is not None:
            stream.capture.invalidate()
    release(green.primary)


@entry(values=1)
def cuGreenCtxStreamCreate(greenCtx: Any, flags: Any, priority: Any) -> Any:
    """Create a stream of a green context, which must be non-blocking (cuGreenCtxStreamCreate)."""
    green = green_contexts.find(greenCtx)
    if number(flags) != CUstream_flags.CU_STREAM_NON_BLOCKING.value:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    level = min(max(number(priority), GREATEST_PRIORITY), LEAST_PRIORITY)
    stream = Stream(green.primary, flags=number(flags), priority=level, green=green)
    stream.handle = streams.add(stream)
    green.streams.add(stream)
    return CUstream(stream.handle)


@entry(values=1)
def cuStreamGetGreenCtx(hStream: Any) -> Any:
    """Return a stream's green context, null for other streams (cuStreamGetGreenCtx)."""
    green = find_stream(hStream).green
    return CUgreenCtx(0 if green is None else green.handle)


@entry()
def cuGreenCtxRecordEvent(hCtx: Any, hEvent: Any) -> None:
    """Record an event after all work in a green context's streams (cuGreenCtxRecordEvent)."""
    green, event = green_contexts.find(hCtx), find_event(hEvent)
    if event.context is not green.primary:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_HANDLE)
    captures.refuse_all(green.primary)
    event.captured = None
    set_mark(event, mark_all(green.primary, green.streams))


@entry()
def cuGreenCtxWaitEvent(hCtx: Any, hEvent: Any) -> None:
    """Make all later work in a green context's streams wait for an event (cuGreenCtxWaitEvent)."""
    green, event = green_contexts.find(hCtx), find_event(hEvent)
    current()
    if event.captured is not None:
        event.captured[0].invalidate()
        raise StatusError(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
    captures.refuse_all(green.primary)
    if event.mark is not None and not event.mark.heard:
        green.gates.append(event.mark)
