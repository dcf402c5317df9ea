"""Programs of cuda-samples that sort and search."""

import numpy as np

import cudart_py as cuda

from .program import Build, ceil_div, check_close, check_equal, listed

Pair = tuple[cuda.DeviceArray, cuda.DeviceArray]
concept = listed("cuda-samples", "Samples/2_Concepts_and_Techniques/{name}")
introduction = listed("cuda-samples", "Samples/0_Introduction/{name}")


@concept("sortingNetworks", "sortingNetworks_common.cuh bitonicSort.cu oddEvenMergeSort.cu")
def sorting_networks(build: Build) -> None:
    """Barriers in nested loops: sort keys with their values, with bitonic and odd-even merge networks."""
    module = build()
    limit = 1024
    for network in ("bitonic", "oddEven"):
        for length, arrays in ((64, 32), (limit, 2), (4 * limit, 1)):
            for direction in (0, 1):
                keys = build.random.integers(0, 1 << 16, length * arrays, dtype=np.uint32)
                inputs = cuda.to_device(keys), cuda.to_device(np.arange(keys.size, dtype=np.uint32))
                outs = cuda.empty(keys.size, np.uint32), cuda.empty(keys.size, np.uint32)
                _sort(module, network, outs, inputs, length, direction, limit)
                got, places = outs[0].to_host(), outs[1].to_host()
                wanted = np.sort(keys.reshape(arrays, length), axis=1)
                check_equal(got.reshape(arrays, length), wanted if direction else wanted[:, ::-1], network)
                check_equal(keys[places], got, network)


def _sort(module: cuda.Module, network: str, outs: Pair, inputs: Pair, length: int, direction: int, limit: int) -> None:
    """Launch the kernels of a network for contiguous arrays of equal length."""
    count, half = outs[0].size, limit // 2
    whole = {"bitonic": "bitonicSortShared", "oddEven": "oddEvenMergeSortShared"}[network]
    if length <= limit:
        module[whole][count // limit, half](*outs, *inputs, length, direction)
        return
    if network == "bitonic":
        module["bitonicSortShared1"][count // limit, half](*outs, *inputs)
    else:
        module[whole][count // limit, half](*outs, *inputs, limit, direction)
    size = 2 * limit
    while size <= length:
        stride = size // 2
        while stride:
            if network == "bitonic" and stride < limit:
                module["bitonicMergeShared"][count // limit, half](*outs, *outs, length, size, direction)
                break
            kernel = module["bitonicMergeGlobal" if network == "bitonic" else "oddEvenMergeGlobal"]
            kernel[count // 512, 256](*outs, *outs, length, size, stride, direction)
            stride //= 2
        size *= 2


@introduction("mergeSort", "mergeSort_common.h mergeSort.cu")
def merge_sort(build: Build) -> None:
    """Searches in divergent threads between barriers: sort within blocks, then merge longer and longer pieces."""
    part, sample, count = 1024, 128, 4096
    names = ("mergeSortSharedKernel", "generateSampleRanksKernel", "mergeElementaryIntervalsKernel")
    module = build([f"{name}<{direction}u>" for name in names for direction in (0, 1)])
    for direction in (0, 1):
        share, rank, merge = (module[f"{name}<{direction}u>"] for name in names)
        keys = build.random.integers(0, 1 << 12, count, dtype=np.uint32)
        source = cuda.to_device(keys), cuda.to_device(np.arange(count, dtype=np.uint32))
        target = cuda.empty(count, np.uint32), cuda.empty(count, np.uint32)
        share[count // part, part // 2](*target, *source, part)
        stride, threads = part, count // (2 * sample)
        while stride < count:
            source, target = target, source
            ranks, limits = ([cuda.empty(count // sample, np.uint32) for _ in range(2)] for _ in range(2))
            rank[ceil_div(threads, 256), 256](*ranks, source[0], stride, count, threads)
            for limit, of in zip(limits, ranks, strict=True):
                module["mergeRanksAndIndicesKernel"][ceil_div(threads, 256), 256](limit, of, stride, count, threads)
            merge[count // sample, sample](*target, *source, *limits, stride, count)
            stride *= 2
        order = np.argsort(keys if direction else -keys.astype(np.int64), kind="stable")
        check_equal(target[0].to_host(), keys[order])
        check_equal(target[1].to_host(), order, "the sort is stable")


@concept("eigenvalues", "config.h bisect_util.cu bisect_kernel_small.cuh")
def eigenvalues(build: Build) -> None:
    """Fourteen `cg::sync` calls in a loop, inlined from many functions: find eigenvalues of a tridiagonal matrix."""
    module = build(before="static inline __device__ float sign_f(const float &val) { return val < 0 ? -1.f : 1.f; }")
    size, block = 109, 512
    diagonal, beside = build.floats(size), build.floats(size)
    beside[0] = 0
    matrix = np.diag(diagonal.astype(np.float64)) + np.diag(beside[1:], 1) + np.diag(beside[1:], -1)
    radius = np.abs(np.pad(beside[1:], (1, 0))) + np.abs(np.pad(beside[1:], (0, 1)))
    low, high = float((diagonal - radius).min()) - 0.125, float((diagonal + radius).max()) + 0.125
    left, right = cuda.zeros(size, np.float32), cuda.zeros(size, np.float32)
    counts = cuda.zeros(size, np.uint32), cuda.zeros(size, np.uint32)
    # The kernel also reads the off-diagonal element before its first one, so it gets the array from element 1 on.
    edge = cuda.to_device(beside)[1:]
    bounds = [float(np.float32(one)) for one in (low, high)]
    arguments = cuda.to_device(diagonal), edge, size, left, right, *counts, *bounds, 0, size, float(np.float32(1e-6))
    module["bisectKernel"][1, block](*arguments)
    check_close(left.to_host()[np.argsort(counts[0].to_host())], np.linalg.eigvalsh(matrix), 1e-4, 1e-5)
