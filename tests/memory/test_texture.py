"""Textures of pitched rows, of linear memory, and of CUDA arrays: 1-D to 3-D, and layered."""

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
READ(read_byte, unsigned char, tex2D<unsigned char>(t, p.x, p.y))
READ(read_bytes, uchar4, tex2D<uchar4>(t, p.x, p.y))
READ(read_floats, float4, tex2D<float4>(t, p.x, p.y))
READ(read_shorts, short2, tex3D<short2>(t, p.x, p.y, p.z))
READ(read_words, unsigned, tex1DLayered<unsigned>(t, p.x, (int)p.w))
READ(fetch, float, tex1Dfetch<float>(t, (int)p.x))
READ(fetch_int, int, tex1Dfetch<int>(t, (int)p.x))
READ(fetch_two, float2, tex1Dfetch<float2>(t, (int)p.x))
extern "C" __global__ void take_int(int t) {}
"""
# Shapes of CUDA arrays ("a" for layered), and of pitched rows, which replace a 2-D array.
SHAPES = {"1d": (7,), "2d": (5, 7), "3d": (3, 5, 7), "a1d": (4, 7), "a2d": (4, 5, 7), "rows": (5, 7)}


@pytest.fixture(scope="module")
def kernels():
    with cuda.Device(0):
        found = cuda.compile(KERNELS)
        return {name: found[name] for name in found} | {"read_rows": found["read_2d"]}


def pitched(host):
    flat = host.reshape(host.shape[0], -1)
    array = cuda.empty_pitched(flat.shape, host.dtype).copy_from(flat)
    if host.ndim == 2:
        return array
    strides = (array.pitch, host.shape[2] * host.itemsize, host.itemsize)
    return cuda.DeviceArray.borrow(array.pointer, host.shape, host.dtype, strides=strides, owner=array)


def texture_of(host, geometry, **options):
    if geometry == "rows":
        return cuda.textures.Texture(pitched(host), **options)
    channels = 1 if host.ndim == len(SHAPES[geometry]) else host.shape[-1]
    shape = host.shape if channels == 1 else host.shape[:-1]
    array = cuda.textures.CudaArray(shape, host.dtype, channels=channels, layered=geometry[0] == "a")
    return cuda.textures.Texture(array.copy_from(host), **options)


def read(kernel, texture, at, dtype=np.float32, channels=1):
    """Return the values that a kernel reads from a texture at the rows (x, y, z, layer) of `at`."""
    at = np.ascontiguousarray(at, np.float32)
    out = cuda.zeros((len(at), channels), dtype)
    kernel[-(-len(at) // 128), 128](texture, cuda.to_device(at), out, len(at))
    return out.to_host().squeeze()


def fetched(kernel, texture, places, dtype=np.float32, channels=1):
    return read(kernel, texture, [[place, 0, 0, 0] for place in places], dtype, channels).tolist()


def middles(geometry):
    """Return the coordinates (x, y, z, layer) of each element's center, in the order of the elements."""
    shape = SHAPES[geometry]
    names = {"1d": "x", "2d": "yx", "3d": "zyx", "a1d": "lx", "a2d": "lyx", "rows": "yx"}[geometry]
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


@pytest.mark.parametrize("normalized", [False, True])
def test_points_are_the_elements_also_by_coordinates_from_0_to_1(device, kernels, geometry, host, normalized):
    scale = np.array([7, 5, 3, 1] if normalized else [1, 1, 1, 1])
    texture = texture_of(host, geometry, normalized=normalized)
    values = read(kernels[f"read_{geometry}"], texture, middles(geometry) / scale)
    np.testing.assert_array_equal(values, host.ravel())


# The indices of the elements that are read 1.5 elements before the first and 2.5 after the last.
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


