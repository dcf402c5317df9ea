"""Every form in the table of opcodes runs, with operands that differ between threads and with ones that don't."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cudart_py.simulator.ptx import Module
from cudart_py.simulator.ptx.library import has_conversion
from cudart_py.simulator.ptx.opcodes import TABLE, Form, Row
from cudart_py.simulator.ptx.operand_types import doubled, fragment_length, type_size
from tests.ptx.machine import Kernels

# The ends of blocks, what other tests run, and what needs a texture.
ELSEWHERE = {"bra", "brx", "call", "ret", "exit", "trap", "tex"}
# How many spellings of a row are tried, spread over all there are.
MOST = 24

PROLOGUE = """
    .reg .b16 same16_<8>, each16_<8>; .reg .b32 same32_<9>, each32_<9>; .reg .b64 same64_<9>, each64_<9>, memory, where;
    .reg .f32 fsame32_<8>, feach32_<8>; .reg .f64 fsame64_<8>, feach64_<8>; .reg .pred psame_<8>, peach_<8>;
    .reg .b8 same8_<8>, each8_<8>; .reg .b128 same128_<8>, each128_<8>;
    .shared .align 16 .b8 tile[4096]; .shared .align 8 .b64 barrier; .local .align 16 .b8 spill[256];
    ld.param.u64 memory, [out];
    mbarrier.init.shared.b64 [barrier], 32;
    mov.u32 each32_8, %tid.x; mov.u32 same32_8, 3; cvt.u64.u32 each64_8, each32_8; mov.u64 same64_8, 3;
    setp.lt.u32 peach_0, each32_8, 7; setp.lt.u32 psame_0, same32_8, 7;
"""


def _prologue() -> str:
    text = PROLOGUE
    for kind in ("same", "each"):
        for number in range(8):
            text += f"cvt.u16.u32 {kind}16_{number}, {kind}32_8; add.u32 {kind}32_{number}, {kind}32_8, {number + 1};"
            text += f"cvt.u8.u32 {kind}8_{number}, {kind}32_8; add.u64 {kind}64_{number}, {kind}64_8, {number + 1};"
            text += f"cvt.rn.f32.u32 f{kind}32_{number}, {kind}32_8; cvt.rn.f64.u32 f{kind}64_{number}, {kind}32_8;"
            text += f"mov.b128 {kind}128_{number}, {{{kind}64_8, {kind}64_8}};"
            if number:
                text += f"not.pred p{kind}_{number}, p{kind}_0;"
    return text


def _forms(name: str, row: Row) -> list[str]:
    """Return opcodes that a row allows, at most so many, spread over all of them."""
    choices = [sorted(slot.words) + ([""] if slot.optional else []) for slot in row.slots]
    total = 1
    for choice in choices:
        total *= len(choice)
    step = max(total // MOST, 1) | 1
    picked = itertools.islice(itertools.product(*choices), 0, None, step)
    return [".".join([name, *filter(None, words)]) for words in picked]


def _register(kind: str, type_name: str, number: int) -> str:
    if type_name == "pred":
        return f"p{kind}_{number}"
    bits = 8 * type_size(type_name)
    return f"{'f' if type_name in ('f32', 'f64') else ''}{kind}{bits}_{number}"


def _operand(form: Form, pattern: str, kind: str, place: int) -> str:
    pattern = pattern.removesuffix("?")
    number = place + 1
    if pattern == "M":
        parts = form.opcode.split(".")
        if parts[0] == "wmma":
            return "[where]"
        if "param" in form.opcode:
            return "[out]"
        if parts[0] == "mbarrier" or "mbarrier" in parts:
            return "[barrier]"
        shared = any(part.startswith("shared") for part in parts) and not (parts[0] == "cp" and place == 1)
        return "[tile]" if shared else "[spill]" if "local" in parts else "[table]" if "const" in parts else "[memory]"
    if pattern in ("V", "=V"):
        letter = kind if pattern == "V" else "same"
        items = [_register(letter, form.types[0], item) for item in range(form.vector)]
        return items[0] if form.vector == 1 else "{" + ", ".join(items) + "}"
    if pattern == "F":
        count = fragment_length(form.opcode, place)
        return "{" + ", ".join(f"{kind}32_{item}" for item in range(count)) + "}"
    if pattern[0] == "#":
        return "16" if form.opcode.startswith("cp.async.c") else str(min(int(pattern[1:]), 1))
    if pattern == "B":
        return "1"
    if pattern == "N":
        return "32"
    if pattern == "Z":
        return "16"
    if pattern == "A":
        return f"{kind}64_8"
    destination = pattern[0] == "="
    name = pattern.removeprefix("=").partition("|")[0].removesuffix("~")
    if name in ("T", "U", "P"):
        name = form.types[-1 if name == "U" else 0]
    if name == "W":
        name = doubled(form.types[0])
    if destination:
        first = _register("same", name, 0)
        pair = "|" in pattern and any(word in form.opcode for word in ("x2", "all", "elect"))
        return f"{first}|psame_1" if pair else first
    if "shfl" in form.opcode and name == "b32" and place == 4:
        return "-1"
    if form.opcode.startswith(("vote", "match", "redux", "elect")) and name == "b32" and pattern != "T":
        return "-1"
    if form.opcode == "bar.warp.sync":
        return "-1"
    return _register(kind, name, number)


def _instruction(row: Row, opcode: str, kind: str) -> str:
    form = row.match(opcode.split(".")[0], opcode.split(".")[1:])
    assert form is not None, opcode
    patterns = [pattern for pattern in form.operands if not pattern.endswith("?")]
    if "L2::cache_hint" in opcode:
        patterns.append("b64")
    operands = [_operand(form, pattern, kind, place) for place, pattern in enumerate(patterns)]
    return f"{opcode} {', '.join(operands)};"


def _module(body: str) -> Module:
    head = ".version 8.7\n.target sm_90\n.address_size 64\n.const .align 16 .b8 table[256];\n"
    return Module(f"{head}.visible .entry k(.param .align 16 .b8 out[256]) {{ {_prologue()}\n{body}\n}}")


ROWS = [(name, place) for name, rows in TABLE.items() if name not in ELSEWHERE for place in range(len(rows))]


def _runs(name: str, row: Row, opcode: str) -> bool:
    """Tell whether a spelling of a row is one that there is, and that can stand in a kernel by itself."""
    form = row.match(name, opcode.split(".")[1:])
    assert form is not None, opcode
    if name == "cvt":
        return has_conversion(form.opcode)
    if name == "wmma":
        fragments = [place for place, pattern in enumerate(form.operands) if pattern == "F"]
        return all(fragment_length(form.opcode, place) for place in fragments)
    # What a call is given: tests of calls have it.
    return not (name == "st" and ".param" in opcode)


@pytest.mark.parametrize("kind", ["each", "same"])
@pytest.mark.parametrize(("name", "place"), ROWS)
def test_a_row_runs(name: str, place: int, kind: str) -> None:
    """Whatever the table promises when a module is loaded can be executed."""
    row = TABLE[name][place]
    body = ""
    for opcode in filter(lambda opcode: _runs(name, row, opcode), _forms(name, row)):
        body += f"mov.u64 where, {'tile' if '.shared' in opcode else 'memory'}; {_instruction(row, opcode, kind)}\n"
    kernels = Kernels(_module(body))
    memory = kernels.put(np.zeros(8192, np.uint8))
    kernels.launch("k", 1, 32, memory.to_bytes(8, "little") + bytes(248))
