"""Graphs that are built node by node, and changed before and after they are instantiated."""

import gc
import weakref

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.driver.calls import api

KERNELS = """
extern "C" __global__ void add(float *x, float value) { x[threadIdx.x] += value; }
extern "C" __global__ void scale(float *x, float value) { x[threadIdx.x] *= value; }
extern "C" __global__ void cluster_size(float *x) {
    unsigned int size;
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));
    if (threadIdx.x == 0) x[blockIdx.x] = size;
}
"""
N = 29


@pytest.fixture
def graph(device):
    with cuda.graphs.Graph() as graph:
        yield graph


@pytest.fixture
def x(device):
    array = cuda.zeros(N, np.float32)
    cuda.legacy_default.synchronize()
    return array


@pytest.fixture
def add(kernels):
    return lambda x, value: kernels["add"][1, N].bind(x, value)


@pytest.fixture
def scale(kernels):
    return lambda x, value: kernels["scale"][1, N].bind(x, value)


def run(graph):
    executable = graph.instantiate()
    executable.launch()
    cuda.legacy_default.synchronize()
    return executable


def indices(graph):
    """Return the edges as pairs of indices of nodes."""
    nodes = list(graph.nodes)
    return {(nodes.index(before), nodes.index(after)) for before, after in graph.edges}


def test_nodes_run_after_those_on_which_they_depend(graph, x, add, scale):
    host = cuda.pinned_empty(N, np.float32)
    host[:] = 0xEE
    seen = []
    first = graph.add(cuda.graphs.NodeFill(x, 1.0))
    second = graph.add(add(x, 2.0), after=first)
    third = graph.add(scale(x, 5.0), after=[second])
    fourth = graph.add(cuda.graphs.NodeCopy(host, x), after=(third, first))
    graph.add(cuda.graphs.NodeFunction(lambda: seen.append(host[0])), after=graph.add_empty(after=fourth))
    assert [node.kind for node in graph.nodes] == ["memset", "kernel", "kernel", "memcpy", "empty", "host"]
    assert indices(graph) == {(0, 1), (1, 2), (2, 3), (0, 3), (3, 4), (4, 5)}
    run(graph)
    np.testing.assert_array_equal(host, np.full(N, 15, np.float32))
    assert seen == [15]


def test_a_graph_by_hand_is_an_update_of_a_captured_one(kernels, stream, graph, x, add, scale):
    with stream.capture() as captured:
        kernels["add"][1, N, 0, stream](x, 1.0)
        kernels["scale"][1, N, 0, stream](x, 2.0)
    executable = captured.instantiate()
    graph.add(scale(x, 7.0), after=graph.add(add(x, 3.0)))
    executable.update(graph)
    executable.launch()
    assert x.to_host()[-1] == 21


def test_edges_are_added_and_removed(graph, x, add, scale):
    first, second = graph.add(add(x, 1.0)), graph.add(scale(x, 3.0))
    graph.add_edge(second, first)
    assert indices(graph) == {(1, 0)}
    graph.remove_edge(second, first)
    assert indices(graph) == set()
    graph.add_edge(first, second)
    run(graph)
    assert x.to_host()[0] == 3


def test_a_removed_node_is_gone_with_its_edges_and_its_objects(graph, x, add, scale):
    y = cuda.zeros(N, np.float32)
    first, middle = graph.add(add(x, 1.0)), graph.add(add(y, 1.0))
    last = graph.add(scale(x, 3.0), after=middle)
    graph.add_edge(first, last)
    gone = weakref.ref(y)
    del y
    graph.remove(middle)
    gc.collect()
    assert gone() is None
    assert graph.nodes == (first, last)
    assert repr(middle) == "<GraphNode removed>"
    with pytest.raises(ValueError, match="this GraphNode was removed from its graph"):
        middle.kind  # noqa: B018  # reading it raises
    with pytest.raises(ValueError, match="this GraphNode was removed from its graph"):
        graph.add_empty(after=middle)
    run(graph)
    assert x.to_host()[0] == 3


def test_a_cycle_is_reported_with_its_nodes(graph):
    first = graph.add_empty(after=graph.add_empty())
    second = graph.add_empty(after=first)
    third = graph.add_empty(after=second)
    graph.add_edge(third, first)
    with pytest.raises(cuda.CudaError, match="edges between these nodes form a cycle: 1 -> 2 -> 3 -> 1"):
        graph.instantiate()


