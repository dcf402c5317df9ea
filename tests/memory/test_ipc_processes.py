"""Memory and events shared by two processes, on a driver with IPC. Every wait has a time limit."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs("ipc")

BEGIN = """
import contextlib
import multiprocessing
import numpy as np
import cudart_py as cuda

N = 1000
SOURCE = '''
extern "C" __global__ void twice(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}

extern "C" __global__ void late(float *x, int n, float value, unsigned long long nanoseconds) {
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - begin < nanoseconds);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = value;
}
'''


def received(pipe):
    assert pipe.poll(60), "the other process has sent nothing for a minute"
    return pipe.recv()


@contextlib.contextmanager
def another_process(work):
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=work, args=(there,), daemon=True)
    process.start()
    there.close()  # so that the end of the process ends a wait for what it sends
    try:
        yield here
        process.join(60)
        assert process.exitcode == 0, process.exitcode
    finally:
        process.kill()


def shared(content):
    x = cuda.ipc.empty(content.shape, content.dtype)
    x.copy_from(content)
    x.device.synchronize()
    return x


def event():
    return cuda.Event(timing=False, interprocess=True)

"""

END = """

if __name__ == "__main__":
    main()
"""


@pytest.fixture
def lines(tmp_path):
    """Return a function that runs a program from a file, which its child processes import, and returns its lines."""

    def run(program):
        path = tmp_path / "program.py"
        path.write_text(program, encoding="utf-8")
        command = [sys.executable, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


def test_two_processes_read_and_write_arrays_and_views_and_may_open_them_twice(lines):
    program = """
def work(pipe):
    handle = received(pipe)
    first, second = handle.open(), handle.open()
    first.close()
    pipe.send(second.to_host())
    second.close()
    with handle.open() as x:
        pipe.send(x.to_host())
        cuda.compile(SOURCE)["twice"][4, 256](x, x.size)
    pipe.send("closed")  # which has waited for the kernel
    for _ in range(2):
        with received(pipe).open() as x:
            pipe.send((x.shape, x.dtype.str, x.to_host()))


def main():
    content = np.arange(N, dtype=np.float32).reshape(10, 100)
    small = np.arange(3, dtype=np.int16)
    x, y = shared(content), shared(small)
    with another_process(work) as pipe:
        pipe.send(cuda.ipc.handle(x))
        print((received(pipe) == content).all(), (received(pipe) == content).all(), received(pipe))
        print((x.to_host() == 2 * content).all())
        for array, expected in ((x[3:7, 50:60], 2 * content[3:7, 50:60]), (y[1:], small[1:])):
            pipe.send(cuda.ipc.handle(array))
            shape, kind, found = received(pipe)
            print(shape == expected.shape, kind == expected.dtype.str, (found == expected).all())
    cuda.compile(SOURCE)["twice"][4, 256](x, x.size)
    print((x.to_host() == 4 * content).all())
"""
    assert lines(BEGIN + program + END) == ["True True closed", "True", *["True True True"] * 2, "True"]


def test_events_put_the_work_of_two_processes_in_order(lines):
    """Each process modifies what the other writes half a second late; the host also waits for the first event."""
    program = """
def work(pipe):
    memory, ready, done = received(pipe)
    kernels = cuda.compile(SOURCE)
    with memory.open() as x, ready.open() as begin, done.open() as end, cuda.Stream(non_blocking=True) as stream:
        for name, arguments in (("twice", ()), ("late", (0.0, 0))):
            kernels[name][1, 1, 0, stream](x, 0, *arguments)  # loaded, and it does nothing
        stream.synchronize()
        pipe.send(begin.done)  # nothing was recorded yet
        received(pipe)
        begin.synchronize()
        pipe.send((begin.done, x.to_host()))
        received(pipe)
        stream.wait(begin)
        kernels["twice"][4, 256, 0, stream](x, x.size)
        kernels["late"][1, 1, 0, stream](x, 0, 0.0, 500_000_000)
        kernels["twice"][4, 256, 0, stream](x, x.size)
        end.record(stream)
        pipe.send("recorded")
        received(pipe)


