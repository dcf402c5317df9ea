"""Machine code for each level of features that LLVM may choose, and of optimisation."""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from tests import processors

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

from cudart_py.simulator.ptx.native import machine

SOURCE = """
extern "C" __global__ void k(const float *x, const unsigned *n, float *out, unsigned *counts) {
    int i = threadIdx.x;
    float y = x[i];
    for (unsigned step = 0; step < n[i] % 5; step++) y = fmaf(y, y, -1.5f);
    out[i] = y + exp2f(x[i]);
    counts[i] = __popc(n[i]) + __clz(n[i]);
}
"""


MODULES: dict[str, cuda.Module] = {}


def test_one_kernel_runs_at_each_level(processor_level: processors.Level, device: cuda.Device) -> None:
    # The module is the same at all levels, so that code made for one level is there when the next one asks.
    module = MODULES.setdefault("one", cuda.compile(SOURCE))
    x = np.linspace(-2, 2, 64, dtype=np.float32)
    n = np.arange(64, dtype=np.uint32) * 0x01000193
    out, counts = cuda.zeros(64, np.float32), cuda.zeros(64, np.uint32)
    module["k"][1, 64](cuda.to_device(x), cuda.to_device(n), out, counts)
    y = x.copy()
    for step in range(4):
        y = np.where(step < n % 5, (y.astype(np.float64) ** 2 - 1.5).astype(np.float32), y)
    np.testing.assert_allclose(out.to_host(), y + np.exp2(x), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(counts.to_host(), [bin(v).count("1") + 32 - int(v).bit_length() for v in n])


def test_the_level_is_the_tests_alone() -> None:
    before = machine.processor()
    with processors.compiled_for(processors.Level("x86-64-v2", 1)):
        assert machine.processor() == ("x86-64-v2", "", 1)
    assert machine.processor() == before == machine.host()
