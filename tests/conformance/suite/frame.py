"""Cases: one launch of a kernel, its inputs, and the results that are recorded and compared.

The results of a group of cases are recorded in one compressed file, with the GPU and the versions that gave them.
"""

import functools
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .bounds import EXACT, Bound

ROOT = Path(__file__).parents[1]
KERNELS = ROOT / "kernels"
# Without contraction to fused multiply-adds, IEEE 754 alone determines each result. The carry chains need __int128.
OPTIONS = ("-fmad=false", "--device-int128", "-w")
DATA = ROOT / "data"
COMMAND = "python tests/conformance/record.py tests/conformance/data"

Array = NDArray[Any]


@dataclass(frozen=True)
class Out:
    """An array that a kernel writes; its contents after the launch are recorded.

    `initial` gives its contents before the launch (zeros by default). `labels` gives the instruction of each row, along
    the first axis, and `bounds` the bounds of those instructions that need not be exact. `view` is the dtype for the
    comparison if it differs from that of the kernel's pointer. `sorted` is for results whose order the hardware does
    not define.
    """

    name: str
    dtype: str
    shape: tuple[int, ...] = ()
    initial: Array | None = None
    labels: tuple[str, ...] = ()
    bounds: Mapping[str, Bound] | None = None
    bound: Bound = EXACT
    view: str = ""
    sorted: bool = False

    def before(self) -> Array:
        return np.zeros(self.shape, self.dtype) if self.initial is None else self.initial

    def bound_of(self, row: int) -> Bound:
        return self.bounds.get(self.labels[row], EXACT) if self.bounds else self.bound


@dataclass(frozen=True)
class Sampled:
    """A texture of an image, with one channel or with channels last; `options` are for `cuda.textures.Texture`.

    The image is in pitched memory, or with another `geometry` in a CUDA array. With "layered", the first axis counts
    layers.
    """

    image: Array
    options: tuple[tuple[str, Any], ...]
    geometry: str = "pitched"

    def texture(self) -> cuda.textures.Texture:
        options = dict(self.options)
        if self.geometry != "pitched":
            array = cuda.textures.CudaArray(self.image.shape, self.image.dtype, layered=self.geometry == "layered")
            return cuda.textures.Texture(array.copy_from(self.image), **options)
        flat = self.image.reshape(self.image.shape[0], -1)
        rows = cuda.empty_pitched(flat.shape, flat.dtype).copy_from(flat)
        channels = self.image.shape[2:]
        if channels:
            strides = (rows.pitch, channels[0] * flat.itemsize, flat.itemsize)
            rows = cuda.DeviceArray.borrow(rows.pointer, self.image.shape, flat.dtype, strides=strides, owner=rows)
        return cuda.textures.Texture(rows, **options)


@dataclass(frozen=True)
class Case:
    """One launch of `kernel` in the file `kernels/<group>.cu`, with its arguments in order.

    An argument is an array, which the kernel may change, an `Out`, a `Sampled` image or a scalar.
    """

    group: str
    kernel: str
    grid: Any
    block: Any
    arguments: tuple[Any, ...]
    name: str = ""
    shared_bytes: int = 0

    @property
    def id(self) -> str:
        return self.name or self.kernel

    @property
    def outs(self) -> list[Out]:
        return [argument for argument in self.arguments if isinstance(argument, Out)]

    @property
    def digest(self) -> int:
        """A checksum of the kernel's code and all its inputs, to which recorded results must belong exactly."""
        shape = repr((self.kernel, self.grid, self.block, self.shared_bytes))
        checksum = zlib.crc32((shape + code(self.group, self.kernel)).encode())
        for argument in self.arguments:
            if isinstance(argument, Out):
                argument = argument.before()
            elif isinstance(argument, Sampled):
                checksum = zlib.crc32(repr(argument.options).encode(), checksum)
                argument = argument.image
            checksum = zlib.crc32(np.ascontiguousarray(argument).tobytes(), checksum)
        return checksum


@functools.cache
def code(group: str, kernel: str) -> str:
    """Return a kernel's code: its file and `rows.cuh` without the other kernels, comments and spacing."""
    text = re.sub(r"//[^\n]*", "", (KERNELS / "rows.cuh").read_text() + (KERNELS / f"{group}.cu").read_text())
    kept, *others = re.split(r"(?=^extern \"C\" __global__ void \w+\()", text, flags=re.MULTILINE)
    for part in others:
        body, rest = re.split(r"^}", part, maxsplit=1, flags=re.MULTILINE)
        kept += (body if f" {kernel}(" in part.split("\n", 1)[0] else "") + rest
    return " ".join(kept.split())


