"""Managed memory, with one address for the host and the devices; advice and prefetches are only recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import (
    CUdeviceptr,
    CUmem_advise,
    CUmem_range_attribute,
    CUmemAttach_flags,
    CUmemLocationType,
    CUresult,
)

from ...state import memory
from ...state.arguments import number
from ...state.contexts import current
from ...state.devices import find_device
from ...state.errors import StatusError
from ...state.memory import Allocation
from ...state.queue.operations import Operation
from ...state.streams import find_stream, refuse_in_capture, submit
from ..entry import entry

if TYPE_CHECKING:
    from ...state.contexts import Context

_CPU = -1
_NOWHERE = -2
_NODE = 0  # the only NUMA node of the host (CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID)
_ATTACH = CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL.value, CUmemAttach_flags.CU_MEM_ATTACH_HOST.value
_LOCATION = CUmemLocationType


class Advice:
    """The advice on a managed allocation, with locations as ordinals: -1 is the host, and -2 no location."""

    def __init__(self) -> None:
        self.read_mostly = False
        self.preferred = _NOWHERE
        self.accessed_by: list[int] = []
        self.prefetched = _NOWHERE


_advice: dict[int, Advice] = {}


class Prefetch(Operation):
    """A prefetch, of which only the location is recorded."""

    __slots__ = ("allocation", "location")

    def __init__(self, allocation: Allocation, location: int) -> None:
        self.allocation = allocation
        self.location = location

    def run(self, context: Context) -> None:
        """Record the location."""
        _advice_of(self.allocation).prefetched = self.location


def _advice_of(allocation: Allocation) -> Advice:
    found = _advice.get(allocation.identity)
    if found is None:
        # Advice on allocations that have been freed is dropped with the next new one.
        alive = {other.identity for other in memory.known.by_start.values()}
        for identity in [identity for identity in _advice if identity not in alive]:
            del _advice[identity]
        found = _advice[allocation.identity] = Advice()
    return found


@entry(values=1, unsafe=True)
def cuMemAllocManaged(bytesize: Any, flags: Any) -> Any:
    """Allocate managed memory (cuMemAllocManaged)."""
    context = current()
    attach = number(flags)
    if attach not in _ATTACH:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return CUdeviceptr(memory.allocate(number(bytesize), memory.MANAGED, context, flags=attach).address)


def find_managed(pointer: Any, count: Any) -> Allocation:
    """Return the managed allocation that contains a range, or raise CUDA_ERROR_INVALID_VALUE."""
    address, size = number(pointer), number(count)
    allocation = memory.known.find(address)
    if allocation is None or allocation.kind != memory.MANAGED or size <= 0 or address + size > allocation.end:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return allocation


def ordinal_of(location: Any) -> int:
    """Return a location as an ordinal, -1 for the host."""
    if location is None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if location.type == _LOCATION.CU_MEM_LOCATION_TYPE_DEVICE:
        return find_device(location.id).ordinal
    if location.type in (_LOCATION.CU_MEM_LOCATION_TYPE_HOST, _LOCATION.CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT):
        return _CPU
    if location.type == _LOCATION.CU_MEM_LOCATION_TYPE_HOST_NUMA and location.id == _NODE:
        return _CPU
    raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)


def _advised(location: Any) -> int:
    """Return a location for advice as an ordinal; a device that does not exist raises CUDA_ERROR_INVALID_VALUE."""
    try:
        return ordinal_of(location)
    except StatusError:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE) from None


def _accessor(location: Any) -> int:
    """Return a location for advice on who accesses memory, which can't name a node of the host."""
    nodes = _LOCATION.CU_MEM_LOCATION_TYPE_HOST_NUMA, _LOCATION.CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
    if location is not None and location.type in nodes:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return _advised(location)


@entry(unsafe=True)
def cuMemAdvise(devPtr: Any, count: Any, advice: Any, location: Any) -> None:
    """Record advice on the allocation that contains a range of managed memory (cuMemAdvise)."""
    current()
    allocation = find_managed(devPtr, count)
    found = _advice_of(allocation)
    if location is not None and location.type == _LOCATION.CU_MEM_LOCATION_TYPE_INVALID:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    names = CUmem_advise
    kind = number(advice)
    if kind == names.CU_MEM_ADVISE_SET_READ_MOSTLY.value:
        found.read_mostly = True
    elif kind == names.CU_MEM_ADVISE_UNSET_READ_MOSTLY.value:
        found.read_mostly = False
    elif kind == names.CU_MEM_ADVISE_SET_PREFERRED_LOCATION.value:
        found.preferred = _advised(location)
    elif kind == names.CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION.value:
        found.preferred = _NOWHERE
    elif kind == names.CU_MEM_ADVISE_SET_ACCESSED_BY.value:
        ordinal = _accessor(location)
        if ordinal not in found.accessed_by:
            found.accessed_by.append(ordinal)
    elif kind == names.CU_MEM_ADVISE_UNSET_ACCESSED_BY.value:
        ordinal = _accessor(location)
        if ordinal in found.accessed_by:
            found.accessed_by.remove(ordinal)
    else:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)


@entry()
def cuMemPrefetchAsync(devPtr: Any, count: Any, location: Any, flags: Any, hStream: Any) -> None:
    """Record, in stream order, the location to which managed memory is prefetched (cuMemPrefetchAsync)."""
    stream = find_stream(hStream)
    allocation = find_managed(devPtr, count)
    if number(flags):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    submit(stream, Prefetch(allocation, ordinal_of(location)))


@entry(values=1)
def cuMemRangeGetAttribute(dataSize: Any, attribute: Any, devPtr: Any, count: Any) -> Any:
    """Return the advice on a range of managed memory (cuMemRangeGetAttribute)."""
    current()
    return _attribute(number(dataSize), number(attribute), _advice_of(find_managed(devPtr, count)))


@entry(values=1)
def cuMemRangeGetAttributes(dataSizes: Any, attributes: Any, numAttributes: Any, devPtr: Any, count: Any) -> list[Any]:
    """Return several kinds of advice on a range of managed memory (cuMemRangeGetAttributes)."""
    current()
    sizes, kinds = list(dataSizes or ()), list(attributes or ())
    advice, wanted = _advice_of(find_managed(devPtr, count)), number(numAttributes)
    if not 0 < wanted <= min(len(sizes), len(kinds)):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return [_attribute(number(sizes[index]), number(kinds[index]), advice) for index in range(wanted)]


def _attribute(size: int, kind: int, advice: Advice) -> Any:
    names = CUmem_range_attribute
    if kind == names.CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY.value:
        if size <= 0 or size % 4:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        ordinals = advice.accessed_by[: size // 4]
        return ordinals + [_NOWHERE] * (size // 4 - len(ordinals))
    answers = {
        names.CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY.value: int(advice.read_mostly),
        names.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION.value: advice.preferred,
        names.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION.value: advice.prefetched,
    }
    if kind not in answers or size != 4:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return answers[kind]


@entry()
def cuStreamAttachMemAsync(hStream: Any, dptr: Any, length: Any, flags: Any) -> None:
    """Check the attachment of managed memory to a stream, which has no effect (cuStreamAttachMemAsync)."""
    stream = find_stream(hStream)
    refuse_in_capture(stream)
    address, size = number(dptr), number(length)
    allocation = memory.known.by_start.get(address)
    if allocation is None or allocation.kind != memory.MANAGED or size not in (0, allocation.size):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    single = CUmemAttach_flags.CU_MEM_ATTACH_SINGLE.value
    if number(flags) not in (*_ATTACH, single) or (number(flags) == single and stream.is_legacy):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    submit(stream, None)
