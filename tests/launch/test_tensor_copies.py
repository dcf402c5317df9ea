"""Copies of boxes of arrays by tensor maps: ``cp.async.bulk.tensor`` and ``cp.reduce.async.bulk.tensor``."""

import re
from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda
from tests.simulator.checks.reports import found

pytestmark = pytest.mark.needs("sm_90")  # which has tensor copies

HERE = Path(__file__).parent
KERNELS = HERE / "tensor_copies.cu"
COMPILE_OPTIONS = {"arch": "sm_90", "options": ["--diag-suppress=20054"]}
MOST = 8192
EMPTY = 0xEE
# What an H200 fills with for the argument fill="nan".
NAN = 0x7FF7
THREADS = 96


def place(start):
    """Return the kernels' argument for the place of a box, given in the order of the array's axes."""
    return np.array([*reversed(start), *[0] * (5 - len(start))], np.int32)


def parts(array, tensor_map, start, steps=None):
    """Return, for each axis, the indices of a box's elements in the array, and which of them are inside."""
    steps = steps or (1,) * array.ndim
    indices = [at + step * np.arange(size) for at, step, size in zip(start, steps, tensor_map.shape, strict=True)]
    return indices, [(index >= 0) & (index < size) for index, size in zip(indices, array.shape, strict=True)]


def boxed(array, tensor_map, start, steps=None, fill=0):
    """Return the elements of a box, which may be partly outside the array, by NumPy's indexing."""
    indices, inside = parts(array, tensor_map, start, steps)
    found = np.full(tensor_map.shape, fill, array.dtype)
    found[np.ix_(*inside)] = array[np.ix_(*(index[some] for index, some in zip(indices, inside, strict=True)))]
    return found


