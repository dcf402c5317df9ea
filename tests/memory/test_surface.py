"""Surfaces: what kernels write to CUDA arrays and read from them, and what lies outside."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import cudart_py as cuda

KERNELS = """
typedef cudaSurfaceObject_t Surface;
#define EACH(name, ...) extern "C" __global__ void name(__VA_ARGS__, int width, int height, int depth) {      \\
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                                        \\
        if (i >= width * height * depth) return;                                                              \\
        int x = i % width, y = i / width % height, z = i / width / height, b = x * (int)sizeof(float);

EACH(write_1d, Surface s, const float *v) surf1Dwrite(v[i], s, b); }
EACH(write_2d, Surface s, const float *v) surf2Dwrite(v[i], s, b, y); }
EACH(write_3d, Surface s, const float *v) surf3Dwrite(v[i], s, b, y, z); }
EACH(write_a1d, Surface s, const float *v) surf1DLayeredwrite(v[i], s, b, z); }
EACH(write_a2d, Surface s, const float *v) surf2DLayeredwrite(v[i], s, b, y, z); }
EACH(read_1d, Surface s, float *v) v[i] = surf1Dread<float>(s, b); }
EACH(read_2d, Surface s, float *v) v[i] = surf2Dread<float>(s, b, y); }
EACH(read_3d, Surface s, float *v) v[i] = surf3Dread<float>(s, b, y, z); }
EACH(read_a1d, Surface s, float *v) v[i] = surf1DLayeredread<float>(s, b, z); }
EACH(read_a2d, Surface s, float *v) v[i] = surf2DLayeredread<float>(s, b, y, z); }

template <class T> __device__ void turn(Surface from, Surface to, int width, int height) {
    int x = threadIdx.x, y = blockIdx.x;
    surf2Dwrite(surf2Dread<T>(from, x * (int)sizeof(T), y), to, (width - 1 - x) * (int)sizeof(T), height - 1 - y);
}
#define TURN(T) extern "C" __global__ void turn_##T(Surface a, Surface b, int w, int h) { turn<T>(a, b, w, h); }
TURN(uchar1) TURN(short2) TURN(uchar4) TURN(int1) TURN(ushort4) TURN(float2) TURN(float4)

