"""What barriers, fences, atomics, streams and events put in order is no race; and what a race's report says."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import cudart_py as cuda
from tests.planted.cases import compiled, marked

pytestmark = [pytest.mark.needs("profile"), pytest.mark.unsanitized("the kernels are wrong on purpose")]


@pytest.fixture(scope="module")
def module():
    with cuda.Device(0):
        return compiled("races.cu")


def ints(count):
    return cuda.zeros(count, np.int32)


def floats(count):
    return cuda.zeros(count, np.float32)


def found(device, launch, *arguments):
    """Give the warnings of one launch."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        launch(*arguments)
        device.synchronize()
    return caught


CORRECT = {
    "last_block_reduction": (300, 64, lambda: (floats(1), floats(300), floats(300 * 64), cuda.zeros(1, np.uint32))),
    "spin_lock": (16, 64, lambda: (ints(1), ints(1))),
    "flag": (2, 32, lambda: (ints(1), ints(1), ints(1))),
    "histogram": (8, 256, lambda: (ints(32), ints(256))),
    "warp_sync": (1, 32, lambda: (ints(32),)),
    "maximum_by_swapping": (
        8,
        64,
        lambda: (cuda.zeros(1, np.uint64), cuda.to_device(np.arange(512, dtype=np.uint64))),
    ),
    "same_value": (4, 64, lambda: (ints(1), cuda.full(256, 5, np.int32))),
    "bytes_side_by_side": (1, 64, lambda: (cuda.zeros(64, np.uint8),)),
    "bytes_of_a_word": (3, 256, lambda: (cuda.zeros(768, np.uint8),)),
    "named_barriers": (1, 64, lambda: (ints(32),)),
    "pipelined_copies": (2, 64, lambda: (floats(64), floats(64 * 7), 7)),
    "own_copy": (1, 64, lambda: (floats(64), floats(64))),
}


