"""Cube maps, mipmapped arrays and gathers through the driver's own functions, for kernels of CUDA C++."""

from pathlib import Path

import numpy as np
import pytest
from cuda.bindings import driver as enums

import cudart_py as cuda
from cudart_py.driver.calls import api
from tests.simulator.support import struct

KERNELS = """
typedef cudaTextureObject_t Texture;
#define READ(name, expression)                                                                   \\
    extern "C" __global__ void name(Texture t, const float4 *at, float4 *out, int n) {           \\
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                           \\
        if (i >= n) return;                                                                      \\
        float4 p = at[i];                                                                        \\
        out[i] = expression;                                                                     \\
    }
READ(cube, texCubemap<float4>(t, p.x, p.y, p.z))
READ(layered_cube, texCubemapLayered<float4>(t, p.x, p.y, p.z, (int)p.w))
READ(level, tex2DLod<float4>(t, p.x, p.y, p.w))
READ(level_1d, tex1DLod<float4>(t, p.x, p.w))
READ(level_3d, tex3DLod<float4>(t, p.x, p.y, p.z, p.w))
READ(level_layers, tex2DLayeredLod<float4>(t, p.x, p.y, (int)p.z, p.w))
READ(gradient, tex2DGrad<float4>(t, p.x, p.y, make_float2(p.z, 0), make_float2(0, p.w)))
READ(base, tex2D<float4>(t, p.x, p.y))
READ(gather_x, tex2Dgather<float4>(t, p.x, p.y, 0))
READ(gather_w, tex2Dgather<float4>(t, p.x, p.y, 3))
"""


HOST, ARRAY = enums.CUmemorytype.CU_MEMORYTYPE_HOST, enums.CUmemorytype.CU_MEMORYTYPE_ARRAY
FILTERS = enums.CUfilter_mode.CU_TR_FILTER_MODE_POINT, enums.CUfilter_mode.CU_TR_FILTER_MODE_LINEAR


def description(shape, flags=0):
    """Describe an array of four floats per element with a shape (depth, height, width); missing dimensions are 0."""
    sizes = dict(zip(("Depth", "Height", "Width"), shape, strict=True))
    float32 = enums.CUarray_format.CU_AD_FORMAT_FLOAT
    return struct("CUDA_ARRAY3D_DESCRIPTOR", Format=float32, NumChannels=4, Flags=flags, **sizes)


def shape_of(host):
    return (*(0,) * (4 - host.ndim), *host.shape[:-1])


def fill(array, host):
    """Copy host data to an array through a 3-D copy."""
    depth, height, width = (max(extent, 1) for extent in shape_of(host))
    source = {"srcMemoryType": HOST, "srcHost": host.ctypes.data, "srcPitch": 16 * width, "srcHeight": height}
    extent = {"WidthInBytes": 16 * width, "Height": height, "Depth": depth}
    api.cuMemcpy3D(struct("CUDA_MEMCPY3D", dstMemoryType=ARRAY, dstArray=array, **source, **extent))


def texture(resource, *, linear=False, address="CLAMP", blends=False, **levels):
    modes = {"filterMode": FILTERS[linear], "mipmapFilterMode": FILTERS[blends], **levels}
    modes["addressMode"] = [getattr(enums.CUaddress_mode, f"CU_TR_ADDRESS_MODE_{address}")] * 3
    flags = enums.CU_TRSF_NORMALIZED_COORDINATES
    return api.cuTexObjectCreate(resource, struct("CUDA_TEXTURE_DESC", flags=flags, **modes), None)


def array_of(host, flags=0):
    """Return the resource of a new array with these elements."""
    array = api.cuArray3DCreate(description(shape_of(host), flags))
    fill(array, host)
    kind = enums.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
    return struct("CUDA_RESOURCE_DESC", resType=kind, res__array__hArray=array)


def mipmap_of(levels, flags=0):
    """Return the resource of a new mipmapped array with these levels, and its handle."""
    array = api.cuMipmappedArrayCreate(description(shape_of(levels[0]), flags), len(levels))
    for number, host in enumerate(levels):
        fill(api.cuMipmappedArrayGetLevel(array, number), host)
    kind = enums.CUresourcetype.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
    return struct("CUDA_RESOURCE_DESC", resType=kind, res__mipmap__hMipmappedArray=array), array


