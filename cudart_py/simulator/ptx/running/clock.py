"""A device's clock: it advances with every executed instruction, and faster while lanes wait for it.

Each launch starts at the time at which the previous one ended. The time depends only on what kernels execute.
"""

from __future__ import annotations

from typing import Protocol

# The latency in cycles of an instruction that depends on the one before it.
CYCLES = 4
# The resolution of the hardware's global timer in nanoseconds.
_TICK = 32
_LONGEST_NAP = 1_000_000
# Each read in a wait advances the clock by a 16th of the wait so far, so a wait of 10**9 cycles takes a few hundred
# reads.
_LEAP = 16
# The maximum number of cycles that one read may add. It prevents a wait that never ends from overflowing the clock.
_LONGEST_LEAP = 1 << 36
# A read that comes at least this many cycles after the loop's previous read begins a new wait.
_NEAR = 10_000
_KILOHERTZ = 1_980_000


class Waiter(Protocol):
    """Lanes that may wait for a clock: the first block of their loop, and when the wait and its last reading were."""

    wait: tuple[int, int, int] | None


class Clock:
    """The cycle counter of a device with the given clock frequency in kilohertz."""

    def __init__(self, kilohertz: int = _KILOHERTZ) -> None:
        self._kilohertz = kilohertz
        self._passed = 0
        # The number of times that threads have read the clock.
        self.readings = 0

    def cycles(self, steps: int) -> int:
        """Return the time in cycles after a launch has executed `steps` instructions."""
        return self._passed + CYCLES * steps

    def look(self, waiter: Waiter, name: str, elapsed: int, loop: int) -> int:
        """Read a clock register `elapsed` cycles after the start of the launch.

        `loop` is the first block of the loop that waits for the clock, or -1 for none.
        """
        self.readings += 1
        now = self._passed + elapsed
        if loop >= 0:
            wait = waiter.wait
            if wait is not None and wait[0] == loop and now - wait[2] < _NEAR:
                leap = min((now - wait[1]) // _LEAP, _LONGEST_LEAP)
                self._passed += leap
                now += leap
                waiter.wait = loop, wait[1], now
            else:
                waiter.wait = loop, now, now
        value = now if name.startswith("%clock") else now * 1_000_000 // self._kilohertz // _TICK * _TICK
        if name.endswith("64") or name == "%globaltimer":
            return value
        return value >> 32 & 0xFFFFFFFF if name.endswith("_hi") else value & 0xFFFFFFFF

    def skip(self, cycles: int) -> None:
        """Advance the clock."""
        self._passed += cycles

    def nap(self, nanoseconds: int) -> None:
        """Advance the clock by the time that a thread sleeps, in nanoseconds, but by at most one millisecond."""
        self._passed += min(nanoseconds, _LONGEST_NAP) * self._kilohertz // 1_000_000

    def end(self, steps: int) -> None:
        """End a launch that has executed `steps` instructions; the next launch continues from this time."""
        self._passed = self.cycles(steps)
