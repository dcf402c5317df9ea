"""Numerical programs of cuda-samples: transforms, filters, products and random numbers."""

import math

import numpy as np
from scipy import ndimage, signal, special

import cudart_py as cuda

from .program import Array, Build, ceil_div, check_close, check_equal, listed

concept = listed("cuda-samples", "Samples/2_Concepts_and_Techniques/{name}")
feature = listed("cuda-samples", "Samples/3_CUDA_Features/{name}")
domain = listed("cuda-samples", "Samples/5_Domain_Specific/{name}")
performance = listed("cuda-samples", "Samples/6_Performance/{name}")


@concept("convolutionSeparable", "convolutionSeparable.cu")
def convolution_separable(build: Build) -> None:
    """Halos, and a filter in constant memory: convolve rows, then columns, with a constant filter."""
    radius = 8
    module = build(before=f"#define KERNEL_RADIUS {radius}\n#define KERNEL_LENGTH {2 * radius + 1}")
    width, height = 256, 128
    weights, image = build.floats(2 * radius + 1), build.floats(height, width)
    module.symbol("c_Kernel", np.float32).copy_from(weights)
    source, middle, out = cuda.to_device(image), cuda.empty_like(image), cuda.empty_like(image)
    shape = width, height, width
    module["convolutionRowsKernel"][(width // 128, height // 4), (16, 4)](middle, source, *shape)
    module["convolutionColumnsKernel"][(width // 16, height // 64), (16, 8)](out, middle, *shape)
    wanted = signal.convolve(image.astype(np.float64), np.outer(weights, weights), "same")
    check_close(out.to_host(), wanted, 1e-4, 1e-5)


@performance("transpose", "transpose.cu")
def transpose(build: Build) -> None:
    """Eight kernels: copy and transpose a matrix in all eight ways."""
    module = build()
    size = 160  # square, because some of the kernels confuse height and width
    matrix = build.floats(size, size)
    source = cuda.to_device(matrix.ravel())
    tiles = matrix.reshape(size // 32, 32, size // 32, 32)
    wanted = {
        **dict.fromkeys(("copy", "copySharedMem"), matrix),
        **{f"transpose{way}": matrix.T for way in ("Naive", "Coalesced", "NoBankConflicts", "Diagonal")},
        "transposeFineGrained": tiles.transpose(0, 3, 2, 1),  # each tile is transposed in place
        "transposeCoarseGrained": tiles.transpose(2, 1, 0, 3),  # the tiles are exchanged, but not transposed
    }
    for name, result in wanted.items():
        out = cuda.zeros(matrix.size, np.float32)
        module[name][(size // 32, size // 32), (32, 16)](out, source, size, size)
        check_equal(out.to_host(), result.ravel(), name)


@concept("scalarProd", "scalarProd_kernel.cuh")
def scalar_products(build: Build) -> None:
    """More vectors than blocks: compute scalar products of pairs of vectors."""
    module = build(omit=["VECTOR_N", "ELEMENT_N", "DATA_N", "DATA_SZ", "RESULT_SZ"])
    vectors, elements = 21, 2500
    a, b = build.floats(vectors, elements), build.floats(vectors, elements)
    out = cuda.empty(vectors, np.float32)
    module["scalarProdGPU"][8, 256](out, cuda.to_device(a), cuda.to_device(b), vectors, elements)
    check_close(out.to_host(), np.einsum("ij,ij->i", a, b, dtype=np.float64), 1e-4, 1e-4)


@domain("fastWalshTransform", "fastWalshTransform_kernel.cuh")
def fast_walsh_transform(build: Build) -> None:
    """Dynamic shared memory, barriers in loops: transform two vectors and multiply them."""
    module = build()
    log2, batch = 13, 2
    count = 1 << log2
    data = build.floats(batch, count)
    values = cuda.to_device(data)
    left, rest, blocks = count, log2, batch
    while rest > 11:
        module["fwtBatch2Kernel"][(left // 4 // 256, blocks), 256](values, values, left // 4)
        rest, left, blocks = rest - 2, left // 4, blocks * 4
    module["fwtBatch1Kernel"][blocks, left // 4, left * 4](values, values, rest)
    wanted = data.astype(np.float64)
    for bit in range(log2):
        pairs = wanted.reshape(batch, -1, 2, 1 << bit)
        wanted = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
    before = values.to_host()
    check_close(before, wanted.reshape(batch, count), 1e-4, 1e-5)
    module["modulateKernel"][7, 128](values[:1], values[1:], count)
    check_close(values.to_host()[0], before[0].astype(np.float64) * before[1] / count, 1e-5, 1e-6)


@domain("BlackScholes", "BlackScholes_kernel.cuh")
def black_scholes(build: Build) -> None:
    """Approximate math functions: price options, two per thread."""
    module = build()
    count = 4002
    price, strike, years = (build.floats(count, low=a, high=b) for a, b in ((5, 30), (1, 100), (0.25, 10)))
    rate, spread = 0.02, 0.3
    call, put = cuda.empty(count, np.float32), cuda.empty(count, np.float32)
    inputs = [cuda.to_device(one) for one in (price, strike, years)]
    module["BlackScholesGPU"][ceil_div(count // 2, 128), 128](call, put, *inputs, rate, spread, count)
    s, x, t = (one.astype(np.float64) for one in (price, strike, years))
    d1 = (np.log(s / x) + (rate + spread**2 / 2) * t) / (spread * np.sqrt(t))
    n1, n2, discount = special.ndtr(d1), special.ndtr(d1 - spread * np.sqrt(t)), np.exp(-rate * t)
    # The error of the formula for the normal distribution is 7.5e-8, and that of the fast functions a few parts in 1e6.
    check_close(call.to_host(), s * n1 - x * discount * n2, 1e-4, 1e-5)
    check_close(put.to_host(), x * discount * (1 - n2) - s * (1 - n1), 1e-4, 1e-5)


@domain("quasirandomGenerator", "quasirandomGenerator_kernel.cu")
def quasirandom_generator(build: Build) -> None:
    """A table in constant memory, 24-bit products: generate normally distributed quasirandom numbers."""
    dimensions, bits = 3, 31
    sizes = f"#define QRNG_DIMENSIONS {dimensions}\n#define QRNG_RESOLUTION {bits}\n"
    module = build(before=f"{sizes}#define INT_SCALE (1.0f / (float)0x80000001U)")
    table = build.random.integers(0, 2**31, (dimensions, bits), dtype=np.uint32)
    module.symbol("c_Table", np.uint32).copy_from(table.ravel())
    count, seed = 1537, int(build.random.integers(1 << 20))
    out = cuda.empty(dimensions * count, np.float32)
    module["quasirandomGeneratorKernel"][5, (128, dimensions)](out, seed, count)
    numbers = _combined(table, np.arange(seed, seed + count))
    check_close(out.to_host().reshape(dimensions, count), (numbers + 1.0) / 0x80000001, 1e-6)

    normal = cuda.empty(count, np.float32)
    module["inverseCNDKernel"][5, 128](normal, cuda.to_device(numbers[0]), count)
    check_close(special.ndtr(normal.to_host().astype(np.float64)), (numbers[0] + 0.5) / 2**32, 1e-3, 1e-6)


@domain("dwtHaar1D", "dwtHaar1D_kernel.cuh")
def haar_wavelets(build: Build) -> None:
    """Padded shared memory: decompose a signal, level by level within a block."""
    module = build(before="#define INV_SQRT_2 0.70710678118654752440f\n#define LOG_NUM_BANKS 4")
    threads, blocks, levels = 128, 6, 8
    start = build.floats(2 * threads * blocks)
    data, out, final = cuda.to_device(start), cuda.zeros(start.size, np.float32), cuda.empty(blocks, np.float32)
    shared = (2 * threads + 2 * threads // 16) * 4
    module["initValue"][ceil_div(start.size, 256), 256](out, 0.0)
    module["dwtHaar1D"][blocks, threads, shared](data, out, final, levels, threads * blocks, threads)
    wanted, rest = np.zeros(start.size), start.astype(np.float64)
    for _ in range(levels):
        half = rest.size // 2
        wanted[half : 2 * half] = (rest[::2] - rest[1::2]) / math.sqrt(2)
        rest = (rest[::2] + rest[1::2]) / math.sqrt(2)
    check_close(out.to_host()[blocks:], wanted[blocks:], 1e-4, 1e-5)
    check_close(final.to_host(), rest, 1e-4, 1e-5)


@feature("globalToShmemAsyncCopy", "globalToShmemAsyncCopy.cu")
def asynchronous_copies(build: Build) -> None:
    """`cuda::pipeline` with thread scope and with block scope: multiply matrices, copying tiles with `memcpy_async`."""
    # The sample's other kernels are right only for its own data, a matrix of ones: two of them advance their stages by
    # one too many, and those that copy large chunks use A's positions for B.
    size = 16
    ways = ("MultiStageSharedState", "SingleStage")
    names = [f"MatrixMulAsyncCopy{way}<{size}>" for way in ways] + [f"MatrixMulNaive<{size}>"]
    module = build(names)
    rows, inner, columns = 48, 80, 64
    a, b = build.floats(rows, inner), build.floats(inner, columns)
    left, right = cuda.to_device(a), cuda.to_device(b)
    for name in names:
        out = cuda.empty((rows, columns), np.float32)
        producers = 4 if "SharedState" in name else 0
        module[name][(columns // size, rows // size), (size, size + producers)](out, left, right, inner, columns)
        check_close(out.to_host(), a.astype(np.float64) @ b, 1e-4, 1e-5, name)


@performance("cudaGraphsPerfScaling", "cudaGraphPerfScaling.cu")
def delays(build: Build) -> None:
    """Kernels that spin on `clock64` and `%globaltimer`: wait for ticks, and for a latch with a time-out."""
    module = build(omit=["Tracer", "hostData"])
    module["delay"][1, 1](20_000_000)  # about ten milliseconds
    timed_out, elapsed, latch = cuda.zeros(1, np.bool_), cuda.zeros(1, np.int64), cuda.zeros(1, np.int32)
    module["waitWithTimeout"][1, 1](10_000_000, timed_out, elapsed, latch)
    assert timed_out.to_host()[0]
    assert elapsed.to_host()[0] >= 10_000_000
    latch.copy_from(np.ones(1, np.int32))
    module["waitWithTimeout"][1, 1](10**12, timed_out, elapsed, latch)
    assert not timed_out.to_host()[0]


@domain("FDTD3d", "inc/FDTD3dGPUKernel.cuh")
def finite_differences(build: Build) -> None:
    """A queue of planes in registers: apply a stencil to a volume plane by plane, with tiles in shared memory."""
    radius, block = 4, (32, 8)
    module = build(before="#define k_blockDimX 32\n#define k_blockDimMaxY 16")
    nx, ny, nz = 64, 24, 7
    volume, weights = build.floats(nz + 2 * radius, ny + 2 * radius, nx + 2 * radius), build.floats(radius + 1)
    module.symbol("stencil", np.float32).copy_from(weights)
    source, target = cuda.to_device(volume.ravel()), cuda.to_device(volume.ravel())
    module["FiniteDifferencesKernel"][(nx // block[0], ny // block[1]), block](target, source, nx, ny, nz)
    wanted, inside = volume.astype(np.float64), (slice(radius, -radius),) * 3
    arms = [*weights[:0:-1], 0, *weights[1:]]
    sums = weights[0] * wanted + sum(ndimage.correlate1d(wanted, arms, axis) for axis in range(3))
    wanted[inside] = sums[inside]
    check_close(target.to_host().reshape(volume.shape), wanted, 1e-4, 1e-5)


@domain("SobolQRNG", "sobol_gpu.cu")
def sobol(build: Build) -> None:
    """Gray codes: generate Sobol quasirandom numbers, several per thread."""
    module = build(before="#define n_directions 32")
    dimensions, vectors = 3, 3001
    directions = build.random.integers(0, 1 << 32, (dimensions, 32), dtype=np.uint32)
    out = cuda.empty((dimensions, vectors), np.float32)
    module["sobolGPU_kernel"][(8, dimensions), 64](vectors, dimensions, cuda.to_device(directions.ravel()), out)
    codes = np.arange(vectors) ^ (np.arange(vectors) >> 1)
    check_close(out.to_host(), _combined(directions, codes) * 2.0**-32, 1e-6)


def _combined(table: Array, codes: Array) -> Array:
    """Return, for each row and code, the exclusive or of the row's words that the set bits of the code select."""
    chosen = codes >> np.arange(table.shape[1])[:, None] & 1
    return np.bitwise_xor.reduce(table[:, :, None] * chosen.astype(np.uint32), axis=1)