def read(kernel, handle, at):
    at = np.ascontiguousarray(at, np.float32)
    out = cuda.full((len(at), 4), np.nan, np.float32)
    kernel[-(-len(at) // 64), 64](np.uint64(int(handle)), cuda.to_device(at), out, len(at))
    return out.to_host()


def halves(rng, *shape):
    """Draw elements of four channels and the levels of their mipmap, each a random image of its own."""
    levels = []
    while not levels or max(levels[-1].shape[:-1]) > 1:
        levels.append(rng.random((*shape, 4)).astype(np.float32))
        shape = tuple(max(extent // 2, 1) for extent in shape)
    return levels


# The directions of the axes x, y and z of a face's own coordinates: right, down and outwards, as in CUDA's guide.
FACES = [
    ((0, 0, -1), (0, -1, 0), (1, 0, 0)), ((0, 0, 1), (0, -1, 0), (-1, 0, 0)), ((1, 0, 0), (0, 0, 1), (0, 1, 0)),
    ((1, 0, 0), (0, 0, -1), (0, -1, 0)), ((1, 0, 0), (0, -1, 0), (0, 0, 1)), ((-1, 0, 0), (0, -1, 0), (0, 0, -1)),
]  # fmt: skip  # rows of a table


def directions(width):
    """Return the directions to the centers of all elements of the faces of a cube, of any length."""
    place = (np.arange(width) + 0.5) / width * 2 - 1
    down, right = (axis[..., None] for axis in np.meshgrid(place, place, indexing="ij"))
    faces = [right * np.array(x) + down * np.array(y) + np.array(z) for x, y, z in FACES]
    return np.stack(faces).reshape(-1, 3)


def test_each_element_of_a_cube_map_is_found_by_its_direction(device, kernels, rng):
    host = rng.random((6, 4, 4, 4)).astype(np.float32)
    handle = texture(array_of(host, enums.CUDA_ARRAY3D_CUBEMAP))
    at = np.zeros((96, 4), np.float32)
    at[:, :3] = directions(4) * rng.uniform(0.5, 2, (96, 1))
    np.testing.assert_array_equal(read(kernels["cube"], handle, at), host.reshape(-1, 4))


def test_layers_of_cube_maps(device, kernels, rng):
    host = rng.random((18, 4, 4, 4)).astype(np.float32)
    handle = texture(array_of(host, enums.CUDA_ARRAY3D_CUBEMAP | enums.CUDA_ARRAY3D_LAYERED))
    at = np.concatenate([np.tile(directions(4), (3, 1)), np.repeat(np.arange(3), 96)[:, None]], axis=1)
    np.testing.assert_array_equal(read(kernels["layered_cube"], handle, at), host.reshape(-1, 4))


def test_a_cube_map_has_six_square_faces(device):
    for shape in ((5, 4, 4), (6, 4, 5), (12, 4, 4)):
        with pytest.raises(cuda.errors.InvalidValueError):
            api.cuArray3DCreate(description(shape, enums.CUDA_ARRAY3D_CUBEMAP))


def centers(width, height):
    x, y = np.meshgrid((np.arange(width) + 0.5) / width, (np.arange(height) + 0.5) / height)
    return np.stack([x.ravel(), y.ravel()], axis=1)


def test_the_nearest_level_is_read(device, kernels, rng):
    levels = halves(rng, 8, 16)
    resource, array = mipmap_of(levels)
    handle = texture(resource, maxMipmapLevelClamp=99.0)
    for number, host in enumerate(levels):
        height, width = host.shape[:2]
        for lod in (number, number + 0.45, number - 0.45):
            at = np.concatenate([centers(width, height), np.full((width * height, 2), lod)], axis=1)
            np.testing.assert_array_equal(read(kernels["level"], handle, at), host.reshape(-1, 4))
    at = np.concatenate([centers(16, 8), np.zeros((128, 2))], axis=1)
    np.testing.assert_array_equal(read(kernels["base"], handle, at), levels[0].reshape(-1, 4))
    api.cuTexObjectDestroy(handle)
    api.cuMipmappedArrayDestroy(array)


def test_two_levels_are_blended_after_bias_and_limits(device, kernels, rng):
    levels = halves(rng, 4, 4)
    resource, _ = mipmap_of(levels)
    at = np.array([[0.125, 0.125, 0, lod] for lod in (-1, 0, 0.25, 0.5, 1, 1.75, 2, 9)])
    values = np.stack([host[0, 0] for host in levels])

    def blended(lods):
        places = np.clip(lods, 0, 2)
        first = np.floor(places).astype(int)
        share = (places - first)[:, None]
        return values[first] * (1 - share) + values[np.minimum(first + 1, 2)] * share

    handle = texture(resource, blends=True, maxMipmapLevelClamp=99.0)
    np.testing.assert_allclose(read(kernels["level"], handle, at), blended(at[:, 3]), rtol=2e-3)
    handle = texture(resource, blends=True, mipmapLevelBias=0.5, minMipmapLevelClamp=0.25, maxMipmapLevelClamp=1.5)
    expected = blended(np.clip(at[:, 3] + 0.5, 0.25, 1.5))
    np.testing.assert_allclose(read(kernels["level"], handle, at), expected, rtol=2e-3)


def test_levels_of_one_and_three_dimensions_and_of_layers(device, kernels, rng):
    for name, shape, flags in (("level_1d", (9,), 0), ("level_3d", (2, 4, 8), 0), ("level_layers", (3, 4, 4), 1)):
        levels = halves(rng, *shape)
        if flags:
            levels = [rng.random((3, size, size, 4)).astype(np.float32) for size in (4, 2, 1)]
        resource, _ = mipmap_of(levels, enums.CUDA_ARRAY3D_LAYERED if flags else 0)
        handle = texture(resource, maxMipmapLevelClamp=99.0)
        for number, host in enumerate(levels):
            last = host[(-1,) * (host.ndim - 1)]
            at = [[0.999, 0.999, 2 if flags else 0.999, number]]
            np.testing.assert_array_equal(read(kernels[name], handle, at)[0], last)


def test_gradients_choose_the_level(device, kernels, rng):
    levels = halves(rng, 16, 16)
    resource, _ = mipmap_of(levels)
    handle = texture(resource, maxMipmapLevelClamp=99.0)
    for number, host in enumerate(levels[:-1]):
        # Neighbours are this many elements apart in the first level.
        far, near = 2.0**number / 16, 2.0**number / 64
        found = read(kernels["gradient"], handle, [[0.01, 0.01, far, near], [0.01, 0.01, near, far]])
        np.testing.assert_array_equal(found, np.stack([host[0, 0]] * 2))


@pytest.mark.parametrize("address", ["CLAMP", "BORDER", "WRAP"])
def test_a_gather_returns_a_channel_of_four_elements(device, kernels, rng, address):
    host = rng.random((6, 5, 4)).astype(np.float32)
    handle = texture(array_of(host, enums.CUDA_ARRAY3D_TEXTURE_GATHER), address=address, borderColor=[0.5, 0, 0, 0.25])
    columns, rows = (one.ravel() for one in np.meshgrid(np.arange(-2, 7), np.arange(-2, 8)))
    at = np.stack([(columns + 1.0) / 5, (rows + 1.0) / 6, rows * 0, rows * 0], axis=1)

    def element(row, column, channel):
        if address == "WRAP":
            return host[row % 6, column % 5, channel]
        inside = (row >= 0) & (row < 6) & (column >= 0) & (column < 5)
        found = host[np.clip(row, 0, 5), np.clip(column, 0, 4), channel]
        return found if address == "CLAMP" else np.where(inside, found, [0.5, 0, 0, 0.25][channel])

    for name, channel in (("gather_x", 0), ("gather_w", 3)):
        four = [element(rows + down, columns + right, channel) for down, right in ((1, 0), (1, 1), (0, 1), (0, 0))]
        np.testing.assert_array_equal(read(kernels[name], handle, at), np.stack(four, axis=1).astype(np.float32))


def test_a_mipmap_has_the_levels_down_to_one_element(device):
    array = api.cuMipmappedArrayCreate(description((0, 4, 8)), 99)
    assert int(api.cuMipmappedArrayGetLevel(array, 3))
    with pytest.raises(cuda.errors.InvalidValueError):
        api.cuMipmappedArrayGetLevel(array, 4)
    api.cuMipmappedArrayDestroy(array)


RECORDED = np.load(Path(__file__).with_name("data") / "mipmaps.npz")


def one_channel(host):
    """Return elements of four channels, of which only the first is not 0."""
    return np.stack([host, *[np.zeros_like(host)] * 3], axis=-1)


def recorded_texture(what, *options):
    linear, modes = "linear" in options, dict.fromkeys(["blends"], "blended" in options)
    if what == "cube":
        return texture(array_of(one_channel(RECORDED["cube"]), enums.CUDA_ARRAY3D_CUBEMAP), linear=linear)
    if what == "gather":
        image = array_of(one_channel(RECORDED["image"]), enums.CUDA_ARRAY3D_TEXTURE_GATHER)
        return texture(image, address=options[0].upper(), borderColor=[0.5, 0, 0, 0])
    resource, _ = mipmap_of([one_channel(RECORDED[f"level{number}"]) for number in range(5)])
    modes |= {"mipmapLevelBias": 0.3, "minMipmapLevelClamp": 0.5, "maxMipmapLevelClamp": 2.5}
    if "plain" in options:
        modes |= {"mipmapLevelBias": 0, "minMipmapLevelClamp": 0, "maxMipmapLevelClamp": 9}
    return texture(resource, linear=linear, **modes)


@pytest.mark.parametrize("name", [name for name in RECORDED.files if name.startswith("h200")])
def test_fetches_match_an_h200_bit_for_bit(device, kernels, name):
    what, *options = name.split()[1:]
    handle = recorded_texture(what, *options)
    given = RECORDED["directions" if what == "cube" else "places"]
    at = np.zeros((len(given), 4), np.float32)
    at[:, : 3 if what == "cube" else 2] = given[:, : 3 if what == "cube" else 2]
    if what == "level":
        at[:, 3] = given[:, 2]
    found = read(kernels[{"gather": "gather_x"}.get(what, what)], handle, at)
    np.testing.assert_array_equal(found if what == "gather" else found[:, 0], RECORDED[name])
