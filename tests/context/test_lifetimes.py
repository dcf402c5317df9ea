"""Lifetimes: nothing leaks whatever call fails, nothing is destroyed twice, exit is silent; threads and forks."""

import contextlib
import copy
import gc
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import errors
from cudart_py.context.lifetimes import Handle
from cudart_py.driver import backend, calls
from cudart_py.memory import staging
from cudart_py.memory.allocation import PitchedAllocation

COUNT = 200
SIMULATED = "in_process" in cuda.capabilities()
MANY = pytest.param(
    10_000,
    marks=[
        pytest.mark.exhaustive,
        pytest.mark.skipif(SIMULATED, reason="the simulator's free memory is exact: one leak in 200 objects shows"),
    ],
)
PAIRS = {
    "cuMemPoolDestroy": ("cuMemPoolCreate",),
    "cuMemFreeAsync": ("cuMemAllocAsync", "cuMemAllocFromPoolAsync"),
    "cuMemFree": ("cuMemAllocManaged", "cuMemAllocPitch"),
    "cuMemFreeHost": ("cuMemHostAlloc",),
    "cuMemHostUnregister": ("cuMemHostRegister",),
    "cuEventDestroy": ("cuEventCreate",),
    "cuStreamDestroy": ("cuStreamCreateWithPriority",),
    "cuModuleUnload": ("cuModuleLoadData",),
    "cuArrayDestroy": ("cuArray3DCreate",),
    "cuTexObjectDestroy": ("cuTexObjectCreate",),
    "cuSurfObjectDestroy": ("cuSurfObjectCreate",),
    "cuGraphDestroy": ("cuStreamEndCapture",),
    "cuGraphExecDestroy": ("cuGraphInstantiate",),
}
# Calls that release or restore something. They never fail here, because nothing could be guaranteed if they did.
ENDINGS = {*PAIRS, "cuCtxPopCurrent", "cuCtxSetCurrent", "cuThreadExchangeStreamCaptureMode"}
CODE = """
__device__ float kept[100000];
extern __shared__ float shared[];
extern "C" __global__ void keep(const float *x) { shared[0] = kept[threadIdx.x] = *x; }
"""


def capture(module):
    """Return a graph of work on an array that nothing but the graph keeps alive."""
    x = cuda.empty(4, np.float32)
    with cuda.Stream(non_blocking=True) as stream, stream.capture() as graph:
        cuda.memset(x, 1, stream=stream)
        module["saxpy"][1, 4, 0, stream](1.0, x, x, 4)
        stream.launch_host_function(int)
    return graph


def instantiate(module):
    executable = capture(module).instantiate()
    executable.update(capture(module))
    return executable


def stage(module):
    cuda.release_staging()
    try:
        cuda.to_device(np.zeros(20_000, np.uint8)).close()
    finally:
        cuda.release_staging()


def read_surface(module):
    array = cuda.textures.CudaArray((4, 8), np.float32, surface=True)
    with cuda.textures.Surface(array), cuda.textures.Texture(array):
        return array.copy_from(np.zeros((4, 8), np.float32)).to_host()


def set_policy(module):
    words = cuda.zeros(1000)
    with cuda.Stream() as stream, stream.access_policy(words, hit_ratio=0.5):
        pass


def launch(module):
    # More dynamic shared memory than a kernel may use without opting in.
    cuda.compile(CODE)["keep"][1, 8, 60_000].bind(cuda.zeros(8, np.float32))()


