"""Devices and the primary context that each thread has current."""

from __future__ import annotations

import os
import threading
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from . import arguments, debugging, errors
from ._driver import api
from .limits import Limits
from .properties import DeviceProperties, MemoryInfo, read_properties

if TYPE_CHECKING:
    from .pools import MemoryPool

__all__ = ["Device", "activated", "current_device", "devices", "driver_version", "is_current"]


class Device:
    """One CUDA device; `Device(0) is Device(0)`.

    `with device:` makes its primary context current inside and restores the caller's after. Work done
    outside any such block goes to the thread's current device, at first device 0, as in the CUDA
    runtime. Raises ValueError for an ordinal that no device has, TypeError for what is not an int.
    """

    _all: ClassVar[dict[int, Device]] = {}
    _lock: ClassVar[threading.RLock] = threading.RLock()

    ordinal: int
    _device: Any
    _context: Any
    _peers: set[Device]
    _pools: weakref.WeakSet[MemoryPool]
    _pool: MemoryPool | None

    def __new__(cls, ordinal: int = 0) -> Device:
        """Return the one object of this ordinal."""
        ordinal = arguments.integer("Device", "ordinal", ordinal)
        with cls._lock:
            device = cls._all.get(ordinal)
            if device is None:
                arguments.integer("Device", "ordinal", ordinal, 0, api.cuDeviceGetCount() - 1)
                device = super().__new__(cls)
                device.ordinal = ordinal
                device._device = api.cuDeviceGet(ordinal)
                device._context = None
                device._peers = set()
                device._pools = weakref.WeakSet()
                device._pool = None
                cls._all[ordinal] = device
        return device

    def __repr__(self) -> str:
        return f"<Device {self.ordinal}: {self.name}>"

    def __reduce__(self) -> tuple[type[Device], tuple[int]]:
        return Device, (self.ordinal,)

    @property
    def handle(self) -> int:
        """The driver's CUdevice as an int (cuDeviceGet)."""
        return int(self._device)

    @property
    def context(self) -> Any:
        """The primary context (CUcontext), retained at first use and kept (cuDevicePrimaryCtxRetain)."""
        if self._context is None:
            with self._lock:
                if self._context is None:
                    context = api.cuDevicePrimaryCtxRetain(self._device)
                    try:
                        self._keep_freed_memory()
                    except BaseException:
                        api.cuDevicePrimaryCtxRelease(self._device)
                        raise
                    self._context = context
                    alone = all(other is self or other._context is None for other in self._all.values())
                    process.sole = self if alone else None
        return self._context

    def _keep_freed_memory(self) -> None:
        # By default a pool returns its memory to the system at every synchronisation, and the next
        # allocation pays for mapping it again.
        from cuda.bindings import driver as enums

        threshold = enums.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        pool = api.cuDeviceGetDefaultMemPool(self._device)
        api.cuMemPoolSetAttribute(pool, threshold, enums.cuuint64_t(2**64 - 1))

    # -- what it is ----------------------------------------------------------------------------

    @property
    def properties(self) -> DeviceProperties:
        """Everything that does not change, as one frozen record (cuDeviceGetAttribute)."""
        return read_properties(self.ordinal)

    @property
    def name(self) -> str:
        """The device's name (cuDeviceGetName)."""
        return self.properties.name

    @property
    def compute_capability(self) -> tuple[int, int]:
        """The compute capability, as (major, minor)."""
        return self.properties.compute_capability

    @property
    def arch(self) -> str:
        """The real architecture that NVRTC compiles for, such as "sm_90"."""
        major, minor = self.compute_capability
        return f"sm_{major}{minor}"

    @property
    def sm_count(self) -> int:
        """The number of streaming multiprocessors."""
        return self.properties.sm_count

    @property
    def memory_info(self) -> MemoryInfo:
        """Free and total device memory in bytes (cuMemGetInfo)."""
        with activated(self):
            return MemoryInfo(*api.cuMemGetInfo())

    @property
    def limits(self) -> Limits:
        """The context's limits, to read and to set: stack, printf buffer, malloc heap and so on."""
        return Limits(self)

    @property
    def memory_pool(self) -> MemoryPool:
        """The pool that arrays are allocated from unless they name another (cuDeviceGetMemPool).

        Set it to a MemoryPool of this device, or to None for the pool that the device has from the start
        (cuDeviceSetMemPool).
        """
        from .pools import MemoryPool

        handle = int(api.cuDeviceGetMemPool(self._device))
        own = self._pool
        if own is not None and own._value == handle:
            return own
        return MemoryPool.borrow(handle, self)

    @memory_pool.setter
    def memory_pool(self, pool: MemoryPool | None) -> None:
        from .pools import MemoryPool

        if pool is None:
            api.cuDeviceSetMemPool(self._device, api.cuDeviceGetDefaultMemPool(self._device))
        else:
            arguments.opened("Device", "memory_pool", pool, MemoryPool, "a MemoryPool or None")
            if pool.device is not self:
                raise ValueError(
                    f"Device: argument 'memory_pool' is of device {pool.device.ordinal}, not of device {self.ordinal}"
                )
            api.cuDeviceSetMemPool(self._device, pool.handle)
        # Kept, since a pool that is dropped is destroyed.
        self._pool = pool

    # -- what it does --------------------------------------------------------------------------

    def reset_persisting_l2(self) -> None:
        """Make all lines of L2 that persist ordinary again (cuCtxResetPersistingL2Cache).

        How much of L2 is set aside for them is `limits.persisting_l2_cache_size`.
        """
        with activated(self):
            api.cuCtxResetPersistingL2Cache()

    def synchronize(self) -> None:
        """Wait for all work on this device; errors of earlier launches surface here (cuCtxSynchronize)."""
        with activated(self):
            api.cuCtxSynchronize()
        debugging.note_synchronized(self.ordinal, None)

    def set_current(self) -> None:
        """Make this device the calling thread's current one from here on (cuCtxSetCurrent)."""
        api.cuCtxSetCurrent(self.context)
        _thread.device = self

    def can_access_peer(self, other: Device) -> bool:
        """Tell whether kernels here could read `other`'s memory (cuDeviceCanAccessPeer)."""
        arguments.instance("Device.can_access_peer", "other", other, Device)
        return bool(api.cuDeviceCanAccessPeer(self._device, other._device))

    def enable_peer(self, other: Device) -> None:
        """Let work on this device access `other`'s memory: one direction (cuCtxEnablePeerAccess).

        Raises PeerAccessError when the devices cannot, or when it is enabled already. Also opens
        `other`'s memory pools to this device, because stream-ordered memory has its own permission.
        """
        from cuda.bindings import driver as enums

        arguments.instance("Device.enable_peer", "other", other, Device)
        if other is self:
            raise ValueError(
                "Device.enable_peer: argument 'other' is the device itself, which always has access to its own memory"
            )
        with activated(self):
            api.cuCtxEnablePeerAccess(other.context, 0)
            try:
                self._set_pool_access(other._pool_handles(), enums.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            except BaseException:
                api.cuCtxDisablePeerAccess(other.context)
                raise
        self._peers.add(other)

    def peer_enabled(self, other: Device) -> bool:
        """Tell whether `enable_peer(other)` is in force."""
        return arguments.instance("Device.peer_enabled", "other", other, Device) in self._peers

    def disable_peer(self, other: Device) -> None:
        """Take back what `enable_peer` gave (cuCtxDisablePeerAccess)."""
        from cuda.bindings import driver as enums

        arguments.instance("Device.disable_peer", "other", other, Device)
        with activated(self):
            api.cuCtxDisablePeerAccess(other.context)
        self._set_pool_access(other._pool_handles(), enums.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE)
        self._peers.discard(other)

    def _set_pool_access(self, pools: list[Any], flags: Any) -> None:
        """Say what access this device has to pools of another one's memory."""
        from cuda.bindings import driver as enums

        access = enums.CUmemAccessDesc()
        access.location.type = enums.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        access.location.id = self.ordinal
        access.flags = flags
        for pool in pools:
            api.cuMemPoolSetAccess(pool, [access], 1)

    def _pool_handles(self) -> list[Any]:
        """List the device's own pool and those that were made of its memory."""
        made = [pool.handle for pool in tuple(self._pools) if not pool.closed]
        return [api.cuDeviceGetDefaultMemPool(self._device), *made]

    def _leave_pool(self, handle: int) -> None:
        """Allocate from this device's own pool again if the one that is being closed is in use."""
        if self._pool is not None and int(api.cuDeviceGetMemPool(self._device)) == handle:
            api.cuDeviceSetMemPool(self._device, api.cuDeviceGetDefaultMemPool(self._device))
            self._pool = None

    def _adopt_pool(self, pool: MemoryPool) -> None:
        """Open a new pool of this device's memory to the devices that have peer access."""
        from cuda.bindings import driver as enums

        for other in tuple(self._all.values()):
            if other.peer_enabled(self):
                other._set_pool_access([pool.handle], enums.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        self._pools.add(pool)

    def __enter__(self) -> Self:
        api.cuCtxPushCurrent(self.context)
        _thread.stack.append(_thread.device)
        _thread.device = self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not _thread.stack:
            raise ValueError(f"device {self.ordinal} was not entered by this thread: write `with device:`")
        _thread.device = _thread.stack.pop()
        api.cuCtxPopCurrent()


class _Process:
    """What holds in all threads."""

    def __init__(self) -> None:
        # The device, as long as the process has used no other through this package. A thread then has this one current,
        # or none, or another library's, of both of which the driver's call tells in the end: to ask here for a thread's
        # own device costs several times as much.
        self.sole: Device | None = None


process = _Process()


class _Thread(threading.local):
    """What this thread has current; None until its first CUDA work."""

    def __init__(self) -> None:
        self.device: Device | None = None
        self.stack: list[Device | None] = []


_thread = _Thread()


def _after_fork() -> None:
    # Nothing that was current may be used in the child, and every call that finds no device asks why.
    process.sole = None
    _thread.device = None
    _thread.stack[:] = [None] * len(_thread.stack)
    debugging.state.last = None


os.register_at_fork(after_in_child=_after_fork)


def current_device() -> Device:
    """Return the calling thread's device, making one current at the thread's first CUDA work.

    A context that another library made current is taken over if it is its device's primary context;
    any other raises InvalidContextError. With none current, device 0 becomes current.
    """
    device = _thread.device
    if device is None:
        device = _adopt()
        _thread.device = device
    return device


def _adopt() -> Device:
    foreign = api.cuCtxGetCurrent()
    if not int(foreign):
        device = Device(0)
        api.cuCtxSetCurrent(device.context)
        return device
    device = Device(int(api.cuCtxGetDevice()))
    if int(device.context) != int(foreign):
        raise errors.InvalidContextError(
            f"this thread's current context is not the primary context of device {device.ordinal}; "
            "enter `with cuda.Device(n):` so that both APIs meet in the primary context"
        )
    return device


def is_current(device: Device | None) -> bool:
    """Tell whether a device (None: any) is the calling thread's current one, without making it so."""
    here = _thread.device
    return here is not None and (device is None or here is device)


class activated:  # noqa: N801  # used as a context manager, as contextlib names them
    """Have a device current inside, at no cost where it already is."""

    __slots__ = ("_device", "_entered")

    def __init__(self, device: Device) -> None:
        self._device = device
        self._entered = False

    def __enter__(self) -> None:
        if _thread.device is not self._device:
            self._device.__enter__()
            self._entered = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._entered:
            self._device.__exit__(kind, value, traceback)


def devices() -> tuple[Device, ...]:
    """List this machine's devices in the driver's order (cuDeviceGetCount)."""
    return tuple(Device(ordinal) for ordinal in range(api.cuDeviceGetCount()))


def driver_version() -> tuple[int, int]:
    """Return the CUDA version that the driver supports, as (major, minor) (cuDriverGetVersion)."""
    version = api.cuDriverGetVersion()
    return version // 1000, version % 1000 // 10
