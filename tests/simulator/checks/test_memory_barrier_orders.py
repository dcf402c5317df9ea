"""In random kernels whose warps meet at barriers in memory or at named barriers, both engines find the same races."""

import random
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.ptx import load_module
from cudart_py.simulator.ptx.compiling.program import program_of
from tests.planted.cases import compiled
from tests.simulator.checks.reports import FOLDER, of_both, run_natively
from tests.simulator.ptx.machine import HEAD, Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

WARPS, PIECES, MEETINGS = 4, 3, 10
KERNEL = """.visible .entry k(.param .u64 out) {{
    .shared .align 8 .b64 bars[{meetings}];
    .shared .align 16 .b32 words[{words}];
    .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p;
    ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %d1, %r1, 4, %d1;
    and.b32 %r2, %r1, 31; shr.u32 %r3, %r1, 5;
    mov.u32 %r6, words; mad.lo.u32 %r4, %r2, 4, %r6;
    mov.u32 %r7, 0;
    setp.ne.u32 %p, %r1, 0; @%p bra ready;
    {inits}
ready:
    {fills}
    bar.sync 0;
    {ways}
    {bodies}
end:
    st.global.u32 [%d1], %r7;
    ret;
}}
"""


class Order:
    """The order of a kernel's accesses while it is generated, with one clock per warp, as in `WarpClocks`."""

    def __init__(self) -> None:
        self.now = 1
        self.clocks = [[0] * WARPS for _ in range(WARPS)]
        # For each piece, the times of each warp's last write and read.
        self.writes, self.reads = ([[0] * WARPS for _ in range(PIECES)] for _ in range(2))

    def races(self, warp: int, piece: int, stores: bool) -> bool:
        """Return whether an access races with an earlier one."""
        tables = (self.writes, self.reads) if stores else (self.writes,)
        return any(
            other != warp and table[piece][other] > self.clocks[warp][other]
            for table in tables
            for other in range(WARPS)
        )

    def add(self, warp: int, piece: int, stores: bool) -> None:
        self.now += 1
        (self.writes if stores else self.reads)[piece][warp] = self.now

    def passed(self, warp: int) -> list[int]:
        """Return the clock that an arrival passes on."""
        self.now += 1
        return [self.now if other == warp else time for other, time in enumerate(self.clocks[warp])]

    def meet(self, warps: list[int], passed: list[list[int]]) -> None:
        """Record that warps wait for arrivals."""
        for warp in warps:
            self.clocks[warp] = [max(times) for times in zip(self.clocks[warp], *passed, strict=True)]


def random_kernel(generator: random.Random, wrong: bool, named: bool) -> tuple[str, bool]:
    """Return a kernel, and whether it has a race: at each of ten barriers in turn, some warps arrive and some wait.

    If `named`, they are named barriers, at which the warps that wait arrive, too.
    """
    order, races = Order(), False
    programs: list[list[str]] = [[] for _ in range(WARPS)]
    inits = []
    for meeting in range(MEETINGS):
        for number in range(4):
            warp, piece, stores = generator.randrange(WARPS), generator.randrange(PIECES), generator.random() < 0.4
            if order.races(warp, piece, stores):
                if not wrong or generator.random() < 0.7:
                    continue
                races = True
            order.add(warp, piece, stores)
            place = f"%r4+{128 * piece}"
            verb = f"st.shared.u32 [{place}], {10 * meeting + number}" if stores else f"ld.shared.u32 %r8, [{place}]"
            programs[warp].append(f"{verb}; {'' if stores else 'add.u32 %r7, %r7, %r8;'}")
        arriving = generator.sample(range(WARPS), generator.choice([1, 1, 2, 3, WARPS]))
        waiting = [warp for warp in range(WARPS) if generator.random() < 0.6]
        place, relaxed = f"[bars+{8 * meeting}]", generator.random() < 0.1 and not named
        if named:
            arriving = [warp for warp in arriving if warp not in waiting]
            order.meet(waiting, [order.passed(warp) for warp in (*arriving, *waiting)])
            for warp in (*arriving, *waiting):
                verb = "arrive" if warp in arriving else "sync"
                programs[warp].append(f"bar.{verb} {meeting + 1}, {32 * len(arriving + waiting)};")
            continue
        inits.append(f"mbarrier.init.shared.b64 {place}, {32 * len(arriving)};")
        passed = [order.passed(warp) for warp in arriving]
        for warp in arriving:
            how = ".relaxed.cta" if relaxed else ""
            programs[warp].append(f"mbarrier.arrive{how}.shared.b64 %d3, {place};")
        for warp in waiting:
            label = f"wait{meeting}_{warp}"
            programs[warp].append(f"{label}: mbarrier.try_wait.parity.shared.b64 %p, {place}, 0; @!%p bra {label};")
        order.meet(waiting, [] if relaxed else passed)
    ways = "\n".join(f"setp.eq.u32 %p, %r3, {warp}; @%p bra warp{warp};" for warp in range(WARPS))
    bodies = "\n".join(f"warp{warp}:\n" + "\n".join(program) + "\nbra end;" for warp, program in enumerate(programs))
    fills = "".join(f"st.shared.u32 [%r4+{128 * piece}], {piece};" for piece in range(PIECES))
    fills = f"setp.ge.u32 %p, %r1, 32; @%p bra filled; {fills} filled:"
    return HEAD + KERNEL.format(
        meetings=MEETINGS, words=32 * PIECES, inits="\n".join(inits), fills=fills, ways=ways, bodies=bodies
    ), races


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 10), marks=pytest.mark.exhaustive)])
def test_both_engines_agree_on_the_races_of_random_kernels(seeds: range, wrong: bool, named: bool) -> None:
    found = again = 0
    for seed in seeds:
        text, races = random_kernel(random.Random(seed), wrong, named)
        kernels = Kernels(load_module(text))
        texts = of_both(kernels, "k", 1, 32 * WARPS, np.zeros(32 * WARPS, np.int32))
        # At a named barrier, a thread counts as acquiring more than it is told there.
        assert bool(texts) == races or (named and races), (seed, texts)
        (kernel,) = program_of(kernels.module.entries["k"]).native.values()
        assert kernel is not None
        found += races
        again += bool(kernel.recorded.doubts) and not races
    assert (2 * found > len(seeds)) == wrong
    # Few of the kernels without a race run again with NumPy.
    assert again <= 1


