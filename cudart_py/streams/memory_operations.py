"""Stream memory operations: streams that write integers to memory or wait for integers there, without a kernel."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from ..base import arguments
from ..context.capture import captures, hold_node
from ..context.current import activated
from ..driver import enums
from ..driver.calls import raw
from ..driver.unwrap import failure

if TYPE_CHECKING:
    from .access_policy import Window
    from .stream_base import StreamBase

Condition = Literal["geq", "eq", "and", "nor"]
_ATTRIBUTES = ("closed", "dtype", "nbytes", "pointer", "shape")
_DTYPES = tuple(map(np.dtype, (np.int32, np.uint32, np.int64, np.uint64)))
# The driver refuses a batch of 256 operations.
_MOST = 255
# The remedy for an address that the driver refuses.
REMEDY = (
    "The memory must be pinned, or device memory from cuMemAlloc. Drivers refuse managed memory, and the memory of "
    "pools, from which cuda.zeros allocates: use cuda.pinned_empty"
)


class MemoryOperation:
    """An integer in memory that a stream writes or waits for."""

    # `_owners` are the array and, of a NumPy array, the object that its memory belongs to.
    __slots__ = ("_address", "_owners", "_size", "_value")

    # The driver's function for a single operation, without the number of bits, and its names for parts of a batch.
    _function: ClassVar[str]
    _kind: ClassVar[str]
    _member: ClassVar[str]

    @classmethod
    def _in_call(cls, call: str, *arguments: Any) -> Self:
        """Return an operation with the constructor's arguments, for a call that errors name."""
        result = cls.__new__(cls)
        result._set(call, *arguments)
        return result

    def _set(self, call: str, array: Window | NDArray[Any], value: int) -> None:
        """Check the arguments of a call, and keep them."""
        address, dtype = _place_of(call, array)
        limits = np.iinfo(dtype)
        number = arguments.integer(call, "value", value, int(limits.min), int(limits.max))
        self._owners = _owners_of(array)
        self._address = address
        self._size = 8 * dtype.itemsize
        self._value = number % (1 << self._size)

    @property
    def _flags(self) -> int:
        return 0

    def _check_open(self, call: str) -> None:
        if _any_closed(self._owners):
            raise arguments.wrong_value(call, "operations", "operations on open arrays", self._owners[0])

    def _queue(self, stream: StreamBase) -> None:
        """Queue the operation alone."""
        name = f"{self._function}{self._size}"
        native = stream.native
        with activated(stream.device):
            (status,) = getattr(raw, name)(native, self._address, self._value, self._flags)
        if status:
            raise failure(status, name, REMEDY)
        if captures:
            hold_node(stream.handle, "a memory operation", self._owners)

    def _part(self) -> Any:
        """Return the operation as a part of a batch."""
        result = enums.CUstreamBatchMemOpParams()
        kind = getattr(enums.CUstreamBatchMemOpType, f"CU_STREAM_MEM_OP_{self._kind}_VALUE_{self._size}")
        result.operation = kind
        member = getattr(result, self._member)
        member.operation, member.address, member.flags = kind, enums.CUdeviceptr(self._address), self._flags
        if self._size == 32:
            member.value = enums.cuuint32_t(self._value)
        else:
            member.value64 = enums.cuuint64_t(self._value)
        return result


class WriteValue(MemoryOperation):
    """A write of an integer, for `batches.memory_operations`. The arguments are those of `Stream.write_value`."""

    __slots__ = ()

    _function, _kind, _member = "cuStreamWriteValue", "WRITE", "writeValue"

    def __init__(self, array: Window | NDArray[Any], value: int) -> None:
        self._set("WriteValue", array, value)

    def __repr__(self) -> str:
        return f"<WriteValue {self._value} at {self._address:#x}>"


class WaitValue(MemoryOperation):
    """A wait for an integer, for `batches.memory_operations`. The arguments are those of `Stream.wait_value`."""

    __slots__ = ("_condition",)

    _function, _kind, _member = "cuStreamWaitValue", "WAIT", "waitValue"

    def __init__(self, array: Window | NDArray[Any], value: int, condition: Condition = "geq") -> None:
        self._set("WaitValue", array, value, condition)

    def _set(self, call: str, array: Window | NDArray[Any], value: int, condition: Condition = "geq") -> None:
        super()._set(call, array, value)
        self._condition = arguments.choice(call, "condition", condition, get_args(Condition))

    @property
    def _flags(self) -> int:
        return int(getattr(enums.CUstreamWaitValue_flags, f"CU_STREAM_WAIT_VALUE_{self._condition.upper()}"))

    def __repr__(self) -> str:
        return f"<WaitValue {self._condition} {self._value} at {self._address:#x}>"


def checked_operations(call: str, operations: Iterable[MemoryOperation]) -> list[MemoryOperation]:
    """Return a call's argument `operations`, after checking that their arrays are open."""
    expected = "a list of WriteValue and WaitValue objects"
    parts = arguments.items(call, "operations", operations, expected)
    for part in parts:
        arguments.instance(call, "operations", part, MemoryOperation, expected)
        part._check_open(call)
    if len(parts) > _MOST:
        raise arguments.unusable(call, "operations", f"have at most {_MOST} operations", len(parts))
    return parts


def queue_batch(call: str, operations: Iterable[MemoryOperation], stream: StreamBase) -> None:
    """Queue operations in one call, in order, after checking them."""
    parts = checked_operations(call, operations)
    if not parts:
        return
    native = stream.native
    with activated(stream.device):
        (status,) = raw.cuStreamBatchMemOp(native, len(parts), [part._part() for part in parts], 0)
    if status:
        raise failure(status, "cuStreamBatchMemOp", REMEDY)
    if captures:
        hold_node(stream.handle, "memory operations", owners_of_all(parts))


def owners_of_all(operations: Iterable[MemoryOperation]) -> tuple[Any, ...]:
    """Return the objects that operations need as long as they may run."""
    return tuple(owner for operation in operations for owner in operation._owners)


def _owners_of(array: Any) -> tuple[Any, ...]:
    owner = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return (array,) if owner is array else (array, owner)


def _any_closed(owners: tuple[Any, ...]) -> bool:
    return any(getattr(owner, "closed", False) for owner in owners)


def _place_of(call: str, array: Any) -> tuple[int, np.dtype[Any]]:
    """Return the address and the dtype of a call's argument, an array with one integer of 32 or 64 bits."""
    name, rule = "array", "a DeviceArray or a pinned NumPy array"
    on_host = isinstance(array, np.ndarray)
    # A class has the attributes of its instances too.
    if not on_host and (isinstance(array, type) or not all(hasattr(type(array), each) for each in _ATTRIBUTES)):
        raise arguments.wrong_type(call, name, rule, array)
    if _any_closed(_owners_of(array)):
        raise arguments.wrong_value(call, name, "open", array)
    if array.dtype not in _DTYPES:
        raise arguments.wrong_dtype(call, name, "int32, uint32, int64 or uint64", array.dtype)
    if array.nbytes != array.dtype.itemsize:
        raise arguments.unusable(call, name, "have exactly one element", f"the shape {array.shape}", "use flags[2:3]")
    address = int(array.ctypes.data) if on_host else array.pointer
    if address % array.dtype.itemsize:
        raise arguments.unusable(call, name, f"be at a multiple of {array.dtype.itemsize} bytes", f"at {address:#x}")
    return address, array.dtype