MAKERS = {
    "array": lambda module: cuda.empty(100),
    "view": lambda module: cuda.zeros(100)[3:],
    "full": lambda module: cuda.full(100, 3.5),
    "to_device": lambda module: cuda.to_device(np.zeros(100)),
    "pitched": lambda module: cuda.empty_pitched((3, 3)),
    "pinned": lambda module: cuda.pinned_empty(100, mapped=True),
    "registered": lambda module: cuda.register_host(np.empty(100)),
    "managed": lambda module: cuda.managed_empty(100),
    "pool": lambda module: cuda.MemoryPool(),
    "array of a pool": lambda module: cuda.empty(9, pool=cuda.MemoryPool()),
    "borrowed array": lambda module: cuda.DeviceArray.borrow((owner := cuda.empty(9)).pointer, 9, "f8", owner=owner),
    "CUDA array": lambda module: cuda.textures.CudaArray((8, 8), np.float32),
    "surface": read_surface,
    "texture": lambda module: cuda.textures.Texture(cuda.empty_pitched((8, 8), np.float32)),
    "staged copy": stage,
    "peer copy": lambda module: cuda.memcpy_peer(cuda.zeros(10), cuda.zeros(10)),
    "event": lambda module: cuda.Event(),
    "stream": lambda module: cuda.Stream(),
    "borrowed stream": lambda module: cuda.Stream.borrow((owner := cuda.Stream()).handle, owner.device),
    "access policy": set_policy,
    "graph": capture,
    "executable graph": instantiate,
    "module": lambda module: cuda.compile(CODE)["keep"].attributes,
    "symbol": lambda module: cuda.compile(CODE).symbol("kept", np.float32),
    "bound launch": lambda module: module["saxpy"][1, 4].bind(1.0, cuda.empty(4, np.float32), None, 4),
    "launch": launch,
}
FRAMES = pytest.mark.unsanitized(
    "the tool keeps the Python frame of the last launch, and with it all that it refers to"
)
LAUNCHING = ("launch", "graph", "executable graph")
KINDS = [pytest.param(kind, marks=FRAMES) if kind in LAUNCHING else kind for kind in MAKERS]
# Objects that a real driver or the simulator is slow to create.
FEWER = dict.fromkeys(("pinned", "registered", "managed", "pool", "array of a pool", "CUDA array", "surface"), 1000)
FEWER |= dict.fromkeys(("full", "graph", "executable graph"), 500) | {"staged copy": 20}
# Each leak of these would take at least 400 kB, so that few suffice.
FEWER |= dict.fromkeys(("module", "symbol", "launch"), 60)


@pytest.fixture
def unbalanced(driver_calls, monkeypatch):
    """Return a function that waits for all work, and counts per releasing call what leaked or was released twice."""
    monkeypatch.setattr(staging, "THRESHOLD", 8 << 10)
    monkeypatch.setattr(staging, "_LEAST_PROCESSORS", 1)

    def differences():
        gc.collect()
        cuda.Device(0).synchronize()  # after this, closed pools are destroyed
        made = {end: sum(driver_calls[make] for make in makes) for end, makes in PAIRS.items()}
        return {end: number - driver_calls[end] for end, number in made.items() if number != driver_calls[end]}

    gc.collect()
    gc.freeze()  # so that collections examine only the objects that this test creates
    return differences


@pytest.mark.xdist_group("free memory")
@pytest.mark.unsanitized("it asks how much memory is free, and the tool takes some for itself")
@pytest.mark.parametrize("count", [COUNT, MANY])
@pytest.mark.parametrize("kind", MAKERS)
def test_many_of_a_kind_leave_nothing_behind(device, module, driver_calls, unbalanced, kind, count):
    make = MAKERS[kind]
    make(module)
    unbalanced()
    driver_calls.clear()
    count = min(count, FEWER.get(kind, count))
    before = device.memory_info.free
    for _ in range(count):
        make(module)
    assert unbalanced() == {}
    assert sum(driver_calls[end] for end in PAIRS) >= count
    # A GPU's driver keeps some memory, above all of what it loaded modules into.
    kept = 0 if SIMULATED else (16 if "cuModuleLoadData" in driver_calls else 4) << 20
    assert device.memory_info.free >= before - kept