def test_each_axis_has_its_address_mode_and_layers_beyond_the_last_are_the_last(device, kernels):
    host = np.arange(1, 28, dtype=np.float32).reshape(3, 3, 3)
    texture = texture_of(host, "3d", address=("clamp", "border", "wrap"), normalized=True)
    assert texture.options.addresses == ("clamp", "border", "wrap")
    at = np.array([[-0.5, 0.5, 0.5, 0], [0.5, -0.5, 0.5, 0], [0.5, 0.5, -0.5, 0]]) / [3, 3, 3, 1]
    assert read(kernels["read_3d"], texture, at).tolist() == [1, 0, host[2, 0, 0]]
    texture = texture_of(host[0], "rows", address=("border", "clamp"))
    assert read(kernels["read_rows"], texture, [[-1, 0.5, 0, 0], [0.5, -1, 0, 0]]).tolist() == [0, 1]
    layers = texture_of(np.arange(28, dtype=np.float32).reshape(4, 7), "a1d")
    assert read(kernels["read_a1d"], layers, [[0.5, 0, 0, 4], [0.5, 0, 0, 99]]).tolist() == [21, 21]


def test_linear_filtering_interpolates_along_every_axis(device, kernels, geometry, host, rng):
    axes = len(host.shape) - (geometry[0] == "a")
    at = np.zeros((200, 4), np.float32)
    # Interpolation weights have 8 fractional bits, so these coordinates need no rounding.
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
    # The products of the weights of several axes are rounded to 8 bits.
    np.testing.assert_allclose(values, expected, atol=1e-5 if axes == 1 else 0.02)


@pytest.mark.parametrize(
    ("kernel", "geometry", "shape", "dtype"),
    [
        ("read_level", "3d", (3, 5, 7), np.float32),
        ("read_byte", "rows", (5, 7), np.uint8),
        ("read_bytes", "2d", (5, 7, 4), np.uint8),
        ("read_floats", "rows", (5, 7, 4), np.float32),
        ("read_shorts", "3d", (3, 5, 7, 2), np.int16),
        ("read_words", "a1d", (4, 7), np.uint32),
    ],
)
def test_elements_have_channels_of_every_width(device, kernels, rng, kernel, geometry, shape, dtype):
    host = rng.random(shape, np.float32)
    if dtype != np.float32:
        host = rng.integers(0, 1 << 8 * np.dtype(dtype).itemsize, shape).astype(dtype)
    channels = shape[-1] if len(shape) > len(SHAPES[geometry]) else 1
    values = read(kernels[kernel], texture_of(host, geometry), middles(geometry), dtype, channels)
    np.testing.assert_array_equal(values, host.reshape(-1, channels).squeeze())


def test_halves_and_integers_are_read_as_floats(device, kernels):
    halves = np.arange(105).reshape(3, 5, 7).astype(np.float16)
    np.testing.assert_array_equal(read(kernels["read_3d"], texture_of(halves, "3d"), middles("3d")), halves.ravel())
    host = np.array([0, 51, 255, 7, 8, 9, 10], np.uint8)
    texture = texture_of(host, "1d", read="normalized_float", filter="linear")
    values = read(kernels["read_1d"], texture, [[0.5, 0, 0, 0], [2.0, 0, 0, 0]])
    np.testing.assert_allclose(values, [0, 153 / 255], rtol=1e-4, atol=1e-6)
    rows = texture_of(np.resize(host, (5, 7)), "rows", read="normalized_float")
    values = read(kernels["read_rows"], rows, middles("rows")[:7])
    np.testing.assert_allclose(values, host / np.float32(255), rtol=1e-6)


def test_elements_of_one_dimension_are_read_by_number_and_zeros_outside(device, kernels):
    texture = cuda.textures.Texture(cuda.to_device(np.arange(1, 101, dtype=np.float32)))
    assert fetched(kernels["fetch"], texture, [0, 99, 42, 100, -1]) == [1, 100, 43, 0, 0]
    assert texture.options.addresses == ("border", "border", "border")
    texture = cuda.textures.Texture(cuda.to_device(np.array([-5, 2**31 - 1], np.int32)))
    assert fetched(kernels["fetch_int"], texture, [1, 0], np.int32) == [2**31 - 1, -5]
    texture = cuda.textures.Texture(cuda.to_device(np.array([0, 255], np.uint8)), read="normalized_float")
    assert fetched(kernels["fetch"], texture, [0, 1]) == [0, 1]
    texture = cuda.textures.Texture(cuda.to_device(np.arange(10, dtype=np.float32).reshape(5, 2)), dimensions=1)
    assert fetched(kernels["fetch_two"], texture, [4, 0], channels=2) == [[8, 9], [0, 1]]


