"""Programs of HeCBench."""

import numpy as np

import cudart_py as cuda

from .program import Array, Build, ceil_div, check_close, check_equal, listed
from .simd import simd_intrinsics_reference

program = listed("HeCBench", "src/{name}-cuda")


@program("convolution1D", "main.cu")
def convolution_1d(build: Build) -> None:
    """`tile[threadIdx.x + j - w / 2]` in dynamic shared memory: convolve, the last time without halos."""
    names = ["conv1d", "conv1d_tiled", "conv1d_tiled_caching"]
    block, count = 64, 64 * 13
    for kind, dtype in (("float", np.float32), ("double", np.float64), ("short", np.int16)):
        module = build([f"{name}<{kind}>" for name in names] + [f"&mask<{kind}>"])
        for width in (3, 5, 9):
            values = build.random.integers(-20, 20, count).astype(dtype)
            weights = np.zeros(10, dtype)
            weights[:width] = build.random.integers(-20, 20, width)
            module.symbol(f"mask<{kind}>", dtype).copy_from(weights)
            source = cuda.to_device(values)
            wanted = np.convolve(values.astype(np.float64), weights[:width][::-1].astype(np.float64), "same")
            for name in names:
                out = cuda.empty(count, dtype)
                tile = {"conv1d": 0, "conv1d_tiled": block + width - 1, "conv1d_tiled_caching": block}[name]
                module[f"{name}<{kind}>"][count // block, block, tile * out.itemsize](source, out, count, width)
                check_equal(out.to_host(), wanted, f"{name}<{kind}>, width {width}")


@program("intrinsics-simd", "main.cu")
def intrinsics_simd(build: Build) -> None:
    """118 intrinsics, including `__vimax_s32_relu`: combine the results of all SIMD intrinsics in one word."""
    count = 3000
    values = build.random.integers(0, 1 << 32, count, dtype=np.uint32)
    values[:8] = 0, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 0x80008000, 0x7FFF7FFF, 0x80808080, 0x7F7F7F7F
    out = cuda.empty(count, np.uint32)
    build()["simd_intrinsics"][ceil_div(count, 256), 256](count, cuda.to_device(values), out)
    check_equal(out.to_host(), simd_intrinsics_reference(values))


@program("threadfence", "main.cu")
def thread_fence(build: Build) -> None:
    """The last block reads what the other blocks stored: compute a sum in one launch."""
    count, block = 10_007, 192
    values = build.random.integers(-50, 50, count).astype(np.float32)
    blocks = ceil_div(count, block)
    done, sums = cuda.zeros(1, np.uint32), cuda.empty(blocks, np.float32)
    kernel = build()["sum"][blocks, block]
    for _ in range(3):
        kernel(cuda.to_device(values), count, done, sums)
        check_equal(sums.to_host()[0], values.sum())


@program("f16atomic", "main.cu")
def half_atomics(build: Build) -> None:
    """Atomics on pairs of 16-bit values: add to pairs of half-precision and bfloat16 numbers."""
    module = build()
    count = 3000
    for kind in ("6__half", "13__nv_bfloat16"):
        name = f"_Z20f16AtomicOnGlobalMemP{kind}i"  # two kernels have the same name in C++
        bfloat = "bfloat" in kind
        out = cuda.zeros(512, np.uint16 if bfloat else np.float16)
        module[name][ceil_div(count, 256), 256](out, count)
        pairs = out.to_host().reshape(256, 2)
        numbers = (pairs.astype(np.uint32) << 16).view(np.float32) if bfloat else pairs
        check_equal(numbers[:, 1], np.bincount(np.arange(count) % 256), name)
        check_equal(numbers[:, 0], np.zeros(256), name)


@program("tqs", "kernel.cu")
def task_queue(build: Build) -> None:
    """A queue of tasks: let blocks take tasks from a queue with an atomic."""
    before = "#define SIGNAL_WORK_KERNEL 0\n#define SIGNAL_NOTWORK_KERNEL 1\nstruct task_t { int id; int op; };"
    module = build(before=before)
    tasks, blocks, threads, rounds = 61, 7, 64, 5
    # Each block finally looks at an element after the last task.
    queue = np.zeros(tasks + blocks, np.dtype([("id", np.int32), ("op", np.int32)]))
    queue["id"][:tasks] = build.random.permutation(tasks)
    queue["op"][:tasks] = build.random.integers(0, 2, tasks)
    data, taken = cuda.zeros(tasks * threads, np.int32), cuda.zeros(1, np.int32)
    module["TaskQueue_gpu"][blocks, threads, 64](cuda.to_device(queue), data, taken, rounds, 0, tasks)
    wanted = np.zeros((tasks, threads), np.int32)
    for task in queue[:tasks]:
        wanted[task["id"]] = task["id"] + threads * (1 if task["op"] else rounds)
    check_equal(data.to_host().reshape(tasks, threads), wanted)
    check_equal(taken.to_host()[0], tasks + blocks)


@program("lebesgue", "kernels.cu")
def lebesgue(build: Build) -> None:
    """`__nv_atomic_load_n`, compare-and-swap on doubles: find the Lebesgue constant of interpolation points."""
    points, places = 9, 700
    x = np.cos((2 * np.arange(points) + 1) * np.pi / (2 * points))
    at = np.sort(build.random.uniform(-1, 1, places))
    most, parts = cuda.zeros(1, np.float64), cuda.empty(points * places, np.float64)
    arguments = most, parts, cuda.to_device(at), cuda.to_device(x), points, places
    build()["kernel"][ceil_div(places, 128), 128](*arguments)
    basis = np.ones((points, places))
    for i in range(points):
        for j in range(points):
            if i != j:
                basis[i] *= (at - x[j]) / (x[i] - x[j])
    check_close(parts.to_host().reshape(points, places), basis, 1e-12, 1e-13)
    check_close(most.to_host()[0], np.abs(basis).sum(axis=0).max(), 1e-12)


@program("keogh", "main.cu")
def keogh(build: Build) -> None:
    """A window in dynamic shared memory: compute lower bounds of the distances between a series and a query."""
    length, count, block = 37, 1500, 128
    series = build.floats(count)
    windows = np.lib.stride_tricks.sliding_window_view(series.astype(np.float64), length)
    means, spreads = windows.mean(axis=1).astype(np.float32), windows.std(axis=1).astype(np.float32)
    lower, upper = build.floats(length, low=-1, high=0), build.floats(length, low=0, high=1)
    out = cuda.zeros(count - length + 1, np.float32)
    inputs = [cuda.to_device(one) for one in (series, means, spreads, lower, upper)]
    kernel = build()["lb_keogh"][ceil_div(count, block), block, (block + length) * 4]
    kernel(*inputs[:3], out, *inputs[3:], length, count)
    values = (windows - means[:, None]) / spreads[:, None]
    above, below = np.maximum(values - upper, 0), np.minimum(values - lower, 0)
    check_close(out.to_host(), (above**2 + below**2).sum(axis=1), 1e-4, 1e-5)


@program("bincount", "main.cu")
def bin_counts(build: Build) -> None:
    """Templates parametrised by type and kind of memory: count floats per bin, in shared and in global memory."""
    names = [f"bincount<int, float, int, DeviceMemoryType::{where}>" for where in ("SHARED", "GLOBAL")]
    module = build(names)
    count, bins = 9001, 37
    values = (build.random.integers(-90, 90, count) + 0.5).astype(np.float32)
    inside = values[np.abs(values) <= 74]
    wanted = np.bincount(((inside + 74) * bins / 148).astype(int), minlength=bins)
    for name, shared in zip(names, (bins * 4, 0), strict=True):
        out = cuda.zeros(bins, np.int32)
        module[name][6, 256, shared](out, cuda.to_device(values), bins, -74.0, 74.0, count, bins)
        check_equal(out.to_host(), wanted, name)


@program("sptrsv", "sptrsv_syncfree.cu")
def triangular_solve(build: Build) -> None:
    """Lanes of a warp that wait for each other's flags: solve a sparse triangular system."""
    before = "#define VALUE_TYPE double\n#define WARP_SIZE 32\n#define WARP_PER_BLOCK 4"
    module = build(before=before)
    rows = 32 * 11 - 5
    matrix = np.tril(build.random.uniform(-1, 1, (rows, rows)) * (build.random.random((rows, rows)) < 0.02), -1)
    matrix += np.diag(build.random.uniform(2, 3, rows))
    pattern = matrix != 0
    pointers = np.concatenate([[0], np.cumsum(pattern.sum(axis=1))]).astype(np.int32)
    columns = np.nonzero(pattern)[1].astype(np.int32)
    right = build.random.uniform(-1, 1, rows)
    starts = np.append(np.arange(0, rows, 32), rows).astype(np.int32)
    flags, x = cuda.zeros(rows, np.int32), cuda.zeros(rows, np.float64)
    # A row reads the column index after its last one.
    arrays = [cuda.to_device(one) for one in (pointers, np.append(columns, np.int32(0)), matrix[pattern])]
    arguments = *arrays, flags, rows, cuda.to_device(right), x, cuda.to_device(starts), starts.size
    module["sptrsv_mix"][ceil_div(rows, 128), 128](*arguments)
    check_close(x.to_host(), np.linalg.solve(matrix, right), 1e-10, 1e-12)


@program("mis", "main.cu")
def independent_set(build: Build) -> None:
    """Threads that wait for bytes that other threads write: find a maximal independent set."""
    module = build()
    count, edges = 700, 1500
    pairs = build.random.integers(0, count, (edges, 2))
    near = np.zeros((count, count), bool)
    near[pairs[:, 0], pairs[:, 1]] = near[pairs[:, 1], pairs[:, 0]] = True
    np.fill_diagonal(near, False)
    pointers = np.concatenate([[0], np.cumsum(near.sum(axis=1))]).astype(np.int32)
    lists = np.nonzero(near)[1].astype(np.int32)
    status = cuda.empty(count, np.uint8)
    index, targets = cuda.to_device(pointers), cuda.to_device(lists)
    module["init"][3, 256](count, lists.size, index, status)
    module["findmins"][3, 256](count, index, targets, status)
    chosen = status.to_host() == 0xFE
    assert not near[np.ix_(chosen, chosen)].any(), "two neighbours are in the set"
    assert (chosen | near[:, chosen].any(axis=1)).all(), "a vertex could be added"


@program("popcount", "main.cu")
def popcount(build: Build) -> None:
    """Byte arithmetic, a table in constant memory: count bits in six ways, some of them byte by byte."""
    module = build()
    count = 1001
    words = build.random.integers(0, 1 << 64, count, dtype=np.uint64)
    module.symbol("lut", np.uint8).copy_from(np.bitwise_count(np.arange(256, dtype=np.uint8)))
    for number in range(1, 7):
        out = cuda.empty(count, np.int32)
        module[f"pc{number}"][ceil_div(count, 256), 256](cuda.to_device(words), out, count)
        check_equal(out.to_host(), np.bitwise_count(words), f"pc{number}")


@program("linearprobing", "linearprobing.h linearprobing.cu")
def linear_probing(build: Build) -> None:
    """Compare-and-swap in a hash table: insert into a hash table, delete, and list the remaining entries."""
    capacity = 4096
    names = ["kHashTableCapacity", "kNumKeyValues"]
    module = build(before=f"const unsigned int kHashTableCapacity = {capacity};", omit=names)
    kind = np.dtype([("key", np.uint32), ("value", np.uint32)])
    pairs = np.zeros(capacity // 2, kind)
    pairs["key"] = build.random.permutation(1 << 20)[: pairs.size]
    pairs["value"] = build.random.integers(0, 1 << 31, pairs.size)
    table = cuda.to_device(np.full(capacity, np.uint32(0xFFFFFFFF)).repeat(2).view(kind))
    gone = pairs[::3]
    left, size = cuda.to_device(np.zeros(pairs.size, kind)), cuda.zeros(1, np.uint32)
    module["k_hashtable_insert"][ceil_div(pairs.size, 128), 128](table, cuda.to_device(pairs), pairs.size)
    module["k_hashtable_delete"][ceil_div(gone.size, 128), 128](table, cuda.to_device(gone), gone.size)
    module["k_iterate_hashtable"][capacity // 128, 128](table, left, size)
    wanted = pairs[np.arange(pairs.size) % 3 != 0]
    got = left.to_host()[: size.to_host()[0]]
    check_equal(np.sort(got, order="key"), np.sort(wanted, order="key"))


@program("chacha20", "chacha20.h main.cu")
def chacha20(build: Build) -> None:
    """Access to single bytes of words in local memory: generate a key stream from a key in hexadecimal digits."""
    module = build()
    key, nonce, count = build.random.bytes(32), build.random.bytes(8), 200
    digits = np.zeros(256, np.uint8)
    for value, digit in enumerate("0123456789abcdef"):
        digits[ord(digit)] = value
    texts = [np.frombuffer(one.hex().encode(), np.int8) for one in (key, nonce, bytes(count))]
    raw = [cuda.empty(text.size // 2, np.uint8) for text in texts]
    out = cuda.zeros(count, np.uint8)
    inputs = [cuda.to_device(one) for one in (*texts, digits)]
    module["test_keystreams"][1, 1](*inputs, *raw, out, *(text.size for text in texts))
    check_equal(raw[0].to_host(), np.frombuffer(key, np.uint8))
    check_equal(out.to_host(), _key_stream(key, nonce, count))


def _key_stream(key: bytes, nonce: bytes, count: int) -> Array:
    """Return ChaCha20's key stream for a nonce of eight bytes and a counter that starts at zero."""
    words = np.frombuffer(b"expand 32-byte k" + key + bytes(8) + nonce, np.uint32)
    blocks = []
    for number in range(ceil_div(count, 64)):
        state = words.copy()
        state[12] = number
        mixed = state.copy()
        for turn in range(20):
            shift = turn % 2
            for column in range(4):
                a, b, c, d = (4 * row + (column + shift * row) % 4 for row in range(4))
                for first, second, third, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                    mixed[first] += mixed[second]
                    mixed[third] ^= mixed[first]
                    mixed[third] = (mixed[third] << np.uint32(bits)) | (mixed[third] >> np.uint32(32 - bits))
        blocks.append(mixed + state)
    return np.concatenate(blocks).view(np.uint8)[:count]
