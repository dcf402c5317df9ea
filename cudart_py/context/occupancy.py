"""Occupancy: how many blocks of a kernel a multiprocessor holds at once, worked out from numbers, without a driver.

The limits of each compute capability are those of the CUDA C++ Programming Guide, "Technical Specifications per
Compute Capability", which the CCCL header `cuda/__device/arch_traits.h` repeats. The units in which registers and
shared memory are handed out are those of the toolkit's header `cuda_occupancy.h`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .. import arguments

if TYPE_CHECKING:
    from .properties import DeviceProperties

__all__ = ["MULTIPROCESSORS", "Multiprocessor", "Occupancy", "compute", "multiprocessor_of", "occupancy"]

_WARP_SIZE = 32
_MAX_THREADS_PER_BLOCK = 1024
_MAX_REGISTERS_PER_THREAD = 255
# The largest value of C's size_t; a smaller number that does not fit a multiprocessor is no error, and gives 0 blocks.
_MAX_SIZE = 2**64 - 1
# A multiprocessor has four parts with a quarter of the registers each; a warp lives in one of them.
_PARTS = 4
_REGISTER_UNIT = 256  # registers are given to a warp in units of so many


@dataclass(frozen=True)
class Multiprocessor:
    """The resources of one multiprocessor. Shared memory is in bytes."""

    threads: int
    blocks: int
    shared_bytes: int
    shared_bytes_per_block: int  # with the opt-in above 48 KiB
    reserved_shared_bytes: int  # taken by the driver for each block
    shared_unit: int  # shared memory is given to a block in units of so many bytes
    registers: int = 65536

    @property
    def warps(self) -> int:
        """The warps that it holds at once."""
        return self.threads // _WARP_SIZE


def _of_generation(threads: int, blocks: int, shared_kib: int) -> Multiprocessor:
    """Return a multiprocessor of compute capability 8.0 or later."""
    return Multiprocessor(threads, blocks, shared_kib << 10, (shared_kib - 1) << 10, 1024, 128)


MULTIPROCESSORS: Mapping[tuple[int, int], Multiprocessor] = {
    (7, 5): Multiprocessor(1024, 16, 64 << 10, 64 << 10, 0, 256),
    (8, 0): _of_generation(2048, 32, 164),
    (8, 6): _of_generation(1536, 16, 100),
    (8, 7): _of_generation(1536, 16, 164),
    (8, 8): _of_generation(1536, 16, 100),
    (8, 9): _of_generation(1536, 24, 100),
    (9, 0): _of_generation(2048, 32, 228),
    (10, 0): _of_generation(2048, 32, 228),
    (10, 3): _of_generation(2048, 32, 228),
    (11, 0): _of_generation(1536, 24, 228),
    (12, 0): _of_generation(1536, 24, 100),
    (12, 1): _of_generation(1536, 24, 100),
}


@dataclass(frozen=True)
class Occupancy:
    """How far a kernel fills a multiprocessor.

    `limiter` is what the next block would lack: "threads" (a block may not have so many), "warps", "blocks",
    "registers" or "shared memory"; of several the first of these. `limits` has, for each of them that counts,
    the blocks that it alone would allow.
    """

    blocks: int
    warps: int
    max_warps: int
    limiter: str
    limits: Mapping[str, int] = field(hash=False)

    @property
    def fraction(self) -> float:
        """The resident warps over those that the multiprocessor could hold, 0 to 1."""
        return self.warps / self.max_warps


def occupancy(
    compute_capability: tuple[int, int],
    threads_per_block: int,
    registers_per_thread: int = 0,
    shared_bytes_per_block: int = 0,
) -> Occupancy:
    """Work out how many blocks one multiprocessor holds at once; needs no driver and no device.

    `compute_capability` is (major, minor), 7.5 or later. `registers_per_thread` is what the compiler reports, 0 for
    no limit by registers. `shared_bytes_per_block` is static and dynamic shared memory together, in bytes. The
    multiprocessor is taken to give all it can as shared memory, as it does unless a kernel asks otherwise.

    Equals cuOccupancyMaxActiveBlocksPerMultiprocessor. A block that does not fit at all gives 0 blocks and what it
    has too much of. Raises ValueError for negative numbers, no threads, more than 255 registers and an unknown
    compute capability, TypeError for arguments that are not integers.
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
    """Return a device's multiprocessor by what its driver says, for devices newer than the table as well."""
    major, _ = properties.compute_capability
    return Multiprocessor(
        threads=properties.max_threads_per_sm,
        blocks=properties.max_blocks_per_sm,
        shared_bytes=properties.shared_memory_per_sm,
        shared_bytes_per_block=properties.shared_memory_per_block_optin,
        reserved_shared_bytes=properties.reserved_shared_memory_per_block,
        shared_unit=256 if major == 7 else 128,
        registers=properties.registers_per_sm,
    )


def compute(multiprocessor: Multiprocessor, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """Work out the occupancy from checked numbers: a block's threads, a thread's registers, a block's bytes."""
    warps = _ceil_divide(threads, _WARP_SIZE)
    limits = {"warps": multiprocessor.warps // warps, "blocks": multiprocessor.blocks}
    if threads > _MAX_THREADS_PER_BLOCK:
        limits = {"threads": 0, **limits}
    if registers:
        limits["registers"] = _by_registers(multiprocessor, warps, registers)
    needed = shared_bytes + multiprocessor.reserved_shared_bytes
    if shared_bytes > multiprocessor.shared_bytes_per_block:
        limits["shared memory"] = 0
    elif needed:
        unit = multiprocessor.shared_unit
        limits["shared memory"] = multiprocessor.shared_bytes // (_ceil_divide(needed, unit) * unit)
    limiter = min(limits, key=lambda name: limits[name])
    blocks = limits[limiter]
    return Occupancy(blocks, blocks * warps, multiprocessor.warps, limiter, limits)


def _by_registers(multiprocessor: Multiprocessor, warps: int, registers: int) -> int:
    of_a_warp = _ceil_divide(registers * _WARP_SIZE, _REGISTER_UNIT) * _REGISTER_UNIT
    # The hardware checks a block as if its warps were spread evenly over the parts.
    if of_a_warp * _ceil_divide(warps, _PARTS) * _PARTS > multiprocessor.registers:
        return 0
    warps_of_a_part = multiprocessor.registers // _PARTS // of_a_warp
    return warps_of_a_part * _PARTS // warps


def _ceil_divide(number: int, by: int) -> int:
    return -(-number // by)
