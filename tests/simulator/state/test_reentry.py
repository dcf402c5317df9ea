"""Driver calls in the middle of another driver call: by finalizers, and by the stream that kernels print to.

An error in the work is reported by a later call of the program, even if a finalizer's call has waited for the work.
"""

import gc
import io
import re
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.calls.launches import launches
from cudart_py.simulator.state import memory
from cudart_py.simulator.state.progress import progress

from .reentry import LANES, SOURCE, live, stepped

pytestmark = pytest.mark.needs("in_process")


@pytest.fixture
def in_the_middle(no_garbage, monkeypatch):
    """Return a function that lets the garbage collector call another one in the next launch, and lists the result."""
    threshold, hooks = gc.get_threshold(), []
    run = launches.ptx.run

    def run_and_collect(*arguments: Any, **options: Any) -> None:
        run(*arguments, **options)
        gc.collect(0)  # in case too few objects were created for the collector to run by itself

    monkeypatch.setattr(launches.ptx, "run", run_and_collect)

    def plant(function: Callable[[], object]) -> list[Any]:
        results: list[Any] = []

        def hook(phase: str, information: Any) -> None:
            frame = sys._getframe(1)
            while frame is not None and frame.f_code.co_qualname != "KernelLaunch.run":
                frame = frame.f_back
            if frame is not None and not results:
                results.append(None)
                results[0] = function()
                gc.disable()

        hooks.append(hook)
        gc.callbacks.append(hook)
        gc.set_threshold(1, 1000, 1000)  # only the youngest generation, because a full collection takes long
        gc.enable()
        return results

    yield plant
    gc.set_threshold(*threshold)
    for hook in hooks:
        gc.callbacks.remove(hook)


def test_each_thread_of_a_launch_is_in_the_middle_of_its_call(module, monkeypatch):
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    from cudart_py.simulator.ptx.native import engine
    from cudart_py.simulator.ptx.native.launching.launch import NativeLaunch

    monkeypatch.setattr(engine, "_WORTH_THREAD", 1)
    for name, value in {"ENGINE": "native", "THREADS": "3"}.items():
        monkeypatch.setenv(f"CUDART_PY_SIMULATOR_{name}", value)
    idle, x = cuda.full(4, 7, np.int32), cuda.zeros(LANES, np.uint32)
    cuda.Device(0).synchronize()
    go_on, all_there, answers = NativeLaunch.go_on, threading.Barrier(3), {}

    def ask(launch: Any) -> Any:
        thread = threading.get_ident()
        if thread not in answers:
            answers[thread] = ""
            all_there.wait(60)
            if progress.here:  # otherwise the call would wait for the launch, which waits for this thread
                answers[thread] = refused(idle.to_host)
        return go_on(launch)

    monkeypatch.setattr(NativeLaunch, "go_on", ask)
    with cuda.sanitizer("off"):
        module["step"][300, LANES](x, 1)
        cuda.Device(0).synchronize()
    assert len(answers) == 3
    assert all("in the middle of the launch of kernel step" in text for text in answers.values())
    assert not progress.workers


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(cuda.CudaError) as caught:
        call()
    return str(caught.value)


def test_calls_in_the_middle_of_a_launch_are_refused_and_change_nothing(module, engine, in_the_middle):
    idle, x, stream = cuda.full(4, 7, np.int32), cuda.zeros(LANES, np.uint32), cuda.Stream()
    launch = module["step"][1, LANES].bind(x, 1)
    with stream.capture() as captured:
        module["step"][1, LANES, 0, stream](x, 5)
    graph, address = captured.instantiate(), int(x.pointer)
    calls: dict[str, Callable[[], object]] = {
        "to_host": idle.to_host,
        "copy": lambda: cuda.memcpy(x[:4].view(np.int32), idle),
        "fill": lambda: cuda.memset(x, 1),
        "allocate": lambda: cuda.empty(3),
        "launch": launch,
        "synchronize": cuda.Device(0).synchronize,
        "query": lambda: stream.done,
        "stream": cuda.Stream,
        "record": lambda: stream.record(cuda.Event()),
        "module": lambda: cuda.compile(SOURCE)["step"],
        "graph": lambda: graph.launch(stream),
        "page-locked": lambda: cuda.pinned_empty(4),
        "reset": cuda.reset,
        "memory_info": lambda: cuda.Device(0).memory_info,
        "raw": lambda: cuda.check(cuda.raw.cuMemsetD8(address, 1, 4)),
    }
    free = cuda.Device(0).memory_info.free
    results = in_the_middle(lambda: {name: refused(call) for name, call in calls.items()})
    module["step"][1, LANES](x, 500)
    cuda.Device(0).synchronize()
    for name, text in results[0].items():
        assert re.search("in the middle of the launch of kernel step.*(__del__|finalizer).*set a flag", text), name
    np.testing.assert_array_equal(x.to_host(), stepped(np.zeros(LANES), 500))
    assert idle.to_host().tolist() == [7] * 4
    assert cuda.Device(0).memory_info.free == free


