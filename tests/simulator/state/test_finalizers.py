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


@pytest.mark.parametrize(
    ("name", "mode", "caught"),
    [
        ("fetch", "off", (pytest.raises, cuda.NotSupportedError, "tex2D|dimension")),
        ("add_one", "error", (pytest.raises, cuda.SimulatorWarning, "uninitialised")),
        ("add_one", "warn", (pytest.warns, cuda.SimulatorWarning, "uninitialised")),
    ],
)
def test_an_error_that_ends_no_context_and_a_finding(device, name, mode, caught):
    """`tex2D` can't read a texture of one dimension."""
    texture, out = cuda.Texture(cuda.zeros(8, np.float32)), cuda.empty(1, np.float32)
    with cuda.checks(mode):
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
print(cuda.driver.seam.lost_by())
"""


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
