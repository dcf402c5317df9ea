"""Machine code is cached between processes, and is made automatically for kernels that run often or are large."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from cudart_py.compilation import cache
from cudart_py.simulator import ptx
from cudart_py.simulator.ptx import Module
from cudart_py.simulator.ptx.compiling.program import Program, program_of
from cudart_py.simulator.ptx.native import compile_policy, machine
from tests.processors import compile_for
from tests.simulator.ptx.machine import HEAD, PROPERTIES, Kernels, ptx_of

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

SOURCE = r"""
extern "C" __global__ void twice(int n, int* data) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= 2;
}
extern "C" __global__ void add(int n, float* sum) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sum, 0.1f * i);
}
extern "C" __global__ void count(int n, int* total) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += 512) atomicAdd(total, i);
}
extern "C" __global__ void next_number(int n, int* count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) count[1 + atomicAdd(count, 1) % 100] = i;
}
extern "C" __global__ void powers(int n, int* data) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int x = i | 1;
    for (int k = 0; k < 24; ++k) x = x * x + k;
    if (i < n) data[i] = x;
}
extern "C" __global__ void turns(int n, unsigned* data) {
    unsigned x = 1;
    for (int k = 0; k < n; ++k) x = x * 1664525 + 1013904223;
    *data = x;
}
extern "C" __global__ void thousands(int n, unsigned* data) {
    unsigned x = n;
    #pragma unroll 1
    for (int k = 0; k < 100000; ++k) x = x * 1664525 + 1013904223;
    *data = x;
}
extern "C" __global__ void share(int n, unsigned* data) {
    for (int k = threadIdx.x; k < n; k += blockDim.x) data[k] = k;
}
extern "C" __global__ void share_among_blocks(int n, unsigned* data) {
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < n; k += gridDim.x * blockDim.x) data[k] = k;
}
extern "C" __global__ void look(int n, volatile int* flag) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && *flag) flag[1] = i;
}
"""
LARGE = 1 << 20


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Return an empty cache of machine code."""
    monkeypatch.setenv("CUDART_PY_CACHE", str(tmp_path))
    return cache


def fresh(store: machine.CodeCache | None = None) -> Kernels:
    """Return kernels that have never run, as in a new process; with `store`, it shares a cache of machine code."""
    kernels = Kernels(Module(ptx_of(SOURCE)), engine="auto")
    kernels.code_cache = store
    return kernels


