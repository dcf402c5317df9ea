"""Copying what nobody wrote is not a mistake, in padding, unused elements and lanes; using it afterwards is."""

from __future__ import annotations

import re

import numpy as np
import pytest

import cudart_py as cuda
from tests.simulator.checks.reports import FOLDER, WRONG_ON_PURPOSE, compiled, found, watched
from tests.simulator.ptx.machine import Kernels

pytestmark = WRONG_ON_PURPOSE

KERNELS = re.findall(r"KERNEL\((\w+)\) \{", (FOLDER / "copied.cu").read_text())


@pytest.mark.parametrize("name", KERNELS)
def test_bytes_are_reported_where_they_are_used_and_not_where_they_are_copied(name):
    texts = found(compiled("copied.cu")[name][1, 32], cuda.zeros(4096, np.int32), cuda.empty(4096, np.int32), 7)
    assert bool(texts) == name.startswith("found")
    assert all("uninitialised value reaches" in text for text in texts), texts


def test_the_first_load_is_named_of_a_value_that_was_moved():
    source = """extern "C" __global__ void moved(int* out) {
    __shared__ int s[32];
    __shared__ volatile int t[32];
    if (threadIdx.x < 7) s[threadIdx.x] = 1;
    __syncwarp();
    t[threadIdx.x] = s[threadIdx.x];
    out[threadIdx.x] = t[threadIdx.x];
}"""
    (text,) = found(cuda.compile(source)["moved"][1, 32], cuda.zeros(32, np.int32))
    assert "kernel.cu:7: uninitialised value reaches a store: it was read at kernel.cu:6 from shared memory" in text


def test_cub_works_on_partial_tiles():
    kernels = Kernels((FOLDER / "cub_tiles.cu").read_text())  # without the assembler, which takes a second more
    keys, values = np.array([51, 14, 95, 3, 82, 3, 47], np.uint32), np.arange(7, dtype=np.uint32)
    sorted_keys, sorted_values, sums, total = (kernels.zeros(7, np.uint32) for _ in range(4))
    given, ones = (kernels.put(keys), sorted_keys, kernels.put(values), sorted_values), kernels.put(values + 1)
    assert watched(kernels, "numpy", "sort", 1, 64, *given, 7) == []
    assert watched(kernels, "numpy", "scan", 1, 64, sums, ones, 7) == []
    assert watched(kernels, "numpy", "total", 1, 32, total, ones, 7) == []
    order = np.argsort(keys, kind="stable")
    assert kernels.get(sorted_keys, 7).tolist() == keys[order].tolist()
    assert kernels.get(sorted_values, 7).tolist() == order.tolist()
    assert kernels.get(sums, 7).tolist() == [0, 1, 3, 6, 10, 15, 21]
    assert kernels.get(total, 1).tolist() == [28]
