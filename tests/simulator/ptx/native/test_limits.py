"""Code that is too large for LLVM or for the process's memory runs with NumPy, which keeps all limits."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx import Fault, Launch, Module, engines, run
from cudart_py.simulator.ptx.compiling.program import program_of
from tests.simulator.ptx.machine import HEAD, PROPERTIES, Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

from cudart_py.simulator.ptx.native import machine

LANES = 32
MANY = 10_100


def kernel(body: str) -> Kernels:
    """Return a kernel that has never run, whose lanes store x, which is the lane's number before the body."""
    module = Module(
        f"""{HEAD}.visible .entry k(.param .u64 out) {{
        .reg .b64 to, offset; .reg .b32 x; .reg .pred p;
        mov.u32 x, %tid.x; ld.param.u64 to, [out]; mul.wide.u32 offset, x, 4; add.u64 to, to, offset;
        {body}
        st.global.b32 [to], x;
        }}"""
    )
    kernels = Kernels(module)
    kernels.engine = "native"
    return kernels


def launched(kernels: Kernels) -> tuple[Any, str]:
    """Return what a launch stores, and what machine code lacks for it."""
    out = kernels.zeros(LANES)
    kernels.launch("k", 1, LANES, out)
    return kernels.get(out, LANES, np.uint32), program_of(kernels.module.entries["k"]).native_lack


# Each returns instructions, and what they make of x.
def products(count: int) -> tuple[str, Any]:
    x = np.arange(LANES, dtype=np.uint32)
    for number in range(count):
        x = x * np.uint32(number | 1) + np.uint32(number)
    return "\n".join(f"mad.lo.u32 x, x, {number | 1}, {number};" for number in range(count)), x


def branches(count: int) -> tuple[str, Any]:
    x = np.arange(LANES)
    for number in range(count):
        x += x != number
    return "\n".join(f"setp.eq.u32 p, x, {n}; @p bra L{n}; add.u32 x, x, 1; L{n}:" for n in range(count)), x


def ways(count: int) -> tuple[str, Any]:
    """So many that what tells where lanes are ready isn't kept in registers; each lane goes its own way."""
    x = np.arange(LANES)
    for number in range(count):
        x &= 0xFFFF
        x = np.where(x >= number * 800, x, x * 5 + number) + 1
    body = "\n".join(
        f"and.b32 x, x, 0xFFFF; setp.ge.u32 p, x, {number * 800}; @p bra L{number}; mad.lo.u32 x, x, 5, {number}; "
        f"L{number}: add.u32 x, x, 1;"
        for number in range(count)
    )
    return body, x


@pytest.mark.parametrize(
    ("make", "count", "lack"), [(products, MANY, "instructions"), (branches, 600, "basic blocks"), (ways, 80, "^$")]
)
def test_a_kernel_of_too_many_instructions_or_blocks_is_left_to_numpy(make, count, lack):
    body, expected = make(count)
    values, found = launched(kernel(body))
    np.testing.assert_array_equal(values, expected)
    assert re.search(lack, found)


@pytest.mark.parametrize("engine", ["native", "numpy"])
def test_a_long_run_of_instructions_keeps_the_limit_of_seconds(engine):
    """Compiling it takes NumPy's engine far longer."""
    kernels = kernel(products(MANY)[0])
    entry = kernels.module.entries["k"]
    launch = Launch(entry, (1, 1, 1), (LANES, 1, 1), parameters=kernels.zeros(LANES).to_bytes(8, "little"))
    with pytest.raises(Fault, match=r"CUDA_ERROR_LAUNCH_TIMEOUT.*limit of seconds"):
        run(
            kernels.module, launch, kernels.memory, symbols={}, print_=print, seconds=0.01, properties=PROPERTIES,
            engine=engine,
        )  # fmt: skip  # one line more for each would hide the limit


def refuse(*_: Any) -> Any:
    raise OSError(12, "Cannot allocate memory")


def test_a_kernel_for_whose_machine_code_there_is_no_memory_runs_with_numpy(monkeypatch):
    kernels = kernel("add.u32 x, x, 5;")
    with monkeypatch.context() as patch:
        patch.setattr(machine, "_compiled", refuse)
        values, lack = launched(kernels)
    np.testing.assert_array_equal(values, np.arange(LANES) + 5)
    assert "Cannot allocate memory" in lack
    launched(kernels)
    assert any(program_of(kernels.module.entries["k"]).native.values())


def test_without_memory_for_llvmlite_launches_run_with_numpy(monkeypatch):
    """The import fails as one does that finds no room for a library."""
    name = "cudart_py.simulator.ptx.native.engine"
    finder = SimpleNamespace(find_spec=lambda module, *_: refuse() if module.startswith(name) else None)
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    engines._machine_code.cache_clear()
    try:
        values, lack = launched(kernel("add.u32 x, x, 5;"))
    finally:
        engines._machine_code.cache_clear()
    np.testing.assert_array_equal(values, np.arange(LANES) + 5)
    assert "Cannot allocate memory" in lack