extern "C" __global__ void clamp(Surface s, const int *x, const int *y, float *out) {
    int i = threadIdx.x;
    out[i] = surf2Dread<float>(s, x[i], y[i], cudaBoundaryModeClamp);
}
extern "C" __global__ void zero(Surface s, const int *x, const int *y, float *out) {
    int i = threadIdx.x;
    out[i] = surf2Dread<float>(s, x[i], y[i], cudaBoundaryModeZero);
}
extern "C" __global__ void write_clamp(Surface s, float value, int x, int y) {
    surf2Dwrite(value, s, x, y, cudaBoundaryModeClamp);
}
extern "C" __global__ void write_zero(Surface s, float value, int x, int y) {
    surf2Dwrite(value, s, x, y, cudaBoundaryModeZero);
}
extern "C" __global__ void write_trap(Surface s, float value, int x, int y) { surf2Dwrite(value, s, x, y); }
extern "C" __global__ void write_even(Surface s, float value) {
    if (threadIdx.x % 2 == 0) surf1Dwrite(value, s, threadIdx.x * 4);
}
extern "C" __global__ void sample(cudaTextureObject_t t, float *out) { *out = tex2D<float>(t, 1.0f, 0.5f); }
extern "C" __global__ void take_int(int s) {}
"""
SHAPES = {"1d": (7,), "2d": (5, 7), "3d": (3, 5, 7), "a1d": (4, 7), "a2d": (4, 5, 7)}


@pytest.fixture(scope="module")
def kernels():
    with cuda.Device(0):
        return cuda.compile(KERNELS)


def surface_of(shape, dtype=np.float32, **options):
    return cuda.Surface(cuda.CudaArray(shape, dtype, surface=True, **options))


def extents(geometry):
    """Return the width, height and depth, where layers count as the depth."""
    shape = SHAPES[geometry]
    if geometry == "a1d":
        return shape[1], 1, shape[0]
    return (*shape[::-1], 1, 1)[:3]


@pytest.mark.parametrize("geometry", SHAPES)
def test_elements_are_written_and_read_by_coordinates(device, kernels, geometry, rng):
    host = rng.random(SHAPES[geometry]).astype(np.float32)
    surface = surface_of(host.shape, layered=geometry[0] == "a")
    kernels[f"write_{geometry}"][2, 128](surface, cuda.to_device(host), *extents(geometry))
    np.testing.assert_array_equal(surface.array.to_host(), host)
    out = cuda.zeros(host.shape, np.float32)
    kernels[f"read_{geometry}"][2, 128](surface, out, *extents(geometry))
    np.testing.assert_array_equal(out.to_host(), host)


@pytest.mark.parametrize(
    ("name", "dtype", "channels"),
    [
        ("uchar1", np.uint8, 1),
        ("short2", np.int16, 2),
        ("uchar4", np.uint8, 4),
        ("int1", np.int32, 1),
        ("ushort4", np.uint16, 4),
        ("float2", np.float32, 2),
        ("float4", np.float32, 4),
    ],
)
def test_elements_of_every_width_are_read_and_written(device, kernels, name, dtype, channels, rng):
    shape = (3, 5, channels) if channels > 1 else (3, 5)
    host = rng.integers(0, 128, shape).astype(dtype)
    source, target = (surface_of((3, 5), dtype, channels=channels) for _ in range(2))
    source.array.copy_from(host)
    kernels[f"turn_{name}"][3, 5](source, target, 5, 3)
    np.testing.assert_array_equal(target.array.to_host(), host[::-1, ::-1])


PLACES = [(0, 0), (-4, 0), (28, 4), (24, 5), (4, -1), (400, 99)]


def test_outside_the_nearest_element_or_zeros_are_read(device, kernels):
    host = np.arange(1, 36, dtype=np.float32).reshape(5, 7)
    surface = surface_of((5, 7))
    surface.array.copy_from(host)
    x, y = (cuda.to_device(np.array(axis, np.int32)) for axis in zip(*PLACES, strict=True))
    out = cuda.zeros(len(PLACES), np.float32)
    kernels["clamp"][1, len(PLACES)](surface, x, y, out)
    assert out.to_host().tolist() == [host[0, 0], host[0, 0], host[4, 6], host[4, 6], host[0, 1], host[4, 6]]
    kernels["zero"][1, len(PLACES)](surface, x, y, out)
    assert out.to_host().tolist() == [host[0, 0], 0, 0, 0, 0, 0]


def test_writes_outside_go_to_the_nearest_element_or_nowhere(device, kernels):
    surface = surface_of((5, 7))
    surface.array.copy_from(np.zeros((5, 7), np.float32))
    kernels["write_zero"][1, 1](surface, 5.0, 28, 0)
    kernels["write_zero"][1, 1](surface, 5.0, 0, -1)
    assert not surface.array.to_host().any()
    kernels["write_clamp"][1, 1](surface, 3.0, 28, 9)
    host = surface.array.to_host()
    assert host[4, 6] == host.sum() == 3


@pytest.mark.unsanitized("a kernel writes outside of a surface on purpose")
@pytest.mark.parametrize(
    ("place", "error"),
    [("28, 0", "IllegalAddressError"), ("-4, 0", "IllegalAddressError"), ("2, 1", "MisalignedAddressError")],
)
def test_a_write_outside_ends_the_launch_unless_the_kernel_says_otherwise(python, place, error):
    """In a process of its own, whose context is lost; x counts bytes, and must be a multiple of the element's."""
    program = f"""
import numpy as np, cudart_py as cuda
kernels = cuda.compile({KERNELS!r})
surface = cuda.Surface(cuda.CudaArray((5, 7), np.float32, surface=True))
kernels["write_trap"][1, 1](surface, 5.0, 24, 4)
cuda.Device(0).synchronize()
kernels["write_trap"][1, 1](surface, 5.0, {place})
try:
    cuda.Device(0).synchronize()
except cuda.CudaError as error:
    print(type(error).__name__)
"""
    assert python(program).stdout.splitlines()[-1:] == [error]


