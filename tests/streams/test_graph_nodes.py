"""Nodes of graphs: child graphs, and changing the work of single nodes of an executable graph."""

import gc
import weakref

import numpy as np
import pytest

import cudart_py as cuda

KERNELS = """
extern "C" __global__ void add(float *x, float value) { x[threadIdx.x] += value; }
extern "C" __global__ void scale(float *x, float value) { x[threadIdx.x] *= value; }
extern "C" __global__ void cluster_size(float *x, float value) {
    unsigned int size;
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));
    if (threadIdx.x == 0) x[blockIdx.x] = size * value;
}
extern "C" __global__ void first(float *x, float value) { if (threadIdx.x == 0) x[0] = value; }
"""
N = 32


@pytest.fixture
def x(stream):
    with cuda.zeros(N, np.float32, stream=stream) as array:
        stream.synchronize()
        yield array


@pytest.fixture
def step(kernels, stream, x):
    """Return a graph of x = 2 * (x + 1)."""
    with stream.capture() as graph:
        kernels["add"][1, N, 0, stream](x, 1.0)
        kernels["scale"][1, N, 0, stream](x, 2.0)
    return graph


def run(executable, stream, x):
    executable.launch(stream)
    return x.to_host(stream=stream)[0]


def test_graphs_are_parts_of_others_and_nest(kernels, stream, step, x):
    with stream.capture() as empty:
        pass
    with stream.capture() as middle:
        stream.add_graph(step)
        kernels["add"][1, N, 0, stream](x, 10.0)
        stream.add_graph(empty)
        stream.add_graph(step)
    assert [node.kind for node in middle.nodes] == ["graph", "kernel", "graph", "graph"]
    with stream.capture() as outer:
        stream.add_graph(middle)
        stream.add_graph(step)
    assert outer.node_count == 2
    assert run(outer.instantiate(), stream, x) == 54  # 2 * (2 * (2 * (0 + 1) + 10 + 1) + 1)


def test_the_whole_graph_keeps_alive_what_its_part_uses(kernels, stream, x):
    def make():
        y = cuda.zeros(N, np.float32, stream=stream)
        stream.synchronize()
        with stream.capture() as part:
            kernels["add"][1, N, 0, stream](y, 1.0)
        with stream.capture() as whole:
            stream.add_graph(part)
        part.close()
        return weakref.ref(y), whole.instantiate()

    kept, executable = make()
    gc.collect()
    assert kept() is not None
    assert run(executable, stream, kept()) == 1


def test_a_graph_is_added_only_to_a_capture(stream, step):
    with pytest.raises(cuda.errors.CaptureError, match="not being captured; call graph.instantiate"):
        stream.add_graph(step)
    with pytest.raises(TypeError, match="Stream.add_graph: argument 'graph' must be a Graph, not the int 1"):
        stream.add_graph(1)
    with stream.capture() as whole, pytest.raises(ValueError, match="still being captured"):
        stream.add_graph(whole)


def test_nodes_know_what_they_do_and_what_comes_before_and_after_them(kernels, stream, x):
    with cuda.Stream(non_blocking=True) as side, stream.capture() as graph:
        kernels["add"][1, N, 0, stream](x, 1.0)
        side.wait(stream.record(cuda.Event(timing=False)))
        kernels["add"][1, 1, 0, side](x, 1.0)
        stream.wait(side.record(cuda.Event(timing=False)))
        kernels["scale"][1, N, 0, stream](x, 2.0)
    first = next(node for node in graph.nodes if not node.dependencies)
    assert first.kind == "kernel"
    edges = set(graph.edges)
    assert len(graph.edges) == len(edges) == 3
    assert edges == {(before, node) for node in graph.nodes for before in node.dependencies}
    assert set(first.dependents) == {node for node in graph.nodes if node != first}
    assert len({*graph.nodes, *graph.nodes}) == 3
    assert repr(first) == "<GraphNode kernel>"
    assert first.graph is graph
    graph.close()
    for ask in (lambda: first.handle, lambda: first.kind, lambda: first.dependencies, lambda: graph.edges):
        with pytest.raises(ValueError, match="this Graph is closed"):
            ask()
    assert repr(first) == "<GraphNode of a closed graph>"


def test_a_node_of_one_executable_gets_other_arguments_and_another_kernel(kernels, stream, step, x):
    executable, other = step.instantiate(), step.instantiate()
    assert run(executable, stream, x) == 2
    executable.set_node(step.nodes[0], kernels["add"][1, N].bind(x, 5.0))
    assert run(executable, stream, x) == 14
    executable.set_node(step.nodes[1], kernels["first"][1, 1].bind(x, -1.0))
    executable.launch(stream)
    assert x.to_host(stream=stream)[:2].tolist() == [-1, 19]
    assert run(other, stream, x) == 0


def test_a_node_keeps_alive_its_new_arguments_alone_after_an_update_too(kernels, stream, step, x):
    y, z = (cuda.zeros(N, np.float32, stream=stream) for _ in range(2))
    stream.synchronize()
    with stream.capture() as other:
        kernels["add"][1, N, 0, stream](y, 1.0)
        kernels["scale"][1, N, 0, stream](x, 2.0)
    executable = step.instantiate()
    executable.update(other)
    executable.set_node(step.nodes[0], kernels["add"][1, N].bind(z, 4.0))
    y.close()
    assert run(executable, stream, z) == 4
    kept = weakref.ref(z)
    del z
    gc.collect()
    assert kept() is not None
    kept().close()
    with pytest.raises(ValueError, match="argument 0 of add: the array is closed"):
        executable.launch(stream)


