"""`cuda.reset`: what ends, what stays, and what works again. In processes of their own, whose objects it closes."""

from __future__ import annotations

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
    except cuda.IllegalAddressError:
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

needs_reset = pytest.mark.needs("reset")


@pytest.fixture
def lines(python):
    """Run a program behind the beginning above, and return the lines that it prints."""

    def run(program, **environment):
        return python(BEGIN + program, **environment).stdout.splitlines()

    return run


@needs_reset
def test_kernels_run_again_after_a_fault(lines):
    assert lines("fault(); cuda.reset(); print(works())") == ["True"]


@needs_reset
def test_a_reset_without_a_fault_works_as_well_and_so_do_several(lines):
    assert lines("cuda.reset(); print(works()); cuda.reset(); cuda.reset(); print(works())") == ["True", "True"]


@needs_reset
def test_every_object_from_before_says_that_it_is_closed(lines):
    program = """
stream, event, pool, view = cuda.Stream(), cuda.Event(), cuda.MemoryPool(), x[3:]
launch = module["count"][1, 32, 0, stream]
with stream.capture() as graph:
    launch(x)
executable, bound = graph.instantiate(), module["count"][1, 32].bind(x)
fault()
cuda.reset()
y = cuda.zeros(32, np.int32)
for call in (x.to_host, view.to_host, stream.synchronize, event.record, executable.launch, lambda: pool.trim(),
             lambda: module["count"], lambda: launch(y), lambda: graph.handle):
    print(said(call))
for call in (bound, lambda: module["count"][1, 32](x), lambda: cuda.memcpy(x, y), lambda: cuda.empty(3, stream=stream)):
    print(said(call))
"""
    printed = lines(program)
    assert all("is closed, by cuda.reset()" in line for line in printed[:9]), printed
    assert all("closed" in line for line in printed[9:]), printed
    assert len(printed) == 13


@needs_reset
def test_objects_that_the_garbage_collector_was_told_to_leave_alone_are_closed_too(lines):
    program = """
import gc
gc.freeze()
cuda.reset()
print(x.closed, said(lambda: x.pointer))
"""
    assert lines(program) == ["True this DeviceArray is closed, by cuda.reset()"]


@needs_reset
def test_objects_from_before_give_nothing_back(lines):
    program = """
import gc
stream, event, pinned = cuda.Stream(), cuda.Event(), cuda.pinned_empty(8)
with stream.capture() as graph:
    cuda.memset(x, 0, stream=stream)
cuda.reset()
used = device.memory_pool.used
for call in ("cuMemFreeAsync", "cuStreamDestroy", "cuEventDestroy", "cuMemFreeHost", "cuGraphDestroy",
             "cuModuleUnload"):
    setattr(cuda.raw, call, None)  # a call would be a TypeError
x.close(), stream.close(), event.close(), graph.close(), module.close()
del x, stream, event, graph, module, pinned
gc.collect()
print(device.memory_pool.used - used)
"""
    assert lines(program) == ["0"]


@needs_reset
def test_host_memory_keeps_its_bytes_and_kernels_take_it_no_longer(lines):
    program = """
own = np.arange(4)
arrays = [cuda.pinned_empty(4, np.int32, mapped=True), cuda.managed_empty(4, np.int32)]
registered = cuda.register_host(own)
for array in arrays:
    array[:] = 7
fault()
cuda.reset()
print(*[(array + 1).tolist() for array in arrays], own.tolist())
print(*[cuda.to_device(array).to_host().tolist() for array in (*arrays, own)])
again = cuda.compile(SOURCE)["count"]
for array in arrays:
    print(said(lambda: again[1, 4](array)))
print(said(lambda: registered.handle))
with cuda.register_host(own):
    pass
"""
    printed = lines(program)
    assert printed[:2] == ["[8, 8, 8, 8] [8, 8, 8, 8] [0, 1, 2, 3]", "[7, 7, 7, 7] [7, 7, 7, 7] [0, 1, 2, 3]"]
    assert all("is closed, by cuda.reset()" in line for line in printed[2:])
    assert len(printed) == 5


@needs_reset
def test_devices_and_their_blocks_stay(lines):
    program = """
with device:
    fault()
    cuda.reset()
    print(works(), cuda.current_device() is device, cuda.Device(0) is device)
cuda.legacy_default.synchronize()
print(works(), cuda.per_thread_default.done)
"""
    assert lines(program) == ["True True True", "True True"]


@needs_reset
def test_pools_and_limits_are_as_at_the_beginning(lines):
    program = """
threshold = device.memory_pool.release_threshold
device.memory_pool = cuda.MemoryPool(release_threshold=5)
stack = device.limits.stack_size
device.limits.stack_size = 2 * stack
cuda.reset()
print(device.memory_pool.release_threshold == threshold, device.limits.stack_size == stack, device.memory_pool.used)
"""
    assert lines(program) == ["True True 0"]


