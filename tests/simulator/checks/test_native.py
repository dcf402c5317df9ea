"""The checks find the same mistakes when launches run in machine code, and correct kernels run in machine code."""

from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.calls.launches.observers import Observers
from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.counters.launch_counters import LaunchCounters
from cudart_py.simulator.ptx import Fault, load_module
from cudart_py.simulator.ptx.compiling.program import program_of
from cudart_py.simulator.ptx.native import engine as native_engine
from cudart_py.simulator.ptx.native.launching import runs
from cudart_py.simulator.ptx.native.launching.speculation import Speculation
from cudart_py.simulator.ptx.running import runs as numpy_runs
from cudart_py.simulator.state.memory.records.record_limit import limit
from cudart_py.simulator.state.memory.records.shadow import ShadowMemory
from tests.simulator.checks.reports import FOLDER, of_both, run_natively, watched
from tests.simulator.ptx.machine import HEAD, Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

# A load of four words. Words `first` to `last` - 1 have been written, and the register `used` reaches a branch.
VECTOR = """.visible .entry loads(.param .u64 words, .param .u64 out) {{
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
def test_a_vector_load_is_reported_by_the_element_that_nothing_has_written(destination, first, last, used, missing):
    kernels = Kernels(load_module(HEAD + VECTOR.format(destination=destination, used=used)))
    words = kernels.put(np.arange(4, dtype=np.int32))
    shadow = kernels.memory.shadows[words] = ShadowMemory(words, 16, False)
    shadow.fill(words + 4 * first, 4 * (last - first))
    texts = of_both(kernels, "loads", 1, 1, words, np.zeros(1, np.int32))
    assert len(texts) == (missing is not None), texts
    if missing is not None:
        assert "uninitialised value reaches a branch" in texts[0]
        assert f"({missing} bytes from the start of 16)" in texts[0]


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels((FOLDER / "machine_code.cu").read_text())


ZEROS, RISING, FLOATS = np.zeros(1024, np.int32), np.arange(1024, dtype=np.int32), np.arange(2048, dtype=np.float32)
RANDOM = np.random.default_rng(0).integers(1, 1 << 32, 1024).astype(np.uint32)
LONG = RISING.astype(np.uint64)
# Correct kernels: barriers, reconverging warps, accesses of all sizes to the same memory, local memory, atomics, copies
# with their waits, including copies that read less than they store, and order by fences, flags and locks.
RIGHT: dict[str, tuple[Any, ...]] = {
    "in_place": (4, 256, RISING),
    "wide": (4, 256, np.ones(2048), RISING.astype(np.uint8), np.ones(2048, np.int16)),
    "tables": (4, 256, ZEROS, 5),
    "sorted": (1, 256, np.resize(RANDOM[:256] % 1000, 1024)),
    "greatest": (4, 256, LONG[:1], LONG),
    "sums_of_blocks": (4, 256, ZEROS),
    "warp_counters": (1, 256, RANDOM.astype(np.int32)),
    "own_and_warp": (4, 256, ZEROS, FLOATS),
    "some_copy": (4, 256, ZEROS, FLOATS),
    "stages": (4, 256, ZEROS, FLOATS, 8),
    "filled": (1, 128, ZEROS, RANDOM),
    "sum_once": (4, 96, ZEROS, ZEROS, ZEROS),
    "chain": (4, 96, ZEROS, ZEROS, ZEROS),
    "locks": (2, 96, ZEROS, ZEROS),
    "steps": (4, 96, ZEROS, ZEROS, ZEROS, 3),
    "hand_over": (4, 96, ZEROS, ZEROS, ZEROS),
    "many_blocks": (100, 96, ZEROS, np.zeros(9600, np.int32), ZEROS),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_in_order_runs_in_machine_code(kernels: Kernels, name: str) -> None:
    run_natively(kernels, name, *RIGHT[name])


def test_a_launch_that_runs_again_has_changed_nothing_before(kernels: Kernels) -> None:
    assert len(of_both(kernels, "count_then_race", 1, 256, np.zeros(2, np.int32))) == 1


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        # It stores the sum of the preceding warps only because of the order in which the warps run.
        ("happens_to_be", 1, "race"),
        # The NumPy engine runs the store for all threads before any thread reads, so each stores what is already there.
        ("store_what_is_there", 2, "race: it reads"),
        # The storing thread's own atomic comes next, so its store may seem ordered before other threads' atomics.
        ("store_then_count", 1, "race: it updates"),
    ],
)
def test_a_race_that_leaves_no_trace_is_found_in_machine_code(kernels, name, arguments, text):
    given = [kernels.put(RISING) for _ in range(arguments)]
    assert any(text in one for one in watched(kernels, "native", name, 1, 128, *given))


def test_what_a_launch_in_machine_code_has_written_counts_as_written(kernels: Kernels) -> None:
    x, y = kernels.zeros(256), kernels.zeros(256)
    for address in (x, y):
        kernels.memory.shadows[address] = ShadowMemory(address, 1024, False)
    run_natively(kernels, "first_half", 1, 256, x)
    run_natively(kernels, "copy", 1, 128, x, y)
    texts = watched(kernels, "native", "copy", 1, 256, x, y)
    assert any("where nothing has been written" in text for text in texts)
    assert not kernels.memory.shadows[x].initialised
    whole = kernels.zeros(128)
    kernels.memory.shadows[whole] = ShadowMemory(whole, 512, False)
    assert watched(kernels, "native", "first_half", 1, 256, whole) == []
    assert kernels.memory.shadows[whole].initialised
    # A mistake in one launch is not reported again for the next launch.
    for with_barrier in (1, 0, 1):
        texts = watched(kernels, "native", "no_barrier", 1, 256, y, with_barrier)
        assert bool(texts) == (not with_barrier)
    assert kernels.memory.shadows[y].initialised


def test_launches_and_copies_that_write_parts_of_an_allocation_are_remembered(kernels: Kernels) -> None:
    """Both engines, copies from the host, and launches that are undone take turns in writing parts of it."""
    random, size = np.random.default_rng(), (1 << 12) + 77
    x, y = kernels.zeros(size), kernels.zeros(256)
    shadow = kernels.memory.shadows[x] = ShadowMemory(x, 4 * size, False)
    written = np.zeros(size, np.bool_)
    for _ in range(60):
        first = int(random.integers(size - 256))
        length, engine = int(random.integers(1, 200)), str(random.choice(["numpy", "native"]))
        match int(random.integers(3)):
            case 0:
                shadow.fill(x + 4 * first, 4 * length)
                written[first : first + length] = True
            case 1:
                assert watched(kernels, engine, "first_half", 1, 256, x + 4 * first) == []
                written[first : first + 128] = True
            case _:
                # Whatever it reads, its store is defined at most where it reads what has been written.
                texts = watched(kernels, engine, "copy", 1, 128, x + 4 * first, y)
                assert bool(texts) != written[first : first + 128].all()
        np.testing.assert_array_equal(shadow.history.writes != 0 if shadow.history.written else False, written)


FAILS = """extern "C" __global__ void fails(int* x) { x[threadIdx.x] = 1; __syncthreads(); __trap(); }
extern "C" __global__ void chosen(const int* x, int* y) { if (x[threadIdx.x]) y[threadIdx.x] = 1; }
"""


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_what_a_launch_has_written_before_it_fails_counts_as_written(engine: str) -> None:
    kernels = Kernels(FAILS)
    x, y = kernels.zeros(64), kernels.zeros(64)
    kernels.memory.shadows[x] = ShadowMemory(x, 256, False)
    with pytest.raises(Fault, match="trap executed"):
        watched(kernels, engine, "fails", 1, 64, x)
    assert watched(kernels, engine, "chosen", 1, 64, x, y) == []


def test_a_large_allocation_of_which_a_part_is_written_stays_in_machine_code(kernels: Kernels) -> None:
    size = (1 << 24) + 4
    x = kernels.zeros(size // 4)
    shadow = kernels.memory.shadows[x] = ShadowMemory(x, size, False)
    kernel = program_of(kernels.module.entries["first_half"])
    for _ in range(4):
        kernel.seconds = 0.0
        assert watched(kernels, "native", "first_half", 1, 256, x) == []
        assert kernel.seconds == 0  # with NumPy
    assert shadow.history.writes[:128].all()
    assert not shadow.history.writes[128:].any()
    assert kernels.get(x, 128).all()


def test_the_rest_of_a_long_launch_with_a_mistake_runs_in_machine_code(kernels: Kernels, monkeypatch) -> None:
    monkeypatch.setattr(numpy_runs, "_MOST_SECONDS_AFTER_MISTAKE", -1.0)
    blocks = 4 * numpy_runs.CHUNK_LANES // 256
    x = kernels.zeros(256 * blocks)
    shadow = kernels.memory.shadows[x] = ShadowMemory(x, 4 * 256 * blocks, False)
    texts = watched(kernels, "native", "race_at_first", blocks, 256, x)
    assert texts
    assert all("race" in text for text in texts)
    assert frozenset() in {watch for _, watch, _ in program_of(kernels.module.entries["race_at_first"]).native}
    np.testing.assert_array_equal(kernels.get(x, 256 * blocks)[1:], np.arange(1, 256 * blocks))
    # The launch's writes are no longer recorded, so all memory counts as written.
    assert shadow.initialised


def test_launches_of_a_kernel_with_a_mistake_run_in_machine_code_once_they_have_taken_long_together(
    kernels: Kernels, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    x, y = kernels.zeros(256), kernels.zeros(256)
    monkeypatch.setattr(limit, "said", False)
    kernel = program_of(kernels.module.entries["race_at_first"])
    monkeypatch.setattr(kernel, "launches_with_mistakes", 0)
    for _ in range(numpy_runs.MANY_LAUNCHES):
        assert watched(kernels, "native", "race_at_first", 1, 256, x)
    monkeypatch.setattr(numpy_runs, "_MOST_SECONDS_AFTER_MISTAKE", kernel.seconds_with_mistakes)
    assert watched(kernels, "native", "race_at_first", 1, 256, y) == []
    assert "its later launches are not checked" in capsys.readouterr().err
    np.testing.assert_array_equal(kernels.get(y, 256)[1:], np.arange(1, 256))


THREADS = """
extern "C" __global__ void doubled(int* x, int turns) {
    __shared__ int s[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    s[threadIdx.x] = x[i];
    for (int turn = 0; turn < turns; ++turn) {
        __syncthreads();
        int other = s[threadIdx.x ^ 32];
        __syncthreads();
        s[threadIdx.x] += other;
    }
    x[i] = s[threadIdx.x];
}
extern "C" __global__ void added(int* x, const int* y) { x[blockIdx.x * 64 + threadIdx.x] += y[threadIdx.x]; }
extern "C" __global__ void overlap(int* x) {
    for (int k = 0; k < 4; ++k) x[blockIdx.x * 61 + threadIdx.x] = blockIdx.x + k;
}
"""


@pytest.mark.parametrize("threads", [1, 3])
def test_several_threads_run_checked_blocks(monkeypatch, threads):
    monkeypatch.setattr(native_engine, "_WORTH_THREAD", 1)
    kernels, blocks, turns = Kernels(THREADS), 1500, 5
    kernels.threads = threads
    x = np.random.default_rng().integers(-1000, 1000, (blocks, 64), np.int32)
    for _ in range(2):  # the loads are recorded from the second attempt on
        given = kernels.put(x)
        assert watched(kernels, "native", "doubled", blocks, 64, given, turns) == []
        sums = (x + np.roll(x, 32, axis=1)) * 2 ** (turns - 1)
        np.testing.assert_array_equal(kernels.get(given, x.size).reshape(x.shape), sums)
    (kernel,) = program_of(kernels.module.entries["doubled"]).native.values()
    assert kernel.recorded.doubts == 0
    (text,) = of_both(kernels, "overlap", blocks, 64, np.zeros(blocks * 64, np.int32))
    assert "race: it writes" in text


def test_only_loads_of_memory_that_the_launch_changes_are_recorded(monkeypatch):
    """Several threads find out at once that one of two loads must be recorded."""
    monkeypatch.setattr(native_engine, "_WORTH_THREAD", 1)
    kernels = Kernels(THREADS)
    kernels.threads = 3
    x, y = (kernels.put(np.arange(6000 * 64, dtype=np.int32)) for _ in range(2))
    assert watched(kernels, "native", "added", 6000, 64, x, y) == []
    (kernel,) = program_of(kernels.module.entries["added"]).native.values()
    assert kernel.recorded.sites.sum() == 1
    assert kernel.recorded.doubts == 0


# Every thread loads 32 elements of its neighbour, and stores its own after a barrier.
MANY_LOADS = """extern "C" __global__ void exchanged(int* x)
{
    int kept[32];
#pragma unroll
    for (int i = 0; i < 32; i++) kept[i] = x[64 * i + (threadIdx.x ^ 1)];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 32; i++) x[64 * i + threadIdx.x] = kept[i];
}
"""


def test_a_kernel_with_many_loads_to_record_runs_again_only_a_few_times(monkeypatch) -> None:
    attempts: list[Speculation] = []

    def begun(*arguments: Any) -> Speculation:
        attempts.append(Speculation(*arguments))
        return attempts[-1]

    monkeypatch.setattr(runs, "Speculation", begun)
    kernels = Kernels(MANY_LOADS)
    numbers = np.arange(32 * 64, dtype=np.int32)
    x = kernels.put(numbers)
    assert watched(kernels, "native", "exchanged", 1, 64, x) == []
    np.testing.assert_array_equal(kernels.get(x, numbers.size), numbers ^ 1)
    (kernel,) = program_of(kernels.module.entries["exchanged"]).native.values()
    assert kernel.recorded.doubts == 0
    # The numbers of loads that the attempts record: 0, 1, 3, 7, 15, 31 and 32 at the latest, instead of 0, 1, 2, ….
    assert 2 <= len(attempts) <= 7


def test_counters_and_checks_watch_at_once(kernels: Kernels) -> None:
    metrics = []
    for engine in ("numpy", "native"):
        counters, x = LaunchCounters(), kernels.put(RISING)
        assert watched(kernels, engine, "in_place", 4, 256, x, observer=Observers(counters, LaunchChecks())) == []
        metrics.append(counters.metrics)
    assert metrics[0] == metrics[1]
    known = program_of(kernels.module.entries["in_place"]).native
    assert any(kernel is not None and len(watch) == 2 for (_, watch, _), kernel in known.items())


@pytest.mark.parametrize("apart", [0, 1])
def test_a_copy_that_reads_nothing_races_with_no_store(kernels: Kernels, apart: int) -> None:
    assert of_both(kernels, "beside_stores", 2, 256, ZEROS, 0, apart) == []
    assert "race" in "".join(of_both(kernels, "beside_stores", 2, 256, ZEROS, 4, apart))


@pytest.mark.parametrize("how", range(6))
def test_a_copy_that_is_not_waited_for_is_found_in_the_same_words(kernels: Kernels, how: int) -> None:
    assert of_both(kernels, "wrong", 1, 256, ZEROS, FLOATS, how)


@pytest.mark.parametrize("name", ["sum_once", "chain", "locks", "steps"])
def test_what_no_fence_puts_in_order_is_found_in_the_same_words(kernels: Kernels, name: str) -> None:
    for how in ("no_fence", "fence_of_the_block", "fence_too_late"):
        texts = of_both(kernels, f"{name}_{how}", *RIGHT[name])
        # In the NumPy engine, the late fence of a chain is followed by a release of all earlier accesses.
        assert texts or (name, how) == ("chain", "fence_too_late"), how


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_coarse_records_accuse_nobody_and_find_what_nothing_has_written(kernels, monkeypatch, engine):
    """Coarse records are kept if the limit has no room for exact ones, and they cannot show races."""
    monkeypatch.setattr(limit, "admits", lambda size: False)
    monkeypatch.setattr(limit, "said", True)
    for name, (grid, block, *arguments) in [*RIGHT.items(), ("happens_to_be", (1, 128, RISING))]:
        given = [kernels.put(one) if isinstance(one, np.ndarray) else one for one in arguments]
        assert watched(kernels, engine, name, grid, block, *given) == [], name
    x = kernels.zeros(256)
    kernels.memory.shadows[x] = ShadowMemory(x, 1024, False)
    assert watched(kernels, engine, "first_half", 1, 256, x) == []
    texts = watched(kernels, engine, "copy", 1, 256, x, kernels.zeros(256))
    assert any("where nothing has been written" in text for text in texts)
