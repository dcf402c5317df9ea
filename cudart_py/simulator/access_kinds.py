"""Tell how instructions access memory: plainly or strongly, with what order, and for what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .ptx.instructions import Instruction, Register, Vector

if TYPE_CHECKING:
    from .ptx.control_flow import Code

__all__ = ["AccessKinds"]

_STRONG = {"volatile", "relaxed", "acquire", "release", "mmio"}
_RELEASING = {"release", "acq_rel"}
_MOVES = {"mov", "cvt"}


class AccessKinds:
    """Keep the answers for the instructions of one launch."""

    def __init__(self) -> None:
        self._strength: dict[int, tuple[bool, bool, str]] = {}
        self._guesses: dict[int, frozenset[int]] = {}

    def strength(self, site: Instruction, kind: str) -> tuple[bool, bool, str]:
        """Tell whether an access is atomic or volatile, whether it releases by itself, and in which scope then."""
        known = self._strength.get(id(site))
        if known is None:
            parts = set(site.parts)
            strong = kind in ("atom", "red") or bool(parts & _STRONG)
            releases = bool(parts & _RELEASING)
            scope = ("cta" if "cta" in parts else "gpu") if releases else ""
            known = self._strength[id(site)] = strong, releases, scope
        return known

    def guesses(self, code: Code, site: Instruction) -> bool:
        """Tell whether a load fetches what a compare-and-swap of the same function compares with."""
        known = self._guesses.get(id(code))
        if known is None:
            known = self._guesses[id(code)] = _guessing_loads(code)
        return id(site) in known


def _guessing_loads(code: Code) -> frozenset[int]:
    """Return the loads of a function whose values come to a compare-and-swap's comparison, by moves alone."""
    writers: dict[int, list[tuple[Instruction, list[int]]]] = {}
    waiting: list[int] = []
    for instruction in code.function.instructions:
        base = instruction.opcode.split(".", 1)[0]
        if base in _MOVES or base == "ld":
            reads, writes = code.touched(instruction)
            for slot in writes:
                writers.setdefault(slot, []).append((instruction, reads if base in _MOVES else []))
        elif base == "atom" and "cas" in instruction.parts:
            compared = instruction.operands[2]
            items = compared.items if isinstance(compared, Vector) else (compared,)
            waiting += [code.slot(item.name) for item in items if isinstance(item, Register)]
    seen = set(waiting)
    loads = set()
    while waiting:
        for instruction, reads in writers.get(waiting.pop(), []):
            if instruction.opcode.startswith("ld"):
                loads.add(id(instruction))
            waiting += [slot for slot in reads if slot not in seen]
            seen.update(reads)
    return frozenset(loads)
