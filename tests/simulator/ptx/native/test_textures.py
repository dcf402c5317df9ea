"""Textures and surfaces in machine code give the NumPy engine's results, counts and faults, for random data."""

import functools
import itertools
from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.counters.launch_counters import LaunchCounters
from cudart_py.simulator.ptx import Texture, load_module
from cudart_py.simulator.ptx.operations.surfaces import Surface
from tests.simulator.ptx.machine import HEAD, Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

LANES = 256
AXES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2}
HANDLES = (0x100, 0x200)
# Kernels read the lane's handle, its coordinates (four words, of which the first may be a layer), and values.
PROLOGUE = """.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2) {
    .reg .b32 i, c<4>, v<4>; .reg .b64 handles, at, out, handle, place; .reg .pred half;
    ld.param.u64 handles, [p0]; ld.param.u64 at, [p1]; ld.param.u64 out, [p2];
    mov.u32 i, %tid.x; mov.u32 c0, %ctaid.x; mov.u32 c1, %ntid.x; mad.lo.u32 i, c0, c1, i;
    mad.wide.u32 place, i, 8, handles; ld.global.u64 handle, [place];
    mad.wide.u32 at, i, 16, at; mad.wide.u32 out, i, 16, out;
    ld.global.v4.b32 {c0, c1, c2, c3}, [at];
    setp.lt.u32 half, c3, 0x80000000;
"""
FETCH = "tex.%s.v4.%s.%s {v0, v1, v2, v3}, [handle, {%s}]; st.global.v4.b32 [out], {v0, v1, v2, v3};"


def operands(geometry: str) -> str:
    """Return the coordinates' registers, the layer's first; 2-D layers and 3-D use four registers."""
    count = AXES[geometry] + (geometry[0] == "a")
    return ", ".join(f"c{min(number, count - 1)}" for number in range(count if count < 3 else 4))


def fetching(geometry: str, result: str, coordinate: str) -> Kernels:
    body = FETCH % (geometry, result, coordinate, operands(geometry))
    return Kernels(load_module(f"{HEAD}{PROLOGUE}{body} ret; }}"))


