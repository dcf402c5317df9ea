"""Conditional nodes: parts of graphs that run once, repeatedly or not at all, as a kernel decides."""

import gc
import weakref

import numpy as np
import pytest

import cudart_py as cuda

KERNELS = """
extern "C" __device__ __cudart_builtin__ void CUDARTAPI
cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);

extern "C" __global__ void choose(cudaGraphConditionalHandle condition, const unsigned *value) {
    cudaGraphSetConditional(condition, *value);
}
extern "C" __global__ void add(unsigned *x, unsigned value) { x[threadIdx.x] += value; }
// Count up, and go on while the count is below a limit.
extern "C" __global__ void count(unsigned *x, unsigned limit, cudaGraphConditionalHandle again) {
    x[0] += 1;
    cudaGraphSetConditional(again, x[0] < limit);
}
extern "C" __global__ void set(cudaGraphConditionalHandle condition, unsigned value) {
    cudaGraphSetConditional(condition, value);
}
extern "C" __global__ void start(unsigned *x, cudaGraphConditionalHandle condition) {
    *x = 0;
    cudaGraphSetConditional(condition, 1);
}
"""


@pytest.fixture
def number(stream):
    """Yield a one-element array, from which kernels set the condition."""
    with cuda.zeros(1, np.uint32, stream=stream) as array:
        stream.synchronize()
        yield array


@pytest.fixture
def x(stream):
    with cuda.zeros(4, np.uint32, stream=stream) as array:
        stream.synchronize()
        yield array


def test_the_parts_of_a_condition_run(kernels, stream, number, x):
    with stream.capture() as graph:
        conditions = [stream.condition() for _ in range(3)]
        for condition in conditions:
            kernels["choose"][1, 1, 0, stream](condition, number)
        with stream.if_then(conditions[0]) as then:
            kernels["add"][1, 1, 0, then](x, 5)
        with stream.if_else(conditions[1]) as (then, otherwise):
            kernels["add"][1, 1, 0, then](x[1:], 10)
            kernels["add"][1, 1, 0, otherwise](x[1:], 20)
        with stream.switch(conditions[2], 3) as cases:
            for place, case in enumerate(cases):
                kernels["add"][1, 1, 0, case](x[2:], place + 10)
        kernels["add"][1, 4, 0, stream](x, 100)
    assert [node.kind for node in graph.nodes].count("conditional") == 3
    executable = graph.instantiate()
    for value, expected in [
        (0, [100, 120, 110, 100]),
        (1, [105, 110, 111, 100]),
        (2, [105, 110, 112, 100]),
        (3, [105, 110, 100, 100]),
        (2**32 - 1, [105, 110, 100, 100]),
        (0, [100, 120, 110, 100]),
    ]:
        cuda.memset(number, value, stream=stream)
        cuda.memset(x, 0, stream=stream)
        executable.launch(stream)
        assert x.to_host(stream=stream).tolist() == expected


@pytest.mark.parametrize(
    "where", ["", "top", "child graph", "body", "second body", "nested body", "child graph of a body"]
)
def test_no_node_is_left_out_of_a_graph_with_a_fill(kernels, stream, x, where):
    with stream.capture() as step:
        cuda.memset(x, 0, stream=stream)
    with stream.capture() as graph:
        kernels["add"][1, 1, 0, stream](x, 1)
        if where == "top":
            cuda.memset(x, 0, stream=stream)
        if where == "child graph":
            stream.add_graph(step)
        with stream.if_else(stream.condition()) as (then, otherwise):
            kernels["add"][1, 1, 0, then](x, 2)
            if where == "body":
                cuda.memset(x, 0, stream=then)
            with otherwise.if_then(otherwise.condition()) as inner:
                kernels["add"][1, 1, 0, inner](x, 3)
                if where == "nested body":
                    cuda.memset(x, 0, stream=inner)
                if where == "child graph of a body":
                    inner.add_graph(step)
            if where == "second body":
                cuda.memset(x, 0, stream=otherwise)
    executable = graph.instantiate()
    if not where:
        executable.set_enabled(graph.nodes[0], False)
        assert not executable.is_enabled(graph.nodes[0])
        return
    with pytest.raises(cuda.errors.NotSupportedError, match="ExecutableGraph.set_enabled: the graph has a fill"):
        executable.set_enabled(graph.nodes[0], False)
    assert executable.is_enabled(graph.nodes[0])


