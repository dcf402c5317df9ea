"""Kernels for Triton, each with its parameter types, its constants, and the compute capability that it is compiled for.

Each block has four warps.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tests.interop.triton_kernels import softmax


@triton.jit
def scan_and_count(x, sums, counts, count, width: tl.constexpr):
    """Compute running sums of one block of integers, and a histogram of their last three bits."""
    i = tl.arange(0, width)
    inside = i < count
    values = tl.load(x + i, mask=inside, other=0)
    tl.store(sums + i, tl.cumsum(values, 0), mask=inside)
    tl.atomic_add(counts + values % 8, 1, mask=inside)


@triton.jit
def product(a, b, c, rows, columns, inner, width: tl.constexpr):
    """Multiply matrices with tensor cores, one tile per program."""
    i = tl.program_id(0) * width + tl.arange(0, width)[:, None]
    j = tl.program_id(1) * width + tl.arange(0, width)[None, :]
    k = tl.arange(0, width)
    total = tl.zeros((width, width), dtype=tl.float32)
    for first in range(0, inner, width):
        across, down = first + k[None, :], first + k[:, None]
        left = tl.load(a + i * inner + across, mask=(i < rows) & (across < inner), other=0.0)
        right = tl.load(b + down * columns + j, mask=(down < inner) & (j < columns), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + i * columns + j, total, mask=(i < rows) & (j < columns))


@triton.jit
def attention(q, k, v, out, count, scale, rows: tl.constexpr, width: tl.constexpr, depth: tl.constexpr):
    """Compute causal attention of one head over blocks of keys, without storing a whole row of weights."""
    i, head = tl.program_id(0) * rows + tl.arange(0, rows), tl.program_id(1) * count * depth
    part = tl.arange(0, depth)
    asked = tl.load(q + head + i[:, None] * depth + part[None, :], mask=i[:, None] < count, other=0.0)
    greatest = tl.full((rows,), -float("inf"), tl.float32)
    weight = tl.zeros((rows,), tl.float32)
    total = tl.zeros((rows, depth), tl.float32)
    for first in range(0, count, width):
        j = first + tl.arange(0, width)
        keys = tl.load(k + head + j[None, :] * depth + part[:, None], mask=j[None, :] < count, other=0.0)
        values = tl.load(v + head + j[:, None] * depth + part[None, :], mask=j[:, None] < count, other=0.0)
        seen = (j[None, :] < count) & (j[None, :] <= i[:, None])
        score = tl.where(seen, tl.dot(asked, keys) * scale, -1e30)
        new = tl.maximum(greatest, tl.max(score, 1))
        powers, shrink = tl.exp(score - new[:, None]), tl.exp(greatest - new)
        weight = weight * shrink + tl.sum(powers, 1)
        total = total * shrink[:, None] + tl.dot(powers.to(tl.float16), values)
        greatest = new
    tl.store(out + head + i[:, None] * depth + part[None, :], total / weight[:, None], mask=i[:, None] < count)


_SIZES = {"rows": "i32", "columns": "i32", "inner": "i32"}
KERNELS = {
    "softmax": (softmax, {"out": "*fp32", "x": "*fp32", "columns": "i32"}, {"width": 256}, 80),
    "scan_and_count": (
        scan_and_count,
        {"x": "*i32", "sums": "*i32", "counts": "*i32", "count": "i32"},
        {"width": 256},
        80,
    ),
    "product_of_halves": (product, {"a": "*fp16", "b": "*fp16", "c": "*fp32", **_SIZES}, {"width": 32}, 80),
    "product_of_singles": (product, {"a": "*fp32", "b": "*fp32", "c": "*fp32", **_SIZES}, {"width": 32}, 80),
    # Uses wgmma, which multiplies 64 rows at once.
    "attention": (
        attention,
        {"q": "*fp16", "k": "*fp16", "v": "*fp16", "out": "*fp32", "count": "i32", "scale": "fp32"},
        {"rows": 64, "width": 64, "depth": 64},
        90,
    ),
}
