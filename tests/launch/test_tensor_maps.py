"""Tensor maps: which arrays and boxes they take, how launches take them, and the driver's own rules."""

import gc
import weakref

import numpy as np
import pytest
from cuda.bindings import driver as bindings

import cudart_py as cuda
from cudart_py.driver.calls import raw

pytestmark = pytest.mark.needs("sm_90")  # which has tensor maps

TensorMap = cuda.tensor_maps.TensorMap
KERNELS = """
struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };
// The kernel passes on the words of the map, and what surrounds it.
extern "C" __global__ void words(int before, const __grid_constant__ CUtensorMap map, int behind,
                                 unsigned long long *out)
{
    out[threadIdx.x] = map.opaque[threadIdx.x];
    out[16] = before;
    out[17] = behind;
    out[18] = (unsigned long long)&map % 64;
}
extern "C" __global__ void small(uint4 map) {}
extern "C" __global__ void pointer(const CUtensorMap *map) {}
"""


def test_a_launch_passes_the_128_bytes_by_value(device, kernels):
    tensor_map, out = TensorMap(cuda.zeros((4, 8), np.int32), (2, 4)), cuda.zeros(19, np.uint64)
    kernels["words"][1, 16](-5 % 100, tensor_map, 7, out)
    found = out.to_host()
    assert found[:16].tobytes() == bytes(tensor_map)
    assert found[16:].tolist() == [95, 7, 0]


def test_its_sizes_are_those_of_a_box_in_shared_memory(device):
    array = cuda.zeros((9, 8, 40), np.float16)
    tensor_map = TensorMap(array, (5, 8, 32), element_strides=(2, 3, 1), swizzle=64)
    assert (tensor_map.box, tensor_map.shape, tensor_map.nbytes) == ((5, 8, 32), (3, 3, 32), 576)
    assert (tensor_map.array, tensor_map.swizzle, tensor_map.device) == (array, 64, device)
    assert repr(tensor_map) == "<TensorMap (9, 8, 40) float16, boxes of (5, 8, 32)>"


def test_it_keeps_its_array_alive(device):
    array = cuda.zeros((4, 8), np.int32)
    there, tensor_map = weakref.ref(array), TensorMap(array, (2, 4))
    del array
    gc.collect()
    assert there() is tensor_map.array


def test_its_address_can_be_replaced(device, kernels):
    first, second = cuda.zeros((4, 8), np.int32), cuda.zeros((4, 8), np.int32)
    tensor_map = TensorMap(first, (2, 4))
    before = bytes(tensor_map)
    tensor_map.replace_address(second)
    assert tensor_map.array is second
    assert bytes(tensor_map) == bytes(TensorMap(second, (2, 4))) != before
    for wrong, text in (
        (cuda.zeros((4, 8), np.float32), "have dtype int32 like the previous array, not float32"),
        (cuda.zeros((4, 12), np.int32), r"have the shape \(4, 8\) of the previous array"),
        (cuda.zeros((4, 12), np.int32)[:, 4:], r"have the strides \(32, 4\) of the previous array"),
        (np.zeros((4, 8), np.int32), "be a DeviceArray"),
    ):
        with pytest.raises(
            (TypeError, ValueError), match=f"^TensorMap.replace_address: argument 'array' must .*{text}"
        ):
            tensor_map.replace_address(wrong)
    assert tensor_map.array is second


