"""CUDA arrays: their shapes and elements, and copies between them and other arrays."""

import gc

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.driver import enums
from cudart_py.driver.calls import api
from tests.simulator.support import struct

KINDS = {
    "1-D": ((7,), False),
    "2-D": ((5, 7), False),
    "3-D": ((3, 5, 7), False),
    "1-D layers": ((4, 7), True),
    "2-D layers": ((4, 5, 7), True),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def numbers(shape, dtype, channels=1):
    axes = (channels,) if channels > 1 else ()
    count = int(np.prod((*shape, *axes)))
    return (np.arange(count) % 251).astype(dtype).reshape((*shape, *axes))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32", "float16", "float32"])
@pytest.mark.parametrize("channels", [1, 2, 4])
def test_arrays_come_back_as_they_were_from_the_host_from_arrays_and_from_devices(device, kind, dtype, channels):
    shape, layered = kind
    host = numbers(shape, dtype, channels)
    first, second, third = (cuda.textures.CudaArray(shape, dtype, channels=channels, layered=layered) for _ in range(3))
    np.testing.assert_array_equal(first.copy_from(host).to_host(), host)
    cuda.memcpy(second, first)
    back = cuda.zeros(host.shape, dtype)
    cuda.memcpy(back, second)
    np.testing.assert_array_equal(back.to_host(), host)
    out = np.zeros_like(host)
    assert third.copy_from(back).to_host(out) is out
    np.testing.assert_array_equal(out, host)


@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("kind", ["1-D layers", "2-D layers", "3-D"])
def test_from_layer_to_layer_of_single_rows_device_memory_goes_by_the_pitch(device, kind, on_device):
    shape, layered = KINDS[kind]
    array, host = cuda.textures.CudaArray(shape, np.uint8, layered=layered), np.arange(100, dtype=np.uint8)
    array.copy_from(np.zeros(shape, np.uint8))
    source, place = (cuda.to_device(host), "Device") if on_device else (host, "Host")
    memory = struct("CUDA_MEMCPY3D", srcPitch=8, srcHeight=3, WidthInBytes=2, Height=1, Depth=3)
    memory.srcMemoryType = getattr(enums.CUmemorytype, f"CU_MEMORYTYPE_{place.upper()}")
    setattr(memory, f"src{place}", source.pointer if on_device else source.ctypes.data)
    memory.dstMemoryType, memory.dstArray = enums.CUmemorytype.CU_MEMORYTYPE_ARRAY, enums.CUarray(array.handle)
    api.cuMemcpy3D(memory)
    firsts = array.to_host().reshape(shape[0], -1)[:3, 0]
    # According to the documentation, planes are srcPitch * srcHeight apart. For 1-D layers, an H200's driver 580.159
    # ignores srcHeight.
    assert firsts.tolist() == ([0, 8, 16] if on_device and kind == "1-D layers" else [0, 24, 48])


def test_an_array_says_what_it_is(device):
    array = cuda.textures.CudaArray((4, 5, 7), np.int16, channels=2, layered=True, surface=True)
    assert (array.shape, array.dtype, array.channels) == ((4, 5, 7), np.dtype(np.int16), 2)
    assert array.layered
    assert array.surface
    assert array.device is device
    assert array.nbytes == 4 * 5 * 7 * 4
    assert repr(array) == "<CudaArray (4, 5, 7) int16 x 2 layered>"
    array.close()
    assert repr(array) == "<CudaArray closed>"


def test_rows_with_a_pitch_and_planes_between_others_are_copied(device):
    volume = numbers((6, 9, 8), np.int32)
    flat, strides = volume.ravel(), (52, 16, 4)  # planes that begin between rows
    memory = cuda.to_device(volume)
    pitched = cuda.empty_pitched((9, 8), np.int32).copy_from(volume[0])
    between = cuda.DeviceArray.borrow(memory.pointer, (3, 2, 3), np.int32, strides=strides, owner=memory)
    # Planes of 9 rows, 2 of which are left out, and planes that begin half a row apart.
    for view, host in (
        (pitched, volume[0]),
        (memory[1:4, :7, 2:], volume[1:4, :7, 2:]),
        (memory[::2, 2:, :4], volume[::2, 2:, :4]),
        (between, np.lib.stride_tricks.as_strided(flat, (3, 2, 3), strides)),
    ):
        array = cuda.textures.CudaArray(view.shape, np.int32).copy_from(view)
        np.testing.assert_array_equal(array.to_host(), host)
        for values in (host + 1, host):
            cuda.memcpy(view, array.copy_from(values))
            np.testing.assert_array_equal(view.to_host(), values)


def test_host_arrays_of_any_strides_and_bytes_are_taken(device):
    host = numbers((5, 7), np.uint8)
    array = cuda.textures.CudaArray((5, 7), np.uint8)
    np.testing.assert_array_equal(array.copy_from(host[::-1, ::-1]).to_host(), host[::-1, ::-1])
    np.testing.assert_array_equal(array.copy_from(host.tobytes()).to_host(), host)
    cuda.memcpy(array, bytes(35))
    out = bytearray(b"x" * 35)
    cuda.memcpy(out, array)
    assert out == bytes(35)


def test_copies_are_queued_in_a_stream_and_repeated_by_a_graph_which_keeps_the_array(device):
    host, out = (cuda.pinned_empty((3, 5, 7), np.float32) for _ in range(2))
    host[:] = numbers((3, 5, 7), np.float32)
    array = cuda.textures.CudaArray((3, 5, 7), np.float32)
    with cuda.Stream(non_blocking=True) as stream:
        array.copy_from(host, stream=stream)
        assert array.to_host(out, stream=stream) is out
        stream.synchronize()
        np.testing.assert_array_equal(out, host)
        with stream.capture() as graph:
            array.copy_from(host, stream=stream)
            with pytest.raises(cuda.errors.CaptureError, match="pageable host memory"):
                array.copy_from(np.zeros((3, 5, 7), np.float32), stream=stream)
            array.to_host(out, stream=stream)
        del array
        gc.collect()
        host += 1
        graph.instantiate().launch(stream)
        stream.synchronize()
    np.testing.assert_array_equal(out, host)


def test_a_graph_whose_array_was_closed_names_it(device):
    array, source = cuda.textures.CudaArray((5,), np.float32), cuda.zeros(5, np.float32)
    with cuda.Stream(non_blocking=True) as stream:
        with stream.capture() as graph:
            cuda.memcpy(array, source, stream=stream)
        executable = graph.instantiate()
        array.close()
        for use in (graph.instantiate, lambda: executable.update(graph), lambda: executable.launch(stream)):
            with pytest.raises(ValueError, match="argument 0 of a copy: the array is closed"):
                use()


def test_numpy_is_told_how_to_read_an_array(device):
    array = cuda.textures.CudaArray((5,), np.float32)
    with pytest.raises(TypeError, match=r"use array\.to_host\(\)"):
        np.asarray(array)
    for ask in (np.array_equal, np.equal):
        with pytest.raises(
            TypeError, match=rf"np.{ask.__name__} takes host arrays, .* a CudaArray: write x.to_host\(\)$"
        ):
            ask(array, np.zeros(5, np.float32))
    with pytest.raises(TypeError, match="argument 'host' must be an array .*, not an object of type CudaArray"):
        cuda.to_device(array)


BAD = [
    (((4, 4), np.float64), {}, TypeError, "argument 'dtype' must be one of uint8, .* not float64"),
    (((4, 4), np.float32), {"channels": 3}, ValueError, "'channels' must be 1, 2 or 4, not 3"),
    (((4,), np.float32), {"layered": True}, ValueError, "'shape' must be one of two or three dimensions"),
    (((2, 2, 2, 2), np.float32), {}, ValueError, "'shape' must be one of one to three dimensions"),
    (((0, 4), np.float32), {}, ValueError, r"'shape' is \(0, 4\): the height must be from 1 to .*, not 0"),
    (((1, 1 << 24), np.uint8), {}, ValueError, "the width must be from 1 to .*, not 16777216"),
    (((1 << 16, 4), np.uint8), {"layered": True}, ValueError, "the layers must be from 1 to .*, not 65536"),
]


@pytest.mark.parametrize(("arguments", "options", "error", "words"), BAD)
def test_arrays_that_no_device_has_are_refused(device, arguments, options, error, words):
    with pytest.raises(error, match=words):
        cuda.textures.CudaArray(*arguments, **options)


def cuda_array(shape=(4, 6), **options):
    return cuda.textures.CudaArray(shape, np.float32, **options)


@pytest.mark.parametrize(
    ("copy", "error", "words"),
    [
        (lambda a: a.copy_from(np.zeros((4, 5), np.float32)), ValueError, r"'source' must have shape \(4, 6\)"),
        (lambda a: a.copy_from(np.zeros((4, 6))), TypeError, "'source' must have dtype float32 .* not float64"),
        (lambda a: a.copy_from(cuda.zeros((4, 12), np.float32)[:, ::2]), ValueError, "'source' .* contiguous rows"),
        (lambda a: a.copy_from(bytes(95)), ValueError, "'source' must have 96 bytes, .* not 95"),
        (lambda a: a.copy_from(cuda_array((6, 4))), ValueError, r"'source' must have shape \(4, 6\)"),
        (lambda a: a.copy_from(cuda_array(layered=True)), ValueError, "'source' must be layered if and only if"),
        (lambda a: a.to_host(np.zeros((4, 12), np.float32)[:, ::2]), ValueError, "'out' must have contiguous rows"),
        (lambda a: a.to_host(np.zeros((4, 6), np.int32)), TypeError, "'out' must have dtype float32 .* not int32"),
        (lambda a: cuda.memcpy(a, cuda.zeros((4, 5), np.float32)), ValueError, "memcpy: .*'src' must have shape"),
        (lambda a: cuda.memcpy(np.broadcast_to(np.float32(0), (4, 6)), a), ValueError, "argument 'dst' is read-only"),
        (lambda a: a.to_host(np.broadcast_to(np.float32(0), (4, 6))), ValueError, "argument 'out' is read-only"),
        (lambda a: cuda.memcpy2d(np.broadcast_to(np.float32(0), (4, 6)), a), ValueError, "'dst' is read-only"),
    ],
)
def test_copies_of_other_shapes_and_elements_are_refused(device, copy, error, words):
    with pytest.raises(error, match=words):
        copy(cuda_array())


def test_a_closed_array_is_refused(device):
    array = cuda_array()
    array.close()
    for use, words in (
        (array.to_host, "this CudaArray is closed"),
        (lambda: cuda.memcpy(cuda.zeros((4, 6), np.float32), array), "argument 'src' must be open"),
        (lambda: cuda.memcpy(array, bytes(96)), "argument 'dst' must be open"),
    ):
        with pytest.raises(ValueError, match=words):
            use()


# -- windows -----------------------------------------------------------------------------------


def test_windows_have_all_channels(device):
    host = numbers((4, 7, 2), np.uint8, 1)
    array = cuda.textures.CudaArray((4, 7), np.uint8, channels=2, layered=True).copy_from(np.zeros_like(host))
    cuda.memcpy2d(array, host, (1, 5), dst_start=(2, 2), src_start=(1, 1))
    expected = np.zeros_like(host)
    expected[2, 2:] = host[1, 1:6]
    np.testing.assert_array_equal(array.to_host(), expected)


@pytest.mark.parametrize(
    ("copy", "error", "words"),
    [
        (lambda a, h: cuda.memcpy2d(a, h, dst_start=(0, 1)), ValueError, "'dst' must have a shape that contains"),
        (lambda a, h: cuda.memcpy3d(a, h), ValueError, "argument 'dst' must have 3 dimensions, not 2"),
        (lambda a, h: cuda.memcpy2d(a, h.astype(np.int32)), TypeError, "argument 'src' must have dtype float32"),
        (lambda a, h: cuda.memcpy2d(a, h[:, ::2], (1, 2)), ValueError, "'src' .* adjacent elements, .* 8 bytes apart"),
        (lambda a, h: cuda.memcpy2d(cuda_array(channels=2), h), ValueError, "'src' must have 3 .* for the channels"),
        (
            lambda a, h: cuda.memcpy2d(cuda_array(channels=2), cuda_array(channels=4), (2, 2)),
            ValueError,
            r"shape \(2, 2, 2\) .* not \(2, 2, 4\)",
        ),
    ],
)
def test_windows_that_do_not_fit_are_refused(device, copy, error, words):
    with pytest.raises(error, match=words):
        copy(cuda_array((5, 7)), numbers((5, 7), np.float32))


def test_an_array_belongs_to_the_device_that_was_current(device):
    """On a machine with one device, the last device is the only one."""
    last = cuda.devices()[-1]
    host = numbers((5, 7), np.float32)
    with last:
        array = cuda.textures.CudaArray((5, 7), np.float32, surface=True)
    np.testing.assert_array_equal(array.copy_from(host).to_host(), host)
    with cuda.textures.Texture(array) as texture, cuda.textures.Surface(array) as surface:
        assert array.device is texture.device is surface.device is last
    array.close()
