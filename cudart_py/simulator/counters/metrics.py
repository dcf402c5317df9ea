"""Metrics: Nsight Compute's names for the counts, and sums of counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_L1 = "l1tex__{what}_pipe_lsu_mem_{space}_op_{kind}.sum"

# The names of stall reasons that Nsight Compute measures but does not count: waits for a result of fixed latency, for
# one of shared memory, a shuffle or a special function, and for one of other memory.
WAITS = {"wait": "fixed_latency", "short": "short_scoreboard", "long": "long_scoreboard"}

# The name of each metric, keyed by the counted quantity, the memory space and the kind of instruction.
COUNTED: dict[tuple[str, str, str], str] = {
    **{
        (what, space, kind): _L1.format(what=f"t_{what}", space=space, kind=kind)
        for space, kinds in (("global", ("ld", "st", "red", "atom")), ("local", ("ld", "st")))
        for kind in kinds
        for what in ("requests", "sectors")
    },
    **{
        (what, "shared", kind): f"l1tex__data_{name}_mem_shared_op_{kind}.sum"
        for what, name in (("wavefronts", "pipe_lsu_wavefronts"), ("conflicts", "bank_conflicts_pipe_lsu"))
        for kind in ("ld", "st", "atom")
    },
    **{
        ("instructions", space, kind): f"smsp__inst_executed_op_{space}_{kind}.sum"
        for space, kinds in (
            ("global", ("ld", "st", "red", "atom")), ("shared", ("ld", "st", "atom")), ("local", ("ld", "st"))
        )
        for kind in kinds
    },
    ("instructions", "shared", "ldsm"): "smsp__inst_executed_op_ldsm.sum",
    ("instructions", "texture", "ld"): "smsp__inst_executed_op_texture.sum",
    ("instructions", "global", "ldgsts"): "smsp__inst_executed_op_ldgsts.sum",
    **{("bytes", "global", kind): f"smsp__sass_data_bytes_mem_global_op_{kind}.sum" for kind in ("ld", "st")},
    **{(what, "texture", "ld"): f"l1tex__t_{what}_pipe_tex_mem_texture.sum" for what in ("requests", "sectors")},
    **{
        (what, number, ""): f"smsp__sass_thread_inst_executed_op_{letter}{what}_pred_on.sum"
        for number, letter in (("f32", "f"), ("f64", "d"))
        for what in ("add", "mul", "fma")
    },
    ("requests", "const", "ld"): "idc__requests.sum",
    ("warps", "", ""): "smsp__inst_executed.sum",
    ("lanes", "", ""): "smsp__thread_inst_executed.sum",
    ("atomic cycles", "global", ""): "lts__d_atomic_input_cycles_active.sum",
    ("issued", "", ""): "smsp__inst_issued.sum",
    ("xu", "", ""): "smsp__inst_executed_pipe_xu.sum",
    ("fp64", "", ""): "smsp__inst_executed_pipe_fp64.sum",
    **{("waits", reason, ""): f"model__waits_{name}.sum" for reason, name in WAITS.items()},
}  # fmt: skip  # rows of a table

# Ratios of two counts.
RATIOS: dict[str, tuple[tuple[str, str, str], tuple[str, str, str]]] = {
    **{
        f"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{kind}.ratio": (
            ("sectors", "global", kind),
            ("requests", "global", kind),
        )
        for kind in ("ld", "st", "red", "atom")
    },
    **{
        f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{kind}.ratio": (
            ("bytes", "global", kind),
            ("sectors", "global", kind),
        )
        for kind in ("ld", "st")
    },
    "smsp__thread_inst_executed_per_inst_executed.ratio": (("lanes", "", ""), ("warps", "", "")),
}

NAMES = (*COUNTED.values(), *RATIOS)
_NOTHING: dict[str, float] = {**dict.fromkeys(COUNTED.values(), 0), **dict.fromkeys(RATIOS, 0.0)}

# Metrics that follow the hardware's rules but may differ from its values. The hardware runs machine code instead of
# PTX, and counts instructions for which all lanes of a warp are predicated off. It keeps most local variables in
# registers, and also counts constants at fixed addresses that the assembler loads into registers. For atomics on more
# than 128 bytes, it counts slightly more sectors than the turns of the lanes explain (3,721 instead of 3,699).
MODELLED = frozenset(
    name
    for name in NAMES
    if name.startswith(("smsp__", "idc__", "lts__", "model__"))
    or "_local_" in name
    or ("t_sectors" in name and "_op_" in name and name.split("_op_")[1][0] in "ra")
)

Tally = dict[tuple[str, str, str], int]


def metrics(tally: Mapping[tuple[str, str, str], int]) -> dict[str, float]:
    """Return all metrics for a tally; a ratio with a denominator of 0 is 0."""
    found: dict[str, float] = dict(_NOTHING)
    for key, count in tally.items():
        name = COUNTED.get(key)
        if name is not None:
            found[name] = count
    for name, (above, below) in RATIOS.items():
        if tally.get(below):
            found[name] = tally.get(above, 0) / tally[below]
    return found


def total(tallies: Iterable[Tally]) -> Tally:
    """Return the sum of tallies."""
    result: Tally = {}
    for tally in tallies:
        for key, count in tally.items():
            result[key] = result.get(key, 0) + count
    return result
