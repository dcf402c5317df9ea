"""Products by inline mma.sync of matrices whose elements lie in the registers that the PTX manual says.

    python -m tests.launch.matrix_products tests/launch/data/products.npz

records what a GPU of compute capability 9.0 makes of random matrices, for `test_tensor_cores`.
"""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

Array = NDArray[Any]
RECORDED = Path(__file__).parent / "data" / "products.npz"
TRIALS = 2


class Layout(NamedTuple):
    """Where the PTX manual puts a lane's elements: row ``lane // 4`` and column ``side * (lane % 4)``, plus offsets."""

    side: int
    offsets: tuple[tuple[int, int], ...]


def along(side: int, *columns: int, rows: tuple[int, ...] = (0,)) -> Layout:
    """Return the layout of runs of `side` elements, which begin in some columns, for each in some rows."""
    return Layout(side, tuple((row, start + k) for start in columns for row in rows for k in range(side)))


BOTH = (0, 8)
# By shape and the bits of an element.
LEFT = {
    ("m16n8k8", 16): along(2, 0, rows=BOTH), ("m16n8k16", 16): along(2, 0, 8, rows=BOTH),
    ("m16n8k4", 32): along(1, 0, rows=BOTH), ("m16n8k8", 32): along(1, 0, 4, rows=BOTH),
    ("m8n8k4", 64): along(1, 0), ("m16n8k4", 64): along(1, 0, rows=BOTH), ("m16n8k8", 64): along(1, 0, 4, rows=BOTH),
    ("m16n8k16", 64): along(1, 0, 4, 8, 12, rows=BOTH), ("m8n8k16", 8): along(4, 0),
    ("m16n8k16", 8): along(4, 0, rows=BOTH), ("m16n8k32", 8): along(4, 0, 16, rows=BOTH),
}  # fmt: skip  # rows of a table
# Of the right matrix, whose columns stand for the rows here.
RIGHT = {
    ("k8", 16): along(2, 0), ("k16", 16): along(2, 0, 8), ("k4", 32): along(1, 0), ("k8", 32): along(1, 0, 4),
    ("k4", 64): along(1, 0), ("k8", 64): along(1, 0, 4), ("k16", 64): along(1, 0, 4, 8, 12),
    ("k16", 8): along(4, 0), ("k32", 8): along(4, 0, 16),
}  # fmt: skip  # rows of a table
SUMS = {"m8": along(2, 0), "m16": along(2, 0, rows=BOTH)}

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s8": 8, "u8": 8, "s32": 32, "e4m3": 8, "e5m2": 8}
BYTES = ("s8", "u8")
SPELLINGS = [
    *(f"{shape}.row.col.{kind}.f16.f16.{kind}" for shape in ("m16n8k8", "m16n8k16") for kind in ("f16", "f32")),
    *(f"{shape}.row.col.f32.bf16.bf16.f32" for shape in ("m16n8k8", "m16n8k16")),
    *(f"{shape}.row.col.f32.tf32.tf32.f32" for shape in ("m16n8k4", "m16n8k8")),
    *(f"{shape}.row.col.f64.f64.f64.f64" for shape in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")),
    *(
        f"{shape}.row.col{end}.s32.{left}.{right}.s32"
        for shape in ("m8n8k16", "m16n8k16", "m16n8k32")
        for end in ("", ".satfinite")
        for left in BYTES
        for right in BYTES
    ),
    *(
        f"{shape}.row.col.{kind}.{left}.{right}.{kind}"
        for shape in ("m16n8k16", "m16n8k32")
        for kind in ("f16", "f32")
        for left, right in (("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e4m3"), ("e5m2", "e5m2"))
    ),
]  # fmt: skip  # a list of spellings


def name_of(spelling: str) -> str:
    return spelling.replace(".", "_")


def registers_of(kind: str, rows: int, columns: int) -> int:
    """Return how many registers a lane has of a matrix."""
    return rows * columns // 32 * BITS[kind] // (64 if kind == "f64" else 32)


def extents(spelling: str) -> tuple[int, int, int]:
    m, _, rest = spelling.partition(".")[0][1:].partition("n")
    n, _, k = rest.partition("k")
    return int(m), int(n), int(k)


def kernel_of(spelling: str) -> str:
    """Return a kernel that loads registers, multiplies, and stores the registers of the sum."""
    m, n, k = extents(spelling)
    kinds = spelling.split(".")[-4:]
    counts = [registers_of(kind, *e) for kind, e in zip(kinds, ((m, n), (m, k), (k, n), (m, n)), strict=True)]
    letters = [{"f32": "f", "f64": "d"}.get(kind, "r") for kind in kinds]
    types = [{"f": "float", "d": "double", "r": "unsigned"}[letter] for letter in letters]
    numbers = iter(range(sum(counts)))
    vectors = ["{" + ", ".join(f"%{next(numbers)}" for _ in range(count)) + "}" for count in counts]
    out, *sources = (
        ", ".join(f'"{"=" * (place == 0)}{letters[place]}"({"dabc"[place]}[{number}])' for number in range(count))
        for place, count in enumerate(counts)
    )
    loads = "".join(
        f"{types[place]} {'dabc'[place]}[{counts[place]}];\n"
        + f"for (int k = 0; k < {counts[place]}; k++) {'dabc'[place]}[k] = "
        + f"{'DABC'[place]}[threadIdx.x * {counts[place]} + k];\n"
        for place in range(4)
    )
    return f"""
extern "C" __global__ void k_{name_of(spelling)}({types[0]}* D, const {types[1]}* A, const {types[2]}* B,
                                               const {types[3]}* C) {{
    {loads}
    asm volatile("mma.sync.aligned.{spelling} {", ".join(vectors)};" : {out} : {", ".join(sources)});
    for (int k = 0; k < {counts[0]}; k++) D[threadIdx.x * {counts[0]} + k] = d[k];
}}"""


def patterns(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> Array:
    """Draw numbers of a type, as different as it allows; return their patterns."""
    count = shape[0] * shape[1]
    if kind in BYTES:
        return rng.permutation(np.arange(count) % 256).astype(np.uint8).reshape(shape)
    if kind == "s32":
        # Half of them are next to the ends of the range, where sums wrap or saturate.
        ends = rng.choice([2**31 - 1, -(2**31), 2**31 - 1000, 1000 - 2**31], shape)
        return np.where(rng.integers(0, 2, shape), ends, rng.integers(-100_000, 100_000, shape)).astype(np.int32)
    if kind in ("e4m3", "e5m2"):
        # Patterns of the numbers from 1/4 to 4, of either sign.
        bits, bias = (3, 7) if kind == "e4m3" else (2, 15)
        field = rng.integers((bias - 2) << bits, (bias + 2) << bits, shape)
        return (field | rng.integers(0, 2, shape) << 7).astype(np.uint8)
    numbers = rng.uniform(-2, 2, shape)
    if kind == "f64":
        return numbers
    if kind == "f16":
        return numbers.astype(np.float16).view(np.uint16)
    single = numbers.astype(np.float32)
    if kind == "f32":
        return single
    cut = single.view(np.uint32) >> 13 << 13  # the bits of tf32
    return (cut >> 16).astype(np.uint16) if kind == "bf16" else cut


def place_of(layout: Layout, lane: int, item: int) -> tuple[int, int]:
    row, column = layout.offsets[item]
    return lane // 4 + row, layout.side * (lane % 4) + column


def spread(matrix: Array, layout: Layout, register: Any) -> Array:
    """Return the registers of 32 lanes, of some type, that hold a matrix of patterns."""
    found = [[matrix[place_of(layout, lane, item)] for item in range(len(layout.offsets))] for lane in range(32)]
    return np.array(found, matrix.dtype).view(register)


def gathered(registers: Array, layout: Layout, dtype: Any, shape: tuple[int, int]) -> Array:
    """Return the matrix that registers of 32 lanes hold."""
    elements = registers.view(dtype).reshape(32, -1)
    matrix = np.zeros(shape, dtype)
    seen = np.zeros(shape, int)
    for lane in range(32):
        for item in range(len(layout.offsets)):
            place = place_of(layout, lane, item)
            matrix[place] = elements[lane, item]
            seen[place] += 1
    assert (seen == 1).all()
    return matrix


def layouts_of(spelling: str) -> list[Layout]:
    """Return the layouts of a, b by columns, and c."""
    m, _, k = extents(spelling)
    left, right = spelling.split(".")[-3:-1]
    return [LEFT[spelling.partition(".")[0], BITS[left]], RIGHT[f"k{k}", BITS[right]], SUMS[f"m{m}"]]


def compiled() -> cuda.Module:
    """Return a module with the kernels of all spellings."""
    return cuda.compile("\n".join(map(kernel_of, SPELLINGS)))


def multiplied(module: cuda.Module, spelling: str, layouts: list[Layout], matrices: Sequence[Array]) -> Array:
    """Return the sum that a kernel makes of patterns: a, b by columns, and c, of the shapes (m, k), (n, k), (m, n)."""
    m, n, _ = extents(spelling)
    kind, *given = spelling.split(".")[-4:]
    names = [{"f32": np.float32, "f64": np.float64}.get(name, np.uint32) for name in given]
    registers = [
        cuda.to_device(spread(matrix, layout, name))
        for matrix, layout, name in zip(matrices, layouts, names, strict=True)
    ]
    out = cuda.zeros((32, registers_of(kind, m, n)), names[2])
    module[f"k_{name_of(spelling)}"][1, 32](out, *registers)
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "s32": np.int32}[kind]
    return gathered(out.to_host(), layouts[2], dtype, (m, n))


def record(path: Path) -> None:
    """Write patterns and what the GPU makes of them: of each spelling the arrays a, b, c and d, over some trials."""
    module, rng = compiled(), np.random.default_rng()
    arrays = {}
    for spelling in SPELLINGS:
        m, n, k = extents(spelling)
        kinds = spelling.split(".")[-3:]
        trials = []
        for trial in range(TRIALS):
            given = [patterns(rng, kind, shape) for kind, shape in zip(kinds, ((m, k), (n, k), (m, n)), strict=True)]
            if trial == TRIALS - 1:
                given[2] = np.zeros_like(given[2])
            trials.append((*given, multiplied(module, spelling, layouts_of(spelling), given)))
        for name, found in zip("abcd", zip(*trials, strict=True), strict=True):
            arrays[f"{spelling} {name}"] = np.stack(found)
    metadata = {
        "card": cuda.Device(0).name,
        "driver": ".".join(map(str, cuda.driver_version())),
        "nvrtc": version("nvidia-cuda-nvrtc"),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    np.savez_compressed(path, metadata=np.array(json.dumps(metadata)), **arrays)


if __name__ == "__main__":
    with cuda.Device(0):
        record(Path(sys.argv[1]))
