"""Each spelling of loads, stores and atomics has the same results in both engines, and the same counts."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cudart_py.simulator.checks import findings
from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.counters.launch_counters import LaunchCounters
from cudart_py.simulator.ptx import Fault, load_module
from cudart_py.simulator.ptx.compiling.opcode_table.opcodes import TABLE
from cudart_py.simulator.ptx.syntax.types import TYPE_SIZES
from tests.simulator.ptx.machine import HEAD, Kernels
from tests.simulator.ptx.spellings import DECLARATIONS, Style, exists, spellings, statement

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

LANES = 32
# The bytes of each lane in each state space, and those of the results of one instruction.
BYTES = 64
RESULTS = 128
# An address that is out of bounds in each state space.
OUTSIDE = 1 << 26
SPACES = {"global": "mine", "generic": "mine", "shared": "inside", "local": "private", "const": "fixed"}
FORMS = {
    opcode: form
    for name in ("ld", "ldu", "st", "atom", "red")
    for row in TABLE[name]
    for opcode, form in spellings(row)
    if form is not None and exists(form) and form.space in SPACES and "async" not in form.words
}
# One spelling of each atomic operation on each type, and then parts of all spellings.
ATOMICS = {
    (form.row.name, form.operation, form.types, form.vector): opcode
    for opcode, form in reversed(FORMS.items())
    if form.row.access in ("atom", "red")
}
PARTS = [[*ATOMICS.values()], *([*FORMS][part::32] for part in range(32))]
RESULT = re.compile(r"\b(f?)same(\d+)_(\d)\b")


def copied(source: str, start: str, to: str, place: str, first: int = 0) -> str:
    """Return copies of a lane's bytes from the space `source` to the space `to`, there to byte `first`."""
    return "".join(
        f"ld.{source}.v4.b32 {{w0, w1, w2, w3}}, [{start}+{at}]; "
        f"st.{to}.v4.b32 [{place}+{first + at}], {{w0, w1, w2, w3}};"
        for at in range(0, BYTES, 16)
    )


def kernel(opcodes: Sequence[str], constants: bytes) -> Kernels:
    """Return a kernel that executes instructions one after another, each lane at its place in each state space."""
    text = f"""{DECLARATIONS} .reg .b32 lane, place, w<4>;
        .reg .b64 mine, own, inside, private, fixed, values, results, left, places;
        ld.param.u64 mine, [p0]; ld.param.u64 values, [p1]; ld.param.u64 results, [p2]; ld.param.u64 left, [p3];
        ld.param.u64 places, [p4]; mov.u32 lane, %tid.x; mad.wide.u32 places, lane, 4, places;
        ld.global.u32 place, [places];
        mad.wide.u32 mine, place, {BYTES}, mine; mad.wide.u32 values, lane, {BYTES}, values;
        mad.wide.u32 results, lane, {RESULTS * len(opcodes)}, results; mad.wide.u32 left, lane, {2 * BYTES}, left;
        mov.u64 own, tile; mad.wide.u32 inside, place, {BYTES}, own; mad.wide.u32 own, lane, {BYTES}, own;
        mov.u64 private, spill; mov.u64 fixed, table; mad.wide.u32 fixed, place, {BYTES}, fixed; """
    for number in range(8):
        for bits in (8, 16, 32, 64):
            text += f"ld.global.b{bits} each{bits}_{number}, [values+{8 * number}];"
        text += f"mov.b32 feach32_{number}, each32_{number}; mov.b64 feach64_{number}, each64_{number};"
        text += f"mov.b128 each128_{number}, {{each64_{number}, each64_{number}}};"
    text += copied("global", "values", "shared", "own") + copied("global", "values", "local", "private") + "bar.sync 0;"
    for number, opcode in enumerate(opcodes):
        form = FORMS[opcode]
        text += f"mov.u64 where, {SPACES[form.space]};"
        if form.space == "generic" and number % 2:
            text += "cvta.shared.u64 where, inside;"
        last = BYTES - form.vector * TYPE_SIZES[form.type]
        one = statement(form, opcode, Style(address=f"[where+{last * (number // 2 % 2)}]", wide=number % 3 == 0))
        text += f"{one}\n"
        for letter, bits, item in RESULT.findall(one):
            at = RESULTS * number + 16 * int(item)
            text += f"st.global.{letter or 'b'}{bits} [results+{at}], {letter}same{bits}_{item};"
    text += "bar.sync 0;" + copied("shared", "own", "global", "left")
    text += copied("local", "private", "global", "left", BYTES)
    names = ", ".join(f".param .u64 p{number}" for number in range(5))
    table = f".const .align 16 .b8 table[{len(constants)}] = {{{', '.join(map(str, constants))}}};"
    return Kernels(load_module(f"{HEAD}{table}.visible .entry k({names}) {{ {text} ret; }}"))


