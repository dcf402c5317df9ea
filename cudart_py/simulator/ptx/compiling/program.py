"""A kernel compiled for execution: the blocks of its functions and their compiled variants, kept between launches."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any

from ..syntax.parser import Entry
from .codegen import BlockFunction, compile_block, storage_zero
from .control_flow import Code
from .environment import Environment
from .opcodes import form_of

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
        # The time in seconds that the kernel's launches have taken with NumPy, and the estimate of the cost of machine
        # code; and the number and time of the launches in which mistakes were found.
        self.seconds = 0.0
        self.launches_with_mistakes = 0
        self.seconds_with_mistakes = 0.0
        self.estimate: Any = None
        self._codes: dict[str, Code] = {}
        self._bases = 0
        self._environments: dict[tuple[frozenset[str], bool], Environment] = {}
        self.main = self._add(Code(entry.function, 0, True, stepped))

    def _add(self, code: Code) -> Code:
        self._codes[code.name] = code
        self._bases += len(code.blocks)
        code.zeros = tuple(storage_zero(ptx_type) for ptx_type in code.types)
        code.variants = {}
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


def stepped_program_of(entry: Entry) -> Program:
    """Return an entry's program for a debugger; build it at the first launch."""
    program: Program | None = entry.stepped_program
    if program is None:
        program = entry.stepped_program = Program(entry, stepped=True)
    return program


def program_of(entry: Entry) -> Program:
    """Return an entry's program; build it at the first launch."""
    program: Program | None = entry.program
    if program is None:
        with _building:
            program = entry.program
            if program is None:
                program = entry.program = Program(entry)
    return program