def main():
    x, ready, done = shared(np.zeros(N, np.float32)), event(), event()
    late = cuda.compile(SOURCE)["late"]
    with another_process(work) as pipe, cuda.Stream(non_blocking=True) as stream:
        pipe.send(tuple(map(cuda.ipc.handle, (x, ready, done))))
        print(received(pipe))
        for value in (5.0, 3.0):
            late[4, 256, 0, stream](x, x.size, value, 500_000_000)
            ready.record(stream)
            pipe.send("recorded")
            answer = received(pipe)
            print(answer if value == 3.0 else (answer[0], set(answer[1].tolist())))
        stream.wait(done)
        print(set(x.to_host(stream=stream).tolist()))
        pipe.send("read")
"""
    assert lines(BEGIN + program + END) == ["True", "(True, {5.0})", "recorded", "{12.0}"]


@pytest.mark.parametrize(("place", "expected"), [(0, ["[0. 2. 4. 6.]"]), (1, ["5.0", "500.0"])])
def test_the_pages_examples_run(lines, place, expected):
    page = (Path(__file__).parents[2] / "docs" / "processes.md").read_text(encoding="utf-8")
    assert lines(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[place]) == expected


def test_two_processes_work_on_arrays_of_a_pool(lines):
    """A process opens an array and a view, one after another, and the pool in its current stream order."""
    program = """
def work(pipe):
    with received(pipe).open() as pool:
        for _ in range(2):
            with received(pipe).open(pool) as x:
                pipe.send(x.to_host())
                cuda.compile(SOURCE)["twice"][4, 256](x, x.size)
            pipe.send("closed")  # which has waited for the kernel
    with contextlib.suppress(ValueError):
        received(pipe).open(pool)
        pipe.send("a closed pool has opened an array")
    pipe.send("done")


def main():
    content = np.arange(N, dtype=np.float32)
    with cuda.MemoryPool(interprocess=True) as pool, another_process(work) as pipe:
        x, y = (cuda.to_device(content, pool=pool) for _ in range(2))
        x.device.synchronize()
        pipe.send(cuda.ipc.handle(pool))
        for array, expected in ((x, content), (y[500:600], content[500:600])):
            pipe.send(cuda.ipc.handle(array))
            print((received(pipe) == expected).all(), received(pipe))
        print((x.to_host() == 2 * content).all())
        print((y.to_host() == np.r_[content[:500], 2 * content[500:600], content[600:]]).all())
        pipe.send(cuda.ipc.handle(x))
        print(received(pipe))
"""
    assert lines(BEGIN + program + END) == ["True closed", "True closed", "True", "True", "done"]


def test_a_pool_of_another_process_ends_after_its_arrays_in_whatever_order_they_are_dropped(lines):
    program = """
import gc
from cudart_py.driver.calls import intercept

ENDS = "cuMemFreeAsync", "cuMemPoolDestroy"


def work(pipe):
    noted = []
    pool_handle, *handles = received(pipe)

    def seen(name, function):
        def call(*arguments):
            if name in ENDS:
                noted.append(name)
            return function(*arguments)
        return call

    cuda.current_device().synchronize()
    intercept(seen)

    def ended():
        gc.collect()
        result = [ENDS.index(name) for name in noted]
        noted.clear()
        return result

    pool = pool_handle.open()
    x, y = (handle.open(pool) for handle in handles)
    pool.close()
    first = ended()
    view = y[1:]
    x.close()
    del y
    between = ended()
    view = None
    pipe.send((first, between, ended()))

    pool = pool_handle.open()
    cycle = [pool, handles[0].open(pool)]
    cycle.append(cycle)
    del pool, cycle
    pipe.send(ended())

    pool = pool_handle.open()
    x = handles[0].open(pool)
    try:
        handles[0].open(pool)
    except ValueError as error:
        pipe.send("is open in this process already" in str(error))
    with cuda.Stream() as stream, stream.capture():
        x.close()
        during = ended()
    pool.close()
    pipe.send((during, ended()))
    intercept(None)


