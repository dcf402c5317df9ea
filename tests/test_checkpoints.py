"""Checkpoints of another process."""

import os
import subprocess
import sys

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.checkpoints import Process

PROGRAM = """
import sys
import cudart_py as cuda
x = cuda.full(1 << 20, 7, "int32")
cuda.current_device().synchronize()
print("ready", flush=True)
sys.stdin.readline()
print(int((x.to_host() == 7).sum()))
"""


@pytest.fixture
def other():
    """Start a process that fills an array, waits for a line, and then counts the elements that have their values."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


@pytest.mark.needs("checkpoint")
@pytest.mark.unsanitized("the sanitizer slows the other process too")
def test_a_process_releases_its_memory_and_continues(device, other):
    process = Process(other.pid)
    assert process.state == "running"
    assert process.restore_thread_id > 0
    process.lock(timeout=20)
    with pytest.raises(cuda.CudaError, match=f"Process {other.pid} is locked"):
        process.lock()
    process.checkpoint()
    assert process.state == "checkpointed"
    process.restore({device.properties.uuid: device})
    process.unlock()
    assert process.state == "running"
    assert other.communicate("\n", timeout=60)[0] == f"{1 << 20}\n"


@pytest.mark.needs("checkpoint")
@pytest.mark.unsanitized("the driver supports no checkpoints under compute-sanitizer")
def test_a_process_that_does_not_exist_is_named(device):
    with pytest.raises(cuda.errors.InvalidValueError, match="there is no process 2147483647 that uses CUDA"):
        print(Process(2**31 - 1).state)


@pytest.mark.needs("checkpoint")
@pytest.mark.unsanitized("the driver supports no checkpoints under compute-sanitizer")
def test_a_process_knows_its_own_state(device):
    assert Process(os.getpid()).state == "running"


def test_without_the_capability_an_error_names_it():
    if "checkpoint" in cuda.capabilities():
        pytest.skip("this driver makes checkpoints")
    with pytest.raises(cuda.errors.NotSupportedError, match="lacks the capability 'checkpoint'"):
        Process(os.getpid()).lock()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda process: Process("1"), TypeError, "Process: argument 'pid' must be an int"),
        (lambda process: Process(0), ValueError, "Process: argument 'pid' must be an int from 1"),
        (lambda process: process.lock(0), ValueError, "Process.lock: argument 'timeout' must be a time from 0.001"),
        (lambda process: process.lock(np.inf), ValueError, "Process.lock: argument 'timeout' must be"),
        (lambda process: process.lock("1"), TypeError, "Process.lock: argument 'timeout' must be"),
        (lambda process: process.restore([]), TypeError, "Process.restore: argument 'devices' must be a mapping"),
        (lambda process: process.restore({}), ValueError, "Process.restore: argument 'devices' must be a mapping"),
        (
            lambda process: process.restore({"x": cuda.Device(0)}),
            ValueError,
            "Process.restore: .* from UUIDs, not",
        ),
        (lambda process: process.restore({"x": 5}), TypeError, "Process.restore: argument 'devices' must be a Device"),
    ],
)
def test_bad_arguments_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call(Process(os.getpid()))
