"""`measure` and `measure_host`: the calls that they make, and the arguments that they accept and refuse."""

import re
from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.benchmark import Measurement, MeasureOptions, measure, measure_host
from cudart_py.benchmark.device.blocking import Blocker
from cudart_py.benchmark.peers import in_turns, measure_beside
from tests.benchmarks.peers import measuring_cases

QUICK = MeasureOptions(min_samples=3, min_seconds=0.0, max_seconds=0.0, warm_up_seconds=0.0)


class Calls:
    count = 0

    def __call__(self):
        self.count += 1


@pytest.fixture
def calls():
    return Calls()


def test_one_call_is_timed_with_a_flushed_cache_and_several_functions_are_rotated(device, event_times, calls):
    found = measure(calls, bytes=10, ceiling=1e12, batch=1, options=QUICK)
    assert len(found.samples) == 3
    assert calls.count == 1 + 3
    assert (found.batch, found.cache, found.blocked, found.device) == (1, "flushed", False, device.name)
    assert (found.ceiling, found.ceiling_name) == (1e12, None)
    assert measure([Calls(), Calls()], batch=1, options=QUICK).cache == "rotated"


def test_without_device_times_the_first_function_runs_once(device, no_times, calls):
    other = Calls()
    found = measure([calls, other], bytes=100, flops=100, ceiling="copy")
    assert (found.timed, found.gigabytes_per_second, found.teraflops_per_second, found.fraction) == (False, *[None] * 3)
    assert not measure_host(calls).timed
    assert (calls.count, other.count) == (2, 0)


@pytest.mark.needs("profile")
def test_counters_are_recorded_where_the_driver_counts(device):
    kernel = cuda.compile('extern "C" __global__ void nothing() {}')["nothing"]
    (launch,) = measure(kernel[4, 256].bind()).counters
    assert (launch["kernel"], launch["grid"], launch["block"]) == ("nothing", (4, 1, 1), (256, 1, 1))
    assert launch["smsp__inst_executed.sum"] > 0


def test_what_the_code_raises_comes_through(device):
    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        measure(fail)


def test_host_cost_is_the_mean_of_a_batch_on_a_drained_stream(device, event_times, calls):
    found = measure_host(calls, batch=10, options=QUICK)
    assert (found.batch, calls.count) == (10, 1 + 3 * 10)
    assert found.median > 0
    assert 1 <= measure_host(calls, options=QUICK).batch <= 250


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"fn": []}, TypeError, "'fn' must be a function"),
        ({"fn": [print, 3]}, TypeError, r"'fn\[1\]' must be a function"),
        ({"bytes": -1}, ValueError, "'bytes' .* not the int -1"),
        ({"flops": float("nan")}, ValueError, "'flops' .* not the float nan"),
        ({"ceiling": "cupy"}, ValueError, "'ceiling' must be one of 'copy', .* not the str 'cupy'"),
        ({"ceiling": 0}, ValueError, "'ceiling' must be bytes or operations per second"),
        ({"batch": 10_000}, ValueError, "'batch' must be an int from 1 to 500"),
        ({"stream": 7}, TypeError, "'stream' must be a cudart_py Stream"),
        ({"streams": 2}, TypeError, "positional argument"),
        ({"streams": 1}, ValueError, "'streams' must be an int from 2 to 256"),
        ({"streams": 257}, ValueError, "'streams' must be an int from 2 to 256"),
        ({"streams": 2, "stream": cuda.legacy_default}, TypeError, "not both"),
        ({"streams": 2, "fn": [print, print]}, TypeError, "'fn' must be a single function with 'streams'"),
    ],
)
def test_a_bad_argument_is_named_before_anything_runs(device, event_times, calls, arguments, error, text):
    with pytest.raises(error, match=text):
        measure(**{"fn": calls, **arguments})
    assert calls.count == 0


def test_a_closed_stream_and_several_functions_on_the_host_are_refused(device, calls):
    stream = cuda.Stream()
    stream.close()
    with pytest.raises(ValueError, match="'stream' must be open"):
        measure(calls, stream=stream)
    with pytest.raises(TypeError, match="must be a single function"):
        measure_host([calls, calls])
    assert calls.count == 0


@pytest.mark.unsanitized("the tool makes launches wait for their kernels, and nothing can be held")
@pytest.mark.needs("gpu_timing")
def test_work_runs_behind_the_blocking_kernel(device):
    array = cuda.zeros(1 << 24, np.uint8)
    found = measure(lambda: cuda.memset(array, 0), bytes=array.nbytes, options=QUICK)
    assert found.blocked
    assert found.gigabytes_per_second > 0


@pytest.mark.needs("gpu_timing")
def test_work_that_waits_for_the_device_is_measured_without_blocking(device):
    array = cuda.zeros(1000)

    def work():
        cuda.memset(array, 0)
        cuda.legacy_default.synchronize()

    found = measure(work, options=QUICK)
    assert found.timed
    assert not found.blocked


