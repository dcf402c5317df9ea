"""The small fixed set of random kernels exposes faults in single instructions, such as a typo would cause.

The faults are planted in the kernels' PTX, which the NumPy engine runs, and in the native engine's machine code.
"""

import dataclasses
import functools
import re
from typing import Any
from unittest import mock

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.ptx import Fault, Module
from tests.fuzz import oracle
from tests.fuzz.kernels import Kernel, source
from tests.fuzz.test_random_functions import OF_MODE, SEED, kernels_of
from tests.simulator.ptx.machine import Kernels, ptx_of

pytestmark = [
    pytest.mark.needs("profile"),
    pytest.mark.unsanitized("the faults are in the software's kernels"),
    pytest.mark.skipif(oracle.host_compiler() is None, reason="there is no C++ compiler"),
]

# Many times more than any of the kernels needs.
STEPS = 20_000
# Three operands that follow an opcode, the first group. The fault exchanges the last two.
THREE = r"\s+([^,;]+), ([^,;]+), ([^,;]+)"
EXCHANGED = r"\1 \2, \4, \3"
# Patterns of instructions and their replacements.
FAULTS = {
    r"(sub\.[us]\d+)" + THREE: EXCHANGED,
    r"shr\.s(\d+)": r"shr.u\1",
    r"(bfe\.\S+)\s+(.+), (.+);": r"{ .reg .b32 more; add.u32 more, \3, 1; \1 \2, more; }",
    r"(bfi\.\S+)\s+(.+), (.+), (.+);": r"{ .reg .b32 more; add.u32 more, \3, 1; \1 \2, more, \4; }",
    r"cvt\.rni": "cvt.rzi",
    r"cvt\.rmi": "cvt.rpi",
    r"cvt\.rpi": "cvt.rmi",
    r"cvt\.s(\d+)\.s(8|16)": r"cvt.u\1.u\2",
    r"cvt\.u(\d+)\.u(8|16)": r"cvt.s\1.s\2",
    r"min\.([us]\d+)": r"max.\1",
    r"max\.([us]\d+)": r"min.\1",
    r"setp\.ge\.([us]\d+)": r"setp.gt.\1",
    r"setp\.(gt|lt|ge|le)\.s": r"setp.\1.u",
    r"setp\.(gt|lt|ge|le)u": r"setp.\1",
    r"(selp\.\S+)" + THREE: EXCHANGED,
    r"mul\.hi\.s": "mul.hi.u",
    r"mul\.hi\.u": "mul.hi.s",
    r"mul\.wide\.u": "mul.wide.s",
    r"(prmt\.b32)" + THREE: EXCHANGED,
    r"prmt\.b32\.ecl": "prmt.b32.ecr",
    # The last lane of a segment is out of range.
    r"(shfl\S+)\s+(.+), (.+), (.+);": r"{ .reg .b32 less; xor.b32 less, \3, 1; \1 \2, less, \4; }",
    r"(vote\.sync\.a\S+)\s+([^,]+), ": r"\1 \2, !",
    r"(redux\.sync\.(?:min|max))\.s32": r"\1.u32",
    r"add\.r[zmp]\.f": "add.rn.f",
    r"div\.rn\.f": "div.rz.f",
    r"fma\.(rn\.(f\d+))\s+(.+), (.+), (.+), (.+);": r"{ .reg .\2 ab; mul.\1 ab, \4, \5; add.\1 \3, ab, \6; }",
    r"(copysign\.\S+)" + THREE: EXCHANGED,
    r"(lop3\.b32)" + THREE: EXCHANGED,
    r"(shf\.[lr]\.\S+)" + THREE: EXCHANGED,
}


@functools.cache
def fixed_set() -> list[tuple[Kernel, oracle.Words, str]]:
    """Return the kernels, each with its results in C++ and its PTX; those with the shortest PTX come first."""
    kernels = [kernel for mode in OF_MODE for kernel in kernels_of(mode)]
    results = oracle.host_results(kernels, SEED)
    found = [(kernel, results[kernel.number], ptx_of(source([kernel]), oracle.OPTIONS)) for kernel in kernels]
    return sorted(found, key=lambda one: len(one[2]))


def shows(kernel: Kernel, right: oracle.Words, ptx: str, engine: str = "numpy") -> bool:
    """Check whether PTX on an engine yields results that differ from C++, faults, or doesn't end."""
    damaged = Kernels(Module(ptx))
    damaged.engine = engine
    words, out = damaged.put(oracle.inputs(SEED, kernel)), damaged.put(oracle.before(kernel))
    try:
        damaged.launch(kernel.name, kernel.blocks, kernel.threads, words, out, steps=STEPS)
    except Fault:
        return True
    return bool((damaged.get(out, kernel.results, np.uint64) != right).any())


@pytest.mark.exhaustive
@pytest.mark.parametrize("instruction", FAULTS)
def test_a_fault_in_an_instruction_shows(instruction: str) -> None:
    wrong = (re.subn(rf"(?<=\s){instruction}", FAULTS[instruction], ptx) for _, _, ptx in fixed_set())
    damaged = [(*one[:2], ptx) for one, (ptx, count) in zip(fixed_set(), wrong, strict=True) if count]
    assert any(shows(*one) for one in damaged), f"{len(damaged)} kernels have the instruction"


# Opcodes, and the two operands that are exchanged in their machine code.
MISTAKEN = {
    "bfe": (2, 3), "bfi": (1, 2), "copysign": (1, 2), "div": (1, 2), "fma": (2, 3), "lop3": (1, 2), "prmt": (1, 2),
    "rem": (1, 2), "selp": (1, 2), "setp": (1, 2), "shf": (1, 2), "sub": (1, 2),
}  # fmt: skip  # rows of a table


@pytest.mark.exhaustive
@pytest.mark.parametrize("opcode", MISTAKEN)
def test_a_fault_in_the_machine_code_of_an_opcode_shows(opcode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    from cudart_py.simulator.ptx.native.lowering.table import lowering  # needs llvmlite
    from cudart_py.simulator.ptx.native.writing import flow

    def mistaken(form: Any) -> Any:
        write = lowering(form)
        if form.row.name != opcode:
            return write

        def exchange(emitter: Any, instruction: Any, form: Any) -> None:
            operands, (one, other) = list(instruction.operands), MISTAKEN[opcode]
            operands[one], operands[other] = operands[other], operands[one]
            write(emitter, dataclasses.replace(instruction, operands=tuple(operands)), form)

        return exchange

    with monkeypatch.context() as patch:
        patch.setattr(flow, "lowering", mistaken)
        kernels = (one for one in fixed_set() if f"\t{opcode}." in one[2])
        shown = next((one for one in kernels if shows(*one, "native")), None)
    assert shown is not None
    assert not shows(*shown, "native")


def test_an_undo_that_leaves_memory_as_it_is_shows(device: cuda.Device) -> None:
    """Without the undo, a launch that is run again with exact checks keeps its first output, and adds to it."""
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    from cudart_py.simulator.ptx.native.launching.speculation import Speculation  # needs llvmlite

    kernel = kernels_of("checked")[0]
    with mock.patch.object(Speculation, "undo", return_value=None):
        assert list(oracle.Runs([kernel], SEED).differences(kernel, ["native"], ["checked"]))
