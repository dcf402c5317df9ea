"""Surfaces: reads and writes of CUDA arrays by kernels, including those out of bounds."""

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

#define OUTSIDE(name, mode)                                                                                   \\
    extern "C" __global__ void read_##name(Surface s, const int *x, const int *y, float *out) {               \\
        out[threadIdx.x] = surf2Dread<float>(s, x[threadIdx.x], y[threadIdx.x], mode);                        \\
    }                                                                                                         \\
    extern "C" __global__ void write_##name(Surface s, float value, int x, int y) {                           \\
        surf2Dwrite(value, s, x, y, mode);                                                                    \\
    }
OUTSIDE(clamp, cudaBoundaryModeClamp)
OUTSIDE(zero, cudaBoundaryModeZero)
extern "C" __global__ void write_trap(Surface s, float value, int x, int y) { surf2Dwrite(value, s, x, y); }
extern "C" __global__ void write_even(Surface s, float value) {
    if (threadIdx.x % 2 == 0) surf2Dwrite(value, s, threadIdx.x * 4, 0);
}
extern "C" __global__ void sample(cudaTextureObject_t t, float *out) { *out = tex2D<float>(t, 1.0f, 0.5f); }
extern "C" __global__ void take_int(int s) {}
"""
SHAPES = {"1d": (7,), "2d": (5, 7), "3d": (3, 5, 7), "a1d": (4, 7), "a2d": (4, 5, 7)}


def surface_of(shape, dtype=np.float32, **options):
    return cuda.textures.Surface(cuda.textures.CudaArray(shape, dtype, surface=True, **options))


def extents(geometry):
    """Return the width, height and depth; layers count as depth."""
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


DTYPES = {"uchar": np.uint8, "short": np.int16, "int": np.int32, "ushort": np.uint16, "float": np.float32}


@pytest.mark.parametrize("name", ["uchar1", "short2", "uchar4", "int1", "ushort4", "float2", "float4"])
def test_elements_of_every_width_are_read_and_written(device, kernels, name, rng):
    dtype, channels = DTYPES[name[:-1]], int(name[-1])
    shape = (3, 5, channels) if channels > 1 else (3, 5)
    host = rng.integers(0, 128, shape).astype(dtype)
    source, target = (surface_of((3, 5), dtype, channels=channels) for _ in range(2))
    source.array.copy_from(host)
    kernels[f"turn_{name}"][3, 5](source, target, 5, 3)
    np.testing.assert_array_equal(target.array.to_host(), host[::-1, ::-1])


PLACES = [(0, 0), (-4, 0), (28, 4), (24, 5), (4, -1), (400, 99)]


def test_outside_it_is_the_nearest_element_or_zeros_and_nowhere(device, kernels):
    host = np.arange(1, 36, dtype=np.float32).reshape(5, 7)
    surface = surface_of((5, 7))
    surface.array.copy_from(host)
    x, y = (cuda.to_device(np.array(axis, np.int32)) for axis in zip(*PLACES, strict=True))
    out = cuda.zeros(len(PLACES), np.float32)
    kernels["read_clamp"][1, len(PLACES)](surface, x, y, out)
    assert out.to_host().tolist() == [host[0, 0], host[0, 0], host[4, 6], host[4, 6], host[0, 1], host[4, 6]]
    kernels["read_zero"][1, len(PLACES)](surface, x, y, out)
    assert out.to_host().tolist() == [host[0, 0], 0, 0, 0, 0, 0]
    kernels["write_zero"][1, 1](surface, 5.0, 28, 0)
    kernels["write_zero"][1, 1](surface, 5.0, 0, -1)
    np.testing.assert_array_equal(surface.array.to_host(), host)
    kernels["write_clamp"][1, 1](surface, 3.0, 28, 9)
    host[4, 6] = 3
    np.testing.assert_array_equal(surface.array.to_host(), host)


@pytest.mark.unsanitized("a kernel writes outside of a surface on purpose")
@pytest.mark.parametrize(
    ("place", "error"),
    [("28, 0", "IllegalAddressError"), ("-4, 0", "IllegalAddressError"), ("2, 1", "MisalignedAddressError")],
)
def test_a_write_outside_ends_the_launch_unless_the_kernel_says_otherwise(python, place, error):
    """Run in a separate process, which loses its context; x is in bytes, and must be a multiple of the element size."""
    program = f"""
import numpy as np, cudart_py as cuda
kernels = cuda.compile({KERNELS!r})
surface = cuda.textures.Surface(cuda.textures.CudaArray((5, 7), np.float32, surface=True))
kernels["write_trap"][1, 1](surface, 5.0, 24, 4)
cuda.Device(0).synchronize()
kernels["write_trap"][1, 1](surface, 5.0, {place})
try:
    cuda.Device(0).synchronize()
except cuda.CudaError as error:
    print(type(error).__name__)
"""
    assert python(program).stdout.splitlines()[-1:] == [error]


def test_the_threads_that_come_there_write_what_later_kernels_read_through_a_texture(device, kernels):
    surface, out = surface_of((5, 7)), cuda.zeros(1, np.float32)
    surface.array.copy_from(np.zeros((5, 7), np.float32))
    kernels["write_even"][1, 7](surface, 2.0)
    assert surface.array.to_host()[0].tolist() == [2, 0, 2, 0, 2, 0, 2]
    kernels["sample"][1, 1](cuda.textures.Texture(surface.array, filter="linear"), out)
    assert out.to_host()[0] == 1


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_a_surface_outlives_the_launches_and_the_graph_that_use_it(device, kernels, mode):
    array = cuda.textures.CudaArray((5, 7), np.float32, surface=True)
    host = np.arange(35, dtype=np.float32).reshape(5, 7)
    values, out = cuda.to_device(host), cuda.zeros((5, 7), np.float32)
    device.synchronize()
    with cuda.Stream(non_blocking=True) as stream:
        kernels["write_2d"][1, 64, 0, stream](cuda.textures.Surface(array), values, 7, 5, 1)
        gc.collect()
        stream.synchronize()
        np.testing.assert_array_equal(array.to_host(), host)
        with stream.capture(mode) as graph:
            kernels["read_2d"][1, 64, 0, stream](cuda.textures.Surface(array), out, 7, 5, 1)
        del array
        gc.collect()
        graph.instantiate().launch(stream)
        stream.synchronize()
    np.testing.assert_array_equal(out.to_host(), host)


def test_arguments_that_are_no_open_surfaces_are_refused(device, kernels):
    surface = surface_of((5, 7))
    assert repr(surface) == "<Surface (5, 7) float32>"
    assert surface.device is device
    with pytest.raises(TypeError, match=r"argument 0 of take_int .* a surface; .* cudaSurfaceObject_t"):
        kernels["take_int"][1, 1](surface)
    surface.array.close()
    assert surface.closed
    with pytest.raises(ValueError, match="argument 0 of write_zero .*: the surface or its array is closed"):
        kernels["write_zero"][1, 1](surface, 5.0, 28, 0)
    surface.close()
    assert repr(surface) == "<Surface closed>"
    plain = cuda.textures.CudaArray((5, 7), np.float32)
    for array, words in ((plain, "surface=True"), (cuda.zeros(4), "must be a CudaArray")):
        with pytest.raises((TypeError, ValueError), match=words):
            cuda.textures.Surface(array)
