"""Kernels launch kernels: the order of grids, parameters, errors, and what checks and profiles see."""

import re

import numpy as np
import pytest

from cudart_py.compilation import headers
from cudart_py.compilation.programs import library_path, library_version, run_nvrtc
from cudart_py.simulator import driver
from tests.simulator.support import Status, download, ok, upload

SOURCE = r"""
struct Wide { char tag; double scale; int values[3]; };

extern "C" __global__ void leaf(int *out, int value, Wide wide, short step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = value + wide.tag + (int)wide.scale + wide.values[2] + step * threadIdx.x;
}
extern "C" __global__ void each(int *out) {
    Wide wide{'a', 2.5, {1, 2, (int)threadIdx.x}};
    leaf<<<2, 3>>>(out + 6 * threadIdx.x, 1000 * threadIdx.x, wide, (short)-1);
}
// Appends its number to the list.
__device__ int count;
extern "C" __global__ void note(int *list, int number) { list[count++] = number; }
extern "C" __global__ void inner(int *list, int number) {
    note<<<1, 1, 0, cudaStreamTailLaunch>>>(list, number + 2);
    note<<<1, 1>>>(list, number + 1);
    list[count++] = number;
}
extern "C" __global__ void outer(int *list) {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    note<<<1, 1, 0, cudaStreamTailLaunch>>>(list, 90);
    inner<<<1, 1, 0, cudaStreamTailLaunch>>>(list, 91);
    inner<<<1, 1>>>(list, 10);
    inner<<<1, 1, 0, stream>>>(list, 20);
    note<<<1, 1, 0, cudaStreamFireAndForget>>>(list, 30);
    note<<<1, 1, 0, cudaStreamTailLaunch>>>(list, 99);
    cudaStreamDestroy(stream);
    list[count++] = 1;
}
extern "C" __global__ void again(int *list, int left) {
    list[0]++;
    if (left) again<<<1, 1, 0, cudaStreamTailLaunch>>>(list, left - 1);
}
extern "C" __global__ void deeper(int *list, int depth) {
    list[0] = depth;
    deeper<<<1, 1>>>(list, depth + 1);
    list[1] = cudaGetLastError();
}
extern "C" __global__ void wrong(int *out) {
    Wide wide{};
    out[0] = cudaGetLastError();
    leaf<<<1, 2000>>>(out, 0, wide, 0);
    out[1] = cudaPeekAtLastError();
    out[2] = cudaGetLastError();
    out[3] = cudaGetLastError();
    leaf<<<1, 1, 1 << 20>>>(out, 0, wide, 0);
    out[4] = cudaGetLastError();
    cudaStream_t stream;
    out[5] = cudaStreamCreateWithFlags(&stream, 0);
    out[6] = cudaMemsetAsync((void *)16, 0, 8, 0);
    out[7] = cudaDeviceGetAttribute(out + 8, cudaDevAttrMaxThreadsPerBlock, 99);
}
extern "C" __global__ void partly_wrong(int *out) {
    out += 2 * threadIdx.x;
    out[1] = cudaDeviceGetAttribute(out, cudaDevAttrWarpSize, 3 * (threadIdx.x % 2));
}
extern "C" __global__ void texts(char *out) {
    const char *words[3] = {cudaGetErrorName(cudaErrorInvalidConfiguration), cudaGetErrorString(cudaErrorInvalidValue),
                            cudaGetErrorName((cudaError_t)12345)};
    for (const char *word : words) {
        for (; *word; ++word) *out++ = *word;
        *out++ = ';';
    }
}
extern "C" __global__ void queries(int *out) {
    cudaGetDevice(out + threadIdx.x * 4);
    cudaGetDeviceCount(out + threadIdx.x * 4 + 1);
    cudaDeviceGetAttribute(out + threadIdx.x * 4 + 2, cudaDevAttrComputeCapabilityMajor, 0);
    cudaDeviceGetAttribute(out + threadIdx.x * 4 + 3, threadIdx.x ? cudaDevAttrWarpSize : cudaDevAttrMaxGridDimY, 0);
}
extern "C" __global__ void moved(int *out, int *from) {
    int *scratch;
    cudaMalloc((void **)&scratch, 8);
    *scratch = 5;
    out[0] = *scratch;
    cudaFree(scratch);
    cudaMemcpyAsync(out + 1, from, 8, cudaMemcpyDeviceToDevice, 0);
    cudaMemsetAsync(from, 0xFF, 4, 0);
    from[0] = 11;
}
extern "C" __global__ void out_of_bounds(int *out) { out[1 << 20] = 1; }
extern "C" __global__ void launches_wrong(int *out) { out_of_bounds<<<1, 1>>>(out); }
extern "C" __global__ void averages(unsigned *out) {
    asm("vavrg4.u32.u32.u32 %0, %1, %1, %1;" : "=r"(out[0]) : "r"(threadIdx.x));
}
extern "C" __global__ void launches_averages(unsigned *out) { averages<<<1, 1>>>(out); }
extern "C" __global__ void not_now(int *out, bool now) { if (now) leaf<<<1, 1>>>(out, 0, Wide{}, 0); else out[0] = 3; }
"""


