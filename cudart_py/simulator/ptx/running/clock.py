"""The clock of a device, which advances with the instructions that are executed, and faster where lanes wait for it.

A launch's time goes on where that of the launch before it ended, and depends on nothing but what kernels execute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .groups import Group

# The cycles of an instruction that waits for the one before it.
_CYCLES = 4
# The hardware's global timer counts in steps of so many nanoseconds.
_TICK = 32
_LONGEST_NAP = 1_000_000
# A read in a wait advances the clock by this part of the wait so far, so that 10**9 cycles take a few hundred reads.
_LEAP = 16
# Waits that never end don't make the clock overflow.
_LONGEST_LEAP = 1 << 36
# A read so many cycles after the last one of a loop belongs to another wait.
_NEAR = 10_000
_KILOHERTZ = 1_980_000


class Clock:
    """Count the cycles of a device whose clock has a frequency in kilohertz."""

    def __init__(self, kilohertz: int = _KILOHERTZ) -> None:
        self._kilohertz = kilohertz
        self._passed = 0

    def cycles(self, steps: int) -> int:
        """Return the time in cycles when a launch has executed so many instructions."""
        return self._passed + _CYCLES * steps

    def look(self, group: Group, name: str, steps: int, loop: int) -> int:
        """Return the value of a clock's register; `loop` is where the loop begins that waits for it, or -1."""
        now = self.cycles(steps)
        if loop >= 0:
            wait = group.wait
            if wait is not None and wait[0] == loop and now - wait[2] < _NEAR:
                leap = min((now - wait[1]) // _LEAP, _LONGEST_LEAP)
                self._passed += leap
                now += leap
                group.wait = loop, wait[1], now
            else:
                group.wait = loop, now, now
        value = now if name.startswith("%clock") else now * 1_000_000 // self._kilohertz // _TICK * _TICK
        if name.endswith("64") or name == "%globaltimer":
            return value
        return value >> 32 & 0xFFFFFFFF if name.endswith("_hi") else value & 0xFFFFFFFF

    def nap(self, nanoseconds: int) -> None:
        """Advance by the nanoseconds that a thread sleeps, a millisecond at most."""
        self._passed += min(nanoseconds, _LONGEST_NAP) * self._kilohertz // 1_000_000

    def end(self, steps: int) -> None:
        """End a launch that has executed `steps` instructions; the next one goes on from its time."""
        self._passed = self.cycles(steps)