@pytest.mark.parametrize("way", ["del", "close"])
def test_what_is_dropped_in_the_middle_of_a_launch_is_given_back_after_it(module, in_the_middle, way):
    x, device, own = cuda.zeros(LANES, np.uint32), cuda.Device(0), cuda.MemoryPool()
    for _ in range(2):  # the first round leaves memory in the pool
        gc.collect(1)  # also frees objects of the first round, which might otherwise be freed at any time
        device.synchronize()
        before = live()
        things: list[Any] = [cuda.zeros(1000), cuda.Stream(), cuda.Event(), cuda.MemoryPool(), cuda.compile(SOURCE)]
        things += [
            cuda.textures.Texture(cuda.zeros(8, np.float32)),
            *(cuda.empty(9, np.uint8, pool=own) for _ in range(400)),
        ]
        things += [cuda.textures.CudaArray((8, 8), np.float32), cuda.register_host(np.zeros(9))]
        with cuda.Stream() as stream, stream.capture() as graph:
            module["step"][1, LANES, 0, stream](x, 1)
        things += [graph, graph.instantiate()]
        things += [cuda.pinned_empty(1000), cuda.managed_empty(9)] if way == "del" else []
        drop = things.clear if way == "del" else lambda things=things: [thing.close() for thing in things][:0]
        results = in_the_middle(drop)
        module["step"][1, LANES](x, 500)
        device.synchronize()
        assert not results[0]
        assert own.used == 0
        things.clear()
        device.synchronize()
    assert live() == before
    np.testing.assert_array_equal(x.to_host(), stepped(np.zeros(LANES), 1000))


class Dropping:
    """A handle that drops an array whenever it is converted to an integer."""

    def __init__(self, handle: int, arrays: list[Any]) -> None:
        self._handle = handle
        self._arrays = arrays

    def __int__(self) -> int:
        self._arrays[-1:] = []
        return self._handle


def test_things_may_be_dropped_while_others_are_freed_in_the_middle_of_a_launch(module, in_the_middle):
    arrays = [cuda.zeros(1) for _ in range(30)]
    x = cuda.zeros(LANES, np.uint32)
    handles = [cuda.check(cuda.raw.cuEventCreate(0)) for _ in range(5)]

    def free() -> list[Any]:
        once = [cuda.raw.cuEventDestroy(Dropping(int(handle), arrays))[0] for handle in handles]
        return [*once, cuda.raw.cuEventDestroy(int(handles[0]))[0]]

    results = in_the_middle(free)
    module["step"][1, LANES](x, 500)
    cuda.Device(0).synchronize()
    assert [status.name for status in results[0]] == ["CUDA_SUCCESS"] * 5 + ["CUDA_ERROR_INVALID_VALUE"]
    assert cuda.raw.cuEventDestroy(handles[0])[0].name != "CUDA_SUCCESS"


def test_registered_memory_stays_till_the_kernel_that_uses_it_has_ended(module, engine, in_the_middle):
    array = np.zeros(LANES, np.uint32)
    address, registered = array.ctypes.data, [cuda.register_host(array)]

    def drop() -> bool:
        registered.clear()
        return memory.known.find(address) is not None

    results = in_the_middle(drop)
    module["step"][1, LANES](array, 500)
    cuda.Device(0).synchronize()
    assert results == [True]
    assert memory.live.find(address) is memory.known.find(address) is None
    np.testing.assert_array_equal(array, stepped(np.zeros(LANES), 500))


