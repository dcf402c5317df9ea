"""Traces obey the rules of the Trace Event format, and show the calls, the work of the streams, and their order."""

import json
import threading
from collections import Counter, defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
from cuda.bindings.driver import CUresult

import cudart_py as cuda
from cudart_py.driver import calls
from cudart_py.profiling.trace import recorder

SOURCE = """
extern "C" __global__ void increment(float* x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] += 1;
}
"""
N = 1000


@pytest.fixture(scope="module")
def increment():
    return cuda.compile(SOURCE)["increment"]


@pytest.fixture(scope="module", params=["the driver's own clock", "events alone"])
def trace(increment, tmp_path_factory, request):
    """Return the trace of a program with two streams, a graph, ranges, a host function, and another thread.

    The simulator's trace is also made as that of a GPU is, from the times between events.
    """
    path = tmp_path_factory.mktemp("trace") / "run.json"
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "events alone":
            if "gpu_timing" in cuda.capabilities():
                pytest.skip("this driver has no other clock")
            patch.setattr(recorder, "capabilities", lambda: frozenset({"gpu_timing"}))
            refused = (CUresult.CUDA_ERROR_NOT_SUPPORTED, None)
            patch.setattr(recorder, "chosen", lambda: SimpleNamespace(host_time=lambda _: refused))
        return write_trace(increment, path)


def write_trace(increment, path):
    x, host = cuda.zeros(N, np.float32), cuda.pinned_empty(N, np.float32)
    host[:] = np.arange(N)
    bound = increment[4, 256].bind(x, N)
    bound()
    cuda.current_device().synchronize()
    with cuda.profile(trace=path), cuda.Stream(non_blocking=True) as one, cuda.Stream(non_blocking=True) as two:
        with cuda.nvtx_range("upload"):
            x.copy_from(host, stream=one)
        with cuda.nvtx_range("compute"):
            increment[4, 256, 0, one](x, N)
            with cuda.nvtx_range("after the other stream"):
                two.wait(one.record())
                increment[4, 256, 0, two](x, N)
        with two.capture() as graph:
            increment[4, 256, 0, two](x, N)
        graph.instantiate().launch(two)
        two.launch_host_function(list)
        two.synchronize()
        thread = threading.Thread(target=bound, name="the other thread")
        thread.start()
        thread.join()
    np.testing.assert_array_equal(x.to_host(), np.arange(N) + 4)
    return json.loads(path.read_text())


def tracks(trace, phases):
    """Return the events with these phases by track, in the order of the trace."""
    found = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] in phases:
            found[event["pid"], event["tid"]].append(event)
    return found


def work(trace):
    """Return the names of the work of all devices, in the order in which it began."""
    return [event["name"] for event in trace["traceEvents"] if event["ph"] == "X" and event["pid"] >= 100]


def test_every_event_has_what_the_format_requires(trace):
    events = trace["traceEvents"]
    assert all({"ph", "ts", "pid", "tid", "name"} <= event.keys() for event in events)
    assert {event["ph"] for event in events} == set("MXBEsf")
    assert all(event["dur"] > 0 for event in events if event["ph"] == "X")
    timed = [event["ts"] for event in events if event["ph"] != "M"]
    assert timed == sorted(timed)
    named = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert named.keys() == tracks(trace, "XBEsf").keys()
    assert {"MainThread", "the other thread", "legacy default stream"} <= set(named.values())


def test_slices_of_a_track_nest(trace):
    for events in tracks(trace, "XBE").values():
        open_until: list[float] = []
        ranges = []
        for event in events:
            while open_until and open_until[-1] <= event["ts"]:
                open_until.pop()
            if event["ph"] == "X":
                end = event["ts"] + event["dur"]
                assert not open_until or end <= open_until[-1]
                open_until.append(end)
            elif event["ph"] == "B":
                ranges.append(event["name"])
            else:
                assert ranges.pop() == event["name"]
                assert not open_until
        assert ranges == []


def test_arrows_have_both_ends_and_point_forwards(trace):
    starts, ends = ({event["id"]: event for event in trace["traceEvents"] if event["ph"] == phase} for phase in "sf")
    assert starts.keys() == ends.keys()
    assert all(starts[id]["ts"] <= ends[id]["ts"] and starts[id]["name"] == ends[id]["name"] for id in starts)
    slices = tracks(trace, "X")
    for event in (*starts.values(), *ends.values()):
        inside = (
            one for one in slices[event["pid"], event["tid"]] if one["ts"] <= event["ts"] <= one["ts"] + one["dur"]
        )
        assert any(inside)
    (wait,) = (id for id in starts if starts[id]["name"] == "wait")
    assert starts[wait]["tid"] != ends[wait]["tid"]


