"""Graphs, textures and callbacks come and go in equal numbers, whatever call fails, and on several threads at once."""

from __future__ import annotations

import gc
import threading
from collections import Counter

import numpy as np
import pytest
from cuda.bindings import driver as enums

import cudart_py as cuda
from cudart_py.context import capture as captures_module
from cudart_py.driver import seam
from cudart_py.streams import host_functions

PAIRS = {
    "cuGraphInstantiate": "cuGraphExecDestroy",
    "cuStreamEndCapture": "cuGraphDestroy",
    "cuTexObjectCreate": "cuTexObjectDestroy",
}


@pytest.fixture
def calls(monkeypatch):
    """Count the driver calls that make and end things; `calls.failing` names one that fails."""

    class Calls(Counter):
        failing = None

    counted = Calls()

    def replace(face, name):
        function = getattr(seam.raw, name)

        def call(*arguments):
            if counted.failing == name:
                status = enums.CUresult.CUDA_ERROR_OUT_OF_MEMORY
                return (status,) if name == "cuLaunchHostFunc" else (status, None)
            result = function(*arguments)
            counted[name] += not result[0]
            return result

        monkeypatch.setitem(vars(seam.raw), name, call)
        # api keeps functions that it has bound earlier.
        monkeypatch.setitem(vars(seam.api), name, seam._unwrapped(call, name))

    names = {
        "cuStreamBeginCapture",
        "cuGraphGetNodes",
        "cuLaunchHostFunc",
        "cuStreamSetAttribute",
        *PAIRS,
        *PAIRS.values(),
    }
    for name in names:
        replace(seam.raw, name)
    return counted


@pytest.fixture
def stream(device):
    with cuda.Stream(non_blocking=True) as made:
        yield made


def capture(module, stream, x):
    with stream.capture() as graph:
        module["saxpy"][1, 32, 0, stream](1.0, x, x, 10)
    return graph


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


def test_only_a_stream_that_is_captured_has_a_graph_that_holds_objects(stream):
    with cuda.Stream(non_blocking=True) as other, stream.capture():
        assert captures_module.hold(stream.handle, "a test", ())
        assert not captures_module.hold(other.handle, "a test", ())


def test_a_capture_of_a_threads_default_stream_is_not_another_threads(device):
    found = []
    with cuda.per_thread_default.capture():
        handle = cuda.per_thread_default.handle
        thread = threading.Thread(target=lambda: found.append(captures_module.find(handle)))
        thread.start()
        thread.join()
        assert captures_module.find(handle) is not None
    assert found == [None]


def test_as_many_are_destroyed_as_were_made(device, module, stream, calls):
    x, pitched = cuda.zeros(10, np.float32), cuda.empty_pitched((8, 8), np.float32)
    device.synchronize()
    for _ in range(100):
        graph = capture(module, stream, x)
        executable = graph.instantiate()
        executable.update(capture(module, stream, x))
        executable.launch(stream)
        cuda.Texture(pitched)
    del graph, executable
    stream.synchronize()
    gc.collect()
    for make, destroy in PAIRS.items():
        assert calls[make] == calls[destroy] > 0


@pytest.mark.parametrize("failing", ["cuGraphInstantiate", "cuGraphGetNodes"])
def test_an_instantiation_that_fails_leaves_nothing(device, module, stream, calls, failing):
    x = cuda.zeros(10, np.float32)
    device.synchronize()
    graph = capture(module, stream, x)
    calls.failing = failing
    with pytest.raises(cuda.OutOfMemoryError, match=failing):
        graph.instantiate()
    calls.failing = None
    graph.instantiate().launch(stream)
    stream.synchronize()
    del graph
    gc.collect()
    assert calls["cuGraphInstantiate"] == calls["cuGraphExecDestroy"] == 1
    assert calls["cuStreamEndCapture"] == calls["cuGraphDestroy"] == 1


def test_a_capture_that_cannot_begin_leaves_nothing(device, module, stream, calls):
    calls.failing = "cuStreamBeginCapture"
    with pytest.raises(cuda.OutOfMemoryError), stream.capture():
        raise AssertionError("the block must not run")
    assert not captures_module.captures
    calls.failing = None
    assert stream.done


def test_a_texture_that_fails_leaves_nothing(device, calls):
    calls.failing = "cuTexObjectCreate"
    with pytest.raises(cuda.OutOfMemoryError, match="cuTexObjectCreate"):
        cuda.Texture(cuda.empty_pitched((8, 8), np.float32))
    gc.collect()
    assert calls["cuTexObjectDestroy"] == 0


def test_a_callback_that_fails_is_not_kept(device, stream, calls):
    calls.failing = "cuLaunchHostFunc"
    with pytest.raises(cuda.OutOfMemoryError, match="cuLaunchHostFunc"):
        stream.add_callback(lambda: None)
    assert not host_functions._once


def test_a_callback_is_forgotten_with_its_graph(device, stream):
    with stream.capture() as graph:
        stream.add_callback(lambda: None)
    assert len(host_functions._repeated) == 1
    executable = graph.instantiate()
    del graph
    gc.collect()
    assert len(host_functions._repeated) == 1
    del executable
    gc.collect()
    assert not host_functions._repeated


def test_an_access_policy_that_fails_leaves_the_stream_as_it_was(device, stream, calls):
    x = cuda.zeros(10)
    calls.failing = "cuStreamSetAttribute"
    with pytest.raises(cuda.OutOfMemoryError), stream.access_policy(x):
        raise AssertionError("the block must not run")


def test_threads_capture_their_own_streams_at_once(device, module):
    results, failures = [None] * 4, []
    barrier = threading.Barrier(4)

    def work(i):
        try:
            with cuda.Device(0), cuda.Stream(non_blocking=True) as own:
                x, y = cuda.full(10, i, np.float32, stream=own), cuda.zeros(10, np.float32, stream=own)
                own.synchronize()
                barrier.wait()
                with own.capture() as graph:
                    for _ in range(20):
                        module["saxpy"][1, 32, 0, own](1.0, x, y, 10)
                graph.instantiate().launch(own)
                results[i] = y.to_host(stream=own).tolist()
                x.close()
                y.close()
        except BaseException as error:  # whatever a thread raised fails the test below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert results == [[20.0 * i] * 10 for i in range(4)]


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
    result = python(NULL_STORE, check=False, CUDART_PY_DEBUG=debug, CUDART_PY_DRIVER=seam._selected)
    assert "IllegalAddressError" in result.stderr
    if debug:
        assert "It was a graph of 1 node on stream" in result.stderr
        assert "launched at <string>:9" in result.stderr


def test_exit_with_everything_alive_prints_nothing(python):
    program = """
import numpy as np, cudart_py as cuda
device = cuda.Device(0).__enter__()
stream = cuda.Stream(non_blocking=True)
x = cuda.zeros(4, np.float32, stream=stream)
texture = cuda.Texture(cuda.empty_pitched((4, 4), np.float32))
with stream.capture() as graph:
    cuda.memset(x, 1, stream=stream)
    stream.add_callback(lambda: None)
executable = graph.instantiate()
executable.launch(stream)
"""
    result = python(program, CUDART_PY_DRIVER=seam._selected)
    assert (result.stdout, result.stderr) == ("", "")
