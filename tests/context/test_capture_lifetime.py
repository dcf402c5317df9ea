"""The objects that captures and callbacks keep alive, and the errors of a graph's work."""

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.context import capture as captures_module
from cudart_py.driver import backend
from cudart_py.streams import host_functions


def test_an_array_of_a_closed_stream_can_be_let_go_in_a_capture(device):
    with cuda.Stream() as closed:
        x = cuda.zeros(10, np.float32, stream=closed)
    y = cuda.zeros(10, np.float32)
    with cuda.Stream() as captured:
        with captured.capture() as graph:
            x.close()
            cuda.memset(y, 1.0, stream=captured)
        graph.instantiate().launch(captured)
    assert (y.to_host() == 1).all()


def test_only_a_stream_of_this_thread_that_is_captured_has_a_graph_that_holds_objects(stream):
    with cuda.Stream(non_blocking=True) as other, stream.capture():
        assert captures_module.hold(stream.handle, "a test", ())
        assert not captures_module.hold(other.handle, "a test", ())
    with cuda.per_thread_default.capture(), ThreadPoolExecutor(1) as threads:
        handle = cuda.per_thread_default.handle
        assert threads.submit(captures_module.find, handle).result() is None
        assert captures_module.find(handle) is not None


def test_no_node_is_recorded_for_objects_that_several_nodes_use(stream):
    arrays = cuda.zeros((2, 4), np.float32)
    with cuda.Stream(non_blocking=True) as other, stream.capture():
        other.wait(stream)
        for array, each in zip(arrays, (stream, other), strict=True):
            cuda.memset(array, 0, stream=each)
        stream.wait(other)
        captures_module.hold_node(stream.handle, "a test", ())
        assert captures_module.find(stream.handle).retained[-1].node == 0


def test_a_capture_that_cannot_begin_leaves_nothing(stream, driver_calls):
    driver_calls.fails = "cuStreamBeginCapture".__eq__
    with pytest.raises(cuda.CudaError, match="cuStreamBeginCapture"), stream.capture():
        raise AssertionError("the block must not run")
    assert not captures_module.captures


def test_a_callback_is_forgotten_with_its_graph_and_at_once_where_it_fails(stream, driver_calls):
    with stream.capture() as graph:
        stream.launch_host_function(lambda: None)
    assert len(host_functions._repeated) == 1
    executable = graph.instantiate()
    del graph
    gc.collect()
    assert len(host_functions._repeated) == 1
    del executable
    gc.collect()
    assert not host_functions._repeated
    driver_calls.fails = "cuLaunchHostFunc".__eq__
    with pytest.raises(cuda.CudaError, match="cuLaunchHostFunc"):
        stream.launch_host_function(lambda: None)
    assert not host_functions._once


NULL_STORE = """
import cudart_py as cuda
with cuda.Device(0):
    kernel = cuda.compile('extern "C" __global__ void broken(int *p) { *p = 1; }')["broken"]
    stream = cuda.Stream(non_blocking=True)
    with stream.capture() as graph:
        kernel[1, 32, 0, stream](None)
    executable = graph.instantiate()
    executable.launch(stream)
    stream.synchronize()
"""


@pytest.mark.unsanitized("a kernel stores to address 0 on purpose")
@pytest.mark.parametrize("debug", ["", "1"])
def test_a_failure_in_a_graph_names_the_graph(python, debug):
    environment = {"CUDART_PY_DEBUG": debug, "CUDART_PY_DRIVER": backend._selected}
    result = python(NULL_STORE, check=False, own_imports=bool(debug), **environment)  # debug mode is set by an import
    assert "IllegalAddressError" in result.stderr
    if debug:
        assert "It was a graph of 1 node on stream" in result.stderr
        assert "launched at <string>:9" in result.stderr
