"""The public functions that draw what one warp of a launch did."""

from __future__ import annotations

import math
from typing import Any

from ...arguments import choice, instance, integer, unusable
from ...pages.diagram import Diagram
from ..profiles import LaunchProfile
from ..source_lines import sources_of
from ..warp_records import WarpAccess, WarpRecord
from .activity import activity_diagram
from .banks import bank_diagram
from .lanes import LANES
from .sectors import sector_diagram

_MOST = 2**31 - 1
_OPERATIONS = ("load", "store", "atomic")
_SPACES = ("global", "shared", "local", "const")
_WORDS = {"const": "constant"}
_VERBS = {"load": "Load from", "store": "Store to", "atomic": "Atomic on"}


def access_diagram(
    launch: LaunchProfile,
    line: int | None = None,
    *,
    operation: str | None = None,
    space: str | None = None,
    occurrence: int = 0,
) -> Diagram:
    """Draw one access of a warp to memory, from the addresses that the simulator recorded.

    An access to global, local or constant memory is drawn as lanes and the 32-byte sectors that they touch. One to
    shared memory is drawn as lanes and the wavefronts in which the 32 banks serve them.

    `launch` is one of a profile that recorded a warp, `cuda.profile(record_warp=0)`. `line` is the number of a source
    line, `operation` is "load", "store" or "atomic", and `space` is "global", "shared", "local" or "const"; None stands
    for any. Of the accesses that fit, in the order of their execution, `occurrence` chooses one, the first by default.

    Raises ValueError for a launch without a record, and where no access fits.
    """
    call = "access_diagram"
    record = _record(call, launch)
    wanted = {
        "line": None if line is None else integer(call, "line", line, 1, _MOST),
        "operation": choice(call, "operation", operation, (*_OPERATIONS, None)),
        "space": choice(call, "space", space, (*_SPACES, None)),
    }
    occurrence = integer(call, "occurrence", occurrence, 0, _MOST)
    fitting = list(record.accesses)
    for name, value in wanted.items():
        fitting = [access for access in fitting if value in (None, getattr(access, name))]
        if not fitting:
            accesses = (f"{each.operation} of {each.space} memory at line {each.line}" for each in record.accesses)
            made = ", ".join(dict.fromkeys(accesses)) or "no access to memory"
            rule = "fit an access of the warp, together with the arguments before it"
            raise unusable(call, name, rule, repr(value), f"warp {record.warp} made: {made}")
    if occurrence >= len(fitting):
        rule = f"be less than {len(fitting)}, the number of recorded accesses that fit"
        raise unusable(call, "occurrence", rule, occurrence)
    return draw_access(launch, fitting[occurrence])


def draw_access(launch: LaunchProfile, access: WarpAccess) -> Diagram:
    """Return the diagram of an access that a launch's record has."""
    title = (
        f"{_VERBS[access.operation]} {_WORDS.get(access.space, access.space)} memory, "
        f"{access.size} {'byte' if access.size == 1 else 'bytes'} per lane"
    )
    if access.line:
        title += f" ({_short(access.file)}:{access.line})"
    draw = bank_diagram if access.space == "shared" else sector_diagram
    return draw(access, title, _code(launch, access.file, access.line))


def divergence_diagram(launch: LaunchProfile, line: int | None = None) -> Diagram:
    """Draw which lanes of a warp were active over time, one strip for each run of instructions by the same lanes.

    `launch` is one of a profile that recorded a warp, `cuda.profile(record_warp=0)`. `line` is the number of a source
    line whose instructions alone are drawn; None stands for all. Raises ValueError for a launch without a record, and
    for a line without instructions.
    """
    call = "divergence_diagram"
    record = _record(call, launch)
    line = None if line is None else integer(call, "line", line, 1, _MOST)
    steps = [step for step in record.steps if line in (None, step.line)]
    if not steps:
        lines = ", ".join(map(str, sorted({step.line for step in record.steps})))
        raise unusable(call, "line", "have instructions that the warp executed", line, f"it executed lines {lines}")
    return activity_diagram(steps, f"Active lanes of warp {record.warp} of {launch.kernel}")


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


def _short(file: str) -> str:
    return file.rpartition("/")[2]


def _code(launch: LaunchProfile, file: str, line: int) -> str:
    """Return the text of a source line, "" where it is not at hand."""
    for source in sources_of([launch]):
        if line in source.lines and _short(source.name) == _short(file):
            return source.text(line).strip()
    return ""
