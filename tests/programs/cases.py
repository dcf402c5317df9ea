"""Ten typical programs, each with a reference in NumPy; the kernels are in ``kernels/``.

A case prepares one program, small or at a size that is large enough for timing, and returns functions to run and check
it.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

import cudart_py as cuda

FOLDER = Path(__file__).with_name("kernels")
SEED = 20
Array = NDArray[Any]
Check = Callable[[], None]


class Case(NamedTuple):
    """A program that is ready to run: `run` does all its work on the device, and `check` checks the latest results.

    `run` may be called repeatedly, and waits for nothing. `check` raises AssertionError if a result is wrong.
    """

    size: str
    run: Callable[[], None]
    check: Check


def _kernels(name: str, **define: object) -> cuda.Module:
    return cuda.compile(FOLDER / f"{name}.cu", define=define)


def _random() -> np.random.Generator:
    return np.random.default_rng(SEED)


def _compared(result: cuda.DeviceArray, expected: Callable[[], Any], rtol: float = 0, atol: float = 0) -> Check:
    return lambda: np.testing.assert_allclose(result.to_host(), expected(), rtol, atol)


def fft(full: bool) -> Case:
    """FFT: transform rows of 1,024 complex elements."""
    rows, points = 64 if full else 2, 1024
    samples = _random().standard_normal((rows, points, 2), np.float32)
    kernel = _kernels("fft")["fft_1024"]
    source = cuda.to_device(samples)
    result = cuda.empty_like(source)

    def run() -> None:
        kernel[rows, points // 4](source, result)

    right = np.fft.fft(samples.view(np.complex64)[..., 0].astype(complex)).view(float).reshape(samples.shape)
    return Case(f"{rows} x {points:,} points", run, _compared(result, lambda: right, atol=1e-4 * np.abs(right).max()))


def radix_sort(full: bool) -> Case:
    """radix sort: sort 32-bit integers digit by digit, four bits per digit."""
    block, digits = 256, 16
    blocks = 64 if full else 3
    numbers = _random().integers(0, 2**32, blocks * block, np.uint32)
    module = _kernels("radix_sort")
    keys, other = cuda.to_device(numbers), cuda.empty(numbers.size, np.uint32)
    counts = cuda.empty(digits * blocks, np.uint32)

    def run() -> None:
        keys.copy_from(numbers)
        a, b = keys, other
        for shift in range(0, 32, 4):
            module["count_digits"][blocks, block](a, counts, shift)
            module["scan_counts"][1, block](counts, counts.size)
            module["scatter_digits"][blocks, block](a, b, counts, shift)
            a, b = b, a

    return Case(f"{numbers.size:,} numbers", run, _compared(keys, lambda: np.sort(numbers)))


def sha256(full: bool) -> Case:
    """SHA-256: hash many short messages, each with a different number."""
    count, first = 4096 if full else 64, 2**40
    text = b"a text that all of the messages have: "
    kernel = (_kernels("sha256") if full else _kernels("sha256", ROLLED=None))["sha256_numbers"]
    source, digests = cuda.to_device(np.frombuffer(text, np.uint8)), cuda.empty((count, 8), np.uint32)

    def run() -> None:
        kernel[count // 64, 64](source, len(text), first, digests)

    def expected() -> Array:
        right = (hashlib.sha256(text + (first + i).to_bytes(8, "little")).digest() for i in range(count))
        return np.frombuffer(b"".join(right), ">u4").reshape(count, 8)

    return Case(f"{count:,} messages", run, _compared(digests, expected))


def language_layer(full: bool) -> Case:
    """layer of a language model: run one transformer layer."""
    tokens, heads, size = (64, 4, 32) if full else (20, 2, 16)
    width = heads * size
    random = _random()
    x = random.standard_normal((tokens, width), np.float32)
    shapes = {"qkv": (width, 3 * width), "out": (width, width), "up": (width, 4 * width), "down": (4 * width, width)}
    weights = {name: random.standard_normal(s, np.float32) / np.float32(np.sqrt(s[0])) for name, s in shapes.items()}
    biases = {name: random.standard_normal(s[1], np.float32) for name, s in shapes.items()}
    gains = [random.standard_normal(width, np.float32) for _ in range(2)]
    module = _kernels("language_layer")
    on_device = {name: (cuda.to_device(weights[name]), cuda.to_device(biases[name])) for name in shapes}
    scales = [cuda.to_device(gain) for gain in gains]
    state, normal, mixed = (cuda.to_device(x) for _ in range(3))
    wide = {name: cuda.empty((tokens, shapes[name][1]), np.float32) for name in ("qkv", "up")}

    def multiply(result: cuda.DeviceArray, left: cuda.DeviceArray, name: str, adds: bool = False) -> None:
        inner, columns = shapes[name]
        grid = -(-columns // 16), -(-tokens // 16)
        module["multiply"][grid, (16, 16)](result, left, *on_device[name], tokens, columns, inner, adds)

    def normalize(gain: cuda.DeviceArray) -> None:
        module["normalize"][-(-tokens // 4), 128](normal, state, gain, tokens, width)

    def run() -> None:
        state.copy_from(x)
        normalize(scales[0])
        multiply(wide["qkv"], normal, "qkv")
        module["attend"][(tokens, heads), 32](mixed, wide["qkv"], heads, size)
        multiply(state, mixed, "out", adds=True)
        normalize(scales[1])
        multiply(wide["up"], normal, "up")
        module["gelu"][-(-wide["up"].size // 256), 256](wide["up"], wide["up"].size)
        multiply(state, wide["up"], "down", adds=True)

    def normalized(rows: Array, gain: Array) -> Array:
        return (rows - rows.mean(1, keepdims=True)) / np.sqrt(rows.var(1, keepdims=True) + 1e-5) * gain

    def expected() -> Array:
        right = x.astype(float)
        parts = (normalized(right, gains[0]) @ weights["qkv"] + biases["qkv"]).reshape(tokens, 3, heads, size)
        query, key, value = parts.transpose(1, 2, 0, 3)
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(size) + np.triu(np.full((tokens, tokens), -np.inf), 1)
        rows = special.softmax(scores, axis=-1) @ value
        right += rows.transpose(1, 0, 2).reshape(tokens, width) @ weights["out"] + biases["out"]
        inner = normalized(right, gains[1]) @ weights["up"] + biases["up"]
        inner *= 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (inner + 0.044715 * inner**3)))
        return right + inner @ weights["down"] + biases["down"]

    return Case(f"{tokens} tokens, width {width}", run, _compared(state, expected, rtol=1e-3, atol=1e-3))


def jacobi(full: bool) -> Case:
    """Jacobi solver: do 500 Jacobi steps for Laplace's equation, with one launch per step."""
    n, steps = (128, 500) if full else (32, 20)
    start = np.zeros((n, n), np.float32)
    start[0] = 1
    start[:, -1] = np.linspace(1, 0, n)
    kernel = _kernels("jacobi")["jacobi_step"]
    a, b = cuda.to_device(start), cuda.to_device(start)
    grid = n // 16, n // 16
    change = cuda.empty(grid, np.float32)

    def run() -> None:
        a.copy_from(start)
        b.copy_from(start)
        old, fresh = a, b
        for _ in range(steps):
            kernel[grid, (16, 16)](old, fresh, change, n)
            old, fresh = fresh, old

    def check() -> None:
        right = start.astype(float)
        for _ in range(steps):
            before = right.copy()
            in_column, in_row = before[:-2, 1:-1] + before[2:, 1:-1], before[1:-1, :-2] + before[1:-1, 2:]
            right[1:-1, 1:-1] = (in_column + in_row) / 4
        np.testing.assert_allclose(a.to_host(), right, atol=1e-5)
        np.testing.assert_allclose(change.to_host().sum(), ((right - before) ** 2).sum(), rtol=1e-2)

    return Case(f"{n} x {n}, {steps} steps", run, check)


