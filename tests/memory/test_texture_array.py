"""Textures of CUDA arrays: of one to three dimensions, and of layers."""

from __future__ import annotations

import gc
import itertools

import numpy as np
import pytest

import cudart_py as cuda

KERNELS = """
typedef cudaTextureObject_t Texture;
#define READ(name, T, expression)                                                                             \\
    extern "C" __global__ void name(Texture t, const float4 *at, T *out, int n) {                             \\
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                                        \\
        if (i >= n) return;                                                                                   \\
        float4 p = at[i];                                                                                     \\
        out[i] = expression;                                                                                  \\
    }
READ(read_1d, float, tex1D<float>(t, p.x))
READ(read_2d, float, tex2D<float>(t, p.x, p.y))
READ(read_3d, float, tex3D<float>(t, p.x, p.y, p.z))
READ(read_a1d, float, tex1DLayered<float>(t, p.x, (int)p.w))
READ(read_a2d, float, tex2DLayered<float>(t, p.x, p.y, (int)p.w))
READ(read_level, float, tex3DLod<float>(t, p.x, p.y, p.z, 0))
READ(read_bytes, uchar4, tex2D<uchar4>(t, p.x, p.y))
READ(read_shorts, short2, tex3D<short2>(t, p.x, p.y, p.z))
READ(read_words, unsigned, tex1DLayered<unsigned>(t, p.x, (int)p.w))
"""
SHAPES = {"1d": (7,), "2d": (5, 7), "3d": (3, 5, 7), "a1d": (4, 7), "a2d": (4, 5, 7)}


@pytest.fixture(scope="module")
def kernels():
    with cuda.Device(0):
        return cuda.compile(KERNELS)


def texture_of(host, geometry, **options):
    channels = 1 if host.ndim == len(SHAPES[geometry]) else host.shape[-1]
    shape = host.shape if channels == 1 else host.shape[:-1]
    array = cuda.CudaArray(shape, host.dtype, channels=channels, layered=geometry[0] == "a")
    return cuda.Texture(array.copy_from(host), **options)


