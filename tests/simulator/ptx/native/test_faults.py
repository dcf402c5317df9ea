"""A fault in machine code is reported in the NumPy engine's words, whichever address of an instruction is wrong."""

from __future__ import annotations

import re

import pytest

from cudart_py.simulator.ptx import Fault, load_module
from cudart_py.simulator.ptx.compiling.program import program_of
from tests.simulator.ptx.machine import Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

HEAD = ".version 8.7\n.target sm_90\n.address_size 64\n"
REGISTERS = ".reg .b64 out, at, found; .reg .b32 tile, word; .shared .align 16 .b8 memory[256];"
BODIES = {
    # The address of the second access follows from what the first one would have loaded.
    "a field behind a wrong pointer": "add.u64 at, out, 100000; ld.u64 found, [at]; ld.u32 word, [found+-8];",
    "a misaligned pointer, then a wrong one": "add.u64 at, out, 4; ld.u64 found, [at]; ld.u8 word, [found+-7];",
    "the source of a copy": "add.u64 at, out, 100000; cp.async.ca.shared.global [tile], [at], 4;",
    "the destination of a copy": "cp.async.ca.shared.global [tile+4096], [out], 16;",
    "a misaligned source of a copy": "cp.async.ca.shared.global [tile], [out+2], 16;",
    "a misaligned destination of a copy": "cp.async.ca.shared.global [tile+4], [out], 16;",
    "an atomic": "atom.global.add.u32 word, [out+4000], 1;",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_both_engines_report_the_same(body: str) -> None:
    reports = []
    for engine in ("numpy", "native"):
        text = f"{HEAD}.visible .entry k(.param .u64 p) {{ {REGISTERS} ld.param.u64 out, [p]; mov.u32 tile, memory; "
        kernels = Kernels(load_module(f"{text} {body} }}"))
        kernels.engine = engine
        out = kernels.zeros(64)
        with pytest.raises(Fault) as caught:
            kernels.launch("k", 1, 32, out)
        assert engine == "numpy" or any(program_of(kernels.module.entries["k"]).native.values())
        # The two machines' memories lie at different addresses.
        place = re.sub(r"0x[0-9a-f]{9,}", lambda found, at=out: f"out+{int(found[0], 16) - at}", caught.value.report)
        reports.append((caught.value.status_name, place))
    assert reports[0] == reports[1]
