"""Nothing leaks, nothing is destroyed twice, exit is silent; threads and forks."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from collections import Counter

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.driver import seam
from cudart_py.memory.allocation import PitchedAllocation

COUNT = 300
MANY = pytest.param(10_000, marks=pytest.mark.exhaustive)

SMALL = 'extern "C" __global__ void k() {}'


def capture(module):
    """Return a graph of a launch on an array that nothing else holds."""
    x = cuda.empty(4, np.float32)
    with cuda.Stream(non_blocking=True) as stream, stream.capture() as graph:
        module["saxpy"][1, 4, 0, stream](1.0, x, x, 4)
    return graph


MAKERS = {
    "stream": (lambda module: cuda.Stream(), "cuStreamCreateWithPriority", "cuStreamDestroy"),
    "event": (lambda module: cuda.Event(), "cuEventCreate", "cuEventDestroy"),
    "array": (lambda module: cuda.empty(100), "cuMemAllocAsync", "cuMemFreeAsync"),
    "view": (lambda module: cuda.empty(100)[3:], "cuMemAllocAsync", "cuMemFreeAsync"),
    "pitched": (lambda module: cuda.empty_pitched((3, 3)), "cuMemAllocPitch", "cuMemFree"),
    "pinned": (lambda module: cuda.pinned_empty(100), "cuMemHostAlloc", "cuMemFreeHost"),
    "bound launch": (
        lambda module: module["saxpy"][1, 4].bind(1.0, cuda.empty(4, np.float32), None, 4),
        "cuMemAllocAsync",
        "cuMemFreeAsync",
    ),
    "registered": (lambda module: cuda.register_host(np.empty(100)), "cuMemHostRegister", "cuMemHostUnregister"),
    "managed": (lambda module: cuda.managed_empty(100), "cuMemAllocManaged", "cuMemFree"),
    "pool": (lambda module: cuda.MemoryPool(), "cuMemPoolCreate", "cuMemPoolDestroy"),
    "array of a pool": (lambda module: cuda.empty(9, pool=cuda.MemoryPool()), "cuMemPoolCreate", "cuMemPoolDestroy"),
    "texture": (
        lambda module: cuda.Texture(cuda.empty_pitched((8, 8), np.float32)),
        "cuTexObjectCreate",
        "cuTexObjectDestroy",
    ),
    "CUDA array": (lambda module: cuda.CudaArray((8, 8), np.float32), "cuArray3DCreate", "cuArrayDestroy"),
    "surface": (
        lambda module: cuda.Surface(cuda.CudaArray((8, 8), np.float32, surface=True)),
        "cuSurfObjectCreate",
        "cuSurfObjectDestroy",
    ),
    "graph": (lambda module: capture(module), "cuStreamEndCapture", "cuGraphDestroy"),
    "executable graph": (lambda module: capture(module).instantiate(), "cuGraphInstantiate", "cuGraphExecDestroy"),
    "module": (lambda module: cuda.compile(SMALL)["k"], "cuModuleLoadData", "cuModuleUnload"),
    "borrowed array": (
        lambda module: cuda.DeviceArray.borrow((owner := cuda.empty(9)).pointer, 9, "f8", owner=owner),
        "cuMemAllocAsync",
        "cuMemFreeAsync",
    ),
    "borrowed stream": (
        lambda module: cuda.Stream.borrow((owner := cuda.Stream()).handle, owner.device),
        "cuStreamCreateWithPriority",
        "cuStreamDestroy",
    ),
}
# What a real driver or the simulator takes long to make.
FEWER = {"pinned": 1000, "registered": 1000, "managed": 1000, "pool": 1000, "array of a pool": 1000, "graph": 500}
FEWER |= {"CUDA array": 1000, "surface": 1000}
FEWER |= {"executable graph": 500, "module": 500}


@pytest.fixture
def calls(monkeypatch):
    """Count the driver calls that succeed by name, under both faces of the seam."""
    counted = Counter()

    def counting(name, function, status_of):
        def call(*arguments):
            result = function(*arguments)
            counted[name] += not status_of(result)
            return result

        return call

    # api first, whose functions bind those of raw, so that nothing is counted twice. Those of api raise.
    statuses = {seam.api: lambda result: 0, seam.raw: lambda result: result[0] if isinstance(result, tuple) else result}
    for face, status_of in statuses.items():
        for name in {name for _, *names in MAKERS.values() for name in names}:
            monkeypatch.setitem(vars(face), name, counting(name, getattr(face, name), status_of))
    return counted


@pytest.mark.xdist_group("free memory")
@pytest.mark.unsanitized("it asks how much memory is free, and the tool takes some for itself")
@pytest.mark.parametrize("count", [COUNT, MANY])
@pytest.mark.parametrize("kind", MAKERS)
def test_many_of_a_kind_leave_nothing_behind(device, module, calls, kind, count):
    make, create, destroy = MAKERS[kind]
    make(module)
    gc.collect()
    device.synchronize()
    calls.clear()
    count = min(count, FEWER.get(kind, count))
    before = device.memory_info.free
    for _ in range(count):
        make(module)
    gc.collect()
    device.synchronize()
    assert calls[create] == calls[destroy] == count
    assert device.memory_info.free >= before - (4 << 20)


@pytest.mark.xdist_group("free memory")
def test_modules_come_and_go(device):
    before = device.memory_info.free
    for _ in range(200):
        cuda.compile('extern "C" __device__ int big[100000]; extern "C" __global__ void k() { big[0] = 1; }')["k"]
    gc.collect()
    device.synchronize()
    assert device.memory_info.free >= before - (16 << 20)


@pytest.mark.xdist_group("free memory")
def test_dropping_an_array_after_a_failed_allocation_changes_nothing(device):
    before = device.memory_info.free
    for _ in range(100):
        with pytest.raises(cuda.OutOfMemoryError):
            cuda.empty_pitched((1 << 21, 1 << 21))
    assert device.memory_info.free >= before - (4 << 20)


EVERYTHING_ALIVE = """
import numpy as np, cudart_py as cuda
device = cuda.Device(0).__enter__()
stream, event = cuda.Stream(), cuda.Event()
array, view = cuda.zeros(100, np.float32, stream=stream), cuda.zeros(10)[2:]
pitched, pinned = cuda.empty_pitched((3, 3)), cuda.pinned_empty(5, mapped=True)
module = cuda.compile('extern "C" __global__ void k(float *p) { *p = 1; }')
bound = module["k"][1, 1, 0, stream].bind(array)
bound(); event.record(stream); event.synchronize()
class Cycle: pass
cycle = Cycle(); cycle.me = cycle; cycle.array = cuda.zeros(3)
"""


def test_exit_with_everything_alive_prints_nothing(python, device):
    result = python(EVERYTHING_ALIVE, CUDART_PY_DRIVER=seam._selected)
    assert (result.stdout, result.stderr) == ("", "")


def test_eight_threads_on_their_own_streams_give_right_results(device, module, rng):
    saxpy = module["saxpy"]
    hosts = [rng.random(5003).astype(np.float32) for _ in range(8)]
    results, failures = [None] * 8, []

    def work(i):
        try:
            with cuda.Device(0), cuda.Stream(non_blocking=True) as stream:
                for _ in range(10):
                    x = cuda.to_device(hosts[i], stream=stream)
                    y = cuda.zeros(5003, np.float32, stream=stream)
                    for _ in range(4):
                        saxpy[20, 256, 0, stream](float(i), x, y, 5003)
                    results[i] = y.to_host(stream=stream)
                    x.close()
                    y.close()
        except BaseException as error:  # whatever a thread raised fails the test below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for i, (host, result) in enumerate(zip(hosts, results, strict=True)):
        np.testing.assert_allclose(result, 4 * i * host, rtol=1e-5)


def test_an_array_freed_by_another_thread_is_freed(device):
    arrays = [cuda.zeros(1000) for _ in range(10)]
    thread = threading.Thread(target=arrays.clear)
    thread.start()
    thread.join()
    assert cuda.zeros(1000).to_host().sum() == 0


def test_a_forked_child_that_touches_cuda_gets_a_clear_error(python):
    program = (
        "import os, warnings; warnings.simplefilter('ignore')\n"  # Python warns of forks beside threads
        "import cudart_py as cuda; x = cuda.zeros(3)\n"
        "pid = os.fork()\n"
        "if not pid:\n"
        "    for use in (lambda: cuda.zeros(3), x.to_host, cuda.devices, cuda.Event):\n"
        "        try: use()\n"
        "        except cuda.InvalidContextError as e: assert 'spawn' in str(e)\n"
        "        else: os._exit(1)\n"
        "    del x\n"
        "    os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), x.to_host().sum())\n"
    )
    assert python(program, CUDART_PY_DRIVER=seam._selected).stdout == "7 0.0\n"


def test_a_fork_before_any_cuda_call_is_fine(python):
    program = (
        "import os, cudart_py as cuda\n"
        "pid = os.fork()\n"
        "if not pid: os._exit(int(cuda.zeros(3).to_host().sum()) + 5)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    assert python(program, CUDART_PY_DRIVER=seam._selected).stdout == "5\n"


def test_handles_are_closed_once_by_threads_that_race(device, calls):
    for _ in range(50):
        event = cuda.Event()
        calls.clear()
        threads = [threading.Thread(target=event.close) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert calls["cuEventDestroy"] == 1


def test_a_stream_whose_destruction_reports_an_error_is_closed_all_the_same(device, monkeypatch):
    stream = cuda.Stream()
    array = cuda.empty(4, stream=stream)

    def failing(handle):
        raise cuda.CudaError("planted", call="cuStreamDestroy")

    monkeypatch.setitem(vars(seam.api), "cuStreamDestroy", failing)
    with pytest.raises(cuda.CudaError, match="planted"):
        stream.close()
    for use in (lambda: cuda.memset(array, 0, stream=stream), lambda: cuda.empty(3, stream=stream), stream.synchronize):
        with pytest.raises(ValueError, match="closed"):
            use()


def test_an_array_freed_by_another_thread_than_its_per_thread_stream_waits_for_that(device, monkeypatch):
    """To the other thread the handle would be its own stream, which knows nothing of the work."""
    array = cuda.zeros(1000, stream=cuda.per_thread_default)
    waited = []
    synchronize = seam.api.cuCtxSynchronize
    monkeypatch.setitem(vars(seam.api), "cuCtxSynchronize", lambda: (waited.append(1), synchronize())[1])
    thread = threading.Thread(target=array.close)
    thread.start()
    thread.join()
    assert waited == [1]
    assert array.closed


def test_the_variables_of_a_closed_module_are_closed(device):
    module = cuda.compile("__device__ float kept[8]; __global__ void k(float *x) { *x = kept[0]; }")
    kept, part = module.symbol("kept"), module.symbol("kept")[2:]
    module.close()
    assert kept.closed
    assert part.closed


COPIED = {
    "array": lambda module: cuda.empty(5),
    "event": lambda module: cuda.Event(),
    "graph": capture,
    "module": lambda module: module,
    "pinned memory": lambda module: cuda.register_host(np.zeros(8)),
    "pool": lambda module: cuda.MemoryPool(),
    "stream": lambda module: cuda.Stream(),
    "view": lambda module: cuda.empty(5)[1:],
}


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
@pytest.mark.parametrize("kind", COPIED)
def test_what_is_given_back_once_cannot_be_copied(device, module, kind, how):
    thing = COPIED[kind](module)
    with pytest.raises(TypeError, match=f"this {type(thing).__name__} cannot be copied or pickled"):
        how(thing)


def test_the_default_streams_are_copied_as_themselves():
    for stream in (cuda.legacy_default, cuda.per_thread_default):
        assert copy.copy(stream) is copy.deepcopy(stream) is pickle.loads(pickle.dumps(stream)) is stream


def test_an_array_is_freed_once_by_threads_that_race(device, calls):
    def close():
        with device:  # with no device current a driver may have to be asked twice
            array.close()

    stream = cuda.Stream()
    for _ in range(50):
        array = cuda.empty(100, stream=stream)
        calls.clear()
        threads = [threading.Thread(target=close) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert calls["cuMemFreeAsync"] == 1


def test_an_array_counts_as_closed_before_others_check_again(device, module, monkeypatch):
    """Who asks in between would not ask again, and launch with memory that is gone."""
    rows = cuda.empty_pitched((4, 8), np.float32)
    cuda.memset(rows, 0)
    bound = module["saxpy"][1, 1].bind(1.0, rows, rows, 1)
    bound()
    release = PitchedAllocation._release

    def releasing(self, value):
        with pytest.raises(ValueError, match="array is closed"):
            bound()
        release(self, value)

    monkeypatch.setattr(PitchedAllocation, "_release", releasing)
    rows.close()
    with pytest.raises(ValueError, match="array is closed"):
        bound()


def test_an_array_keeps_the_pool_it_came_from_whatever_the_device_does_meanwhile(device, monkeypatch):
    pool = cuda.MemoryPool()
    device.memory_pool = pool
    memory, stream = pool.memory, cuda.Stream()
    allocate = seam.raw.cuMemAllocAsync

    def changing(*arguments):
        result = allocate(*arguments)
        device.memory_pool = None
        pool.close()
        return result

    monkeypatch.setitem(vars(seam.raw), "cuMemAllocAsync", changing)
    array = cuda.empty(100, stream=stream)
    assert not memory.closed
    array.close()
    stream.synchronize()