@pytest.mark.parametrize(("kind", "further"), [("if_then", ()), ("while_loop", ()), ("if_else", ()), ("switch", (2,))])
def test_a_node_whose_bodies_recorded_nothing_is_refused(kernels, stream, x, kind, further):
    with (
        pytest.raises(cuda.errors.CaptureError, match=rf"Stream\.{kind}: the bod(y|ies) recorded nothing"),
        stream.capture(),
        getattr(stream, kind)(stream.condition(default=1), *further),
    ):
        kernels["add"][1, 1, 0, stream](x, 1)
    stream.synchronize()
    assert x.to_host(stream=stream).tolist() == [0, 0, 0, 0]


def test_one_of_several_bodies_may_be_empty(kernels, stream, x):
    with stream.capture() as graph, stream.if_else(stream.condition()) as (_, otherwise):
        kernels["add"][1, 1, 0, otherwise](x, 1)
    graph.instantiate().launch(stream)
    assert x.to_host(stream=stream).tolist() == [1, 0, 0, 0]


def test_an_error_in_the_block_is_not_hidden_by_its_empty_body(stream):
    with pytest.raises(ZeroDivisionError), stream.capture(), stream.if_then(stream.condition()):
        _ = 1 / 0


def test_a_loop_runs_until_its_condition_is_zero(kernels, stream, x):
    with stream.capture() as graph:
        again, never = stream.condition(default=1), stream.condition()
        with stream.while_loop(again) as body:
            kernels["count"][1, 1, 0, body](x, 10, again)
        with stream.while_loop(never) as body:
            kernels["count"][1, 1, 0, body](x, 50, never)
        kernels["add"][1, 1, 0, stream](x, 100)
    executable = graph.instantiate()
    executable.launch(stream)
    assert x.to_host(stream=stream)[0] == 110
    executable.launch(stream)  # each launch assigns the default again
    assert x.to_host(stream=stream)[0] == 211


@pytest.mark.unsanitized("memcheck of CUDA 13.0 reports an access to x[1], which it says is in the allocation")
def test_parts_nest(kernels, stream, x):
    """A loop of 3 iterations inside one of 4, inside a part whose conditions belong to the whole graph."""
    with stream.capture() as graph:
        inside, outer = stream.condition(default=1), stream.condition(default=1)
        with stream.if_then(inside) as then, then.while_loop(outer) as body:
            inner = body.condition()
            kernels["start"][1, 1, 0, body](x[1:2], inner)
            with body.while_loop(inner) as innermost:
                kernels["count"][1, 1, 0, innermost](x[1:2], 3, inner)
                kernels["add"][1, 1, 0, innermost](x[2:3], 1)
            kernels["count"][1, 1, 0, body](x, 4, outer)
    graph.instantiate().launch(stream)
    assert x.to_host(stream=stream).tolist() == [4, 3, 12, 0]


def test_parts_have_copies_fills_graphs_and_streams_that_join(kernels, stream, x):
    with stream.capture() as step:
        kernels["add"][1, 1, 0, stream](x[:1], 5)
    with (
        cuda.Stream(non_blocking=True) as side,
        stream.capture() as graph,
        stream.if_then(stream.condition(default=1)) as then,
    ):
        cuda.memset(x, 2, stream=then)
        side.wait(then.record(cuda.Event(timing=False)))
        kernels["add"][1, 1, 0, side](x[1:], 1)
        then.add_graph(step)
        then.wait(side.record(cuda.Event(timing=False)))
        cuda.memcpy(x[3:], x[:1], stream=then)
    graph.instantiate().launch(stream)
    assert x.to_host(stream=stream).tolist() == [7, 3, 2, 7]


