"""Profiling: counters of launches under Nsight Compute's names, per launch and per source line.

The simulator counts while it runs kernels. A GPU's own counters are available from Nsight Compute.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .. import errors
from ..base.arguments import instance, integer, text, unusable
from ..base.wording import counted
from ..compilation.names.demangling import function_name
from ..driver.backend import chosen
from ..driver.capabilities import capabilities
from ..driver.unwrap import check
from .report.launch_table import extents, launch_table
from .warp_records import WarpRecord, record_of

if TYPE_CHECKING:
    from .trace.recorder import Recorder

# The maximum number of kernels in the repr of a profile.
_MOST_NAMED = 5
_MOST_WARPS = 2**63 - 1


@dataclass(frozen=True, repr=False)
class LineProfile:
    """The metrics of the instructions of one source line; `file` is the path as it was passed to the compiler."""

    file: str
    line: int
    metrics: Mapping[str, float]

    def __repr__(self) -> str:
        return f"<LineProfile {self.file}:{self.line}, {counted(len(self.metrics), 'metric')}>"


@dataclass(frozen=True, repr=False)
class LaunchProfile:
    """One launch: the kernel's C++ name, its grid and block shapes, and the metrics, keyed by name.

    `sources` maps file names in `lines` to the texts of sources that were compiled from strings. `warp` is the record
    of one warp, or None if the profile did not record one.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    metrics: Mapping[str, float]
    lines: tuple[LineProfile, ...]
    sources: Mapping[str, str] = field(default_factory=dict)
    warp: WarpRecord | None = None

    def __str__(self) -> str:
        return launch_table([self])

    def __repr__(self) -> str:
        shape = f"{extents(self.grid)}, {extents(self.block)}"
        return f"<LaunchProfile {self.kernel}[{shape}], {counted(len(self.lines), 'line')}>"

    def _repr_html_(self) -> str:
        from .report.page import profile_summary  # imported late because its modules take milliseconds to import

        return profile_summary([self])


class Profile:
    """The counters of the launches inside a `with` block, returned by `cuda.profile()`.

    After the block, `launches` contains the launches in the order in which they ran, and `unfinished` the names of the
    kernels whose launches began but failed, for example at an illegal access. `print(profile)` shows a table of the
    32-byte sectors per load and store of global memory, bank conflicts in shared memory, and active lanes per
    instruction. Caches are not modelled: sectors are counted even for accesses that would hit in L1. On a GPU, which
    has no such counters, `launches` is empty, and there is only the trace.
    """

    def __init__(self, record_warp: int | None = None, *, trace: str | os.PathLike[str] | None = None) -> None:
        self._launches: tuple[LaunchProfile, ...] = ()
        self._unfinished: tuple[str, ...] = ()
        self._warp = _warp_number("Profile", record_warp)
        self._trace = _trace_file("Profile", trace)
        self._recorder: Recorder | None = None
        self._entered = False

    @property
    def launches(self) -> tuple[LaunchProfile, ...]:
        """The counters of each launch, in the order in which they ran."""
        return self._launches

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The names of the kernels whose launches failed."""
        return self._unfinished

    def __enter__(self) -> Profile:
        counts = "profile" in capabilities()
        if not counts and (self._trace is None or self._warp is not None):
            raise errors.NotSupportedError(
                "profile: this driver lacks the capability 'profile'; set CUDART_PY_DRIVER=simulator to count on the "
                "simulator, or use Nsight Compute on a GPU"
            )
        if counts:
            check(chosen().begin_profile(self._warp))
        self._entered = True
        if self._trace is not None:
            from .trace.recorder import Recorder  # imported late: few programs write traces

            self._recorder = Recorder()
            self._recorder.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._entered:
            raise ValueError("this Profile was not entered: it counts inside `with cuda.profile() as p:`")
        self._entered = False
        since = time.perf_counter_ns()
        try:
            if "profile" in capabilities():
                self._end()
        except errors.CudaError:
            # The exception of the block is more informative than the failure of its remaining work.
            if value is None:
                raise
        finally:
            self._write_trace(since)

    def _end(self) -> None:
        """Take the launches, including those before a failure of queued work, which raises CudaError."""
        try:
            check(chosen().complete_profile())
        finally:
            found = check(chosen().end_profile())
            self._launches = tuple(_launch(launch) for launch in found if launch.counters.metrics)
            failed = (launch.counters.kernel for launch in found if not launch.counters.metrics)
            self._unfinished = tuple(map(function_name, failed))

    def _write_trace(self, since: int) -> None:
        if self._recorder is not None and self._trace is not None:
            from .trace.trace_events import trace_text  # imported late, as above

            recording = self._recorder.stop("end of cuda.profile", since)
            self._recorder = None
            Path(self._trace).write_text(trace_text(recording), encoding="utf-8", errors="backslashreplace")

    def __str__(self) -> str:
        return launch_table(self.launches, unfinished=self.unfinished)

    def __repr__(self) -> str:
        kernels = Counter(launch.kernel for launch in self.launches)
        named = [name if times == 1 else f"{times} x {name}" for name, times in kernels.items()]
        more = ["..."] if len(named) > _MOST_NAMED else []
        listed = ", ".join(named[:_MOST_NAMED] + more)
        return (
            f"<Profile of {counted(len(self.launches), 'launch')}: {listed}>" if listed else "<Profile of no launches>"
        )

    def _repr_html_(self) -> str:
        from .report.page import profile_summary  # imported late as above

        return profile_summary(self.launches, unfinished=self.unfinished)


def profile(record_warp: int | None = None, *, trace: str | os.PathLike[str] | None = None) -> Profile:
    """Return a profile that counts what launches do: `with cuda.profile() as p:`, then `p.launches` or `print(p)`.

    Work that was queued before the block runs first and is not counted. The end of the block waits for the work queued
    inside. `record_warp` is the index of a warp, counted over the blocks of a launch. Each launch then has a record of
    this warp, which `cuda.profiling.access_diagram` draws, and the kernels run in the NumPy engine, which is slower.
    Entering the block raises NotSupportedError if the driver lacks the capability `profile`, as a GPU's driver does.

    `trace` is the path of a file. At the end of the block, the driver calls of each thread, the ranges of `nvtx_range`
    and the work in each stream are written to it in the Trace Event format, which https://ui.perfetto.dev opens. This
    also works on a GPU, if `record_warp` is None. There, the times are measured with two events around each piece of
    work (cuEventRecord). On the simulator, a trace shows the order of the work, not times.
    """
    return Profile(_warp_number("profile", record_warp), trace=_trace_file("profile", trace))


def _warp_number(call: str, value: int | None) -> int | None:
    return None if value is None else integer(call, "record_warp", value, 0, _MOST_WARPS)


def _trace_file(call: str, value: str | os.PathLike[str] | None) -> str | None:
    """Return the absolute path of a trace's file; a missing folder is an error now, and not after the block."""
    if value is None:
        return None
    instance(call, "trace", value, (str, os.PathLike), "the path of a file")
    path = os.path.abspath(text(call, "trace", os.fspath(value)))
    if not os.path.isdir(os.path.dirname(path)) or os.path.isdir(path):
        raise unusable(call, "trace", "be a file in a folder that exists", repr(os.fspath(value)))
    return path


def _launch(launch: Any) -> LaunchProfile:
    counted, recorder = launch
    lines = tuple(LineProfile(file, line, metrics) for (file, line), metrics in counted.lines.items())
    warp = None if recorder is None else record_of(recorder)
    return LaunchProfile(
        function_name(counted.kernel), counted.grid, counted.block_shape, counted.metrics, lines, counted.sources, warp
    )