@pytest.fixture(scope="module")
def ptx():
    folders = headers.find(library_version(), library_path()).folders
    options = ["--gpu-architecture=compute_90", "-rdc=true", "--std=c++17", *(f"-I{folder}" for folder in folders)]
    return run_nvrtc(SOURCE.encode(), name="launches.cu", options=options).ptx


@pytest.fixture(params=["numpy", "auto"])
def module(context, ptx, request, monkeypatch):
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", request.param)
    return ok(driver.cuModuleLoadData(ptx))


def launch(module, name, threads, *arguments):
    function = ok(driver.cuModuleGetFunction(module, name.encode()))
    values = [np.array(value, kind) for value, kind in arguments]
    pointers = np.array([value.ctypes.data for value in values], np.uint64)
    ok(driver.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, 0, pointers.ctypes.data, 0))
    return driver.cuCtxSynchronize()[0]


def run(module, name, count, *, threads=1, more=()):
    out = upload(np.full(count, -1, np.int32))
    assert launch(module, name, threads, (out, np.uint64), *more) == Status.CUDA_SUCCESS, driver.take_report()
    return download(out, count, np.int32).tolist()


def test_each_thread_passes_its_own_parameters(module):
    found = np.array(run(module, "each", 24, threads=4)).reshape(4, 2, 3)
    thread, _, place = np.indices((4, 2, 3))
    np.testing.assert_array_equal(found, 1000 * thread + ord("a") + 2 + thread - place)


def test_grids_run_in_the_order_of_their_streams(module):
    """A grid ends after the grids that it has launched, and then comes its tail, whose grids may have their own."""
    found = run(module, "outer", 14)
    assert found == [1, 10, 11, 12, 20, 21, 22, 30, 90, 91, 92, 93, 99, -1]


def test_a_chain_of_tail_launches_may_be_long(module):
    assert run(module, "again", 1, more=[(200, np.int32)]) == [200]


def test_kernels_nest_to_a_depth_of_24(module):
    assert run(module, "deeper", 2, more=[(0, np.int32)]) == [24, 65]


def test_errors_are_those_of_the_thread(module):
    configuration, value, device = 9, 1, 101
    expected = [0, configuration, configuration, 0, configuration, value, value, device, -1]
    assert run(module, "wrong", 9) == expected


def test_a_lane_with_an_error_gets_no_value(module):
    assert run(module, "partly_wrong", 8, threads=4) == [32, 0, -1, 101] * 2


def test_errors_have_names_and_descriptions(module):
    out = upload(np.zeros(200, np.uint8))
    assert launch(module, "texts", 1, (out, np.uint64)) == Status.CUDA_SUCCESS
    name, text, unknown = bytes(download(out, 200)).rstrip(b"\0").decode().split(";")[:3]
    assert (name, text, unknown) == ("cudaErrorInvalidConfiguration", "invalid argument", "unrecognized error code")


def test_the_device_is_known(module):
    assert run(module, "queries", 8, threads=2) == [0, 2, 9, 65535, 0, 2, 9, 32]


def test_copies_and_fills_run_after_the_grid(module):
    source = upload(np.array([7, 8], np.int32))
    assert run(module, "moved", 3, more=[(source, np.uint64)]) == [5, 11, 8]
    assert download(source, 2, np.int32).tolist() == [-1, 8]


def test_a_fault_of_a_child_names_the_child(module):
    out = upload(np.zeros(1, np.int32))
    assert launch(module, "launches_wrong", 1, (out, np.uint64)) == Status.CUDA_ERROR_ILLEGAL_ADDRESS
    assert re.search("kernel out_of_bounds .* global write", driver.take_report())


def test_a_child_that_is_not_simulated_is_refused(module):
    out = upload(np.zeros(1, np.int32))
    assert launch(module, "launches_averages", 1, (out, np.uint64)) == Status.CUDA_ERROR_NOT_SUPPORTED
    assert "an instruction of kernel averages" in driver.take_report()
    assert run(module, "not_now", 1, more=[(False, np.uint8)]) == [3]