def numbers(rng: np.random.Generator, count: int) -> NDArray[np.uint32]:
    """Draw words: small numbers, of which many are equal, random bits, small floats, and pairs of small halves."""
    small, bits = rng.integers(0, 3, count, np.uint32), rng.integers(0, 1 << 32, count, np.uint32)
    floats = rng.normal(0, 10, count).astype(np.float32).view(np.uint32)
    halves = rng.normal(0, 4, 2 * count).astype(np.float16).view(np.uint32)
    return np.asarray(rng.choice(np.stack([small, bits, floats, halves]), 1, axis=0)[0])


def parts(most: int) -> list[Any]:
    return [pytest.param(part, marks=[pytest.mark.exhaustive] * (n >= most), id=str(n)) for n, part in enumerate(PARTS)]


@pytest.mark.parametrize("observe", [None, LaunchCounters, LaunchChecks])
@pytest.mark.parametrize("opcodes", parts(3))
def test_accesses_agree(opcodes: list[str], observe: type | None, rng: np.random.Generator) -> None:
    words = LANES * BYTES // 4
    kernels = kernel(opcodes, numbers(rng, words).tobytes())
    memory, values = numbers(rng, words), numbers(rng, words)
    results, left = np.zeros(LANES * RESULTS * len(opcodes), np.uint8), np.zeros(2 * LANES * BYTES, np.uint8)
    # The checks would report that lanes at the same place race.
    for shared in (False, True)[: 1 + (observe is not LaunchChecks)]:
        places = rng.choice(LANES, LANES, replace=shared).astype(np.uint32)
        kernels.agree("k", 1, LANES, memory, values, results, left, places, observe=observe)
    assert kernels.ran_natively("k")
    assert not findings.pending


def test_nothing_writes_constants() -> None:
    assert [opcode for opcode, form in FORMS.items() if form.space == "const" and form.row.access != "ld"] == []


def faulting(opcodes: Sequence[str]) -> Kernels:
    """Return a kernel that executes one of several instructions at an address."""
    text = f"{DECLARATIONS} .reg .b32 which; .reg .pred other; ld.param.u32 which, [p0]; ld.param.u64 where, [p1];"
    for number, opcode in enumerate(opcodes):
        one = statement(FORMS[opcode], opcode, Style(address="[where+32]"))
        text += f"setp.ne.u32 other, which, {number}; @other bra over_{number};\n{one}\nover_{number}:\n"
    return Kernels(load_module(f"{HEAD}.visible .entry k(.param .u32 p0, .param .u64 p1) {{ {text} ret; }}"))


@pytest.mark.parametrize("opcodes", parts(4))
def test_accesses_out_of_bounds_are_reported_alike(opcodes: list[str]) -> None:
    kernels = faulting(opcodes)
    for number, opcode in enumerate(opcodes):
        reports = []
        for kernels.engine in ("numpy", "native"):
            with pytest.raises(Fault) as caught:
                kernels.launch("k", 1, LANES, number, OUTSIDE)
            reports.append(str(caught.value))
        assert reports[0] == reports[1]
        assert f"instruction '{opcode} " in reports[0]
    assert kernels.ran_natively("k")