@pytest.mark.parametrize(
    ("dtype", "shape", "box", "options", "text"),
    [
        (
            np.complex64,
            (4, 8),
            (2, 4),
            {},
            "'array' must have dtype integers, float16, bfloat16, float32 or",
        ),
        (np.int32, (1, 1, 1, 1, 4, 8), (1, 1, 1, 1, 4, 4), {}, "'array' must have one to five dimensions"),
        (np.int32, (4, 7), (2, 4), {}, "'array' must have strides that are multiples of 16 bytes"),
        (np.int32, (0, 8), (2, 4), {}, "'array' must have elements"),
        (np.int32, (4, 8), (2, 4, 4), {}, "'box' must be a tuple of 2 ints"),
        (np.int32, (4, 8), (0, 4), {}, r"'box\[0\]' must be an int of at least 1"),
        (np.int32, (400, 8), (257, 4), {}, "'box' must have at most 256 elements along each axis"),
        (np.int64, (4, 8), (256, 128), {}, "'box' must have at most .* bytes, which a block's shared memory has"),
        (np.int32, (4, 8), (2, 5), {}, "'box' must have a multiple of 16 bytes along the last axis, not 5 x 4"),
        (
            np.int32,
            (4, 80),
            (2, 12),
            {"swizzle": 32},
            "'box' must have at most 32 bytes along the last axis",
        ),
        (np.int32, (4, 8), (2, 4), {"swizzle": 16}, "'swizzle' must be one of 0, 32, 64, 128"),
        (np.int32, (4, 8), (2, 4), {"l2_promotion": 32}, "'l2_promotion' must be one of 0, 64, 128, 256"),
        (np.int32, (4, 8), (2, 4), {"element_strides": (9, 1)}, "'element_strides' must be at most 8"),
        (np.int32, (4, 8), (2, 4), {"element_strides": (1, 2)}, "'element_strides' must be 1 for the last axis"),
        (np.int32, (4, 8), (2, 4), {"fill": "nan"}, "'fill' must be 'zeros' unless the elements are floats"),
        (np.int32, (4, 8), (2, 4), {"fill": "nans"}, "'fill' must be one of 'zeros' or 'nan'"),
        (np.int32, (4, 8), (2, 4), {"element": "bfloat16"}, "'array' must have dtype uint16 with element='bfloat16'"),
        (np.int32, (4, 8), (2, 4), {"element": "int4"}, "'element' must be one of 'bfloat16', 'float32_ftz'"),
    ],
)
def test_a_wrong_array_or_box_is_refused(device, dtype, shape, box, options, text):
    array = cuda.zeros(shape, dtype)
    with pytest.raises((TypeError, ValueError), match=f"^TensorMap: argument {text}"):
        TensorMap(array, box, **options)


def test_a_view_must_be_aligned_and_adjacent(device):
    array = cuda.zeros((8, 16), np.int32)
    for view, text in (
        (array[:, 1:], "begin at a multiple of 16 bytes"),
        (array[:, ::2], "have adjacent elements along the last axis"),
    ):
        with pytest.raises(ValueError, match=f"'array' must {text}"):
            TensorMap(view, (2, 4))
    assert TensorMap(array[1:2, 4:8], (2, 4)).nbytes == 32


def test_the_stride_of_a_single_row_does_not_matter(device):
    assert TensorMap(cuda.zeros((1, 5), np.int32), (1, 4)).nbytes == 16


def test_a_kernel_without_such_a_parameter_refuses_it(device, kernels):
    tensor_map = TensorMap(cuda.zeros((4, 8), np.int32), (2, 4))
    with pytest.raises(TypeError, match="does not take a TensorMap; declare the parameter as const __grid_constant__"):
        kernels["small"][1, 1](tensor_map)
    with pytest.raises(TypeError, match="takes a device array, not an object of type TensorMap"):
        kernels["pointer"][1, 1](tensor_map)


def test_a_closed_array_is_refused(device, kernels):
    array = cuda.zeros((4, 8), np.int32)
    tensor_map = TensorMap(array, (2, 4))
    array.close()
    assert tensor_map.closed
    with pytest.raises(ValueError, match="the array of the TensorMap is closed"):
        kernels["words"][1, 16](1, tensor_map, 2, cuda.zeros(19, np.uint64))
    with pytest.raises(ValueError, match="'array' must be open"):
        TensorMap(array, (2, 4))


