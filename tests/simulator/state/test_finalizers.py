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
    out = cuda.empty(1, np.float32)
    for _ in range(2):
        texture = line_texture()
        kernels["fetch"][1, 1](texture, out)
        del texture  # its finalizer waits for the kernel
        with pytest.raises(cuda.NotSupportedError, match="tex2D|dimension"):
            device.synchronize()
        device.synchronize()


@pytest.mark.parametrize("mode", ["error", "warn"])
def test_a_finding(device, kernels, mode):
    texture, out = line_texture(), cuda.empty(1, np.float32)
    caught = (pytest.raises if mode == "error" else pytest.warns)(cuda.SimulatorWarning, match="uninitialised")
    with cuda.checks(mode):
        kernels["add_one"][1, 1](cuda.empty(1, np.float32), out)
        del texture
        with caught:
            device.synchronize()


LOST = """
import cudart_py as cuda
import numpy as np
kernels = cuda.compile('template <class T> __global__ void beyond(T* x) { x[1 << 20] = 1; }', names=["beyond<float>"])
unused = cuda.compile('extern "C" __global__ void nothing() {}')
pinned = cuda.pinned_empty(4)
x = cuda.zeros(1, np.float32)
kernels["beyond<float>"][1, 1](x)
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
print(cuda.driver.seam.lost_by())
"""


def test_a_fault_is_the_next_errors_and_later_errors_of_its_context_say_what_lost_it(python):
    printed = python(LOST, CUDART_PY_DRIVER="simulator", CUDART_PY_SIMULATOR_DEVICES="2").stdout
    first, *later = printed.split("----\n")
    assert "kernel beyond<float> at kernel.cu:1: a global write of 4 bytes" in first
    assert "earlier" not in first
    assert len(later) == 2
    for text in later:
        assert "lost by an earlier error (kernel beyond<float> at kernel.cu:1: a global write" in text
        assert "call cuda.reset()." in text
    assert later[1].splitlines()[-1] == "None"
