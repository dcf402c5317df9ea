"""Hold one kernel compiled for execution: its functions' blocks and their variants, kept between launches."""

from __future__ import annotations

import threading
from typing import Any

from .codegen import BlockFunction, compile_block, storage_zero
from .control_flow import Code
from .faults import UnsupportedError
from .instructions import Instruction
from .parser import Entry
from .spaces import RESERVED_SHARED

__all__ = ["Context", "Program", "program_of"]

# Beyond this many variants of a block the scalars among its inputs are spread out to arrays.
_MOST_VARIANTS = 6

_building = threading.Lock()


class Context:
    """Tell the code generator about the launch: what is the same for all lanes, and what symbols stand for."""

    def __init__(self, program: Program, uniform_specials: frozenset[str], observed: bool) -> None:
        entry = program.entry
        self._module = entry.module
        self._uniform_specials = uniform_specials
        self.observed = observed
        self.shared_addresses = {name: RESERVED_SHARED + offset for name, offset in entry.shared_offsets.items()}
        self.parameters = {parameter.name: parameter.offset for parameter in entry.params}
        self.functions = entry.module.function_addresses
        self.variables = entry.module.variables

    def special_is_uniform(self, name: str) -> bool:
        """Tell whether a special register is the same for all lanes of any chunk."""
        return name in self._uniform_specials

    def unsupported(self, instruction: Instruction, why: str = "") -> UnsupportedError:
        """Make the error for an instruction outside the subset."""
        where = self._module.source(instruction.file, instruction.line)
        reason = f" ({why})" if why else ""
        return UnsupportedError(
            f"the simulator doesn't support the instruction '{instruction.text}'{reason} at {where}, "
            f"in {instruction.function}"
        )


class Program:
    """Hold the code of a kernel and of the functions it calls, made when they are first reached."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self._codes: dict[str, Code] = {}
        self._bases = 0
        self._contexts: dict[tuple[frozenset[str], bool], Context] = {}
        self.main = self._add(Code(entry.function, 0, True))

    def _add(self, code: Code) -> Code:
        self._codes[code.name] = code
        self._bases += len(code.blocks)
        code.zeros = tuple(storage_zero(ptx_type) for ptx_type in code.types)
        code.variants = {}
        return code

    def code(self, name: str) -> Code | None:
        """Give a device function's code, or None when the module has no body for it."""
        if name not in self._codes:
            function = self.entry.module.function(name)
            if function is None:
                return None
            with _building:
                self._add(Code(function, self._bases, False))
        return self._codes[name]

    def context(self, uniform_specials: frozenset[str], observed: bool) -> Context:
        """Give the code generator's view of launches of one shape."""
        key = (uniform_specials, observed)
        if key not in self._contexts:
            self._contexts[key] = Context(self, uniform_specials, observed)
        return self._contexts[key]


def variant(code: Code, index: int, uniform: tuple[bool, ...], context: Context) -> tuple[BlockFunction, bool]:
    """Give the function of a block for these scalar inputs, and whether scalars must be spread out first."""
    key: tuple[Any, ...] = (index, uniform, context)
    known: tuple[BlockFunction, bool] | None = code.variants.get(key)
    if known is not None:
        return known
    counter = (index, context)
    count = code.variants.get(counter, 0)
    if count < _MOST_VARIANTS or not any(uniform):
        made = compile_block(code, code.blocks[index], uniform, context), False
    else:
        made = variant(code, index, (False,) * len(uniform), context)[0], True
    code.variants[counter] = count + 1
    code.variants[key] = made
    return made


def program_of(entry: Entry) -> Program:
    """Give an entry's program, made at its first launch."""
    program: Program | None = entry.program
    if program is None:
        with _building:
            program = entry.program
            if program is None:
                program = entry.program = Program(entry)
    return program
