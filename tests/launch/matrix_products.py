"""Matrix products by inline mma.sync of registers that hold random numbers.

    python -m tests.launch.matrix_products tests/launch/data/products.npz

records the products that a GPU of compute capability 9.0 computes of random matrices, for `test_tensor_cores`.
"""

import datetime
import json
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

Array = NDArray[Any]
RECORDED = Path(__file__).parent / "data" / "products.npz"
TRIALS = 2


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
    """Return the number of registers that a matrix occupies in each lane."""
    return rows * columns // 32 * BITS[kind] // (64 if kind == "f64" else 32)


def extents(spelling: str) -> tuple[int, int, int]:
    m, _, rest = spelling.partition(".")[0][1:].partition("n")
    n, _, k = rest.partition("k")
    return int(m), int(n), int(k)


def kernel_of(spelling: str) -> str:
    """Return the source of a kernel that loads registers, executes an mma.sync, and stores the registers of d."""
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


def patterns(rng: np.random.Generator, kind: str, count: int) -> Array:
    """Draw numbers of a type, as varied as it allows; return their bit patterns."""
    if kind in BYTES:
        return rng.permutation(np.arange(count) % 256).astype(np.uint8)
    if kind == "s32":
        # Half of them are near the ends of the range, where sums wrap or saturate.
        ends = rng.choice([2**31 - 1, -(2**31), 2**31 - 1000, 1000 - 2**31], count)
        return np.where(rng.integers(0, 2, count), ends, rng.integers(-100_000, 100_000, count)).astype(np.int32)
    if kind in ("e4m3", "e5m2"):
        # Bit patterns of numbers from 1/4 to 4, with either sign.
        bits, bias = (3, 7) if kind == "e4m3" else (2, 15)
        field = rng.integers((bias - 2) << bits, (bias + 2) << bits, count)
        return (field | rng.integers(0, 2, count) << 7).astype(np.uint8)
    numbers = rng.uniform(-2, 2, count)
    if kind in ("f64", "f16"):
        return numbers.astype({"f64": np.float64, "f16": np.float16}[kind])
    single = numbers.astype(np.float32)
    if kind == "f32":
        return single
    cut = single.view(np.uint32) >> 13 << 13  # the bits of tf32
    return (cut >> 16).astype(np.uint16) if kind == "bf16" else cut


def register_of(kind: str) -> Any:
    """Return the dtype of the registers that hold numbers of a type."""
    return {"f32": np.float32, "f64": np.float64}.get(kind, np.uint32)


def compiled() -> cuda.Module:
    """Return a module with the kernels of all spellings."""
    return cuda.compile("\n".join(map(kernel_of, SPELLINGS)))


def multiplied(module: cuda.Module, spelling: str, registers: Sequence[Array]) -> Array:
    """Return the registers of d in 32 lanes, which a kernel computes from the registers of a, b and c."""
    m, n, _ = extents(spelling)
    kind = spelling.split(".")[-4]
    out = cuda.zeros((32, registers_of(kind, m, n)), register_of(kind))
    module[f"k_{name_of(spelling)}"][1, 32](out, *map(cuda.to_device, registers))
    return out.to_host()


def record(path: Path) -> None:
    """Write the GPU's results to a file: for each spelling the registers of a, b, c and d, over several trials."""
    module, rng = compiled(), np.random.default_rng()
    arrays = {}
    for spelling in SPELLINGS:
        m, n, k = extents(spelling)
        kinds = spelling.split(".")[-3:]
        trials = []
        for trial in range(TRIALS):
            given = [
                patterns(rng, kind, count).view(register_of(kind)).reshape(32, -1)
                for kind, count in zip(kinds, (m * k, n * k, m * n), strict=True)
            ]
            if trial == TRIALS - 1:
                given[2] = np.zeros_like(given[2])
            trials.append((*given, multiplied(module, spelling, given)))
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
