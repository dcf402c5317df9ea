"""Memory pools, from which stream-ordered allocations come, and pools of host memory: their contents and limits.

NVIDIA's driver (observed with 580.159.04 on an H200) crashes the process, at once or in a later copy, if a pool is
destroyed while allocations or queued frees of its memory are outstanding, although the manual allows this. So a pool is
destroyed only when it holds no memory after a trim, because a trim leaves outstanding memory in the pool. A free is
outstanding until a synchronization has shown the host that it is complete. Querying an event is not enough, and the
bytes in use say nothing, since they decrease as soon as the free is queued. Closing a pool does not wait: a pool with
outstanding memory is destroyed after a later synchronization, when other pools are closed, or when the driver runs out
of memory, because every pool holds some.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

from ..base import arguments
from ..context.capture import relaxed
from ..context.current import activated
from ..context.device import Device, current_device, devices
from ..context.lifetimes import Handle, close_unfinished, unfinished
from ..driver import enums
from ..driver.calls import api, raw
from ..driver.capabilities import require_ipc
from ..driver.unwrap import failure
from ..hints import hinted
from ..streams.stream import Stream
from .allocation import MOST_BYTES, allocation_error, too_many_bytes, with_room

if TYPE_CHECKING:
    import uuid

# By default a pool returns its memory to the system at every synchronization, and the next allocation pays for
# mapping it again.
KEEP_EVERYTHING = 2**64 - 1

PoolKind = Literal["device", "pinned", "managed"]
# The maximum number of closed pools, including the pool itself, that closing a pool tries to destroy. The next time, it
# tries others.
_LOOKED_AT = 4


def _attribute(name: str) -> Any:
    return getattr(enums.CUmemPool_attribute, f"CU_MEMPOOL_ATTR_{name}")


class PoolMemory(Handle):
    """The driver's pool itself, kept alive by the arrays from it: using memory of a destroyed pool crashes.

    `shared_identity` identifies a pool that other processes can open; it is None for all others.
    """

    __slots__ = ("_device", "shared_identity")

    def __init__(self, value: int, device: Device, shared_identity: uuid.UUID | None) -> None:
        self._value = value
        self._owned = True
        self._device = device
        self.shared_identity = shared_identity

    def _release(self, value: Any) -> None:
        # In a reference cycle, the garbage collector may finalize the pool before its arrays, whose memory has not even
        # been freed then. So the pool is destroyed only once it holds no memory.
        unfinished.appendleft(_EndingPool(value, self._device).destroy)
        close_unfinished(most=_LOOKED_AT)


class _EndingPool:
    """A driver pool whose objects are closed, so that nothing can be allocated from it any more."""

    __slots__ = ("_device", "_value")

    def __init__(self, value: int, device: Device) -> None:
        self._value: int | None = value
        self._device = device

    def destroy(self) -> bool:
        """Destroy the pool unless some of its memory is outstanding; return whether it is gone."""
        value = self._value
        if value is None:
            return True
        # These calls must neither fail because of a capture in another thread nor invalidate it.
        with activated(self._device), relaxed():
            api.cuMemPoolTrimTo(value, 0)
            if int(api.cuMemPoolGetAttribute(value, _attribute("RESERVED_MEM_CURRENT"))):
                # With this threshold, the next synchronization in any thread returns the memory to the device.
                api.cuMemPoolSetAttribute(value, _attribute("RELEASE_THRESHOLD"), enums.cuuint64_t(0))
                return False
            self._value = None  # before the call, so that an interrupt cannot lead to a second one
            api.cuMemPoolDestroy(value)
        return True


class MemoryCounts:
    """The sizes of memory that is kept for later use: of a pool, or of the graphs of a device."""

    __slots__ = ()

    def _get(self, name: str) -> int:
        """Return the driver's attribute with this name."""
        raise NotImplementedError

    def _set(self, name: str, value: int) -> None:
        """Set the driver's attribute with this name."""
        raise NotImplementedError

    @property
    def used(self) -> int:
        """The number of bytes in use by arrays or, of graphs, by all that have been launched."""
        return self._get("USED_MEM_CURRENT")

    @property
    def used_high(self) -> int:
        """The maximum of `used` since `reset_high()`."""
        return self._get("USED_MEM_HIGH")

    @property
    def reserved(self) -> int:
        """The number of bytes of memory that the driver holds here, whether in use or kept for later."""
        return self._get("RESERVED_MEM_CURRENT")

    @property
    def reserved_high(self) -> int:
        """The maximum of `reserved` since `reset_high()`."""
        return self._get("RESERVED_MEM_HIGH")

    def reset_high(self) -> None:
        """Reset `used_high` and `reserved_high` to the current values."""
        self._set("USED_MEM_HIGH", 0)
        self._set("RESERVED_MEM_HIGH", 0)


