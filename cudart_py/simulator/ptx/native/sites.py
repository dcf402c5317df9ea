"""Number what machine code refers to: the sites of accesses, the module's variables, and special registers."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..syntax.instructions import Instruction
from .instances import Instance

__all__ = ["Site", "Sites"]


@dataclass(frozen=True)
class Site:
    """A place in the code that may fault or that Python executes: the instruction, and the calls around it."""

    instruction: Instruction
    instance: Instance


@dataclass
class Sites:
    """The numbers of sites, symbols and special registers, each counted from 0, and the library's functions in use."""

    sites: list[Site] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    specials: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def add(self, instruction: Instruction, instance: Instance) -> int:
        """Return the number of a new site."""
        self.sites.append(Site(instruction, instance))
        return len(self.sites) - 1

    def symbol(self, name: str) -> int:
        """Return the number of a variable of the module."""
        return _number(self.symbols, name)

    def special(self, name: str) -> int:
        """Return the number of a special register that is the same for all lanes of a launch."""
        return _number(self.specials, name)


def _number(names: list[str], name: str) -> int:
    if name not in names:
        names.append(name)
    return names.index(name)