def test_bound_launches_and_graphs_keep_the_array_and_notice_that_it_is_closed(device, kernels):
    array, out = cuda.zeros((4, 8), np.int32), cuda.zeros(19, np.uint64)
    there, stream = weakref.ref(array), cuda.Stream()
    bound = kernels["words"][1, 16].bind(1, TensorMap(array, (2, 4)), 2, out)
    with stream.capture() as graph:
        kernels["words"][1, 16, 0, stream](1, TensorMap(array, (2, 4)), 2, out)
    executable = graph.instantiate()
    del array, graph
    gc.collect()
    bound()
    executable.launch(stream)
    stream.synchronize()
    there().close()
    for launch in (bound, lambda: executable.launch(stream)):
        with pytest.raises(ValueError, match="argument 1 of words: .* is closed"):
            launch()


def encoded(array, **changes):
    """Return the status of the driver's function, given its arguments that differ from valid ones."""
    values = {"type": 0, "rank": 2, "address": array.pointer, "sizes": (64, 64), "strides": (64,), "box": (64, 8),
              "steps": (1, 1), "interleave": 0, "swizzle": 0, "fill": 0, **changes}  # fmt: skip  # rows
    status, _ = raw.cuTensorMapEncodeTiled(
        bindings.CUtensorMapDataType(values["type"]),
        values["rank"],
        values["address"],
        *([bindings.cuuint64_t(value) for value in values[name]] for name in ("sizes", "strides")),
        *([bindings.cuuint32_t(value) for value in values[name]] for name in ("box", "steps")),
        bindings.CUtensorMapInterleave(values["interleave"]),
        bindings.CUtensorMapSwizzle(values["swizzle"]),
        bindings.CUtensorMapL2promotion(0),
        bindings.CUtensorMapFloatOOBfill(values["fill"]),
    )
    return status.name


def test_the_driver_has_the_same_rules(device):
    """Measured on an H200."""
    array = cuda.zeros((64, 64), np.uint8)
    for good in (
        {}, {"strides": (0,)}, {"strides": (32,)}, {"address": 0}, {"sizes": (1 << 32, 4)}, {"swizzle": 3},
        {"box": (256, 256)}, {"steps": (2, 8)}, {"type": 12, "box": (16, 8), "fill": 1},
        {"rank": 1, "sizes": (64,), "strides": (0,), "box": (64,), "steps": (1,)},
    ):  # fmt: skip  # rows
        assert encoded(array, **good) == "CUDA_SUCCESS", good
    for bad in (
        {"rank": 0}, {"rank": 6}, {"box": (257, 1)}, {"box": (0, 1)}, {"box": (8, 8)}, {"strides": (24,)},
        {"strides": (1 << 40,)}, {"address": array.pointer + 8}, {"steps": (1, 9)}, {"steps": (1, 0)},
        {"steps": (9, 1)}, {"sizes": (0, 4)}, {"sizes": ((1 << 32) + 1, 4)}, {"fill": 1}, {"swizzle": 1},
        {"swizzle": 4}, {"type": 13}, {"interleave": 1},
        {"rank": 1, "sizes": (64,), "strides": (), "box": (64,), "steps": (1,)},
    ):  # fmt: skip  # rows
        assert encoded(array, **bad) == "CUDA_ERROR_INVALID_VALUE", bad


def test_a_box_must_fit_shared_memory(device):
    array = cuda.zeros((64, 64), np.uint64)
    assert encoded(array, type=4, strides=(512,), box=(256, 64)) == "CUDA_SUCCESS"
    assert encoded(array, type=4, strides=(512,), box=(256, 128)) == "CUDA_ERROR_INVALID_VALUE"


@pytest.mark.needs("profile")
def test_the_simulator_refuses_what_it_does_not_run(device):
    array = cuda.zeros((4, 64, 64), np.uint8)
    three = {"rank": 3, "sizes": (64, 64, 4), "strides": (64, 4096), "box": (64, 8, 1), "steps": (1, 1, 1)}
    assert encoded(array, interleave=1, **three) == "CUDA_ERROR_NOT_SUPPORTED"
    assert raw.cuTensorMapEncodeIm2col(*[None] * 14)[0].name == "CUDA_ERROR_NOT_SUPPORTED"
