"""Behaviour specific to the native engine: threads, signals, waits and limits, and the kernels it leaves to NumPy."""

import contextlib
import functools
import re
import signal
import sys
import threading
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.ptx import Fault, Launch, engines, native_engine, run
from cudart_py.simulator.ptx.native import engine
from cudart_py.simulator.ptx.native.launching import launch
from tests.simulator.ptx.machine import PROPERTIES, Kernels, storing

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

from cudart_py.simulator.ptx.native import instances, machine

SOURCE = r"""
extern "C" __global__ void count(int* out) { atomicAdd(out, 1); }
extern "C" __global__ void leaves(int n, int* out) {
    __shared__ volatile int shared[64];
    volatile int local[4];
    int i = threadIdx.x, j = i & 3;
    if (n >= 0) { shared[i] = n; local[j] = n; }
    else out[blockIdx.x * blockDim.x + i] = shared[i] + local[j];
    if (n == i) __trap();
}
extern "C" __global__ void traps(int n) { if (threadIdx.x == n) __trap(); }
extern "C" __global__ void counting(int* p, int n) {
    int s = 0;
    for (unsigned i = 0; i < 4000000000u; i++) s = s * n + i;
    *p = s;
}
extern "C" __global__ void prints(int n) { printf("%d %d %d\n", n, blockIdx.x, threadIdx.x); }
extern "C" __global__ void prints_at_times(int* p, int n) {
    int s = 0;
    for (int i = 0; i < 2000; i++) {
        for (int j = 0; j < n; j++) s = s * 7 + (s >> 3) ^ j;
        printf("%d\n", s);
    }
    *p = s;
}
extern "C" __global__ void wait_plainly(int* flag, int* out) {
    int seen = 0, late = blockIdx.x == gridDim.x - 1 && threadIdx.x >= 32;
    if (late) *flag = 7;
    while (!seen) asm volatile("ld.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    if (threadIdx.x == 0) out[blockIdx.x] = seen;
}
extern "C" __global__ void claim(int n, int* owners, int* count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int j = 0; j < n; j++)
        if (atomicCAS(&owners[(i + j) % 64], -1, i) == -1) atomicAdd(count, 1);
}
extern "C" __global__ void claim_slowly(int n, int* owners) {
    for (int j = 0; j < n; j++)
        if (atomicCAS(&owners[j % 64], -1, threadIdx.x) == -1) owners[j] = -1;
}
extern "C" __global__ void meet(int* arrived) {
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < gridDim.x) {}
    }
    __syncthreads();
}
extern "C" __global__ void add_up(int n, const int* in, int* out) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum = sum * 3 + in[i % 32];
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
"""


@pytest.fixture
def native(kernels: Kernels) -> Kernels:
    kernels.engine, kernels.threads = "native", 1
    return kernels


def test_blocks_and_warps_that_wait_in_a_plain_loop_get_on(native, monkeypatch):
    monkeypatch.setattr(launch, "BUDGET", 1 << 14)
    flag, out = native.zeros(1), native.zeros(3)
    native.launch("wait_plainly", 3, 64, flag, out, steps=None)
    assert native.get(out, 3).tolist() == [7] * 3
    assert native.ran_natively("wait_plainly")


