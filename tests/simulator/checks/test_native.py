"""Checks find the same while machine code runs the launches, and what has no mistake runs in machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.calls.launches.observers import Observers
from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.counters.launch_counters import LaunchCounters
from cudart_py.simulator.ptx import load_module
from cudart_py.simulator.ptx.compiling.program import program_of
from cudart_py.simulator.state.memory.shadow import ShadowMemory
from tests.benchmarks.bench_simulator import SOURCE as MEASURED
from tests.simulator.checks.reports import FOLDER, assert_native, of_both, run_natively, watched
from tests.simulator.ptx.machine import Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

# Four words are loaded, of which those from `first` to `last` have been written, and one register reaches a branch.
VECTOR = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry loads(.param .u64 words, .param .u64 out) {{
    .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p;
    ld.param.u64 %d1, [words];
    ld.param.u64 %d2, [out];
    ld.global.v4.u32 {{{destination}}}, [%d1];
    setp.ne.u32 %p, %r{used}, 7;
    @%p st.global.u32 [%d2], 1;
    ret;
}}
"""


@pytest.mark.parametrize(
    ("destination", "first", "last", "used", "missing"),
    [
        ("%r0, %r1, %r2, %r3", 0, 2, 2, 8),
        ("%r0, %r1, %r2, %r3", 0, 2, 3, 12),
        ("%r0, %r1, %r2, %r3", 2, 4, 1, 4),
        ("%r0, %r1, %r2, %r3", 0, 2, 1, None),
        ("%r0, %r1, %r2, %r3", 0, 0, 3, 0),
        ("_, _, %r2, %r3", 0, 2, 3, 12),
        ("_, _, %r2, %r3", 0, 2, 2, 8),
        ("_, %r1, %r2, %r3", 2, 4, 2, None),
        ("_, %r1, %r2, %r3", 2, 4, 1, 4),
        ("%r0, %r1, %r2, _", 0, 3, 2, None),
        ("_, _, _, %r3", 0, 0, 3, 0),
    ],
)
def test_a_vector_load_is_reported_by_the_element_that_nothing_has_written(
    destination: str, first: int, last: int, used: int, missing: int | None
) -> None:
    kernels = Kernels(load_module(VECTOR.format(destination=destination, used=used)))
    words = kernels.put(np.arange(4, dtype=np.int32))
    shadow = kernels.memory.shadows[words] = ShadowMemory(words, 16, False)
    shadow.fill(words + 4 * first, 4 * (last - first))
    texts = of_both(kernels, "loads", 1, 1, words, None)
    assert len(texts) == (missing is not None), texts
    if missing is not None:
        assert "uninitialised value reaches a branch" in texts[0]
        assert f"({missing} bytes from the start of 16)" in texts[0]


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels((FOLDER / "machine_code.cu").read_text(), f"-I{FOLDER}")


def test_the_measured_kernels_run_in_machine_code() -> None:
    measured, n = Kernels(MEASURED), 1024
    x, y, out = (measured.put(np.ones(4 * n, np.float32)) for _ in range(3))
    run_natively(measured, "saxpy", 4, 256, n, np.float32(2), x, y)
    run_natively(measured, "transpose", 1, (32, 8, 1), out, x, 32, 32)
    run_natively(measured, "matmul", (2, 2, 1), (16, 16, 1), x, y, out, 32)
    run_natively(measured, "collatz", 4, 256, n, out)
    run_natively(measured, "nbody", 4, 256, n, x, out)
    run_natively(measured, "one_thread", 1, 1, 100, x, out)


def test_what_threads_do_in_order_runs_in_machine_code(kernels: Kernels) -> None:
    """Barriers, warps that come together, loads and stores of the same memory, of all sizes, and local memory."""
    x = kernels.put(np.arange(1024, dtype=np.int32))
    run_natively(kernels, "in_place", 4, 256, x)
    expected = 2 * np.arange(1024)
    expected[::256] = np.arange(1024).reshape(4, 256).sum(axis=1)
    np.testing.assert_array_equal(kernels.get(x, 1024), expected)
    bytes_, shorts = kernels.put(np.arange(1024).astype(np.uint8)), kernels.zeros(2048, np.int16)
    run_natively(kernels, "wide", 4, 256, kernels.zeros(2048, np.float64), bytes_, shorts)
    run_natively(kernels, "tables", 4, 256, x, 5)
    values = np.random.default_rng(0).integers(0, 1000, 256).astype(np.int32)
    on_device = kernels.put(np.resize(values, 1024))
    run_natively(kernels, "sorted", 1, 256, on_device)
    np.testing.assert_array_equal(kernels.get(on_device, 1024)[np.arange(256) * 37 % 1024], np.sort(values))
    large, most = kernels.put(np.arange(1024, dtype=np.uint64)), kernels.zeros(1, np.uint64)
    run_natively(kernels, "greatest", 4, 256, most, large)
    assert kernels.get(most, 1, np.uint64)[0] == 1023
    # Blocks do not meet where these atomics have block scope.
    sums = kernels.zeros(4)
    run_natively(kernels, "sums_of_blocks", 4, 256, sums)
    assert kernels.get(sums, 4).tolist() == [256] * 4


