"""Everything that looks through the instructions of a kernel accepts each spelling of each opcode.

Each instruction has a kernel to itself, because some of these scans end at the first instruction that decides their
answer. The instruction is in a loop: its operands have been loaded, and its result decides whether the loop goes on.
"""

import re
from collections.abc import Sequence

import numpy as np
import pytest

from cudart_py.simulator.checks.uninitialised.byte_rules import Rule, loaded, rules, undefined, widened, width
from cudart_py.simulator.checks.uninitialised.copied_structures import copied_structures, copies_of
from cudart_py.simulator.checks.uninitialised.stored_structures import paddings_of
from cudart_py.simulator.counters.chains import longest_chains
from cudart_py.simulator.counters.launch_counters import executed_instructions
from cudart_py.simulator.counters.machine_code import machine_code
from cudart_py.simulator.debugging.repeating.repeats import can_be_undone
from cudart_py.simulator.debugging.symbols.lines import Lines
from cudart_py.simulator.ptx import Launch, load_module
from cudart_py.simulator.ptx.compiling.analysis.control_flow import Code
from cudart_py.simulator.ptx.compiling.analysis.guessed_loads import GuessedLoads
from cudart_py.simulator.ptx.compiling.analysis.reachability import Meetings, lies_past, reachable
from cudart_py.simulator.ptx.compiling.codegen import compile_instruction
from cudart_py.simulator.ptx.compiling.opcode_table.opcodes import TABLE, form_of
from cudart_py.simulator.ptx.compiling.program import program_of
from cudart_py.simulator.ptx.native.compile_policy import numpy_seconds
from cudart_py.simulator.ptx.running.clock import Clock
from cudart_py.simulator.ptx.running.launch import LaunchState
from cudart_py.simulator.ptx.syntax.instructions import Instruction
from cudart_py.simulator.ptx.syntax.parser import Entry
from cudart_py.simulator.ptx.syntax.types import type_size
from tests.simulator.ptx.machine import HEAD, PROPERTIES, Memory
from tests.simulator.ptx.spellings import DECLARATIONS, MODULE, Extent, failures, statements

MEMORY = Memory(1 << 16)
TOGETHER = 500
REGISTER = re.compile(r"\b([fp]?)(same|each)(\d*)_(\d)\b")


def looped(name: str, text: str) -> str:
    """Return a kernel whose loop consists of loads of an instruction's registers and the instruction."""
    registers = sorted(set(REGISTER.findall(text)))
    loads = (
        f"ld.global.{letter or 'b'}{bits} {letter}{kind}{bits}_{number}, [memory];"
        for letter, kind, bits, number in registers
        if bits
    )
    results = [condition(*found) for found in registers if found[1] == "same"]
    return (
        f".visible .entry {name}(.param .align 16 .b8 out[256]) {{ {DECLARATIONS} ld.param.u64 memory, [out]; "
        f"again: {' '.join(loads)} {text} next: {' '.join(results[:1])} @peach_7 bra again; ret; }}\n"
    )


def condition(letter: str, kind: str, bits: str, number: str) -> str:
    """Return instructions that compute a loop's condition from a register."""
    register = f"{letter}{kind}{bits}_{number}"
    if bits == "8":
        return f"cvt.u16.u8 each16_7, {register}; setp.ne.b16 peach_7, each16_7, 9;"
    if bits == "128":
        return f"mov.b128 {{each64_7, each64_6}}, {register}; setp.ne.b64 peach_7, each64_7, 9;"
    if letter == "f":
        return f"setp.neu.f{bits} peach_7, {register}, 0d4022000000000000;"
    return f"setp.ne.b{bits} peach_7, {register}, 9;" if bits else f"mov.pred peach_7, {register};"


def scan(entry: Entry) -> None:
    """Look through a kernel as the engines, checks, counters and debugger do, and check what is easy to know."""
    launch = Launch(entry, (2, 1, 1), (32, 1, 1), parameters=bytes(256))
    state = LaunchState(launch, MEMORY, {}, None, None, PROPERTIES, None, Clock(), lambda: None)
    program, site = state.program, entry.body.instructions[entry.body.labels["next"] - 1]
    assert 0 <= program.local_shift <= 2
    assert numpy_seconds(state) > 0
    assert not paddings_of(entry), "a single store has no padding beside it"
    assert can_be_undone(launch) == (not site.opcode.startswith("sust"))
    assert Lines(entry).source(entry.body) == ""
    stepped = program_of(entry, stepped=True).main
    assert all(len(block.instructions) <= 1 for block in stepped.blocks)
    assert not copies_of(stepped), "a single store copies no structure"
    for code in (program.main, stepped):
        scan_blocks(code)
    guessed, form = GuessedLoads(program), form_of(site)
    assert not guessed.contain(program.main, site) or form.row.access == "ld"
    assert machine_code(form).issued >= 1
    check_rules(program.main, site)
    if not form.row.ends:
        compile_instruction(program.main, site, program.environment(frozenset(), observed=True))


def scan_blocks(code: Code) -> None:
    assert not Meetings(lambda block: []).exist_in(code), "no branch has a member mask on both sides"
    assert len(code.clock_loops) == len(code.blocks)
    assert longest_chains(code).keys() <= {block.index for block in code.blocks}
    for block in code.blocks:
        assert not copied_structures(code, block.instructions)
        assert {*executed_instructions(block)} <= {*block.instructions, block.terminator.instruction}
        here = [(code, block.index)]
        assert not lies_past(block, here, here, reachable), "no block is past itself"


def check_rules(code: Code, site: Instruction) -> None:
    """Check the rules of an instruction for uninitialised values, and the marks of the registers that it loads."""
    form = form_of(site)
    _, writes = code.touched(site)
    for rule in rules(code, site, form):
        assert rule.slot in writes
        assert not isinstance(rule, Rule) or len(rule.sources) == width(code, rule.slot)
    if form.row.access in ("ld", "atom"):
        for slot in writes:
            whole = undefined(code, slot)
            size = min(type_size(form.type), 4 if form.row.converges else 8)
            (marks,) = widened(code, site, slot, 0, np.ones((1, size), np.bool_)).tolist()
            assert marks & 0xFF & ~whole == 0
            assert loaded(code, site, slot) & 0xFF & ~whole == 0


def scan_all(texts: Sequence[str]) -> None:
    """Scan a kernel for each instruction."""
    module = load_module(f"{HEAD}{MODULE}{''.join(looped(f'k{n}', text) for n, text in enumerate(texts))}")
    for entry in module.entries.values():
        scan(entry)


@pytest.mark.parametrize("name", TABLE)
def test_every_scan_accepts_the_spellings_of_an_opcode(name: str) -> None:
    assert failures(statements(name), scan_all) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", TABLE)
def test_every_scan_accepts_all_pairs_of_words_in_random_styles(name: str) -> None:
    texts = statements(name, Extent.PAIRS)
    for start in range(0, len(texts), TOGETHER):
        assert failures(texts[start : start + TOGETHER], scan_all) == []