def read(kernel, texture, at, dtype=np.float32, channels=1):
    """Read at rows of (x, y, z, layer)."""
    at = np.ascontiguousarray(at, np.float32)
    out = cuda.zeros((len(at), channels), dtype)
    kernel[-(-len(at) // 128), 128](texture, cuda.to_device(at), out, len(at))
    return out.to_host().squeeze()


def middles(geometry):
    """Return the place (x, y, z, layer) of each element's middle, in the order of the elements."""
    shape = SHAPES[geometry]
    names = {"1d": "x", "2d": "yx", "3d": "zyx", "a1d": "lx", "a2d": "lyx"}[geometry]
    places = np.indices(shape).reshape(len(shape), -1)
    at = np.zeros((places.shape[1], 4), np.float32)
    for name, axis in zip(names, places, strict=True):
        at[:, "xyzl".index(name)] = axis + (0 if name == "l" else 0.5)
    return at


@pytest.fixture(params=SHAPES)
def geometry(request):
    return request.param


@pytest.fixture
def host(geometry, rng):
    return rng.random(SHAPES[geometry]).astype(np.float32)


def test_points_are_the_elements(device, kernels, geometry, host):
    values = read(kernels[f"read_{geometry}"], texture_of(host, geometry), middles(geometry))
    np.testing.assert_array_equal(values, host.ravel())


def test_normalized_coordinates_go_from_0_to_1_and_layers_have_numbers(device, kernels, geometry, host):
    scale = np.array([7, 5, 3, 1])
    texture = texture_of(host, geometry, normalized=True)
    values = read(kernels[f"read_{geometry}"], texture, middles(geometry) / scale)
    np.testing.assert_array_equal(values, host.ravel())


# What is read one and a half elements before the first, and two and a half behind the last.
OUTSIDE = {"clamp": (0, -1), "border": None, "wrap": (-2, 2), "mirror": (1, -3)}


@pytest.mark.parametrize("address", OUTSIDE)
def test_each_axis_goes_on_outside_by_its_address_mode(device, kernels, geometry, host, address):
    scale = np.array([7, 5, 3, 1])
    texture = texture_of(host, geometry, address=address, normalized=True, border=(0.25, 0, 0, 0))
    axes = len(host.shape) - (geometry[0] == "a")
    for axis in range(axes):
        at = np.full((2, 4), 0.5, np.float32)
        at[:, 3] = 1
        at[0, axis], at[1, axis] = -1.5, scale[axis] + 2.5
        values = read(kernels[f"read_{geometry}"], texture, at / scale)
        if OUTSIDE[address] is None:
            assert values.tolist() == [0.25, 0.25]
            continue
        for value, element in zip(values, OUTSIDE[address], strict=True):
            place = [0] * len(host.shape)
            place[-1 - axis] = element
            if geometry[0] == "a":
                place[0] = 1
            assert value == host[tuple(place)], (axis, element)


def test_each_of_three_axes_has_its_address_mode(device, kernels):
    host = np.arange(1, 28, dtype=np.float32).reshape(3, 3, 3)
    array = cuda.CudaArray((3, 3, 3), np.float32).copy_from(host)
    texture = cuda.Texture(array, address=("clamp", "border", "wrap"), normalized=True)
    assert texture.options.addresses == ("clamp", "border", "wrap")
    at = np.array([[-0.5, 0.5, 0.5, 0], [0.5, -0.5, 0.5, 0], [0.5, 0.5, -0.5, 0]]) / [3, 3, 3, 1]
    assert read(kernels["read_3d"], texture, at).tolist() == [1, 0, host[2, 0, 0]]


def test_layers_beyond_the_last_are_the_last(device, kernels):
    host = np.arange(28, dtype=np.float32).reshape(4, 7)
    values = read(kernels["read_a1d"], texture_of(host, "a1d"), [[0.5, 0, 0, 4], [0.5, 0, 0, 99]])
    assert values.tolist() == [21, 21]


def test_linear_filtering_interpolates_along_every_axis(device, kernels, geometry, host, rng):
    axes = len(host.shape) - (geometry[0] == "a")
    at = np.zeros((200, 4), np.float32)
    # Weights have 8 bits: these places need no rounding.
    sizes = np.array(host.shape[::-1][:axes])
    at[:, :axes] = rng.integers(0, 256 * (sizes - 1) + 1, (200, axes)) / 256 + 0.5
    layers = rng.integers(0, 4, 200) if geometry[0] == "a" else np.zeros(200, int)
    at[:, 3] = layers
    values = read(kernels[f"read_{geometry}"], texture_of(host, geometry, filter="linear"), at)
    expected = np.zeros(200)
    before = np.floor(at[:, :axes] - 0.5).astype(int)
    behind = at[:, :axes] - 0.5 - before
    for corner in itertools.product((0, 1), repeat=axes):
        weight = np.prod(np.where(corner, behind, 1 - behind), axis=1)
        place = np.minimum(before + corner, sizes - 1)
        index = tuple(place[:, axis] for axis in reversed(range(axes)))
        expected += weight * host[(layers, *index) if geometry[0] == "a" else index]
    # The weights of several axes are rounded to 8 bits.
    np.testing.assert_allclose(values, expected, atol=1e-5 if axes == 1 else 0.02)


def test_level_0_is_the_array_itself(device, kernels):
    host = np.arange(105, dtype=np.float32).reshape(3, 5, 7)
    np.testing.assert_array_equal(read(kernels["read_level"], texture_of(host, "3d"), middles("3d")), host.ravel())


def test_elements_have_channels_of_every_width(device, kernels, rng):
    pixels = rng.integers(0, 256, (5, 7, 4)).astype(np.uint8)
    values = read(kernels["read_bytes"], texture_of(pixels, "2d"), middles("2d"), np.uint8, 4)
    np.testing.assert_array_equal(values, pixels.reshape(-1, 4))
    pairs = rng.integers(-(2**15), 2**15, (3, 5, 7, 2)).astype(np.int16)
    values = read(kernels["read_shorts"], texture_of(pairs, "3d"), middles("3d"), np.int16, 2)
    np.testing.assert_array_equal(values, pairs.reshape(-1, 2))
    words = rng.integers(0, 2**32, (4, 7)).astype(np.uint32)
    values = read(kernels["read_words"], texture_of(words, "a1d"), middles("a1d"), np.uint32)
    np.testing.assert_array_equal(values, words.ravel())


def test_halves_and_integers_are_read_as_floats(device, kernels):
    halves = np.arange(105).reshape(3, 5, 7).astype(np.float16)
    np.testing.assert_array_equal(read(kernels["read_3d"], texture_of(halves, "3d"), middles("3d")), halves.ravel())
    texture = texture_of(np.array([0, 51, 255, 7, 8, 9, 10], np.uint8), "1d", read="normalized_float", filter="linear")
    np.testing.assert_allclose(
        read(kernels["read_1d"], texture, [[0.5, 0, 0, 0], [2.0, 0, 0, 0]]), [0, 153 / 255], rtol=1e-4, atol=1e-6
    )


def test_the_array_is_kept_alive_by_the_texture_and_the_texture_by_the_launch(device, kernels):
    host = np.arange(105, dtype=np.float32).reshape(3, 5, 7)
    at, out = cuda.to_device(middles("3d")), cuda.zeros(105, np.float32)
    array = cuda.CudaArray(host.shape, host.dtype).copy_from(host)
    device.synchronize()
    with cuda.Stream(non_blocking=True) as stream:
        kernels["read_3d"][1, 128, 0, stream](cuda.Texture(array), at, out, 105)
        del array
        gc.collect()
        stream.synchronize()
    np.testing.assert_array_equal(out.to_host(), host.ravel())


def test_a_graph_keeps_a_texture_and_its_array(device, kernels):
    host = np.arange(35, dtype=np.float32).reshape(5, 7)
    at, out = cuda.to_device(middles("2d")), cuda.zeros(35, np.float32)
    texture = texture_of(host, "2d")
    device.synchronize()
    with cuda.Stream(non_blocking=True) as stream:
        with stream.capture() as graph:
            kernels["read_2d"][1, 64, 0, stream](texture, at, out, 35)
        del texture
        gc.collect()
        graph.instantiate().launch(stream)
        stream.synchronize()
    np.testing.assert_array_equal(out.to_host(), host.ravel())


def test_a_texture_over_a_closed_array_is_refused(device, kernels):
    texture = texture_of(np.zeros((5, 7), np.float32), "2d")
    texture.array.close()
    assert texture.closed
    with pytest.raises(ValueError, match=r"argument 0 of read_2d .*: the texture or its array is closed"):
        read(kernels["read_2d"], texture, middles("2d"))


@pytest.mark.parametrize(
    ("shape", "options", "error", "words"),
    [
        ((3, 5, 7), {"address": ("clamp", "wrap")}, ValueError, "one mode, or one for each of x, y and z"),
        ((7,), {"address": ("clamp", "clamp")}, ValueError, "'address' must be one mode, not"),
        ((7,), {"address": "wrap"}, ValueError, "address='wrap' needs normalized=True"),
        ((5, 7), {"dimensions": 2}, ValueError, "'dimensions' has no meaning for a CudaArray"),
        ((5, 7), {"read": "normalized_float"}, ValueError, "for integers of 8 and 16 bits, not for float32"),
    ],
)
def test_options_that_do_not_suit_the_array_are_refused(device, shape, options, error, words):
    with pytest.raises(error, match=words):
        cuda.Texture(cuda.CudaArray(shape, np.float32), **options)


def test_a_closed_array_has_no_texture(device):
    array = cuda.CudaArray((5, 7), np.float32)
    array.close()
    with pytest.raises(ValueError, match="argument 'array' must be open"):
        cuda.Texture(array)
