"""Cases for memory, control flow, calls, barriers, warps, atomics, waiting and asynchronous copies.

Further cases use the header-only device libraries: CUB, cuda::atomic_ref, cooperative groups and cuRAND.
"""

import numpy as np

from . import values
from .arithmetic import row_case
from .bounds import Bound
from .frame import Case, Out, rows

# struct Mixed in memory.cu. CUDA aligns its float2 to eight bytes, which is where NumPy places it in any case.
MIXED = np.dtype(
    [("tag", "i1"), ("weight", "f8"), ("code", "i2"), ("values", "i4", 3), ("pair", "f4", 2), ("flag", "?")], align=True
)
FLOAT4 = np.dtype([("x", "f4"), ("y", "f4"), ("z", "f4"), ("w", "f4")])


def _labelled(group: str, kernel: str, dtype: str, n: int) -> Out:
    labels = rows(group, kernel)
    return Out("out", dtype, (len(labels), n), labels=labels)


def _memory() -> list[Case]:
    n = 256
    mixed = np.zeros((), MIXED)
    mixed["tag"], mixed["weight"], mixed["code"], mixed["flag"] = -5, 3.0625, -1234, True
    mixed["values"], mixed["pair"] = [7, -8, 1 << 30], [1.5, -2.25]
    vector = np.array((1.0, -2.0, 3.5, 0.1), FLOAT4)
    parameters = (
        np.uint8(200), mixed[()], np.int16(-3000), -0.1, np.int8(-7), vector[()], True, np.uint64(0x1122334455667788),
        _labelled("memory", "parameters", "uint32", 128), 128,
    )  # fmt: skip  # grouped by meaning
    background = values.words(205, 64 * n, np.uint8)
    windows = (values.words(206, n), _labelled("memory", "windows", "uint32", n), n)
    return [
        row_case("memory", "narrow_loads", (values.words(201, 8 * n, np.uint8),), "uint32", n=n),
        row_case("memory", "wide_loads", (values.words(202, 16 * n, np.uint8),), "uint64", n=n),
        row_case("memory", "vector_loads", (values.words(203, 16 * n, np.uint8),), "uint64", n=n),
        Case("memory", "stores", 2, 128, (values.words(204, n), Out("memory", "uint8", initial=background), n)),
        row_case("memory", "variables", (), "uint32", n=n),
        Case("memory", "windows", 2, 128, windows, shared_bytes=512),
        row_case("memory", "local_arrays", (values.words(207, n),), "uint32"),
        Case("memory", "parameters", 1, 128, parameters),
    ]


def _control() -> list[Case]:
    n = 512
    small = values.around(211, n, 1 << 20)
    signed = values.around(212, 256, 1 << 14)
    indices = (_labelled("control", "indices", "uint32", 720), 720)
    return [
        *(row_case("control", kernel, (small,), "int32") for kernel in ("branches", "instructions")),
        Case("control", "early_exit", 4, 128, (values.words(213, n, np.int32), Out("out", "int32", (2, n)), n)),
        Case("control", "collatz", 32, 256, (Out("out", "uint32", (8192,)), 8192)),
        Case("control", "indices", (2, 3, 2), (5, 4, 3), indices, shared_bytes=96),
        row_case("calls", "recursion", (values.words(214, 256),), "uint32"),
        *(row_case("calls", kernel, (signed,), "int32") for kernel in ("arguments", "pointers", "returns")),
    ]


def _lanes() -> list[Case]:
    barriers = ("reductions", "exchanges", "named", "exited", "warps")
    copies = ("async_copies", "barriers_in_memory", "arriving_copies")
    ints, numbers = values.around(221, 256, 1 << 20), values.words(222, 256)
    return [
        *(row_case("barriers", kernel, (ints,), "int32") for kernel in barriers),
        row_case("warp", "shuffles", (numbers,), "uint64"),
        *(row_case("warp", kernel, (numbers,), "uint32") for kernel in ("votes", "parts", "trees")),
        row_case("warp", "short_warp", (values.words(223, 240),), "uint32", block=80),
        *(row_case("copies", kernel, (numbers,), "uint32") for kernel in copies),
        row_case("heap", "allocations", (values.words(224, 128),), "uint32", block=64),
    ]


def _atomic_memory() -> values.Array:
    """Return the initial slots: random bits, but zeros where floats are added."""
    slots = values.words(231, 190, np.uint64)
    for first in (15, 20, 135, 140):
        slots[first : first + 5] = 0
    # Wrapping counters start below their limits.
    slots[95:105] = slots[170:180] = 2
    return slots


