"""Every form in the table of opcodes runs, with operands that differ between threads, and with uniform ones."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from cudart_py.profiling.diagrams.accesses import draw_access
from cudart_py.profiling.warp_records import record_of
from cudart_py.simulator.calls.launches.observers import Observers
from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.counters.launch_counters import LaunchCounters
from cudart_py.simulator.counters.warp_recorder import WarpRecorder
from cudart_py.simulator.debugging.moments import Moment
from cudart_py.simulator.debugging.recorder import Recorder
from cudart_py.simulator.ptx import load_module
from cudart_py.simulator.ptx.compiling.emitters.lowered import Lowers
from cudart_py.simulator.ptx.compiling.opcode_table.opcodes import ROWS, TABLE, find_forms
from cudart_py.simulator.ptx.running.observer import Observer
from cudart_py.simulator.state.memory.records.shadow import ShadowMemory
from tests.simulator.ptx.machine import HEAD, Kernels
from tests.simulator.ptx.spellings import DECLARATIONS, MODULE, ROWS_IN_SHARED, Style, exists, spellings, statement

# Instructions that other tests run: those that end basic blocks, and those that need a texture or a surface.
ELSEWHERE = {"bra", "brx", "call", "ret", "exit", "trap", "tex", "tld4", "suld", "sust"}

BYTES = 8192
# The first of the operands that differ between threads, from which the others are computed.
DEFINED = "mov.u32 each32_8, %tid.x;"
UNDEFINED = "ld.global.u32 each32_8, [memory]; mad.lo.u32 each32_8, each32_8, 0, %tid.x;"
PROLOGUE = f"""
    {DECLARATIONS}
    ld.param.u64 memory, [out];
    mbarrier.init.shared.b64 [barrier], 1048575;
    {DEFINED} mov.u32 same32_8, 3; cvt.u64.u32 each64_8, each32_8; mov.u64 same64_8, 3;
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


NAMES = sorted({row.name for row in ROWS} - ELSEWHERE)


def kernels_of(name: str, kinds: Sequence[str], prologue: str) -> Kernels:
    """Return a kernel `k` that executes the spellings of an opcode, with operands of the given kinds."""
    # Initialise the barrier before each instruction, because one of them invalidates it.
    ready = "mbarrier.init.shared.b64 [barrier], 1048575;" if name == "mbarrier" else ""
    body = ""
    for row in TABLE[name]:
        # The many forms of wgmma differ only in their shapes and types.
        for opcode, form in itertools.islice(spellings(row), 0, None, 5 if name == "wgmma" else 1):
            where = "tile" if form.space == "shared" or name in ROWS_IN_SHARED else "memory"
            generic = "cvta.shared.u64 where, where;" if where == "tile" and form.space == "generic" else ""
            # Leave out matrix shapes that do not exist for a type, st.param, which the tests of calls run, and copies
            # of boxes and of tensor maps, which tests/launch runs.
            elsewhere = (name, form.space) == ("st", "param") or "D" in form.operands or "cp_fenceproxy" in form.words
            if exists(form) and not elsewhere:
                texts = (statement(form, opcode, Style(kind)) for kind in kinds)
                body += "".join(f"{ready} mov.u64 where, {where}; {generic} {text}\n" for text in texts)
    kernel = f".visible .entry k(.param .align 16 .b8 out[256]) {{ {prologue}\n{body}\n}}"
    return Kernels(load_module(f"{HEAD}{MODULE}{kernel}"))


def launch(kernels: Kernels, memory: int, observer: Observer | None = None) -> None:
    kernels.launch("k", 1, 32, memory.to_bytes(8, "little") + bytes(248), observer=observer)


@pytest.mark.parametrize("name", NAMES)
def test_all_rows_of_an_opcode_run(name: str) -> None:
    """Every instruction that the table accepts when a module is loaded can be executed."""
    kernels = kernels_of(name, ["each", "same"], _prologue())
    launch(kernels, kernels.put(np.zeros(BYTES, np.uint8)))


class Debugger:
    """A debugger that never stops."""

    stop_at_findings = is_interrupted = False

    def stops_from(self, recorder: Recorder, first: int) -> int:
        return first

    def started(self, recorder: Recorder) -> None:
        pass

    def reached(self, moment: Moment) -> None:
        pass

    def found(self, moment: Moment) -> None:
        pass

    def finished(self) -> None:
        pass


def observe(name: str, *observers: Observer) -> None:
    """Run the spellings of an opcode on undefined memory, mostly with undefined operands, with the checks."""
    kernels = kernels_of(name, ["each"], _prologue().replace(DEFINED, UNDEFINED))
    memory = kernels.put(np.zeros(BYTES, np.uint8))
    kernels.memory.shadows[memory] = ShadowMemory(memory, BYTES, initialised=False)
    launch(kernels, memory, Observers(*observers, LaunchChecks()))


CALCULATING = {name for name in NAMES if all(isinstance(row.emit, Lowers) for row in TABLE[name])}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.exhaustive] * (name in CALCULATING)) for name in NAMES]
)
def test_all_rows_of_an_opcode_can_be_counted_recorded_and_checked(name: str) -> None:
    counters, recorder = LaunchCounters(), WarpRecorder(0)
    observe(name, counters, recorder)
    assert counters.metrics["smsp__inst_executed.sum"] > 0
    accesses = {(one.operation, one.space, one.size): one for one in record_of(recorder).accesses}
    assert all(str(draw_access(access, "")) for access in accesses.values())


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_all_rows_of_an_opcode_can_be_debugged(name: str) -> None:
    recorder = Recorder(Debugger())
    observe(name, recorder)
    assert any(moment.running and moment.running.site.opcode.startswith(name) for moment in recorder.history)


def test_all_forms_of_an_opcode_have_the_same_facts() -> None:
    """Code that looks up an instruction's facts uses only its opcode, which several patterns may match."""
    opcodes = {opcode for row in ROWS for opcode, _ in spellings(row)}
    assert [opcode for opcode in opcodes if len({form.row.facts for form in find_forms(opcode)}) > 1] == []
