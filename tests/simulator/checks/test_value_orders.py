"""The order that waits for values in memory establish between streams, and between streams and the host."""

import gc

import numpy as np
import pytest

import cudart_py as cuda
from tests.simulator.checks.reports import WRONG_ON_PURPOSE, found
from tests.simulator.checks.test_streams import separate

pytestmark = WRONG_ON_PURPOSE

SIGNAL = """
__device__ void release(int *x, unsigned *flag)
{
    *x = 1;
    __threadfence_system();
    atomicExch_system(flag, 1u);
}
extern "C" __global__ void atomic(int *x, unsigned *flag) { release(x, flag); }
extern "C" __global__ void atomic_after_a_store(int *x, unsigned *flag)
{
    *flag = 0;
    __threadfence();
    release(x, flag);
}
extern "C" __global__ void plain(int *x, unsigned *flag) { *x = 1; *flag = 1; }
extern "C" __global__ void get(const int *x, int *out) { *out = *x; }
"""


@pytest.mark.parametrize("wait_first", [False, True])
@pytest.mark.parametrize(("kernel", "race"), [("atomic", False), ("atomic_after_a_store", False), ("plain", True)])
@pytest.mark.usefixtures("engine")
def test_a_wait_for_a_value_is_ordered_after_the_kernel_that_released_it(
    kernel: str, race: bool, wait_first: bool
) -> None:
    compiled, (waiting, other) = cuda.compile(SIGNAL), separate()
    x, out, flag = cuda.zeros(1, np.int32), cuda.zeros(1, np.int32), cuda.pinned_empty(1, np.uint32, mapped=True)
    flag[0] = 0
    gc.collect()  # to free pinned memory, the host waits for the device, which orders everything
    cuda.current_device().synchronize()

    def release() -> None:
        compiled[kernel][1, 1, 0, other](x, flag)

    def wait() -> None:
        waiting.wait_value(flag, 1)
        compiled["get"][1, 1, 0, waiting](x, out)

    def work() -> None:
        for part in (wait, release) if wait_first else (release, wait):
            part()
        waiting.synchronize()

    assert bool(found(work)) is race


@pytest.mark.parametrize(
    ("initial", "writes", "condition", "race"),
    [
        (0, [1, None, 1], "geq", True),  # the first write ends the wait
        (0, [1, None, 2], "geq", True),
        (0, [1, None, 2], "eq", False),  # only the second write ends the wait
        (0, [None, 1, 2], "geq", False),
        (2, [None, 2], "eq", True),  # the value is there from the start
        (3, [None, 2], "eq", False),
        (6, [None, 2], "and", True),
        (5, [None, 2], "and", False),
    ],
)
@pytest.mark.usefixtures("engine")
def test_a_wait_for_a_value_is_ordered_only_after_the_first_write_that_ends_it(
    initial: int, writes: list[int | None], condition: str, race: bool
) -> None:
    """CUDA: work after the wait blocks "until the given condition on the memory is satisfied", by whichever write.

    None stands for the kernel that writes what the work after the wait reads. A wait for another value, which a third
    stream writes last, lets all the writes run before the wait ends.
    """
    compiled, (waiting, other, last) = cuda.compile(SIGNAL), separate(3)
    x, out, unused = cuda.zeros(1, np.int32), cuda.zeros(1, np.int32), cuda.zeros(1, np.uint32)
    flags = cuda.pinned_empty(2, np.uint32)
    flags[:] = initial, 0
    gc.collect()  # to free pinned memory, the host waits for the device, which orders everything
    cuda.current_device().synchronize()

    def work() -> None:
        for value in writes:
            if value is None:
                compiled["plain"][1, 1, 0, other](x, unused)
            else:
                other.write_value(flags[:1], value)
        last.write_value(flags[1:], 1)
        waiting.wait_value(flags[1:], 1)
        waiting.wait_value(flags[:1], 2 if condition != "geq" else 1, condition)
        compiled["get"][1, 1, 0, waiting](x, out)
        waiting.synchronize()

    assert bool(found(work)) is race


