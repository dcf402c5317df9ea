"""Stream memory operations: streams that write values to memory, or wait for values there, without a kernel.

While a value is missing, other work runs: see `state.queue.scheduling`. If no work is left that could write the value,
and neither another thread nor another process could, the wait is a deadlock, which is reported.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from cuda.bindings.driver import CUgraphNodeType, CUresult, CUstreamBatchMemOpType, CUstreamWaitValue_flags

from ...checks.findings import site_to_report
from ...checks.races import concurrency
from ...state import memory
from ...state.arguments import number
from ...state.errors import StatusError
from ...state.memory import sharing
from ...state.queue.operations import FaultError, Operation, Waits
from ...state.queue.value_waits import join_writer, note_write
from ...state.streams import find_stream, submit
from ..entry import entry
from ..launches.launches import SECONDS_VARIABLE, launch_limits

if TYPE_CHECKING:
    from ...state.contexts import Context
    from ...state.queue.stream import Stream

_TYPE = CUstreamBatchMemOpType
_FLUSH = CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_FLUSH.value
# A batch of 256 operations is refused.
_MOST = 255
_CONDITIONS = ("be at least", "equal", "have a bit in common with", "lack a bit that is also missing in")


class WriteValue:
    """A write of a value of `size` bytes, after everything that its stream has done before."""

    __slots__ = ("address", "size", "value")

    def __init__(self, address: int, value: int, size: int) -> None:
        self.address = address
        self.value = value & (1 << 8 * size) - 1
        self.size = size

    def __str__(self) -> str:
        return f"write {self.value} ({8 * self.size} bits) at {self.address:#x}"

    def run(self, batch: MemoryOperations) -> None:
        """Write the value."""
        memory.require_live(self.address, self.size, str(batch))
        # Kernels may poll the value by atomic or volatile loads, or change it by atomics, in the meantime.
        concurrency.touch([(self.address, self.size)], str(batch), writes=True, is_atomic=True, site=batch.site)
        element = _element(self.address, self.size)
        note_write(self.address, self.size, int(element[()]), self.value)
        element[...] = self.value
        memory.note_written(self.address, self.size)


class WaitValue:
    """A wait for a value of `size` bytes that meets a condition, which is CUDA's number for it."""

    __slots__ = ("address", "condition", "size", "value")

    def __init__(self, address: int, value: int, size: int, condition: int) -> None:
        self.address = address
        self.value = value & (1 << 8 * size) - 1
        self.size = size
        self.condition = condition

    def __str__(self) -> str:
        rule = _CONDITIONS[self.condition]
        return f"wait for the {8 * self.size}-bit value at {self.address:#x} to {rule} {self.value}"

    @property
    def now(self) -> int:
        """The value in memory."""
        return int(_element(self.address, self.size)[()])

    @property
    def met(self) -> bool:
        """Whether the value in memory meets the condition."""
        return self.meets(self.now)

    def meets(self, now: int) -> bool:
        """Return whether a value meets the condition."""
        wanted, bits = self.value, 8 * self.size
        match self.condition:
            case 0:
                return (now - wanted) % (1 << bits) < 1 << bits - 1  # the difference as a signed number is not negative
            case 1:
                return now == wanted
            case 2:
                return now & wanted != 0
        return ~(now | wanted) & (1 << bits) - 1 != 0

    def run(self, batch: MemoryOperations) -> None:
        """Order the batch after the work that wrote the value, which meets the condition."""
        memory.require_live(self.address, self.size, str(batch))
        kernel = concurrency.kernel_that_wrote(self.address, self.size)
        join_writer(self.address, self.size, self.now, self.meets, kernel)


class _HeldWait:
    """A wait of a batch that has begun, and whose value has not been written yet."""

    __slots__ = ("_batch", "_wait")

    def __init__(self, wait: WaitValue, batch: MemoryOperations) -> None:
        self._wait = wait
        self._batch = batch

    @property
    def met(self) -> bool:
        """Whether the wait is over: memory has the value, or the memory has been freed, which is a fault."""
        return memory.live.find(self._wait.address) is None or self._wait.met

    def deadlock(self, seconds: float) -> FaultError | None:
        """Return a fault, unless another thread or another process may still write the value in time."""
        wait, limit = self._wait, launch_limits()[1]
        if not _others_may_write(wait.address):
            reason = "will never end"
            others = "and no other work is queued that could change it"
        elif limit is not None and seconds >= limit:
            reason = f"has not ended within {limit} seconds"
            others = (
                f"and neither another thread nor another process has changed it ({SECONDS_VARIABLE} sets the limit)"
            )
        else:
            return None
        site = f", queued at {self._batch.site}," if self._batch.site else ""
        return FaultError(
            CUresult.CUDA_ERROR_LAUNCH_TIMEOUT,
            f"deadlock: {wait}{site} {reason}: the value ({memory.describe(wait.address)}) is {wait.now}, {others}\n"
            "    queue the work that writes the value before waiting for this stream",
        )


def _others_may_write(address: int) -> bool:
    """Return whether another thread could queue work that writes a value, or another process could write it."""
    allocation = memory.live.find(address)
    return threading.active_count() > 1 or (allocation is not None and sharing.is_shared(allocation))


class Barrier:
    """A barrier between the operations of a batch, which run one after another anyway."""

    __slots__ = ()

    def __str__(self) -> str:
        return "barrier"

    def run(self, batch: MemoryOperations) -> None:
        """Do nothing."""


