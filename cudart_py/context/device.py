"""Devices, and the primary context that is current in each thread."""

from __future__ import annotations

import functools
import os
import re
import threading
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from .. import errors
from ..base import arguments
from ..driver import enums
from ..driver.calls import api, raw
from ..driver.launch_log import note_synchronized
from ..driver.unwrap import failure
from ..hints import hinted
from ..host.failures import host_failures
from . import lifetimes
from .current import activated, this_thread
from .limits import Limits
from .nvml import DeviceStatus, read_status
from .properties import DeviceProperties, MemoryInfo, read_attribute, read_attributes, read_properties

if TYPE_CHECKING:
    import uuid as uuids

    from ..ipc import OpenedPool
    from ..memory.pools import MemoryPool


# A domain, a bus, a device and a function, in hexadecimal digits. The driver decides which of them may be missing.
_PCI_BUS_ID = re.compile(r"([0-9a-f]{1,8}:)?[0-9a-f]{1,2}:[0-9a-f]{1,2}(\.[0-7])?", re.IGNORECASE | re.ASCII)


@hinted
@functools.total_ordering
class Device:
    """One CUDA device; `Device(0) is Device(0)`. Devices can be keys of dicts, and are ordered by their ordinals.

    `with device:` makes the device's primary context current inside the block and restores the previous context
    afterwards. Work outside any such block goes to the thread's current device, device 0 by default, as in the CUDA
    runtime. Raises ValueError if there is no device with this ordinal, and TypeError if the ordinal is not an int.
    """

    _all: ClassVar[dict[int, Device]] = {}
    _lock: ClassVar[threading.RLock] = threading.RLock()

    ordinal: int
    """The device's number, from 0."""
    _device: Any
    _context: Any
    _peers: set[Device]
    _pools: weakref.WeakSet[MemoryPool | OpenedPool]
    _pool: MemoryPool | None

    def __new__(cls, ordinal: int = 0) -> Device:
        """Return the one object that represents the device."""
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

    @classmethod
    def from_pci_bus_id(cls, pci_bus_id: str) -> Device:
        """Return the device at a PCI address, such as "0000:01:00.0" or "01:00.0" (cuDeviceGetByPCIBusId).

        nvidia-smi prints the address as `pci.bus_id`. Raises ValueError, with the addresses of this machine's devices,
        if none of them has this address.
        """
        text = arguments.text("Device.from_pci_bus_id", "pci_bus_id", pci_bus_id)
        status = enums.CUresult.CUDA_ERROR_INVALID_VALUE
        if _PCI_BUS_ID.fullmatch(text):
            status, found = raw.cuDeviceGetByPCIBusId(text.encode())
            if not status:
                return cls(int(found))
        if status not in (enums.CUresult.CUDA_ERROR_INVALID_VALUE, enums.CUresult.CUDA_ERROR_INVALID_DEVICE):
            raise failure(status, "cuDeviceGetByPCIBusId")
        known = ", ".join(device.properties.pci_bus_id for device in devices())
        wanted = "the PCI address of a device"
        raise arguments.wrong_value("Device.from_pci_bus_id", "pci_bus_id", wanted, pci_bus_id, f"there is {known}")

    @classmethod
    def from_uuid(cls, uuid: str | uuids.UUID) -> Device:
        """Return the device with a UUID, such as "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6" (cuDeviceGetUuid).

        The text may have the prefix that nvidia-smi prints, `GPU-` or `MIG-`. Raises ValueError, with the UUIDs of this
        machine's devices, if none of them has this UUID.
        """
        import uuid as uuids  # imported late, as by `read_properties`

        arguments.instance("Device.from_uuid", "uuid", uuid, (str, uuids.UUID), "a UUID or its text")
        text = str(uuid).removeprefix("GPU-").removeprefix("MIG-").lower()
        for device in devices():
            if text == str(device.properties.uuid):
                return device
        known = ", ".join(str(device.properties.uuid) for device in devices())
        raise arguments.wrong_value("Device.from_uuid", "uuid", "the UUID of a device", uuid, f"there is {known}")

    def __lt__(self, other: object) -> bool:
        return self.ordinal < other.ordinal if isinstance(other, Device) else NotImplemented

    def __repr__(self) -> str:
        return f"<Device {self.ordinal}: {self.name}>"

    def _repr_html_(self) -> str:
        known = self.properties
        from ..pages.tables import facts  # imported late: only notebooks need it

        return facts(
            {
                f"device {self.ordinal}": known.name,
                "compute capability": ".".join(map(str, known.compute_capability)),
                "multiprocessors": str(known.sm_count),
                "memory": f"{known.total_memory / 2**30:.1f} GiB",
            }
        )

    def __reduce__(self) -> tuple[type[Device], tuple[int]]:
        return Device, (self.ordinal,)

    @property
    def handle(self) -> int:
        """The driver's CUdevice as an int (cuDeviceGet)."""
        return int(self._device)

    @property
    def context(self) -> Any:
        """The primary context (CUcontext), retained on first use and never released (cuDevicePrimaryCtxRetain)."""
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
        return self._context

    def _keep_freed_memory(self) -> None:
        # By default a pool returns its memory to the system at every synchronisation, and the next
        # allocation pays for mapping it again.
        threshold = enums.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        pool = api.cuDeviceGetDefaultMemPool(self._device)
        api.cuMemPoolSetAttribute(pool, threshold, enums.cuuint64_t(2**64 - 1))

    @classmethod
    def _in_use(cls) -> tuple[Device, ...]:
        """Return the devices whose contexts this process has used."""
        return tuple(device for device in tuple(cls._all.values()) if device._context is not None)

    def _begin_anew(self) -> None:
        """Forget the state that a reset has taken: pools and peer access; set up the default pool again."""
        self._peers.clear()
        self._pools = weakref.WeakSet()
        self._pool = None
        self._keep_freed_memory()

    # -- attributes ----------------------------------------------------------------------------

    @property
    def properties(self) -> DeviceProperties:
        """All properties that never change, as one frozen record (cuDeviceGetAttribute)."""
        return read_properties(self.ordinal)

    def attribute(self, name: str) -> int:
        """Return an attribute by the name of its enumerator, such as "l2_cache_size" (cuDeviceGetAttribute).

        The name may be in upper or lower case, with or without the prefix `CU_DEVICE_ATTRIBUTE_`. Values have the
        driver's units, and booleans are 1 or 0. Raises ValueError, suggesting similar names, if no attribute has this
        name, and NotSupportedError for an attribute that is newer than the driver.
        """
        return read_attribute(self.ordinal, name)

    @property
    def attributes(self) -> dict[str, int]:
        """All attributes that the driver knows, keyed by the names that `attribute` accepts (cuDeviceGetAttribute)."""
        return read_attributes(self.ordinal)

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
        """The architecture that NVRTC generates machine code for, such as "sm_90"."""
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
    def status(self) -> DeviceStatus:
        """The device's current temperature, power, clock rates, utilization, memory and processes.

        Reading takes about 0.1 ms, and creates no context on the device (NVML). The simulator reports only its memory
        and this process. Raises NotSupportedError if NVML is missing or does not report on the device.
        """
        return read_status(self)

    @property
    def stream_priorities(self) -> tuple[int, int]:
        """The least and the greatest priority of a stream (cuCtxGetStreamPriorityRange).

        A lower number is a higher priority, so the greatest priority is the lowest number.
        """
        with activated(self):
            least, greatest = api.cuCtxGetStreamPriorityRange()
        return int(least), int(greatest)

    @property
    def limits(self) -> Limits:
        """The context's limits, such as the stack size and the size of the printf buffer; they can be read and set."""
        return Limits(self)

    # -- operations ----------------------------------------------------------------------------

    def reset_persisting_l2(self) -> None:
        """Reset all persisting lines in the L2 cache to normal (cuCtxResetPersistingL2Cache).

        `limits.persisting_l2_cache_size` is the size of the part of L2 that is set aside for persisting accesses.
        """
        with activated(self):
            api.cuCtxResetPersistingL2Cache()

    def synchronize(self) -> None:
        """Wait for all work on this device, and raise the errors of earlier launches and host functions.

        The driver's function is cuCtxSynchronize.
        """
        with activated(self):
            api.cuCtxSynchronize()
        note_synchronized(self.ordinal, None)
        lifetimes.close_waiting()
        host_failures.deliver(self.ordinal)

    def set_current(self) -> None:
        """Make this the calling thread's current device (cuCtxSetCurrent)."""
        api.cuCtxSetCurrent(self.context)
        this_thread.device = self

    def can_access_peer(self, other: Device) -> bool:
        """Return whether this device supports access to the memory of `other` (cuDeviceCanAccessPeer)."""
        arguments.instance("Device.can_access_peer", "other", other, Device)
        return bool(api.cuDeviceCanAccessPeer(self._device, other._device))

    def enable_peer(self, other: Device) -> None:
        """Let work on this device access the memory of `other`, in this direction only (cuCtxEnablePeerAccess).

        Also gives this device access to the memory pools of `other`, because stream-ordered memory has separate
        permissions. Raises PeerAccessError if the devices do not support peer access, or if it is already enabled.
        """
        arguments.instance("Device.enable_peer", "other", other, Device)
        if other is self:
            raise ValueError(
                "Device.enable_peer: argument 'other' must be another device; a device always has access to its own "
                "memory"
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
        """Return whether `enable_peer(other)` is in effect."""
        return arguments.instance("Device.peer_enabled", "other", other, Device) in self._peers

    def disable_peer(self, other: Device) -> None:
        """Revoke the access that `enable_peer` gave (cuCtxDisablePeerAccess)."""
        arguments.instance("Device.disable_peer", "other", other, Device)
        with activated(self):
            api.cuCtxDisablePeerAccess(other.context)
        self._set_pool_access(other._pool_handles(), enums.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE)
        self._peers.discard(other)

    def _set_pool_access(self, pools: list[Any], flags: Any) -> None:
        """Set this device's access to memory pools of another device (cuMemPoolSetAccess)."""
        access = enums.CUmemAccessDesc()
        access.location.type = enums.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        access.location.id = self.ordinal
        access.flags = flags
        for pool in pools:
            api.cuMemPoolSetAccess(pool, [access], 1)

    def _pool_handles(self) -> list[Any]:
        """Return the handles of the device's default pool and of all open pools that were created on the device."""
        made = [pool.handle for pool in tuple(self._pools) if not pool.closed]
        return [api.cuDeviceGetDefaultMemPool(self._device), *made]

    def _leave_pool(self, handle: int) -> None:
        """Make the device's default pool current again if the pool that is being closed is current."""
        if self._pool is not None and int(api.cuDeviceGetMemPool(self._device)) == handle:
            api.cuDeviceSetMemPool(self._device, api.cuDeviceGetDefaultMemPool(self._device))
            self._pool = None

    def _adopt_pool(self, pool: MemoryPool | OpenedPool) -> None:
        """Register a new pool of this device, and give access to it to the devices that have peer access."""
        for other in tuple(self._all.values()):
            if other.peer_enabled(self):
                other._set_pool_access([pool.handle], enums.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        self._pools.add(pool)

    def __enter__(self) -> Self:
        context, outer = self.context, this_thread.device
        depth = len(this_thread.stack)
        try:
            api.cuCtxPushCurrent(context)
            this_thread.stack.append(outer)
            this_thread.device = self
        except BaseException:  # including an interrupt, before or after the driver's call
            del this_thread.stack[depth:]
            this_thread.device = outer
            self._leave_for(outer)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not this_thread.stack:
            raise ValueError(f"device {self.ordinal} has not been entered by this thread: write `with device:`")
        outer = this_thread.stack[-1]
        try:
            api.cuCtxPopCurrent()
        except BaseException:  # as above
            self._leave_for(outer)
            raise
        finally:
            del this_thread.stack[-1]
            this_thread.device = outer

    def _leave_for(self, outer: Device | None) -> None:
        """Pop this device's context if it is still current, so that the previous context is current again.

        Does nothing if `outer`, the previous device, is this one: the current context is then the right one.
        """
        if outer is not self and int(api.cuCtxGetCurrent()) == int(self.context):
            api.cuCtxPopCurrent()


def _after_fork() -> None:
    # The child must not use the parent's contexts. Without a current device, every call first goes to the driver's
    # wrapper, which reports the fork.
    this_thread.device = None
    this_thread.stack[:] = [None] * len(this_thread.stack)


if hasattr(os, "register_at_fork"):  # Windows has no fork; the first CUDA call there asks for Linux
    os.register_at_fork(after_in_child=_after_fork)


def current_device() -> Device:
    """Return the calling thread's current device. If the thread has none yet, make one current.

    If another library made a context current, it must be its device's primary context; any other raises
    InvalidContextError. If none is current, device 0 becomes current.
    """
    device = this_thread.device
    if device is None:
        device = _adopt()
        this_thread.device = device
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
            "use `with cuda.Device(n):` so that both APIs use the primary context"
        )
    return device


def devices() -> tuple[Device, ...]:
    """Return the devices of this machine, in the driver's order (cuDeviceGetCount)."""
    return tuple(Device(ordinal) for ordinal in range(api.cuDeviceGetCount()))


def driver_version() -> tuple[int, int]:
    """Return the CUDA version that the driver supports, as (major, minor) (cuDriverGetVersion)."""
    version = api.cuDriverGetVersion()
    return version // 1000, version % 1000 // 10
