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


def test_the_pages_example_runs(lines):
    """The example is the first one in docs/processes.md."""
    page = (Path(__file__).parents[2] / "docs" / "processes.md").read_text(encoding="utf-8")
    assert lines(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]) == ["[0. 2. 4. 6.]"]
