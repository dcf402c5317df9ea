"""Waits at barriers in memory (``mbarrier``), and the report of a deadlock if they can never end.

Threads poll such a barrier, so a deadlocked thread looks busy. The deadlock is detected by looking at all threads: if
all threads of a launch have done nothing but poll for a long time, none of them can still complete a phase.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...faults import Fault
from ...instructions.barriers import fields
from ...operations import mbarriers

if TYPE_CHECKING:
    from ...syntax.instructions import Instruction
    from ..groups import Group

Array = NDArray[Any]
# The maximum number of barriers that a report names. More of them would not help to find the first mistake.
_NAMED = 4


class _Wait(NamedTuple):
    """A group's latest wait: the index of each lane's barrier among 64-bit words, and the phase that it waits for."""

    group: Group
    site: Instruction
    numbers: Array
    phases: Array
    parity: bool


class BarrierWaits:
    """The latest waits of a launch's groups."""

    def __init__(self) -> None:
        self._waits: dict[tuple[int, int, int], _Wait] = {}

    def keep(self, group: Group, site: Instruction, numbers: Array, phases: Array, parity: bool) -> None:
        """Record a wait, replacing the group's previous wait at this instruction."""
        key = id(site), group.chunk.first, int(group.lane_numbers[0])
        self._waits[key] = _Wait(group, site, numbers, phases, parity)

    def clear(self) -> None:
        """Forget the waits, because threads have done something else."""
        self._waits.clear()

    def deadlock(self) -> Fault | None:
        """Return the fault of a launch whose threads do nothing but wait, or None if a phase is complete."""
        threads: set[tuple[int, int]] = set()
        barriers: dict[str, None] = {}
        first: tuple[_Wait, int] | None = None
        for wait in self._waits.values():
            words = wait.group.chunk.shared.views["u8"]
            passed = mbarriers.apply("test_wait", words, wait.numbers, [wait.phases], wait.parity)
            positions = np.flatnonzero(~passed)
            if not len(positions):
                return None
            first = first or (wait, int(positions[0]))
            threads.update((wait.group.chunk.first, int(lane)) for lane in wait.group.lane_numbers[positions])
            barriers.update(dict.fromkeys(_described(wait, np.unique(wait.numbers[positions]))))
        if first is None:
            return None
        wait, position = first
        more = f", and {len(barriers) - _NAMED} more" if len(barriers) > _NAMED else ""
        who = "1 thread waits" if len(threads) == 1 else f"{len(threads)} threads wait"
        what = (
            f"deadlock: {who} at barriers in shared memory, and no other thread is running: "
            f"{'; '.join(list(barriers)[:_NAMED])}{more}"
        )
        return wait.group.fault("CUDA_ERROR_LAUNCH_TIMEOUT", what, wait.site, position)


def _described(wait: _Wait, numbers: Array) -> Iterator[str]:
    """Yield a description of the state of each barrier."""
    chunk = wait.group.chunk
    for number in numbers:
        block, place = divmod(8 * int(number), chunk.shared_stride)
        name = f"the barrier of block {chunk.first + block} at {chunk.state.launch.shared_place(place)}"
        missing, needed, coming, _ = fields(int(chunk.shared.views["u8"][number]))
        lacks = [f"{missing} of {needed} arrivals"] * (missing > 0) + [f"{coming} bytes of copies"] * (coming > 0)
        if not needed:
            yield f"{name} has not been initialised"
        elif lacks:
            yield f"{name} still expects {' and '.join(lacks)}"
        else:
            yield f"{name} has received {-coming} more bytes of copies than it expects"
