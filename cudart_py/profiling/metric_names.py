"""Nsight Compute's names of the metrics in tables and advice, and sums of metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"
BYTES = "smsp__sass_data_bytes_mem_global_op_{}.sum"
LOCAL_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_local_op_{}.sum"
LOCAL_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_local_op_{}.sum"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
SHARED_ACCESSES = "smsp__inst_executed_op_shared_{}.sum"
# Warp-wide loads from shared memory by ldmatrix, which the metric above does not include.
MATRIX_LOADS = "smsp__inst_executed_op_ldsm.sum"
WARPS = "smsp__inst_executed.sum"
LANES = "smsp__thread_inst_executed.sum"
CONSTANTS = "idc__requests.sum"
TEXELS = "l1tex__t_sectors_pipe_tex_mem_texture.sum"
# Lanes that executed an operation such as "ffma": its precision (f or d), and add, mul or fma.
OPERATIONS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
# Cycles in which L2's atomic unit receives sectors: one per turn of a warp's lanes.
ATOMIC_CYCLES = "lts__d_atomic_input_cycles_active.sum"
# Instructions of machine code that the counted PTX becomes, all and those of two pipes: special functions, and FP64.
ISSUED = "smsp__inst_issued.sum"
SPECIAL = "smsp__inst_executed_pipe_xu.sum"
DOUBLE = "smsp__inst_executed_pipe_fp64.sum"
# The number of times that warps wait for a result, for each of Nsight Compute's stall reasons.
WAITS = "model__waits_{}.sum"
STALLS = ("fixed_latency", "short_scoreboard", "long_scoreboard")
# The numbers of blocks and of threads per block, which a launch has and a line lacks.
GRID_SIZE = "launch__grid_size"
BLOCK_SIZE = "launch__block_size"

# The kinds of accesses in the metric names. A reduction ("red") is an atomic whose result is not used.
GLOBAL = ("ld", "st", "red", "atom")
SHARED = ("ld", "st", "atom")
LOCAL = ("ld", "st")
SECTOR_BYTES = 32


def names(pattern: str, kinds: Iterable[str]) -> tuple[str, ...]:
    """Return a metric's names for some kinds of accesses."""
    return tuple(pattern.format(kind) for kind in kinds)


def total(metrics: Mapping[str, float], selected: Iterable[str]) -> float:
    """Return the sum of some metrics; a missing metric counts as 0."""
    return sum(metrics.get(name, 0) for name in selected)


def add(into: dict[str, float], metrics: Mapping[str, float]) -> None:
    """Add metrics to the sums in `into`, leaving out ratios, which cannot be summed."""
    for name, value in metrics.items():
        if name.endswith(".sum"):
            into[name] = into.get(name, 0) + value
