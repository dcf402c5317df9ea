"""Programs of cuda-samples in which threads cooperate: sums, scans, histograms, groups and clocks."""

import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

import cudart_py as cuda

from .program import Build, ceil_div, check_close, check_equal, listed

concept = listed("cuda-samples", "Samples/2_Concepts_and_Techniques/{name}")
feature = listed("cuda-samples", "Samples/3_CUDA_Features/{name}")
histogram = listed("cuda-samples", "Samples/2_Concepts_and_Techniques/histogram")
introduction = listed("cuda-samples", "Samples/0_Introduction/{name}")


@concept("threadFenceReduction", "threadFenceReduction_kernel.cuh")
def thread_fence_reduction(build: Build) -> None:
    """The last block reads what the other blocks stored: compute a sum in one launch."""
    threads = 128
    names = ("reduceMultiPass", "reduceSinglePass")
    module = build([f"{name}<{threads}, {power}>" for name in names for power in ("true", "false")])
    for count, power in ((1 << 15, "true"), (54321, "false"), (77, "false")):
        values = build.floats(count, low=0)
        data = cuda.to_device(values)
        blocks = min(64, ceil_div(count, 2 * threads))
        sums = cuda.empty(blocks, np.float32)
        wanted = values.sum(dtype=np.float64)
        for _ in range(2):  # the second launch needs the first to have reset the count of finished blocks
            module[f"reduceSinglePass<{threads}, {power}>"][blocks, threads, threads * 4](data, sums, count)
            check_close(sums.to_host()[0], wanted, 1e-5, what="reduceSinglePass")
        module[f"reduceMultiPass<{threads}, {power}>"][blocks, threads, threads * 4](data, sums, count)
        check_close(sums.to_host().sum(dtype=np.float64), wanted, 1e-5, what="reduceMultiPass")


@concept("reduction", "reduction_kernel.cu")
def reduction(build: Build) -> None:
    """Ten kernels, one of which uses `block_tile_memory`: compute sums, from the slowest kernel to groups of warps."""
    # reduce7 is right only for integers, which a warp adds with one instruction. For other types, it shuffles from
    # lanes outside its member mask, whose values are undefined.
    threads = 128
    for dtype, name in ((np.int32, "int"), (np.float32, "float"), (np.float64, "double")):
        kernels = [f"reduce{k}<{name}>" for k in range(4)] + [f"reduce{k}<{name}, {threads}>" for k in (4, 5)]
        kernels += [f"cg_reduce<{name}>", f"multi_warp_cg_reduce<{name}, {threads}, 64>"]
        last = (6, 7) if name == "int" else (6,)
        forms = {power: [f"reduce{k}<{name}, {threads}, {power}>" for k in last] for power in ("true", "false")}
        module = build([*kernels, *forms["true"], *forms["false"]], omit=["isPow2"])
        for count, power in ((1 << 13, "true"), (10007, "false")):
            numbers = build.random.integers(0, 1000, count)
            values = (numbers if name == "int" else numbers / 7).astype(dtype)
            data = cuda.to_device(values)
            for kernel in (*kernels, *forms[power]):
                once = kernel.startswith(("reduce0", "reduce1", "reduce2"))
                blocks = ceil_div(count, threads if once else 2 * threads)
                sums = cuda.zeros(blocks, dtype)
                module[kernel][blocks, threads, threads * dtype().itemsize](data, sums, count)
                check_close(sums.to_host().sum(dtype=np.float64), values.sum(dtype=np.float64), 1e-5, what=kernel)


@concept("scan", "scan.cu")
def scan(build: Build) -> None:
    """`cg::sync` in inlined functions: scan short arrays within blocks, and long arrays in three launches."""
    module = build()
    threads = 256
    for length, arrays in ((4 * threads, 7), (4 * threads * 16, 3)):
        values = build.random.integers(0, 1 << 16, (arrays, length), dtype=np.uint32)
        source, out = cuda.to_device(values.ravel()), cuda.empty(values.size, np.uint32)
        blocks = values.size // (4 * threads)
        part = min(length, 4 * threads)
        module["scanExclusiveShared"][blocks, threads](out, source, part)
        if length > part:
            sums = cuda.empty(blocks, np.uint32)
            size = length // part
            module["scanExclusiveShared2"][ceil_div(blocks, threads), threads](sums, out, source, blocks, size)
            module["uniformUpdate"][blocks, threads](out, sums)
        wanted = np.cumsum(values, axis=1, dtype=np.uint32) - values
        check_equal(out.to_host().reshape(values.shape), wanted)


