"""Device properties: attributes under readable names."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from .. import errors
from ..base import arguments
from ..driver import enums
from ..driver.calls import api, raw
from ..driver.unwrap import failure
from ..hints import hinted

if TYPE_CHECKING:
    import uuid

_PREFIX = "CU_DEVICE_ATTRIBUTE_"


class MemoryInfo(NamedTuple):
    """The free and total memory of a device, in bytes."""

    free: int
    total: int

    @property
    def used(self) -> int:
        """The number of bytes in use by all processes."""
        return self.total - self.free


@hinted
@dataclass(frozen=True)
class DeviceProperties:
    """A device's attributes. Sizes are in bytes, clock rates in kHz, bus widths in bits.

    `single_to_double_ratio` is the ratio of single-precision to double-precision arithmetic throughput.
    """

    name: str
    uuid: uuid.UUID
    pci_bus_id: str
    compute_capability: tuple[int, int]
    total_memory: int
    sm_count: int
    warp_size: int
    clock_rate: int
    max_threads_per_block: int
    max_block_dim: tuple[int, int, int]
    max_grid_dim: tuple[int, int, int]
    max_threads_per_sm: int
    max_blocks_per_sm: int
    registers_per_block: int
    registers_per_sm: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_sm: int
    reserved_shared_memory_per_block: int
    constant_memory: int
    l2_cache_size: int
    max_persisting_l2_cache_size: int
    max_access_policy_window_size: int
    memory_clock_rate: int
    memory_bus_width: int
    max_pitch: int
    texture_alignment: int
    texture_pitch_alignment: int
    async_engine_count: int
    concurrent_kernels: bool
    cooperative_launch: bool
    unified_addressing: bool
    managed_memory: bool
    concurrent_managed_access: bool
    pageable_memory_access: bool
    can_map_host_memory: bool
    host_register_supported: bool
    memory_pools_supported: bool
    stream_priorities_supported: bool
    compute_preemption_supported: bool
    integrated: bool
    ecc_enabled: bool
    single_to_double_ratio: int

    @property
    def max_warps_per_sm(self) -> int:
        """The maximum number of resident warps per multiprocessor."""
        return self.max_threads_per_sm // self.warp_size

    @property
    def memory_bandwidth(self) -> float:
        """The theoretical memory bandwidth in bytes per second: two transfers per memory clock cycle."""
        return 2 * self.memory_clock_rate * 1e3 * self.memory_bus_width / 8


@functools.cache
def read_properties(ordinal: int) -> DeviceProperties:
    """Return all properties of a device; the driver is queried once per process (cuDeviceGetAttribute)."""
    import uuid  # imported late: it takes longer to import than most modules of this package

    device = api.cuDeviceGet(ordinal)
    names: Any = enums.CUdevice_attribute

    def ask(name: str) -> int:
        return int(api.cuDeviceGetAttribute(getattr(names, f"CU_DEVICE_ATTRIBUTE_{name}"), device))

    def ask_xyz(name: str) -> tuple[int, int, int]:
        x, y, z = (ask(f"{name}_{axis}") for axis in "XYZ")
        return x, y, z

    return DeviceProperties(
        name=_text(api.cuDeviceGetName(256, device)),
        uuid=uuid.UUID(bytes=bytes(api.cuDeviceGetUuid(device).bytes)[:16]),
        pci_bus_id=_text(api.cuDeviceGetPCIBusId(32, device)),
        compute_capability=(ask("COMPUTE_CAPABILITY_MAJOR"), ask("COMPUTE_CAPABILITY_MINOR")),
        total_memory=api.cuDeviceTotalMem(device),
        sm_count=ask("MULTIPROCESSOR_COUNT"),
        warp_size=ask("WARP_SIZE"),
        clock_rate=ask("CLOCK_RATE"),
        max_threads_per_block=ask("MAX_THREADS_PER_BLOCK"),
        max_block_dim=ask_xyz("MAX_BLOCK_DIM"),
        max_grid_dim=ask_xyz("MAX_GRID_DIM"),
        max_threads_per_sm=ask("MAX_THREADS_PER_MULTIPROCESSOR"),
        max_blocks_per_sm=ask("MAX_BLOCKS_PER_MULTIPROCESSOR"),
        registers_per_block=ask("MAX_REGISTERS_PER_BLOCK"),
        registers_per_sm=ask("MAX_REGISTERS_PER_MULTIPROCESSOR"),
        shared_memory_per_block=ask("MAX_SHARED_MEMORY_PER_BLOCK"),
        shared_memory_per_block_optin=ask("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        shared_memory_per_sm=ask("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
        reserved_shared_memory_per_block=ask("RESERVED_SHARED_MEMORY_PER_BLOCK"),
        constant_memory=ask("TOTAL_CONSTANT_MEMORY"),
        l2_cache_size=ask("L2_CACHE_SIZE"),
        max_persisting_l2_cache_size=ask("MAX_PERSISTING_L2_CACHE_SIZE"),
        max_access_policy_window_size=ask("MAX_ACCESS_POLICY_WINDOW_SIZE"),
        memory_clock_rate=ask("MEMORY_CLOCK_RATE"),
        memory_bus_width=ask("GLOBAL_MEMORY_BUS_WIDTH"),
        max_pitch=ask("MAX_PITCH"),
        texture_alignment=ask("TEXTURE_ALIGNMENT"),
        texture_pitch_alignment=ask("TEXTURE_PITCH_ALIGNMENT"),
        async_engine_count=ask("ASYNC_ENGINE_COUNT"),
        concurrent_kernels=bool(ask("CONCURRENT_KERNELS")),
        cooperative_launch=bool(ask("COOPERATIVE_LAUNCH")),
        unified_addressing=bool(ask("UNIFIED_ADDRESSING")),
        managed_memory=bool(ask("MANAGED_MEMORY")),
        concurrent_managed_access=bool(ask("CONCURRENT_MANAGED_ACCESS")),
        pageable_memory_access=bool(ask("PAGEABLE_MEMORY_ACCESS")),
        can_map_host_memory=bool(ask("CAN_MAP_HOST_MEMORY")),
        host_register_supported=bool(ask("HOST_REGISTER_SUPPORTED")),
        memory_pools_supported=bool(ask("MEMORY_POOLS_SUPPORTED")),
        stream_priorities_supported=bool(ask("STREAM_PRIORITIES_SUPPORTED")),
        compute_preemption_supported=bool(ask("COMPUTE_PREEMPTION_SUPPORTED")),
        integrated=bool(ask("INTEGRATED")),
        ecc_enabled=bool(ask("ECC_ENABLED")),
        single_to_double_ratio=ask("SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO"),
    )


@functools.cache
def _attributes() -> dict[str, Any]:
    """Return the enumerators of the attributes, keyed by their names in lower case and without the prefix.

    If an attribute has several names, only the first is included.
    """
    found: dict[int, tuple[str, Any]] = {}
    kinds: Any = enums.CUdevice_attribute
    for name, member in kinds.__members__.items():
        found.setdefault(int(member), (name.removeprefix(_PREFIX).lower(), member))
    # The last enumerator, MAX, is only their number.
    return {name: member for name, member in found.values() if name != "max"}


def read_attribute(ordinal: int, name: str) -> int:
    """Return an attribute of a device by its name; see `Device.attribute`."""
    short = arguments.text("Device.attribute", "name", name).upper().removeprefix(_PREFIX)
    kinds: Any = enums.CUdevice_attribute
    member = kinds.__members__.get(_PREFIX + short)
    if member is None or short == "MAX":
        import difflib  # only a wrong name needs it

        near = difflib.get_close_matches(short.lower(), _attributes(), 3)
        wanted = "the name of a device attribute (CUdevice_attribute)"
        remedy = f"did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise arguments.wrong_value("Device.attribute", "name", wanted, name, remedy)
    value = _ask(ordinal, member)
    if value is None:
        raise errors.NotSupportedError(
            f"Device.attribute: this driver is too old to support the attribute {name!r}",
            status=enums.CUresult.CUDA_ERROR_INVALID_VALUE,
            call="cuDeviceGetAttribute",
        )
    return value


class _Attributes(dict[str, int]):
    """The attributes of a device. The error for an unknown name suggests a similar one, such as "warp_size"."""

    def __missing__(self, name: object) -> NoReturn:
        near = arguments.nearest(str(name).lower(), self)
        raise KeyError(f"no device attribute {name!r}{f'; did you mean {near!r}?' if near else ''}")


def read_attributes(ordinal: int) -> dict[str, int]:
    """Return all attributes of a device that the driver knows; see `Device.attributes`."""
    found = {name: _ask(ordinal, member) for name, member in _attributes().items()}
    return _Attributes({name: value for name, value in found.items() if value is not None})


def _ask(ordinal: int, member: Any) -> int | None:
    """Return an attribute of a device, or None if the driver does not know the attribute."""
    status, value = raw.cuDeviceGetAttribute(member, api.cuDeviceGet(ordinal))
    if status == enums.CUresult.CUDA_ERROR_INVALID_VALUE:
        return None
    if status:
        raise failure(status, "cuDeviceGetAttribute")
    return int(value)


def _text(value: bytes) -> str:
    return value.split(b"\0", 1)[0].decode()