@pytest.mark.parametrize("kind", KINDS)
def test_whichever_call_fails_nothing_is_left_behind(device, module, driver_calls, unbalanced, kind):
    make, asked = MAKERS[kind], []
    make(module)
    unbalanced()
    driver_calls.clear()
    fail_at = 0

    def fails(name):
        if name not in ENDINGS:
            asked.append(name)
        return len(asked) == fail_at and name not in ENDINGS

    driver_calls.fails = fails
    make(module)
    steps = len(asked)
    assert steps
    for at in range(1, steps + 1):
        asked.clear()
        fail_at = at
        with contextlib.suppress(errors.CudaError):  # planted; some steps succeed without the failing call
            make(module)
        fail_at = 0
        assert unbalanced() == {}, f"call {at} of {steps}"
    make(module)
    assert unbalanced() == {}


EVERYTHING_ALIVE = """
import numpy as np, cudart_py as cuda
from cudart_py.memory import staging
staging._LEAST_PROCESSORS = 1
device = cuda.Device(0).__enter__()
stream, event = cuda.Stream(non_blocking=True), cuda.Event()
array, view = cuda.zeros(100, np.float32, stream=stream), cuda.zeros(10)[2:]
pitched, pinned = cuda.empty_pitched((4, 4), np.float32), cuda.pinned_empty(5, mapped=True)
managed, plain = cuda.managed_empty(10), np.zeros(1000)
registered, pool = cuda.register_host(plain), cuda.MemoryPool()
pooled = cuda.empty(10, pool=pool)
cuda.MemoryPool().make_current()
other = cuda.zeros(5)
large = cuda.to_device(np.zeros(2_000_000))
assert staging._rings
borrowed, texture = cuda.Stream.borrow(cuda.Stream()), cuda.textures.Texture(pitched)
module = cuda.compile('extern "C" __global__ void k(float *p) { *p = 1; }')
bound = module["k"][1, 1, 0, stream].bind(array)
bound(); event.record(stream); event.synchronize()
with stream.capture() as graph:
    cuda.memset(array, 1, stream=stream)
    stream.launch_host_function(lambda: None)
executable = graph.instantiate()
executable.launch(stream)
class Cycle: pass
cycle = Cycle(); cycle.me = cycle; cycle.array = cuda.zeros(3)
"""


def test_exit_with_everything_alive_prints_nothing(python, device):
    result = python(EVERYTHING_ALIVE, CUDART_PY_DRIVER=backend._selected)
    assert (result.stdout, result.stderr) == ("", "")


def test_threads_on_their_own_streams_give_right_results(device, module, rng):
    hosts = [rng.random(5003).astype(np.float32) for _ in range(8)]
    barrier = threading.Barrier(8, timeout=60)

    def work(i):
        with cuda.Device(0), cuda.Stream(non_blocking=True) as stream:
            saxpy = module["saxpy"][20, 256, 0, stream]
            for _ in range(10):
                with (
                    cuda.to_device(hosts[i], stream=stream) as x,
                    cuda.zeros(5003, np.float32, stream=stream) as y,
                ):
                    for _ in range(4):
                        saxpy(float(i), x, y, 5003)
                    stream.synchronize()
                    barrier.wait()
                    with stream.capture() as graph:  # all threads capture at once
                        saxpy(float(i), x, y, 5003)
                    barrier.wait()
                    graph.instantiate().launch(stream)
                    result = y.to_host(stream=stream)
        return result

    with ThreadPoolExecutor(8) as threads:
        for i, (host, result) in enumerate(zip(hosts, threads.map(work, range(8)), strict=True)):
            np.testing.assert_allclose(result, 5 * i * host, rtol=1e-5)


class Counted(Handle):
    """A handle that records each release of its value."""

    def __init__(self, given_back):
        self._value, self._owned, self._given_back = 1, True, given_back

    def _release(self, value):
        self._given_back.append(value)


