"""The public functions that draw the accesses and the active lanes of one warp."""

from __future__ import annotations

import math
from typing import Any

from ..base.arguments import choice, instance, integer, unusable
from ..pages.diagram import Diagram
from .profiles import LaunchProfile
from .source_lines import text_of
from .warp_records import LANES, WarpRecord

_MOST = 2**31 - 1
_OPERATIONS = ("load", "store", "atomic")
_SPACES = ("global", "shared", "local", "const")


def access_diagram(
    launch: LaunchProfile,
    line: int | None = None,
    *,
    operation: str | None = None,
    space: str | None = None,
    occurrence: int = 0,
) -> Diagram:
    """Draw one access of a warp to memory, from the addresses that the simulator recorded.

    An access to global, local or constant memory is drawn as lanes and the 32-byte sectors that they touch. An access
    to shared memory is drawn as lanes and the wavefronts in which the 32 banks serve them.

    `launch` is a launch from a profile that recorded a warp: `cuda.profile(record_warp=0)`. `line` is the number of a
    source line, `operation` is "load", "store" or "atomic", and `space` is "global", "shared", "local" or "const"; None
    matches any value. `occurrence` is the index of the access among those that match, in the order of execution; the
    default is the first.

    Raises ValueError if the launch has no record of a warp, or if no access matches.
    """
    call = "access_diagram"
    record = _record(call, launch)
    requested = {
        "line": None if line is None else integer(call, "line", line, 1, _MOST),
        "operation": choice(call, "operation", operation, (*_OPERATIONS, None)),
        "space": choice(call, "space", space, (*_SPACES, None)),
    }
    occurrence = integer(call, "occurrence", occurrence, 0, _MOST)
    fitting = list(record.accesses)
    for name, value in requested.items():
        fitting = [access for access in fitting if value in (None, getattr(access, name))]
        if not fitting:
            accesses = (f"{each.operation} of {each.space} memory at line {each.line}" for each in record.accesses)
            made = ", ".join(dict.fromkeys(accesses)) or "no access to memory"
            rule = "fit an access of the warp, together with the arguments before it"
            raise unusable(call, name, rule, repr(value), f"warp {record.warp} made: {made}")
    if occurrence >= len(fitting):
        rule = f"be less than {len(fitting)}, the number of recorded accesses that fit"
        raise unusable(call, "occurrence", rule, occurrence)
    access = fitting[occurrence]
    from .diagrams.accesses import draw_access  # imported late because its modules take milliseconds to import

    return draw_access(access, text_of([launch], access.file, access.line))


def divergence_diagram(launch: LaunchProfile, line: int | None = None) -> Diagram:
    """Draw which lanes of a warp were active over time, with one strip per run of instructions by the same lanes.

    `launch` is a launch from a profile that recorded a warp: `cuda.profile(record_warp=0)`. If `line` is the number of
    a source line, only its instructions are drawn; None means all lines. Raises ValueError if the launch has no record
    of a warp, or if the warp executed no instruction of the line.
    """
    call = "divergence_diagram"
    record = _record(call, launch)
    line = None if line is None else integer(call, "line", line, 1, _MOST)
    if line is not None and all(step.line != line for step in record.steps):
        lines = ", ".join(map(str, sorted({step.line for step in record.steps})))
        raise unusable(call, "line", "have instructions that the warp executed", line, f"it executed lines {lines}")
    from .diagrams.activity import activity_diagram  # imported late, as in access_diagram

    return activity_diagram(record, launch.kernel, line)


def _record(call: str, launch: Any) -> WarpRecord:
    record = instance(call, "launch", launch, LaunchProfile).warp
    if record is None:
        raise unusable(
            call, "launch", "have the record of a warp", remedy="profile it with cuda.profile(record_warp=0)"
        )
    if not record.steps:
        warps = math.prod(launch.grid) * -(-math.prod(launch.block) // LANES)
        raise unusable(call, "launch", f"have a warp {record.warp}", f"only {warps}")
    return record