def test_nodes_are_changed_before_the_graph_is_instantiated(graph, x, add, scale):
    seen, (old, new) = [], (cuda.zeros(N, np.float32) for _ in range(2))
    first = graph.add(cuda.graphs.NodeFill(x, 1.0))
    second = graph.add(add(x, 1.0), after=first)
    third = graph.add(cuda.graphs.NodeFunction(lambda: seen.append("old")), after=second)
    fourth = graph.add(cuda.graphs.NodeCopy(old, x), after=second)
    before = graph.instantiate()
    graph.set_node(first, cuda.graphs.NodeFill(x, 4.0))
    graph.set_node(second, scale(x, 2.0))
    graph.set_node(third, cuda.graphs.NodeFunction(lambda: seen.append("new")))
    graph.set_node(fourth, cuda.graphs.NodeCopy(new, x))
    run(graph)
    assert (x.to_host()[0], old.to_host()[0], new.to_host()[0]) == (8, 0, 8)
    before.launch()
    assert (x.to_host()[0], old.to_host()[0], new.to_host()[0]) == (2, 2, 8)
    assert seen == ["new", "old"]


def test_the_function_of_an_executable_graph_is_changed_while_a_launch_is_in_flight(graph):
    seen = []
    node = graph.add(cuda.graphs.NodeFunction(lambda: seen.append(0)))
    executable = graph.instantiate()
    for number in (1, 2, 3):
        executable.launch()
        # Nothing else keeps the function of the last launch alive, which the host may not have called yet.
        executable.set_node(node, cuda.graphs.NodeFunction(lambda number=number: seen.append(number)))
        gc.collect()
    executable.launch()
    cuda.legacy_default.synchronize()
    assert seen == [0, 1, 2, 3]


def test_a_captured_host_function_is_changed(stream):
    seen = []
    with stream.capture() as graph:
        stream.launch_host_function(lambda: seen.append("old"))
    executable = graph.instantiate()
    executable.set_node(graph.nodes[0], cuda.graphs.NodeFunction(lambda: seen.append("new")))
    executable.launch(stream)
    stream.synchronize()
    assert seen == ["new"]


def test_a_graph_becomes_a_node_and_keeps_its_own_copy(graph, x, add):
    with cuda.graphs.Graph() as part:
        part.add(add(x, 1.0))
        graph.add(part, after=graph.add(part))
    run(graph)
    assert x.to_host()[0] == 2
    assert [node.kind for node in graph.nodes] == ["graph", "graph"]


def test_a_clone_does_not_change_with_the_original(graph, x, add, scale):
    first = graph.add(add(x, 1.0))
    second = graph.add(scale(x, 5.0), after=first)
    with graph.clone() as clone:
        assert indices(clone) == {(0, 1)}
        graph.remove(second)
        clone.set_node(clone.nodes[0], add(x, 2.0))
        run(clone)
    assert x.to_host()[0] == 10
    run(graph)
    assert x.to_host()[0] == 11


def test_nodes_have_the_priorities_of_their_launches_and_streams(kernels, device, graph, x):
    with cuda.Stream(priority=-2, non_blocking=True) as stream, stream.capture() as captured:
        kernels["add"][1, N, 0, stream](x, 1.0)
    assert captured.nodes[0].priority == -2
    node = graph.add(kernels["add"].configure(1, N, priority=-1).bind(x, 1.0))
    assert node.priority == -1
    executable = graph.instantiate(node_priorities=True)
    assert (executable.node_priorities, executable.auto_free) == (True, False)
    executable.launch()
    assert x.to_host()[0] == 1
    with pytest.raises(ValueError, match="GraphNode.priority: only kernels have priorities, and this node is an empty"):
        graph.add_empty().priority  # noqa: B018  # reading it raises