def laid_out(box, swizzle):
    """Return a box's bytes as they are in shared memory, by the tables of the CUDA programming guide.

    A row occupies a whole span of the swizzle. The 16-byte unit `j` of the span `i` is at `j ^ (i % 8)` with 128 bytes,
    `j ^ (i / 2 % 4)` with 64 and `j ^ (i / 4 % 2)` with 32 bytes.
    """
    rows = np.ascontiguousarray(box).reshape(-1, box.shape[-1]).view(np.uint8)
    out = np.full(MOST, EMPTY, np.uint8)
    if not swizzle:
        out[: rows.size] = rows.reshape(-1)
        return out
    for i, row in enumerate(rows):
        for j, unit in enumerate(row.reshape(-1, 16)):
            to = j ^ {128: i % 8, 64: i // 2 % 4, 32: i // 4 % 2}[swizzle]
            out[i * swizzle + 16 * to :][:16] = unit
    return out


def loaded(kernels, tensor_map, start):
    """Return the contents of shared memory after a load."""
    out = cuda.zeros(MOST, np.uint8)
    kernels[f"load{len(start)}"][1, THREADS](tensor_map, place(start), tensor_map.nbytes, out)
    return out.to_host()


def check_load(kernels, array, box, start, *, swizzle=0, steps=None, bits=None, **options):
    """Load one box of a device array, and compare all shared memory."""
    tensor_map = cuda.tensor_maps.TensorMap(array, box, swizzle=swizzle, element_strides=steps, **options)
    host = array.to_host()
    expected = boxed(host if bits is None else bits, tensor_map, start, steps)
    np.testing.assert_array_equal(loaded(kernels, tensor_map, start), laid_out(expected, swizzle))


SHAPES = {1: ((50,), (36,)), 2: ((11, 20), (7, 12)), 3: ((5, 6, 8), (3, 4, 8)), 4: ((3, 4, 5, 8), (2, 3, 2, 4)),
          5: ((2, 3, 4, 3, 8), (2, 2, 2, 2, 4))}  # fmt: skip  # one line for each half


@pytest.mark.parametrize("rank", SHAPES)
def test_a_box_anywhere_is_loaded(device, kernels, rng, rank):
    shape, box = SHAPES[rank]
    array = cuda.to_device(rng.integers(1, 1 << 30, shape, np.int32))
    inside = [int(rng.integers(0, max(size - extent, 0) + 1)) for size, extent in zip(shape, box, strict=True)]
    for start in (inside, [int(rng.integers(-extent, size + 1)) for size, extent in zip(shape, box, strict=True)]):
        start[-1] -= start[-1] % 4  # a multiple of 16 bytes
        check_load(kernels, array, box, start)


@pytest.mark.parametrize("start", [(-3, 0), (8, 0), (0, -8), (0, 12), (-6, -4), (10, 16), (-7, 0), (11, 0), (0, 20)])
def test_elements_beyond_each_edge_are_zero(device, kernels, rng, start):
    check_load(kernels, cuda.to_device(rng.integers(1, 100, (11, 20), np.int32)), (7, 12), start)


@pytest.mark.parametrize("swizzle", [32, 64, 128])
@pytest.mark.parametrize("part", [1, 2])
def test_swizzled_boxes_follow_the_documented_pattern(device, kernels, rng, swizzle, part):
    """A row may be shorter than a span, which it occupies nevertheless."""
    array = cuda.to_device(rng.integers(0, 1 << 16, (40, 72), np.uint16))
    check_load(kernels, array, (21, swizzle // 2 // part), (int(rng.integers(-5, 30)), 8), swizzle=swizzle)


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]
)
def test_elements_of_each_type_are_copied_unchanged(device, kernels, rng, dtype):
    bits = rng.integers(0, 256, (9, 64), np.uint8)
    array = cuda.to_device(bits).view(dtype)
    each = array.itemsize
    unchanged = bits.view(f"u{each}")
    check_load(kernels, array, (4, 32 // each), (6, 16 // each), bits=unchanged)


def test_strides_leave_out_elements(device, kernels, rng):
    array = cuda.to_device(rng.integers(1, 100, (9, 30, 16), np.int32))
    for steps in ((1, 2, 1), (3, 1, 1), (2, 5, 1)):
        check_load(kernels, array, (6, 7, 8), (int(rng.integers(-2, 7)), int(rng.integers(-3, 28)), 4), steps=steps)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_elements_outside_can_be_nan(device, kernels, rng, dtype):
    array = cuda.to_device(rng.random((6, 16)).astype(dtype))
    tensor_map = cuda.tensor_maps.TensorMap(array, (4, 8), fill="nan")
    found = loaded(kernels, tensor_map, (4, 8))[: tensor_map.nbytes].view(dtype).reshape(4, 8)
    assert np.isnan(found[2:]).all()
    np.testing.assert_array_equal(found[:2], array.to_host()[4:, 8:])
    assert (found[2:].view(np.uint16) == NAN).all()


def test_loads_round_to_tf32(device, kernels, rng):
    """To the nearest of the numbers with 10 bits after the point, and to the even one of two."""
    bits = rng.integers(0, 1 << 32, (8, 16), np.uint32)
    bits[0, :8] = [0x3F801000, 0x3F803000, 0x3F801FFF, 0x7F7FFFFF, 1, 0x80401000, 0x7F800001, 0xFFC00000]
    rounded = (bits.astype(np.uint64) + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000
    nan = bits & 0x7FFFFFFF > 0x7F800000
    tensor_map = cuda.tensor_maps.TensorMap(cuda.to_device(bits.view(np.float32)), (8, 16), element="tfloat32")
    found = loaded(kernels, tensor_map, (0, 0))[: tensor_map.nbytes].view(np.uint32).reshape(8, 16)
    np.testing.assert_array_equal(found, np.where(nan, 0x7FFFE000, rounded))


def test_a_view_with_strides_is_loaded(device, kernels, rng):
    array = cuda.to_device(rng.integers(1, 100, (12, 40), np.int32))
    check_load(kernels, array[1::3, 8:28], (3, 12), (2, 12))


def stored(kernels, name, array, box, start, values, *, swizzle=0, steps=None, **options):
    """Store a box that contains these values."""
    tensor_map = cuda.tensor_maps.TensorMap(array, box, swizzle=swizzle, element_strides=steps, **options)
    kernels[name][1, THREADS](tensor_map, place(start), cuda.to_device(laid_out(values, swizzle)))
    return tensor_map


@pytest.mark.parametrize("rank", SHAPES)
def test_a_stored_box_is_clipped(device, kernels, rng, rank):
    shape, box = SHAPES[rank]
    before = rng.integers(1, 1 << 30, shape, np.int32)
    start = [int(rng.integers(size + 1)) for size in shape]
    start[-1] -= start[-1] % 4
    array, values = cuda.to_device(before), rng.integers(1, 1 << 30, box, np.int32)
    tensor_map = stored(kernels, f"store{rank}", array, box, start, values)
    indices, inside = parts(before, tensor_map, start)
    before[np.ix_(*(index[some] for index, some in zip(indices, inside, strict=True)))] = values[np.ix_(*inside)]
    np.testing.assert_array_equal(array.to_host(), before)


@pytest.mark.parametrize(("swizzle", "columns"), [(0, 40), (32, 8), (64, 16), (128, 32), (128, 8)])
def test_swizzled_boxes_are_stored(device, kernels, rng, swizzle, columns):
    array, values = cuda.zeros((20, 48), np.float32), rng.random((4, columns)).astype(np.float32)
    stored(kernels, "store2", array, (4, columns), (3, 4), values, swizzle=swizzle)
    expected = np.zeros((20, 48), np.float32)
    expected[3:7, 4 : 4 + columns] = values
    np.testing.assert_array_equal(array.to_host(), expected)


OPERATIONS = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "inc": lambda old, most: np.where(old >= most, 0, old + 1),
    "dec": lambda old, most: np.where((old == 0) | (old > most), most, old - 1),
}  # fmt: skip  # one line for each kind
REDUCTIONS = [
    *(("add", dtype) for dtype in ("uint32", "int32", "uint64", "float16", "float32", "float64")),
    *((name, dtype) for name in ("min", "max") for dtype in ("uint32", "int32", "uint64", "int64", "float16")),
    *((name, dtype) for name in ("and", "or", "xor") for dtype in ("int32", "uint64")),
    ("inc", "uint32"), ("dec", "uint32"),
]  # fmt: skip  # one line for each kind


@pytest.mark.parametrize(("name", "dtype"), REDUCTIONS)
def test_a_reduction_combines_a_box_with_the_array(device, kernels, rng, name, dtype):
    # Sums of these numbers are exact in every type and order.
    before, values = (rng.integers(1, 100, shape).astype(dtype) for shape in ((6, 16), (4, 8)))
    array = cuda.to_device(before)
    for _ in range(2):
        stored(kernels, f"reduce_{name}", array, (4, 8), (4, 8), values)
        before[4:, 8:] = OPERATIONS[name](before[4:, 8:], values[:2])
    np.testing.assert_array_equal(array.to_host(), before)


@pytest.mark.parametrize(("element", "kept"), [(None, True), ("float32_ftz", False)])
def test_only_sums_of_a_flushing_type_flush_subnormal_numbers(device, kernels, element, kept):
    before, values = (np.full((1, 16), bits, np.uint32).view(np.float32) for bits in (0x300000, 0x200000))
    array = cuda.to_device(before)
    stored(kernels, "reduce_add", array, (1, 16), (0, 0), values, element=element)
    assert (array.to_host().view(np.uint32) == (0x500000 if kept else 0)).all()


@pytest.mark.parametrize("ranks", [0b01, 0b10, 0b11])
def test_one_load_reaches_both_blocks_of_a_cluster(device, kernels, rng, ranks):
    values = rng.integers(0, 256, (12, 48), np.uint8)
    tensor_map = cuda.tensor_maps.TensorMap(cuda.to_device(values), (8, 32), swizzle=32)
    out = cuda.zeros((4, MOST), np.uint8)
    kernels["multicast"].configure(4, THREADS, cluster=2)(tensor_map, place((6, 16)), tensor_map.nbytes, out, ranks)
    box = laid_out(boxed(values, tensor_map, (6, 16)), 32)
    chosen = np.array([ranks >> rank & 1 for rank in (0, 1)] * 2, np.bool_)
    np.testing.assert_array_equal(out.to_host(), np.where(chosen[:, None], box, EMPTY))


def test_a_map_in_global_memory_serves_too(device, kernels, rng):
    """The kernel takes the map as a parameter, but a copy of its bytes is a structure like any other."""
    array = cuda.to_device(rng.integers(1, 100, (11, 20), np.int32))
    tensor_map = cuda.tensor_maps.TensorMap(array, (7, 12))
    out = cuda.zeros(MOST, np.uint8)
    raw = np.frombuffer(bytes(tensor_map), np.uint64)
    kernels["load2"][1, THREADS](raw, place((2, 4)), tensor_map.nbytes, out)
    np.testing.assert_array_equal(out.to_host(), laid_out(boxed(array.to_host(), tensor_map, (2, 4)), 0))


FAULTS = """
import numpy as np
import cudart_py as cuda
from tests.launch.test_tensor_copies import HERE, MOST, place
kernels = cuda.compile(HERE / "tensor_copies.cu", arch="sm_90", options=["--diag-suppress=20054"])
array, out = cuda.zeros((8, 64), np.{dtype}), cuda.zeros(MOST, np.uint8)
tensor_map = cuda.tensor_maps.TensorMap(array, (4, 32))
{change}
more = [128, out] if "{kernel}" == "load2" else [out]
kernels["{kernel}"][1, 1](tensor_map, place({start}), *more)
try:
    cuda.Device(0).synchronize()
except cuda.CudaError as error:
    print(error.status.name)
"""
OTHER_AXES = "tensor_map = cuda.tensor_maps.TensorMap(array.reshape(2, 4, 64), (1, 4, 32))"


@pytest.mark.unsanitized("its fault ends the context")
@pytest.mark.parametrize(
    ("kernel", "start", "dtype", "change"),
    [
        ("load2", (0, 4), "uint8", ""),
        ("load2", (0, 0), "uint8", "tensor_map = np.zeros(16, np.uint64)"),
        # Not measured on a GPU.
        pytest.param("load2", (0, 0), "uint8", OTHER_AXES, marks=pytest.mark.needs("profile")),
        ("store2", (-1, 0), "uint8", ""),
        ("reduce_add", (0, -16), "float32", ""),
        ("reduce_and", (0, 0), "int64", ""),
        ("reduce_min", (0, 0), "float32", ""),
    ],
)
def test_a_wrong_copy_is_an_illegal_instruction(device, kernels, python, kernel, start, dtype, change):
    """It begins within 16 bytes, has no fitting map, stores before the array, or reduces elements of another type."""
    found = python(FAULTS.format(kernel=kernel, start=start, dtype=dtype, change=change)).stdout
    assert found.strip() == "CUDA_ERROR_ILLEGAL_INSTRUCTION"


def test_boxes_are_loaded_and_stored_by_all_blocks(device, kernels, rng):
    values = rng.integers(1, 1000, (38, 8), np.int32)
    array = cuda.to_device(values)
    tensor_map = cuda.tensor_maps.TensorMap(array, (4, 8))
    kernels["doubled"][10, 32](tensor_map, 32, 0)
    np.testing.assert_array_equal(array.to_host(), 2 * values)


@pytest.mark.needs("profile")
@pytest.mark.unsanitized("the kernel is wrong on purpose")
@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (1, "fills by cp.async.bulk at .*, and no wait at the copy's barrier"),
        (2, "with no fence.proxy.async in between"),
        (3, "nothing orders the two accesses"),
        (4, "from which cp.async.bulk reads for block"),
    ],
)
def test_a_mistake_beside_a_tensor_copy_is_found(device, kernels, wrong, text):
    array = cuda.zeros((38, 8), np.int32)
    tensor_map = cuda.tensor_maps.TensorMap(array, (4, 8))
    with cuda.sanitizer("warn"):
        assert found(kernels["doubled"][2, 64], tensor_map, 32, 0) == []
        texts = found(kernels["doubled"][2, 64], tensor_map, 32, wrong)
    assert any(re.search(text, one) for one in texts), texts