def test_a_graph_is_lost_with_the_body_of_a_node(kernels, stream, x):
    unjoined = "STREAM_CAPTURE_UNJOINED"
    with cuda.Stream(non_blocking=True) as side:

        def fork():
            with stream.if_then(stream.condition()) as then:
                side.wait(then.record(cuda.Event(timing=False)))
                kernels["add"][1, 1, 0, side](x, 1)

        with pytest.raises(cuda.errors.CaptureError, match=unjoined), stream.capture():
            fork()
        assert not stream.is_capturing
        assert not side.is_capturing
        words = "the body of a conditional node could not be captured"
        lost, inside = (pytest.raises(cuda.errors.CaptureError, match=match) for match in (words, unjoined))
        with lost, stream.capture(), inside:
            fork()
        assert not stream.is_capturing


def test_the_graph_keeps_alive_what_its_parts_use_and_a_condition_nothing(kernels, stream):
    def make():
        y = cuda.zeros(1, np.uint32, stream=stream)
        stream.synchronize()
        with stream.capture() as graph:
            again = stream.condition(default=1)
            with stream.while_loop(again) as body:
                kernels["count"][1, 1, 0, body](y, 4, again)
                inner = body.condition()
                with body.if_then(inner) as innermost:
                    kernels["add"][1, 1, 0, innermost](y, 4)
        return weakref.ref(y), graph.instantiate(), (again, inner)

    kept, executable, _conditions = make()
    gc.collect()
    executable.launch(stream)
    assert kept().to_host(stream=stream)[0] == 4
    other, lost, _conditions = make()
    del lost
    gc.collect()
    assert other() is None
    kept().close()
    with pytest.raises(ValueError, match="argument 0 of count: the array is closed"):
        executable.launch(stream)


def test_a_graph_with_parts_is_updated_by_one_of_the_same_shape(kernels, stream, x):
    def make(default, *values):
        with stream.capture() as graph, stream.switch(stream.condition(default=default), 2) as (first, second):
            kernels["add"][1, 1, 0, first](x, 1)
            for value in values:
                kernels["add"][1, 1, 0, second](x, value)
        return graph

    executable = make(0, 2).instantiate()
    executable.launch(stream)
    assert x.to_host(stream=stream)[0] == 1
    executable.update(make(1, 2))
    executable.launch(stream)
    assert x.to_host(stream=stream)[0] == 3
    with pytest.raises(cuda.CudaError, match="GRAPH_EXEC_UPDATE_FAILURE"):
        executable.update(make(1, 2, 2))


def test_a_graph_with_parts_has_one_executable_and_is_no_part(kernels, stream, x):
    with stream.capture() as graph:
        condition = stream.condition(default=1)
        with stream.if_then(condition) as then:
            kernels["add"][1, 1, 0, then](x, 1)
    executable = graph.instantiate()
    with pytest.raises(cuda.CudaError, match="one executable graph at a time"):
        graph.instantiate()
    executable.close()
    graph.instantiate().launch(stream)
    assert x.to_host(stream=stream)[0] == 1
    with pytest.raises(cuda.CudaError), stream.capture():
        stream.add_graph(graph)


def test_what_no_part_can_have_is_refused(stream):
    def add(use):
        with stream.capture():
            condition = stream.condition()
            with stream.if_then(condition) as then:
                use(then)

    with pytest.raises(
        cuda.errors.CaptureError, match="Stream.launch_host_function: the body of a conditional node can contain"
    ):
        add(lambda then: then.launch_host_function(print))
    with pytest.raises(cuda.errors.CaptureError, match="graphs.empty: the body of a conditional node can contain"):
        add(lambda then: cuda.graphs.empty(4, stream=then))
    assert not stream.is_capturing