def test_of_several_threads_that_close_a_handle_at_once_one_gives_it_back():
    """Each thread waits for the others before every line of `Handle.close`, the worst possible interleaving."""
    together, given_back = threading.Barrier(4), []

    def close(handle):
        def before_a_line(frame, event, argument):
            if event == "line":
                with contextlib.suppress(threading.BrokenBarrierError):  # the others have returned
                    together.wait(0.2)
            return before_a_line if frame.f_code is Handle.close.__code__ else None

        sys.settrace(before_a_line)
        try:
            handle.close()
        finally:
            sys.settrace(None)

    handle = Counted(given_back)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(close, [handle] * 4))
    assert handle.closed
    assert given_back == [1]


def test_a_forked_child_that_touches_cuda_gets_a_clear_error_unless_no_call_came_before(python):
    program = (
        "import os, warnings; warnings.simplefilter('ignore')\n"  # Python warns about a fork in a process with threads
        "import cudart_py as cuda\n"
        "pid = os.fork()\n"
        "if not pid: os._exit(int(cuda.zeros(3).to_host().sum()) + 5)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        "x = cuda.zeros(3)\n"
        "pid = os.fork()\n"
        "if not pid:\n"
        "    for use in (lambda: cuda.zeros(3), x.to_host, cuda.devices, cuda.Event):\n"
        "        try: use()\n"
        "        except cuda.errors.InvalidContextError as e: assert 'spawn' in str(e)\n"
        "        else: os._exit(1)\n"
        "    del x\n"
        "    os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), x.to_host().sum())\n"
    )
    assert python(program, CUDART_PY_DRIVER=backend._selected).stdout == "5\n7 0.0\n"


def test_a_stream_whose_destruction_reports_an_error_is_closed_all_the_same(device, driver_calls):
    stream = cuda.Stream()
    array = cuda.empty(4, stream=stream)
    driver_calls.fails = "cuStreamDestroy".__eq__
    with pytest.raises(cuda.CudaError, match="cuStreamDestroy"):
        stream.close()
    for use in (lambda: cuda.memset(array, 0, stream=stream), lambda: cuda.empty(3, stream=stream), stream.synchronize):
        with pytest.raises(ValueError, match="closed"):
            use()


def test_an_array_freed_by_another_thread_than_its_per_thread_stream_waits_for_that(device, driver_calls):
    """In the other thread, the handle refers to that thread's own stream, which does not order the work."""
    array = cuda.zeros(1000, stream=cuda.per_thread_default)
    before = driver_calls["cuCtxSynchronize"]
    with ThreadPoolExecutor(1) as threads:
        threads.submit(array.close).result()
    assert driver_calls["cuCtxSynchronize"] == before + 1
    assert array.closed


def test_the_variables_of_a_closed_module_are_closed(device):
    module = cuda.compile(CODE)
    kept, part = module.symbol("kept"), module.symbol("kept")[2:]
    module.close()
    assert kept.closed
    assert part.closed


@pytest.mark.parametrize("kind", ["array", "view", "registered", "pool", "event", "stream", "graph", "bound launch"])
def test_what_is_given_back_once_cannot_be_copied_nor_can_launches(device, module, kind):
    for thing in (MAKERS[kind](module), module["saxpy"][1, 4]):
        for how in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=f"this {type(thing).__name__} cannot be copied or pickled"):
                how(thing)


def test_the_default_streams_are_copied_as_themselves():
    for stream in (cuda.legacy_default, cuda.per_thread_default):
        assert copy.copy(stream) is copy.deepcopy(stream) is pickle.loads(pickle.dumps(stream)) is stream


def test_an_array_counts_as_closed_before_others_check_again(device, module, monkeypatch):
    """A launch that checked in between would not check again, and would use freed memory."""
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
    pool.make_current()
    memory, stream = pool._memory, cuda.Stream()
    allocate = calls.raw.cuMemAllocAsync

    def changing(*arguments):
        result = allocate(*arguments)
        cuda.MemoryPool.default(device).make_current()
        pool.close()
        return result

    monkeypatch.setitem(vars(calls.raw), "cuMemAllocAsync", changing)
    array = cuda.empty(100, stream=stream)
    assert not memory.closed
    array.close()
    stream.synchronize()