def random_texture(generator: Any, kernels: Kernels, geometry: str, channel: str, **options: Any) -> Texture:
    width, height, depth = (int(extent) for extent in generator.integers(1, 9, 3))
    height = 0 if geometry in ("1d", "a1d") else height
    depth = 0 if geometry in ("1d", "2d") else depth
    channels = int(generator.choice([1, 2, 4]))
    pitch = -(-width * channels * np.dtype(channel).itemsize // 32) * 32 + 32
    size = pitch * max(height, 1) * max(depth, 1)
    if channel[0] == "f":
        data = generator.normal(0, 10.0 ** generator.integers(-40, 3), size // int(channel[1])).astype(channel)
    else:
        data = generator.integers(0, 256, size, np.uint8)
    return Texture(
        kernels.put(data), width, height, pitch, channels, channel, depth=depth, slice_pitch=pitch * max(height, 1),
        layered=geometry[0] == "a", border=(0.25, 1.0, 0.5, 7.0),
        address_modes=tuple(generator.choice(["clamp", "border", "wrap", "mirror"], 3).tolist()), **options,
    )  # fmt: skip  # grouped by meaning


def random_coordinates(generator: Any, texture: Texture, geometry: str, integers: bool) -> np.ndarray[Any, Any]:
    """Return coordinates inside and outside of a texture, with some that are huge, infinite or NaN."""
    extents = texture.extents
    if integers:
        columns = [generator.integers(-2 * extent - 1, 3 * extent + 2, LANES).astype(np.int32) for extent in extents]
    else:
        columns = []
        for extent in extents:
            column = generator.uniform(-2 * extent, 3 * extent, LANES)
            column[::3] = np.rint(column[::3] * 2) / 2
            column = (column / (extent if texture.normalized_coordinates else 1)).astype(np.float32)
            column[generator.integers(0, LANES, 8)] = [np.nan, np.inf, -np.inf, 1e30, -1e30, 1e-44, -0.0, 3e9]
            columns.append(column)
    if geometry[0] == "a":
        columns.insert(0, generator.integers(0, texture.depth + 3, LANES).astype(np.uint32))
    columns = [*columns, *[generator.integers(0, 1 << 32, LANES, np.uint32)] * (4 - len(columns))]
    return np.stack([column.view(np.uint32) for column in columns], 1)


KINDS = [
    *(("f32", channel, linear, "element") for channel in ("f4", "f2") for linear in (False, True)),
    *(("f32", channel, linear, "fraction") for channel in ("u1", "i1", "u2", "i2") for linear in (False, True)),
    ("u32", "u1", False, "element"), ("s32", "i1", False, "element"), ("s32", "i2", False, "element"),
    ("u32", "u4", False, "element"), ("s32", "i4", False, "element"),
]  # fmt: skip  # one table


# The default level has a third of the cases for each geometry, and the exhaustive level the others.
PARTS = pytest.mark.parametrize("part", ["third", pytest.param("rest", marks=pytest.mark.exhaustive)])


def part_of(cases, geometry, part):
    """Return the cases of a geometry that belong to a level; each case is in the default level of some geometry."""
    first = list(AXES).index(geometry) % 3
    return [case for place, case in enumerate(cases) if (place % 3 == first) == (part == "third")]


@PARTS
@pytest.mark.parametrize("geometry", AXES)
def test_fetches_agree(geometry, part):
    """The address modes and extents of the textures are random, and each launch uses two textures at once."""
    generator = np.random.default_rng(sum(geometry.encode()))
    fetches = functools.cache(functools.partial(fetching, geometry))
    for result, channel, linear, read in part_of(KINDS, geometry, part):
        coordinate = "s32" if not linear and generator.integers(0, 4) == 0 else "f32"
        normalized = bool(generator.integers(0, 2))
        kernels = fetches(result, coordinate)
        options = {"linear": linear, "normalized_coordinates": normalized, "normalized_read": read == "fraction"}
        textures = [random_texture(generator, kernels, geometry, channel, **options) for _ in HANDLES]
        kernels.memory.texture = dict(zip(HANDLES, textures, strict=True)).__getitem__
        at = random_coordinates(generator, textures[0], geometry, coordinate == "s32")
        handles = generator.choice(np.array(HANDLES, np.uint64), LANES)
        kernels.agree("k", LANES // 64, 64, handles, at, np.zeros(4 * LANES, np.uint32))
        assert kernels.ran_natively("k")


@pytest.mark.parametrize("linear", [False, True])
def test_fetches_are_counted_alike(linear):
    generator = np.random.default_rng(8)
    kernels = Kernels(load_module(f"{HEAD}{PROLOGUE}@half {FETCH % ('2d', 'f32', 'f32', 'c0, c1')} ret; }}"))
    textures = [random_texture(generator, kernels, "2d", "f4", linear=linear) for _ in HANDLES]
    kernels.memory.texture = dict(zip(HANDLES, textures, strict=True)).__getitem__
    at = kernels.put(random_coordinates(generator, textures[0], "2d", False))
    handles = kernels.put(np.repeat(np.array(HANDLES, np.uint64), 140)[:LANES])
    metrics = []
    for kernels.engine in ("numpy", "native"):
        counters = LaunchCounters()
        kernels.launch("k", LANES // 64, 64, handles, at, kernels.zeros(4 * LANES), observer=counters)
        metrics.append((counters.metrics, counters.lines))
    assert metrics[0] == metrics[1]
    assert metrics[0][0]["l1tex__t_sectors_pipe_tex_mem_texture.sum"] > 10
    assert kernels.ran_natively("k")


# --- surfaces


def moving(geometry: str, words: str, edge: str) -> str:
    """Return the body of a kernel that adds 1 to the first element of what it loads, and stores it."""
    count = int(words[1]) if words[0] == "v" else 1
    width = words.rpartition(".")[2]
    registers = [f"w{number}" for number in range(count)]
    vector = f"{{{', '.join(registers)}}}" if count > 1 else registers[0]
    place = f"[handle, {{{operands(geometry)}}}]"
    text = f".reg .{width} w<4>; suld.b.{geometry}.{words}.{edge} {vector}, {place};"
    text += f"add.u{width[1:] if width != 'b8' else '16'} w0, w0, 1;" if width != "b8" else ""
    text += f"sust.b.{geometry}.{words}.{edge} {place}, {vector};"
    return text + "".join(f"cvt.u32.u{width[1:]} v{n}, {register}; " for n, register in enumerate(registers))


def random_surface(generator: Any, kernels: Kernels, geometry: str, size: int) -> tuple[Surface, int]:
    height = 0 if geometry in ("1d", "a1d") else int(generator.integers(1, 6))
    depth = 0 if geometry in ("1d", "2d") else int(generator.integers(1, 4))
    row = size * int(generator.integers(1, 9))
    pitch = -(-row // 32) * 32 + 32
    above = pitch * max(height, 1)
    data = generator.integers(0, 256, above * max(depth, 1), np.uint8)
    return Surface(kernels.put(data), row, height, depth, pitch, above, geometry[0] == "a"), len(data)


WORDS = ("b8", "b16", "b32", "b64", "v2.b16", "v4.b32", "v2.b64")
EDGES = list(itertools.product(WORDS, ("zero", "clamp")))


@PARTS
@pytest.mark.parametrize("geometry", AXES)
def test_accesses_to_surfaces_agree(geometry, part):
    """Each lane has a place of its own, because with several lanes in one place the order of the warps would matter."""
    generator = np.random.default_rng(sum(geometry.encode()))
    for words, edge in part_of(EDGES, geometry, part):
        kernels = Kernels(load_module(f"{HEAD}{PROLOGUE}{moving(geometry, words, edge)} "
                                      "st.global.v4.b32 [out], {v0, v0, v0, v0}; ret; }"))  # fmt: skip  # one text
        size = int(words.rpartition("b")[2]) // 8 * (int(words[1]) if words[0] == "v" else 1)
        surface, length = random_surface(generator, kernels, geometry, size)
        kernels.memory.surface = {HANDLES[0]: surface}.__getitem__
        columns = [size * generator.integers(-2, 11, LANES), *generator.integers(-2, 8, (2, LANES))]
        if geometry[0] == "a":
            columns = [generator.integers(0, 5, LANES), *columns[:2]]
        at = np.stack([*columns, np.zeros(LANES, np.int64)], 1).astype(np.int32)
        if edge == "clamp":
            at[1:] = at[0]
        handles = kernels.put(np.full(LANES, HANDLES[0], np.uint64))
        before, after = kernels.get(surface.address, length, np.uint8), []
        for observer in (None, LaunchChecks()):
            kernels.memory.view(surface.address, length, np.uint8)[:] = before
            stored = []
            for kernels.engine in ("numpy", "native"):
                out = kernels.zeros(4 * LANES, np.uint32)
                kernels.memory.view(surface.address, length, np.uint8)[:] = before
                lanes = 32
                kernels.launch("k", 1, lanes, handles, kernels.put(at), out, observer=observer)
                stored.append((kernels.get(surface.address, length, np.uint8).tolist(),
                               kernels.get(out, 4 * LANES, np.uint32).tolist()))  # fmt: skip  # a pair
            assert stored[0] == stored[1], (words, edge, surface)
            after.append(stored[0])
        assert after[0] == after[1]
        assert kernels.ran_natively("k")


FAULTS = [
    ("tex.2d.v4.f32.f32 {v0, v1, v2, v3}, [handle, {c0, c1}];", 0x999, (0, 0), "is not a texture object"),
    ("suld.b.2d.b32.trap v0, [handle, {c0, c1}];", HANDLES[0], (64, 0), "outside of a surface, at x = 64, y = 0"),
    ("suld.b.2d.b32.clamp v0, [handle, {c0, c1}];", HANDLES[0], (6, 0), "must be a multiple of 4"),
    ("sust.b.2d.b32.trap [handle, {c0, c1}], c1;", HANDLES[0], (0, 3), "outside of a surface, at x = 0, y = 3"),
    ("sust.b.2d.b32.trap [handle, {c0, c1}], c1;", 0xFFFFFFFFFFFFFFFF, (0, 3), "is not a surface object"),
]


@pytest.mark.parametrize(("body", "handle", "at", "message"), FAULTS)
def test_faults_are_reported_alike(body, handle, at, message):
    kernels = Kernels(load_module(f"{HEAD}{PROLOGUE}{body} ret; }}"))
    surface = Surface(kernels.zeros(1024), 64, 3, 0, 64, 192, False)
    kernels.memory.surface = {HANDLES[0]: surface}.__getitem__
    kernels.memory.texture = {}.__getitem__
    handles = np.full(64, HANDLES[0], np.uint64)
    handles[37] = handle
    places = np.zeros((64, 4), np.int32)
    places[37, :2] = at
    if "tex" in body:
        handles[:] = handle
    assert message in kernels.fault("k", 1, 64, kernels.put(handles), kernels.put(places), 0)


def test_stores_to_a_surface_are_undone_if_a_launch_runs_again():
    """Each lane increments an element; the race on one word makes the NumPy engine run the launch once more."""
    body = moving("2d", "b32", "trap") + "st.global.u32 [handles], i;"
    kernels = Kernels(load_module(f"{HEAD}{PROLOGUE}{body} ret; }}"))
    surface = Surface(kernels.zeros(4096), 256, 4, 0, 256, 1024, False)
    kernels.memory.surface = {HANDLES[0]: surface}.__getitem__
    at = np.zeros((64, 4), np.int32)
    at[:, 0] = 4 * np.arange(64)
    kernels.engine = "native"
    handles = kernels.put(np.full(64, HANDLES[0], np.uint64))
    kernels.launch("k", 1, 64, handles, kernels.put(at), 0, observer=LaunchChecks())
    assert kernels.ran_natively("k")
    assert kernels.get(surface.address, 64).tolist() == [1] * 64
