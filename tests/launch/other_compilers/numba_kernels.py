"""Kernels for numba-cuda, and the types of their parameters."""

import math

from numba import cuda, float32, float64, int32


def scaled_sum(a, x, y):
    """Add a multiple of x to y."""
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


def block_sums(x, total):
    """Add up x by a tree reduction in shared memory, and one atomic per block of 128 threads."""
    part = cuda.shared.array(128, float64)
    thread = cuda.threadIdx.x
    i = cuda.grid(1)
    part[thread] = x[i] if i < x.size else 0.0
    cuda.syncthreads()
    half = 64
    while half > 0:
        if thread < half:
            part[thread] += part[thread + half]
        cuda.syncthreads()
        half //= 2
    if thread == 0:
        cuda.atomic.add(total, 0, part[0])


def functions(x, y):
    """Call functions of libdevice."""
    i = cuda.grid(1)
    if i < x.size:
        y[i] = math.erf(x[i]) + math.lgamma(1.5 + x[i] * x[i]) + math.pow(abs(x[i]) + 0.5, x[i]) + math.sin(9e5 * x[i])


def sorted_rows(x, y):
    """Sort each row of 16 elements in the local memory of one thread."""
    row = cuda.grid(1)
    if row < x.shape[0]:
        numbers = cuda.local.array(16, int32)
        for column in range(16):
            place = column
            while place > 0 and numbers[place - 1] > x[row, column]:
                numbers[place] = numbers[place - 1]
                place -= 1
            numbers[place] = x[row, column]
        for column in range(16):
            y[row, column] = numbers[column]


def warp_sums(x, y):
    """Add up the elements of each warp by shuffles, and count those above zero by a vote."""
    i = cuda.grid(1)
    total = x[i]
    for distance in (16, 8, 4, 2, 1):
        total += cuda.shfl_down_sync(0xFFFFFFFF, total, distance)
    above = cuda.popc(cuda.ballot_sync(0xFFFFFFFF, x[i] > 0))
    if cuda.laneid == 0:
        y[i // 32, 0] = total
        y[i // 32, 1] = above


KERNELS = {
    scaled_sum: (float32, float32[::1], float32[::1]),
    block_sums: (float64[::1], float64[::1]),
    functions: (float64[::1], float64[::1]),
    sorted_rows: (int32[:, ::1], int32[:, ::1]),
    warp_sums: (int32[::1], int32[:, ::1]),
}
