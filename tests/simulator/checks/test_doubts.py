"""A launch in which machine code raises a doubt has the same results as with the NumPy engine, which raises none.

These tests force a doubt at every opportunity: in place of each check of an access, after the check, and in place of
each answer that Python gives to machine code. Memory, output and findings must be as if the launch had run once.
"""

import random
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.checks import findings
from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.ptx.compiling.program import program_of
from cudart_py.simulator.state.memory.records.shadow import ShadowMemory
from tests.simulator.checks.reports import FOLDER, take_findings
from tests.simulator.ptx.machine import Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

from cudart_py.simulator.ptx.native.launching.speculation import Speculation, SpeculationFailed
from cudart_py.simulator.ptx.native.layout import Context, Doubt
from cudart_py.simulator.ptx.native.library.checking.records import raise_doubt
from cudart_py.simulator.ptx.native.library.frame import when
from cudart_py.simulator.ptx.native.vectors import I32, I64
from cudart_py.simulator.ptx.native.writing.checking import Checking

BLOCKS, THREADS, N = 2, 40, 512

SOURCE = (FOLDER / "doubts.cu").read_text()
NAMES = re.findall(r"^[A-Z_]+\((\w+)", SOURCE, re.MULTILINE)
# One kernel for each form of code and of access.
FEW = ["guarded", "loop", "branches", "vectors", "calls", "store_two_in_block", "atom_relaxed", "red_in_block"]

# Unused words of the context. Each counts down to the opportunity at which a doubt is raised.
WORDS = {"in place": Context.WORDS - 3, "in place, again": Context.WORDS - 2, "after": Context.WORDS - 1}
WAYS = [*WORDS, "answer"]
assert max(Context, key=lambda word: word if word is not Context.WORDS else 0) < min(WORDS.values())


class Doubter:
    """Raises a doubt in machine code in a given `way`, at the last of the `left` opportunities that follow."""

    def __init__(self) -> None:
        self.set("after", 0)

    def set(self, way: str, at: int) -> None:
        """Choose the way, and the opportunity in the following launches, counted from 1; with 0, only count them."""
        self.way, self.left = way, at

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        call, begin, end, answer = Checking._call, Speculation.__init__, Speculation.end, Speculation.answer

        def doubt_or_call(checking: Checking, name: str, *arguments: Any) -> None:
            b, context = checking._b, checking._context

            def due(way: str) -> Any:
                left = b.sub(b.word(context, WORDS[way]), I64(1))
                b.set_word(context, WORDS[way], left)
                return b.icmp_unsigned("==", left, I64(0))

            once, again = due("in place"), due("in place, again")
            with when(b, once):
                raise_doubt(b, context, I32(0), Doubt.FINDING)
            with when(b, again):
                raise_doubt(b, context, I32(0), Doubt.SHARED)
            with when(b, b.not_(b.or_(once, again))):
                call(checking, name, *arguments)
            with when(b, due("after")):
                raise_doubt(b, context, I32(0), Doubt.FINDING)

        def begin_to_count(speculation: Speculation, launches: Any, *arguments: Any) -> None:
            begin(speculation, launches, *arguments)
            if self.way in WORDS:
                launches[0].context.view(np.int64)[WORDS[self.way]] = self.left

        def end_to_count(speculation: Speculation) -> None:
            # The launch may start again in machine code, which continues the count.
            if self.way in WORDS:
                self.left = int(speculation._launch.context.view(np.int64)[WORDS[self.way]])
            end(speculation)

        def answer_or_doubt(speculation: Speculation, *arguments: Any) -> None:
            if self.way == "answer":
                self.left -= 1
                if self.left == 0:
                    raise SpeculationFailed
            answer(speculation, *arguments)

        patch.setattr(Checking, "_call", doubt_or_call)
        patch.setattr(Speculation, "__init__", begin_to_count)
        patch.setattr(Speculation, "end", end_to_count)
        patch.setattr(Speculation, "answer", answer_or_doubt)


