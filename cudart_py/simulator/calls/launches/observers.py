"""The observers of a launch: the counters and recorders of open profiles, and the checks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...checks import findings
from ...checks.launch_checks import LaunchChecks
from ...ptx.running.observer import AccessCount, AccessRecords, BlockCount, MatrixPiece, MatrixRows, Observer
from . import debugger, profiles

if TYPE_CHECKING:
    from ...ptx.compiling.analysis.control_flow import Block
    from ...ptx.faults import Fault
    from ...ptx.running.groups import Group
    from ...ptx.running.launch import LaunchState
    from ...ptx.running.memory.addresses import Address, Mixed
    from ...ptx.running.scheduler import Chunk
    from ...ptx.syntax.instructions import Instruction


class Observers(Observer):
    """Several observers of one launch, called one after another for each event."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers
        self.stepped = any(one.stepped for one in observers)
        self.can_restart = all(one.can_restart for one in observers)

    def start(self, state: LaunchState) -> None:
        for one in self._observers:
            one.start(state)
        watched = [one.watch for one in self._observers]
        self.watch = None if None in watched else frozenset().union(*filter(None, watched))

    def stepped_from(self, first: int) -> int:
        return min(one.stepped_from(first) for one in self._observers if one.stepped)

    def restart(self, state: LaunchState) -> None:
        for one in self._observers:
            one.restart(state)

    def records(self) -> AccessRecords:
        return next(one for one in self._observers if "checks" in (one.watch or ())).records()

    def block(self, group: Group, block: Block) -> None:
        for one in self._observers:
            one.block(group, block)

    def executed(self, group: Group, block: Block) -> None:
        for one in self._observers:
            one.executed(group, block)

    def unwritten(self, group: Group, slot: int) -> None:
        for one in self._observers:
            one.unwritten(group, slot)

    def outside(self, group: Group, site: Instruction | None, position: int) -> None:
        for one in self._observers:
            one.outside(group, site, position)

    def deserted(self, group: Group, site: Instruction | None, position: int) -> None:
        for one in self._observers:
            one.deserted(group, site, position)

    def apart(self, group: Group, site: Instruction, position: int, other: Instruction) -> None:
        for one in self._observers:
            one.apart(group, site, position, other)

    def passing(self, group: Group, block: Block, position: int, barrier: Instruction) -> None:
        for one in self._observers:
            one.passing(group, block, position, barrier)

    def access(
        self, group: Group, kind: str, address: Any, offset: int, size: int, site: Instruction, values: tuple[Any, ...]
    ) -> None:
        for one in self._observers:
            one.access(group, kind, address, offset, size, site, values)

    def matrix(
        self, group: Group, kind: str, pieces: Sequence[MatrixPiece], rows: MatrixRows | None, site: Instruction
    ) -> None:
        for one in self._observers:
            one.matrix(group, kind, pieces, rows, site)

    def texture(self, group: Group, positions: Any, places: Any, site: Instruction) -> None:
        for one in self._observers:
            one.texture(group, positions, places, site)

    def object_access(
        self, group: Group, kind: str, positions: Any, address: Address, size: int, site: Instruction, values: Any
    ) -> None:
        for one in self._observers:
            one.object_access(group, kind, positions, address, size, site, values)

    def fence(self, group: Group, site: Instruction) -> None:
        for one in self._observers:
            one.fence(group, site)

    def bulk(self, group: Group, kind: str, units: Mixed, size: int, barriers: Any, site: Instruction) -> None:
        for one in self._observers:
            one.bulk(group, kind, units, size, barriers, site)

    def copies(self, group: Group, site: Instruction, event: str, allowed: int) -> None:
        for one in self._observers:
            one.copies(group, site, event, allowed)

    def shuffle(self, group: Group, site: Instruction, mode: str, lane: Any, control: Any) -> None:
        for one in self._observers:
            one.shuffle(group, site, mode, lane, control)

    def branch(self, group: Group, site: Instruction | None, taken: Any) -> None:
        for one in self._observers:
            one.branch(group, site, taken)

    def barrier(self, group: Group, site: Instruction, event: str) -> None:
        for one in self._observers:
            one.barrier(group, site, event)

    def exit(self, group: Group) -> None:
        for one in self._observers:
            one.exit(group)

    def never_ends(self, chunks: Sequence[Chunk]) -> bool:
        return any(one.never_ends(chunks) for one in self._observers if one.stepped)

    def ended(self, chunk: Chunk) -> None:
        for one in self._observers:
            one.ended(chunk)

    def failed(self, chunk: Chunk, fault: Fault) -> None:
        for one in self._observers:
            one.failed(chunk, fault)

    def counted(self, blocks: Iterable[BlockCount], accesses: Iterable[AccessCount]) -> None:
        for one in self._observers:
            one.counted(blocks, accesses)

    def finish(self, state: LaunchState) -> None:
        for one in self._observers:
            one.finish(state)


def observer() -> Observer | None:
    """Return the observer of a launch that begins now, or None."""
    watching = profiles.profile_observers()
    recorder = debugger.recorder()
    if recorder is not None:
        # First, so that a finding of the others belongs to a moment that is recorded.
        watching.insert(0, recorder)
    if findings.mode() == "off":
        findings.note_unchecked_launch()
    else:
        watching.append(LaunchChecks() if recorder is None else LaunchChecks(recorder.finding))
    if len(watching) < 2:
        return watching[0] if watching else None
    return Observers(*watching)