@concept("shfl_scan", "shfl_scan.cu")
def shuffle_scan(build: Build) -> None:
    """Shuffles within a whole warp and within 8 lanes: scan within warps, then scan the sums of the blocks."""
    module = build(omit=["shuffle_simple_test", "shuffle_integral_image_test"])
    threads, blocks = 256, 256
    values = build.random.integers(-50, 50, threads * blocks).astype(np.int32)
    data, sums = cuda.to_device(values), cuda.empty(blocks, np.int32)
    module["shfl_scan_test"][blocks, threads, threads // 32 * 4](data, 32, sums)
    module["shfl_scan_test"][1, blocks, blocks // 32 * 4](sums, 32, cuda.empty(1, np.int32))
    module["uniform_add"][blocks - 1, threads](data[threads:], sums, values.size - threads)
    check_equal(data.to_host(), np.cumsum(values, dtype=np.int32))


@histogram("histogram64", "histogram_common.h histogram64.cu")
def histogram64(build: Build) -> None:
    """One-byte counters in shared memory: count in one byte per thread and bin, then add."""
    _histogram(build, 64, 64, lambda data: data >> 2)


@histogram("histogram256", "histogram_common.h histogram256.cu")
def histogram256(build: Build) -> None:
    """Atomics in shared memory: count in one histogram per warp, then add."""
    _histogram(build, 256, 192, lambda data: data)


def _histogram(build: Build, bins: int, threads: int, bin_of: Callable[[Any], Any]) -> None:
    module = build()
    count = 48_016
    data = np.minimum(build.random.geometric(0.02, count), 255).astype(np.uint8)
    words = count // (16 if bins == 64 else 4)
    blocks = 19
    parts, out = cuda.empty(blocks * bins, np.uint32), cuda.empty(bins, np.uint32)
    source = cuda.to_device(data.view(np.uint32))
    module[f"histogram{bins}Kernel"][blocks, threads](parts, source, words)
    module[f"mergeHistogram{bins}Kernel"][bins, 256](out, parts, blocks)
    check_equal(out.to_host(), np.bincount(bin_of(data), minlength=bins).astype(np.uint32))


@feature("warpAggregatedAtomicsCG", "warpAggregatedAtomicsCG.cu")
def warp_aggregated_atomics(build: Build) -> None:
    """Coalesced and labeled groups: filter and sort with one atomic for the threads that agree."""
    module = build()
    count, buckets = 20_011, 17
    values = build.random.integers(-100, 100, count).astype(np.int32)
    out, kept = cuda.zeros(count, np.int32), cuda.zeros(1, np.int32)
    module["filter_arr"][23, 512](out, kept, cuda.to_device(values), count)
    positive = values[values > 0]
    check_equal(kept.to_host()[0], positive.size)
    check_equal(np.sort(out.to_host()[: positive.size]), np.sort(positive))

    labels = build.random.integers(0, buckets, count).astype(np.int32)
    bound = int(np.bincount(labels).max())
    counts = cuda.to_device(np.arange(buckets, dtype=np.int32) * bound)
    places = cuda.zeros(bound * buckets, np.int32)
    module["mapToBuckets"][13, 96](cuda.to_device(labels), places, counts, count, buckets)
    sizes = counts.to_host() - np.arange(buckets) * bound
    check_equal(sizes, np.bincount(labels, minlength=buckets))
    rows = places.to_host().reshape(buckets, bound)
    for bucket in range(buckets):
        check_equal(np.sort(rows[bucket, : sizes[bucket]]), np.flatnonzero(labels == bucket))

    most = cuda.full(buckets, -1000, np.int32)
    arguments = cuda.to_device(labels), cuda.to_device(values), most, count, buckets
    module["calculateMaxInEachBuckets"][13, 96](*arguments)
    check_equal(most.to_host(), [values[labels == bucket].max() for bucket in range(buckets)])


@feature("binaryPartitionCG", "binaryPartitionCG.cu")
def binary_partition(build: Build) -> None:
    """Groups created by `binary_partition`: count and sum odd and even numbers in partitions of each warp."""
    blocks, threads = 7, 160
    count = blocks * threads * 9  # all threads of a warp must take part in each round
    values = build.random.integers(0, 51, count).astype(np.int32)
    odd, sums = cuda.zeros(1, np.int32), cuda.zeros(2, np.int32)
    build()["oddEvenCountAndSumCG"][blocks, threads](cuda.to_device(values), odd, sums, count)
    is_odd = values % 2 == 1
    check_equal(odd.to_host()[0], is_odd.sum())
    check_equal(sums.to_host(), [values[is_odd].sum(), values[~is_odd].sum()])


@introduction("simpleCooperativeGroups", "simpleCooperativeGroups.cu")
def simple_cooperative_groups(build: Build) -> None:
    """Groups whose type is known only at run time: sum in a block and in tiles of 16 threads, and print sums."""
    threads = 128
    said = _printed(build()["cgkernel"][1, threads, threads * 4])
    sums = [tuple(map(int, pair)) for pair in re.findall(r"is (\d+) \(expected (\d+)\)", said)]
    assert len(sums) == 1 + threads // 16, said
    assert all(got == wanted for got, wanted in sums), said


def _printed(launch: Callable[[], object]) -> str:
    """Return the text that a launch prints to the process's standard output, through Python's file or C's."""
    sys.stdout.flush()
    saved = os.dup(1)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            launch()
            cuda.Device(0).synchronize()
            sys.stdout.flush()
            ctypes.CDLL(None).fflush(None)
        finally:
            os.dup2(saved, 1)
            os.close(saved)
        file.seek(0)
        return file.read().decode()


@introduction("simpleHyperQ", "simpleHyperQ.cu")
def simple_hyper_q(build: Build) -> None:
    """Kernels that spin on the clock in several streams: wait in the kernels, then add their waiting times."""
    module = build()
    ticks, streams = 20_000_000, [cuda.Stream() for _ in range(8)]  # about ten milliseconds each
    waited = cuda.zeros(2 * len(streams), np.int64)
    for number, stream in enumerate(streams):
        for half, name in enumerate(("kernel_A", "kernel_B")):
            place = 2 * number + half
            module[name][1, 1, 0, stream](waited[place : place + 1], ticks)
    for stream in streams:
        stream.synchronize()
    each = waited.to_host()
    assert (each >= ticks).all(), each
    module["sum"][1, 32](waited, each.size)
    check_equal(waited.to_host()[0], each.sum())


@introduction("clock", "clock.cu")
def clock(build: Build) -> None:
    """The kernel reads the clock: find minima, and read the clock before and after."""
    blocks, threads = 12, 256
    values = build.floats(2 * threads)
    out, times = cuda.empty(blocks, np.float32), cuda.zeros(2 * blocks, np.int64)
    build()["timedReduction"][blocks, threads, 2 * threads * 4](cuda.to_device(values), out, times)
    check_equal(out.to_host(), np.full(blocks, values.min()))
    begin, end = times.to_host().reshape(2, blocks)
    assert (end > begin).all()


@introduction("simpleAWBarrier", "simpleAWBarrier.cu")
def arrive_wait_barrier(build: Build) -> None:
    """`cuda::barrier`, and a grid-wide barrier: divide two vectors by the square root of their dot product."""
    module = build()
    blocks, threads, count = 8, 128, 5003
    a, b = build.floats(count, low=0.1), build.floats(count, low=0.1)
    first, second, sums = cuda.to_device(a), cuda.to_device(b), cuda.zeros(blocks, np.float64)
    kernel = module["normVecByDotProductAWBarrier"]
    kernel.configure(blocks, threads, threads // 32 * 8, cooperative=True)(first, second, sums, count)
    root = np.sqrt(np.dot(a.astype(np.float64), b))
    check_close(first.to_host(), a / root, 1e-5)
    check_close(second.to_host(), b / root, 1e-5)
