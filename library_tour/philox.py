"""The random numbers of the path-simulation kernels (`kernels/option_path.cuh`), computed with NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def philox(counter: Array, key: int) -> Array:
    """Return the output of Philox 4x32-10 for 32-bit counters, shape (4, ...), and a 64-bit key."""
    c0, c1, c2, c3 = counter.astype(np.uint64)
    low = np.uint64(0xFFFFFFFF)
    key_0, key_1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (b >> 32) ^ c1 ^ np.uint64(key_0), b & low, (a >> 32) ^ c3 ^ np.uint64(key_1), a & low
        key_0, key_1 = (key_0 + 0x9E3779B9) & 0xFFFFFFFF, (key_1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3]).astype(np.uint32)


def normals(paths: int, steps: int, seed: int) -> Array:
    """Return each path's normally distributed numbers, shape (paths, steps), from the same bits as the kernels'."""
    path, step = np.meshgrid(np.arange(paths), np.arange(0, steps, 4), indexing="ij")
    zero = np.zeros_like(path)
    units = 1 + (philox(np.stack([path, step, zero, zero]), seed) & 0x7FFFFF) / 2**23
    radius, angle = np.sqrt(-2 * np.log(2 - units[::2])), 2 * math.pi * units[1::2]
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)])
    return pairs.transpose(2, 3, 1, 0).reshape(paths, steps)
