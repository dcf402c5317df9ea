"""`cuda.reset`: what ends, what stays, and what works again. It closes all objects, so tests run in new processes."""

import pytest

import cudart_py as cuda
from cudart_py.context import resetting

BEGIN = """
import numpy as np
import cudart_py as cuda
SOURCE = '''
extern "C" __global__ void wild(int *p) { *(int *)8 = 1; }
extern "C" __global__ void count(int *p) { p[threadIdx.x] = threadIdx.x; }
'''
module = cuda.compile(SOURCE)
device = cuda.current_device()
x = cuda.zeros(32, np.int32)

def fault():
    module["wild"][1, 1](None)
    try:
        device.synchronize()
    except cuda.errors.IllegalAddressError:
        return
    raise AssertionError("no fault")

def works():
    y = cuda.zeros(32, np.int32)
    cuda.compile(SOURCE)["count"][1, 32](y)
    return bool((y.to_host() == np.arange(32)).all())

def said(call):
    try:
        call()
    except ValueError as error:
        return str(error)
    raise AssertionError("no error")
"""

# Programs, each run after BEGIN, with the lines that they print.
PROGRAMS = {
    "kernels run again, after a fault and without one": (
        """
fault()
for _ in range(3):
    cuda.reset()
    print(works())
""",
        ["True"] * 3,
    ),
    "objects from before give nothing back": (
        """
import gc
stream, event, pinned = cuda.Stream(), cuda.Event(), cuda.pinned_empty(8)
surface = cuda.textures.Surface(cuda.textures.CudaArray((5, 7), np.float32, surface=True))
texture = cuda.textures.Texture(surface.array)
with stream.capture() as graph:
    cuda.memset(x, 0, stream=stream)
cuda.reset()
used = cuda.MemoryPool.current(device).used
for call in ("cuMemFreeAsync", "cuStreamDestroy", "cuEventDestroy", "cuMemFreeHost", "cuGraphDestroy",
             "cuModuleUnload", "cuTexObjectDestroy", "cuSurfObjectDestroy", "cuArrayDestroy"):
    setattr(cuda.raw, call, None)  # a call would be a TypeError
x.close(), stream.close(), event.close(), graph.close(), module.close()
del x, stream, event, graph, module, pinned, surface, texture
gc.collect()
print(cuda.MemoryPool.current(device).used - used)
""",
        ["0"],
    ),
    "devices and their blocks stay, and pools and limits are as at the beginning": (
        """
threshold = cuda.MemoryPool.current(device).release_threshold
cuda.MemoryPool(release_threshold=5).make_current()
stack = device.limits.stack_size
device.limits.stack_size = 2 * stack
with device:
    fault()
    cuda.reset()
    pool = cuda.MemoryPool.current(device)
    print(pool.release_threshold == threshold, device.limits.stack_size == stack, pool.used)
    print(works(), cuda.current_device() is device, cuda.Device(0) is device)
cuda.legacy_default.synchronize()
print(works(), cuda.per_thread_default.done)
""",
        ["True True 0", "True True True", "True True"],
    ),
    "work that nobody waited for does not run, and an event loop that asked for a stream goes on": (
        """
import asyncio

async def main():
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: print(context))
    stream = cuda.Stream()
    for _ in range(3):
        module["count"][1, 32, 0, stream](x)
    stream.launch_host_function(lambda: None)
    cuda.reset()
    await asyncio.sleep(0.05)

asyncio.run(main())
module, stream = cuda.compile(SOURCE), cuda.Stream()
stream.launch_host_function(lambda: print("called"))
module["wild"][1, 1, 0, stream](None)
cuda.reset()
device.synchronize()
print(works())
""",
        ["True"],
    ),
    "a later error speaks of what came after the reset": (
        """
fault()
cuda.reset()
module = cuda.compile(SOURCE.replace("wild", "wilder"))
module["wilder"][1, 1](None)
try:
    device.synchronize()
except cuda.errors.IllegalAddressError:
    pass
try:
    cuda.zeros(3)
except cuda.errors.IllegalAddressError as error:
    print(str(error).count("kernel wilder "), str(error).count("kernel wild "), "call cuda.reset()" in str(error))
cuda.reset()
print(cuda.raw.cuMemFree(1)[0].name, works())
""",
        ["1 0 True", "CUDA_ERROR_INVALID_VALUE True"],
    ),
    "it is refused in a host function, and during a capture, which goes on": (
        """
def call():
    try:
        cuda.reset()
    except cuda.errors.NotSupportedError as error:
        print("NOT_PERMITTED" in str(error))
stream = cuda.Stream()
stream.launch_host_function(call)
stream.synchronize()
print(x.to_host().sum(), works())
with stream.capture() as graph:
    module["count"][1, 32, 0, stream](x)
    try:
        cuda.reset()
    except cuda.errors.CaptureError as error:
        print("reset: a stream is being captured" in str(error))
graph.instantiate().launch(stream)
stream.synchronize()
print(x.to_host().sum())
""",
        ["True", "0 True", "True", "496"],
    ),
    "large copies and measuring make what they need anew": (
        """
from cudart_py.benchmark.device import blocking, fast_streams
from cudart_py.benchmark.device.kernels import compiled
from cudart_py.memory import staging
staging._processors = lambda: 4
host = np.arange(3 << 20)
for _ in range(2):
    print(bool((cuda.to_device(host).to_host() == host).all()), len(staging._rings))
    kernels = blocking.hold_kernel(device), compiled(device, fast_streams.SOURCE)["nothing"]
    kernels[1][1, 1]()
    device.synchronize()
    print(all(kernel.handle for kernel in kernels))
    fault()
    cuda.reset()
    module = cuda.compile(SOURCE)
""",
        ["True 1", "True"] * 2,
    ),
    "threads that reset at once do not wait for each other for ever": (
        """
import faulthandler, gc, sys, threading
faulthandler.dump_traceback_later(60, exit=True)
sys.setswitchinterval(1e-5)
gc.set_threshold(50, 2, 2)
errors = []

class Circle:
    def __init__(self):
        self.all = [self, cuda.zeros(10), cuda.Event(), cuda.Stream(), cuda.textures.Texture(cuda.zeros(8, np.float32))]

def race():
    for _ in range(5):
        try:
            cuda.reset()
            Circle()
            x = cuda.zeros(32, np.int32)
            cuda.compile(SOURCE)["count"][1, 32](x)
            x.to_host()
        except (cuda.CudaError, ValueError):  # what another thread's reset has closed
            pass
        except BaseException as error:
            errors.append(error)

threads = [threading.Thread(target=race) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
cuda.reset()
print(errors, works())
""",
        ["[] True"],
    ),
    "a thread that does not use CUDA is not disturbed": (
        """
import sys, threading
sys.setswitchinterval(1e-6)
errors, ended = [], threading.Event()

def build():
    while not ended.is_set():
        try:
            tuple(number for number in range(100))
        except SystemError as error:
            errors.append(error)

thread = threading.Thread(target=build)
thread.start()
for _ in range(20):
    cuda.reset()
ended.set()
thread.join()
print(errors, works())
""",
        ["[] True"],
    ),
    "libraries make their handles anew in every thread": (
        """
from concurrent.futures import ThreadPoolExecutor
from cudart_py import libraries

def use():
    a = cuda.to_device(np.eye(3, dtype=np.float32))
    q, r = libraries.qr(a)
    return float(np.abs(libraries.gemm(q, r).to_host()).sum()), libraries.fft(cuda.zeros(8, np.complex64)).shape

with ThreadPoolExecutor(1) as threads:
    for _ in range(2):
        print(use(), threads.submit(use).result())
        fault()
        cuda.reset()
        module = cuda.compile(SOURCE)
""",
        ["(3.0, (8,)) (3.0, (8,))"] * 2,
    ),
}
NAMES = [pytest.param(name, marks=pytest.mark.needs("libraries") if "libraries" in name else ()) for name in PROGRAMS]