@hinted
class MemoryPool(MemoryCounts, Handle):
    """A pool of memory (cuMemPoolCreate), with its sizes in bytes (cuMemPoolGetAttribute).

    - `device`: the device that the memory belongs to, by default the current one.
    - `kind`: "device" for the arrays of `empty(..., pool=pool)`, "pinned" for those of `pinned_empty(..., pool=pool)`,
      or "managed" for those of `managed_empty(..., pool=pool)`.
    - `max_size`: the maximum size in bytes, which the driver rounds up; 0 for no limit. Managed memory has no limit.
    - `release_threshold`: the number of unused bytes that the pool keeps at a synchronisation.
    - `interprocess`: other processes can open the pool and its arrays with handles from `ipc.handle`. This is for
      device memory only, and needs the capability `ipc`.

    Devices with peer access to `device` can access its memory, and all devices can access pinned and managed memory.
    Arrays from the pool remain valid when the pool is closed. Closing does not wait: the pool is destroyed at once if
    no free is in flight, and otherwise at a synchronisation after its last array has been closed (cuMemPoolDestroy).
    """

    __slots__ = ("_device", "_interprocess", "_kind", "_max_size", "_memory", "_queue")

    _memory: PoolMemory | None
    # The stream in which a pool of host memory allocates. Nothing else runs in it, so waiting for it never takes long.
    _queue: Stream | None

    def __init__(
        self,
        device: Device | None = None,
        *,
        kind: PoolKind = "device",
        max_size: int = 0,
        release_threshold: int = KEEP_EVERYTHING,
        interprocess: bool = False,
    ) -> None:
        self._value = None
        self._owned = True
        self._queue = None
        self._device = _device_of("MemoryPool", device)
        arguments.choice("MemoryPool", "kind", kind, get_args(PoolKind))
        self._kind: PoolKind = kind
        self._max_size = arguments.integer("MemoryPool", "max_size", max_size, 0, KEEP_EVERYTHING)
        threshold = arguments.integer("MemoryPool", "release_threshold", release_threshold, 0, KEEP_EVERYTHING)
        if self._max_size and kind == "managed":
            raise arguments.wrong_value("MemoryPool", "max_size", "0 with kind='managed'", max_size)
        self._interprocess = arguments.flag("MemoryPool", "interprocess", interprocess)
        shared_identity = None
        if self._interprocess:
            if kind != "device":
                raise arguments.wrong_value("MemoryPool", "interprocess", f"False with kind={kind!r}", interprocess)
            require_ipc("MemoryPool")
            import uuid  # imported late: it takes longer to import than most modules of this package

            shared_identity = uuid.uuid4()
        properties = self._properties()
        with activated(self._device):
            status, value = with_room(lambda: raw.cuMemPoolCreate(properties))
            if status:
                raise failure(status, "cuMemPoolCreate")
            self._value = int(value)
        self._memory = PoolMemory(self._value, self._device, shared_identity)
        try:
            self.release_threshold = threshold
            if kind == "device":
                self._device._adopt_pool(self)
            else:
                self._open_to_all()
        except BaseException:
            self.close()
            raise

    def _properties(self) -> Any:
        """Return the properties with which the driver creates the pool."""
        properties = enums.CUmemPoolProps()
        kinds, places = enums.CUmemAllocationType, enums.CUmemLocationType
        managed = self._kind == "managed"
        properties.allocType = kinds.CU_MEM_ALLOCATION_TYPE_MANAGED if managed else kinds.CU_MEM_ALLOCATION_TYPE_PINNED
        handles = enums.CUmemAllocationHandleType
        properties.handleTypes = (
            handles.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR if self._interprocess else handles.CU_MEM_HANDLE_TYPE_NONE
        )
        if self._kind == "pinned":
            properties.location.type = places.CU_MEM_LOCATION_TYPE_HOST
        else:
            properties.location.type = places.CU_MEM_LOCATION_TYPE_DEVICE
            properties.location.id = self._device.ordinal
        properties.maxSize = self._max_size
        return properties

    def _open_to_all(self) -> None:
        """Create the stream of a pool of host memory, and give all devices access to pinned memory."""
        with activated(self._device):
            self._queue = Stream(non_blocking=True)
        if self._kind == "pinned":
            for device in devices():
                device._set_pool_access([self.handle], enums.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE)

    @classmethod
    def borrow(cls, handle: int, device: Device) -> MemoryPool:
        """Wrap a pool of device memory that is owned elsewhere (a CUmemoryPool as an int); it is not destroyed here."""
        value = arguments.integer("MemoryPool.borrow", "handle", handle, 1, 2**64 - 1)
        arguments.instance("MemoryPool.borrow", "device", device, Device)
        pool = cls.__new__(cls)
        pool._value = value
        pool._owned = False
        pool._device = device
        pool._kind = "device"
        pool._queue = None
        pool._max_size = 0
        pool._interprocess = False
        pool._memory = None
        return pool

    @classmethod
    def current(cls, device: Device | None = None) -> MemoryPool:
        """Return the pool from which a device's arrays are allocated by default (cuDeviceGetMemPool).

        `device` is the current device by default.
        """
        owner = _device_of("MemoryPool.current", device)
        handle, chosen = int(api.cuDeviceGetMemPool(owner._device)), owner._pool
        return chosen if chosen is not None and chosen._value == handle else cls.borrow(handle, owner)

    @classmethod
    def default(cls, device: Device | None = None) -> MemoryPool:
        """Return the default pool of a device, by default the current device (cuDeviceGetDefaultMemPool)."""
        owner = _device_of("MemoryPool.default", device)
        return cls.borrow(int(api.cuDeviceGetDefaultMemPool(owner._device)), owner)

    def make_current(self) -> None:
        """Allocate the device's later arrays from this pool by default (cuDeviceSetMemPool).

        Closing the pool makes the device's default pool current again, unless this pool is borrowed. Raises ValueError
        for a pool of pinned or managed memory.
        """
        if self._kind != "device":
            raise ValueError(f"MemoryPool.make_current: only a pool of device memory can be current, not {self}")
        handle, device = self.handle, self._device._device
        default = api.cuDeviceGetDefaultMemPool(device)
        # `_pool` keeps the pool alive, because a pool without references is destroyed. An array that another thread
        # allocates in the meantime keeps the pools that `_pool` refers to before and after its allocation. The pool of
        # its memory is always one of them, because a pool is the driver's current pool only while `_pool` refers to it.
        api.cuDeviceSetMemPool(device, default)
        self._device._pool = None if handle == int(default) else self
        if handle != int(default):
            api.cuDeviceSetMemPool(device, handle)

    @property
    def device(self) -> Device:
        """The device that the memory belongs to."""
        return self._device

    @property
    def kind(self) -> PoolKind:
        """The kind of memory: "device", "pinned" or "managed"."""
        return self._kind

    @property
    def interprocess(self) -> bool:
        """Whether other processes can open the pool with a handle from `ipc.handle`."""
        return self._interprocess

    @property
    def max_size(self) -> int:
        """The maximum size in bytes, as requested; 0 for no limit."""
        return self._max_size

    @property
    def release_threshold(self) -> int:
        """The number of unused bytes that the pool keeps at a synchronisation instead of returning them."""
        return self._get("RELEASE_THRESHOLD")

    @release_threshold.setter
    def release_threshold(self, nbytes: int) -> None:
        most = KEEP_EVERYTHING
        self._set("RELEASE_THRESHOLD", arguments.integer("MemoryPool", "release_threshold", nbytes, 0, most))

    def trim(self, keep: int = 0) -> None:
        """Return unused memory to the device, as long as at least `keep` bytes remain reserved (cuMemPoolTrimTo)."""
        size = arguments.integer("MemoryPool.trim", "keep", keep, 0, KEEP_EVERYTHING)
        with activated(self._device):
            api.cuMemPoolTrimTo(self.handle, size)

    def _get(self, name: str) -> int:
        with activated(self._device):
            return int(api.cuMemPoolGetAttribute(self.handle, _attribute(name)))

    def _set(self, name: str, value: int) -> None:
        with activated(self._device):
            api.cuMemPoolSetAttribute(self.handle, _attribute(name), enums.cuuint64_t(value))

    def _release(self, value: Any) -> None:
        if self._queue is not None:
            self._queue.close()
        self._device._leave_pool(value)
        self._memory = None

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{self.used:,} of {self.reserved:,} bytes in use"
        where = f"device {self._device.ordinal}" if self._kind == "device" else f"{self._kind} memory"
        return f"<MemoryPool of {where}, {state}>"


