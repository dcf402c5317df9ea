"""Races between streams and between nodes of graphs: what orders them, and what their reports say."""

from __future__ import annotations

import re

import numpy as np
import pytest

import cudart_py as cuda
from tests.planted.cases import compiled, floats, ints, marked
from tests.simulator.checks.reports import WRONG_ON_PURPOSE, found, reports

pytestmark = WRONG_ON_PURPOSE

SOURCE = """
__constant__ float gain[4];
extern "C" __global__ void scale(float* x) { x[blockIdx.x * 64 + threadIdx.x] = gain[threadIdx.x % 4]; }
extern "C" __device__ __cudart_builtin__ void CUDARTAPI
cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);
extern "C" __global__ void count(int *rounds, int most, cudaGraphConditionalHandle again) {
    cudaGraphSetConditional(again, ++*rounds < most);
}
"""


@pytest.fixture(scope="module")
def module():
    with cuda.Device(0):
        return cuda.compile(SOURCE)


class Arrays:
    """What the work in two streams uses: they share `x`."""

    def __init__(self):
        self.x, self.out = floats(256), floats(256)
        self.source, self.copy = (cuda.pinned_empty(256, np.float32) for _ in range(2))


def produce(stream, arrays):
    compiled("races.cu")["produce"][4, 64, 0, stream](arrays.x, 3.0)


def consume(stream, arrays):
    compiled("races.cu")["consume"][4, 64, 0, stream](arrays.out, arrays.x)


def separate():
    return cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)


def in_streams(first, second, one, other, between=lambda one, other: None):
    """Return what is reported of work in one stream, and in another one later, with something between them."""
    arrays = Arrays()
    cuda.current_device().synchronize()
    with reports() as texts:
        first(one, arrays)
        between(one, other)
        second(other, arrays)
        one.synchronize()
    return texts


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
def test_streams_are_put_in_order(what):
    assert in_streams(produce, consume, *separate(), ORDERS[what]) == []


def test_the_legacy_default_stream_orders_streams_unless_they_do_not_block():
    assert in_streams(produce, consume, cuda.Stream(), cuda.legacy_default) == []
    assert in_streams(produce, consume, cuda.legacy_default, cuda.Stream()) == []
    assert in_streams(produce, consume, cuda.Stream(non_blocking=True), cuda.legacy_default)


def test_an_event_recorded_too_early_orders_nothing():
    one, other = separate()
    event = one.record()
    assert in_streams(produce, consume, one, other, lambda one, other: other.wait(event))


def copy_in(stream, arrays):
    arrays.x.copy_from(arrays.source, stream=stream)


def copy_out(stream, arrays):
    arrays.x.to_host(out=arrays.copy, stream=stream)


def fill(stream, arrays):
    cuda.memset(arrays.x, 1.0, stream=stream)


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (
            produce,
            consume,
            r"kernel consume at \S+:\d+: race: it reads .* kernel produce in another stream, block .* wrote",
        ),
        (produce, copy_out, "race: a copy reads global memory .* kernel produce in another stream.* wrote at"),
        (fill, consume, "kernel consume at .*: race: it reads .* which a fill in another stream wrote"),
        (consume, copy_in, "race: a copy writes global memory .* kernel consume in another stream.* read at"),
        (consume, fill, "race: a fill writes global memory .* kernel consume in another stream.* read at"),
        (copy_out, copy_in, "race: a copy writes global memory .* which a copy in another stream read"),
        (copy_out, fill, "race: a fill writes global memory .* which a copy in another stream read"),
    ],
)
def test_the_report_names_both_works_and_the_memory(first, second, text):
    (report,) = in_streams(first, second, *separate())
    assert re.match(text, report)
    assert "the 1024-byte allocation" in report


@pytest.mark.parametrize("order", [1, -1])
def test_a_copy_to_a_constant_that_another_streams_kernel_reads_is_a_race(module, order):
    def write(stream, arrays):
        module.symbol("gain").copy_from(np.ones(4, np.float32), stream=stream)

    def read(stream, arrays):
        module["scale"][4, 64, 0, stream](arrays.out)

    (text,) = in_streams(*(write, read)[::order], *separate())
    assert "in another stream" in text


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("rounds", [1, 3])
def test_nodes_of_a_graph_race_where_no_edge_is_between_them(module, rounds, joined):
    """The rounds of a loop come one after the other."""
    arrays, counter = Arrays(), ints(1)
    one, other = separate()

    def fork_and_join(stream):
        fork = stream.record()
        produce(stream, arrays)
        other.wait(stream.record() if joined else fork)
        consume(other, arrays)
        stream.wait(other.record())

    cuda.current_device().synchronize()
    with one.capture() as graph:
        if rounds == 1:
            fork_and_join(one)
        else:
            again = one.condition(default=1)
            with one.while_loop(again) as body:
                fork_and_join(body)
                module["count"][1, 1, 0, body](counter, rounds, again)
    executable = graph.instantiate()
    texts = found(executable.launch, one)
    assert all(re.search("race: .*in another stream", text) for text in texts)
    assert bool(texts) is not joined
    assert counter.to_host()[0] == (rounds if rounds > 1 else 0)


def test_the_report_of_a_launch_names_both_threads_the_allocation_and_the_programs_line():
    x = cuda.zeros(64, np.int32)
    compiled("races.cu")["same_place"][2, 64](x)
    with pytest.warns(cuda.SimulatorWarning) as caught:
        cuda.current_device().synchronize()
    text = str(caught[0].message)
    assert re.search(r"block \(1, 0, 0\), thread \(\d+, 0, 0\).*block \(0, 0, 0\), thread \(\d+, 0, 0\)", text)
    assert f"the 256-byte allocation at {int(x.pointer):#x}, allocated at {__file__}" in text
    assert caught[0].filename == __file__


def test_each_line_is_reported_once_a_launch():
    texts = found(compiled("races.cu")["no_barrier"][8, 256], floats(256 * 8), floats(256))
    assert len([text for text in texts if f":{min(marked('races.cu')['no_barrier'])}:" in text]) == 1