@functools.cache
def rows(group: str, kernel: str) -> tuple[str, ...]:
    """Return the labels of a row kernel's rows, which are the first argument of each macro in its source."""
    _, text = (KERNELS / f"{group}.cu").read_text().split(f"__global__ void {kernel}(")
    return tuple(re.findall(r"\b[A-Z][A-Z0-9_]*\(\s*\"([^\"]+)\"", text.split("\n}")[0]))


# Groups that are compiled together, because NVRTC takes seconds to compile the headers that they share.
TOGETHER = ("cub_block_histogram", "cub_block_reduce", "cub_warp_reduce", "cooperative_groups", "atomic_ref")


@functools.cache
def module(*groups: str) -> cuda.Module:
    source = "".join(f'#include "{group}.cu"\n' for group in groups)
    return cuda.compile(source, include=[KERNELS], options=OPTIONS)


def launch(kernel: cuda.Kernel, case: Case) -> dict[str, Array]:
    """Launch a kernel with a case's arguments and return its recorded arrays by name."""
    arguments: list[Any] = []
    written: list[tuple[Out, cuda.DeviceArray]] = []
    for argument in case.arguments:
        if isinstance(argument, Out):
            written.append((argument, cuda.to_device(argument.before())))
            argument = written[-1][1]
        elif isinstance(argument, Sampled):
            argument = argument.texture()
        elif isinstance(argument, np.ndarray):
            argument = cuda.to_device(argument)
        arguments.append(argument)
    kernel[case.grid, case.block, case.shared_bytes](*arguments)
    arrays = [(out, device.to_host()) for out, device in written]
    return {out.name: np.sort(array, axis=None) if out.sorted else array for out, array in arrays}


def run(case: Case) -> dict[str, Array]:
    """Run a case on the chosen driver."""
    groups = TOGETHER if case.group in TOGETHER else (case.group,)
    return launch(module(*groups)[case.kernel], case)


class MissingDataError(LookupError):
    """There is no recorded result for this code and these inputs; the message gives the command that records one."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} was never recorded as it is now: run `{COMMAND}` on a machine with a GPU")


@functools.cache
def load(group: str) -> tuple[dict[str, Array], dict[str, int]]:
    """Return the recorded arrays and checksums of a group."""
    path = DATA / f"{group}.npz"
    if not path.is_file():
        raise MissingDataError(path.name)
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files if name != "metadata"}
        return arrays, json.loads(str(file["metadata"]))["digests"]


def expected(case: Case) -> dict[str, Array]:
    """Return a case's recorded arrays by name; raise MissingDataError if the case has changed since it was recorded."""
    arrays, digests = load(case.group)
    if digests.get(case.id) != case.digest:
        raise MissingDataError(f"{case.group}.cu, {case.id}")
    return {out.name: arrays[f"{case.id}/{out.name}"] for out in case.outs}


def differences(case: Case, out: Out, expected: Array, got: Array) -> str:
    """Describe where an array differs from the recorded one by more than its bound; return "" if nowhere."""
    lines = []
    for row, label in enumerate(out.labels or [""]):
        e, g = (expected[row], got[row]) if out.labels else (expected, got)
        e, g = (np.ascontiguousarray(a).reshape(-1).view(out.view or a.dtype) for a in (e, g))
        bad = np.flatnonzero(~out.bound_of(row).allows(e, g))
        if bad.size:
            lines.append(f"{out.name}, row {row} {label}: {bad.size} of {e.size} differ")
        inputs = [a for a in case.arguments if isinstance(a, np.ndarray) and a.ndim == 1 and a.dtype.names is None]
        for i in bad[:6]:
            given = "".join(f"; {_shown(array[i])}" for array in inputs if i < array.size)
            lines.append(f"    [{i}] expected {_shown(e[i])}, got {_shown(g[i])}{given}")
    return "\n".join(lines)


def _shown(value: Any) -> str:
    return f"{value!s} (0x{value.tobytes()[::-1].hex()})"
