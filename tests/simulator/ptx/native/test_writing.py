"""Machine code can be written for each spelling of each opcode, with each set of events that observers watch."""

import random
import re
from collections.abc import Sequence
from functools import cache

import pytest

from cudart_py.simulator.ptx import load_module
from cudart_py.simulator.ptx.compiling.emitters.lowered import Lowers
from cudart_py.simulator.ptx.compiling.opcode_table.opcodes import TABLE
from cudart_py.simulator.ptx.compiling.program import program_of
from tests.simulator.ptx.machine import HEAD
from tests.simulator.ptx.spellings import DECLARATIONS, MODULE, Extent, failures, statements

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

import llvmlite.binding as llvm
from llvmlite import ir

from cudart_py.simulator.ptx.native.errors import UnsupportedInstruction
from cudart_py.simulator.ptx.native.instances import lay_out
from cudart_py.simulator.ptx.native.library.functions import NAMES, build_function
from cudart_py.simulator.ptx.native.machine import build
from cudart_py.simulator.ptx.native.sites import Sites

LOCAL_SIZE = 1024
TOGETHER = 60
WATCHED = ("", "checks counters")
REST = ("checks", "counters", "checks undefined", "counters clusters", "checks clusters")


def write(texts: Sequence[str], watch: frozenset[str], *, reads: bool) -> None:
    """Write the machine code of a kernel with some instructions, of whose registers none is ever written.

    If `reads` is true, LLVM reads the code without compiling it, together with that of the library's functions.
    """
    own = (re.sub(r"\b(next|targets)\b", rf"\g<1>_{number}", text) for number, text in enumerate(texts))
    body = "\n".join(f"{text} next_{number}:" for number, text in enumerate(own))
    kernel = f".visible .entry k(.param .align 16 .b8 out[256]) {{ {DECLARATIONS} {body} ret; }}"
    program = program_of(load_module(f"{HEAD}{MODULE}{kernel}").entries["k"])
    try:
        layout = lay_out(program, LOCAL_SIZE, "undefined" in watch)
        module, sites = build(program, layout, LOCAL_SIZE, watch)
    except UnsupportedInstruction:
        for text in texts if len(texts) > 1 else ():
            write([text], watch, reads=reads)
        return
    assert Sites.restored(layout, sites.description(layout)) == sites
    if reads:
        read(module)


def read(module: ir.Module) -> None:
    llvm.parse_assembly(str(module)).verify()
    for function in module.functions:
        if not function.blocks and function.name.partition(".")[0] in NAMES:
            read_function(function.name)


@cache
def read_function(name: str) -> None:
    module = ir.Module(name, context=ir.Context())
    build_function(module, name)
    read(module)


def check(texts: Sequence[str], watch: str, *, reads: bool = False) -> None:
    def write_some(some: Sequence[str]) -> None:
        write(some, frozenset(watch.split()), reads=reads)

    for start in range(0, len(texts), TOGETHER):
        assert failures(texts[start : start + TOGETHER], write_some) == []


# Only the checks look at instructions that have nothing to do with memory or with other lanes.
CALCULATING = {name for name, rows in TABLE.items() if all(isinstance(row.emit, Lowers) for row in rows)}


@pytest.mark.parametrize("watch", WATCHED, ids=["plain", "observed"])
@pytest.mark.parametrize("name", TABLE)
def test_machine_code_can_be_written_for_the_spellings_of_an_opcode(name: str, watch: str) -> None:
    if watch or name not in CALCULATING:
        check(statements(name), watch)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", TABLE)
def test_llvm_can_read_machine_code_for_random_sets_of_events(name: str) -> None:
    for watch in random.sample([*WATCHED, *REST], 2):
        check(statements(name, Extent.WORDS), watch, reads=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", TABLE)
def test_machine_code_can_be_written_for_all_pairs_of_words_in_random_styles(name: str) -> None:
    check(statements(name, Extent.PAIRS), "checks counters")
