"""A block's shared memory ends at the next multiple of 128 bytes, on every driver."""

import numpy as np
import pytest

import cudart_py as cuda

SOURCE = r"""
extern __shared__ int s[];
extern "C" __global__ void dynamic(int* out, int at) {
    volatile int* p = s;
    p[at] = 7;
    *out = p[at];
}
extern "C" __global__ void fixed(int* out, int at) {
    __shared__ int f[7];
    volatile int* p = f;
    p[at] = 7;
    *out = p[at];
}
extern "C" __global__ void both(int* out, int at) {
    __shared__ int f[7];
    ((volatile int*)s)[0] = 6;
    volatile int* p = f;
    p[at] = 7;
    *out = p[at];
}
extern "C" __global__ void seven(int* out) {
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    int total = 0;
    #pragma unroll
    for (int i = 0; i < 7; i++) total += s[i];
    out[threadIdx.x] = total;
}
"""
# The kernel, its bytes of dynamic shared memory, and the index of the last word that it can access. The cases with
# static shared memory were not measured. They follow an H200's register %total_smem_size, which rounds up the sum.
ENDS = [("dynamic", 28, 31), ("dynamic", 1000, 255), ("dynamic", 0, -1), ("fixed", 0, 31), ("both", 200, 63)]

PROGRAM = """
import numpy as np
import cudart_py as cuda
with cuda.Device(0), cuda.sanitizer("off"):
    out = cuda.zeros(1, np.int32)
    launch = cuda.compile({source!r})[{name!r}][1, 1, {size}]
    for at in range(max({last}, 0), {last} + 2):
        launch(out, at)
        try:
            print(out.to_host())
        except cuda.errors.IllegalAddressError:
            print("illegal address")
"""


@pytest.mark.parametrize(("name", "size", "last"), ENDS)
def test_the_last_word_can_be_accessed_and_the_word_after_it_is_an_illegal_address(python, name, size, last):
    program = PROGRAM.format(source=SOURCE, name=name, size=size, last=last)
    lines = python(program, check=False).stdout.splitlines()
    assert lines[: 1 + (last >= 0)] == ["[7]"] * (last >= 0) + ["illegal address"]


def test_an_unrolled_loop_reads_past_the_requested_bytes(device):
    """NVRTC vectorizes this loop over seven elements into two loads of four."""
    out = cuda.zeros(7, np.int32)
    cuda.compile(SOURCE)["seven"][1, 7, 28](out)
    assert out.to_host().tolist() == [21] * 7