def attention(full: bool) -> Case:
    """attention: average values, weighted by the similarity of their keys to a query."""
    heads, n, size, block = (4, 256, 64, 64) if full else (1, 64, 64, 32)
    query, key, value = _random().standard_normal((3, heads, n, size), np.float32)
    kernel = _kernels("attention")["attention_tiled"]
    operands = [cuda.to_device(array) for array in (query, key, value)]
    out = cuda.empty_like(operands[0])

    def run() -> None:
        kernel[(n // block, heads), block](out, *operands, n)

    def expected() -> Array:
        return special.softmax(query.astype(float) @ key.transpose(0, 2, 1) / np.sqrt(size), axis=-1) @ value

    return Case(f"{heads} heads, {n} x {size}", run, _compared(out, expected, rtol=1e-3, atol=1e-4))


def bitonic_sort(full: bool) -> Case:
    """bitonic sort: sort integers with a sorting network."""
    n, tile = (2**15 if full else 2**11), 1024
    numbers = _random().integers(0, 2**32, n, np.uint32)
    module = _kernels("bitonic_sort")
    keys = cuda.to_device(numbers)

    def run() -> None:
        keys.copy_from(numbers)
        module["sort_tiles"][n // tile, tile // 2](keys)
        length = 2 * tile
        while length <= n:
            distance = length // 2
            while distance >= tile:
                module["merge_far"][n // 512, 256](keys, distance, length)
                distance //= 2
            module["merge_tiles"][n // tile, tile // 2](keys, length)
            length *= 2

    return Case(f"{n:,} numbers", run, _compared(keys, lambda: np.sort(numbers)))


def bilateral(full: bool) -> Case:
    """bilateral filter: smooth an image but keep its edges."""
    width, height = (256, 192) if full else (40, 24)
    near, similar, radius = 0.02, 0.0008, 4
    image = _random().integers(0, 256, (height, width), np.uint8)
    kernel = _kernels("bilateral_filter")["bilateral"]
    source, out = cuda.to_device(image), cuda.empty((height, width), np.float32)

    def run() -> None:
        grid = -(-width // 32), -(-height // 8)
        kernel[grid, (32, 8)](out, source, width, height, near, similar)

    def expected() -> Array:
        wide = np.pad(image.astype(float), radius, constant_values=np.nan)
        total, weights = np.zeros((height, width)), np.zeros((height, width))
        for dy in range(-radius, radius + 1):
            for dx in range(-radius, radius + 1):
                grey = wide[radius + dy : radius + dy + height, radius + dx : radius + dx + width]
                weight = np.exp(-(dx * dx + dy * dy) * near - (grey - image) ** 2 * similar)
                total += np.nan_to_num(weight * grey)
                weights += np.nan_to_num(weight)
        return total / weights

    return Case(f"{width} x {height}, 9 x 9 neighbours", run, _compared(out, expected, rtol=1e-4))


def breadth_first(full: bool) -> Case:
    """breadth-first search: find each vertex's distance from the first one in a random graph."""
    vertices, degree = (20_000, 6) if full else (200, 3)
    edges = _random().integers(0, vertices, (vertices, degree), np.int32)
    kernel = _kernels("breadth_first")["expand"]
    starts = cuda.to_device(np.arange(0, edges.size + 1, degree, dtype=np.int32))
    targets, distances = cuda.to_device(edges.reshape(-1)), cuda.empty(vertices, np.int32)
    frontiers = [cuda.zeros(vertices, np.int32) for _ in range(2)]
    count = cuda.zeros(1, np.int32)
    unreached = np.full(vertices, -1, np.int32)
    unreached[0] = 0

    def run() -> None:
        distances.copy_from(unreached)
        frontier, following = frontiers
        frontier.copy_from(np.zeros(vertices, np.int32))
        size, distance = 1, 1
        while size:
            cuda.memset(count, 0)
            kernel[-(-size // 128), 128](starts, targets, distances, frontier, size, following, count, distance)
            size = int(count.to_host()[0])
            frontier, following = following, frontier
            distance += 1

    def expected() -> Array:
        graph = sparse.csr_array((np.ones(edges.size), edges.ravel(), starts.to_host()), (vertices, vertices))
        right = sparse.csgraph.dijkstra(graph, indices=0, unweighted=True)
        return np.where(np.isinf(right), -1, right)

    return Case(f"{vertices:,} vertices, {edges.size:,} edges", run, _compared(distances, expected))


def smith_waterman(full: bool) -> Case:
    """Smith-Waterman: score the best local alignments of pairs of sequences."""
    pairs, rows, columns = (32, 128, 200) if full else (3, 32, 40)
    letters = np.frombuffer(b"ACGT", np.int8)
    random = _random()
    firsts, seconds = (letters[random.integers(0, 4, (pairs, length))] for length in (rows, columns))
    kernel = _kernels("smith_waterman")["align"]
    on_device = cuda.to_device(firsts), cuda.to_device(seconds)
    scores = cuda.empty(pairs, np.int32)

    def run() -> None:
        kernel[pairs, rows](*on_device, scores, columns)

    def expected() -> Array:
        table = np.zeros((pairs, rows + 1, columns + 1), int)
        for i in range(rows):
            for j in range(columns):
                fits = np.where(firsts[:, i] == seconds[:, j], 3, -2)
                gap = np.maximum(table[:, i, j + 1], table[:, i + 1, j]) - 3
                table[:, i + 1, j + 1] = np.maximum(0, np.maximum(table[:, i, j] + fits, gap))
        return table.max((1, 2))

    return Case(f"{pairs} pairs, {rows} x {columns} letters", run, _compared(scores, expected))


_PROGRAMS = (
    fft, radix_sort, sha256, language_layer, jacobi, attention, bitonic_sort, bilateral, breadth_first, smith_waterman,
)  # fmt: skip  # a list of words
CASES: dict[str, Callable[[bool], Case]] = {(case.__doc__ or "").partition(":")[0]: case for case in _PROGRAMS}
