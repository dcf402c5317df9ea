"""The environment for which a block is compiled."""

from __future__ import annotations

from ..faults import UnsupportedError
from ..syntax.instructions import Instruction
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
        self.functions = entry.module.code_addresses
        self.variables = entry.module.variables

    def unsupported(self, instruction: Instruction, why: str = "") -> UnsupportedError:
        """Return the error for an instruction that isn't simulated."""
        where = self._module.places.of(instruction)
        reason = f" ({why})" if why else ""
        return UnsupportedError(
            f"the simulator doesn't support the instruction '{instruction.text}'{reason} at {where}, "
            f"in {instruction.function}"
        )