def test_a_launch_keeps_its_attributes_as_a_node(kernels, graph):
    y = cuda.zeros(4, np.float32)
    node = graph.add(kernels["cluster_size"].configure(4, 32, cluster=2).bind(y))
    run(graph)
    assert y.to_host().tolist() == [2] * 4
    with pytest.raises(ValueError, match="launches cluster_size with attributes, which belong to the node"):
        graph.set_node(node, kernels["cluster_size"].configure(4, 32, cluster=4).bind(y))
    programmatic = kernels["cluster_size"].configure(4, 32, programmatic=True).bind(y)
    with pytest.raises(ValueError, match="launches cluster_size with programmatic=True, which nodes cannot have"):
        graph.add(programmatic)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_launch_whose_attributes_cannot_be_set_leaves_no_node(kernels, graph, monkeypatch, error):
    def fail(*arguments):
        raise error

    y = cuda.zeros(4, np.float32)
    with monkeypatch.context() as patch:
        patch.setattr(api, "cuGraphKernelNodeSetAttribute", fail)
        with pytest.raises(error):
            graph.add(kernels["cluster_size"].configure(4, 32, cluster=2).bind(y))
    assert len(graph.nodes) == 0


def test_a_graph_keeps_the_objects_of_its_nodes_alive(graph, kernels):
    y = cuda.zeros(N, np.float32)
    graph.add(kernels["add"][1, N].bind(y, 4.0))
    kept = weakref.ref(y)
    del y
    executable = graph.instantiate()
    graph.close()
    gc.collect()
    executable.launch()
    assert kept().to_host()[0] == 4
    kept().close()
    with pytest.raises(ValueError, match="argument 0 of add: the array is closed"):
        executable.launch()


def test_bad_arguments_change_nothing(graph, x, add, device):
    other, node = cuda.graphs.Graph(device), graph.add(add(x, 1.0))
    foreign = other.add_empty()
    for wrong, error, words in (
        (lambda: cuda.graphs.Graph(0), TypeError, "Graph: argument 'device' must be a Device or None, not the int 0"),
        (lambda: graph.add(add), TypeError, "Graph.add: argument 'work' must be a BoundLaunch, .* or a Graph"),
        (lambda: graph.add(graph), ValueError, "Graph.add: argument 'work' must be another graph"),
        (lambda: graph.add(add(x, 1.0), after=foreign), ValueError, r"argument 'after\[0\]' must belong to this graph"),
        (
            lambda: graph.add_empty(after=5),
            TypeError,
            "argument 'after' must be a GraphNode, or a tuple or list of them, not",
        ),
        (lambda: graph.add_empty(after=[5]), TypeError, r"argument 'after\[0\]' must be a GraphNode"),
        (lambda: graph.add_edge(node, node), ValueError, "argument 'after' must be a different node than 'before'"),
        (lambda: graph.add_edge(node, foreign), ValueError, "argument 'after' must belong to this graph"),
        (lambda: graph.remove_edge(node, graph.nodes[0]), ValueError, "must directly depend on 'before'"),
        (lambda: graph.remove(foreign), ValueError, "Graph.remove: argument 'node' must belong to this graph"),
        (lambda: graph.set_node(node, cuda.graphs.NodeFill(x, 1)), ValueError, "must be a memset, to match 'work'"),
        (lambda: graph.set_node(node, other), TypeError, "Graph.set_node: argument 'work' must be"),
        (lambda: graph.instantiate(auto_free=1), TypeError, "argument 'auto_free' must be a bool"),
        (lambda: cuda.graphs.NodeFunction(3), TypeError, "NodeFunction: argument 'function' must be a function"),
    ):
        with pytest.raises(error, match=words):
            wrong()
    second = graph.add_empty(after=node)
    with pytest.raises(ValueError, match="argument 'after' must not depend on 'before' already"):
        graph.add_edge(node, second)
    assert graph.nodes == (node, second)
    executable = graph.instantiate()
    third = graph.add(add(x, 1.0))
    with pytest.raises(ValueError, match="must have been in the graph when it was instantiated"):
        executable.set_node(third, add(x, 2.0))
    other.close()


def test_events_are_recorded_and_waited_for_by_nodes(graph, x, add):
    start, end = cuda.Event(), cuda.Event()
    first = graph.add(cuda.graphs.NodeRecord(start))
    graph.add(cuda.graphs.NodeRecord(end), after=graph.add(add(x, 1.0), after=first))
    executable = graph.instantiate()
    with pytest.raises(cuda.errors.EventNotRecordedError):
        end - start
    executable.launch()
    end.synchronize()
    assert 0 < end - start < 10_000
    with cuda.Stream(non_blocking=True) as stream, cuda.graphs.Graph() as waiting:
        waiting.add(add(x, 5.0), after=waiting.add(cuda.graphs.NodeWait(end)))
        second = waiting.instantiate()
        executable.launch()
        second.launch(stream)
        assert x.to_host(stream=stream)[0] == 7


