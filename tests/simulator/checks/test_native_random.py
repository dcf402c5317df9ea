"""Checks find the same in random kernels, most of which are wrong, while machine code runs them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.state.memory.record_limit import limit
from cudart_py.simulator.state.memory.shadow import ShadowMemory
from tests.simulator.checks.reports import FOLDER, watched
from tests.simulator.ptx.machine import Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

N = 512
THREADS = 128

# What threads do one after the other, with weights: ``X`` is a place in shared memory, ``Y`` one in global memory.
ACCESSES = {
    "v += s[X];": 18, "s[X] = v;": 14, "s[X] = 1;": 4, "v += g[Y];": 12, "g[Y] = v;": 8, "g[Y] = 3;": 4,
    "__syncthreads();": 18, "__syncwarp();": 5, "atomicAdd(&s[X], 1);": 5, "atomicAdd(&g[Y], 1);": 4,
    "if (t & 32) s[X] = v;": 3, "s[X] = s[t];": 3, "((unsigned char*)s)[X] = (unsigned char)v;": 2, "v += h[Y];": 2,
}  # fmt: skip  # rows of a table
COPIES = {
    "copy(s + (X), h + (Y));": 14, "COMMIT;": 8, "WAIT(0);": 8, "WAIT(1);": 8, "WAIT_ALL;": 6, "__syncthreads();": 14,
    "__syncwarp();": 6, "v += s[X];": 12, "s[X] = v;": 4, "if (t & 32) WAIT_ALL;": 2, "g[i] = v;": 4,
    "if (t < 40) copy(s + t, h + t);": 3, "v += __syncthreads_count(v);": 4,
}  # fmt: skip  # rows of a table
# Each counter counts blocks, warps or threads of one step.
FENCES = {
    "__threadfence();": 14, "if (t == 0) __threadfence();": 5, "if (t % 32 == 0) __threadfence();": 3,
    "__syncthreads();": 12, "__syncwarp();": 6, "g[Y] = v;": 10, "v += g[Y];": 7, "s[X] = v;": 3, "v += s[X];": 3,
    "if (last_block(C)) v += g[Y];": 8, "if (last_warp(C + 1)) v += g[Y];": 6, "if (last_thread(C + 2)) v += g[Y];": 5,
    "if (last_block(C + 3)) g[Y] = v;": 3, "atomicAdd(C + 4, 1);": 3, "*(volatile int*)(C + 5 + blockIdx.x) = 1;": 4,
    "if (*(volatile int*)(C + 5 + blockIdx.x / 2)) v += g[Y];": 5, "__threadfence_block();": 2,
}  # fmt: skip  # rows of a table
BEGINNINGS = ["s[t] = t; __syncthreads();", "if (t < 96) s[t] = t; __syncthreads();", ""]


def random_kernel(number: int, steps: dict[str, int]) -> str:
    """Return a kernel of a few steps, most of which race or read what nothing has written."""
    generator = np.random.default_rng(number)
    weights = np.array(list(steps.values())) / sum(steps.values())
    lines = [BEGINNINGS[generator.choice(3, p=[0.6, 0.15, 0.25])]]
    for step in generator.choice(list(steps), int(generator.integers(2, 9)), p=weights):
        by, behind = generator.choice([1, 1, 1, 1, 33, 0, 2, 4]), generator.choice([0, 0, 0, 1, 32, 64, 5])
        places = {"X": f"({by} * t + {behind}) & 127", "Y": f"({by} * i + {behind}) & 511"}
        lines.append(re.sub("[XY]", lambda match, places=places: places[match[0]], step))
    body = "\n".join(lines)
    return f"""
    extern "C" __global__ void k{number}(int* g, const int* h, int* out) {{
        __shared__ int s[{THREADS}];
        int t = threadIdx.x, i = blockIdx.x * {THREADS} + t, v = t;
        {body}
        out[i] = v;
    }}"""


def found(kernels: Kernels, engine: str, name: str, number: int) -> tuple[list[str], Any]:
    """Return the findings of two launches of a kernel on fresh memory, a part of which odd kernels find unwritten."""
    arrays = [kernels.put(np.arange(N, dtype=np.int32)) for _ in range(3)]
    if number % 2:
        for array in arrays[:2]:
            shadow = kernels.memory.shadows[array] = ShadowMemory(array, 4 * N, False)
            shadow.fill(array, (0, 2 * N, 4 * N - 4, 4 * N)[number // 2 % 4])
    texts = [text for _ in range(2) for text in watched(kernels, engine, name, N // THREADS, THREADS, *arrays)]
    return texts, np.concatenate([kernels.get(array, N) for array in arrays])


def beginning(text: str) -> str:
    """Return what a finding is, and at which line; which thread made it may differ."""
    return text.partition(" it was read")[0]


# Lanes that store what another lane of the same instruction has just put in the place of what a third has read.
SAME_INSTRUCTION = [700000693, 700002792]
STEPS = "#define C ((int*)h + 500)\n" + (FOLDER / "steps.cuh").read_text()
# Always the same kernels: a race may show in one order of the blocks alone (docs/simulator.md).
SETS = {
    "accesses": ("", ACCESSES, [*range(8), *SAME_INSTRUCTION]),
    "copies": (STEPS, COPIES, range(0, 16, 2)),
    "fences": (STEPS, FENCES, range(0, 16, 2)),
    "more accesses": ("", ACCESSES, range(8, 20)),
    "more copies": (STEPS, COPIES, range(16, 80, 2)),
    "more fences": (STEPS, FENCES, range(16, 80, 2)),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.exhaustive] * name.startswith("more")) for name in SETS]
)
def test_random_kernels_have_the_same_findings(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    functions, steps, numbers = SETS[name]
    sources = {number: random_kernel(number, steps) for number in numbers}
    kernels = Kernels(functions + "".join(sources.values()))
    exact = {}
    for number, source in sources.items():
        exact[number], values = found(kernels, "numpy", f"k{number}", number)
        texts, results = found(kernels, "native", f"k{number}", number)
        assert texts == exact[number], source
        # A race that is found runs with NumPy; what isn't one gives the same results with both.
        np.testing.assert_array_equal(results, values)
    assert 0 < sum(map(bool, exact.values())) < len(numbers)
    if name != "accesses":
        return
    # The coarse records that are kept where there is no room for others find nothing that these do not.
    monkeypatch.setattr(limit, "admits", lambda size: False)
    monkeypatch.setattr(limit, "said", True)
    some = 0
    for number, source in sources.items():
        for engine in ("numpy", "native"):
            texts, _ = found(kernels, engine, f"k{number}", number)
            assert set(map(beginning, texts)) <= set(map(beginning, exact[number])), source
            assert all("race: " not in text for text in texts)
            some += bool(texts)
    assert some
