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


@pytest.fixture(scope="module")
def kernels():
    with cuda.Device(0):
        return cuda.compile(KERNELS)


def advice(launch, dtype=np.float32):
    """Return the rules that say something of a launch on zeros, with their sentences."""
    x = cuda.zeros(4096, dtype)
    with cuda.checks("off"), cuda.profile() as p:
        launch(x)
        cuda.current_device().synchronize()
    return {found.rule: found.sentence for found in advise_on(hot_lines(sources_of(p.launches)))}


@pytest.mark.parametrize(
    ("kernel", "rule", "figure"),
    [
        ("strided", "stores of more than 1 sector", "12.5 %"),
        ("gathered", "loads of more than 1 sector", "12.5 %"),
        ("broadcast", "loads of one sector", "12.5 %"),
        ("shifted", "loads by whole warps that use 50 to 95 %", "80.0 %"),
        ("conflicts", "accesses of shared memory", "pad the rows"),
        ("histogram", "atomics of shared memory", "a histogram of its own"),
        ("idle", "fewer than 20 active lanes", "of 32 lanes"),
        ("contended", "atomics of global memory", "16.0 sectors"),
        ("local", "requests to local memory", "requests go to local memory"),
        ("fine", None, None),
        ("wide", None, None),
        ("bytes", None, None),
        ("one_thread", None, None),
    ],
)
def test_a_rule_finds_its_mistake_and_code_without_one_gets_no_advice_on_its_memory(
    device, kernels, kernel, rule, figure
):
    found = advice(kernels[kernel][1, 256], {"histogram": np.uint32, "bytes": np.uint8}.get(kernel, np.float32))
    if rule is None:
        assert not [rule for rule in found if "active lanes" not in rule]
    else:
        (sentence,) = [sentence for name, sentence in found.items() if rule in name]
        assert figure in sentence
    assert kernel != "histogram" or not any("pad the rows" in sentence for sentence in found.values())


def test_lines_that_hardly_count_get_no_advice(device, kernels):
    def launches(x):
        kernels["strided"][1, 32](x)
        for _ in range(200):
            kernels["fine"][1, 256](x)

    assert advice(launches) == {}


def test_lines_of_cudas_headers_get_no_advice(device, tmp_path, monkeypatch):
    header = tmp_path / "include" / "slow.cuh"
    header.parent.mkdir()
    header.write_text("__device__ void spread(float* x) {\n    x[threadIdx.x * 8] = 1;\n}\n")
    source = '#include <slow.cuh>\nextern "C" __global__ void k(float* x) { spread(x); }\n'
    kernel = cuda.compile(source, include=[header.parent])["k"]
    assert len(advice(kernel[1, 256])) == 1
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    assert advice(kernel[1, 256]) == {}
