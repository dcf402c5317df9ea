"""Counters in machine code: several threads, launches that are run again, faults, and kernels left to NumPy.

`test_profiles.py` compares the counts of both engines with a GPU's.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.calls.launches.observers import Observers
from cudart_py.simulator.checks import findings
from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.counters.launch_counters import LaunchCounters
from cudart_py.simulator.ptx import Fault, load_module
from cudart_py.simulator.ptx.compiling.program import program_of
from tests.simulator.ptx.machine import HEAD, Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

AT = np.random.default_rng(5).integers(0, 1 << 30, 8192).astype(np.int32)
BYTES = np.zeros(1 << 17, np.uint8)
GATHER = [AT, AT, BYTES]


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(Path(__file__).with_name("engines.cu").read_text())


def ran_natively(kernels: Kernels, name: str) -> bool:
    program = program_of(kernels.module.entries[name])
    return any(kernel is not None for (_, watch, _), kernel in program.native.items() if "counters" in watch)


def count(kernels: Kernels, engine: str, name: str, block: int, arguments: list[Any]) -> LaunchCounters:
    kernels.engine = engine
    counters = LaunchCounters()
    given = [kernels.put(one) if isinstance(one, np.ndarray) else one for one in arguments]
    kernels.launch(name, 3, block, *given, observer=counters)
    return counters


def test_threads_add_their_counts_up_where_counters_watch_alone(kernels, monkeypatch):
    expected = count(kernels, "numpy", "gather", 100, GATHER)
    monkeypatch.setattr(kernels, "threads", 3)
    kernels.engine = "native"
    kernels.launch("gather", 3, 100, *map(kernels.put, GATHER))
    counted = count(kernels, "native", "gather", 100, GATHER)
    assert ran_natively(kernels, "gather"), program_of(kernels.module.entries["gather"]).unsupported_reason
    assert counted.lines == expected.lines


@pytest.mark.parametrize(
    ("name", "arguments"), [("waits_for_the_clock", [BYTES]), ("lock", [BYTES, BYTES]), ("watch", [BYTES])]
)
def test_numpy_counts_what_machine_code_lacks_and_where_the_order_of_lanes_shows(kernels, name, arguments):
    counted = count(kernels, "native", name, 32, arguments)
    assert not ran_natively(kernels, name)
    assert counted.lines == count(kernels, "numpy", name, 32, arguments).lines


def test_a_launch_with_findings_which_runs_again_is_counted_once(kernels: Kernels) -> None:
    expected = count(kernels, "numpy", "gather", 128, GATHER)
    kernels.engine, counters = "native", LaunchCounters()
    kernels.launch("gather", 3, 128, *map(kernels.put, GATHER), observer=Observers(counters, LaunchChecks()))
    assert any("race" in text for text in map(str, findings.pending))
    findings.pending.clear()
    assert counters.lines == expected.lines


def test_a_fault_is_the_same_while_counters_watch(kernels: Kernels) -> None:
    kernels.engine = "native"
    counters = LaunchCounters()
    with pytest.raises(Fault, match=r"a global write of 4 bytes at .* is out of bounds.*thread \(25, 0, 0\)"):
        kernels.launch("beyond", 1, 32, kernels.zeros(100), 4, observer=counters)
    assert ran_natively(kernels, "beyond")
    assert not counters.metrics


# Lanes whose two operands are NaNs branch around three instructions.
UNORDERED = f"""{HEAD}.visible .entry unordered(.param .u64 from) {{
    .reg .b64 in, offset; .reg .b32 thread, number; .reg .f32 x, y, least; .reg .pred p;
    mov.u32 thread, %tid.x; ld.param.u64 in, [from]; mul.wide.u32 offset, thread, 8; add.u64 in, in, offset;
    ld.global.f32 x, [in]; ld.global.f32 y, [in+4];
    min.f32 least, x, y; setp.nan.f32 p, least, least;
    @p bra done;
    add.u32 number, thread, 1; add.u32 number, number, 2; add.u32 number, number, 3;
done:
    ret;
}}"""


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_lanes_with_signalling_nans_are_counted_where_they_go(engine: str) -> None:
    """The minimum of a number and a NaN is the number. NumPy's own minimum depends on the position in the array."""
    kernels, counters = Kernels(load_module(UNORDERED)), LaunchCounters()
    kernels.engine = engine
    # A signalling NaN, a quiet one, and a number.
    words = np.random.default_rng(4).choice(np.array([0x7F800001, 0x7FC00000, 0x3F800000], np.uint32), (77, 2))
    kernels.launch("unordered", 1, 77, kernels.put(words), observer=counters)
    both = int((words > 0x7F800000).all(axis=1).sum())
    assert counters.metrics["smsp__thread_inst_executed.sum"] == 77 * 13 - 3 * both
    assert engine == "numpy" or ran_natively(kernels, "unordered")
