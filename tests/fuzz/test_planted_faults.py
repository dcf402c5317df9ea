"""The small fixed set of random kernels shows faults in single instructions, as slips of the pen would make them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from unittest import mock

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.ptx import Fault, load_module
from tests.fuzz import oracle
from tests.fuzz.kernels import Kernel, source
from tests.fuzz.test_random_functions import OF_MODE, SEED, kernels_of
from tests.simulator.ptx.machine import Kernels, ptx_of

pytestmark = [
    pytest.mark.needs("profile"),
    pytest.mark.unsanitized("the faults are in the software's kernels"),
    pytest.mark.skipif(oracle.host_compiler() is None, reason="there is no C++ compiler"),
]

# Many times as many as any of the kernels takes.
STEPS = 20_000
# Writes the text that takes an instruction's place, from its opcode and its operands.
Wrong = Callable[..., str]


def plain(opcode: str, *operands: str) -> str:
    return f"{opcode} {', '.join(operands)};"


def exchanged(opcode: str, to: str, a: str, b: str, *rest: str) -> str:
    return plain(opcode, to, b, a, *rest)


def renamed(**words: str) -> Wrong:
    """Return what takes some words of an opcode for others."""
    return lambda opcode, *operands: plain(".".join(words.get(word, word) for word in opcode.split(".")), *operands)


def changed(place: int, operation: str, value: int) -> Wrong:
    """Return what changes an operand first."""

    def wrong(opcode: str, *operands: str) -> str:
        others = (*operands[:place], "changed", *operands[place + 1 :])
        return f"{{ .reg .b32 changed; {operation} changed, {operands[place]}, {value}; {plain(opcode, *others)} }}"

    return wrong


def twice_rounded(opcode: str, to: str, a: str, b: str, c: str) -> str:
    kind = opcode.removeprefix("fma.")
    return f"{{ .reg .{kind[3:]} product; mul.{kind} product, {a}, {b}; add.{kind} {to}, product, {c}; }}"


def opposite(opcode: str, to: str, condition: str, mask: str) -> str:
    return plain(opcode, to, f"!{condition}", mask)


UNSIGNED = {"s8": "u8", "s16": "u16", "s32": "u32", "s64": "u64"}
OTHER_SIGN = UNSIGNED | {unsigned: signed for signed, unsigned in UNSIGNED.items()}
ORDERED = {"gt": "gtu", "lt": "ltu", "ge": "geu", "le": "leu"}
FAULTS: dict[str, Wrong] = {
    r"sub\.[us](16|32|64)": exchanged,
    r"shr\.s(16|32|64)": renamed(**UNSIGNED),
    r"bfe\.[us](32|64)": changed(3, "add.u32", 1),
    r"bfi\.b(32|64)": changed(3, "add.u32", 1),
    r"cvt\.rni\..*": renamed(rni="rzi"),
    r"cvt\.r[mp]i\..*": renamed(rmi="rpi", rpi="rmi"),
    r"cvt\.[us]\d+\.[us](8|16)": renamed(**OTHER_SIGN),
    r"(min|max)\.[us](16|32|64)": renamed(min="max", max="min"),
    r"setp\.(ge|le)\.[us](16|32|64)": renamed(ge="gt", le="lt"),
    r"setp\.[lg][te]\.s(16|32|64)": renamed(**UNSIGNED),
    r"setp\.(gt|lt|ge|le)u?\.f(32|64)": renamed(**ORDERED, **{other: word for word, other in ORDERED.items()}),
    r"selp\..*": exchanged,
    r"mul\.hi\.[us](32|64)": renamed(**OTHER_SIGN),
    r"mul\.wide\.[us](16|32)": renamed(**OTHER_SIGN),
    r"prmt\.b32": exchanged,
    r"prmt\.b32\.(ecl|ecr)": renamed(ecl="ecr", ecr="ecl"),
    r"shfl\.sync\..*": changed(3, "xor.b32", 1),  # the last lane of a segment is out of range
    r"vote\.sync\.(any|all)\..*": opposite,
    r"redux\.sync\.(min|max)\.s32": renamed(**UNSIGNED),
    r"add\.r[zmp]\.f32": renamed(rz="rn", rm="rn", rp="rn"),
    r"div\.rn\.f(32|64)": renamed(rn="rz"),
    r"fma\.rn\.f(32|64)": twice_rounded,
    r"copysign\.f(32|64)": exchanged,
    r"lop3\.b32.*": exchanged,
    r"shf\.[lr]\..*": exchanged,
}


@functools.cache
def fixed_set() -> list[tuple[Kernel, oracle.Words, str]]:
    """Return the kernels, what C++ makes of them, and their PTX."""
    kernels = [kernel for mode in OF_MODE for kernel in kernels_of(mode)]
    results = oracle.host_results(kernels, SEED)
    return [(kernel, results[kernel.number], ptx_of(source([kernel]), oracle.OPTIONS)) for kernel in kernels]


def shows(kernel: Kernel, right: oracle.Words, ptx: str) -> bool:
    """Return whether damaged PTX gives other results than C++, or doesn't end."""
    damaged = Kernels(load_module(ptx))
    words, out = damaged.put(oracle.inputs(SEED, kernel)), damaged.put(oracle.before(kernel))
    try:
        damaged.launch(kernel.name, kernel.blocks, kernel.threads, words, out, steps=STEPS)
    except Fault:
        return True
    return bool((damaged.get(out, kernel.results, np.uint64) != right).any())


@pytest.mark.exhaustive
@pytest.mark.parametrize(("opcodes", "wrong"), FAULTS.items(), ids=FAULTS)
def test_a_fault_in_an_instruction_shows(opcodes: str, wrong: Wrong) -> None:
    def replaced(match: re.Match[str]) -> str:
        return wrong(match["opcode"], *re.split(r",\s*", match["operands"]))

    instruction = rf"(?<=\s)(?P<opcode>{opcodes.replace('.*', '[^ ;]*')})\s+(?P<operands>[^;]*);"
    damaged = [(kernel, right, *re.subn(instruction, replaced, ptx)) for kernel, right, ptx in fixed_set()]
    with_opcode = sorted((one for one in damaged if one[3]), key=lambda one: -one[3])
    shown = (kernel.number for kernel, right, ptx, _ in with_opcode if shows(kernel, right, ptx))
    assert next(shown, None) is not None, f"kernels {[one[0].number for one in with_opcode]} have the opcode"


def test_an_undo_that_leaves_memory_as_it_is_shows(device: cuda.Device) -> None:
    """Launches whose checks begin again keep what they have written until then."""
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    from cudart_py.simulator.ptx.native.launching.speculation import Speculation  # which needs llvmlite

    kernel = kernels_of("checked")[0]
    with mock.patch.object(Speculation, "undo", return_value=None):
        assert list(oracle.Runs([kernel], SEED).differences(kernel, ["native"], ["checked"]))
