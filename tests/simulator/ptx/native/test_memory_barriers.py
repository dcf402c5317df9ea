"""Barriers in memory run in machine code, with the NumPy engine's states, results and faults."""

import random
import re
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx import Fault, load_module
from cudart_py.simulator.ptx.running import launch
from tests.simulator.ptx.machine import HEAD, Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

BARRIERS, LANES = 3, 32
VERBS = [
    "arrive", "arrive", "arrive.noComplete", "arrive.expect_tx", "arrive_drop", "arrive_drop.noComplete",
    "arrive_drop.expect_tx", "expect_tx", "complete_tx", "test_wait", "test_wait.parity", "copies",
]  # fmt: skip  # grouped by kind
BODY = """.visible .entry k(.param .u64 numbers, .param .u64 results) {{
    .shared .align 8 .b64 words[{barriers}];
    .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p; .reg .b32 %n<{count}>;
    ld.param.u64 %d1, [numbers]; ld.param.u64 %d2, [results];
    mov.u32 %r1, %tid.x; mad.wide.u32 %d1, %r1, 4, %d1; mad.wide.u32 %d2, %r1, 8, %d2;
    mov.u32 %r2, words;
    {text}
    ret;
}}
"""


def random_kernel(generator: random.Random) -> tuple[str, int]:
    """Return a kernel of random operations on three barriers, and how many numbers per lane it reads and writes.

    The lanes of a warp use different barriers, and some lanes are left out. Arrivals may exceed what a barrier expects.
    """
    lines = [f"mbarrier.init.shared.b64 [words+{8 * n}], {generator.randrange(1, 150)};" for n in range(BARRIERS)]
    steps = generator.randrange(4, 16)
    for step in range(steps):
        at = f"ld.global.u32 %r3, [%d1+{4 * LANES * 2 * step}]; and.b32 %r4, %r3, 3; min.u32 %r4, %r4, {BARRIERS - 1};"
        at += f" mad.lo.u32 %r4, %r4, 8, %r2; ld.global.u32 %r5, [%d1+{4 * LANES * (2 * step + 1)}];"
        verb = generator.choice(VERBS)
        space = generator.choice([".shared", ".shared::cta", ""])
        place = "[%r4]"
        if not space:
            at += " cvt.u64.u32 %d4, %r4; cvta.shared.u64 %d4, %d4;"
            place = "[%d4]"
        if verb == "copies":
            line = f"cp.async.mbarrier.arrive{generator.choice(['', '.noinc'])}{space}.b64 {place};"
        elif verb.startswith("test_wait"):
            operand = "%r5" if "parity" in verb else "%d3"
            line = f"mbarrier.{verb}{space}.b64 %p, {place}, {operand}; selp.u64 %d5, 1, 2, %p;"
        elif verb.endswith("complete_tx") or verb == "expect_tx":
            line = f"mbarrier.{verb}.relaxed.cta{space or '.shared'}.b64 {place if space else '[%r4]'}, %r5;"
        else:
            count = ", %r5" if "." in verb or generator.random() < 0.5 else ""
            line = f"mbarrier.{verb}{space}.b64 %d3, {place}{count}; mov.u64 %d5, %d3;"
        guard = generator.choice(["0xffffffff", str(generator.getrandbits(32)), str(1 << generator.randrange(32))])
        lines += [
            at, f"shr.u32 %r6, {guard}, %r1; and.b32 %r6, %r6, 1; setp.ne.u32 %p, %r6, 0; @!%p bra skip{step};",
            line, f"st.global.u64 [%d2+{8 * LANES * step}], %d5;", f"skip{step}: bar.warp.sync 0xffffffff;",
        ]  # fmt: skip  # one step
    for number in range(BARRIERS):
        place = 8 * LANES * (steps + number)
        lines.append(f"ld.shared.u64 %d6, [words+{8 * number}]; st.global.u64 [%d2+{place}], %d6;")
    text = "mov.u64 %d3, 0; mov.u64 %d5, 0;\n" + "\n".join(lines)
    return HEAD + BODY.format(barriers=BARRIERS, count=4, text=text), steps


