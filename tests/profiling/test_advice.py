"""Advice: each rule finds its mistake, and says nothing of code without it."""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.profiling.advice import advise_on
from cudart_py.profiling.source_lines import hot_lines, sources_of

pytestmark = pytest.mark.needs("profile")

# A kernel a line, so that each has its own advice.
KERNELS = """
extern "C" __global__ void strided(float* x) { x[threadIdx.x * 8] = 1; }
extern "C" __global__ void gathered(float* x) { x[threadIdx.x] = x[threadIdx.x * 8]; }
extern "C" __global__ void broadcast(float* x) { x[threadIdx.x] = x[600]; }
extern "C" __global__ void shifted(float* x) { x[threadIdx.x] = x[threadIdx.x + 513]; }
extern "C" __global__ void conflicts(float* x) { __shared__ float s[32][32]; s[threadIdx.x % 32][threadIdx.x / 32] = 1; __syncthreads(); x[threadIdx.x] = s[0][threadIdx.x / 32]; }
extern "C" __global__ void histogram(unsigned* x) { __shared__ unsigned s[64]; s[threadIdx.x % 64] = 0; __syncthreads(); for (int k = 0; k < 9; k++) atomicAdd(&s[x[threadIdx.x] + threadIdx.x % 4], 1u); __syncthreads(); x[threadIdx.x] = s[threadIdx.x % 64]; }
extern "C" __global__ void idle(float* x) { if (threadIdx.x % 32 < 8) for (int k = 0; k < 9; k++) x[threadIdx.x] = sinf(x[threadIdx.x]); }
extern "C" __global__ void contended(float* x) { atomicAdd(&x[threadIdx.x % 2], 1.0f); }
extern "C" __global__ void local(float* x) { float own[8]; for (int k = 0; k < 8; k++) own[k] = x[k * 256 + threadIdx.x]; x[threadIdx.x] = own[(int)x[threadIdx.x + 256] & 7]; }
extern "C" __global__ void fine(float* x) { x[threadIdx.x] = 2 * x[threadIdx.x + 512]; }
extern "C" __global__ void wide(float4* x) { x[threadIdx.x] = x[threadIdx.x + 256]; }
extern "C" __global__ void bytes(unsigned char* x) { x[threadIdx.x] = x[threadIdx.x + 512]; }
extern "C" __global__ void one_thread(float* x) { if (threadIdx.x == 0) x[0] = x[1] + 1; }
"""  # noqa: E501  # because a kernel a line gives each its own advice


def rules(kernel, dtype=np.float32):
    x = cuda.zeros(4096, dtype)
    with cuda.checks("off"), cuda.profile() as p:
        cuda.compile(KERNELS)[kernel][1, 256](x)
        cuda.current_device().synchronize()
    return [(found.rule, found.sentence) for found in advise_on(hot_lines(sources_of(p.launches)))]


@pytest.mark.parametrize(
    ("kernel", "rule", "figure"),
    [
        (
            "strided",
            "stores of more than 1 sector of global memory that use less than 50 % of the bytes moved",
            "12.5 %",
        ),
        (
            "gathered",
            "loads of more than 1 sector of global memory that use less than 50 % of the bytes moved",
            "12.5 %",
        ),
        ("broadcast", "loads of one sector by whole warps that use less than 50 % of it", "12.5 %"),
        ("shifted", "loads by whole warps that use 50 to 95 % of the bytes moved", "80.0 %"),
        (
            "conflicts",
            "accesses of shared memory that take 1.5 times the passes without bank conflicts, or more",
            "passes",
        ),
        (
            "histogram",
            "atomics of shared memory that take 1.5 times the passes without bank conflicts, or more",
            "a histogram of its own",
        ),
        ("idle", "instructions with fewer than 20 active lanes on average", "of 32 lanes"),
        ("contended", "atomics of global memory that take more than 8 sectors on average", "16.0 sectors"),
        ("local", "requests to local memory", "requests go to local memory"),
    ],
)
def test_a_rule_finds_its_mistake(device, kernel, rule, figure):
    found = dict(rules(kernel, np.uint32 if kernel == "histogram" else np.float32))
    assert rule in found
    assert figure in found[rule]


@pytest.mark.parametrize(
    ("kernel", "dtype"), [("fine", np.float32), ("wide", np.float32), ("bytes", np.uint8), ("one_thread", np.float32)]
)
def test_code_without_a_mistake_gets_no_advice_on_its_memory(device, kernel, dtype):
    assert not [rule for rule, _ in rules(kernel, dtype) if "active lanes" not in rule]


def test_lines_that_hardly_count_get_no_advice(device):
    x = cuda.zeros(4096, np.float32)
    module = cuda.compile(KERNELS)
    with cuda.profile() as p:
        module["strided"][1, 32](x)
        for _ in range(200):
            module["fine"][1, 256](x)
    assert advise_on(hot_lines(sources_of(p.launches))) == []


def test_atomics_are_not_told_to_pad_rows(device):
    assert not [sentence for _, sentence in rules("histogram", np.uint32) if "pad the rows" in sentence]


def test_lines_of_cudas_headers_get_no_advice(device, tmp_path, monkeypatch):
    header = tmp_path / "include" / "slow.cuh"
    header.parent.mkdir()
    header.write_text("__device__ void spread(float* x) {\n    x[threadIdx.x * 8] = 1;\n}\n")
    source = tmp_path / "own.cu"
    source.write_text('#include <slow.cuh>\nextern "C" __global__ void k(float* x) { spread(x); }\n')
    x = cuda.zeros(4096, np.float32)
    with cuda.checks("off"), cuda.profile() as p:
        cuda.compile(source, include=[header.parent])["k"][1, 256](x)
    lines = hot_lines(sources_of(p.launches))
    assert [found.line.source.name for found in advise_on(lines)] == [str(header)]
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    assert advise_on(lines) == []