def _atomics() -> list[Case]:
    n = 512
    a = values.words(232, n)
    sizes = {"tickets": n, "wrapped": n, "down": n, "exchanged": n + 1, "set_bits": n}
    results = tuple(Out(name, "uint32", (size,), sorted=True) for name, size in sizes.items())
    swapped = values.words(233, 9, np.uint64) | np.uint64(1)
    many = values.words(234, 8192)
    many[::3] = 5  # a third of the threads use one counter
    return [
        Case("atomics", "global_memory", 4, 128, (a, Out("memory", "uint64", initial=_atomic_memory()))),
        Case("atomics", "halves", 2, 128, (a, Out("memory", "uint32", (18,)))),
        Case("atomics", "shared_memory", 4, 128, (a, Out("out", "uint64", (256,)))),
        Case("atomics", "results", 4, 128, (a, _zeros(20), *results)),
        Case("atomics", "compare_and_swap", 2, 128, (a, Out("memory", "uint64", initial=swapped))),
        Case("atomics", "wide_swap", 2, 64, (a, Out("memory", "uint64", (2,)))),
        Case("atomics", "histogram", 32, 256, (many, _words("direct", 64), _words("privatised", 64))),
    ]


def _words(name: str, n: int) -> Out:
    return Out(name, "uint32", (n,))


def _zeros(n: int) -> values.Array:
    return np.zeros(n, np.uint32)


def _waiting() -> list[Case]:
    a = values.words(241, 256)
    return [
        Case("waiting", "spin_lock", 2, 64, (a, _zeros(1), _words("sums", 3))),
        Case("waiting", "shared_locks", 2, 64, (a, _words("out", 8))),
        Case("waiting", "relay", 8, 32, (_zeros(8), _words("values", 8))),
        Case("waiting", "grid_barrier", 4, 64, (_zeros(1), _words("values", 512), _words("out", 256))),
        Case("waiting", "last_block", 4, 64, (a, _zeros(1), _words("partial", 4), _words("out", 1))),
        Case("waiting", "within_a_warp", 1, 32, (_zeros(32), _zeros(32), _words("out", 32))),
    ]


def _tensor() -> list[Case]:
    a, b = (((values.below(seed, 256, 17, np.int64) - 8) / 4).astype(np.float16) for seed in (251, 252))
    c = (values.below(253, 256, 65, np.int64) - 32).astype(np.float32)
    return [
        Case("tensor", "half_product", 1, 32, (a, b, c, Out("out", "float32", (512,)))),
        Case("tensor", "half_result", 1, 32, (a, b, Out("out", "float16", (256,)))),
    ]


# A normal number is sqrt(-2 log u) times sin.approx or cos.approx of an angle. The bound is their absolute error of
# 2^-20.5 times 6.8, the root for the least u of 2^-33, and a few units in the last place for the root.
NORMAL = Bound(ulp=4, absolute=6.8 * 2.0**-20.5)


def _libraries() -> list[Case]:
    a = values.around(301, 512, 1 << 20)
    eighths = ((values.below(302, 512, 4096, np.int64) - 2048) / 8).astype(np.float32)
    counters = np.array([0, 0, 0xFFFFFFFF, 0, 0, 0], np.uint32)
    cases = [
        Case(
            "cub_block_reduce", "block_reduce", 4, 128,
            (a, eighths, Out("integers", "int32", (48,)), Out("floats", "float32", (12,)), 77),
        ),
        Case(
            "cub_block_histogram", "block_histogram", 2, 128,
            (values.words(303, 1024, np.uint8), _words("out", 1064)),
        ),
        Case(
            "cub_warp_reduce", "warp_reduce", 2, 128,
            (
                a[:256], Out("sums", "int32", (8,)), Out("eights", "int32", (32,)), Out("doubles", "float64", (8,)),
                Out("lows", "int32", (8,)), Out("highs", "float64", (8,)), Out("bytes", "int32", (8,)),
                Out("segments", "int32", (256,)),
            ),
        ),
        Case(
            "atomic_ref", "atomic_ref", 4, 128,
            (
                values.words(311, 512), Out("counters", "uint32", initial=counters),
                Out("wide", "uint64", initial=np.array([0, 1], np.uint64)), Out("floats", "float32", (1,)),
                _words("bins", 10), _zeros(1), _zeros(4), _words("received", 4),
            ),
        ),
        Case(
            "cooperative_groups", "groups", 2, 128, (values.words(321, 256), Out("out", "uint32", (43, 256)), 256),
        ),
    ]  # fmt: skip  # rows of a table
    n = 64
    for kernel, more in (("philox", [Out("four", "uint32", (n, 4))]), ("xorwow", [])):
        outs = (
            Out("bits", "uint32", (5, n)), Out("uniform", "float32", (2, n)), Out("doubles", "float64", (n,)),
            Out("normal", "float32", (2, n), bound=NORMAL), *more,
        )  # fmt: skip  # grouped by meaning
        cases.append(Case("curand", kernel, 2, 32, (np.uint64(0x9E3779B97F4A7C15), *outs, n)))
    return cases


def cases() -> list[Case]:
    return [*_memory(), *_control(), *_lanes(), *_atomics(), *_waiting(), *_tensor(), *_libraries()]