def launch(kernels: Kernels, name: str, n: int) -> Program:
    kernels.launch(name, -(-n // 256), 256, n, kernels.zeros(n), steps=None)
    return kernels.program(name)


def runs_natively(program: Program) -> bool:
    return any(program.native.values())


def test_a_kernel_is_compiled_once_it_has_cost_more_than_that_or_is_large():
    kernels = fresh()
    program = launch(kernels, "twice", 300)
    assert not program.native
    program.seconds = 0.5
    assert runs_natively(launch(kernels, "twice", 300))
    large = launch(fresh(), "twice", LARGE)
    assert runs_natively(large)
    assert large.seconds == 0


def generated(x: int, times: int) -> int:
    for _ in range(times):
        x = (x * 1664525 + 1013904223) % 2**32
    return x


@pytest.mark.parametrize(
    ("name", "n", "times", "first"), [("turns", 100_000, 100_000, 1), ("thousands", 3, 100_000, 3)]
)
def test_a_long_loop_of_one_thread_is_compiled_at_once(name, n, times, first):
    """The first launch takes milliseconds, whereas NumPy would take seconds."""
    kernels = fresh()
    out = kernels.zeros(1)
    kernels.launch(name, 1, 1, n, out, steps=None)
    assert kernels.ran_natively(name)
    assert kernels.get(out, 1, np.uint32)[0] == generated(first, times)


def test_a_parameter_of_16_bytes_is_no_bound():
    text = """.visible .entry count(.param .align 16 .b8 n[16], .param .u64 out) {
        .reg .b128 both; .reg .b64 low, high, i, to; .reg .pred p;
        ld.param.b128 both, [n]; mov.b128 {low, high}, both; mov.u64 i, 0;
        again: add.u64 i, i, 1; setp.lt.u64 p, i, low; @p bra again;
        ld.param.u64 to, [out]; st.global.u64 [to], i; ret;
    }"""
    kernels = Kernels(Module(HEAD + text), engine="auto")
    out = kernels.zeros(1, np.uint64)
    kernels.launch("count", 1, 1, np.array([5, 9], np.uint64), out)
    assert kernels.get(out, 1, np.uint64)[0] == 5


def test_a_short_loop_is_not_compiled():
    for name, blocks, threads, n in (
        ("turns", 1, 1, 20),
        ("share", 1, 256, 5000),
        ("share_among_blocks", 40, 256, 200_000),
        ("share_among_blocks", 512, 256, 131_072),
    ):
        # Without the time of earlier launches, which may have taken long.
        kernels = fresh()
        kernels.launch(name, blocks, threads, n, kernels.zeros(n), steps=None)
        assert not kernels.ran_natively(name)


def test_machine_code_from_the_cache_is_taken_before_compiling_pays(store, monkeypatch):
    """For the longer kernel, the first launch is enough."""
    for name in ("twice", "powers"):
        launch(fresh(store), name, LARGE)
    later, unknown = fresh(store), fresh()
    for kernels in (later, unknown):
        kernels.program("twice").seconds = 0.004
    monkeypatch.setattr(machine, "build", None)
    assert runs_natively(launch(later, "twice", 300))
    assert not launch(unknown, "twice", 300).native
    program = launch(later, "powers", 300)
    assert runs_natively(program)
    assert program.seconds == 0


def test_what_a_kernel_has_cost_in_earlier_processes_counts(store, monkeypatch):
    # The assumed price of compiling is so high that the real duration of the launches does not matter.
    monkeypatch.setattr(compile_policy, "_COMPILE_SECONDS", 100.0)
    price = 100.0 * compile_policy.Estimate(fresh().program("twice")).instructions
    natively = []
    for part in (0.6, 0.3, 0.3):
        kernels = fresh(store)
        kernels.program("twice").seconds += part * price
        natively.append(runs_natively(launch(kernels, "twice", 300)))
    assert natively == [False, False, True]


def chain(count: int, calls: str) -> Program:
    """Return a kernel with `count` + 1 functions, each of which calls the next one."""
    text = HEAD + f".func f{count}() {{ ret; }}\n"
    for number in range(count - 1, -1, -1):
        text += f".func f{number}() {{ {calls.format(f'f{number + 1}')} ret; }}\n"
    return program_of(Module(f"{text}.visible .entry k() {{ call f0, (); ret; }}").entries["k"])


def test_a_function_costs_as_often_as_it_is_copied():
    """If each of six functions calls the next one twice, machine code contains 63 copies of them."""
    twice = "call {0}, (); call {0}, ();"
    estimate = compile_policy.Estimate(chain(5, twice))
    assert (estimate.instructions, estimate.copied) == (2 + 5 * 3 + 1, 2 + 31 * 3 + 32)
    assert compile_policy.Estimate(chain(600, "call {0}, ();")).copied == 1203
    assert compile_policy.Estimate(chain(600, twice)).copied == 1 << 60
    again = Module(f"{HEAD}.func f() {{ call f, (); ret; }} .visible .entry k() {{ call f, (); ret; }}")
    assert compile_policy.Estimate(program_of(again.entries["k"])).copied == 4


@pytest.mark.parametrize("engine", ["native", "auto"])
def test_a_long_chain_of_calls_runs_with_numpy(engine, monkeypatch):
    monkeypatch.setitem(PROPERTIES, "stack_limit", 1 << 16)
    program = chain(200, "call {0}, ();")
    Kernels(program.entry.module, engine=engine).launch("k", 1, 1)
    assert "more than 100 deep" in program.unsupported_reason or engine == "auto"
    assert not runs_natively(program)


@pytest.mark.parametrize("name", ["add", "next_number", "look"])
def test_where_the_order_of_lanes_shows_alike_launches_run_alike(name):
    kernels = fresh()
    program = launch(kernels, name, 300)
    program.seconds = 5.0
    assert not launch(kernels, name, 300).native
    assert runs_natively(launch(kernels, name, LARGE))
    spent = program.seconds
    launch(kernels, name, 300)
    assert program.seconds > spent


def test_sums_of_integers_come_out_the_same_in_any_order():
    kernels = fresh()
    launch(kernels, "count", 300).seconds = 0.5
    total = kernels.zeros(300)
    kernels.launch("count", 2, 256, 300, total)
    assert kernels.ran_natively("count")
    assert kernels.get(total, 1)[0] == np.arange(300).sum()


def added(store: machine.CodeCache, folder: Path) -> bool:
    """Launch a kernel, and return whether the launch added entries to the cache and kept the earlier ones."""
    before = set(folder.iterdir())
    kernels = fresh(store)
    kernels.engine = "native"
    launch(kernels, "twice", 1)
    return before < set(folder.iterdir())


def test_another_compiler_processor_and_optimisation_have_other_entries(store, tmp_path, monkeypatch):
    host = machine.host()
    assert added(store, tmp_path)
    assert not added(store, tmp_path)
    for other in (machine.Processor(host.name, ""), host._replace(optimisation=1)):
        with compile_for(other):
            assert added(store, tmp_path)
    monkeypatch.setattr(machine, "_compiler", lambda: "another one")
    assert added(store, tmp_path)


def test_a_changed_or_renamed_source_is_another_compiler(tmp_path):
    folder, copy = Path(ptx.__file__).parent, tmp_path / "ptx"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("__pycache__"))
    digests = [machine.digest_of(folder)]
    assert machine.digest_of(copy) == digests[0]
    for changed in ("native/library/accesses.py", "compiling/analysis/control_flow.py", "windows.py"):
        with (copy / changed).open("a") as file:
            file.write("#")
        digests.append(machine.digest_of(copy))
    source = copy / "native/writing/flow.py"
    source.rename(source.with_name("flows.py"))
    digests.append(machine.digest_of(copy))
    assert len(set(digests)) == 5