@pytest.mark.unsanitized("the tool makes launches wait for their kernels, and nothing can be held")
@pytest.mark.needs("gpu_timing")
def test_a_batch_that_overfills_the_queue_ends_and_is_measured_behind_the_blocking_kernel(device):
    """The host waits for space in the queue until the blocking kernel times out; then smaller batches are measured."""
    array = cuda.zeros(1000)

    def work():
        for _ in range(8):
            cuda.memset(array, 0)

    found = measure(work, batch=500, options=QUICK)
    assert found.timed
    assert found.blocked


@pytest.mark.needs("concurrent_host")
def test_a_hold_that_nobody_ends_ends_by_itself(device):
    with cuda.Stream() as stream:
        blocker = Blocker(stream, timeout=0.01)
        blocker.hold()
        stream.synchronize()
        assert blocker.timed_out


@pytest.mark.unsanitized("the tool makes launches wait for their kernels, and nothing can be held")
@pytest.mark.needs("concurrent_host")
def test_a_hold_lasts_until_the_host_lets_go(device):
    with cuda.Stream() as stream:
        blocker = Blocker(stream)
        for _ in range(3):
            blocker.hold()
            assert not stream.done
            blocker.release()
            stream.synchronize()
            assert not blocker.timed_out


def test_a_stream_that_was_let_go_is_not_held(device):
    with cuda.Stream() as stream:
        blocker = Blocker(stream, timeout=0.01)
        blocker._state[0] = 5
        blocker.hold()
        stream.synchronize()
        assert not blocker.timed_out


def test_the_examples_of_the_guide_run(device, no_times, capsys):
    text = (Path(__file__).parents[2] / "docs" / "measuring.md").read_text()
    first, *others = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {}
    exec(compile(first.replace("1 << 26", "1 << 10"), "measuring.md", "exec"), names)
    assert capsys.readouterr().out.splitlines()[-1].startswith("ran once")
    for example in others:
        exec(compile(example, "measuring.md", "exec"), names)


def test_every_other_round_goes_the_other_way():
    order = []
    works = {name: lambda name=name: order.append(name) or len(order) for name in "abc"}
    assert in_turns(works, 3) == {"a": [1, 6, 7], "b": [2, 5, 8], "c": [3, 4, 9]}
    assert "".join(order) == "abccbaabc"


def test_the_rounds_of_work_and_its_peers_share_the_time_and_the_ratio_is_their_median(event_times):
    told = []

    def method(fn, *, options, stream=None, batch=None):
        told.append((options.min_samples, round(options.max_seconds, 3), stream, batch))
        return Measurement(tuple(fn()), batch=7, rejected=1, clock_mhz=1980.0)

    ours = iter([(2.0, 2.0), (3.0, 3.0), (5.0, 5.0)])
    options = MeasureOptions(min_samples=10, min_seconds=0.3, max_seconds=0.6)
    found = measure_beside(method, lambda: next(ours), {"other": lambda: (2.0,)}, options=options, stream="s")
    assert told == [(4, 0.2, "s", None)] * 2 + [(4, 0.2, "s", 7)] * 4
    assert found.samples == (2.0, 2.0, 3.0, 3.0, 5.0, 5.0)
    assert (found.rejected, found.clock_mhz, found.batch) == (3, 1980.0, 7)
    assert found.peers["other"] == pytest.approx((2.0, 1.5, 1.0))
    assert found.as_dict()["beside"]["other"]["ratio"] == 1.5


def test_the_hosts_cost_is_measured_beside_another_calls(device, event_times):
    assert measure_beside(measure_host, list, {"other": dict}, options=QUICK).peers["other"].ratio > 0


def test_every_case_that_is_measured_beside_other_tools_launches(device):
    for case in measuring_cases.CASES.values():
        measuring_cases.make_work(case._replace(amount=min(case.amount, 100)))()
    device.synchronize()


def test_memory_is_what_the_work_allocates_at_most_beyond_what_was_in_use(device):
    own = cuda.MemoryPool()  # in which no other test's array is freed meanwhile
    own.make_current()
    before = cuda.zeros(5 << 20, np.uint8)

    def work():
        cuda.zeros(1 << 20, np.uint8).close()
        first, second = cuda.zeros(1 << 20, np.uint8), cuda.zeros(2 << 20, np.uint8)
        second.close()
        first.close()

    quick = MeasureOptions(min_samples=1, max_samples=1, min_seconds=0, warm_up_seconds=0)
    try:
        assert measure(work, options=quick).memory == 3 << 20
        assert measure(lambda: before.fill(1), options=quick).memory == 0
    finally:
        cuda.MemoryPool.default().make_current()
