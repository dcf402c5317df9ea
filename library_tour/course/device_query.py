"""List the properties that decide how a kernel is launched, and the peaks computed from clocks and widths.

On the software driver, which checks and does not time:

    $ library-tour run device_query
    device_query: Device properties and theoretical peaks
                                        value                       unit
    ───────────────────────────────────────────────────────────────────────
    multiprocessors                                            132
    threads in a warp                                           32
    threads, most in a block                                 1,024
    block, most in x, y, z              1024 x 1024 x 64
    grid, most in x, y, z               2147483647 x 65535 x 65535
    warps, most on a multiprocessor                             64
    blocks, most on a multiprocessor                            32
    registers of a multiprocessor                           65,536
    shared memory of a multiprocessor                          228  KiB
    shared memory of a block                                  48.0  KiB
    shared memory of a block, opted in                         227  KiB
    constant memory                                           64.0  KiB
    L2 cache                                                  60.0  MiB
    L2 cache to set aside, most                               36.0  MiB
    memory                                                    16.0  GiB
    memory, free                                              16.0  GiB
    memory bus                                               6,144  bits
    memory clock                                             3,201  MHz
    clock                                                    1,980  MHz
    copy engines                                                 3
    peak memory bandwidth                                    4,917  GB/s
    peak fp32 arithmetic                                      66.9  TFLOP/s
    No live figures: "nvml" is an NVIDIA driver library and can only be found via
    system search. Ensure the NVIDIA display driver is installed.
"""

from __future__ import annotations

import cudart_py as cuda

from ..live import live_rows
from ..stop import Check, Result, Row

TITLE = "Device properties and theoretical peaks"
SIZE = None

# Lanes for single precision in a multiprocessor, which no attribute tells: the programming guide's
# table of arithmetic throughput, by compute capability.
FP32_LANES = {
    (7, 5): 64, (8, 0): 64, (8, 6): 128, (8, 7): 128, (8, 9): 128, (9, 0): 128,
    (10, 0): 128, (10, 3): 128, (11, 0): 128, (12, 0): 128, (12, 1): 128,
}  # fmt: skip  # rows of a table


def run(device: cuda.Device, size: int) -> Result:
    """List properties, peaks and, where NVML has them, live figures."""
    has, memory = device.properties, device.memory_info
    rows = [
        row("multiprocessors", has.sm_count),
        row("threads in a warp", has.warp_size),
        row("threads, most in a block", has.max_threads_per_block),
        row("block, most in x, y, z", by(has.max_block_dim)),
        row("grid, most in x, y, z", by(has.max_grid_dim)),
        row("warps, most on a multiprocessor", has.max_warps_per_sm),
        row("blocks, most on a multiprocessor", has.max_blocks_per_sm),
        row("registers of a multiprocessor", has.registers_per_sm),
        row("shared memory of a multiprocessor", has.shared_memory_per_sm / 2**10, "KiB"),
        row("shared memory of a block", has.shared_memory_per_block / 2**10, "KiB"),
        row("shared memory of a block, opted in", has.shared_memory_per_block_optin / 2**10, "KiB"),
        row("constant memory", has.constant_memory / 2**10, "KiB"),
        row("L2 cache", has.l2_cache_size / 2**20, "MiB"),
        row("L2 cache to set aside, most", has.max_persisting_l2_cache_size / 2**20, "MiB"),
        row("memory", memory.total / 2**30, "GiB"),
        row("memory, free", memory.free / 2**30, "GiB"),
        row("memory bus", has.memory_bus_width, "bits"),
        row("memory clock", has.memory_clock_rate / 1e3, "MHz"),
        row("clock", has.clock_rate / 1e3, "MHz"),
        row("copy engines", has.async_engine_count),
        row("peak memory bandwidth", has.memory_bandwidth / 1e9, "GB/s"),
    ]
    lanes = FP32_LANES.get(has.compute_capability)
    if lanes:
        # A fused multiply-add is two operations.
        rows.append(row("peak fp32 arithmetic", 2 * lanes * has.sm_count * has.clock_rate / 1e9, "TFLOP/s"))
    live, notes = live_rows(has.pci_bus_id)
    checks = [
        Check("a block's most threads are whole warps", has.max_threads_per_block % has.warp_size == 0),
        Check("free memory is within the total", 0 <= memory.free <= memory.total <= has.total_memory),
        Check("the device is among the machine's", device in cuda.devices()),
    ]
    return Result(rows + live, checks=checks, notes=notes)


def row(name: str, value: float | str, unit: str = "") -> Row:
    """Return a row of one value with its unit."""
    return Row(name, {"value": value, "unit": unit})


def by(sizes: tuple[int, int, int]) -> str:
    """Return three sizes as a text."""
    return " x ".join(map(str, sizes))