def test_conditions_belong_to_captures(kernels, stream, x):
    with pytest.raises(cuda.errors.CaptureError, match="Stream.condition: the stream is not being captured"):
        stream.condition()
    with stream.capture() as first:
        condition = stream.condition(default=3)
        with pytest.raises(ValueError, match="Stream.condition: argument 'default'"):
            stream.condition(default=-1)
        with stream.if_then(condition) as then:
            kernels["add"][1, 1, 0, then](x, 1)
        with pytest.raises(ValueError, match="already belongs to a conditional node"):
            stream.if_then(condition)
    assert first.node_count == 1
    assert (condition.default, condition.device) == (3, stream.device)
    assert repr(condition) == f"<Condition {condition.handle:#x}, default 3>"
    with pytest.raises(cuda.errors.CaptureError, match="Stream.if_then: the stream is not being captured"):
        stream.if_then(condition)
    with stream.capture() as lonely:
        unused = stream.condition()
    with pytest.raises(ValueError, match=r"the graph has no conditional node that depends on the <Condition .*>"):
        lonely.instantiate()
    with stream.capture() as second:
        with pytest.raises(ValueError, match="Stream.while_loop: argument 'condition' was made for another graph"):
            stream.while_loop(unused)
        with pytest.raises(TypeError, match="Stream.if_else: argument 'condition' must be a Condition, not the int 1"):
            stream.if_else(1)
        with pytest.raises(ValueError, match="Stream.switch: argument 'count'"):
            stream.switch(condition, 0)
    assert second.node_count == 0


def test_a_kernel_takes_a_condition_as_a_handle_alone(kernels, stream, x):
    with stream.capture() as graph:
        condition = stream.condition()
        with pytest.raises(TypeError, match=r"does not take a Condition; declare it as cudaGraphConditionalHandle"):
            kernels["add"][1, 1, 0, stream](x, condition)
        kernels["set"][1, 1, 0, stream](condition.handle, 1)
        with stream.if_then(condition) as then:
            kernels["add"][1, 1, 0, then](x, 1)
    graph.instantiate().launch(stream)
    assert x.to_host(stream=stream)[0] == 1


def test_an_error_inside_a_part_ends_its_capture_and_the_whole(kernels, stream, x):
    bodies = []

    def use(act):
        with stream.capture(), stream.if_then(stream.condition()) as then:
            bodies.append(then)
            kernels["add"][1, 1, 0, then](x, 1)
            yield act(then)

    with pytest.raises(ZeroDivisionError):
        next(use(lambda then: 1 / 0))
    assert not stream.is_capturing
    assert bodies[0].closed
    half = use(lambda then: None)
    next(half)
    assert stream.is_capturing
    del half
    gc.collect()
    assert not stream.is_capturing
    words = "Stream.if_then: the stream of a body was closed while it was"
    with pytest.raises(cuda.errors.CaptureError, match=words):
        list(use(cuda.Stream.close))
    assert not stream.is_capturing


def test_an_array_that_is_closed_inside_a_part_does_not_spoil_the_capture(kernels, x):
    scratch = cuda.zeros(4, np.uint32)
    with cuda.Stream() as blocking:
        with blocking.capture() as graph:
            condition = blocking.condition(default=1)
            with blocking.if_then(condition) as then:
                scratch.close()
                kernels["add"][1, 1, 0, then](x, 1)
            kernels["add"][1, 1, 0, blocking](x, 1)
        graph.instantiate().launch(blocking)
        assert x.to_host(stream=blocking)[0] == 2


def test_a_source_without_the_declaration_is_told_so(device):
    source = KERNELS.partition(";")[2]
    with pytest.raises(cuda.CompileError, match="declare extern .C. __device__ __cudart_builtin__ void CUDARTAPI"):
        cuda.compile(source)
