"""Programs in llm.c's folder dev/cuda."""

import numpy as np
from scipy import special

import cudart_py as cuda

from .program import Array, Build, ceil_div, check_close, listed

program = listed("llm.c", "dev/cuda")

COOPERATIVE = "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n"
BF16 = "#include <cuda_bf16.h>\n#define ENABLE_BF16\n"


def to_bf16(values: Array) -> Array:
    """Return the bits of single-precision numbers rounded to bfloat16, ties to even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits: Array) -> Array:
    """Return the values of bfloat16 bit patterns in double precision."""
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


@program(
    "softmax_forward",
    "common.h softmax_forward.cu",
    own=("softmax_forward_kernel4", "softmax_forward_kernel7"),
    why="kernel 4 stores sums where maxima may not have been read yet, kernel 7 reads, but does not use, a last "
    "element that another thread writes",
)
def softmax_forward(build: Build) -> None:
    """Eight kernels, `cg::reduce` with a structure: compute softmax, from one thread per row to one block per row."""
    module = build(before=COOPERATIVE)
    rows, columns = 37, 1003
    values = build.floats(rows, columns, low=-5, high=5)
    source = cuda.to_device(values)
    wanted = special.softmax(values.astype(np.float64), axis=1)
    shapes = {
        "softmax_forward_kernel1": (2, 32, 0),
        "softmax_forward_kernel2": (rows, 128, 128 * 4),
        "softmax_forward_kernel3": (rows, 32, 0),
        "softmax_forward_kernel4": (rows, 256, 8 * 4),
        "softmax_forward_online_kernel1": (2, 32, 0),
        "softmax_forward_online_kernel2": (ceil_div(rows, 4), 128, 0),
        "softmax_forward_kernel7": (rows, 128, 2 * 4 * 4),
        "softmax_forward_online_kernel8": (ceil_div(rows, 4), 128, 0),
    }
    for name, shape in shapes.items():
        out = cuda.zeros((rows, columns), np.float32)
        module[name][shape](out, source, rows, columns)
        check_close(out.to_host(), wanted, 1e-5, what=name)


@program("layernorm_forward", "common.h layernorm_forward.cu")
def layernorm_forward(build: Build) -> None:
    """Five kernels, tiles that return early: normalise rows with each of five kernels."""
    module = build(before=COOPERATIVE)
    rows, columns, block = 35, 769, 128
    values, weight, bias = build.floats(rows, columns), build.floats(columns), build.floats(columns)
    inputs = [cuda.to_device(one) for one in (values, weight, bias)]
    x = values.astype(np.float64)
    means, scales = x.mean(axis=1), 1 / np.sqrt(x.var(axis=1) + 1e-5)
    wanted = (x - means[:, None]) * scales[:, None] * weight + bias
    grids = {1: ceil_div(rows, block), 3: ceil_div(rows, 4), 4: ceil_div(rows, 4), 5: rows}
    for number in (1, 2, 3, 4, 5):
        out, mean, scale = (cuda.empty(size, np.float32) for size in ((rows, columns), rows, rows))
        if number == 2:
            module["mean_kernel"][rows, block, block * 4](mean, inputs[0], rows, columns, block)
            module["rstd_kernel"][rows, block, block * 4](scale, inputs[0], mean, rows, columns, block)
            # The kernel checks no bound, so the launch has exactly one thread per element.
            kernel = module["normalization_kernel"][rows * columns // 5, 5]
            kernel(out, inputs[0], mean, scale, *inputs[1:], 1, rows, columns)
        else:
            kernel = module[f"layernorm_forward_kernel{number}"][grids[number], block]
            kernel(out, mean, scale, *inputs, rows, columns)
        check_close(out.to_host(), wanted, 1e-4, 1e-5, f"kernel {number}")
        check_close(mean.to_host(), means, 1e-4, 1e-5, f"kernel {number}")
        check_close(scale.to_host(), scales, 1e-4, 0, f"kernel {number}")


@program("gelu_forward", "common.h gelu_forward.cu")
def gelu_forward(build: Build) -> None:
    """Bfloat16, 16-byte vectors: compute GELU of bfloat16 numbers, one and eight per thread."""
    module = build(before=BF16)
    count = 4088
    bits = to_bf16(build.floats(count, low=-4, high=4))
    x = from_bf16(bits)
    wanted = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    for number, each in ((1, 1), (2, 8)):
        out = cuda.empty(count, np.uint16)
        module[f"gelu_forward_kernel{number}"][ceil_div(count, 128 * each), 128](out, cuda.to_device(bits), count)
        check_close(from_bf16(out.to_host()), wanted, 2**-8, 1e-7, f"kernel {number}")


@program("crossentropy", "common.h crossentropy_forward.cu crossentropy_softmax_backward.cu")
def cross_entropy(build: Build) -> None:
    """A loss and its gradient: compute the loss of probabilities, and the logits' gradient."""
    module = build()
    batch, time, words = 3, 11, 307
    values = special.softmax(build.floats(batch * time, words, low=-3, high=3), axis=1)
    targets = build.random.integers(0, words, batch * time).astype(np.int32)
    probabilities, indices = cuda.to_device(values), cuda.to_device(targets)
    losses = cuda.empty(batch * time, np.float32)
    module["crossentropy_forward_kernel1"][1, 64](losses, probabilities, indices, batch, time, words)
    check_close(losses.to_host(), -np.log(values[np.arange(batch * time), targets].astype(np.float64)), 1e-5, 1e-6)
    factors, start = build.floats(batch * time), build.floats(batch * time, words)
    gradient = cuda.to_device(start)
    kernel = module["crossentropy_softmax_backward_kernel1"][ceil_div(values.size, 256), 256]
    kernel(gradient, cuda.to_device(factors), probabilities, indices, batch, time, words)
    hits = np.arange(words) == targets[:, None]
    check_close(gradient.to_host(), start + (values.astype(np.float64) - hits) * factors[:, None], 1e-5, 1e-6)


