"""Profiling: what launches did, counted under Nsight Compute's names, for a whole launch and by source line.

The simulator counts while it runs kernels. A GPU's counters are Nsight Compute's own matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from .. import errors
from ..compilation.demangling import declared_name, demangle
from ..driver import seam
from ..driver.seam import api

__all__ = ["LaunchProfile", "LineProfile", "Profile", "profile"]

_WIDTH = 80
_L1 = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{}.ratio"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
_LANES = "smsp__thread_inst_executed_per_inst_executed.ratio"


@dataclass(frozen=True)
class LineProfile:
    """The metrics of one source line's instructions; `file` is the path that the compiler was given."""

    file: str
    line: int
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class LaunchProfile:
    """One launch: the kernel's C++ name, its shape in blocks and threads, and the metrics by name.

    `sources` are the texts of sources that were given as strings, by the names that `lines` have for them.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    metrics: Mapping[str, float]
    lines: tuple[LineProfile, ...]
    sources: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return _table([self])


class Profile:
    """Count what the launches inside a `with` do; made by `cuda.profile()`.

    `launches` has them in the order they ran, complete when the `with` has ended. `print(profile)` shows a table:
    32-byte sectors that a warp's load and store of global memory touches, bank conflicts of shared memory, and active
    lanes an instruction.
    """

    def __init__(self) -> None:
        self.launches: tuple[LaunchProfile, ...] = ()
        self._counting = False

    def __enter__(self) -> Profile:
        if "profile" not in seam.capabilities():
            raise errors.NotSupportedError(
                "this driver lacks the capability 'profile': counters of a GPU are Nsight Compute's, "
                "and the simulator's are there with CUDART_PY_DRIVER=simulator"
            )
        api.begin_profile()
        self._counting = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._counting:
            raise ValueError("this Profile was not entered: it counts inside `with cuda.profile() as p:`")
        self._counting = False
        try:
            found = api.end_profile()
        except errors.CudaError:
            # What the body raised says more than that the rest of its work fails too.
            if value is None:
                raise
            return
        self.launches = tuple(map(_launch, found))

    def __str__(self) -> str:
        return _table(self.launches)


def profile() -> Profile:
    """Count what launches do: `with cuda.profile() as p:`, then `p.launches` or `print(p)`.

    What is queued before runs first, uncounted; what is queued inside has run when the `with` ends. Raises
    NotSupportedError where the driver lacks the capability `profile`, as a GPU's does.
    """
    return Profile()


def _launch(counted: Any) -> LaunchProfile:
    declaration = demangle(counted.kernel)
    name = counted.kernel if declaration is None else declared_name(declaration)
    lines = tuple(LineProfile(file, line, metrics) for (file, line), metrics in counted.lines.items())
    return LaunchProfile(name, counted.grid, counted.block_shape, counted.metrics, lines, counted.sources)


def _table(launches: list[LaunchProfile] | tuple[LaunchProfile, ...]) -> str:
    """Return the table in 80 columns: two lines for the head, and one for each launch or group of equal launches."""
    if not launches:
        return "no launches"
    counted = Counter((x.kernel, _extents(x.grid), _extents(x.block), *_figures(x)) for x in launches)
    rows = [[_times(row[0], times), *row[1:]] for row, times in counted.items()]
    heads = [["", "", "", "sectors a", "sectors a", "bank", "active"]]
    heads.append(["kernel", "grid", "block", "load", "store", "conflicts", "lanes"])
    widths = [max(len(row[column]) for row in (*heads, *rows)) for column in range(7)]
    # The name gives way, because all else is short.
    widths[0] = max(8, min(widths[0], _WIDTH - sum(widths[1:]) - 2 * 6))
    lines = []
    for row in (*heads, *rows):
        name = row[0] if len(row[0]) <= widths[0] else row[0][: widths[0] - 1] + "…"
        cells = [name.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _times(name: str, times: int) -> str:
    return name if times == 1 else f"{times} x {name}"


def _extents(extents: tuple[int, int, int]) -> str:
    """Write a shape without the trailing ones."""
    x, y, z = extents
    return "x".join(map(str, (x, y, z) if z > 1 else (x, y) if y > 1 else (x,)))


def _figures(launch: LaunchProfile) -> list[str]:
    metrics = launch.metrics
    sectors = [metrics[_L1.format(kind)] for kind in ("ld", "st")]
    conflicts = sum(metrics[_CONFLICTS.format(kind)] for kind in ("ld", "st"))
    return [*(f"{value:.1f}" if value else "-" for value in sectors), f"{conflicts:,.0f}", f"{metrics[_LANES]:.1f}"]