def test_standard_output_may_call_the_driver_from_any_thread_or_wait(module, engine, monkeypatch):
    idle, x, seen, behind = cuda.full(4, 7, np.int32), cuda.zeros(LANES, np.uint32), [], cuda.Stream()

    def work() -> None:
        module["step"][1, LANES](x, 3)
        thread = threading.Thread(target=lambda: seen.append(idle.to_host().tolist()))
        thread.start()
        thread.join(5)
        behind.synchronize()
        seen.append(x.to_host())

    output = io.StringIO()
    monkeypatch.setattr(output, "write", lambda text: (work(), io.StringIO.write(output, text)))
    monkeypatch.setattr(sys, "stdout", output)
    for value in range(3):
        module["speak"][1, 1](value)
    module["speak"][1, 1, 0, behind](3)
    cuda.Device(0).synchronize()
    assert sorted(output.getvalue().splitlines()) == [f"spoken {value}" for value in range(4)]
    assert seen[::2] == [[7] * 4] * 4
    for count, found in enumerate(seen[1::2], 1):
        np.testing.assert_array_equal(found, stepped(np.zeros(LANES), 3 * count))


KERNELS = """
extern "C" __global__ void fetch(cudaTextureObject_t t, float* out) { *out = tex2D<float>(t, 0, 0); }
extern "C" __global__ void add_one(const float* x, float* out) { *out = *x + 1; }
"""


@pytest.mark.needs("profile")
@pytest.mark.parametrize(
    ("name", "mode", "caught"),
    [
        ("fetch", "off", (pytest.raises, cuda.errors.NotSupportedError, "tex2D|dimension")),
        ("add_one", "error", (pytest.raises, cuda.errors.SimulatorWarning, "uninitialised")),
        ("add_one", "warn", (pytest.warns, cuda.errors.SimulatorWarning, "uninitialised")),
    ],
)
def test_an_error_that_ends_no_context_and_a_finding(device, name, mode, caught):
    """The error occurs because `tex2D` cannot read a one-dimensional texture."""
    texture, out = cuda.textures.Texture(cuda.zeros(8, np.float32)), cuda.empty(1, np.float32)
    with cuda.sanitizer(mode):
        given = texture if name == "fetch" else cuda.empty(1, np.float32)
        cuda.compile(KERNELS)[name][1, 1](given, out)
        del texture, given  # the finalizer waits for the kernel
        catch, kind, words = caught
        with catch(kind, match=words):
            device.synchronize()
        device.synchronize()


LOST = """
import cudart_py as cuda
kernels = cuda.compile('template <class T> __global__ void beyond(T* x) { x[1 << 20] = 1; }', names=["beyond<double>"])
unused, pinned, x = cuda.compile('extern "C" __global__ void nothing() {}'), cuda.pinned_empty(4), cuda.zeros(1)
kernels["beyond<double>"][1, 1](x)
del unused, pinned

def error():
    try:
        x.to_host()
    except cuda.CudaError as error:
        return str(error)

print(error(), "----", error(), "----", sep="\\n")
with cuda.Device(1):
    cuda.zeros(1).to_host()
    print(error())
cuda.reset()
print(cuda.driver.backend.in_use().lost_by())
"""


@pytest.mark.needs("profile")
def test_a_fault_is_the_next_errors_and_later_errors_of_its_context_say_what_lost_it(python):
    printed = python(LOST, CUDART_PY_DRIVER="simulator", CUDART_PY_SIMULATOR_DEVICES="2").stdout
    first, *later = printed.split("----\n")
    assert "kernel beyond<double> at kernel.cu:1: a global write of 8 bytes" in first
    assert "earlier" not in first
    assert len(later) == 2
    for text in later:
        assert "lost by an earlier error (kernel beyond<double> at kernel.cu:1: a global write" in text
        assert "call cuda.reset()." in text
    assert later[1].splitlines()[-1] == "None"