# -- closing the texture or its array ------------------------------------------------------------


@pytest.mark.parametrize("geometry", ["rows", "2d"])
def test_what_is_closed_is_refused_by_launches_and_bound_launches(device, kernels, geometry):
    host = np.zeros((5, 7), np.float32)
    at, out = cuda.zeros((1, 4), np.float32), cuda.zeros(1, np.float32)
    closed, over_closed = texture_of(host, geometry), texture_of(host, geometry)
    bound = kernels["read_2d"][1, 1].bind(closed, at, out, 1)
    bound()
    closed.close()
    over_closed.array.close()
    for texture in (closed, over_closed):
        assert texture.closed
        with pytest.raises(ValueError, match=r"argument 0 of read_2d .*: the texture or its array is closed"):
            kernels["read_2d"][1, 1](texture, at, out, 1)
    with pytest.raises(ValueError, match="argument 0 of read_2d: the texture is closed"):
        bound()
    with pytest.raises(ValueError, match="argument 'array' must be open"):
        cuda.textures.Texture(over_closed.array)
    with pytest.raises(TypeError, match=r"argument 0 of take_int \(int\) does not take a texture"):
        kernels["take_int"][1, 1](texture_of(host, geometry))
    for wrong in (None, out, host):
        with pytest.raises(TypeError, match=r"argument 0 of read_2d \(unsigned long long\) takes a .*Texture .*, not "):
            kernels["read_2d"][1, 1](wrong, at, out, 1)


def in_the_arguments(launch, texture, at, out):
    launch(texture(), at, out, out.size)


def in_a_with_block(launch, texture, at, out):
    with texture() as closed:
        launch(closed, at, out, out.size)


def bound(launch, texture, at, out):
    launch.bind(texture(), at, out, out.size)()


def in_a_dropped_graph(launch, texture, at, out):
    captured = texture()
    with launch.stream.capture() as graph:
        launch(captured, at, out, out.size)
    del captured
    gc.collect()
    with graph.instantiate() as executable:
        executable.launch(launch.stream)
    graph.close()


@pytest.mark.parametrize("use", [in_the_arguments, in_a_with_block, bound, in_a_dropped_graph])
@pytest.mark.parametrize("geometry", ["rows", "2d"])
def test_a_texture_and_its_array_outlive_the_kernels_that_use_it(device, kernels, host, geometry, use):
    at, out = cuda.to_device(middles(geometry)), cuda.zeros(35, np.float32)
    arrays = [texture_of(host, geometry).array]
    device.synchronize()
    with cuda.Stream(non_blocking=True) as stream:
        use(kernels["read_2d"][1, 128, 0, stream], lambda: cuda.textures.Texture(arrays.pop()), at, out)
        gc.collect()
        stream.synchronize()
    np.testing.assert_array_equal(out.to_host(), host.ravel())


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_a_texture_is_made_and_used_in_a_capture_and_the_end_of_another_waits(device, kernels, driver_calls, mode):
    host = np.arange(35, dtype=np.float32).reshape(5, 7)
    array = cuda.empty_pitched(host.shape, host.dtype).copy_from(host)
    other = cuda.textures.Texture(array)
    at, out = cuda.to_device(middles("rows")), cuda.zeros(35, np.float32)
    device.synchronize()
    with cuda.Stream(non_blocking=True) as stream:
        with stream.capture(mode) as graph:
            kernels["read_2d"][1, 128, 0, stream](cuda.textures.Texture(array), at, out, out.size)
            other.close()
            assert driver_calls["cuTexObjectDestroy"] == 0
        assert driver_calls["cuTexObjectDestroy"] == 1
        graph.instantiate().launch(stream)
        stream.synchronize()
    np.testing.assert_array_equal(out.to_host(), host.ravel())