@pytest.mark.usefixtures("engine")
def test_a_wait_by_the_host_orders_only_the_work_that_it_waited_for() -> None:
    """While a stream waits for a value, the simulator runs work of others, which the host does not wait for."""
    compiled, (waiting, other, last) = cuda.compile(SIGNAL), separate(3)
    x, out, unused = cuda.zeros(1, np.int32), cuda.zeros(1, np.int32), cuda.zeros(1, np.uint32)
    flag = cuda.pinned_empty(1, np.uint32)
    flag[0] = 0
    gc.collect()  # to free pinned memory, the host waits for the device, which orders everything
    cuda.current_device().synchronize()

    def work(ordered: str) -> None:
        flag[0] = 0
        compiled["plain"][1, 1, 0, other](x, unused)
        waiting.wait_value(flag, 1)
        last.write_value(flag, 1)
        waiting.synchronize()
        if ordered == "event":
            waiting.wait(other)
        elif ordered == "host":
            other.synchronize()
        elif ordered == "query":
            assert other.done
        compiled["get"][1, 1, 0, waiting](x, out)
        waiting.synchronize()

    assert found(work, "")
    for ordered in ("event", "host", "query"):
        assert found(work, ordered) == []


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.usefixtures("engine")
def test_a_graph_that_waits_for_a_value_overlaps_work_that_is_queued_in_the_meantime(ordered: bool) -> None:
    compiled, (launching, other) = cuda.compile(SIGNAL), separate()
    x, out, flag = cuda.zeros(1, np.int32), cuda.zeros(1, np.int32), cuda.pinned_empty(2, np.uint32)
    unused = cuda.zeros(1, np.uint32)
    flag[:] = 0
    gc.collect()  # to free pinned memory, the host waits for the device, which orders everything
    cuda.current_device().synchronize()

    def work() -> None:
        with launching.capture() as graph:
            compiled["get"][1, 1, 0, launching](x, out)
            launching.write_value(flag[:1], 1)
            launching.wait_value(flag[1:], 1)
        executable = graph.instantiate()
        executable.launch(launching)
        assert not launching.done
        if ordered:
            other.wait_value(flag[:1], 1)
        compiled["plain"][1, 1, 0, other](x, unused)
        other.write_value(flag[1:], 1)
        launching.synchronize()

    assert bool(found(work)) is not ordered


ACCESSES = """
extern "C" __global__ void load(int *flag, int *out) { *out = *flag; }
extern "C" __global__ void poll(int *flag, int *out) { *out = *(volatile int *)flag; }
extern "C" __global__ void store(int *flag, int *out) { *flag = 5; }
extern "C" __global__ void add(int *flag, int *out) { atomicAdd(flag, 5); }
"""


@pytest.mark.parametrize("order", ["", "event", "wait", "end"])
@pytest.mark.parametrize("write_first", [False, True])
@pytest.mark.parametrize(("access", "is_plain"), [("load", True), ("poll", False), ("store", True), ("add", False)])
@pytest.mark.usefixtures("engine")
def test_a_write_of_a_value_races_with_plain_accesses_that_nothing_orders(
    access: str, is_plain: bool, write_first: bool, order: str
) -> None:
    """A write of a value is a single access, like an atomic, so that kernels may poll the value meanwhile."""
    compiled, (launching, writing) = cuda.compile(ACCESSES), separate()
    out, flag = cuda.zeros(1, np.int32), cuda.pinned_empty(1, np.int32, mapped=True)
    flag[0] = 0
    gc.collect()  # to free pinned memory, the host waits for the device, which orders everything
    cuda.current_device().synchronize()

    def launch() -> None:
        compiled[access][1, 1, 0, launching](flag, out)

    def work() -> None:
        if write_first:
            writing.write_value(flag, 7)
            if order == "event":
                launching.wait(writing)
            elif order == "wait":
                launching.wait_value(flag, 7)
            elif order == "end":
                writing.synchronize()
            launch()
        else:
            launch()
            if order == "event":
                writing.wait(launching)
            elif order:
                launching.synchronize()
            writing.write_value(flag, 7)
        cuda.current_device().synchronize()

    assert bool(found(work)) is (is_plain and not order)


@pytest.mark.parametrize("copies_first", [False, True])
def test_a_write_of_a_value_races_with_a_copy_but_not_with_another_write(copies_first: bool) -> None:
    one, other = separate()
    flag, out = cuda.pinned_empty(1, np.int32), cuda.zeros(1, np.int32)
    flag[0] = 0
    gc.collect()  # to free pinned memory, the host waits for the device, which orders everything
    cuda.current_device().synchronize()

    def copy() -> None:
        steps = [lambda: out.copy_from(flag, stream=one), lambda: other.write_value(flag, 7)]
        for step in steps if copies_first else reversed(steps):
            step()
        cuda.current_device().synchronize()

    def write() -> None:
        one.write_value(flag, 3)
        other.write_value(flag, 4)
        cuda.current_device().synchronize()

    (report,) = found(copy)
    assert "a stream memory operation" in report
    assert report.count(f"queued at {__file__}:") == 2
    assert found(write) == []