def test_only_the_threads_that_come_there_write(device, kernels):
    surface = surface_of((8,))
    surface.array.copy_from(np.zeros(8, np.float32))
    kernels["write_even"][1, 8](surface, 2.0)
    assert surface.array.to_host().tolist() == [2, 0] * 4


def test_later_kernels_read_through_a_texture_what_was_written(device, kernels):
    surface = surface_of((5, 7))
    host = np.arange(35, dtype=np.float32).reshape(5, 7)
    out = cuda.zeros(1, np.float32)
    kernels["write_2d"][1, 64](surface, cuda.to_device(host), 7, 5, 1)
    kernels["sample"][1, 1](cuda.Texture(surface.array, filter="linear"), out)
    assert out.to_host()[0] == 0.5


def test_a_surface_outlives_the_launch_that_uses_it(device, kernels):
    array = cuda.CudaArray((5, 7), np.float32, surface=True)
    host = np.arange(35, dtype=np.float32).reshape(5, 7)
    values = cuda.to_device(host)
    device.synchronize()
    with cuda.Stream(non_blocking=True) as stream:
        kernels["write_2d"][1, 64, 0, stream](cuda.Surface(array), values, 7, 5, 1)
        gc.collect()
        stream.synchronize()
    np.testing.assert_array_equal(array.to_host(), host)


def test_a_graph_keeps_a_surface_and_its_array(device, kernels):
    surface = surface_of((5, 7))
    out, values = cuda.zeros((5, 7), np.float32), cuda.to_device(np.ones((5, 7), np.float32))
    device.synchronize()
    with cuda.Stream(non_blocking=True) as stream:
        with stream.capture() as graph:
            kernels["write_2d"][1, 64, 0, stream](surface, values, 7, 5, 1)
            kernels["read_2d"][1, 64, 0, stream](surface, out, 7, 5, 1)
        del surface
        gc.collect()
        graph.instantiate().launch(stream)
        stream.synchronize()
    assert (out.to_host() == 1).all()


def test_arguments_that_are_no_open_surfaces_are_refused(device, kernels):
    surface = surface_of((5, 7))
    assert repr(surface) == "<Surface (5, 7) float32>"
    assert surface.device is device
    with pytest.raises(TypeError, match=r"argument 0 of take_int \(int\) takes no surface; .* cudaSurfaceObject_t"):
        kernels["take_int"][1, 1](surface)
    surface.array.close()
    assert surface.closed
    with pytest.raises(ValueError, match="argument 0 of write_zero .*: the surface or its array is closed"):
        kernels["write_zero"][1, 1](surface, 5.0, 28, 0)
    surface.close()
    assert repr(surface) == "<Surface closed>"


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: cuda.CudaArray((5, 7), np.float32), ValueError, "surface=True; this one was made without it"),
        (lambda: cuda.empty_pitched((5, 7), np.float32), TypeError, "'array' must be a CudaArray"),
    ],
)
def test_arrays_that_no_surface_has_are_refused(device, make, error, words):
    with pytest.raises(error, match=words):
        cuda.Surface(make())


@pytest.mark.needs("reset")
def test_a_reset_closes_arrays_textures_and_surfaces(python):
    program = """
import numpy as np, cudart_py as cuda
surface = cuda.Surface(cuda.CudaArray((5, 7), np.float32, surface=True))
texture = cuda.Texture(surface.array)
cuda.reset()
print([thing.closed for thing in (surface, texture, surface.array)])
del surface, texture
array = cuda.CudaArray((2,), np.float32).copy_from(np.ones(2, np.float32))
print(array.to_host())
"""
    assert python(program).stdout.splitlines()[-2:] == ["[True, True, True]", "[1. 1.]"]
