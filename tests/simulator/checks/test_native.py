"""Checks find the same while machine code runs the launches, and what has no mistake runs in machine code."""

from __future__ import annotations

import re
import warnings
from typing import Any, Literal

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.calls.launches.observers import Observers
from cudart_py.simulator.checks import findings
from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.counters.launch_counters import LaunchCounters
from cudart_py.simulator.ptx import load_module
from cudart_py.simulator.ptx.compiling.program import program_of
from cudart_py.simulator.state.memory.record_limit import limit
from cudart_py.simulator.state.memory.shadow import ShadowMemory
from tests.benchmarks.bench_simulator import SOURCE as MEASURED
from tests.planted.cases import CASES, compiled
from tests.simulator.ptx.machine import Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
planted = [
    pytest.mark.needs("profile"),
    pytest.mark.unsanitized("the kernels are wrong on purpose"),
]

N = 512
THREADS = 128

# What threads of the random kernels do one after the other: ``X`` is a place in shared memory, ``Y`` one in global.
STEPS = {
    "v += s[X];": 18, "s[X] = v;": 14, "s[X] = 1;": 4, "v += g[Y];": 12, "g[Y] = v;": 8, "g[Y] = 3;": 4,
    "__syncthreads();": 18, "__syncwarp();": 5, "atomicAdd(&s[X], 1);": 5, "atomicAdd(&g[Y], 1);": 4,
    "if (t & 32) s[X] = v;": 3, "s[X] = s[t];": 3, "((unsigned char*)s)[X] = (unsigned char)v;": 2, "v += h[Y];": 2,
}  # fmt: skip  # rows of a table
BEGINNINGS = ["s[t] = t; __syncthreads();", "if (t < 96) s[t] = t; __syncthreads();", ""]


def random_kernel(number: int, steps: dict[str, int] = STEPS) -> str:
    """Return a kernel of a few steps, most of which race or read what nothing has written.

    The `steps` have their weights.
    """
    generator = np.random.default_rng(number)
    weights = np.array(list(steps.values())) / sum(steps.values())
    lines = [BEGINNINGS[generator.choice(3, p=[0.6, 0.15, 0.25])]]
    for step in generator.choice(list(steps), int(generator.integers(2, 9)), p=weights):
        by, behind = generator.choice([1, 1, 1, 1, 33, 0, 2, 4]), generator.choice([0, 0, 0, 1, 32, 64, 5])
        places = {"X": f"({by} * t + {behind}) & 127", "Y": f"({by} * i + {behind}) & 511"}
        lines.append(re.sub("[XY]", lambda match, places=places: places[match[0]], step))
    body = "\n".join(lines)
    return f"""
    extern "C" __global__ void k{number}(int* g, const int* h, int* out) {{
        __shared__ int s[{THREADS}];
        int t = threadIdx.x, i = blockIdx.x * {THREADS} + t, v = t;
        {body}
        out[i] = v;
    }}"""


