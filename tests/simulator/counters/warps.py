"""The tables of warps.cu, made of random numbers and rules: what each lane of each warp accesses."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

Array = NDArray[Any]
SOURCE = Path(__file__).with_name("warps.cu")
_LANES = np.arange(32)
_SHARED_BYTES = 1 << 14
_GLOBAL_BYTES = 1 << 18
_BLOCK = 128
# The sides of the textures.
_SIDE = 256
_ATOMICS = {
    "u32": (4, ("dup/8", "dup/1", "dup/2")),
    "u64": (8, ("dup/8", "permuted/random")),
    "f64": (8, ("dup/8", "dup/1", "permuted/random")),
    "v4f32": (16, ("dup/8", "permuted/random")),
    "cas64": (8, ("dup/8",)),
    "exch32": (4, ("dup/8",)),
}
_SHARED_FAMILIES = (
    "random/random", "random/full", "joined/random", "joined/full", "window/full", "window/random",
    "joinedwindow/full", "joinedwindow/random", "affine/full", "affine/random", "random/prefix", "random/suffix",
    "permuted/random", "sorted/full",
)  # fmt: skip  # a list of words
_ATOMIC_FAMILIES = ("random/random", "window/full", "window/random", "dup/4", "joined/full")


class Launch(NamedTuple):
    """A launch of a kernel of warps.cu; `texture` is the memory of its texture, "pitched" or "array"."""

    name: str
    kernel: str
    table: Array
    numbers: Array
    texture: str = ""


def _generator(*key: object) -> np.random.Generator:
    return np.random.default_rng([sum(map(ord, str(part))) * 7919 + len(str(part)) for part in key])


def _masks(generator: np.random.Generator, count: int, kind: str) -> Array:
    """Return a mask of the active lanes of each warp."""
    if kind == "full":
        return np.ones((count, 32), np.bool_)
    if kind == "prefix":
        return np.asarray(_LANES[None] < generator.integers(1, 33, (count, 1)))
    if kind == "suffix":
        return np.asarray(_LANES[None] >= generator.integers(0, 32, (count, 1)))
    masks = generator.random((count, 32)) < generator.choice([0.1, 0.3, 0.5, 0.8, 0.95], (count, 1))
    masks[np.arange(count), generator.integers(0, 32, count)] = True
    return masks


def family(name: str, size: int, count: int, span: int, salt: object = 0) -> Array:
    """Return the byte offsets of `count` warps that access elements of `size` bytes in a region of `span` bytes.

    The name consists of a kind of offsets and a kind of mask, or for "dup" of the number of elements.
    """
    generator = _generator(name, size, span, salt)
    kind, _, mask = name.partition("/")
    most = span // size
    if kind == "mix":
        kinds = ("random", "window", "affine", "joined", "permuted", "sorted")
        names = [f"{one}/{mask}" for one in kinds for mask in ("full", "random")]
        return np.concatenate([family(one, size, count // 12 + 1, span, salt) for one in names])[:count]
    if kind == "dup":
        at = generator.integers(0, int(mask), (count, 32)) + generator.integers(0, most - int(mask), (count, 1))
        return np.asarray((at * size).astype(np.int32))
    at = _KINDS[kind](generator, count, most) * size
    return np.where(_masks(generator, count, mask), at, -1).astype(np.int32)


def _window(generator: np.random.Generator, count: int, most: int) -> Array:
    inside = generator.integers(0, 1 << 30, (count, 32)) % generator.choice([4, 8, 16, 32, 64, 128], (count, 1))
    return np.asarray(inside + generator.integers(0, most - 128, (count, 1)))


def _affine(generator: np.random.Generator, count: int, most: int) -> Array:
    steps = generator.integers(-40, 41, (count, 1)) * _LANES
    return np.asarray((steps + generator.integers(0, most, (count, 1))) % most)


def _join(generator: np.random.Generator, base: Array) -> Array:
    """Let lanes share the elements of the lanes whose indices lack some bits."""
    bits = generator.choice([1, 2, 4, 8, 16, 3, 5, 24], (len(base), 1))
    return np.take_along_axis(base, _LANES[None] & ~bits, axis=1)


def _joined(generator: np.random.Generator, count: int, most: int) -> Array:
    return _join(generator, generator.integers(0, most, (count, 32)))


def _joined_window(generator: np.random.Generator, count: int, most: int) -> Array:
    base = generator.integers(0, 32, (count, 32)) + generator.integers(0, most - 64, (count, 1))
    return _join(generator, base)


def _permuted(generator: np.random.Generator, count: int, most: int) -> Array:
    order = np.argsort(generator.random((count, 32)), axis=1)
    return np.asarray(order + generator.integers(0, most - 64, (count, 1)))


def _sorted(generator: np.random.Generator, count: int, most: int) -> Array:
    inside = generator.integers(0, 1 << 30, (count, 32)) % generator.choice([32, 64, 128, 512], (count, 1))
    return np.asarray(np.sort(inside, axis=1) + generator.integers(0, most - 512, (count, 1)))


_KINDS: dict[str, Callable[[np.random.Generator, int, int], Array]] = {
    "random": lambda generator, count, most: generator.integers(0, most, (count, 32)),
    "window": _window,
    "affine": _affine,
    "joined": _joined,
    "joinedwindow": _joined_window,
    "permuted": _permuted,
    "sorted": _sorted,
}


def _launch(name: str, kernel: str, table: Array, numbers: int | None = None, texture: str = "") -> Launch:
    """Return a launch; without `numbers`, a warp's number says whether the table has a row for it."""
    table = np.ascontiguousarray(table, np.int32)
    warps = -(-len(table) // 4) * 4 + 64
    given = np.resize(np.int32(numbers), warps) if numbers is not None else (np.arange(warps) < len(table))
    return Launch(name, kernel, table, given.astype(np.int32), texture)


def launches() -> Iterator[Launch]:
    """Return the launches in order."""
    yield from _of_shared_memory()
    for size in (1, 4, 16):
        for kind in ("ld", "st"):
            kernel = f"global_{kind}_{size}"
            yield _launch(f"{kernel} mix", kernel, family("mix", size, 960, _GLOBAL_BYTES))
    for kind, (size, names) in _ATOMICS.items():
        for name in names:
            yield _launch(f"atomic_{kind} {name}", f"atomic_{kind}", family(name, size, 256, _GLOBAL_BYTES))
    for kind, lanes in (("u32", 32), ("u32", 7), ("s32max", 32), ("u64", 32), ("f32", 32), ("exch32", 32)):
        yield _launch(f"uniform_{kind} {lanes}", f"uniform_{kind}", np.zeros((8, 32)), lanes)
    for kind, name, step in (
        ("ca4", "random/random", 8), ("ca16", "permuted/full", 16), ("cg16", "random/random", 32),
        ("cg16", "permuted/full", 16),
    ):  # fmt: skip  # rows of a table
        table = family(name, int(kind[2:]), 64, _GLOBAL_BYTES)
        yield _launch(f"copy_{kind} {name}", f"copy_{kind}", table, step)
    for size in (1, 4, 8):
        yield _launch(f"local_{size} mix", f"local_{size}", _local_indices(size, "mix"), 1)
        yield _launch(f"local_{size} same", f"local_{size}", _local_indices(size, "same"), 1)
    for size, entries in ((4, 1024), (16, 256)):
        table = _generator("constant", size).integers(0, entries, (64, 32))
        yield _launch(f"constant_{size} random", f"constant_{size}", table)
    yield from _of_textures()


def _of_shared_memory() -> Iterator[Launch]:
    for size in (16, 8, 4, 2, 1):
        for kind in ("ld", "st"):
            count = 8 if size < 8 or kind == "st" else 16
            tables = [family(name, size, count, _SHARED_BYTES, "cupti") for name in _SHARED_FAMILIES]
            yield _launch(f"shared_{kind}_{size}", f"shared_{kind}_{size}", np.concatenate(tables))
    for kind, size, names, count in (
        ("add", 4, _ATOMIC_FAMILIES, 16), ("cas", 4, _ATOMIC_FAMILIES, 6),
        ("cas64", 8, (*_ATOMIC_FAMILIES, "random/full"), 10), ("exch64", 8, (*_ATOMIC_FAMILIES, "random/full"), 10),
    ):  # fmt: skip  # rows of a table
        tables = [family(name, size, count, _SHARED_BYTES, "cupti") for name in names]
        yield _launch(f"shared_{kind}", f"shared_{kind}", np.concatenate(tables))
    names = ("random/full", "window/full", "affine/full", "joined/full", "dup/4")
    table = np.concatenate([family(name, 16, 12, _SHARED_BYTES, "cupti") for name in names])
    for kernel in ("ldsm_2", "ldsm_4", "stsm_4"):
        yield _launch(kernel, kernel, table)


def _local_indices(size: int, name: str) -> Array:
    generator = _generator("local", size, name)
    if name == "same":
        return np.repeat(generator.integers(0, 64, (240, 1)), 32, axis=1)
    at = generator.integers(0, 64, (240, 32))
    at[:80] %= 8
    at[80:160] = np.where(_masks(generator, 80, "random"), at[80:160], -1)
    return at


def _of_textures() -> Iterator[Launch]:
    generator = _generator("textures")
    blocks = np.arange(20)[:, None]
    tables = {
        "row": np.arange(7)[:, None] * _SIDE + _LANES + 32 * np.arange(7)[:, None],
        "column": _LANES * _SIDE + np.arange(7)[:, None] * 9,
        "square": (_LANES // 8 + 4 * blocks) * _SIDE + _LANES % 8 + 8 * blocks,
        "random": generator.integers(0, 200, (64, 32)) * _SIDE + generator.integers(0, 255, (64, 32)),
        "same": np.repeat(generator.integers(0, 40000, (16, 1)), 32, axis=1),
    }
    for kernel, memory, names in (
        ("tex2d", "pitched", tables), ("tex2d", "array", ("row", "column", "square", "random")),
        ("tex2d_linear", "pitched", tables), ("tex2d_byte", "pitched", ("row", "random")),
        ("tex2d_float4", "pitched", ("row", "random")), ("tex1d_fetch", "pitched", ("row", "random")),
    ):  # fmt: skip  # rows of a table
        for name in names:
            yield _launch(f"{kernel} {memory} {name}", kernel, tables[name], texture=memory)


def _texture(kernel: str, memory: str) -> cuda.textures.Texture:
    if kernel == "tex1d_fetch":
        return cuda.textures.Texture(cuda.zeros(_SIDE * _SIDE, np.float32), dimensions=1)
    if kernel == "tex2d_float4":
        return cuda.textures.Texture(cuda.zeros((_SIDE, _SIDE, 4), np.float32))
    dtype = np.uint8 if kernel == "tex2d_byte" else np.float32
    if memory == "array":
        return cuda.textures.Texture(cuda.textures.CudaArray((_SIDE, _SIDE), dtype))
    texels = cuda.empty_pitched((_SIDE, _SIDE), dtype).copy_from(np.zeros((_SIDE, _SIDE), dtype))
    return cuda.textures.Texture(texels, filter="linear" if "linear" in kernel else "point")


def run(chosen: Iterable[Launch]) -> None:
    """Run launches in order."""
    module = cuda.compile(SOURCE)
    data, out = cuda.zeros(2 * _GLOBAL_BYTES, np.uint8), cuda.zeros(1 << 16, np.uint32)
    for one in chosen:
        texture = _texture(one.kernel, one.texture) if one.texture else 0
        rows = np.where(np.arange(len(one.numbers)) < len(one.table), np.arange(len(one.numbers)), 0)
        arrays = [cuda.to_device(array.astype(np.int32)) for array in (one.table, rows, one.numbers)]
        module[one.kernel][-(-len(one.table) // (_BLOCK // 32)), _BLOCK](*arrays, data, out, texture)
        cuda.current_device().synchronize()