def _device_of(call: str, device: Device | None) -> Device:
    """Return a call's argument `device`, by default the current device."""
    if device is None:
        return current_device()
    if isinstance(device, int):
        raise arguments.wrong_type(call, "device", "a Device or None", device, "write MemoryPool(max_size=...)")
    return arguments.instance(call, "device", device, Device, "a Device or None")


def pool_of_kind(call: str, pool: MemoryPool, kind: PoolKind) -> MemoryPool:
    """Return a call's argument `pool`; TypeError or ValueError unless it is an open pool of the kind that it needs."""
    arguments.opened(call, "pool", pool, MemoryPool, "a MemoryPool or None")
    if pool.kind != kind:
        remedy = f"make it with MemoryPool(kind={kind!r})"
        raise arguments.unusable(call, "pool", f"hold {kind} memory", f"{pool.kind} memory", remedy)
    return pool


def allocate_for_host(pool: MemoryPool, nbytes: int) -> tuple[Stream, int]:
    """Return the pool's stream, and the address of memory from a pool of host memory (cuMemAllocFromPoolAsync).

    The host may use it at once: memory returns to the pool when the device is idle, and nothing else runs in the pool's
    stream. Raises OutOfMemoryError with the sizes.
    """
    call, what = "cuMemAllocFromPoolAsync", f"{pool.kind} memory"
    queue, source = pool._queue, pool.handle
    assert queue is not None
    if nbytes > MOST_BYTES:
        raise too_many_bytes(call, nbytes, what)
    with activated(pool.device):
        status, address = with_room(lambda: raw.cuMemAllocFromPoolAsync(nbytes, source, queue.native))
        if status:
            raw.cuMemPoolTrimTo(source, 0)
            raise allocation_error(status, call, nbytes, what, pool)
        try:
            queue.synchronize()
        except BaseException:
            raw.cuMemFreeAsync(address, queue.native)
            raise
    return queue, int(address)
