"""The computation of HeCBench's intrinsics-simd with NumPy, as the CUDA Math API documents the intrinsics."""

from typing import Any

import numpy as np

Words = np.ndarray[Any, np.dtype[np.uint32]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]


def simd_intrinsics_reference(a: Words) -> Words:
    """Return, for each word of `a`, the exclusive or of all results for it and its successor or predecessor."""
    odd = np.arange(a.size) % 2 == 1
    b = np.where(odd, a + np.uint32(1), a - np.uint32(1))
    result = np.zeros_like(a)
    for both, maxima in ((16, 16), (8, 32)):
        result ^= _both_widths(a, b, both) ^ _max_and_min(a, b, a ^ b, maxima)
    return result


def _unsigned(words: Words, bits: int) -> Numbers:
    """Return the unsigned values of the lanes of words, one row per word."""
    kind = np.dtype(f"<u{bits // 8}")
    return np.ascontiguousarray(words).view(kind).reshape(words.size, -1).astype(np.int64)


def _signed(lanes: Numbers, bits: int) -> Numbers:
    """Return lanes as two's-complement values of their low `bits` bits."""
    lanes = lanes & ((1 << bits) - 1)
    return lanes - ((lanes >> (bits - 1)) << bits)


def _words(lanes: Numbers, bits: int) -> Words:
    """Return words packed from the low `bits` bits of each lane."""
    kind = np.dtype(f"<u{bits // 8}")
    return np.ascontiguousarray(lanes & ((1 << bits) - 1)).astype(kind).view(np.uint32).reshape(-1)


def _both_widths(a: Words, b: Words, bits: int) -> Words:
    """Return the exclusive or of the intrinsics that exist for both 16-bit and 8-bit lanes."""
    u, v = _unsigned(a, bits), _unsigned(b, bits)
    s, t = _signed(u, bits), _signed(v, bits)
    low, high, top = -(1 << (bits - 1)), (1 << (bits - 1)) - 1, (1 << bits) - 1
    lanes = [
        abs(s),
        abs(s - t),
        abs(u - v),
        np.minimum(abs(s), high),
        s + t,
        np.clip(s + t, low, high),
        np.minimum(u + v, top),
        np.sign(s + t) * ((abs(s + t) + 1) >> 1),  # halves are rounded away from zero
        (u + v + 1) >> 1,
        (u + v) >> 1,
        np.maximum(s, t),
        np.maximum(u, v),
        np.minimum(s, t),
        np.minimum(u, v),
        -s,
        np.minimum(-s, high),
        s - t,
        np.clip(s - t, low, high),
        np.maximum(u - v, 0),
    ]
    for true in (u == v, s >= t, u >= v, s > t, u > v, s <= t, u <= v, s < t, u < v, u != v):
        lanes += [np.where(true, top, 0), true.astype(np.int64)]  # __vcmp and __vset
    result = np.bitwise_xor.reduce([_words(one, bits) for one in lanes])
    for sums in (abs(s - t).sum(axis=1), abs(u - v).sum(axis=1)):
        result ^= sums.astype(np.uint32)
    return result


def _max_and_min(a: Words, b: Words, c: Words, bits: int) -> Words:
    """Return the exclusive or of `__viadd…`, `__vib…` and `__vim…` for 16 or 32 bits."""
    u, v, w = (_unsigned(one, bits) for one in (a, b, c))
    s, t, r = (_signed(one, bits) for one in (u, v, w))
    top = (1 << bits) - 1
    lanes = []
    for choose in (np.maximum, np.minimum):
        added = choose(_signed(s + t, bits), r)
        three, two = choose(choose(s, t), r), choose(s, t)
        lanes += [added, np.maximum(added, 0), choose((u + v) & top, w)]
        lanes += [two, choose(u, v)]  # __vib
        lanes += [three, np.maximum(three, 0), choose(choose(u, v), w), np.maximum(two, 0)]
    return np.bitwise_xor.reduce([_words(one, bits) for one in lanes])
