"""Every form in the table of opcodes runs, with operands that differ between threads, and with uniform ones."""

import itertools

import numpy as np
import pytest

from cudart_py.simulator.ptx import load_module
from cudart_py.simulator.ptx.compiling.forms import Form
from cudart_py.simulator.ptx.compiling.fragments import fragment_length, register_type
from cudart_py.simulator.ptx.compiling.opcode_table.opcodes import ROWS, TABLE, find_forms
from cudart_py.simulator.ptx.syntax.types import type_size
from tests.simulator.ptx.machine import HEAD, Kernels, spellings

# Instructions that other tests run: those that end basic blocks, and those that need a texture or a surface.
ELSEWHERE = {"bra", "brx", "call", "ret", "exit", "trap", "tex", "tld4", "suld", "sust"}
# Instructions that access rows of matrices in shared memory, even through generic addresses.
ROWS_IN_SHARED = {"ldmatrix", "stmatrix"}

PROLOGUE = """
    .reg .b16 same16_<8>, each16_<8>; .reg .b32 same32_<9>, each32_<9>; .reg .b64 same64_<9>, each64_<9>, memory, where;
    .reg .f32 fsame32_<8>, feach32_<8>; .reg .f64 fsame64_<8>, feach64_<8>; .reg .pred psame_<8>, peach_<8>;
    .reg .b8 same8_<8>, each8_<8>; .reg .b128 same128_<8>, each128_<8>;
    .shared .align 16 .b8 tile[4096]; .shared .align 8 .b64 barrier; .local .align 16 .b8 spill[256];
    ld.param.u64 memory, [out];
    mbarrier.init.shared.b64 [barrier], 1048575;
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


def _register(kind: str, type_name: str, number: int) -> str:
    if type_name == "pred":
        return f"p{kind}_{number}"
    bits = 8 * type_size(type_name)
    return f"{'f' if type_name in ('f32', 'f64') else ''}{kind}{bits}_{number}"


def _memory(form: Form, place: int) -> str:
    """Return an address operand in the state space that the form accesses."""
    row, words = form.row, form.words
    if "mbarrier::complete_tx::bytes" in words:
        return "[barrier]" if place else "[tile]"
    if row.converges:
        return "[where]"
    if row.access == "mbarrier" or "mbarrier" in words:
        return "[barrier]"
    if row.access == "cp":
        return "[memory]" if place else "[tile]"
    return {"shared": "[tile]", "local": "[spill]", "const": "[table]", "param": "[out]"}.get(form.space, "[memory]")


def _operand(form: Form, pattern: str, kind: str, place: int) -> str:
    row = form.row
    if "bulk" in form.words and pattern[0] != "#":
        # A bulk copy of 16 bytes takes two memory operands, a size, a barrier, and a mask of the blocks of a cluster.
        memory = {"global": "[memory]", "shared": "[tile]"}
        return {"u32": "16", "u16": "1"}.get(pattern) or ("[barrier]" if place == 3 else memory[form.spaces[place]])
    if pattern == "M":
        return _memory(form, place)
    if pattern in ("V", "=V"):
        letter = kind if pattern == "V" else "same"
        items = [_register(letter, form.types[0], item) for item in range(form.vector)]
        return items[0] if form.vector == 1 else "{" + ", ".join(items) + "}"
    if pattern in ("F", "=F", "+F"):
        bits = register_type(form, place)[1:]
        return "{" + ", ".join(f"{kind}{bits}_{item % 8}" for item in range(fragment_length(form, place))) + "}"
    if row.name == "wgmma" and pattern == "b64":
        return "64"  # a matrix descriptor: 64 * 16 bytes is the first address after the reserved shared memory
    if pattern[0] == "#":
        return str(min(int(pattern[1:]), 1))
    if pattern[0] == "@":
        return pattern.rpartition("/")[2].removeprefix("@")
    if pattern in ("A", "B", "N", "Z"):
        return {"A": f"{kind}64_8", "B": "1", "N": "32", "Z": "16"}[pattern]
    name = form.types[0] if pattern.strip("=") == "P" else form.type_of(pattern)
    if pattern[0] == "=":
        first = _register("same", name, 0)
        return f"{first}|psame_1" if "&" in pattern or ("|" in pattern and "all" in form.words) else first
    if row.converges == "members" and place == len(form.operands) - 1:
        return "-1"  # the member mask, which names all lanes
    return _register(kind, name, place + 1)


def _instruction(form: Form, opcode: str, kind: str) -> str:
    patterns = [pattern for pattern in form.operands if not pattern.endswith("?")]
    operands = [_operand(form, pattern, kind, place) for place, pattern in enumerate(patterns)]
    if "L2::cache_hint" in form.words:
        operands.append(_register(kind, "b64", 0))
    return f"{opcode} {', '.join(operands)};"


@pytest.mark.parametrize("name", sorted({row.name for row in ROWS} - ELSEWHERE))
def test_all_rows_of_an_opcode_run(name: str) -> None:
    """Every instruction that the table accepts when a module is loaded can be executed."""
    # Initialise the barrier before each instruction, because one of them invalidates it.
    ready = "mbarrier.init.shared.b64 [barrier], 1048575;" if name == "mbarrier" else ""
    body = ""
    for row in TABLE[name]:
        # The many forms of wgmma differ only in their shapes and types.
        for opcode, form in itertools.islice(spellings(row), 0, None, 5 if name == "wgmma" else 1):
            where = "tile" if form.space == "shared" or name in ROWS_IN_SHARED else "memory"
            generic = "cvta.shared.u64 where, where;" if where == "tile" and form.space == "generic" else ""
            fragments = [place for place, operand in enumerate(form.operands) if operand.lstrip("=+") == "F"]
            # Leave out matrix shapes that do not exist for a type, st.param, which the tests of calls run, and copies
            # of boxes and of tensor maps, which tests/launch runs.
            elsewhere = (name, form.space) == ("st", "param") or "D" in form.operands or "cp_fenceproxy" in form.words
            if all(fragment_length(form, place) for place in fragments) and not elsewhere:
                texts = (_instruction(form, opcode, kind) for kind in ("each", "same"))
                body += "".join(f"{ready} mov.u64 where, {where}; {generic} {text}\n" for text in texts)
    kernel = f".visible .entry k(.param .align 16 .b8 out[256]) {{ {_prologue()}\n{body}\n}}"
    kernels = Kernels(load_module(f"{HEAD}.const .align 16 .b8 table[256];\n{kernel}"))
    memory = kernels.put(np.zeros(8192, np.uint8))
    kernels.launch("k", 1, 32, memory.to_bytes(8, "little") + bytes(248))


def test_all_forms_of_an_opcode_have_the_same_facts() -> None:
    """Code that looks up an instruction's facts uses only its opcode, which several patterns may match."""
    opcodes = {opcode for row in ROWS for opcode, _ in spellings(row)}
    assert [opcode for opcode in opcodes if len({form.row.facts for form in find_forms(opcode)}) > 1] == []