def interrupted(kernels: Kernels, *arguments: Any, after: float) -> None:
    """Launch a kernel, and interrupt it with a signal `after` seconds."""
    timer = threading.Timer(after, functools.partial(signal.raise_signal, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        kernels.launch(*arguments, steps=None)
    timer.join()


def test_a_signal_breaks_a_kernel_off(native):
    """The handler's exception is not lost if machine code calls Python before it returns, for example to print."""
    out = native.zeros(1)
    # Compile the machine code before the signal arrives.
    with pytest.raises(Fault, match="the limit"):
        native.launch("counting", 1, 1, out, 3, steps=1000)
    interrupted(native, "counting", 64, 64, out, 3, after=0.1)
    native.launch("prints_at_times", 1, 1, out, 1, steps=None)
    for _ in range(2):
        interrupted(native, "prints_at_times", 1, 1, out, 50_000, after=0.05)
    assert native.ran_natively("prints_at_times")


def test_what_blocks_print_comes_in_their_order(native):
    native.printed.clear()
    native.launch("prints", 3, 33, 5)
    assert native.printed == [f"5 {block} {thread}\n" for block in range(3) for thread in range(33)]
    assert native.ran_natively("prints")


def test_threads_run_the_blocks_once_and_report_the_first_fault(native, monkeypatch):
    monkeypatch.setattr(engine, "_WORTH_THREAD", 1)
    native.threads, out, n = 3, native.zeros(200), 7
    native.launch("add_up", 200, 96, n, native.put(np.ones(32, np.int32)), out)
    assert set(native.get(out, 200).tolist()) == {(3**n - 1) // 2}
    with pytest.raises(Fault, match=r"block \(0, 0, 0\), thread \(37, 0, 0\)"):
        native.launch("traps", 200, 64, 37)


def test_a_pause_between_two_warps_of_a_block_repeats_none(native):
    out = native.zeros(1)
    native.launch("count", 3000, 992, out)
    assert native.get(out, 1)[0] == 3000 * 992


def test_blocks_that_try_in_a_loop_need_no_call_each(native):
    """Blocks run one after another until a lane has to wait. Those of the second kernel repeat the loop a few times."""
    owners, count = native.put(np.full(64, -1, np.int32)), native.zeros(1)
    for name, arguments in (("claim", [4, owners, count]), ("claim_slowly", [10, owners])):
        native.launch(name, 1, 32, *arguments)
        (kernel,) = native.program(name).native.values()
        kernel.run = Mock(wraps=kernel.run)
        native.launch(name, 100, 32, *arguments)
        kernel.run.assert_called_once()
        assert native.get(count, 1)[0] == 64
        native.memory.view(owners, 64, np.int32)[:] = 0


def test_as_many_blocks_may_wait_for_each_other_as_a_device_holds(native):
    """Lanes that poll with an atomic that changes nothing soon let other blocks run."""
    native.launch("meet", 40, 32, native.zeros(1), steps=1000)
    blocks, arrived = PROPERTIES["sm_count"] * 2, native.zeros(1)
    native.launch("meet", blocks, 1024, arrived)
    assert native.get(arrived, 1)[0] == blocks


def test_the_limit_of_instructions_counts_anew_in_each_block(native):
    owners, count, one_block = native.zeros(64), native.zeros(1), 30_000
    for blocks in (1, 6):
        native.launch("claim", blocks, 32, one_block, owners, count, steps=10_000)
    with pytest.raises(Fault, match="more instructions than the limit of 10,000"):
        native.launch("claim", 1, 32, 20 * one_block, owners, count, steps=10_000)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_blocks_that_take_long_end_in_each_thread(native, monkeypatch, threads):
    """A loop over loads may be waiting for another block, so other blocks start once it has run for long."""
    monkeypatch.setattr(launch, "BUDGET", 1 << 10)
    monkeypatch.setattr(engine, "_WORTH_THREAD", 1)
    native.threads = threads
    n, blocks = 20_000, 12
    out = native.zeros(blocks)
    native.launch("add_up", blocks, 32, n, native.put(np.ones(32, np.int32)), out)
    assert set(native.get(out, blocks, np.uint32).tolist()) == {(pow(3, n, 1 << 33) - 1) // 2 % (1 << 32)}


LANES = 32
# The NumPy engine, which observes all limits, runs kernels with too many instructions for LLVM, and all kernels if
# there is no memory for machine code.
MANY = 10_100


def kernel(body: str) -> Kernels:
    """Return a kernel that has never run; its lanes store x, which is the lane's index before the body."""
    return Kernels(storing("x", f".reg .b32 x; .reg .pred p; mov.u32 x, %tid.x; {body}"), engine="native")


def launched(kernels: Kernels) -> tuple[Any, str]:
    """Return the values that a launch stores, and the reason why it did not run in machine code."""
    out = kernels.zeros(LANES)
    kernels.launch("k", 1, LANES, out)
    return kernels.get(out, LANES, np.uint32), kernels.program("k").unsupported_reason


# Each function returns instructions, and the values of x after them.
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
    """Return so many branches that the masks of ready lanes do not fit in registers; each lane takes its own path."""
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
    ("make", "count", "lack"), [(products, 600, "instructions"), (branches, 600, "basic blocks"), (ways, 80, "^$")]
)
def test_a_kernel_of_too_many_instructions_or_blocks_is_left_to_numpy(monkeypatch, make, count, lack):
    if make is products:
        monkeypatch.setattr(instances, "_MOST_INSTRUCTIONS", 500)
    body, expected = make(count)
    values, found = launched(kernel(body))
    np.testing.assert_array_equal(values, expected)
    assert re.search(lack, found)


@pytest.mark.parametrize("engine", ["native", "numpy"])
def test_a_long_run_of_instructions_keeps_the_limit_of_seconds(engine):
    """Compiling the kernel takes the NumPy engine far longer than the limit."""
    kernels = kernel(products(MANY)[0])
    entry = kernels.module.entries["k"]
    launch = Launch(entry, (1, 1, 1), (LANES, 1, 1), parameters=kernels.zeros(LANES).to_bytes(8, "little"))
    with pytest.raises(Fault, match=r"CUDA_ERROR_LAUNCH_TIMEOUT.*longer than the limit of"):
        run(
            kernels.module, launch, kernels.memory, symbols={}, print_=print, seconds=0.01, properties=PROPERTIES,
            native=native_engine(engine),
        )  # fmt: skip  # one line per argument would hide the limit


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
    assert kernels.ran_natively("k")


def test_without_memory_for_llvmlite_launches_run_with_numpy(monkeypatch):
    """The import fails in the same way as one that cannot map a library into memory."""
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


@pytest.mark.parametrize("number", [5, 1000], ids=["after a fault", "after a launch"])
@pytest.mark.parametrize("watched", [False, True], ids=["plain", "checked"])
def test_a_launch_finds_nothing_that_another_of_its_shape_has_left(watched, number):
    kernels = Kernels(SOURCE, engine="native")
    out = kernels.put(np.full(128, 3, np.int32))
    with pytest.raises(Fault) if number == 5 else contextlib.nullcontext():
        kernels.launch("leaves", 2, 64, number, out, observer=LaunchChecks() if watched else None)
    kernels.launch("leaves", 2, 64, -1, out)
    assert kernels.get(out, 128).tolist() == [0] * 128