def found(kernels: Kernels, engine: str, name: str, number: int) -> tuple[list[str], Any]:
    """Return the findings of two launches of a kernel on fresh memory, a part of which nothing has written."""
    kernels.engine = engine
    arrays = [kernels.put(np.arange(N, dtype=np.int32)) for _ in range(3)]
    if number % 2:
        for array in arrays[:2]:
            shadow = kernels.memory.shadows[array] = ShadowMemory(array, 4 * N, False)
            shadow.fill(array, (0, 2 * N, 4 * N - 4, 4 * N)[number // 2 % 4])
    findings.pending.clear()
    for _ in range(2):
        kernels.launch(name, N // THREADS, THREADS, *arrays, observer=LaunchChecks())
    texts = [re.sub("0x[0-9a-f]+", "", text) for text in map(str, findings.pending)]
    findings.pending.clear()
    return texts, np.concatenate([kernels.get(array, N) for array in arrays])


# Lanes that store what another lane of the same instruction has just put in the place of what a third has read.
SAME_INSTRUCTION = [700000693, 700002792]


def test_random_kernels_have_the_same_findings() -> None:
    # Always the same ones: a race may show in one order of the blocks alone (docs/simulator.md).
    numbers = [*range(20), *SAME_INSTRUCTION]
    kernels = Kernels("".join(random_kernel(number) for number in numbers))
    some = 0
    for number in numbers:
        expected, values = found(kernels, "numpy", f"k{number}", number)
        texts, results = found(kernels, "native", f"k{number}", number)
        assert texts == expected, random_kernel(number)
        # A race that is found runs with NumPy; what isn't one gives the same results with both.
        np.testing.assert_array_equal(results, values)
        some += bool(texts)
    assert 0 < some < len(numbers)


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


@pytest.mark.parametrize("engine", ["numpy", "native"])
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
    engine: str, destination: str, first: int, last: int, used: int, missing: int | None
) -> None:
    kernels = Kernels(load_module(VECTOR.format(destination=destination, used=used)))
    kernels.engine = engine
    words, out = kernels.put(np.arange(4, dtype=np.int32)), kernels.put(np.zeros(2, np.int32))
    shadow = kernels.memory.shadows[words] = ShadowMemory(words, 16, False)
    shadow.fill(words + 4 * first, 4 * (last - first))
    findings.pending.clear()
    kernels.launch("loads", 1, 1, words, out, observer=LaunchChecks())
    texts = [str(finding) for finding in findings.pending]
    findings.pending.clear()
    assert len(texts) == (missing is not None), texts
    if missing is not None:
        assert "uninitialised value reaches a branch" in texts[0]
        assert f"from global memory at {words + missing:#x} (" in texts[0]


def test_coarse_records_find_nothing_that_exact_ones_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are kept where there is no room for others."""
    kernels = Kernels("".join(random_kernel(number) for number in range(12)))
    exact = [found(kernels, "numpy", f"k{number}", number)[0] for number in range(12)]
    monkeypatch.setattr(limit, "admits", lambda size: False)
    monkeypatch.setattr(limit, "said", True)
    some = 0
    for number in range(12):
        for engine in ("numpy", "native"):
            texts, _ = found(kernels, engine, f"k{number}", number)
            assert set(map(beginning, texts)) <= set(map(beginning, exact[number])), random_kernel(number)
            assert all("race: " not in text for text in texts)
            some += bool(texts)
    assert some


def beginning(text: str) -> str:
    """Return what a finding is, and at which line; which thread made it may differ."""
    return text.partition(" it was read")[0]


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=planted, id=case.name) for case in CASES if not case.status and ".cu" in case.file],
)
def test_a_planted_mistake_is_found_in_the_same_words(device: Any, monkeypatch: pytest.MonkeyPatch, case: Any) -> None:
    texts = {}
    for engine in ("numpy", "native"):
        monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", engine)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            case.run(compiled(case.file))
            device.synchronize()
        texts[engine] = [re.sub("0x[0-9a-f]+", "", str(warning.message)) for warning in caught]
    assert texts["native"] == texts["numpy"] != []


def checked(
    kernels: Kernels,
    name: str,
    *arguments: Any,
    observer: Any = None,
    grid: Any = 4,
    block: Any = 256,
    **options: Any,
) -> Any:
    """Launch a kernel in machine code, watched by checks; return it, or None if NumPy ran it."""
    kernels.engine = "native"
    findings.pending.clear()
    kernels.launch(name, grid, block, *arguments, steps=None, observer=observer or LaunchChecks(), **options)
    assert not findings.pending
    known = program_of(kernels.module.entries[name]).native
    kernel = next(kernel for (_, watch, _), kernel in known.items() if watch == {"checks"})
    return kernel if kernel is not None and not kernel.recorded.doubts else None


@pytest.fixture(scope="module")
def measured() -> Kernels:
    return Kernels(MEASURED)


def test_the_measured_kernels_run_in_machine_code(measured: Kernels) -> None:
    n = 1024
    x, y, out = (measured.put(np.ones(4 * n, np.float32)) for _ in range(3))
    small = {"grid": (2, 2, 1), "block": (16, 16, 1)}
    assert checked(measured, "saxpy", n, np.float32(2), x, y)
    assert checked(measured, "transpose", out, x, 32, 32, grid=1, block=(32, 8, 1))
    assert checked(measured, "matmul", x, y, out, 32, **small)
    assert checked(measured, "collatz", n, out)
    assert checked(measured, "nbody", n, x, out)
    assert checked(measured, "one_thread", 100, x, out, grid=1, block=1)


SOURCE = r"""
extern "C" __global__ void sums_of_blocks(int* x) {
    __shared__ int s;
    if (threadIdx.x == 0) s = 0;
    __syncthreads();
    atomicAdd_block(&s, 1);
    atomicAdd_block(&x[blockIdx.x], 1);
}
extern "C" __global__ void in_place(int* x) {
    __shared__ int s[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = x[i];
    __syncthreads();
    for (int d = 128; d >= 32; d /= 2) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t < 32) {
        int v = s[t];
        for (int d = 16; d; d /= 2) v += __shfl_down_sync(-1u, v, d);
        if (t == 0) x[i] = v;
    }
    if (t) x[i] = 2 * x[i];
}
extern "C" __global__ void wide(double2* x, const unsigned char* bytes, short* y) {
    int i = blockIdx.x * 256 + threadIdx.x;
    double2 v = x[i];
    x[i] = make_double2(v.y, v.x + bytes[i / 3]);
    y[2 * i] = y[2 * i] + bytes[i];
}
extern "C" __global__ void tables(int* out, int k) {
    int table[16];
    for (int j = 0; j < 16; j++) table[(j + threadIdx.x) & 15] = j * k;
    int s = 0;
    for (int j = 0; j < 16; j++) s += table[(j * k + threadIdx.x) & 15];
    out[blockIdx.x * 256 + threadIdx.x] = s;
}
extern "C" __global__ void greatest(unsigned long long* out, const unsigned long long* in) {
    unsigned long long value = in[blockIdx.x * 256 + threadIdx.x], old = *out, seen;
    while (old < value) {
        seen = atomicCAS(out, old, value);
        if (seen == old) break;
        old = seen;
    }
}
extern "C" __global__ void sorted(int* x) {
    __shared__ int s[256], counts[16];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = x[i];
    if (t < 16) counts[t] = 0;
    __syncthreads();
    atomicAdd(&counts[s[t] & 15], 1);
    for (int k = 2; k <= 256; k *= 2)
        for (int j = k / 2; j; j /= 2) {
            int l = t ^ j, a = s[t], b = s[l];
            __syncthreads();
            if (l > t && (a > b) == ((t & k) == 0)) { s[t] = b; s[l] = a; }
            __syncthreads();
        }
    x[(i * 37) % 1024] = s[t] + 0 * counts[t & 15];
}
extern "C" __global__ void count_then_race(int* x) {
    atomicAdd(x, 1);
    __syncthreads();
    x[1] = threadIdx.x;
}
extern "C" __global__ void happens_to_be(int* x) {
    if (threadIdx.x == 96) x[0] = 96;
    atomicAdd(&x[0], 1);
}
extern "C" __global__ void store_what_is_there(int* x, int* out) {
    x[threadIdx.x] = threadIdx.x;
    if (threadIdx.x < 32) out[threadIdx.x] = x[threadIdx.x + 32];
}
extern "C" __global__ void store_then_count(int* x) {
    if (threadIdx.x < 32) x[threadIdx.x] = 7;
    atomicAdd(&x[threadIdx.x & 31], 1);
}
extern "C" __global__ void first_half(int* x) { if (threadIdx.x < 128) x[threadIdx.x] = 1; }
extern "C" __global__ void copy(const int* x, int* y) { y[threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void no_barrier(int* x, int with) {
    __shared__ int s[256];
    s[threadIdx.x] = threadIdx.x;
    if (with) __syncthreads();
    x[threadIdx.x] = s[threadIdx.x ^ 32];
}
"""


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE)


def test_what_threads_do_in_order_runs_in_machine_code(kernels: Kernels) -> None:
    """Barriers, warps that come together, loads and stores of the same memory, of all sizes, and local memory."""
    x = kernels.put(np.arange(1024, dtype=np.int32))
    assert checked(kernels, "in_place", x)
    expected = 2 * np.arange(1024)
    expected[::256] = np.arange(1024).reshape(4, 256).sum(axis=1)
    np.testing.assert_array_equal(kernels.get(x, 1024), expected)
    bytes_, shorts = kernels.put(np.arange(1024).astype(np.uint8)), kernels.zeros(2048, np.int16)
    assert checked(kernels, "wide", kernels.zeros(2048, np.float64), bytes_, shorts)
    assert checked(kernels, "tables", x, 5)
    values = np.random.default_rng(0).integers(0, 1000, 256).astype(np.int32)
    on_device = kernels.put(np.resize(values, 1024))
    assert checked(kernels, "sorted", on_device, grid=1)
    np.testing.assert_array_equal(kernels.get(on_device, 1024)[np.arange(256) * 37 % 1024], np.sort(values))
    large, most = kernels.put(np.arange(1024, dtype=np.uint64)), kernels.zeros(1, np.uint64)
    assert checked(kernels, "greatest", most, large)
    assert kernels.get(most, 1, np.uint64)[0] == 1023


def test_atomics_with_block_scope_run_in_machine_code_where_blocks_do_not_meet(kernels: Kernels) -> None:
    x = kernels.zeros(4)
    assert checked(kernels, "sums_of_blocks", x)
    assert kernels.get(x, 4).tolist() == [256] * 4


def test_a_launch_that_runs_again_has_changed_nothing_before(kernels: Kernels) -> None:
    kernels.engine = "native"
    x = kernels.zeros(2)
    findings.pending.clear()
    kernels.launch("count_then_race", 1, 256, x, observer=LaunchChecks())
    assert len(findings.pending) == 1
    findings.pending.clear()
    assert kernels.get(x, 2).tolist() == [256, 255]


def test_a_store_of_what_atomics_have_summed_up_is_a_race(kernels: Kernels) -> None:
    """Here it stores the sum of the warps before it."""
    kernels.engine = "native"
    findings.pending.clear()
    kernels.launch("happens_to_be", 1, 128, kernels.zeros(1), observer=LaunchChecks())
    assert any("race" in text for text in map(str, findings.pending))
    findings.pending.clear()


def test_a_store_of_what_is_there_races_with_a_read_that_comes_before_it_in_machine_code(kernels: Kernels) -> None:
    """The NumPy engine lets all threads store before any reads."""
    x, out = kernels.put(np.arange(64, dtype=np.int32)), kernels.zeros(64)
    kernels.engine = "native"
    findings.pending.clear()
    kernels.launch("store_what_is_there", 1, 64, x, out, observer=LaunchChecks())
    assert any("race: it reads" in text for text in map(str, findings.pending))
    findings.pending.clear()


def test_a_store_races_with_others_atomics_behind_an_atomic_of_its_own_thread(kernels: Kernels) -> None:
    kernels.engine = "native"
    findings.pending.clear()
    kernels.launch("store_then_count", 1, 64, kernels.zeros(32), observer=LaunchChecks())
    assert any("race: it updates" in text for text in map(str, findings.pending))
    findings.pending.clear()


def test_what_a_launch_in_machine_code_has_written_counts_as_written(kernels: Kernels) -> None:
    x, y = kernels.zeros(256), kernels.zeros(256)
    kernels.memory.shadows[x] = ShadowMemory(x, 1024, False)
    assert checked(kernels, "first_half", x, grid=1)
    assert checked(kernels, "copy", x, y, grid=1, block=128)
    kernels.launch("copy", 1, 256, x, y, observer=LaunchChecks())
    assert any("where nothing has been written" in text for text in map(str, findings.pending))
    findings.pending.clear()
    assert not kernels.memory.shadows[x].initialised
    kernels.memory.shadows[y] = ShadowMemory(y, 1024, False)
    checked(kernels, "no_barrier", y, 1, grid=1)
    assert kernels.memory.shadows[y].initialised


def test_a_large_allocation_of_which_a_part_is_written_is_left_to_numpy(kernels: Kernels) -> None:
    """Its records would have to be made for each launch; the kernel's launches on other memory aren't left."""
    kernels.engine = "native"
    size = (1 << 24) + 4
    x, y = kernels.zeros(size // 4), kernels.zeros(256)
    shadow = kernels.memory.shadows[x] = ShadowMemory(x, size, False)
    for _ in range(4):
        kernels.launch("first_half", 1, 256, x, observer=LaunchChecks())
    assert shadow.history.writes[:128].all()
    assert not shadow.history.writes[128:].any()
    assert checked(kernels, "first_half", y, grid=1)
    assert kernels.get(x, 128).all()


@pytest.mark.parametrize("mode", ["warn", "error"])
@pytest.mark.parametrize("engine", ["numpy", "auto", "native"])
def test_a_kernel_is_applied_once_to_large_arrays_of_which_a_part_is_written(
    device: Any, monkeypatch: pytest.MonkeyPatch, engine: str, mode: Literal["warn", "error"]
) -> None:
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", engine)
    saxpy = cuda.compile(
        'extern "C" __global__ void saxpy(int n, float a, const float* x, float* y)'
        "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = a * x[i] + y[i]; }"
    )["saxpy"]
    n = 1 << 18
    with cuda.checks(mode), cuda.empty(5_000_000, np.float32) as x, cuda.empty(5_000_000, np.float32) as y:
        for array in (x, y):
            array[:n].copy_from(np.ones(n, np.float32))
        for _ in range(2):
            saxpy[n // 256, 256](n, 2.0, x, y)
        assert (y[:n].to_host() == 5).all()


def test_a_mistake_of_one_launch_is_none_of_the_next(kernels: Kernels) -> None:
    kernels.engine = "native"
    x = kernels.zeros(256)
    for with_barrier in (1, 0, 1):
        kernels.launch("no_barrier", 1, 256, x, with_barrier, observer=LaunchChecks())
        assert bool(findings.pending) == (not with_barrier)
        findings.pending.clear()


def test_counters_and_checks_watch_at_once(kernels: Kernels) -> None:
    x = kernels.put(np.arange(1024, dtype=np.int32))
    metrics = []
    for engine in ("numpy", "native"):
        kernels.engine = engine
        counters = LaunchCounters()
        kernels.launch("in_place", 4, 256, x, observer=Observers(counters, LaunchChecks()))
        metrics.append(counters.metrics)
    assert metrics[0] == metrics[1]
    known = program_of(kernels.module.entries["in_place"]).native
    assert any(kernel is not None and len(watch) == 2 for (_, watch, _), kernel in known.items())