@program("attention_forward", "common.h attention_forward.cu")
def attention_forward(build: Build) -> None:
    """Tiles in dynamic shared memory, one warp per block: compute attention, first with three simple kernels."""
    module = build(before=COOPERATIVE + BF16, omit=["cudnn"])
    batch, time, heads, depth = 2, 64, 3, 16
    channels = heads * depth
    values = build.floats(batch, time, 3, heads, depth)
    query, key, value = values.transpose(2, 0, 3, 1, 4).astype(np.float64)
    scores = np.einsum("bhtd,bhsd->bhts", query, key) / np.sqrt(depth)
    weights = special.softmax(np.where(np.tri(time, dtype=bool), scores, -np.inf), axis=-1)
    wanted = np.einsum("bhts,bhsd->bthd", weights, value)
    source = cuda.to_device(values.ravel())
    shape = batch, time, heads
    before, after = (cuda.empty(batch * heads * time * time, np.float32) for _ in range(2))
    out = cuda.empty((batch, time, heads, depth), np.float32)
    threads = batch * heads * time
    module["attention_query_key_kernel1"][threads * time // 256, 256](before, source, batch, time, channels, heads)
    module["attention_softmax_kernel1"][ceil_div(threads, 128), 128](after, before, *shape)
    module["attention_value_kernel1"][ceil_div(threads, 128), 128](out, after, source, batch, time, channels, heads)
    check_close(after.to_host().reshape(weights.shape), weights, 1e-4, 1e-6)
    check_close(out.to_host(), wanted, 1e-4, 1e-5)

    tile, count = 32, batch * time * channels
    parts = [cuda.empty(count, np.float32) for _ in range(3)]
    module["permute_kernel"][ceil_div(count, 256), 256](*parts, source, batch, time, heads, depth)
    sums, mixed = (cuda.zeros(size, np.float32) for size in (threads, count))
    most = cuda.full(threads, -np.inf, np.float32)
    sizes = time, depth, time // tile, time // tile, tile, tile, float(np.float32(depth**-0.5))
    shared = (3 * tile * depth + tile * tile) * 4
    module["attention_forward_kernel2"][(batch, heads), tile, shared](*parts, *sizes, sums, most, mixed)
    module["unpermute_kernel"][ceil_div(count, 256), 256](mixed, out, batch, time, heads, depth)
    check_close(out.to_host(), wanted, 1e-4, 1e-5, "attention_forward_kernel2")


@program("matmul_forward", "common.h matmul_forward.cu")
def matmul_forward(build: Build) -> None:
    """64 elements in a thread's registers: multiply matrices and add a bias, with 1 and with 64 elements per thread."""
    module = build(omit=["cublasLtHandle_t"])
    for number, rows, inner, columns in ((1, 45, 67, 39), (4, 256, 64, 128)):
        inputs, weight, bias = build.floats(rows, inner), build.floats(columns, inner), build.floats(columns)
        out = cuda.empty((rows, columns), np.float32)
        arguments = out, *(cuda.to_device(one) for one in (inputs, weight, bias))
        if number == 1:
            grid = ceil_div(rows, 16), ceil_div(columns, 16)
            module["matmul_forward_kernel1"][grid, (16, 16)](*arguments, rows, inner, columns)
        else:
            module["matmul_forward_kernel4"][(rows // 128, columns // 128), (16, 16)](*arguments, inner, columns)
        check_close(out.to_host(), inputs.astype(np.float64) @ weight.T + bias, 1e-4, 1e-5, f"kernel {number}")


@program("global_norm", "common.h global_norm.cu")
def global_norm(build: Build) -> None:
    """A device function as a template argument: sum squares of bfloat16 numbers with four kernels."""
    kind = "__nv_bfloat16"
    names = [f"norm_kernel{number}<{kind}>" for number in (1, 2, 3, 4)]
    module = build(names, before=COOPERATIVE + BF16)
    count, blocks, threads = 50_003, 9, 256
    bits = to_bf16(build.floats(count))
    data = cuda.to_device(bits)
    wanted = (from_bf16(bits) ** 2).sum()
    for name in names:
        out = cuda.zeros(blocks, np.float32)
        module[name][blocks, threads](out, data, count)
        if name == names[-1]:
            module["global_norm_aggregate_kernel"][1, 1024](out, blocks)
        check_close(out.to_host()[0], wanted, 1e-4, what=name)


@program("adamw", "common.h adamw.cu")
def adamw(build: Build) -> None:
    """Fused multiply-add: do one step of an optimiser with each of two kernels."""
    module = build()
    count = 3001
    start = [build.floats(count), build.floats(count), build.floats(count), build.floats(count, low=0)]
    rates = [float(np.float32(one)) for one in (1e-3, 0.9, 0.999, 1 - 0.9**10, 1 - 0.999**10, 1e-8, 0.01)]
    rate, first, second, first_correction, second_correction, epsilon, decay = rates
    p, g, m, v = (one.astype(np.float64) for one in start)
    m, v = first * m + (1 - first) * g, second * v + (1 - second) * g * g
    p = p - rate * (m / first_correction / (np.sqrt(v / second_correction) + epsilon) + decay * p)
    for number in (1, 2):
        arrays = [cuda.to_device(one) for one in start]
        module[f"adamw_kernel{number}"][ceil_div(count, 512), 512](*arrays, count, *rates)
        for array, wanted in zip((arrays[0], *arrays[2:]), (p, m, v), strict=True):
            check_close(array.to_host(), wanted, 1e-4, 1e-6, f"kernel {number}")


@program(
    "layernorm_backward",
    "common.h layernorm_backward.cu",
    own=("layernorm_backward_kernel9",),
    why="kernel 9's last block reads, without a fence, what other blocks stored",
)
def layernorm_backward(build: Build) -> None:
    """`__ldcg` before a compare-and-swap loop: compute the gradients of a layer normalisation in three ways."""
    kinds = ", ".join(["__nv_bfloat16"] * 4)
    names = [f"layernorm_backward_kernel4<{kinds}>"]
    module = build(names, before=COOPERATIVE + BF16)
    batch, time, channels = 2, 19, 512
    rows = batch * time
    bits = [to_bf16(build.floats(*shape)) for shape in ((rows, channels), (rows, channels), (channels,))]
    dout, x, weight = map(from_bf16, bits)
    mean = to_bf16(x.mean(axis=1))
    scale = to_bf16(1 / np.sqrt(x.var(axis=1) + 1e-5))
    normal = (x - from_bf16(mean)[:, None]) * from_bf16(scale)[:, None]
    inner = weight * dout
    wanted = inner - inner.mean(axis=1, keepdims=True) - normal * (inner * normal).mean(axis=1, keepdims=True)
    wanted *= from_bf16(scale)[:, None]
    constants = [cuda.to_device(one) for one in (*bits, mean, scale)]
    floats = [cuda.to_device(from_bf16(one).astype(np.float32)) for one in (*bits, mean, scale)]
    for name in ("layernorm_backward_kernel1", *names, "layernorm_backward_kernel9"):
        plain = name == "layernorm_backward_kernel1"
        kind = np.float32 if plain else np.uint16
        dinp, dweight, dbias = (cuda.zeros(size, kind) for size in ((rows, channels), channels, channels))
        if plain:
            module[name][ceil_div(rows, 32), 32](dinp, dweight, dbias, *floats, batch, time, channels)
        elif name == names[0]:
            arguments = dinp, dweight, dbias, *constants, batch, time, channels
            module[name][5, 128, 2 * channels * 4](*arguments)
        else:
            scratch = cuda.zeros(32 + 2 * channels * 5, np.float32)
            arguments = dinp, dweight, dbias, scratch, *constants, batch, time, channels
            module[name][5, 64, (2 * channels + 2 * 64 + 1) * 4](*arguments)
        got = [one.to_host() for one in (dinp, dweight, dbias)]
        precision, largest = (1e-4, 1e-5) if plain else (2**-7, 2**-6)
        if not plain:
            got = [from_bf16(one) for one in got]
        results = wanted, (dout * normal).sum(axis=0), dout.sum(axis=0)
        for one, result in zip(got, results, strict=True):
            check_close(one, result, precision, largest, name)


@program("classifier_fused", "common.h classifier_fused.cu")
def fused_classifier(build: Build) -> None:
    """Vectors that extend past the end of a row: compute loss and gradient of logits with padded rows."""
    module = build(before=COOPERATIVE + BF16.replace("#define ENABLE_BF16\n", ""))
    batch, time, words, padded = 2, 13, 1003, 1024
    rows = batch * time
    logits = build.floats(rows, padded, low=-4, high=4)
    targets = build.random.integers(0, words, rows).astype(np.int32)
    factors = build.floats(rows)
    gradient, losses = cuda.zeros((rows, padded), np.float32), cuda.empty(rows, np.float32)
    nothing = None
    arguments = gradient, losses, nothing, cuda.to_device(logits), cuda.to_device(factors), cuda.to_device(targets)
    module["fused_classifier_kernel2"][rows, 128](*arguments, batch, time, words, padded)
    p = special.softmax(logits[:, :words].astype(np.float64), axis=1)
    check_close(losses.to_host(), -np.log(p[np.arange(rows), targets]), 1e-4, 1e-5)
    wanted = (p - (np.arange(words) == targets[:, None])) * factors[:, None]
    check_close(gradient.to_host()[:, :words], wanted, 1e-4, 1e-6)