# -- arrays that no texture can read -------------------------------------------------------------


def rows(shape=(4, 4), dtype=np.float32):
    return cuda.empty_pitched(shape, dtype)


def line(*shape):
    return cuda.zeros(shape or 48, np.float32)


def cuda_array(*shape):
    return cuda.textures.CudaArray(shape, np.float32)


BAD = [
    (lambda: np.zeros((4, 4), np.float32), {}, TypeError, "'array' must be a DeviceArray or a CudaArray, not a NumPy"),
    (lambda: rows(dtype=np.float64), {}, TypeError, "'array' must have dtype one of .* not float64"),
    (lambda: line(4, 8, 3), {}, ValueError, "1, 2 or 4 channels, not 3"),
    (lambda: line(4, 5), {}, ValueError, "not 20; make the array with empty_pitched"),
    (lambda: rows((4, 64))[:, 8:], {}, ValueError, "use a whole array from empty_pitched"),
    (lambda: rows((4, 64))[:, ::2], {}, ValueError, "'array' must have rows of adjacent elements"),
    (lambda: line(0, 8), {}, ValueError, "have a height from 1 to .*, not 0"),
    (lambda: cuda.zeros((1, 1 << 18), np.uint8), {}, ValueError, "have a width from 1 to .*, not 262144"),
    (rows, {"address": "wrap"}, ValueError, "'normalized' must be True with address='wrap'"),
    (rows, {"address": ("clamp",)}, ValueError, "'address' must be one mode, or one for x and one for y"),
    (rows, {"read": "normalized_float"}, ValueError, "'read' .* integers of 8 or 16 bits, .* float32"),
    (lambda: rows(dtype=np.int32), {"filter": "linear"}, ValueError, "'filter' must be 'point' .* for int32"),
    (lambda: cuda_array(3, 5, 7), {"address": ("clamp", "wrap")}, ValueError, "one mode, or one for each of x, y and"),
    (lambda: cuda_array(7), {"address": ("clamp", "clamp")}, ValueError, "'address' must be one mode, not"),
    (lambda: cuda_array(7), {"address": "wrap"}, ValueError, "'normalized' must be True with address='wrap'"),
    (lambda: cuda_array(5, 7), {"dimensions": 2}, ValueError, "'dimensions' must be left out for a CudaArray"),
    (lambda: cuda_array(5, 7), {"read": "normalized_float"}, ValueError, "'read' .* integers of 8 or 16 bits, .* flo"),
    (line, {"filter": "linear"}, ValueError, "argument 'filter' must be left out"),
    (line, {"normalized": True}, ValueError, "argument 'normalized' must be left out"),
    (line, {"address": "border"}, ValueError, "argument 'address' must be left out"),
    (line, {"dimensions": 3}, ValueError, "argument 'dimensions'"),
    (line, {"dimensions": 2}, ValueError, r"have shape \(height, width\)"),
    (lambda: line()[::2], {}, ValueError, "must be contiguous"),
    (lambda: line()[1:], {}, ValueError, "must begin at a multiple of"),
    (lambda: line(16, 3), {"dimensions": 1}, ValueError, "1, 2 or 4 channels"),
    (lambda: line(2, 2, 2), {"dimensions": 1}, ValueError, "dimensions=1"),
]


@pytest.mark.parametrize(("make", "options", "error", "words"), BAD)
def test_what_no_texture_can_have_is_refused(device, make, options, error, words):
    with pytest.raises(error, match=words):
        cuda.textures.Texture(make(), **options)


def test_a_texture_of_later_rows_is_made(device):
    cuda.textures.Texture(rows((4, 64))[1:])
