"""What goes wrong in work reaches the program by a later call, also where a finalizer's call has waited for it."""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda

pytestmark = pytest.mark.needs("profile")

KERNELS = """
extern "C" __global__ void fetch(cudaTextureObject_t t, float* out) { *out = tex2D<float>(t, 0, 0); }
extern "C" __global__ void add_one(const float* x, float* out) { *out = *x + 1; }
"""


@pytest.fixture
def kernels(device):
    return cuda.compile(KERNELS)


def line_texture():
    """Return a texture of one dimension, which `tex2D` can't read."""
    return cuda.Texture(cuda.zeros(8, np.float32))


def test_an_error_that_ends_no_context(device, kernels):
    texture, out = line_texture(), cuda.empty(1, np.float32)
    kernels["fetch"][1, 1](texture, out)
    del texture  # its finalizer waits for the kernel
    with pytest.raises(cuda.NotSupportedError, match="tex2D|dimension"):
        device.synchronize()
    device.synchronize()


def test_a_finding(device, kernels):
    texture, out = line_texture(), cuda.empty(1, np.float32)
    with cuda.checks("error"):
        kernels["add_one"][1, 1](cuda.empty(1, np.float32), out)
        del texture
        with pytest.raises(cuda.SimulatorWarning, match="uninitialised"):
            device.synchronize()


def test_a_finding_of_which_the_program_is_warned(device, kernels):
    texture, out = line_texture(), cuda.empty(1, np.float32)
    kernels["add_one"][1, 1](cuda.empty(1, np.float32), out)
    del texture
    with pytest.warns(cuda.SimulatorWarning, match="uninitialised"):
        device.synchronize()


def test_the_thread_is_told_of_errors_again_behind_a_finalizer(device, kernels):
    texture, out = line_texture(), cuda.empty(1, np.float32)
    del texture
    other = line_texture()
    kernels["fetch"][1, 1](other, out)
    with pytest.raises(cuda.NotSupportedError):
        device.synchronize()


FAULT = """
import cudart_py as cuda
import numpy as np
kernels = cuda.compile('extern "C" __global__ void beyond(float* x) { x[1 << 20] = 1; }')
unused = cuda.compile('extern "C" __global__ void nothing() {}')
memory = cuda.pinned_empty(4)
kernels["beyond"][1, 1](cuda.zeros(1, np.float32))
del unused, memory
try:
    cuda.zeros(1).to_host()
except cuda.CudaError as error:
    print(error)
"""


def test_the_report_of_a_fault_is_the_next_errors(python):
    printed = python(FAULT, CUDART_PY_DRIVER="simulator").stdout
    assert "kernel beyond at kernel.cu:1: a global write of 4 bytes" in printed


LATER = """
import cudart_py as cuda
import numpy as np
kernels = cuda.compile('template <class T> __global__ void beyond(T* x) { x[1 << 20] = 1; }', names=["beyond<float>"])
x = cuda.zeros(1, np.float32)
kernels["beyond<float>"][1, 1](x)

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
print(cuda.driver.seam.lost_by())
"""


def test_later_errors_of_a_lost_context_say_what_lost_it(python):
    printed = python(LATER, CUDART_PY_DRIVER="simulator", CUDART_PY_SIMULATOR_DEVICES="2").stdout
    first, *later = printed.split("----\n")
    assert "kernel beyond<float> at kernel.cu:1: a global write of 4 bytes" in first
    assert "instruction 'st.global" in first
    assert "earlier" not in first
    second, third = later
    for text in (second, third):
        line = next(line for line in text.splitlines() if "earlier" in line)
        assert line.startswith("The context was lost by an earlier error (kernel beyond<float> at kernel.cu:1: a ")
        assert line.endswith(
            "thread (0, 0, 0)): every later call fails too; start a new process, or call cuda.reset()."
        )
    assert third.splitlines()[-1] == "None"
