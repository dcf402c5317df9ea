"""Textures: what a kernel reads through them, and which arrays and options they refuse."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.driver import seam

KERNELS = """
extern "C" __global__ void read_float(cudaTextureObject_t t, const float *x, const float *y, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex2D<float>(t, x[i], y[i]);
}
extern "C" __global__ void read_byte(cudaTextureObject_t t, const float *x, const float *y, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex2D<unsigned char>(t, x[i], y[i]);
}
extern "C" __global__ void read_four(cudaTextureObject_t t, const float *x, const float *y, float4 *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex2D<float4>(t, x[i], y[i]);
}
extern "C" __global__ void take_int(int t, float *out) { out[0] = t; }
"""


@pytest.fixture(scope="module")
def kernels():
    with cuda.Device(0):
        return cuda.compile(KERNELS)


def pitched(host):
    flat = host.reshape(host.shape[0], -1)
    array = cuda.empty_pitched(flat.shape, host.dtype).copy_from(flat)
    if host.ndim == 2:
        return array
    strides = (array.pitch, host.shape[2] * host.itemsize, host.itemsize)
    return cuda.DeviceArray.borrow(array.pointer, host.shape, host.dtype, strides=strides, owner=array)


def read(kernel, texture, x, y, dtype=np.float32, width=1):
    x, y = (cuda.to_device(np.asarray(v, np.float32)) for v in (x, y))
    out = cuda.zeros(x.size * width, dtype)
    kernel[1, 128](texture, x, y, out, x.size)
    return out.to_host().reshape(-1, width).squeeze()


@pytest.fixture
def host(rng):
    return rng.random((5, 7)).astype(np.float32)


def centres(host):
    y, x = np.indices(host.shape[:2])
    return x.ravel() + 0.5, y.ravel() + 0.5


def test_points_are_the_elements(device, kernels, host):
    x, y = centres(host)
    np.testing.assert_array_equal(read(kernels["read_float"], cuda.Texture(pitched(host)), x, y), host.ravel())


def test_normalized_coordinates_go_from_0_to_1(device, kernels, host):
    x, y = centres(host)
    texture = cuda.Texture(pitched(host), normalized=True)
    np.testing.assert_array_equal(read(kernels["read_float"], texture, x / 7, y / 5), host.ravel())


OUTSIDE = {
    "clamp": lambda host: host[0, 0],
    "border": lambda host: np.float32(0.25),
    "wrap": lambda host: host[0, -1],
    "mirror": lambda host: host[0, 0],
}


@pytest.mark.parametrize("address", OUTSIDE)
def test_what_lies_outside_goes_by_the_address_mode(device, kernels, host, address):
    texture = cuda.Texture(pitched(host), address=address, normalized=True, border=(0.25, 0, 0, 0))
    assert read(kernels["read_float"], texture, [-0.5 / 7], [0.5 / 5]) == OUTSIDE[address](host)


def test_each_axis_has_its_address_mode(device, kernels, host):
    texture = cuda.Texture(pitched(host), address=("border", "clamp"))
    values = read(kernels["read_float"], texture, [-1, 0.5], [0.5, -1])
    np.testing.assert_array_equal(values, [0, host[0, 0]])


def test_linear_filtering_is_halfway_between_two_elements(device, kernels, host):
    texture = cuda.Texture(pitched(host), filter="linear")
    value = read(kernels["read_float"], texture, [1.0], [0.5])
    np.testing.assert_allclose(value, (host[0, 0] + host[0, 1]) / 2, rtol=1e-5)


def test_bytes_are_read_as_they_are_or_as_floats(device, kernels):
    host = np.array([[0, 51, 255, 7]], np.uint8)
    x, y = centres(host)
    array = pitched(host)
    np.testing.assert_array_equal(read(kernels["read_byte"], cuda.Texture(array), x, y, np.int32), host[0])
    texture = cuda.Texture(array, read="normalized_float")
    np.testing.assert_allclose(read(kernels["read_float"], texture, x, y), host[0] / np.float32(255), rtol=1e-6)


def test_four_channels(device, kernels, rng):
    host = rng.random((3, 5, 4)).astype(np.float32)
    x, y = centres(host)
    values = read(kernels["read_four"], cuda.Texture(pitched(host)), x, y, width=4)
    np.testing.assert_array_equal(values, host.reshape(-1, 4))


def test_the_array_is_kept_alive_by_the_texture(device, kernels, host):
    texture = cuda.Texture(pitched(host))
    gc.collect()
    assert read(kernels["read_float"], texture, [0.5], [0.5]) == host[0, 0]


def test_a_bound_launch_takes_a_texture(device, kernels, host):
    texture = cuda.Texture(pitched(host))
    x, y, out = cuda.full(1, 0.5, np.float32), cuda.full(1, 0.5, np.float32), cuda.zeros(1, np.float32)
    bound = kernels["read_float"][1, 1].bind(texture, x, y, out, 1)
    bound()
    assert out.to_host()[0] == host[0, 0]
    texture.close()
    with pytest.raises(ValueError, match="argument 0 of read_float: the texture is closed"):
        bound()


def test_a_closed_texture_or_one_over_a_closed_array_is_refused(device, kernels, host):
    arguments = [cuda.zeros(1, np.float32) for _ in range(3)]
    closed, over_closed = cuda.Texture(pitched(host)), cuda.Texture(pitched(host))
    closed.close()
    over_closed.array.close()
    for texture in (closed, over_closed):
        with pytest.raises(ValueError, match=r"argument 0 of read_float .*: the texture or its array is closed"):
            kernels["read_float"][1, 1](texture, *arguments, 1)


def test_only_an_unsigned_long_long_takes_a_texture(device, kernels, host):
    with pytest.raises(TypeError, match=r"argument 0 of take_int \(int\) takes no texture"):
        kernels["take_int"][1, 1](cuda.Texture(pitched(host)), cuda.zeros(1, np.float32))


BAD = [
    (
        lambda: np.zeros((4, 4), np.float32),
        {},
        TypeError,
        "'array' must be a DeviceArray or a CudaArray, not a NumPy array",
    ),
    (lambda: cuda.empty_pitched((4, 4), np.float64), {}, TypeError, "'array' has elements of float64"),
    (lambda: cuda.zeros(64, np.float32), {"dimensions": 2}, ValueError, r"the shape \(height, width\)"),
    (lambda: cuda.zeros((4, 8, 3), np.float32), {}, ValueError, "1, 2 or 4 channels, not 3"),
    (lambda: cuda.zeros((4, 5), np.float32), {}, ValueError, "not 20: make the array with empty_pitched"),
    (lambda: cuda.empty_pitched((4, 64), np.float32)[1:], {}, None, ""),
    (lambda: cuda.empty_pitched((4, 64), np.float32)[:, 8:], {}, ValueError, "use a whole array of empty_pitched"),
    (lambda: cuda.empty_pitched((4, 64), np.float32)[:, ::2], {}, ValueError, "elements of a row must be contiguous"),
    (lambda: cuda.zeros((0, 8), np.float32), {}, ValueError, "the height 0"),
    (lambda: cuda.zeros((1, 1 << 18), np.uint8), {}, ValueError, "the width 262144 of a texture is outside 1 to"),
    (None, {"address": "wrap"}, ValueError, "address='wrap' needs normalized=True"),
    (
        None,
        {"address": "edge"},
        ValueError,
        "'address' must be one of 'wrap', 'clamp', 'mirror', 'border', not the str 'edge'",
    ),
    (None, {"address": ("clamp",)}, ValueError, "'address' must be one mode, or one for x and one for y"),
    (None, {"filter": "cubic"}, ValueError, "'filter' must be one of 'point', 'linear', not the str 'cubic'"),
    (None, {"read": "float"}, ValueError, "'read' must be one of"),
    (None, {"read": "normalized_float"}, ValueError, "for integers of 8 and 16 bits, not for float32"),
    (None, {"border": (0, 0)}, ValueError, "'border' must be four numbers"),
    (lambda: cuda.empty_pitched((4, 4), np.int32), {"filter": "linear"}, ValueError, "the texture gives int32"),
]


@pytest.mark.parametrize(("make", "options", "error", "words"), BAD)
def test_what_no_texture_can_have_is_refused(device, make, options, error, words):
    array = make() if make is not None else cuda.empty_pitched((4, 4), np.float32)
    if error is None:
        cuda.Texture(array, **options)
        return
    with pytest.raises(error, match=words):
        cuda.Texture(array, **options)


def test_textures_come_and_go(device):
    array = cuda.empty_pitched((64, 64), np.float32)
    for _ in range(2000):
        cuda.Texture(array)


# -- its end under kernels that use it ---------------------------------------------------------


def in_the_arguments(launch, array, x, y, out):
    launch(cuda.Texture(array), x, y, out, out.size)


def in_a_with_block(launch, array, x, y, out):
    with cuda.Texture(array) as texture:
        launch(texture, x, y, out, out.size)


def bound(launch, array, x, y, out):
    launch.bind(cuda.Texture(array), x, y, out, out.size)()


def in_a_dropped_graph(launch, array, x, y, out):
    texture = cuda.Texture(array)
    with launch.stream.capture() as graph:
        launch(texture, x, y, out, out.size)
    del texture
    with graph.instantiate() as executable:
        executable.launch(launch.stream)
    graph.close()


@pytest.mark.parametrize("use", [in_the_arguments, in_a_with_block, bound, in_a_dropped_graph])
def test_a_texture_outlives_the_kernels_that_use_it(device, kernels, host, use):
    array = pitched(host)
    x, y = (cuda.to_device(v.astype(np.float32)) for v in centres(host))
    with cuda.Stream() as stream:
        out = cuda.zeros(x.size, np.float32, stream=stream)
        cuda.legacy_default.synchronize()
        use(kernels["read_float"][1, 128, 0, stream], array, x, y, out)
        gc.collect()
        np.testing.assert_array_equal(out.to_host(), host.ravel())


def test_a_texture_made_during_a_capture_is_refused_and_the_capture_goes_on(device, host):
    array = pitched(host)
    with cuda.Stream(non_blocking=True) as stream:
        out = cuda.zeros(4, np.int32, stream=stream)
        with stream.capture() as graph:
            cuda.memset(out, 3, stream=stream)
            with pytest.raises(cuda.CaptureError, match="Texture: it cannot be made while a stream is being captured"):
                cuda.Texture(array)
        graph.instantiate().launch(stream)
        assert out.to_host().tolist() == [3] * 4


def test_a_texture_that_ends_during_a_capture_is_destroyed_behind_it(device, kernels, host, monkeypatch):
    destroyed = []
    destroy = seam.api.cuTexObjectDestroy
    monkeypatch.setitem(vars(seam.api), "cuTexObjectDestroy", lambda value: (destroyed.append(value), destroy(value)))
    texture = cuda.Texture(pitched(host))
    value = texture.handle
    with cuda.Stream(non_blocking=True) as stream:
        with stream.capture():
            texture.close()
            assert not destroyed
        assert destroyed == [value]
