"""The environment for which a block is compiled."""

from __future__ import annotations

from ..faults import UnsupportedError
from ..syntax.instructions import Immediate, Instruction, Symbol
from ..syntax.parser import Entry
from ..windows import RESERVED_SHARED


class Environment:
    """A kernel's symbols, the special registers that all lanes of a chunk share, and whether launches are observed."""

    def __init__(self, entry: Entry, uniform_specials: frozenset[str], observed: bool) -> None:
        self._module = entry.module
        self.uniform_specials = uniform_specials
        self.observed = observed
        self.shared_addresses = {name: RESERVED_SHARED + offset for name, offset in entry.shared_offsets.items()}
        self.parameters = {parameter.name: parameter.offset for parameter in entry.params}
        self.variables = entry.module.variables
        self._constants = {"WARP_SZ": 32} | entry.module.code_addresses | self.parameters | self.shared_addresses

    def constant_of(self, symbol: Symbol) -> Immediate | None:
        """Return the value of a symbol that is the same in every launch; addresses wrap at the width of their type."""
        value = self._constants.get(symbol.name)
        return None if value is None else Immediate(value + symbol.offset)

    def unsupported(self, instruction: Instruction, why: str = "") -> UnsupportedError:
        """Return the error for an instruction that isn't simulated."""
        where = self._module.places.of(instruction)
        reason = f" ({why})" if why else ""
        return UnsupportedError(
            f"the simulator doesn't support the instruction '{instruction.text}'{reason} at {where}, "
            f"in {instruction.function}"
        )
