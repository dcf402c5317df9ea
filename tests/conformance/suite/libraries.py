"""Cases of the header-only device libraries: CUB, cuda::atomic_ref, cooperative groups, cuRAND."""

from __future__ import annotations

import numpy as np

from . import values
from .bounds import Bound
from .frame import Case, Out

# A normal number is sqrt(-2 log u) times sin.approx or cos.approx of an angle: their absolute error of 2^-20.5
# times at most 6.8, the root for the least u of 2^-33, and a few units in the last place for the root.
NORMAL = Bound(ulp=4, absolute=6.8 * 2.0**-20.5)


def _cub() -> list[Case]:
    a = values.around(301, 512, 1 << 20)
    eighths = (values.below(302, 512, 4096, np.int64) - 2048) / 8
    bytes_ = values.words(303, 1024, np.uint8)
    reduced = (Out("integers", "int32", (48,)), Out("floats", "float32", (12,)), 77)
    return [
        Case("cub_block_reduce", "block_reduce", 4, 128, (a, eighths.astype(np.float32), *reduced)),
        Case("cub_block_histogram", "block_histogram", 2, 128, (bytes_, Out("out", "uint32", (1064,)))),
        Case(
            "cub_warp_reduce", "warp_reduce", 2, 128,
            (
                a[:256], Out("sums", "int32", (8,)), Out("eights", "int32", (32,)), Out("doubles", "float64", (8,)),
                Out("lows", "int32", (8,)), Out("highs", "float64", (8,)), Out("bytes", "int32", (8,)),
                Out("segments", "int32", (256,)),
            ),
        ),
    ]  # fmt: skip  # rows of a table


def _atomic_ref() -> Case:
    counters = np.array([0, 0, 0xFFFFFFFF, 0, 0, 0], np.uint32)
    return Case(
        "atomic_ref", "atomic_ref", 4, 128,
        (
            values.words(311, 512), Out("counters", "uint32", initial=counters),
            Out("wide", "uint64", initial=np.array([0, 1], np.uint64)), Out("floats", "float32", (1,)),
            Out("bins", "uint32", (10,)), np.zeros(1, np.uint32), np.zeros(4, np.uint32),
            Out("received", "uint32", (4,)),
        ),
    )  # fmt: skip  # grouped by meaning


def _random(kernel: str, *more: Out) -> Case:
    n = 64
    outs = (
        Out("bits", "uint32", (5, n)), Out("uniform", "float32", (2, n)), Out("doubles", "float64", (n,)),
        Out("normal", "float32", (2, n), bound=NORMAL),
    )  # fmt: skip  # grouped by meaning
    return Case("curand", kernel, 2, 32, (np.uint64(0x9E3779B97F4A7C15), *outs, *more, n))


def cases() -> list[Case]:
    """Return every case of this module."""
    grouped = (values.words(321, 256), Out("out", "uint32", (43, 256)), 256)
    return [
        *_cub(),
        _atomic_ref(),
        Case("cooperative_groups", "groups", 2, 128, grouped),
        _random("philox", Out("four", "uint32", (64, 4))),
        _random("xorwow"),
    ]
