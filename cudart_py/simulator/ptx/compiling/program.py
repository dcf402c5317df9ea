"""A kernel compiled for execution: the blocks of its functions and their compiled variants, kept between launches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from ..syntax.instructions import Function, Symbol
from ..syntax.parser import Entry
from ..syntax.types import type_size
from .analysis.control_flow import Block, Code
from .analysis.wait_loops import Waiting, waiting_in
from .codegen import BlockFunction, compile_block
from .opcode_table.opcodes import form_of
from .writer import Environment

# Once a block has this many variants, the scalars among its inputs are expanded to arrays.
_MOST_VARIANTS = 6

_building = threading.Lock()


class Program:
    """The code of a kernel and of the functions that it calls; each is built when it is first reached.

    A `stepped` program is for a debugger; see `Code`.
    """

    def __init__(self, entry: Entry, stepped: bool = False) -> None:
        self.entry = entry
        self.is_stepped = stepped
        # The kernel in machine code, keyed by the size of local memory, the set of watched events and the processor. A
        # value is None if the kernel can't be compiled; `unsupported_reason` then says why.
        self.native: dict[tuple[int, frozenset[str], Any], Any] = {}
        self.unsupported_reason = ""
        # The keys of `native` for which the cache of machine code had no entry.
        self.not_cached: set[Any] = set()
        # The plans of launches, keyed by everything but the program that they depend on.
        self.plans: dict[tuple[Any, ...], Any] = {}
        # The time in seconds that the kernel's launches have taken with NumPy, and the estimate of the cost of machine
        # code; and the number and time of the launches in which mistakes were found.
        self.seconds = 0.0
        self.launches_with_mistakes = 0
        self.seconds_with_mistakes = 0.0
        self.estimate: Any = None
        self._loops: dict[tuple[int, int], Waiting] = {}
        self._codes: dict[str, Code] = {}
        self._bases = 0
        self._environments: dict[tuple[frozenset[str], bool], Environment] = {}
        self.main = self._add(Code(entry.body, 0, True, stepped))

    def _add(self, code: Code) -> Code:
        self._codes[code.name] = code
        self._bases += len(code.blocks)
        return code

    def code(self, name: str) -> Code | None:
        """Return a device function's code, or None if the module has no body for it."""
        if name not in self._codes:
            function = self.entry.module.function(name)
            if function is None:
                return None
            with _building:
                self._add(Code(function, self._bases, False, self.is_stepped))
        return self._codes[name]

    @cached_property
    def block_scoped(self) -> bool:
        """Return whether the kernel, or a function that it calls, has strong accesses with block scope."""
        return any(
            form.strong and form.scope == "cta"
            for body in (self.entry.body, *self.entry.called)
            for form in map(form_of, body.instructions)
        )

    @cached_property
    def local_shift(self) -> int:
        """Return the binary logarithm of the size of the smallest access to local memory, at most that of a word."""
        sizes = [
            form.vector * type_size(form.type)
            for body in (self.entry.body, *self.entry.called)
            for form in map(form_of, body.instructions)
            if form.types and form.row.access in ("ld", "st", "atom", "red") and form.space in ("local", "generic")
        ]
        return min([4, *sizes]).bit_length() - 1

    def loop_waiting(self, code: Code, target: int, source: int) -> Waiting:
        """Return how probably lanes wait for others in a loop from one block of a code to another.

        The functions that the loop calls count: with `-G`, each atomic is a call.
        """
        key = code.base + target, code.base + source
        if key not in self._loops:
            blocks = code.blocks[target : source + 1]
            called = {body.name: body for block in blocks for body in self._called(block)}
            self._loops[key] = max((*(block.waiting for block in blocks), *map(waiting_in, called.values())))
        return self._loops[key]

    def _called(self, block: Block) -> Iterator[Function]:
        """Yield the functions that a block's terminator may call, and those that they may call."""
        module, instruction = self.entry.module, block.terminator.instruction
        if block.terminator.kind != "call" or instruction is None:
            return
        call = instruction.call
        if not isinstance(call.target, Symbol):
            yield from self.entry.called
        elif (callee := module.function(call.target.name)) is not None:
            yield callee
            yield from module.reachable_bodies(callee)

    def environment(self, uniform_specials: frozenset[str], observed: bool) -> Environment:
        """Return the environment for launches with these scalar special registers, with or without an observer."""
        key = (uniform_specials, observed)
        if key not in self._environments:
            self._environments[key] = Environment(self.entry, uniform_specials, observed)
        return self._environments[key]


def variant(code: Code, index: int, uniform: tuple[bool, ...], environment: Environment) -> tuple[BlockFunction, bool]:
    """Return the function of a block for these scalar inputs, and whether scalars must be expanded to arrays first."""
    key: tuple[Any, ...] = (index, uniform, environment)
    known: tuple[BlockFunction, bool] | None = code.variants.get(key)
    if known is not None:
        return known
    counter = (index, environment)
    count = code.variants.get(counter, 0)
    if count < _MOST_VARIANTS or not any(uniform):
        made = compile_block(code, code.blocks[index], uniform, environment), False
    else:
        made = variant(code, index, (False,) * len(uniform), environment)[0], True
    code.variants[counter] = count + 1
    code.variants[key] = made
    return made


def program_of(entry: Entry, stepped: bool = False) -> Program:
    """Return an entry's program, or the one for a debugger; build it at the first launch."""
    if stepped not in entry.programs:
        with _building:
            if stepped not in entry.programs:
                entry.programs[stepped] = Program(entry, stepped)
    program: Program = entry.programs[stepped]
    return program