def main():
    pool = cuda.MemoryPool(interprocess=True)
    x, y = (cuda.zeros(100, np.float32, pool=pool) for _ in range(2))
    x.device.synchronize()
    with another_process(work) as pipe:
        pipe.send([cuda.ipc.handle(each) for each in (pool, x, y)])
        for _ in range(4):
            print(received(pipe))
"""
    found = lines(BEGIN + program + END)
    assert found == ["([], [0], [0, 1])", "[0, 1]", "True", "([], [0, 1])"]


def test_what_cannot_be_opened_with_a_pool_is_named(lines):
    program = """
def attempt(function, *arguments):
    try:
        function(*arguments)
    except (TypeError, ValueError, cuda.CudaError) as error:
        return f"{type(error).__name__} {error}"


def work(pipe):
    first, second, x, separate = received(pipe)
    with first.open() as pool, second.open() as other:
        pipe.send([
            attempt(x.open), attempt(x.open, 5), attempt(x.open, other), attempt(separate.open, pool),
            attempt(x.open, first),
        ])
        received(pipe)
        pipe.send(attempt(cuda.empty, 3, np.int8) or attempt(lambda: cuda.empty(3, np.int8, pool=pool)))


def main():
    first, second = cuda.MemoryPool(interprocess=True), cuda.MemoryPool(interprocess=True)
    x, separate = cuda.zeros(9, pool=first), cuda.ipc.empty(9)
    for array in (cuda.zeros(9), cuda.zeros(9, pool=cuda.MemoryPool())):
        print(attempt(cuda.ipc.handle, array))
    print(attempt(cuda.ipc.handle, cuda.MemoryPool()))
    handles = [cuda.ipc.handle(each) for each in (first, second, x, separate)]
    print(attempt(handles[2].open), attempt(handles[0].open))
    with another_process(work) as pipe:
        pipe.send(handles)
        print(*received(pipe), sep="\\n")
        pipe.send("continue")
        print(received(pipe))
"""
    alone = "ValueError ipc.handle: argument 'thing' is an array that other processes cannot open: allocate it with "
    found = lines(BEGIN + program + END)
    assert found[0].startswith(alone)
    assert found[1].startswith(alone)
    assert found[2].startswith("ValueError ipc.handle: argument 'thing' is a pool that other processes cannot open")
    assert found[3].startswith("ValueError ArrayHandle.open: this handle was made in this process")
    assert " ValueError PoolHandle.open: this handle was made in this process" in found[3]
    wanted = "TypeError ArrayHandle.open: argument 'pool' must be the array's pool, which PoolHandle.open returns, not"
    assert [found[place].startswith(wanted) for place in (4, 5, 8)] == [True] * 3
    assert found[6].startswith("ValueError ArrayHandle.open: argument 'pool' must be the pool that the array is from")
    assert found[7].startswith("ValueError ArrayHandle.open: argument 'pool' must be None for an array from ipc.empty")
    assert found[9].startswith("TypeError empty: argument 'pool' must be a MemoryPool or None")


def test_a_process_may_have_a_name_that_is_not_text(python):
    """Linux cuts names after 15 bytes, also in the middle of a character."""
    program = """
import ctypes
import cudart_py as cuda

ctypes.CDLL(None).prctl(15, "größe".encode()[:3])  # PR_SET_NAME
print(open("/proc/self/comm", "rb").read(), cuda.ipc.handle(cuda.ipc.empty(3)).shape)
"""
    assert python(program).stdout == "b'gr\\xc3\\n' (3,)\n"