NUMBERS, OUT, FLOATS = np.arange(1, 1025, dtype=np.int32), np.zeros(1024, np.int32), np.arange(2048, dtype=np.float32)
# Kernels without mistakes: rings of buffers, bulk copies, and copies through the libraries.
RIGHT: dict[str, tuple[Any, ...]] = {
    "ring": (1, 128, OUT, NUMBERS, 0),
    "next_phase": (1, 64, OUT, NUMBERS, 0),
    "chain": (1, 128, OUT, NUMBERS, 0),
    **dict.fromkeys(
        ("fetched", "waited_by_one", "waited_elsewhere", "waited_by_one_warp", "refilled"), (1, 64, OUT, NUMBERS, 0)
    ),
    "piped": (1, 256, FLOATS, FLOATS, 8),
    "barred": (1, 256, FLOATS, FLOATS),
}


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    with cuda.Device(0):
        return Kernels(load_module(compiled(FOLDER / "synchronisation.cu").ptx.decode()))


@pytest.mark.parametrize("name", RIGHT)
def test_correct_kernels_run_in_machine_code(kernels: Kernels, name: str) -> None:
    run_natively(kernels, name, *RIGHT[name])


MISTAKES = [
    ("ring", 1), ("ring", 2), ("ring", 3), ("next_phase", 1), ("chain", 1), ("fetched", 1), ("fetched", 2),
    ("waited_by_one", 1), ("waited_elsewhere", 1), ("waited_by_one_warp", 1), ("refilled", 1),
]  # fmt: skip  # grouped by kernel


@pytest.mark.parametrize(("name", "wrong"), MISTAKES)
def test_both_engines_report_the_same_mistakes(kernels: Kernels, name: str, wrong: int) -> None:
    blocks, threads = RIGHT[name][:2]
    assert of_both(kernels, name, blocks, threads, OUT, NUMBERS, wrong) != []


@pytest.mark.parametrize("arriving", [(1, 2, 3), (1, 3), (1, 2)])
def test_a_write_waits_for_all_warps_that_have_read(arriving: tuple[int, ...]) -> None:
    """Warps 1 to 3 read a word, and warp 0 writes it after some of them have arrived."""
    wait = "wait: mbarrier.try_wait.parity.shared.b64 %p, [bars], 0; @!%p bra wait; st.shared.u32 [%r4], 7; bra end;"
    read = "ld.shared.u32 %r8, [%r4]; add.u32 %r7, %r7, %r8;"
    arrive = "mbarrier.arrive.shared.b64 %d3, [bars];"
    ways = "\n".join(f"setp.eq.u32 %p, %r3, {warp}; @%p bra warp{warp};" for warp in range(WARPS))
    bodies = f"warp0: {wait}\n" + "\n".join(
        f"warp{warp}: {read} {arrive if warp in arriving else ''} bra end;" for warp in range(1, WARPS)
    )
    fills = "setp.ge.u32 %p, %r1, 32; @%p bra filled; st.shared.u32 [%r4], 1; filled:"
    inits = f"mbarrier.init.shared.b64 [bars], {32 * len(arriving)};"
    text = KERNEL.format(meetings=1, words=32, inits=inits, fills=fills, ways=ways, bodies=bodies)
    kernels = Kernels(load_module(HEAD + text))
    texts = of_both(kernels, "k", 1, 32 * WARPS, np.zeros(32 * WARPS, np.int32))
    assert any("race" in text for text in texts) == (len(arriving) < WARPS - 1)
    (kernel,) = program_of(kernels.module.entries["k"]).native.values()
    assert kernel is not None
    assert bool(kernel.recorded.doubts) == bool(texts)
