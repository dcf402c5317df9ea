"""Occupancy: the number of blocks of a kernel that fit on a multiprocessor at once, calculated without a driver.

The limits of each compute capability come from the CUDA C++ Programming Guide, "Technical Specifications per Compute
Capability". They come from several editions, because each drops the capabilities that the toolkit no longer compiles
for. The allocation units of warps, registers and shared memory come from the toolkit's header `cuda_occupancy.h`. The
CUDA 7.0 edition of the header still has the units of compute capability 1.x and 2.x.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..base import arguments

if TYPE_CHECKING:
    from .properties import DeviceProperties

_WARP_SIZE = 32
_MAX_REGISTERS_PER_THREAD = 255
# The largest value of C's size_t. A smaller number that exceeds a multiprocessor's resources gives 0 blocks, no error.
_MAX_SIZE = 2**64 - 1
_KIB = 1 << 10
# Compute capability 2.x allocates registers to a warp in units of 64, or of 128 for these numbers per thread.
_FERMI_UNIT, _FERMI_DOUBLE = 64, (21, 22, 29, 30, 37, 38, 45, 46)


@dataclass(frozen=True, kw_only=True)
class Multiprocessor:
    """The resources of one multiprocessor and of its blocks. Shared memory is in bytes."""

    threads: int
    blocks: int
    shared_bytes: int
    shared_bytes_per_block: int  # with the opt-in above 48 KiB
    shared_unit: int  # the allocation unit of shared memory per block, in bytes
    reserved_shared_bytes: int = 0  # reserved by the driver per block
    threads_per_block: int = 1024
    registers: int = 65536
    registers_per_block: int = 65536
    registers_per_thread: int = 255
    register_unit: int = 256  # the allocation unit of registers per warp, or per block if there is one part
    parts: int = 4  # each has its share of the registers, and a warp is in one of them
    refusing_parts: int = 4  # a block is refused unless it fits with its warps spread evenly over this many parts
    warp_unit: int = 1  # the allocation unit of warps per block

    @property
    def warps(self) -> int:
        """The maximum number of resident warps."""
        return self.threads // _WARP_SIZE


def _tesla(threads: int, registers: int, register_unit: int) -> Multiprocessor:
    """Return a multiprocessor of compute capability 1.x, which allocates registers per block."""
    return Multiprocessor(
        threads=threads,
        blocks=8,
        shared_bytes=16 * _KIB,
        shared_bytes_per_block=16 * _KIB,
        shared_unit=512,
        threads_per_block=512,
        registers=registers,
        registers_per_block=registers,
        registers_per_thread=124,
        register_unit=register_unit,
        parts=1,
        refusing_parts=1,
        warp_unit=2,
    )


def _fermi() -> Multiprocessor:
    """Return a multiprocessor of compute capability 2.x."""
    return Multiprocessor(
        threads=1536,
        blocks=8,
        shared_bytes=48 * _KIB,
        shared_bytes_per_block=48 * _KIB,
        shared_unit=128,
        registers=32 * _KIB,
        registers_per_block=32 * _KIB,
        registers_per_thread=63,
        register_unit=_FERMI_UNIT,
        parts=2,
        refusing_parts=2,
    )


def _kepler_to_turing(
    blocks: int,
    shared_kib: int,
    *,
    threads: int = 2048,
    block_shared_kib: int = 48,
    registers_kib: int = 64,
    block_registers_kib: int = 64,
    registers_per_thread: int = 255,
    parts: int = 4,
) -> Multiprocessor:
    """Return a multiprocessor of compute capability 3.x to 7.x. The arguments count registers in units of 1024."""
    return Multiprocessor(
        threads=threads,
        blocks=blocks,
        shared_bytes=shared_kib * _KIB,
        shared_bytes_per_block=block_shared_kib * _KIB,
        shared_unit=256,
        registers=registers_kib * _KIB,
        registers_per_block=block_registers_kib * _KIB,
        registers_per_thread=registers_per_thread,
        parts=parts,
    )


def _since_ampere(threads: int, blocks: int, shared_kib: int) -> Multiprocessor:
    """Return a multiprocessor of compute capability 8.0 or later."""
    return Multiprocessor(
        threads=threads,
        blocks=blocks,
        shared_bytes=shared_kib * _KIB,
        shared_bytes_per_block=(shared_kib - 1) * _KIB,
        shared_unit=128,
        reserved_shared_bytes=_KIB,
    )


MULTIPROCESSORS: Mapping[tuple[int, int], Multiprocessor] = {
    (1, 0): _tesla(768, 8 * _KIB, 256),
    (1, 1): _tesla(768, 8 * _KIB, 256),
    (1, 2): _tesla(1024, 16 * _KIB, 512),
    (1, 3): _tesla(1024, 16 * _KIB, 512),
    (2, 0): _fermi(),
    (2, 1): _fermi(),
    (3, 0): _kepler_to_turing(16, 48, registers_per_thread=63),
    (3, 2): _kepler_to_turing(16, 48, block_registers_kib=32),
    (3, 5): _kepler_to_turing(16, 48),
    (3, 7): _kepler_to_turing(16, 112, registers_kib=128),
    (5, 0): _kepler_to_turing(32, 64),
    (5, 2): _kepler_to_turing(32, 96),
    (5, 3): _kepler_to_turing(32, 64, block_registers_kib=32),
    # `refusing_parts` remains 4: a block that cannot run on 6.1, which has four parts, is refused here too.
    (6, 0): _kepler_to_turing(32, 64, parts=2),
    (6, 1): _kepler_to_turing(32, 96),
    (6, 2): _kepler_to_turing(32, 64, block_registers_kib=32),
    (7, 0): _kepler_to_turing(32, 96, block_shared_kib=96),
    (7, 2): _kepler_to_turing(32, 96, block_shared_kib=96),
    (7, 5): _kepler_to_turing(16, 64, block_shared_kib=64, threads=1024),
    (8, 0): _since_ampere(2048, 32, 164),
    (8, 6): _since_ampere(1536, 16, 100),
    (8, 7): _since_ampere(1536, 16, 164),
    (8, 8): _since_ampere(1536, 16, 100),
    (8, 9): _since_ampere(1536, 24, 100),
    (9, 0): _since_ampere(2048, 32, 228),
    (10, 0): _since_ampere(2048, 32, 228),
    (10, 3): _since_ampere(2048, 32, 228),
    (11, 0): _since_ampere(1536, 24, 228),
    (12, 0): _since_ampere(1536, 24, 100),
    (12, 1): _since_ampere(1536, 24, 100),
}
"""The resources of a multiprocessor of each compute capability, keyed by (major, minor)."""


@dataclass(frozen=True)
class Occupancy:
    """The number of blocks and warps of a kernel that a multiprocessor can hold, and the resource that limits it.

    `limiter` is the resource that one more block would exceed: "threads" (the block is too large), "warps", "blocks",
    "registers" or "shared memory". If there are several, it is the first in this order. `limits` maps each resource to
    the number of blocks that this resource alone would allow.
    """

    blocks: int
    warps: int
    max_warps: int
    limiter: str
    limits: Mapping[str, int] = field(hash=False)

    @property
    def fraction(self) -> float:
        """The number of resident warps divided by the maximum, from 0 to 1."""
        return self.warps / self.max_warps


def occupancy(
    compute_capability: tuple[int, int],
    threads_per_block: int,
    registers_per_thread: int = 0,
    shared_bytes_per_block: int = 0,
) -> Occupancy:
    """Calculate how many blocks one multiprocessor can hold at once, without a driver or a device.

    `compute_capability` is (major, minor), at least 1.0. `registers_per_thread` is the number that the compiler
    reports; with 0, registers are not taken into account. `shared_bytes_per_block` is the sum of static and dynamic
    shared memory, in bytes. The calculation assumes the largest shared memory carveout, which a launch gets unless the
    kernel prefers otherwise.

    The result agrees with cuOccupancyMaxActiveBlocksPerMultiprocessor. If a block does not fit at all, the result is 0
    blocks, and `limiter` names the resource that the block exceeds. Raises ValueError for negative numbers, a block
    without threads, more than 255 registers or an unknown compute capability, and TypeError for arguments that are not
    integers.
    """
    call = "occupancy"
    major, minor = arguments.integers(call, "compute_capability", compute_capability, 2)
    multiprocessor = MULTIPROCESSORS.get((major, minor))
    if multiprocessor is None:
        known = ", ".join(map(str, MULTIPROCESSORS))
        raise arguments.wrong_value(call, "compute_capability", f"one of {known}", compute_capability)
    return compute(
        multiprocessor,
        arguments.integer(call, "threads_per_block", threads_per_block, 1, _MAX_SIZE),
        arguments.integer(call, "registers_per_thread", registers_per_thread, 0, _MAX_REGISTERS_PER_THREAD),
        arguments.integer(call, "shared_bytes_per_block", shared_bytes_per_block, 0, _MAX_SIZE),
    )


def multiprocessor_of(properties: DeviceProperties) -> Multiprocessor:
    """Return a device's multiprocessor from the driver's attributes, which also works for devices newer than the table.

    The allocation units are those of compute capability 7.0 and later.
    """
    major, _ = properties.compute_capability
    return Multiprocessor(
        threads=properties.max_threads_per_sm,
        blocks=properties.max_blocks_per_sm,
        shared_bytes=properties.shared_memory_per_sm,
        shared_bytes_per_block=properties.shared_memory_per_block_optin,
        reserved_shared_bytes=properties.reserved_shared_memory_per_block,
        shared_unit=256 if major == 7 else 128,
        registers=properties.registers_per_sm,
        registers_per_block=properties.registers_per_block,
    )


def compute(multiprocessor: Multiprocessor, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """Calculate the occupancy from checked numbers: threads per block, registers per thread, shared bytes per block."""
    warps = _ceil_divide(threads, _WARP_SIZE)
    taken = _round_up(warps, multiprocessor.warp_unit)
    limits = {"warps": multiprocessor.warps // taken, "blocks": multiprocessor.blocks}
    if threads > multiprocessor.threads_per_block:
        limits = {"threads": 0, **limits}
    if registers:
        limits["registers"] = _by_registers(multiprocessor, taken, registers)
    needed = shared_bytes + multiprocessor.reserved_shared_bytes
    if shared_bytes > multiprocessor.shared_bytes_per_block:
        limits["shared memory"] = 0
    elif needed:
        limits["shared memory"] = multiprocessor.shared_bytes // _round_up(needed, multiprocessor.shared_unit)
    limiter = min(limits, key=lambda name: limits[name])
    blocks = limits[limiter]
    return Occupancy(blocks, blocks * warps, multiprocessor.warps, limiter, limits)


def _by_registers(multiprocessor: Multiprocessor, warps: int, registers: int) -> int:
    if registers > multiprocessor.registers_per_thread:
        return 0
    unit, parts = multiprocessor.register_unit, multiprocessor.parts
    if parts == 1:
        return multiprocessor.registers // _round_up(warps * registers * _WARP_SIZE, unit)
    if unit == _FERMI_UNIT and registers in _FERMI_DOUBLE:
        unit *= 2
    of_a_warp = _round_up(registers * _WARP_SIZE, unit)
    if of_a_warp * _round_up(warps, multiprocessor.refusing_parts) > multiprocessor.registers_per_block:
        return 0
    warps_of_a_part = multiprocessor.registers // parts // of_a_warp
    return warps_of_a_part * parts // warps


def _ceil_divide(number: int, by: int) -> int:
    return -(-number // by)


def _round_up(number: int, unit: int) -> int:
    return _ceil_divide(number, unit) * unit