def test_the_event_of_a_node_is_changed(graph):
    first, second = cuda.Event(), cuda.Event()
    node = graph.add(cuda.graphs.NodeRecord(first))
    executable = graph.instantiate()
    executable.set_node(node, cuda.graphs.NodeRecord(second))
    executable.launch()
    assert (first.recorded, second.recorded) == (False, True)
    with pytest.raises(ValueError, match="be a wait_event, to match 'work', not an event_record"):
        graph.set_node(node, cuda.graphs.NodeWait(first))
    second.close()
    with pytest.raises(ValueError, match="argument 0 of a record of an event: the event is closed"):
        executable.launch()
    for kind in (cuda.graphs.NodeRecord, cuda.graphs.NodeWait):
        with pytest.raises(ValueError, match=f"{kind.__name__}: argument 'event' must be open"):
            kind(second)


def test_an_external_record_in_a_capture_measures_a_part_of_the_graph(kernels, stream, x):
    start, end = cuda.Event(), cuda.Event()
    stream.synchronize()
    with stream.capture() as graph:
        start.record(stream, external=True)
        kernels["add"][1, N, 0, stream](x, 1.0)
        end.record(stream, external=True)
    assert [node.kind for node in graph.nodes] == ["event_record", "kernel", "event_record"]
    graph.instantiate().launch(stream)
    stream.synchronize()
    assert 0 < end - start < 10_000
    with pytest.raises(cuda.errors.CaptureError, match="external=True needs a stream that is being captured"):
        start.record(stream, external=True)


def test_an_external_wait_in_a_capture_waits_at_each_launch(kernels, stream, x):
    ready = cuda.Event(timing=False)
    with stream.capture() as graph:
        stream.wait(ready, external=True)
        kernels["add"][1, N, 0, stream](x, 1.0)
    assert [node.kind for node in graph.nodes] == ["wait_event", "kernel"]
    executable = graph.instantiate()
    with cuda.Stream(non_blocking=True) as other:
        for value in (10, 20):
            cuda.memset(x, value, stream=other)
            ready.record(other)
            executable.launch(stream)
            assert x.to_host(stream=stream)[-1] == value + 1
    with pytest.raises(cuda.errors.CaptureError, match="Stream.wait: external=True needs a stream that is being"):
        stream.wait(ready, external=True)
    ready.close()
    with pytest.raises(ValueError, match="argument 0 of a wait for an event: the event is closed"):
        executable.launch(stream)


def test_a_wait_does_not_mark_its_event_as_recorded(graph):
    event = cuda.Event()
    graph.add(cuda.graphs.NodeWait(event))
    run(graph)
    assert not event.recorded
    with pytest.raises(cuda.errors.EventNotRecordedError):
        event - event  # it raises


@pytest.mark.needs("in_process")  # only the simulator checks
@pytest.mark.parametrize("ordered", [False, True])
def test_nodes_without_an_edge_race(graph, x, add, ordered):
    first = graph.add(add(x, 1.0))
    graph.add(cuda.graphs.NodeFill(x, 2.0), after=[first] if ordered else [])
    executable = graph.instantiate()
    with cuda.sanitizer("error"):
        executable.launch()
        if ordered:
            assert x.to_host()[0] == 2
        else:
            with pytest.raises(cuda.errors.SimulatorWarning, match="race: .*in another node of the graph"):
                cuda.legacy_default.synchronize()


@pytest.mark.needs("in_process")  # a GPU's driver draws handles too
def test_a_graph_by_hand_is_drawn_like_a_captured_one(kernels, stream, graph, x, add):
    with stream.capture() as captured:
        cuda.memset(x, 1.0, stream=stream)
        kernels["add"][1, N, 0, stream](x, 2.0)
    graph.add(add(x, 2.0), after=graph.add(cuda.graphs.NodeFill(x, 1.0)))
    assert graph.dot() == captured.dot()