class MemoryOperations(Operation):
    """A batch of memory operations, which run in order."""

    __slots__ = ("parts", "site")

    node_type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP

    def __init__(self, parts: list[WriteValue | WaitValue | Barrier]) -> None:
        self.parts = parts
        self.site = site_to_report()

    def __str__(self) -> str:
        return "a stream memory operation" if len(self.parts) == 1 else "a batch of stream memory operations"

    @property
    def may_wait(self) -> bool:
        """Return whether one of the operations is a wait."""
        return any(isinstance(part, WaitValue) for part in self.parts)

    def describe(self) -> str:
        """Return the operations."""
        return "\n".join(map(str, self.parts[:2]))

    def steps(self, context: Context) -> Iterator[Waits]:
        """Run the operations in order."""
        for part in self.parts:
            if isinstance(part, WaitValue):
                held = _HeldWait(part, self)
                while not held.met:
                    yield (held,)
            part.run(self)


def _element(address: int, size: int) -> Any:
    return memory.space.window(address, (), (), np.uint32 if size == 4 else np.uint64)


def _checked(address: Any, size: int, context: Context) -> int:
    """Return an address; raise CUDA_ERROR_INVALID_VALUE unless it is aligned and in memory that the device reaches.

    Like driver 580, refuse managed memory and memory of pools.
    """
    value = number(address)
    allocation = memory.find(value, size) if value and not value % size else None
    if allocation is None or allocation.kind == memory.MANAGED or allocation.pool is not None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if not context.reaches(allocation):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return value


def _write(address: Any, value: Any, flags: Any, size: int, context: Context) -> WriteValue:
    if number(flags):  # driver 580 accepts no flag, not even that for a write without a barrier
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return WriteValue(_checked(address, size, context), number(value), size)


def _wait(address: Any, value: Any, flags: Any, size: int, context: Context) -> WaitValue:
    condition = number(flags)
    if condition & ~(_FLUSH | 3):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    place = _checked(address, size, context)
    if condition & _FLUSH:
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
    return WaitValue(place, number(value), size, condition)


def _submit(stream: Stream, *parts: WriteValue | WaitValue | Barrier) -> None:
    submit(stream, MemoryOperations(list(parts)))


@entry()
def cuStreamWriteValue32(stream: Any, addr: Any, value: Any, flags: Any) -> None:
    """Write 32 bits in stream order (cuStreamWriteValue32)."""
    queue = find_stream(stream)
    _submit(queue, _write(addr, value, flags, 4, queue.context))


@entry()
def cuStreamWriteValue64(stream: Any, addr: Any, value: Any, flags: Any) -> None:
    """Write 64 bits in stream order (cuStreamWriteValue64)."""
    queue = find_stream(stream)
    _submit(queue, _write(addr, value, flags, 8, queue.context))


@entry()
def cuStreamWaitValue32(stream: Any, addr: Any, value: Any, flags: Any) -> None:
    """Make later work of a stream wait for a value of 32 bits (cuStreamWaitValue32)."""
    queue = find_stream(stream)
    _submit(queue, _wait(addr, value, flags, 4, queue.context))


@entry()
def cuStreamWaitValue64(stream: Any, addr: Any, value: Any, flags: Any) -> None:
    """Make later work of a stream wait for a value of 64 bits (cuStreamWaitValue64)."""
    queue = find_stream(stream)
    _submit(queue, _wait(addr, value, flags, 8, queue.context))


@entry()
def cuStreamBatchMemOp(stream: Any, count: Any, paramArray: Any, flags: Any) -> None:
    """Queue several memory operations, which run in order (cuStreamBatchMemOp)."""
    queue = find_stream(stream)
    operation = batch_of(count, paramArray, flags, queue.context)
    if operation.parts:
        submit(queue, operation)


def batch_of(count: Any, parameters: Any, flags: Any, context: Context) -> MemoryOperations:
    """Return the operations that an array of CUstreamBatchMemOpParams describes."""
    if number(flags) or not 0 <= number(count) <= _MOST:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return MemoryOperations([_part(one, context) for one in (parameters or [])[: number(count)]])


def _part(parameters: Any, context: Context) -> WriteValue | WaitValue | Barrier:
    kind = parameters.operation
    if kind == _TYPE.CU_STREAM_MEM_OP_BARRIER:
        if parameters.memoryBarrier.flags not in (0, 1):
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        return Barrier()
    if kind not in _PARTS:
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
    make, member, size = _PARTS[kind]
    given = getattr(parameters, member)
    return make(given.address, given.value if size == 4 else given.value64, given.flags, size, context)


# The function that checks a part of each type, the part's member of CUstreamBatchMemOpParams, and its size in bytes.
_PARTS: dict[Any, tuple[Callable[..., WriteValue | WaitValue], str, int]] = {
    _TYPE.CU_STREAM_MEM_OP_WRITE_VALUE_32: (_write, "writeValue", 4),
    _TYPE.CU_STREAM_MEM_OP_WRITE_VALUE_64: (_write, "writeValue", 8),
    _TYPE.CU_STREAM_MEM_OP_WAIT_VALUE_32: (_wait, "waitValue", 4),
    _TYPE.CU_STREAM_MEM_OP_WAIT_VALUE_64: (_wait, "waitValue", 8),
}
