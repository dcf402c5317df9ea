"""Kernels for Triton. `@triton.jit` reads the source of a function, which must be in a file."""

# The functions' parameters have no types, and Triton's language module has functions that type checkers do not know.
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, count, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    inside = i < count
    left = tl.load(x + i, mask=inside)
    right = tl.load(y + i, mask=inside)
    tl.store(out + i, left + right, mask=inside)


@triton.jit
def softmax(out, x, columns, width: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, width)
    inside = column < columns
    values = tl.load(x + row * columns + column, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + column, powers / tl.sum(powers, axis=0), mask=inside)


@triton.jit
def copy(out, x, block: tl.constexpr):
    i = tl.arange(0, block)
    numbers = tl.load(x + i)
    tl.store(out + i, numbers)


@triton.jit
def number(out):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    own = x + tl.num_programs(0) * (y + tl.num_programs(1) * z)
    tl.store(out + own, own)


@triton.jit
def store(i, u, h, b, f, flag, out):
    tl.store(out, i.to(tl.float64))
    tl.store(out + 1, u.to(tl.float64))
    tl.store(out + 2, h.to(tl.float64))
    tl.store(out + 3, b.to(tl.float64))
    tl.store(out + 4, f)
    tl.store(out + 5, flag.to(tl.float64))


@triton.jit
def fill(out, count, value: tl.constexpr = 5):
    for i in range(count):
        tl.store(out + i, value)


@triton.jit
def double(out, x, rows, columns, height: tl.constexpr, width: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[rows, columns], strides=[columns, 1], block_shape=[height, width])
    to = tl.make_tensor_descriptor(out, shape=[rows, columns], strides=[columns, 1], block_shape=[height, width])
    place = [tl.program_id(0) * height, tl.program_id(1) * width]
    to.store(place, source.load(place) * 2)
