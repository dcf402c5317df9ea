"""Barriers that combine a predicate of all threads, which machine code completes by itself."""

import numpy as np
import pytest

from cudart_py.simulator.ptx.native.launching import barriers
from tests.simulator.ptx.machine import Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

# Only the first `alive` threads of a block take part, in each of the rounds.
SOURCE = """
extern "C" __global__ void combined(int* out, const int* in, int alive, int rounds) {
    int i = threadIdx.x, sum = 0;
    if (i >= alive) return;
    for (int r = 0; r < rounds; r++) {
        int x = in[(i + r) % alive], all, any;
        sum += 100 * __syncthreads_count(x > 3);
        sum += 10 * __syncthreads_and(x > -r);
        asm volatile("{ .reg .pred p, q; setp.gt.s32 p, %1, 8; bar.red.or.pred q, 0, !p; selp.b32 %0, 1, 0, q; }"
                     : "=r"(any) : "r"(x));
        asm volatile("{ .reg .pred q; bar.red.and.pred q, 0, 1; selp.b32 %0, 1, 0, q; }" : "=r"(all));
        sum += any + 10000 * all;
    }
    out[blockIdx.x * blockDim.x + i] = sum;
}
"""


@pytest.mark.parametrize("alive", [1, 45, 100])
def test_every_thread_receives_the_combination_of_the_predicates_of_all(
    alive: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels, rounds = Kernels(SOURCE), 6
    kernels.engine = "native"
    monkeypatch.setattr(barriers, "_reduce", None)
    given = np.random.default_rng(alive).integers(-3, 12, alive, np.int32)
    out = kernels.zeros(2 * 100)
    kernels.launch("combined", 2, 100, out, kernels.put(given), alive, rounds)
    assert kernels.ran_natively("combined")
    expected = sum(
        100 * int((given > 3).sum()) + 10 * bool((given > -r).all()) + bool((given <= 8).any()) + 10000
        for r in range(rounds)
    )
    found = kernels.get(out, 2 * 100).reshape(2, 100)
    np.testing.assert_array_equal(found[:, :alive], expected)
    np.testing.assert_array_equal(found[:, alive:], 0)