def test_a_launch_that_runs_again_has_changed_nothing_before(kernels: Kernels) -> None:
    x = kernels.zeros(2)
    assert len(watched(kernels, "native", "count_then_race", 1, 256, x)) == 1
    assert kernels.get(x, 2).tolist() == [256, 255]


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        # It stores the sum of the warps before it, by chance.
        ("happens_to_be", 1, "race"),
        # The NumPy engine lets all threads store before any reads, so it stores what is there already.
        ("store_what_is_there", 2, "race: it reads"),
        # Its thread's own atomic comes before, so the store may be ordered before some of the atomics.
        ("store_then_count", 1, "race: it updates"),
    ],
)
def test_a_race_that_leaves_no_trace_is_found_in_machine_code(
    kernels: Kernels, name: str, arguments: int, text: str
) -> None:
    given = [kernels.put(np.arange(128, dtype=np.int32)) for _ in range(arguments)]
    kernels.memory.view(given[0], 1, np.int32)[:] = 0
    assert any(text in one for one in watched(kernels, "native", name, 1, 128, *given))


def test_what_a_launch_in_machine_code_has_written_counts_as_written(kernels: Kernels) -> None:
    x, y = kernels.zeros(256), kernels.zeros(256)
    kernels.memory.shadows[x] = ShadowMemory(x, 1024, False)
    run_natively(kernels, "first_half", 1, 256, x)
    run_natively(kernels, "copy", 1, 128, x, y)
    texts = watched(kernels, "native", "copy", 1, 256, x, y)
    assert any("where nothing has been written" in text for text in texts)
    assert not kernels.memory.shadows[x].initialised
    kernels.memory.shadows[y] = ShadowMemory(y, 1024, False)
    assert watched(kernels, "native", "no_barrier", 1, 256, y, 1) == []
    assert kernels.memory.shadows[y].initialised