@pytest.mark.parametrize("name", CORRECT)
def test_what_is_in_order_is_no_race(device, module, name):
    grid, block, arguments = CORRECT[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module[name][grid, block](*arguments())
        device.synchronize()


@pytest.mark.parametrize(("name", "more"), [("groups", ()), ("piped", (8,)), ("threads", (8,)), ("barred", ())])
def test_the_libraries_copies_are_waited_for(device, name, more):
    host = np.arange(8 * 256, dtype=np.float32).reshape(8, 256)
    out = floats(256)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled("pipelines.cu")[name][1, 256](out, cuda.to_device(host), *more)
        result = out.to_host()
    np.testing.assert_array_equal(result, host[: 8 if more else 1].sum(axis=0)[::-1])


def test_a_grid_wide_barrier_orders_blocks(device, module):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module["grid_sync"].launch(4, 64, cooperative=True)(floats(1000), floats(1000), 1000, 5)
        device.synchronize()


def test_launches_of_a_stream_are_in_order(device, module):
    x = floats(64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            module["neighbour_block"][1, 1](x)
        device.synchronize()


def test_the_report_names_both_threads_and_the_allocation(device, module):
    x = ints(64)
    caught = found(device, module["same_place"][2, 64], x)
    text = str(caught[0].message)
    assert re.search(r"block \(1, 0, 0\), thread \(\d+, 0, 0\)", text)
    assert re.search(r"block \(0, 0, 0\), thread \(\d+, 0, 0\)", text)
    assert f"the 256-byte allocation at {int(x.pointer):#x}" in text
    assert f"allocated at {__file__}" in text
    assert caught[0].filename == __file__


def test_results_are_those_without_checks(device, module):
    def result(mode):
        out = ints(32)
        with cuda.checks(mode), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the races are reported in other tests; here the results count
            module["same_instruction"][1, 64](out)
            return out.to_host()

    np.testing.assert_array_equal(result("warn"), result("off"))


def test_each_line_is_reported_once_a_launch(device, module):
    caught = found(device, module["no_barrier"][64, 256], floats(256 * 64), floats(256))
    assert len([w for w in caught if f":{min(marked('races.cu')['no_barrier'])}:" in str(w.message)]) == 1


def in_streams(device, one, other, between):
    """Launch `produce` in one stream and `consume` in another one, with something between them; give the warnings."""
    module = compiled("races.cu")
    x, out = floats(256), floats(256)
    device.synchronize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module["produce"][4, 64, 0, one](x, 3.0)
        between(one, other)
        module["consume"][4, 64, 0, other](out, x)
        device.synchronize()
    return [str(warning.message) for warning in caught]


def separate():
    return cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)


ORDERS = {
    "an event": lambda one, other: other.wait(one.record()),
    "waiting for the stream": lambda one, other: one.synchronize(),
    "waiting for an event": lambda one, other: one.record().synchronize(),
    "waiting for the device": lambda one, other: cuda.current_device().synchronize(),
    "an event that other work stands before": lambda one, other: (
        cuda.memset(cuda.empty(1, np.int32), 0, stream=other),
        other.wait(one.record()),
    ),
    "events through a third stream": lambda one, other: other.wait(cuda.Stream(non_blocking=True).wait(one) or one),
}


@pytest.mark.parametrize("what", ORDERS)
def test_streams_are_put_in_order(device, what):
    assert in_streams(device, *separate(), ORDERS[what]) == []


def test_streams_without_an_order_race_and_the_report_names_both_kernels(device):
    (text,) = in_streams(device, *separate(), lambda one, other: None)
    # The stream that was used last runs first.
    assert re.match(r"kernel produce at \S+:\d+: race: it writes 4 bytes of global memory", text)
    assert re.search(r"which kernel consume in another stream, block .*, thread .* read at \S+:\d+", text)
    assert "the 1024-byte allocation" in text


def test_the_legacy_default_stream_orders_blocking_streams(device):
    assert in_streams(device, cuda.Stream(), cuda.legacy_default, lambda one, other: None) == []
    assert in_streams(device, cuda.legacy_default, cuda.Stream(), lambda one, other: None) == []


def test_the_legacy_default_stream_does_not_order_streams_that_do_not_block(device):
    assert in_streams(device, cuda.Stream(non_blocking=True), cuda.legacy_default, lambda one, other: None)


def test_an_event_recorded_too_early_orders_nothing(device):
    def early(one, other):
        other.wait(event)

    one, other = separate()
    event = one.record()
    assert in_streams(device, one, other, early)


def test_atomics_of_two_streams_are_no_race(device, module):
    total = ints(1)
    device.synchronize()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for stream in separate():
            module["add_to"][2, 32, 0, stream](total)
        device.synchronize()
    assert total.to_host()[0] == 128


def test_streams_that_write_different_halves_are_no_race(device, module):
    x = floats(512)
    device.synchronize()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for half, stream in zip((x[:256], x[256:]), separate(), strict=True):
            module["produce"][4, 64, 0, stream](half, 1.0)
        device.synchronize()


def test_a_copy_that_does_not_wait_for_another_streams_kernel_is_a_race(device, module):
    x, host = floats(256), cuda.pinned_empty(256, np.float32)
    device.synchronize()
    one, other = separate()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module["produce"][4, 64, 0, one](x, 3.0)
        x.to_host(out=host, stream=other)
        one.synchronize()
        other.synchronize()
    (text,) = [str(warning.message) for warning in caught]
    assert re.match(r"race: a copy reads global memory at .* which kernel produce in another stream.* wrote at", text)


def test_a_kernel_that_does_not_wait_for_another_streams_fill_is_a_race(device, module):
    x, out = floats(256), floats(256)
    device.synchronize()
    one, other = separate()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cuda.memset(x, 1.0, stream=one)
        module["consume"][4, 64, 0, other](out, x)
        one.synchronize()
        other.synchronize()
    (text,) = [str(warning.message) for warning in caught]
    assert re.match(r"kernel consume at .*: race: it reads .* which a fill in another stream wrote", text)


@pytest.mark.parametrize("before", [True, False])
def test_a_copy_to_a_constant_that_another_streams_kernel_reads_is_a_race(device, before):
    source = """
__constant__ float gain[4];
extern "C" __global__ void scale(float* x) { x[threadIdx.x] = gain[threadIdx.x % 4]; }
"""
    module, x = cuda.compile(source), floats(64)
    device.synchronize()
    one, other = separate()
    calls = [
        lambda: module.symbol("gain").copy_from(np.ones(4, np.float32), stream=one),
        lambda: module["scale"][1, 64, 0, other](x),
    ]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for call in calls if before else reversed(calls):
            call()
        one.synchronize()
        other.synchronize()
    (text,) = [str(warning.message) for warning in caught]
    assert "in another stream" in text


OVERWRITES = {
    "a copy": lambda x, host, stream: x.copy_from(host, stream=stream),
    "a fill": lambda x, host, stream: cuda.memset(x, 1.0, stream=stream),
}


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("what", OVERWRITES)
def test_what_overwrites_what_another_streams_kernel_reads_is_a_race(device, module, what, ordered):
    x, out, host = floats(256), floats(256), cuda.pinned_empty(256, np.float32)
    device.synchronize()
    one, other = separate()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module["consume"][4, 64, 0, one](out, x)
        if ordered:
            other.wait(one)
        OVERWRITES[what](x, host, other)
        one.synchronize()
        other.synchronize()
    texts = [str(warning.message) for warning in caught]
    if ordered:
        assert texts == []
    else:
        (text,) = texts
        assert re.match(
            f"race: {what} writes global memory at .* which kernel consume in another stream.* read at", text
        )


@pytest.mark.parametrize("what", OVERWRITES)
def test_what_overwrites_what_another_streams_copy_reads_is_a_race(device, what):
    x, host = floats(256), cuda.pinned_empty(256, np.float32)
    out = cuda.pinned_empty(256, np.float32)
    device.synchronize()
    one, other = separate()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x.to_host(out=out, stream=one)
        OVERWRITES[what](x, host, other)
        one.synchronize()
        other.synchronize()
    (text,) = [str(warning.message) for warning in caught]
    assert re.match(f"race: {what} writes global memory at .* which a copy in another stream read", text)


@pytest.mark.parametrize("joined", [True, False])
def test_nodes_of_a_graph_race_where_it_has_no_edge_between_them(device, module, joined):
    x, out = floats(256), floats(256)
    device.synchronize()
    one, other = separate()
    with one.capture() as graph:
        fork = one.record()
        module["produce"][4, 64, 0, one](x, 3.0)
        other.wait(one.record() if joined else fork)
        module["consume"][4, 64, 0, other](out, x)
        one.wait(other.record())
    executable = graph.instantiate()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        executable.launch(one)
        device.synchronize()
    assert [bool(re.search("race: .*in another stream", str(w.message))) for w in caught] == ([] if joined else [True])


COUNT = """
extern "C" __device__ __cudart_builtin__ void CUDARTAPI
cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);
extern "C" __global__ void count(int *rounds, int most, cudaGraphConditionalHandle again) {
    cudaGraphSetConditional(again, ++*rounds < most);
}
"""


@pytest.mark.parametrize("joined", [True, False])
def test_nodes_of_a_loop_race_where_no_edge_is_between_them(device, module, joined):
    """The rounds of the loop come one after the other."""
    x, out, rounds = floats(256), floats(256), ints(1)
    device.synchronize()
    one, other = separate()
    count = cuda.compile(COUNT)["count"]
    with one.capture() as graph:
        again = one.condition(default=1)
        with one.while_loop(again) as body:
            fork = body.record()
            module["produce"][4, 64, 0, body](x, 3.0)
            other.wait(body.record() if joined else fork)
            module["consume"][4, 64, 0, other](out, x)
            body.wait(other.record())
            count[1, 1, 0, body](rounds, 3, again)
    executable = graph.instantiate()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        executable.launch(one)
        device.synchronize()
    found = [bool(re.search("race: .*in another stream", str(w.message))) for w in caught]
    assert any(found) is not joined
    assert rounds.to_host()[0] == 3