class Bench:
    """Runs kernels on the same three arrays, which have the same contents before each launch."""

    def __init__(self, doubter: Doubter) -> None:
        self.doubter, self.kernels = doubter, Kernels(SOURCE)
        # The arrays are at the start of their allocations, and nothing else is written to these.
        self.used = [4 * N, 4 * N, 16 * N]
        self.sizes = self.used.copy()
        self.arrays = [self.kernels.memory.new(size) for size in self.sizes]
        self.beside = self.kernels.zeros(64)

    def run(self, engine: str, name: str) -> Any:
        """Launch a kernel; return the arrays, which of their bytes are initialised, the output, and the findings."""
        kernels, memory = self.kernels, self.kernels.memory
        kernels.engine = engine
        kernels.printed.clear()
        findings.pending.clear()
        for address, size, used in zip(self.arrays, self.sizes, self.used, strict=True):
            # An addition to these values carries into their upper half.
            memory.view(address, used // 4, np.int32)[:] = (np.arange(used // 4) % 251 << 16) - 2
            shadow = memory.shadows[address] = ShadowMemory(address, size, False)
            shadow.fill(address, used)
        for kernel in program_of(kernels.module.entries[name]).native.values():
            if kernel is not None:
                kernel.recorded.doubts = 0
                kernel.recorded.sites[:] = False
        kernels.launch(name, BLOCKS, THREADS, *self.arrays, observer=LaunchChecks())
        values = [memory.view(*place, np.uint8).tobytes() for place in zip(self.arrays, self.used, strict=True)]
        initialised = [memory.shadows[address].initialised for address in self.arrays]
        return values, initialised, kernels.printed.copy(), take_findings()

    def count(self, way: str, name: str) -> int:
        """Return how many opportunities for a doubt of a given way a launch has."""
        self.doubter.set(way, 0)
        self.run("native", name)
        assert self.doubter.left
        return -self.doubter.left

    def check(self, name: str, ways: list[str], most: int = 999) -> None:
        """Compare launches that doubt at each opportunity, or at `most` random ones, with a launch by NumPy."""
        expected = self.run("numpy", name)
        for way in ways:
            opportunities = self.count(way, name) + 1
            for at in random.sample(range(opportunities), min(most, opportunities)):
                self.doubter.set(way, at)
                assert self.run("native", name) == expected, (way, at)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with pytest.MonkeyPatch.context() as patch:
        doubter = Doubter()
        doubter.patch(patch)
        yield Bench(doubter)


# A fault at one in ten opportunities of three kernels is missed with a probability of 8 %. All kernels of a form share
# its code, so every opportunity is tried with one kernel for each form.
@pytest.mark.parametrize(
    ("name", "most"),
    [*((name, 8) for name in NAMES), *(pytest.param(name, 999, marks=pytest.mark.exhaustive) for name in FEW)],
)
def test_a_doubt_at_any_opportunity_leaves_what_numpy_leaves(bench: Bench, name: str, most: int) -> None:
    bench.check(name, WAYS, most)


@pytest.mark.parametrize("large", range(3))
def test_kernels_are_applied_once_to_large_allocations_of_which_a_part_is_written(bench, monkeypatch, large):
    """Python makes no records for such allocations, whichever access asks for them first."""
    bench.doubter.set("after", 0)
    for name in ("arrays", "sizes"):
        monkeypatch.setattr(bench, name, getattr(bench, name).copy())
    bench.sizes[large] = (1 << 24) + 4096
    bench.arrays[large] = bench.kernels.memory.new(bench.sizes[large])
    for name in FEW:
        assert bench.run("native", name) == bench.run("numpy", name), name


@pytest.mark.parametrize("name", ["guarded", "scattered", "vectors", "atomics", "calls"])
def test_a_store_on_both_sides_of_a_granules_border_is_undone(bench, monkeypatch, name):
    start = bench.kernels.memory.new(1 << 18)
    # The elements of lanes 0 to 9 are in one granule, and those of all other lanes in the next.
    monkeypatch.setattr(bench, "arrays", [(start + (1 << 16) & -1 << 16) - 4 * 10, *bench.arrays[1:]])
    bench.check(name, ["after"])


def test_an_access_is_undone_wherever_the_first_allocation_starts(bench: Bench) -> None:
    """Memory is saved in granules from there on, and no single access may span two of them."""
    other = Bench(bench.doubter)  # its memory starts elsewhere
    memory = other.kernels.memory
    memory._live[memory.base + 2] = 64
    inside = memory.new(1 << 18) + (1 << 16)
    # If granules began exactly where the first allocation starts, the last lane's element would span two of them.
    other.arrays[0] = memory.base + (inside - memory.base & -1 << 16) - 4 * (BLOCKS * THREADS - 1)
    other.check("calls", ["after"])


def test_an_undo_leaves_what_the_host_has_written_beside_what_the_launch_stores_to(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, undo = bench.kernels.memory, Speculation.undo

    def written_meanwhile(speculation: Speculation) -> None:
        memory.view(bench.beside, 64, np.int32)[:] = 7
        undo(speculation)

    monkeypatch.setattr(Speculation, "undo", written_meanwhile)
    bench.doubter.set("after", 9)
    bench.run("native", "guarded")
    assert (bench.kernels.get(bench.beside, 64) == 7).all()


@pytest.mark.parametrize("name", ["guarded", "comes_together"])
def test_an_interrupt_is_raised_wherever_it_comes_and_whatever_is_doubted_later(bench, monkeypatch, name):
    answer, memory = Speculation.answer, bench.kernels.memory
    memory.new(1)  # so that no launch finds the records of an earlier one
    for left in range(1, bench.count("answer", name) + 1):
        memory.new(1)
        steps = iter([*[answer] * (left - 1), KeyboardInterrupt])

        def interrupt(speculation: Speculation, *arguments: Any, steps: Any = steps) -> None:
            step = next(steps, SpeculationFailed)
            if step is not answer:
                raise step
            answer(speculation, *arguments)

        monkeypatch.setattr(Speculation, "answer", interrupt)
        with pytest.raises(KeyboardInterrupt):
            bench.run("native", name)
