"""Memory that nodes of graphs allocate and free, and the memory that a device keeps for graphs."""

import gc

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.driver.calls import api
from cudart_py.memory import allocation as allocation_module

N = 1001
KERNELS = """
extern "C" __global__ void add(float *out, const float *x, float value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + value;
}
"""


@pytest.fixture
def graph(device):
    with cuda.graphs.Graph() as graph:
        yield graph


@pytest.fixture
def add(kernels):
    return lambda out, x, value: kernels["add"][4, 256].bind(out, x, value, N)


@pytest.fixture
def x(device):
    array = cuda.full(N, 1, np.float32)
    cuda.legacy_default.synchronize()
    return array


def outliving(graph, x, add):
    """Add nodes that allocate an array and set its elements to 11; return the allocation."""
    allocation = cuda.graphs.NodeAllocation(N, np.float32)
    node = graph.add(allocation)
    graph.add(add(allocation.array, x, 10.0), after=node)
    return allocation


def test_each_launch_allocates_and_frees_an_array(graph, x, add):
    scratch = cuda.graphs.NodeAllocation(N, np.float32)
    node = graph.add(scratch)
    assert (scratch.array.shape, scratch.array.dtype) == ((N,), np.float32)
    used = graph.add(add(scratch.array, x, 2.0), after=node)
    last = graph.add(add(x, scratch.array, 0.0), after=used)
    graph.add(cuda.graphs.NodeFree(scratch), after=last)
    assert [node.kind for node in graph.nodes] == ["mem_alloc", "kernel", "kernel", "mem_free"]
    executable = graph.instantiate()
    for _ in range(3):
        executable.launch()
    np.testing.assert_array_equal(x.to_host(), np.full(N, 7, np.float32))
    with pytest.raises(ValueError, match=r"NodeAllocation.free: no launch has left the memory allocated"):
        scratch.free()


def test_an_array_outlives_a_launch_until_it_is_freed(graph, x, add):
    allocation = outliving(graph, x, add)
    executable = graph.instantiate()
    executable.launch()
    np.testing.assert_array_equal(allocation.array.to_host(), np.full(N, 11, np.float32))
    with pytest.raises(cuda.CudaError, match="free it, or instantiate the graph with auto_free=True"):
        executable.launch()
    allocation.free()
    executable.launch()
    assert allocation.array.to_host()[-1] == 11
    allocation.free()


def test_launches_free_what_earlier_ones_have_left(graph, x, add):
    allocation = outliving(graph, x, add)
    executable = graph.instantiate(auto_free=True)
    assert executable.auto_free
    for _ in range(3):
        executable.launch()
    assert allocation.array.to_host()[0] == 11


def test_another_graph_frees_the_array(graph, x, add, device):
    allocation = outliving(graph, x, add)
    with cuda.graphs.Graph() as second:
        second.add(cuda.graphs.NodeFree(allocation))
        make, free = graph.instantiate(), second.instantiate()
        for _ in range(2):
            make.launch()
            free.launch()
        with pytest.raises(ValueError, match="no launch has left the memory allocated"):
            allocation.free()
        cuda.legacy_default.synchronize()


def test_memory_that_was_never_freed_is_released_with_its_objects(device, x, add):
    memory = cuda.graphs.GraphMemory()
    gc.collect()
    cuda.legacy_default.synchronize()
    memory.trim()
    before = memory.used
    graph = cuda.graphs.Graph()
    allocation = outliving(graph, x, add)
    executable = graph.instantiate()
    executable.launch()
    cuda.legacy_default.synchronize()
    memory.trim()
    assert memory.used > before
    assert memory.reserved >= memory.used
    del allocation, executable, graph
    gc.collect()
    cuda.legacy_default.synchronize()
    memory.trim()
    assert memory.used == before
    assert memory.used_high > before
    memory.reset_high()
    assert (memory.used_high, memory.reserved_high) == (memory.used, memory.reserved)