def outcome(kernels: Kernels, engine: str, numbers: Any, count: int) -> Any:
    kernels.engine = engine
    results = kernels.zeros(LANES * count, np.uint64)
    try:
        kernels.launch("k", 1, LANES, kernels.put(numbers), results)
    except Fault as fault:
        return fault.report
    return kernels.get(results, LANES * count, np.uint64).tolist()


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 48), marks=pytest.mark.exhaustive)])
def test_random_operations_give_the_same_states_and_faults(seeds: range) -> None:
    faults = 0
    for seed in seeds:
        generator = random.Random(seed)
        text, steps = random_kernel(generator)
        numbers = np.array([generator.randrange(1 << 32) for _ in range(2 * LANES * steps)], np.uint32)
        # The second number of each step is an amount, which is small in most cases.
        amounts = numbers.reshape(steps, 2, LANES)
        amounts[:, 1] = amounts[:, 1] % generator.choice([2, 5])
        kernels = Kernels(load_module(text))
        expected = outcome(kernels, "numpy", numbers, steps + BARRIERS)
        assert outcome(kernels, "native", numbers, steps + BARRIERS) == expected, (seed, text)
        assert kernels.ran_natively("k")
        faults += isinstance(expected, str)
    assert len(seeds) // 8 < faults < len(seeds) * 5 // 6


WAITS = """.visible .entry k(.param .u64 numbers, .param .u64 results) {
    .shared .align 8 .b64 words[2];
    .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p;
    ld.param.u64 %d2, [results];
    mov.u32 %r1, %tid.x; mad.wide.u32 %d2, %r1, 8, %d2;
    setp.ne.u32 %p, %r1, 0; @%p bra ready;
    mbarrier.init.shared.b64 [words], 97; mbarrier.init.shared.b64 [words+8], 96;
ready:
    bar.sync 0;
    mbarrier.arrive.shared.b64 %d3, [words+8]; mbarrier.arrive.shared.b64 %d4, [words];
again:
    mbarrier.try_wait.shared.b64 %p, [words+8], %d3; @!%p bra again;
forever:
    mbarrier.test_wait.shared.b64 %p, [words], %d4; @!%p bra forever;
    st.global.u64 [%d2], %d3;
    ret;
}
"""


def test_a_deadlock_has_the_same_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_STEPS_OF_WAITING", 5000)
    kernels = Kernels(load_module(HEAD + WAITS))
    assert "672 threads wait" in kernels.fault("k", 7, 96, 0, kernels.zeros(96, np.uint64), steps=None)


REUSED = (
    HEAD
    + """.visible .entry k(.param .u64 results, .param .u32 reuser) {{
    .shared .align 8 .b64 barrier;
    .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p;
    ld.param.u64 %d1, [results]; ld.param.u32 %r2, [reuser];
    mov.u32 %r1, %tid.x; mad.wide.u32 %d1, %r1, 4, %d1;
    setp.eq.u32 %p, %r1, 0; @%p mbarrier.init.shared.b64 [barrier], 96;
    bar.sync 0;
    mbarrier.arrive.shared.b64 %d2, [barrier];
wait: mbarrier.try_wait.shared.b64 %p, [barrier], %d2; @!%p bra wait;
    setp.ne.u32 %p, %r1, %r2; @%p bra done;
    {reuse}
done: bar.sync 0;
    st.global.u32 [%d1], 1;
    ret;
}}
"""
)


@pytest.mark.parametrize("reuse", ["mbarrier.inval.shared.b64 [barrier];", "mbarrier.init.shared.b64 [barrier], 7;"])
@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_a_thread_that_reuses_a_barrier_leaves_no_other_thread_waiting_there(engine: str, reuse: str) -> None:
    """On a GPU, the end of a phase wakes all threads that wait for it, before any of them can reuse the barrier."""
    kernels = Kernels(load_module(REUSED.format(reuse=reuse)), engine=engine)
    for reuser in (0, 32, 95):
        results = kernels.zeros(96, np.uint32)
        kernels.launch("k", 1, 96, results, np.uint32(reuser))
        assert kernels.get(results, 96, np.uint32).all()
    assert engine == "numpy" or not kernels.program("k").unsupported_reason