def test_a_large_allocation_of_which_a_part_is_written_is_left_to_numpy(kernels: Kernels) -> None:
    """Its records would have to be made for each launch; the kernel's launches on other memory aren't left."""
    size = (1 << 24) + 4
    x, y = kernels.zeros(size // 4), kernels.zeros(256)
    shadow = kernels.memory.shadows[x] = ShadowMemory(x, size, False)
    for _ in range(4):
        watched(kernels, "native", "first_half", 1, 256, x)
    assert shadow.history.writes[:128].all()
    assert not shadow.history.writes[128:].any()
    run_natively(kernels, "first_half", 1, 256, y)
    assert kernels.get(x, 128).all()


@pytest.mark.parametrize("engine", ["auto", "native"])
def test_a_kernel_is_applied_once_to_large_arrays_of_which_a_part_is_written(
    device: Any, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", engine)
    saxpy = cuda.compile(
        'extern "C" __global__ void saxpy(int n, float a, const float* x, float* y)'
        "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = a * x[i] + y[i]; }"
    )["saxpy"]
    n = 1 << 16
    with cuda.checks("error"), cuda.empty(5_000_000, np.float32) as x, cuda.empty(5_000_000, np.float32) as y:
        for array in (x, y):
            array[:n].copy_from(np.ones(n, np.float32))
        for _ in range(2):
            saxpy[n // 256, 256](n, 2.0, x, y)
        assert (y[:n].to_host() == 5).all()


def test_a_mistake_of_one_launch_is_none_of_the_next(kernels: Kernels) -> None:
    x = kernels.zeros(256)
    for with_barrier in (1, 0, 1):
        assert bool(watched(kernels, "native", "no_barrier", 1, 256, x, with_barrier)) == (not with_barrier)


def test_counters_and_checks_watch_at_once(kernels: Kernels) -> None:
    metrics = []
    for engine in ("numpy", "native"):
        counters = LaunchCounters()
        x = kernels.put(np.arange(1024, dtype=np.int32))
        assert watched(kernels, engine, "in_place", 4, 256, x, observer=Observers(counters, LaunchChecks())) == []
        metrics.append(counters.metrics)
    assert metrics[0] == metrics[1]
    known = program_of(kernels.module.entries["in_place"]).native
    assert any(kernel is not None and len(watch) == 2 for (_, watch, _), kernel in known.items())


@pytest.mark.parametrize("name", ["own_and_warp", "some_copy"])
def test_copies_that_are_waited_for_run_in_machine_code(kernels: Kernels, name: str) -> None:
    """Behind barriers of the block, and behind what brings a warp together."""
    assert of_both(kernels, name, 4, 256, None, kernels.put(np.arange(256, dtype=np.float32))) == []
    assert_native(kernels, name)


def test_a_pipeline_of_copies_runs_in_machine_code(kernels: Kernels) -> None:
    values, out = np.arange(2048, dtype=np.float32), kernels.zeros(1024)
    assert of_both(kernels, "stages", 4, 256, out, kernels.put(values), 8) == []
    assert_native(kernels, "stages")
    np.testing.assert_array_equal(kernels.get(out, 256, np.float32), values.reshape(8, 256).sum(axis=0)[::-1])


def test_a_copy_stores_zeros_behind_the_bytes_that_it_reads(kernels: Kernels) -> None:
    values = np.random.default_rng(0).integers(1, 1 << 32, 512).astype(np.uint32)
    out = kernels.zeros(768, np.uint32)
    assert of_both(kernels, "filled", 1, 128, out, kernels.put(values)) == []
    assert_native(kernels, "filled")
    found = kernels.get(out, 768, np.uint32)
    read = np.where(np.arange(128) < 96, np.arange(128) % 17, 0)
    expected = np.where(np.arange(16) < read[:, None], values.view(np.uint8).reshape(128, 16), 0)
    np.testing.assert_array_equal(found[:512].view(np.uint8).reshape(128, 16), expected)
    pairs = np.where(np.arange(128)[:, None] % 3 == 0, 0, values[:256].reshape(128, 2))
    np.testing.assert_array_equal(found[512:].reshape(128, 2), pairs)


@pytest.mark.parametrize("apart", [0, 1])
def test_a_copy_that_reads_nothing_races_with_no_store(kernels: Kernels, apart: int) -> None:
    assert of_both(kernels, "beside_stores", 2, 256, None, 0, apart) == []
    assert "race" in "".join(of_both(kernels, "beside_stores", 2, 256, None, 4, apart))


@pytest.mark.parametrize("how", range(6))
def test_a_copy_that_is_not_waited_for_is_found_in_the_same_words(kernels: Kernels, how: int) -> None:
    assert of_both(kernels, "wrong", 1, 256, None, kernels.put(np.arange(512, dtype=np.float32)), how)


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "sum_once": (None, None, None),
    "chain": (None, None, None),
    "locks": (None, None),
    "steps": (None, None, None, 3),
    # Ordered accesses release and acquire.
    "hand_over": (None, None, None),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_fences_put_in_order_runs_in_machine_code(kernels: Kernels, name: str) -> None:
    """The last block that reads what all have stored, flags from block to block, locks, and barriers of the grid."""
    assert of_both(kernels, name, 4, 96, *ARGUMENTS[name]) == []
    assert_native(kernels, name)


@pytest.mark.parametrize("name", ["sum_once", "chain", "locks", "steps"])
def test_what_no_fence_puts_in_order_is_found_in_the_same_words(kernels: Kernels, name: str) -> None:
    for how in ("no_fence", "fence_of_the_block", "fence_too_late"):
        texts = of_both(kernels, f"{name}_{how}", 4, 96, *ARGUMENTS[name])
        # For the NumPy engine a chain's late fence is followed by a release of all that has happened.
        assert texts or (name, how) == ("chain", "fence_too_late"), how


def test_the_last_of_many_blocks_reads_what_all_have_stored(kernels: Kernels) -> None:
    total, data, count = kernels.zeros(1), kernels.zeros(100 * 96), kernels.zeros(1)
    run_natively(kernels, "many_blocks", 100, 96, total, data, count)
    assert kernels.get(total, 1)[0] == np.arange(9600).sum()
