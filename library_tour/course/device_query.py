"""List the device properties that matter for a launch, the limits by compute capability, and the peak rates.

On the simulator, which checks results but does not measure time:

    $ library-tour run device_query
    device_query: Device properties, launch limits and peak rates
                                      value                       unit
    ─────────────────────────────────────────────────────────────────────
    compute capability                9.0
    multiprocessors                                          132
    warp size                                                 32
    max threads per block                                  1,024
    max block size (x, y, z)          1024 x 1024 x 64
    max grid size (x, y, z)           2147483647 x 65535 x 65535
    max warps per multiprocessor                              64
    max blocks per multiprocessor                             32
    registers per multiprocessor                          65,536
    shared memory per multiprocessor                         228  KiB
    shared memory per block                                 48.0  KiB
    shared memory per block, opt-in                          227  KiB
    constant memory                                         64.0  KiB
    L2 cache                                                60.0  MiB
    max L2 set-aside                                        37.5  MiB
    device memory                                           16.0  GiB
    free device memory                                      16.0  GiB
    memory bus width                                       6,144  bits
    memory clock                                           3,201  MHz
    multiprocessor clock                                   1,980  MHz
    copy engines                                               3
    peak memory bandwidth                                  4,917  GB/s
    peak fp32 arithmetic                                    66.9  TFLOP/s
    peak fp64 arithmetic                                    33.5  TFLOP/s
    Limits per multiprocessor, by compute capability
                  threads  warps  blocks  registers  shared KiB
    ───────────────────────────────────────────────────────────
    1.0 to 1.1        768     24       8      8,192          16
    1.2 to 1.3      1,024     32       8     16,384          16
    2.0 to 2.1      1,536     48       8     32,768          48
    3.0 to 3.5      2,048     64      16     65,536          48
    3.7             2,048     64      16    131,072         112
    5.0             2,048     64      32     65,536          64
    5.2             2,048     64      32     65,536          96
    5.3 to 6.0      2,048     64      32     65,536          64
    6.1             2,048     64      32     65,536          96
    6.2             2,048     64      32     65,536          64
    7.0 to 7.2      2,048     64      32     65,536          96
    7.5             1,024     32      16     65,536          64
    8.0             2,048     64      32     65,536         164
    8.6             1,536     48      16     65,536         100
    8.7             1,536     48      16     65,536         164
    8.8             1,536     48      16     65,536         100
    8.9             1,536     48      24     65,536         100
    9.0 to 10.3     2,048     64      32     65,536         228
    11.0            1,536     48      24     65,536         228
    12.0 to 12.1    1,536     48      24     65,536         100
    Limits per block, thread and grid, by compute capability
                  threads  registers  per thread  shared KiB  max grid (x, y, z)
    ────────────────────────────────────────────────────────────────────────────────
    1.0 to 1.1        512      8,192         124          16  65535 x 65535 x 1
    1.2 to 1.3        512     16,384         124          16  65535 x 65535 x 1
    2.0 to 2.1      1,024     32,768          63          48  65535 x 65535 x 65535
    3.0             1,024     65,536          63          48  2^31-1 x 65535 x 65535
    3.2             1,024     32,768         255          48  2^31-1 x 65535 x 65535
    3.5 to 5.2      1,024     65,536         255          48  2^31-1 x 65535 x 65535
    5.3             1,024     32,768         255          48  2^31-1 x 65535 x 65535
    6.0 to 6.1      1,024     65,536         255          48  2^31-1 x 65535 x 65535
    6.2             1,024     32,768         255          48  2^31-1 x 65535 x 65535
    7.0 to 7.2      1,024     65,536         255          96  2^31-1 x 65535 x 65535
    7.5             1,024     65,536         255          64  2^31-1 x 65535 x 65535
    8.0             1,024     65,536         255         163  2^31-1 x 65535 x 65535
    8.6             1,024     65,536         255          99  2^31-1 x 65535 x 65535
    8.7             1,024     65,536         255         163  2^31-1 x 65535 x 65535
    8.8 to 8.9      1,024     65,536         255          99  2^31-1 x 65535 x 65535
    9.0 to 11.0     1,024     65,536         255         227  2^31-1 x 65535 x 65535
    12.0 to 12.1    1,024     65,536         255          99  2^31-1 x 65535 x 65535
    Peak arithmetic of this device and of the lectures' devices
                        fp32 TFLOP/s  fp64 TFLOP/s  fp32 / fp64  GFLOP/s per W
    ──────────────────────────────────────────────────────────────────────────
    this device                 66.9          33.5            2
    course: T1000               2.60        0.0810           32
    course: V100                15.6          7.80            2
    course: A100                19.5          9.70            2             49
    course: H100                66.9          33.5            2             96
    course: AMD 7995WX                                                      35
    No live figures: "nvml" is an NVIDIA driver library and can only be found via
    system search. Ensure the NVIDIA display driver is installed.
    CUDA 13 compiles for compute capability 7.5 and later; the rows for earlier ones
    show older limits for comparison. A kernel must opt in to use more than 48 KiB
    of shared memory per block. The peak arithmetic rates assume that every lane
    completes one fused multiply-add, which counts as two operations, in every clock
    cycle. Tensor cores, which multiply matrices, are faster.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

import cudart_py as cuda

from ..live import live_rows, power_limit
from ..stop import Check, Panels, Result, Row, Value

TITLE = "Device properties, launch limits and peak rates"
SIZE = None

# Single-precision lanes per multiprocessor. No attribute reports them; these are from the programming guide's table of
# arithmetic throughput by compute capability.
FP32_LANES = {
    (7, 5): 64, (8, 0): 64, (8, 6): 128, (8, 7): 128, (8, 9): 128, (9, 0): 128,
    (10, 0): 128, (10, 3): 128, (11, 0): 128, (12, 0): 128, (12, 1): 128,
}  # fmt: skip  # rows of a table
# The largest grid, keyed by the first compute capability that allows it.
GRIDS = {(1, 0): "65535 x 65535 x 1", (2, 0): "65535 x 65535 x 65535", (3, 0): "2^31-1 x 65535 x 65535"}
# The lectures' devices: TFLOP/s in single precision, TFLOP/s in double precision, and GFLOP/s per watt.
COURSE: dict[str, tuple[float | None, float | None, float | None]] = {
    "course: T1000": (2.6, 0.081, None),
    "course: V100": (15.6, 7.8, None),
    "course: A100": (19.5, 9.7, 49),
    "course: H100": (66.9, 33.5, 96),
    "course: AMD 7995WX": (None, None, 35),
}

Capability = tuple[int, int]


def run(device: cuda.Device, size: int) -> Result:
    """List the properties, the peaks, live figures from NVML if it is installed, and all limits."""
    has, memory = device.properties, device.memory_info
    rows = [
        row("compute capability", in_words([has.compute_capability])),
        row("multiprocessors", has.sm_count),
        row("warp size", has.warp_size),
        row("max threads per block", has.max_threads_per_block),
        row("max block size (x, y, z)", by(has.max_block_dim)),
        row("max grid size (x, y, z)", by(has.max_grid_dim)),
        row("max warps per multiprocessor", has.max_warps_per_sm),
        row("max blocks per multiprocessor", has.max_blocks_per_sm),
        row("registers per multiprocessor", has.registers_per_sm),
        row("shared memory per multiprocessor", has.shared_memory_per_sm / 2**10, "KiB"),
        row("shared memory per block", has.shared_memory_per_block / 2**10, "KiB"),
        row("shared memory per block, opt-in", has.shared_memory_per_block_optin / 2**10, "KiB"),
        row("constant memory", has.constant_memory / 2**10, "KiB"),
        row("L2 cache", has.l2_cache_size / 2**20, "MiB"),
        row("max L2 set-aside", has.max_persisting_l2_cache_size / 2**20, "MiB"),
        row("device memory", memory.total / 2**30, "GiB"),
        row("free device memory", memory.free / 2**30, "GiB"),
        row("memory bus width", has.memory_bus_width, "bits"),
        row("memory clock", has.memory_clock_rate / 1e3, "MHz"),
        row("multiprocessor clock", has.clock_rate / 1e3, "MHz"),
        row("copy engines", has.async_engine_count),
        row("peak memory bandwidth", has.memory_bandwidth / 1e9, "GB/s"),
    ]
    single = peak(has)
    if single:
        rows.append(row("peak fp32 arithmetic", single, "TFLOP/s"))
        rows.append(row("peak fp64 arithmetic", single / has.single_to_double_ratio, "TFLOP/s"))
    live, notes = live_rows(has.pci_bus_id)
    checks = [
        Check("the largest block consists of whole warps", has.max_threads_per_block % has.warp_size == 0),
        Check("free memory does not exceed the total", 0 <= memory.free <= memory.total <= has.total_memory),
        Check("the device is one of those in this machine", device in cuda.devices()),
        agreement(has),
    ]
    tables = {
        "Limits per multiprocessor, by compute capability": limits(of_multiprocessor),
        "Limits per block, thread and grid, by compute capability": limits(of_launch),
        "Peak arithmetic of this device and of the lectures' devices": peaks(has),
    }
    note = (
        "CUDA 13 compiles for compute capability 7.5 and later; the rows for earlier ones show older limits for "
        "comparison. A kernel must opt in to use more than 48 KiB of shared memory per block. The peak arithmetic "
        "rates assume that every lane completes one fused multiply-add, which counts as two operations, in every clock "
        "cycle. Tensor cores, which multiply matrices, are faster."
    )
    pictures = [held(tables["Limits per multiprocessor, by compute capability"])]
    return Result(rows + live, checks=checks, pictures=pictures, notes=[*notes, note], tables=tables)


def row(name: str, value: float | str, unit: str = "") -> Row:
    """Return a row of one value with its unit."""
    return Row(name, {"value": value, "unit": unit})


def by(sizes: tuple[int, int, int]) -> str:
    """Return three sizes as text."""
    return " x ".join(map(str, sizes))


def in_words(capabilities: list[Capability]) -> str:
    """Return one compute capability as text, or the first and the last of several."""
    first, last = (f"{major}.{minor}" for major, minor in (capabilities[0], capabilities[-1]))
    return first if first == last else f"{first} to {last}"


def peak(has: cuda.DeviceProperties) -> float | None:
    """Return the single-precision peak in TFLOP/s, or None if the number of lanes is unknown."""
    lanes = FP32_LANES.get(has.compute_capability)
    return 2 * lanes * has.sm_count * has.clock_rate / 1e9 if lanes else None


def of_multiprocessor(capability: Capability) -> dict[str, Value]:
    """Return the limits of a multiprocessor."""
    holds = cuda.MULTIPROCESSORS[capability]
    return {
        "threads": holds.threads,
        "warps": holds.warps,
        "blocks": holds.blocks,
        "registers": holds.registers,
        "shared KiB": holds.shared_bytes // 2**10,
    }


def of_launch(capability: Capability) -> dict[str, Value]:
    """Return the limits of a block, of one of its threads, and of a grid."""
    allows = cuda.MULTIPROCESSORS[capability]
    return {
        "threads": allows.threads_per_block,
        "registers": allows.registers_per_block,
        "per thread": allows.registers_per_thread,
        "shared KiB": allows.shared_bytes_per_block // 2**10,
        "max grid (x, y, z)": GRIDS[max(first for first in GRIDS if first <= capability)],
    }


def limits(of: Callable[[Capability], dict[str, Value]]) -> list[Row]:
    """Return one row per run of consecutive compute capabilities with the same limits."""
    runs = [(list(found), values) for values, found in groupby(cuda.MULTIPROCESSORS, of)]
    return [Row(in_words(capabilities), values) for capabilities, values in runs]


def held(rows: list[Row]) -> Panels:
    """Draw the limits of a multiprocessor, each on its own scale."""
    panels = {
        kind: {row.name: value for row in rows if isinstance(value := row.values[kind], int)} for kind in rows[0].values
    }
    return Panels("limits", "Limits per multiprocessor, by compute capability", panels)


def agreement(has: cuda.DeviceProperties) -> Check:
    """Check that the table agrees with this device's limits, if it lists the compute capability."""
    fact = "the table of limits agrees with the device"
    if has.compute_capability not in cuda.MULTIPROCESSORS:
        return Check(fact, True)
    says = {
        "threads": has.max_threads_per_sm,
        "warps": has.max_warps_per_sm,
        "blocks": has.max_blocks_per_sm,
        "registers": has.registers_per_sm,
        "shared KiB": has.shared_memory_per_sm // 2**10,
    }
    table = of_multiprocessor(has.compute_capability)
    return Check(fact, table == says, f"the table has {table}, and the driver reports {says}")


def peaks(has: cuda.DeviceProperties) -> list[Row]:
    """Return the peaks of this device and of the lectures' devices."""
    single, watts = peak(has), power_limit(has.pci_bus_id)
    double = single / has.single_to_double_ratio if single else None
    per_watt = 1e3 * single / watts if single and watts else None
    found = {"this device": (single, double, per_watt), **COURSE}
    columns = ("fp32 TFLOP/s", "fp64 TFLOP/s", "GFLOP/s per W")
    rows = []
    for name, figures in found.items():
        values: dict[str, Value] = {c: value for c, value in zip(columns, figures, strict=True) if value is not None}
        if figures[0] and figures[1]:
            values["fp32 / fp64"] = round(figures[0] / figures[1])
        rows.append(Row(name, values))
    return rows