BULK = """.visible .entry k(.param .u64 in, .param .u64 out, .param .u64 sizes) {
    .shared .align 16 .b8 words[8192];
    .shared .align 8 .b64 bar;
    .reg .b32 %r<12>; .reg .b64 %d<9>; .reg .pred %p;
    ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; ld.param.u64 %d3, [sizes];
    mov.u32 %r1, %tid.x; mad.wide.u32 %d3, %r1, 8, %d3;
    ld.global.u32 %r2, [%d3]; ld.global.u32 %r3, [%d3+4];
    mov.u32 %r4, words; mad.lo.u32 %r4, %r1, 256, %r4;
    mad.wide.u32 %d4, %r1, 256, %d1; cvt.u64.u32 %d5, %r3; add.u64 %d4, %d4, %d5;
    setp.ne.u32 %p, %r1, 0; @%p bra ready;
    mbarrier.init.shared.b64 [bar], 32;
ready:
    bar.sync 0;
    setp.eq.u32 %p, %r2, 7; @%p bra others;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%d4], %r2, [bar];
    mbarrier.arrive.expect_tx.shared.b64 %d6, [bar], %r2;
    bra again;
others:
    mbarrier.arrive.shared.b64 %d6, [bar];
again:
    mbarrier.try_wait.parity.shared.b64 %p, [bar], 0; @!%p bra again;
    mad.wide.u32 %d7, %r1, 256, %d2;
    cp.async.bulk.global.shared::cta.bulk_group [%d7], [%r4], 256;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    ret;
}
"""


def test_bulk_reductions_combine_elements_in_machine_code() -> None:
    reducing = BULK.replace(
        "cp.async.bulk.global.shared::cta.bulk_group", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32"
    )
    generator = np.random.default_rng(8)
    given, before = generator.integers(0, 1 << 32, (2, LANES, 64), np.uint32)
    sizes = 16 * generator.integers(0, 17, LANES, np.uint32)
    for engine in ("numpy", "native"):
        kernels = Kernels(load_module(HEAD + reducing), engine=engine)
        source, out = kernels.put(given), kernels.put(before)
        kernels.launch("k", 1, LANES, source, out, kernels.put(np.stack([sizes, 0 * sizes], 1)))
        # Shared memory holds zeros where a copy has not reached.
        received = np.where(4 * np.arange(64) < sizes[:, None], given, 0)
        np.testing.assert_array_equal(kernels.get(out, given.size, np.uint32).reshape(given.shape), before + received)
        assert kernels.ran_natively("k") == (engine == "native")


def test_bulk_copies_move_the_same_bytes_and_have_the_same_faults() -> None:
    generator, faults = random.Random(5), []
    kernels = Kernels(load_module(HEAD + BULK))
    # Sizes that are no multiple of 16, sources that are misaligned or beyond the array, and sizes beyond its end.
    for wrong in (None, None, (24, 0), (16, 8), (16, 1 << 20), (16384, 0)):
        pairs = [(16 * generator.randrange(17), 16 * generator.randrange(8)) for _ in range(LANES)]
        pairs[3] = (7, 0)
        if wrong:
            pairs[generator.randrange(4, LANES)] = wrong
        given = np.frombuffer(generator.randbytes(256 * (LANES + 1)), np.uint8)
        outcomes: list[Any] = []
        for engine in ("numpy", "native"):
            kernels.engine = engine
            arrays = [kernels.put(array) for array in (given, np.zeros(256 * LANES, np.uint8), np.uint32(pairs))]
            try:
                kernels.launch("k", 1, LANES, *arrays)
                outcomes.append(kernels.get(arrays[1], 256 * LANES, np.uint8).tolist())
            except Fault as fault:
                outcomes.append(re.sub("0x[0-9a-f]+", "", fault.report))
        assert outcomes[1] == outcomes[0]
        assert isinstance(outcomes[0], str) == (wrong is not None)
        faults += outcomes[:1] if wrong else []
    assert len(set(faults)) == 4
    assert kernels.ran_natively("k")
