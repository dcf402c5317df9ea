"""Read clock registers for machine code, which counts instructions only when it branches back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...running.clock import CYCLES
from ...syntax.special_names import CLOCKS
from ..layout import LANES, Context

if TYPE_CHECKING:
    from ...running.launch import LaunchState
    from .launch import NativeLaunch

_WORD = 0xFFFFFFFF
# The number of warps whose waits for a clock are remembered.
_MOST_WARPS = 4096


class _Place(NamedTuple):
    """The number of instructions before one in the list of basic blocks, and the loop that waits for it, or -1."""

    before: int
    loop: int


class _Warp:
    """A warp that may wait for a clock; see `Clock.look`."""

    def __init__(self) -> None:
        self.wait: tuple[int, int, int] | None = None


def read_clock(launch: NativeLaunch, number: int) -> None:
    """Answer the reading of a clock register."""
    launch.clock.read(launch, number)


class LaunchClock:
    """The time of a launch: it advances with the instructions of all warps, and never goes back.

    The warps of a block run one after another and share the time, but each instruction takes at least one cycle.
    """

    def __init__(self, warps: int) -> None:
        self._rate = max(1, CYCLES // warps)
        self._places: dict[tuple[int, int], _Place] = {}
        # The cycles that had passed at the last reading, and the cycles to add to the count of instructions, which is
        # smaller in the next warp or block.
        self.elapsed = 0
        self._added = 0
        self._warps: dict[tuple[int, int], _Warp] = {}

    def read(self, launch: NativeLaunch, number: int) -> None:
        """Answer a reading; the number contains a site in its lower half, and which clock it reads in its upper half.

        A branch back counts the instructions of its loop. Together with the instructions before the reading, these
        increase with every instruction of a warp.
        """
        context, clock = launch.context, launch.state.clock
        if context[Context.SLEPT]:
            clock.nap(int(context[Context.SLEPT]))
            context[Context.SLEPT] = 0
        site = launch.kernel.sites.sites[number & _WORD]
        if not self._places:
            self._find_places(launch)
        place = self._places[id(site.instance), id(site.instruction)]
        count = self._rate * (launch.executed + place.before)
        self._added += max(0, self.elapsed + self._rate - count - self._added)
        self.elapsed = count + self._added
        if len(self._warps) > _MOST_WARPS:
            self._warps.clear()
        warp = self._warps.setdefault((int(context[Context.BLOCK]), int(context[Context.WARP_AT_HAND])), _Warp())
        context[Context.ANSWER] = clock.look(warp, CLOCKS[number >> LANES], self.elapsed, place.loop)

    def _find_places(self, launch: NativeLaunch) -> None:
        before = 0
        for place in launch.kernel.layout.places:
            loop = place.instance.code.clock_loops[place.block.index]
            for index, one in enumerate(place.block.instructions):
                self._places[id(place.instance), id(one)] = _Place(before + index, loop)
            before += len(place.block.instructions) + 1

    def end(self, state: LaunchState) -> None:
        """Let the device's clock be at least as late as the last reading when the launch ends."""
        state.clock.skip(max(0, self.elapsed - CYCLES * state.steps_done))