def test_a_graph_with_memory_keeps_its_nodes_and_has_one_executable_graph(graph, x, add):
    allocation = outliving(graph, x, add)
    first, second = graph.nodes
    for change in (lambda: graph.remove(second), lambda: graph.remove_edge(first, second)):
        with pytest.raises(cuda.errors.NotSupportedError, match="keeps its nodes and edges"):
            change()
    with pytest.raises(cuda.errors.NotSupportedError):
        graph.clone()
    executable = graph.instantiate()
    with pytest.raises(cuda.errors.NotSupportedError, match="only one executable graph at a time"):
        graph.instantiate()
    executable.close()
    allocation.array.close()
    with pytest.raises(ValueError, match="argument 0 of an allocation: the array is closed"):
        graph.instantiate()


def test_bad_arguments_of_memory_nodes_change_nothing(graph, x, device):
    allocation = cuda.graphs.NodeAllocation(3)
    with pytest.raises(ValueError, match="NodeAllocation: the array has no address yet"):
        allocation.array  # noqa: B018  # reading it raises
    with pytest.raises(ValueError, match="the array has no address yet"):
        graph.add(cuda.graphs.NodeFree(allocation))
    with pytest.raises(TypeError, match="NodeFree: argument 'allocation' must be a NodeAllocation"):
        cuda.graphs.NodeFree(x)
    with pytest.raises(ValueError, match="NodeAllocation: argument 'shape' must have at least one element"):
        cuda.graphs.NodeAllocation((3, 0))
    assert graph.node_count == 0
    node = graph.add(allocation)
    with pytest.raises(ValueError, match="'work' must not belong to a node already"):
        graph.add(allocation)
    with pytest.raises(ValueError, match="'work' must be a launch, a copy, a fill"):
        graph.set_node(node, cuda.graphs.NodeAllocation(3))
    graph.add(cuda.graphs.NodeFree(allocation), after=node)
    with pytest.raises(cuda.CudaError, match="A graph frees an allocation once"):
        graph.add(cuda.graphs.NodeFree(allocation), after=node)
    with pytest.raises(TypeError, match="GraphMemory: argument 'device' must be a Device or None"):
        cuda.graphs.GraphMemory(0)
    assert graph.node_count == 2


def test_closing_an_array_that_a_launch_has_left_waits_for_the_launch_in_whatever_stream(graph, x, add, monkeypatch):
    calls = []

    class Recorded:
        def __getattr__(self, name):
            calls.append(name)
            return getattr(api, name)

    allocation = outliving(graph, x, add)
    executable = graph.instantiate()
    with cuda.Stream(non_blocking=True) as stream:
        executable.launch(stream)
        monkeypatch.setattr(allocation_module, "api", Recorded())
        allocation.array.close()
        monkeypatch.undo()
        assert stream.done
    assert calls == ["cuCtxSynchronize", "cuMemFreeAsync"]


@pytest.mark.parametrize("close", [True, False])
def test_a_capture_goes_on_when_an_array_that_a_launch_has_left_is_closed(x, add, close):
    memory, graph = cuda.graphs.GraphMemory(), cuda.graphs.Graph()
    allocation = outliving(graph, x, add)
    executable = graph.instantiate()
    executable.launch()
    memory.trim()
    used = memory.used
    with cuda.Stream() as stream:  # work in the legacy default stream would invalidate its capture
        with stream.capture() as captured:
            if close:
                allocation.array.close()
            else:
                executable.close()
                graph.close()
                del allocation, executable, graph
                gc.collect()
            cuda.memset(x, 3.0, stream=stream)
        assert [node.kind for node in captured.nodes] == ["memset"]
    x.device.synchronize()
    memory.trim()
    assert memory.used < used


def test_memory_is_not_freed_in_a_capture(graph, x, add):
    allocation = outliving(graph, x, add)
    executable = graph.instantiate()
    executable.launch()
    with cuda.Stream(non_blocking=True) as stream, stream.capture() as captured:
        with pytest.raises(cuda.errors.CaptureError, match="NodeAllocation.free cannot be captured: add a NodeFree"):
            allocation.free(stream=stream)
        cuda.memset(x, 3.0, stream=stream)
    assert captured.node_count == 1
    allocation.free()
    executable.launch()
    allocation.free()
