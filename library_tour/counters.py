"""What a driver that profiles counts while kernels run, as columns of a stop's table: why, before how fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cudart_py as cuda

from .stop import Value

__all__ = ["COLUMNS", "available", "count"]

# A column's value is the sum of the first metrics over that of the second ones, which are none for a plain sum.
# Names are Nsight Compute's.
COLUMNS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "sectors/load": (
        ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"],
        ["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"],
    ),
    "sectors/store": (
        ["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"],
        ["l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"],
    ),
    "loads": (["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"], []),
    "stores": (["l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"], []),
    "sectors read": (
        ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_tex_mem_texture.sum"],
        [],
    ),
    "constants": (["idc__requests.sum"], []),
    "local": (
        [f"l1tex__t_requests_pipe_lsu_mem_local_op_{kind}.sum" for kind in ("ld", "st")],
        [],
    ),
    "sectors/local": (
        [f"l1tex__t_sectors_pipe_lsu_mem_local_op_{kind}.sum" for kind in ("ld", "st")],
        [f"l1tex__t_requests_pipe_lsu_mem_local_op_{kind}.sum" for kind in ("ld", "st")],
    ),
    "atomics": (
        ["l1tex__t_requests_pipe_lsu_mem_global_op_red.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum"],
        [],
    ),
    "atomic sectors": (
        ["l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum"],
        [],
    ),
    "conflicts": (
        [
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
        ],
        [],
    ),
    "wavefronts": (
        [
            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
        ],
        [],
    ),
    "instructions": (["smsp__inst_executed.sum"], []),
    "active lanes": (["smsp__thread_inst_executed.sum"], ["smsp__inst_executed.sum"]),
}


def available() -> bool:
    """Tell whether this driver counts what kernels do."""
    return "profile" in cuda.capabilities() and hasattr(cuda, "profile")


def count(work: Callable[[], object], columns: Sequence[str]) -> dict[str, Value]:
    """Run `work`; return the named columns of what its launches did, none where the driver does not count.

    A column whose metrics the driver does not have, or that would divide by zero, is left out.
    """
    if not columns or not available():
        work()
        return {}
    profile: Any = cuda.profile  # type: ignore[attr-defined,unused-ignore]  # part of the toolkit where it is available
    with profile() as profiled:
        work()
        cuda.current_device().synchronize()
    launches = [launch.metrics for launch in profiled.launches]
    found = {column: _value(launches, *COLUMNS[column]) for column in columns}
    return {column: value for column, value in found.items() if value is not None}


def _value(launches: Sequence[Mapping[str, float]], over: Sequence[str], under: Sequence[str]) -> Value | None:
    if not launches or any(metric not in metrics for metrics in launches for metric in (*over, *under)):
        return None
    above = sum(metrics[metric] for metrics in launches for metric in over)
    if not under:
        return above
    below = sum(metrics[metric] for metrics in launches for metric in under)
    return above / below if below else None