@needs_reset
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


@needs_reset
def test_work_that_nobody_waited_for_does_not_run(lines):
    program = """
stream = cuda.Stream()
stream.add_callback(lambda: print("called"))
module["wild"][1, 1, 0, stream](None)
cuda.reset()
device.synchronize()
print(works())
"""
    assert lines(program) == ["True"]


@needs_reset
def test_a_later_error_speaks_of_what_came_after_the_reset(lines):
    program = """
fault()
cuda.reset()
module = cuda.compile(SOURCE.replace("wild", "wilder"))
module["wilder"][1, 1](None)
try:
    device.synchronize()
except cuda.IllegalAddressError:
    pass
try:
    cuda.zeros(3)
except cuda.IllegalAddressError as error:
    print(str(error).count("wilder["), str(error).count("wild["), "call cuda.reset()" in str(error))
cuda.reset()
print(cuda.raw.cuMemFree(1)[0].name, works())
"""
    assert lines(program) == ["1 0 True", "CUDA_ERROR_INVALID_VALUE True"]


@needs_reset
def test_a_reset_is_refused_during_a_capture_which_goes_on(lines):
    program = """
stream = cuda.Stream()
with stream.capture() as graph:
    module["count"][1, 32, 0, stream](x)
    try:
        cuda.reset()
    except cuda.CaptureError as error:
        print(error)
graph.instantiate().launch(stream)
stream.synchronize()
print(x.to_host().sum())
"""
    said, total = lines(program)
    assert "reset: a stream is being captured" in said
    assert total == "496"


@needs_reset
def test_a_host_function_cannot_reset(lines):
    program = """
def call():
    try:
        cuda.reset()
    except cuda.NotSupportedError as error:
        print("NOT_PERMITTED" in str(error))
stream = cuda.Stream()
stream.add_callback(call)
stream.synchronize()
print(x.to_host().sum(), works())
"""
    assert lines(program) == ["True", "0 True"]


@needs_reset
def test_an_event_loop_that_asked_for_a_stream_goes_on(lines):
    program = """
import asyncio

async def main():
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: print(context))
    stream = cuda.Stream()
    for _ in range(3):
        module["count"][1, 32, 0, stream](x)
    stream.add_callback(lambda: None)
    cuda.reset()
    await asyncio.sleep(0.05)

asyncio.run(main())
print(works())
"""
    assert lines(program) == ["True"]


@needs_reset
def test_large_copies_make_their_page_locked_memory_anew(lines):
    program = """
from cudart_py.memory import staging
staging._processors = lambda: 4
host = np.arange(3 << 20)
for _ in range(2):
    print(bool((cuda.to_device(host).to_host() == host).all()), len(staging._rings))
    fault()
    cuda.reset()
    module = cuda.compile(SOURCE)
"""
    assert lines(program) == ["True 1", "True 1"]


@needs_reset
def test_measuring_compiles_its_kernels_anew(lines):
    program = """
from cudart_py.benchmark import blocking, fast_streams
for _ in range(2):
    kernels = blocking.hold_kernel(device), fast_streams._module(device)["nothing"]
    kernels[1][1, 1]()
    device.synchronize()
    print(all(kernel.handle for kernel in kernels))
    cuda.reset()
"""
    assert lines(program) == ["True", "True"]


@needs_reset
@pytest.mark.needs("libraries")
def test_libraries_make_their_handles_anew_in_every_thread(lines):
    program = """
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
"""
    assert lines(program) == ["(3.0, (8,)) (3.0, (8,))"] * 2


def test_a_driver_without_the_capability_names_it_and_changes_nothing(device, monkeypatch):
    array = cuda.zeros(3)
    monkeypatch.setattr(resetting, "capabilities", frozenset)
    with pytest.raises(cuda.NotSupportedError, match="lacks the capability 'reset'"):
        cuda.reset()
    assert array.to_host().sum() == 0


RACE = """
import faulthandler, gc, sys, threading
faulthandler.dump_traceback_later(60, exit=True)
sys.setswitchinterval(1e-5)
gc.set_threshold(50, 2, 2)
errors = []

class Circle:
    def __init__(self):
        self.all = [self, cuda.zeros(10), cuda.Event(), cuda.Stream(), cuda.Texture(cuda.zeros(8, np.float32))]

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
"""


@needs_reset
def test_threads_that_reset_at_once_do_not_wait_for_each_other_for_ever(lines):
    assert lines(RACE) == ["[] True"]


BESIDE = """
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
"""


@needs_reset
def test_a_reset_does_not_disturb_a_thread_that_does_not_use_cuda(lines):
    assert lines(BESIDE) == ["[] True"]
