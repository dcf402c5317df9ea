"""Assign numbers to what machine code refers to: sites of accesses, the module's variables, and special registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from ..syntax.instructions import Instruction
from .instances import Instance, Layout


@dataclass(frozen=True)
class Site:
    """A place in the code that may fault or that Python executes: an instruction in one copy of a function.

    `operand` is the index of the address among the operands of an access. An asynchronous copy has two addresses, and
    so two sites.
    """

    instruction: Instruction
    instance: Instance
    operand: int = 0


@dataclass
class Sites:
    """The numbers of sites, symbols and special registers, each counted from 0, and the features that the code uses.

    `counted` describes the rows of access counts: each is the number of a site and the kind, space and size in bytes of
    its access. The checks record accesses in pieces of ``1 << shift`` bytes. `alone` says that each warp runs to its
    end before the next one starts, so all warps use the same warp state, and `spins` that lanes may wait for lanes of
    other blocks. `atomics` says that the code has atomics, `calls` that it calls Python, and `copies`, `fences` and
    `clocks` that the checks follow its asynchronous copies, its fences and its barriers in memory.
    """

    sites: list[Site] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    specials: list[str] = field(default_factory=list)
    counted: list[tuple[int, str, str, int]] = field(default_factory=list)
    shift: int = 2
    alone: bool = False
    spins: bool = False
    atomics: bool = False
    calls: bool = False
    copies: bool = False
    fences: bool = False
    clocks: bool = False
    bulk: bool = False

    def add(self, instruction: Instruction, instance: Instance, operand: int = 0) -> int:
        """Add a site and return its number."""
        self.sites.append(Site(instruction, instance, operand))
        return len(self.sites) - 1

    def description(self, layout: Layout) -> dict[str, Any]:
        """Return the numbers in a form that JSON can represent.

        A site becomes the number of its basic block, the index of its instruction in the block, and the index of its
        operand in the instruction.
        """
        places = {
            (id(place.instance), id(instruction)): (number, index)
            for number, place in enumerate(layout.places)
            for index, instruction in enumerate([*place.block.instructions, place.block.terminator.instruction])
        }
        sites = [(*places[id(site.instance), id(site.instruction)], site.operand) for site in self.sites]
        return {**vars(self), "sites": sites}

    @classmethod
    def restored(cls, layout: Layout, description: dict[str, Any]) -> Sites:
        """Return the numbers that a description represents."""
        found = cls(**{one.name: description[one.name] for one in fields(cls) if one.name != "sites"})
        found.counted = [(site, kind, space, size) for site, kind, space, size in description["counted"]]
        for number, index, operand in description["sites"]:
            place = layout.places[number]
            instructions = [*place.block.instructions, place.block.terminator.instruction]
            instruction = instructions[index]
            assert instruction is not None
            found.add(instruction, place.instance, operand)
        return found

    def count(self, site: int, kind: str, spaces: Sequence[str], size: int) -> int:
        """Add one row of counts per space that an access may reach; return the number of the first row."""
        self.counted += [(site, kind, space, size) for space in spaces]
        return len(self.counted) - len(spaces)

    def symbol(self, name: str) -> int:
        """Return the number of a variable of the module."""
        return _number(self.symbols, name)

    def special(self, name: str) -> int:
        """Return the number of a special register whose value is the same for all lanes of a launch."""
        return _number(self.specials, name)


def _number(names: list[str], name: str) -> int:
    if name not in names:
        names.append(name)
    return names.index(name)