def test_a_child_graph_is_replaced_by_one_of_the_same_shape(kernels, stream, step, x):
    with stream.capture() as whole:
        stream.add_graph(step)
    executable = whole.instantiate()
    with stream.capture() as other:
        kernels["add"][1, N, 0, stream](x, 7.0)
        kernels["scale"][1, N, 0, stream](x, 10.0)
    executable.set_node(whole.nodes[0], other)
    assert run(executable, stream, x) == 70
    with stream.capture() as longer:
        stream.add_graph(step)
        kernels["add"][1, N, 0, stream](x, 7.0)
    with stream.capture() as nested:
        stream.add_graph(whole)
    with pytest.raises(cuda.CudaError):
        executable.set_node(whole.nodes[0], longer)
    with pytest.raises(cuda.CudaError, match="GRAPH_EXEC_UPDATE_FAILURE"):
        executable.update(nested)
    executable.update(whole)
    assert run(executable, stream, x) == 142


def test_what_cannot_take_a_nodes_place_is_refused(kernels, stream, step, x):
    executable = step.instantiate()
    node, bound = step.nodes[0], kernels["add"][1, N].bind(x, 1.0)
    call = "ExecutableGraph.set_node"
    with pytest.raises(TypeError, match=f"{call}: argument 'node' must be a GraphNode"):
        executable.set_node(0, bound)
    with pytest.raises(TypeError, match=f"{call}: argument 'work' must be a BoundLaunch, a NodeCopy"):
        executable.set_node(node, kernels["add"][1, N])
    with pytest.raises(ValueError, match="argument 'node' must be a graph, .* not a kernel"):
        executable.set_node(node, step)
    with pytest.raises(ValueError, match="launches add with attributes"):
        executable.set_node(node, kernels["add"].configure(1, N, cluster=1).bind(x, 1.0))
    with stream.capture() as other:
        kernels["add"][1, N, 0, stream](x, 1.0)
        cuda.memset(x, 0, stream=stream)
    with pytest.raises(ValueError, match="argument 'node' does not belong to the graph"):
        executable.set_node(other.nodes[0], bound)
    with pytest.raises(ValueError, match="argument 'node' must be a kernel, .* not a memset"):
        other.instantiate().set_node(other.nodes[1], bound)
    executable.close()
    with pytest.raises(ValueError, match="closed"):
        executable.set_node(node, bound)
    assert x.to_host(stream=stream).sum() == 0


def test_a_cluster_stays_the_nodes_own(kernels, stream, x):
    with stream.capture() as graph:
        kernels["cluster_size"].configure(2, 1, 0, stream, cluster=2)(x, 1.0)
    executable = graph.instantiate()
    executable.set_node(graph.nodes[0], kernels["cluster_size"][4, 1].bind(x, 10.0))
    executable.launch(stream)
    assert x.to_host(stream=stream)[:5].tolist() == [20, 20, 20, 20, 0]


def test_a_node_is_left_out_of_launches_and_put_back(stream, kernels, x):
    y = cuda.full(N, 9.0, np.float32, stream=stream)
    stream.synchronize()
    with stream.capture() as graph:
        kernels["add"][1, N, 0, stream](x, 1.0)
        kernels["add"][1, N, 0, stream](x, 10.0)
        cuda.memcpy(y, x, stream=stream)
    executable = graph.instantiate()
    one, ten, copy = graph.nodes
    assert all(executable.is_enabled(node) for node in graph.nodes)
    before = x.to_host(stream=stream)[0]
    executable.set_enabled(ten, False)
    executable.set_enabled(copy, False)
    assert [executable.is_enabled(node) for node in graph.nodes] == [True, False, False]
    assert run(executable, stream, x) == before + 1
    assert y.to_host(stream=stream)[0] == 9
    executable.set_enabled(one, False)
    executable.set_enabled(ten, True)
    executable.set_enabled(copy, True)
    assert run(executable, stream, x) == before + 11
    assert y.to_host(stream=stream)[0] == before + 11


def test_only_kernels_copies_and_fills_are_left_out(stream, step, x):
    with stream.capture() as whole:
        stream.add_graph(step)
    executable, call = whole.instantiate(), "ExecutableGraph.set_enabled"
    with pytest.raises(ValueError, match=f"{call}: argument 'node' must be a kernel or memcpy or memset"):
        executable.set_enabled(whole.nodes[0], False)
    with pytest.raises(ValueError, match=f"{call}: argument 'node' does not belong to the graph"):
        executable.set_enabled(step.nodes[0], False)
    with pytest.raises(TypeError, match=f"{call}: argument 'node' must be a GraphNode"):
        executable.set_enabled(0, False)
    with pytest.raises(TypeError, match=f"{call}: argument 'enabled' must be a bool"):
        step.instantiate().set_enabled(step.nodes[0], "no")
    with pytest.raises(ValueError, match="ExecutableGraph.is_enabled: argument 'node' must be a kernel"):
        executable.is_enabled(whole.nodes[0])
