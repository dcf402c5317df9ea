"""An instruction that synchronises a part of a warp orders only the lanes that execute it."""

import numpy as np
import pytest

from tests.simulator.checks.reports import of_both, run_natively
from tests.simulator.ptx.machine import Kernels

SOURCE = """
#define BEGIN int lane = threadIdx.x
#define END asm volatile("" ::: "memory")
extern "C" __global__ void hand_over(int* word, int* out, int writer, int reader) {
    BEGIN;
    if (lane == writer) *word = 7;
    END;
    if (lane >= 8 && lane < 24) __syncwarp(0x00ffff00u);
    if (lane == reader) *out = *word;
}
extern "C" __global__ void shuffle(int* word, int* out, int writer, int reader) {
    BEGIN;
    if (lane == writer) *word = 7;
    END;
    if (lane >= 8 && lane < 24) out[lane] = __shfl_sync(0x00ffff00u, lane, 9);
    if (lane == reader) *out = *word;
}
// Two masks overlap.
extern "C" __global__ void hand_on(int* word, int* out, int writer, int reader) {
    BEGIN;
    if (lane == writer) *word = 7;
    END;
    if (lane >= 8 && lane < 16) __syncwarp(0x0000ff00u);
    if (lane >= 15 && lane < 24) __syncwarp(0x00ff8000u);
    if (lane == reader) *out = *word;
}
// The atomic of the storing lane must not hide its store from the atomics of other lanes.
extern "C" __global__ void store_then_count(int* word, int* out, int writer, int reader) {
    BEGIN;
    if (lane == writer) *word = 7;
    END;
    if (lane >= 8 && lane < 24) __syncwarp(0x00ffff00u);
    if (lane == writer) atomicAdd(word, 1);
    END;
    if (lane == reader) *out = atomicAdd(word, 1);
}
"""
ZEROS = np.zeros(32, np.int32)


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE)


@pytest.mark.parametrize(
    ("name", "writer", "reader"),
    [
        *((name, 10, reader) for name in ("hand_over", "shuffle") for reader in (10, 20, 3)),
        *((name, 26, reader) for name in ("hand_over", "shuffle", "store_then_count") for reader in (10, 3)),
        ("hand_over", 3, 26),
        ("store_then_count", 10, 20),
    ],
)
def test_lanes_outside_a_mask_are_not_ordered(kernels: Kernels, name: str, writer: int, reader: int) -> None:
    texts = of_both(kernels, name, 1, 32, ZEROS, ZEROS, writer, reader)
    ordered = writer == reader or (8 <= writer < 24 and 8 <= reader < 24)
    assert ["race: it" in text for text in texts] == [True] * (not ordered)


@pytest.mark.parametrize("writer", [8, 15])
@pytest.mark.parametrize("reader", [15, 23])
def test_order_passes_from_one_mask_to_the_next(writer: int, reader: int) -> None:
    run_natively(Kernels(SOURCE), "hand_on", 1, 32, ZEROS, ZEROS, writer, reader)