def test_the_work_of_each_stream_is_there_in_its_order(trace):
    found = {key: [event["name"] for event in events] for key, events in tracks(trace, "X").items() if key[0] >= 100}
    assert sorted(found.values()) == [
        ["increment"],
        ["increment", "graph", "host function"],
        ["memcpy HtoD", "increment"],
    ]
    assert work(trace)[:3] == ["memcpy HtoD", "increment", "increment"]
    (copy,) = (event for event in trace["traceEvents"] if event["name"] == "memcpy HtoD")
    assert copy["args"] == {"bytes": 4 * N}


def test_calls_waits_and_ranges_are_on_the_threads(trace):
    host = Counter(event["name"] for (pid, _), events in tracks(trace, "XB").items() if pid == 1 for event in events)
    assert host["cuLaunchKernel"] == 4  # one of them was captured
    assert host["cuGraphLaunch"] == host["cuStreamSynchronize"] == host["upload"] == host["after the other stream"] == 1
    waits = {event["name"] for event in trace["traceEvents"] if event.get("cat") == "wait" and event["ph"] == "X"}
    assert waits == {"cuStreamSynchronize", "end of cuda.profile"}


def test_without_times_the_trace_says_so_and_counts_steps(trace):
    if trace["otherData"]["clock"] == "time":
        seconds = max(event["ts"] for event in trace["traceEvents"]) / 1e6
        assert 1e-6 < seconds < 60
        return
    label = "order, not time"
    assert trace["otherData"]["clock"] == label
    processes = [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"]
    assert all(f"({label})" in name for name in processes)
    ends = [event["ts"] + event["dur"] for event in trace["traceEvents"] if event["ph"] == "X"]
    begins = [event["ts"] for event in trace["traceEvents"] if event["ph"] in "XBE"]
    assert sorted(begins + ends) == list(range(len(begins + ends)))


def test_after_the_block_the_drivers_functions_are_called_again(trace, increment, tmp_path):
    functions = calls.driver_functions()
    before = calls.raw.cuMemcpyHtoDAsync
    assert before is functions.cuMemcpyHtoDAsync

    def fail():
        cuda.zeros(N, np.float32)
        assert calls.raw.cuMemcpyHtoDAsync is not before
        return 1 / 0

    with pytest.raises(ZeroDivisionError), cuda.profile(trace=tmp_path / "failed.json"):
        fail()
    assert calls.raw.cuMemcpyHtoDAsync is before
    assert "memset D8" in work(json.loads((tmp_path / "failed.json").read_text()))


FAULT = """
import sys
import numpy as np
import cudart_py as cuda
kernel = cuda.compile('extern "C" __global__ void beyond(int* x) { x[1 << 28] = 1; }')["beyond"]
with cuda.profile(trace=%r):
    x = cuda.zeros(1, np.int32)
    kernel.launch(1, 1, x)
    x.fill(5)
    cuda.current_device().synchronize()
"""


@pytest.mark.needs("reset")  # on a GPU, the address may be valid
def test_a_fault_leaves_a_trace_of_the_calls_and_of_the_work_up_to_it(python, tmp_path):
    assert "IllegalAddressError" in python(FAULT % str(tmp_path / "fault.json"), check=False).stderr
    found = json.loads((tmp_path / "fault.json").read_text())["traceEvents"]
    assert "cuLaunchKernel" in {event["name"] for event in found}
    on_the_device = [event["name"] for event in found if event["ph"] == "X" and event["pid"] != 1]
    if "in_process" in cuda.capabilities():
        assert len(on_the_device) == 2  # and not the fill after it
        assert on_the_device[1] == "beyond"


@pytest.mark.parametrize(("place", "error"), [("no/such/run.json", ValueError), (".", ValueError), (3, TypeError)])
def test_a_file_that_cannot_be_written_is_an_error_before_the_block(place, error):
    with pytest.raises(error, match=r"profile: .*'trace'"):
        cuda.profile(trace=place)
