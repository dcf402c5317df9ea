"""Arrays whose memory exists only during the launches of a graph."""

import numpy as np
import pytest
from cuda.bindings import driver as bindings

import cudart_py as cuda

N = 32
KERNEL = """
extern "C" __global__ void copy(float *to, const float *from, float add) { to[threadIdx.x] = from[threadIdx.x] + add; }
"""


@pytest.fixture(scope="module")
def copy():
    with cuda.Device(0):
        return cuda.compile(KERNEL)["copy"]


@pytest.fixture
def x(stream):
    with cuda.zeros(N, np.float32, stream=stream) as array:
        stream.synchronize()
        yield array


def launched(graph, stream, x, times=3):
    executable = graph.instantiate()
    for _ in range(times):
        executable.launch(stream)
    return x.to_host(stream=stream)[0]


def test_a_graph_allocates_and_frees_at_each_launch(copy, stream, x):
    with stream.capture() as graph, cuda.graphs.empty(N, np.float32, stream=stream) as scratch:
        copy[1, N, 0, stream](scratch, x, 1.0)
        copy[1, N, 0, stream](x, scratch, 2.0)
    assert [node.kind for node in graph.nodes] == ["mem_alloc", "kernel", "kernel", "mem_free"]
    assert launched(graph, stream, x) == 9


def test_the_end_of_the_capture_frees_what_is_open(copy, stream, x):
    with stream.capture() as graph:
        scratch = cuda.graphs.empty((2, N), np.float32, stream=stream)
        copy[1, N, 0, stream](scratch[1], x, 1.0)
        copy[1, N, 0, stream](x, scratch[1], 0.0)
    assert scratch.closed
    assert repr(scratch) == f"<DeviceArray (2, {N}) float32 closed, by close() or at the end of the capture>"
    assert graph.nodes[-1].kind == "mem_free"
    assert launched(graph, stream, x) == 3
    with pytest.raises(ValueError, match="closed, by .* the end of the capture"):
        scratch.to_host()


def test_a_stream_that_joined_the_capture_has_memory_of_the_graph_too(copy, stream, x):
    with cuda.Stream(non_blocking=True) as other:
        with stream.capture() as graph:
            other.wait(stream)
            scratch = cuda.graphs.empty(N, np.float32, stream=other)
            copy[1, N, 0, other](scratch, x, 5.0)
            stream.wait(other)
            copy[1, N, 0, stream](x, scratch, 0.0)
            scratch.close(stream=stream)
        assert launched(graph, stream, x, 2) == 10


def test_memory_of_graphs_is_made_in_captures_alone_and_closed_by_a_block_that_raises(stream):
    with pytest.raises(cuda.errors.CaptureError, match="not being captured.*use cudart_py.empty"):
        cuda.graphs.empty(3, stream=stream)
    made = []

    def leave():
        with stream.capture():
            made.append(cuda.graphs.empty(1 << 20, np.float32, stream=stream))
            cuda.empty(3, stream=stream)

    with pytest.raises(cuda.errors.CaptureError, match="allocate before the capture begins, or use graphs.empty"):
        leave()
    assert made[0].closed


def test_a_graph_that_allocates_is_no_part_of_another_but_an_array_without_elements_needs_no_memory(stream):
    with stream.capture() as graph, cuda.graphs.empty(3, stream=stream):
        pass
    with pytest.raises(cuda.CudaError), stream.capture():
        stream.add_graph(graph)
    with stream.capture() as graph:
        assert cuda.graphs.empty((0, 3), stream=stream).pointer == 0
    assert graph.node_count == 0


def test_memory_that_outlives_a_launch_is_copied_and_freed_behind_each_launch(device, stream, x):
    check, raw = cuda.check, cuda.raw
    mode = bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
    check(raw.cuStreamBeginCapture(stream.handle, mode))
    address = check(raw.cuMemAllocAsync(x.nbytes, stream.handle))
    check(raw.cuMemcpyDtoDAsync(address, int(x.pointer), x.nbytes, stream.handle))
    graph = check(raw.cuStreamEndCapture(stream.handle))
    executable = check(raw.cuGraphInstantiate(graph, 0))
    with cuda.zeros((3, N), np.float32, stream=stream) as out:
        for value, row in zip((1, 2, 3), out, strict=True):  # without synchronization between the launches
            cuda.memset(x, value, stream=stream)
            check(raw.cuGraphLaunch(executable, stream.handle))
            check(raw.cuMemcpyDtoDAsync(int(row.pointer), address, x.nbytes, stream.handle))
            check(raw.cuMemFreeAsync(address, stream.handle))
        np.testing.assert_array_equal(out.to_host(stream=stream), np.repeat([[1], [2], [3]], N, 1))
    check(raw.cuGraphExecDestroy(executable))
    check(raw.cuGraphDestroy(graph))