@pytest.fixture
def lines(python):
    """Return a function that runs BEGIN and a program in a new process, and returns the lines that they print."""

    def run(program, **environment):
        return python(BEGIN + program, **environment).stdout.splitlines()

    return run


@pytest.mark.needs("reset")
@pytest.mark.parametrize("what", NAMES)
def test_after_a_reset(lines, what):
    program, expected = PROGRAMS[what]
    assert lines(program) == expected


@pytest.mark.needs("reset")
def test_every_object_from_before_says_that_it_is_closed(lines):
    program = """
import gc
stream, event, pool, view = cuda.Stream(), cuda.Event(), cuda.MemoryPool(), x[3:]
gc.freeze()  # what the garbage collector was told to leave alone is closed too
launch = module["count"][1, 32, 0, stream]
with stream.capture() as graph:
    launch(x)
executable, bound = graph.instantiate(), module["count"][1, 32].bind(x)
surface = cuda.textures.Surface(cuda.textures.CudaArray((5, 7), np.float32, surface=True))
texture, own = cuda.textures.Texture(surface.array), np.arange(4)
arrays = [cuda.pinned_empty(4, np.int32, mapped=True), cuda.managed_empty(4, np.int32)]
registered = cuda.register_host(own)
for array in arrays:
    array[:] = 7
fault()
cuda.reset()
y, again = cuda.zeros(32, np.int32), cuda.compile(SOURCE)["count"]
assert texture.closed and surface.closed and surface.array.closed and x.closed
for call in (x.to_host, lambda: x.pointer, view.to_host, stream.synchronize, event.record, executable.launch,
             lambda: pool.trim(), lambda: module["count"], lambda: launch(y), lambda: graph.handle,
             *[lambda array=array: again[1, 4](array) for array in arrays], lambda: registered.handle):
    print(said(call))
for call in (bound, lambda: module["count"][1, 32](x), lambda: cuda.memcpy(x, y), lambda: cuda.empty(3, stream=stream)):
    assert "closed" in said(call)
# Host memory keeps its bytes, and can be registered again.
assert all((array == 7).all() and (cuda.to_device(array).to_host() == 7).all() for array in arrays)
assert (own == np.arange(4)).all() and (cuda.to_device(own).to_host() == own).all()
with cuda.register_host(own):
    pass
"""
    printed = lines(program)
    assert all("is closed, by cuda.reset()" in line for line in printed), printed
    assert len(printed) == 13


@pytest.mark.needs("reset")
def test_peer_access_is_enabled_anew_on_several_devices(lines):
    program = """
other = cuda.devices()[-1]
if other is not device:
    for _ in range(2):
        device.enable_peer(other)
        with other:
            y = cuda.zeros(3)
        cuda.reset()
        print(device.peer_enabled(other), said(y.to_host))
"""
    printed = lines(program, CUDART_PY_SIMULATOR_DEVICES="2")
    assert printed in ([], ["False this DeviceArray is closed, by cuda.reset()"] * 2)


def test_a_driver_without_the_capability_names_it_and_changes_nothing(device, monkeypatch):
    array = cuda.zeros(3)
    monkeypatch.setattr(resetting, "capabilities", frozenset)
    with pytest.raises(cuda.errors.NotSupportedError, match="lacks the capability 'reset'"):
        cuda.reset()
    assert array.to_host().sum() == 0
