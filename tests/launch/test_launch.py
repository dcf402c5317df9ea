"""The checked launch: how it packs arguments, and which it rejects before the driver sees them."""

import ctypes
import gc
import inspect
import pydoc
import struct
import threading
import weakref

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.context import lifetimes
from cudart_py.driver.launch_log import log

PAIR = np.dtype([("a", np.float32), ("b", np.float64)], align=True)


def test_a_template_instance_launches(device, module):
    out = cuda.zeros(64, np.float32)
    module["fill<float, 32>"][2, 32](out, 1.5)
    np.testing.assert_array_equal(out.to_host(), np.full(64, 1.5))
    out = cuda.zeros(7, np.int64)
    module["fill<long long, 7>"][1, 32](out, -(2**63))
    np.testing.assert_array_equal(out.to_host(), np.full(7, -(2**63)))


EXTREMES = [
    (False, -128, -(2**15), -(2**31), -(2**63), 0, 0, 0, 0),
    (True, 127, 2**15 - 1, 2**31 - 1, 2**63 - 1, 255, 65535, 2**32 - 1, 2**63 - 1),
    (np.bool_(True), np.int8(-1), np.int16(5), np.int64(7), np.uint8(9), np.uint8(1), np.int64(2), True, np.uint64(3)),
]


@pytest.mark.parametrize("values", EXTREMES)
def test_every_integer_type_takes_its_whole_range(device, module, values):
    out = cuda.empty(9, np.int64)
    module["scalars"][1, 1](out, *values)
    np.testing.assert_array_equal(out.to_host(), [int(v) for v in values])


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_no_integer_type_takes_more_than_its_range(device, module, dtype):
    position = INTEGERS.index(dtype) + 2
    limits = np.iinfo(dtype)
    for value in (int(limits.min) - 1, int(limits.max) + 1):
        values = [cuda.zeros(9, np.int64), False, *[0] * 8]
        values[position] = value
        with pytest.raises(ValueError, match=rf"argument {position} of scalars .* takes integers from {limits.min} to"):
            module["scalars"][1, 1](*values)


@pytest.mark.parametrize(
    "f", [1.1, np.float32(1.1), np.float64(1.1), 3, np.float16(0.5), float("inf"), -0.0, float("nan"), np.nan]
)
def test_floats_are_rounded_to_the_parameter(device, module, f):
    out = cuda.empty(2, np.float64)
    module["doubles"][1, 1](out, f, f)
    np.testing.assert_array_equal(out.to_host(), [np.float64(np.float32(f)), np.float64(f)])


class CPair(ctypes.Structure):
    _fields_ = [("a", ctypes.c_float), ("b", ctypes.c_double)]


@pytest.mark.parametrize("pair", [np.array((1.5, 2.5), PAIR)[()], np.array((1.5, 2.5), PAIR), CPair(1.5, 2.5)])
def test_structures_are_passed_by_value(device, module, pair):
    out = cuda.zeros(1)
    module["deep::pair"][1, 1](out, pair)
    assert out.to_host()[0] == 4.0


def test_four_thousand_bytes_by_value(device, module, rng):
    host = rng.integers(0, 127, 4096).astype(np.int8)
    out = cuda.zeros(64, np.int8)
    module["wide"][1, 64](host.view("V4096")[0], out)
    np.testing.assert_array_equal(out.to_host(), host[:64])


def test_void_and_char_pointers_take_any_dtype_none_and_addresses(device, module):
    source, out = cuda.full(1, 5, np.int64), cuda.zeros(4, np.float32)
    module["anything"][1, 1](None, out)
    assert not out.to_host().any(), "None is a null pointer"
    module["anything"][1, 1](source, out)
    assert out.to_host().view(np.uint8)[0] == 5
    module["anything"][1, 1](cuda.Pointer(out.pointer + 1), cuda.Pointer(out.pointer))
    assert not out.to_host().any()


def arguments(**changes):
    given = {"a": 2.0, "x": cuda.zeros(4, np.float32), "y": cuda.zeros(4, np.float32), "n": 4}
    return [*{**given, **changes}.values()]


class Foreign:
    """An array of another library."""

    def __init__(self, array):
        facts = {"shape": array.shape, "strides": array.strides, "typestr": array.dtype.str, "version": 3}
        self.owner, self.__cuda_array_interface__ = array, {**facts, "data": (array.pointer, False)}


def borrowed_view():
    memory = cuda.zeros(8, np.float32)
    return cuda.DeviceArray.borrow(memory.pointer, 4, np.float32, strides=(8,), owner=memory)


def closed_array(*, view=False):
    array = cuda.zeros(4, np.float32)
    found = array[1:] if view else array
    array.close()
    return found


BAD_ARGUMENTS = [
    (lambda: arguments()[:3], TypeError, r"saxpy\(float, float const\*, .*, unsigned int\) takes 4 arguments, but 3"),
    (lambda: [*arguments(), 1], TypeError, "takes 4 arguments, but 5 were given"),
    (lambda: arguments(x=cuda.zeros(4)), TypeError, r"argument 1 .* float32, not of float64; .* dtype=np.float32"),
    (lambda: arguments(n=2**32), ValueError, r"argument 3 of saxpy \(unsigned int\) takes integers from 0 to"),
    (lambda: arguments(n=4.0), TypeError, r"argument 3 of saxpy \(unsigned int\) takes an integer, not the float 4.0"),
    (lambda: arguments(n=np.float32(4)), TypeError, r"an integer, not the float32 4.0; convert it with int\(\)$"),
    (lambda: arguments(n=np.array(4)), TypeError, "takes an integer, not a host array"),
    (lambda: arguments(a=True), TypeError, r"argument 0 of saxpy \(float\) takes a number, not the bool True"),
    (lambda: arguments(a=2**24 + 1), ValueError, "cannot hold the int 16777217 exactly"),
    (lambda: arguments(a=1e39), ValueError, "too large"),
    (lambda: arguments(a=cuda.zeros(1, np.float32)), TypeError, r"\) takes an? number, not a DeviceArray"),
    (lambda: arguments(x=np.zeros(4, np.float32)), TypeError, r"a host array of .*; copy it with cudart_py.to_device"),
    (lambda: arguments(x=cuda.pinned_empty(4, np.float32)), TypeError, "mapped=True"),
    (lambda: arguments(x=123456), TypeError, r"cudart_py.Pointer\(0x1e240\)"),
    (lambda: arguments(x=4), TypeError, "takes an array, not the int 4; check the order of the arguments"),
    (lambda: arguments(x=closed_array()), ValueError, "argument 1 of saxpy .* is closed; keep it, or .* open"),
    (lambda: arguments(x=closed_array(view=True)), ValueError, "argument 1 of saxpy .*: the array is closed"),
    # Views whose elements are not contiguous, so a pointer to the first does not describe them.
    (lambda: arguments(x=cuda.zeros(8, np.float32)[::2]), ValueError, r"C order, .* strides of \(8,\) .*; pass a copy"),
    (lambda: arguments(x=cuda.zeros((4, 4), np.float32)[:, 1]), ValueError, r"shape \(4,\) with strides of \(16,\)"),
    (lambda: arguments(x=cuda.zeros((2, 3), np.float32).T), ValueError, "C order"),
    (lambda: arguments(x=cuda.pinned_empty(8, np.float32, mapped=True)[::2]), ValueError, "C order"),
    (lambda: arguments(x=borrowed_view()), ValueError, r"strides of \(8,\)"),
    (lambda: arguments(y=cuda.zeros(8, np.float32)[::2]), ValueError, "pass a copy of it and copy that back"),
    (lambda: arguments(x=cuda.empty_pitched((4, 4), np.float32)[:, :2]), ValueError, "C order"),
    (lambda: arguments(x=Foreign(cuda.zeros(8, np.float32)[::2])), ValueError, "C order"),
]


@pytest.mark.parametrize(("make", "error", "words"), BAD_ARGUMENTS)
def test_a_bad_argument_names_kernel_position_and_type(device, module, make, error, words):
    with pytest.raises(error, match=words):
        module["saxpy"][1, 4](*make())
    with pytest.raises(error, match=words):
        module["saxpy"][1, 4].bind(*make())


BAD_SHAPES = [
    ((0, 32), ValueError, "'grid.x' must be an int from 1 to 2147483647, not the int 0"),
    ((1, (32, 64)), ValueError, r"\(32, 64, 1\) has 2048 threads, but the device's limit is 1024"),
    ((1, (1, 1, 65)), ValueError, "'block.z' must be an int from 1 to 64, not the int 65"),
    (((1, 65536), 1), ValueError, "'grid.y' must be an int from 1 to 65535, not the int 65536"),
    ((2**31, 1), ValueError, "'grid.x' must be an int from 1 to .* not the int 2147483648"),
    ((3.125, 32), TypeError, r"must be an int, not the float 3.125; write -\(-n // block\) to round up$"),
    ((1, 3.125), TypeError, "'block.x' must be an int, not the float 3.125$"),
    ((True, 32), TypeError, "'grid.x' must be an int, not the bool True"),
    (((1, 1, 1, 1), 32), ValueError, "one to three dimensions, not 4"),
    ((1, 32, 2**64), ValueError, "'shared_bytes' must be an int from 0 to 18446744073709551615"),
    ((1, 32, 2**64 - 1), ValueError, "argument 'shared_bytes' must be at most"),
    ((1, 32, 2**30), ValueError, "'shared_bytes' must be at most .*, not 1073741824"),
    (
        (1, 32, cuda.legacy_default),
        TypeError,
        r"'shared_bytes' must be an int, not .*; pass the stream as the fourth item: saxpy\[grid, block, 0, stream\]$",
    ),
    (
        (1, 32, cuda.legacy_default, 64),
        TypeError,
        r"'shared_bytes' must be an int, not .*; pass the stream as the fourth item: saxpy\[grid, block, 64, stream\]$",
    ),
    ((1,), TypeError, r"launch saxpy as saxpy\[grid, block\]"),
    ((1, 32, 0, None, 0), TypeError, "launch saxpy as"),
]


@pytest.mark.parametrize(("key", "error", "words"), BAD_SHAPES, ids=str)
def test_a_bad_shape_names_kernel_and_limit(device, module, key, error, words):
    with pytest.raises(error, match=words):
        module["saxpy"][key]


def test_a_call_without_a_shape_says_how_a_kernel_is_launched(device, module):
    with pytest.raises(TypeError, match=r"^launch saxpy as saxpy\[grid, block\]\(\.\.\.\) or .*stream\]\(\.\.\.\)$"):
        module["saxpy"]((4,), (256,), (1.0,), shared_mem=0)


def test_launch_launches_at_once_and_configure_waits_for_the_call(device, module):
    x, y = cuda.full(4, 3, np.float32), cuda.zeros(4, np.float32)
    launch = module["saxpy"].configure(1, 4)
    assert not y.to_host().any()
    launch(2.0, x, y, 4)
    assert y.to_host().tolist() == [6] * 4
    with cuda.Stream() as stream:
        module["saxpy"].launch(1, 4, 2.0, x, y, 4, stream=stream)
        module["saxpy"].launch((1, 1), (4,), 2.0, x, y, 4, shared_bytes=128, stream=stream, cooperative=True)
        assert y.to_host(stream=stream).tolist() == [18] * 4
    with pytest.raises(TypeError, match="takes 4 arguments, but 0 were given"):
        module["saxpy"].launch(1, 4)
    for option in ("shared", "shared_size"):
        words = f"saxpy: launch has no option '{option}'; did you mean 'shared_bytes'.* cooperative,"
        with pytest.raises(TypeError, match=words):
            module["saxpy"].launch(1, 4, 2.0, x, y, 4, **{option: 4})
    with pytest.raises(TypeError, match=r"not a tuple: write saxpy\[grid, block\]\(\*arguments\)"):
        module["saxpy"][1, 4]((2.0, x, y, 4))


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"stream": None}, r"'stream'; write saxpy\.launch\(grid, block, \.\.\., stream=\.\.\.\)"),
        ({"cooperative": True, "shared_bytes": 4}, r"cooperative=\.\.\., shared_bytes=\.\.\.\)"),
        ({"stream": None, "n": 4}, r"in the order of the kernel's parameters, and write .*stream=\.\.\."),
        ({"n": 4}, "'n'; pass the arguments in the order of the kernel's parameters"),
    ],
)
def test_keywords_of_a_launch_are_refused_with_what_to_write(device, module, named, words):
    with pytest.raises(TypeError, match=f"^saxpy: a launch takes no keyword arguments, .*{words}"):
        module["saxpy"][1, 4](*arguments(), **named)


def test_keywords_of_a_bound_launch_are_refused_with_what_to_write(device, module):
    with pytest.raises(TypeError, match=r"write saxpy\.configure\(grid, block, stream=\.\.\.\)\.bind\(\.\.\.\)"):
        module["saxpy"][1, 4].bind(*arguments(), stream=None)
    with pytest.raises(TypeError, match="'n'; pass the arguments in the order of the kernel's parameters$"):
        module["saxpy"][1, 4].bind(*arguments()[:3], n=4)
    module["saxpy"].configure(1, 4, stream=None).bind(*arguments())()


def test_views_in_c_order_and_arrays_with_a_pitch_are_passed_as_their_first_element(device, module):
    pitched = cuda.empty_pitched((2, 4), np.float32).copy_from(np.full((2, 4), 3, np.float32))
    x, y = cuda.full((3, 4), 5, np.float32), cuda.zeros(8, np.float32)
    for rows in (pitched, pitched[:1], pitched[1:].view(np.float32)):
        y.fill(0)
        module["saxpy"][1, 4](1.0, rows, y[4:], 4)
    module["saxpy"][1, 4](1.0, x[1], y[:4], 4)
    module["saxpy"][1, 4](1.0, cuda.Pointer(x[:, ::2].pointer), y[:4], 4)
    assert y.to_host().tolist() == [10] * 4 + [3] * 4


def test_numpy_integers_and_lists_are_shapes(device, module):
    out = cuda.zeros(64, np.int32)
    module["bounded"][np.int64(1), [np.uint32(64)]](out)
    assert out.to_host().sum() == 64


def test_shared_memory_above_48_kib_is_opted_in_to_and_never_lowered(device, module):
    out = cuda.zeros(1, np.int32)
    for kib in (4, 100, 8, 64):
        n = kib * 256
        module["dynamic"][1, 128, 4 * n](out, n)
        assert out.to_host()[0] == n - 1
    assert module["dynamic"].attributes.max_dynamic_shared_bytes >= 100 * 1024


def test_launches_are_logged_in_their_order_and_repeated_ones_once(device, module):
    """Otherwise repeated launches would push others out of an error's report."""
    x = cuda.zeros(4, np.float32)
    wide, narrow = (module["saxpy"][1, threads].bind(1.0, x, x, 4) for threads in (8, 4))
    attributed = module["saxpy"].configure(1, 2, cooperative=True)
    device.synchronize()
    wide()
    while len(log) > 1:
        log.pop()
    for launch in (wide, narrow, wide, narrow, narrow):
        launch()
    for _ in range(3):
        attributed(1.0, x, x, 4)
    assert [entry.block[0] for entry in reversed(log)] == [8, 4, 8, 4, 2]


def test_the_driver_is_told_where_the_parameters_are_and_how_many_bytes_they_have(device, module):
    """The list is CU_LAUNCH_PARAM_BUFFER_POINTER, an address, CU_LAUNCH_PARAM_BUFFER_SIZE, another one, and its end."""
    x = cuda.zeros(4, np.float32)
    bound = module["saxpy"][1, 4].bind(1.5, x, x, 4)
    pointer, buffer, size, size_at, end = (ctypes.c_size_t * 5).from_address(bound._call[-1])
    assert (pointer, size, end) == (1, 2, 0)
    expected = struct.pack("@fPPI", 1.5, x.pointer, x.pointer, 4)
    assert ctypes.c_size_t.from_address(size_at).value == len(expected)
    assert ctypes.string_at(buffer, len(expected)) == expected


def test_bound_launches_repeat_with_their_own_arguments_whatever_is_launched_between(device, module):
    kernel = module["saxpy"]
    x, y = cuda.full(40, 1, np.float32), cuda.zeros(40, np.float32)

    class Count:
        def __index__(self):
            kernel[2, 32](10_000.0, x, y, 40)
            return 40

    bound = [kernel[2, 32].bind(float(a), x, y, 40) for a in (1, 10, 100)]
    kernel[2, 32](1000.0, x, y, Count())
    for each in [*bound, bound[0]]:
        each()
    np.testing.assert_array_equal(y.to_host(), np.full(40, 11_112))
    alive = weakref.ref(x)
    x = None
    bound[0]()
    assert alive() is not None
    y.close()
    with pytest.raises(ValueError, match="argument 2 of saxpy: the array is closed"):
        bound[0]()


def test_an_argument_that_a_reset_has_closed_says_so(monkeypatch, module):
    x = closed_array()
    monkeypatch.setitem(lifetimes._lost, id(x), x)
    with pytest.raises(ValueError, match=r"the array is closed, by cuda\.reset\(\)"):
        module["saxpy"][1, 32](*arguments(x=x))


def test_a_closed_stream_is_refused(device, module):
    stream = cuda.Stream()
    launch = module["saxpy"][1, 4, 0, stream]
    stream.close()
    with pytest.raises(ValueError, match="stream is closed"):
        launch(*arguments())


def test_too_many_bytes_of_parameters_are_refused(device):
    with pytest.raises((ValueError, cuda.CompileError), match="32764|parameter"):
        cuda.compile('struct B { char c[40000]; }; extern "C" __global__ void k(B b, char *p) { *p = b.c[9]; }')["k"]


NULL_STORE = """
import cudart_py as cuda
module = cuda.compile('extern "C" __global__ void broken(int *p) { *p = 1; }')
launch = module["broken"][1, 32]
bound = launch.bind(None)
for call in (bound, cuda.Device(0).synchronize, bound, lambda: launch(None)):
    try:
        call()
    except cuda.errors.IllegalAddressError as error:
        print("~~", error)
"""


@pytest.mark.parametrize("debug", ["1", ""])
def test_each_call_behind_a_fault_says_so_and_names_the_launches_in_debug_mode_the_one(python, debug):
    # The import reads the variable.
    errors = python(NULL_STORE, check=False, own_imports=bool(debug), CUDART_PY_DEBUG=debug).stdout.split("~~")[1:]
    assert len(errors) == (4 if debug else 3)
    assert "broken" in errors[0]
    if debug:
        assert "It was broken[grid (1, 1, 1), block (32, 1, 1)]" in errors[0]
        assert "launched at <string>:8" in errors[0]


def test_a_bound_launch_notices_that_registered_memory_was_closed(device, module):
    host = np.zeros(8, np.float32)
    with cuda.register_host(host) as memory:
        bound = module["saxpy"][1, 8].bind(1.0, host, host, 8)
        bound()
        device.synchronize()
    assert memory.closed
    with pytest.raises(ValueError, match="page-locked or managed memory of an argument is closed"):
        bound()


def test_a_kernel_launches_in_its_own_devices_default_stream(device, module):
    """This holds whatever device is current, and whether or not the launch was configured before."""
    others = cuda.devices()[1:]
    if not others:
        pytest.skip("there is one device")
    x = cuda.zeros(8, np.float32)
    with others[0]:
        module["saxpy"][1, 8](1.0, x, x, 8)
    assert x.to_host().sum() == 0


@pytest.mark.parametrize("where", ["default stream", "own stream"])
@pytest.mark.parametrize("how", ["checked", "bound", "memset", "allocation", "copy", "download"])
def test_it_may_be_a_threads_first_cuda_work(device, module, how, where):
    """A new thread has no current device, which must be noticed without a driver query in every call."""
    stream = cuda.legacy_default if where == "default stream" else cuda.Stream()
    x, y = cuda.full(300, 2, np.float32, stream=stream), cuda.full(300, 1, np.float32, stream=stream)
    host = cuda.pinned_empty(300, np.float32)
    launch = module["saxpy"][3, 128, 0, stream]
    bound = launch.bind(3.0, x, y, 300)
    work = {
        "checked": lambda: launch(3.0, x, y, 300),
        "bound": bound,
        "memset": lambda: cuda.memset(y, 0, stream=stream),
        "allocation": lambda: cuda.empty(100, stream=stream).close(),
        "copy": lambda: cuda.memcpy(y, x, stream=stream),
        "download": lambda: cuda.memcpy(host, x, stream=stream),
    }[how]
    # Repeated calls take a shorter path.
    work()
    work()
    stream.synchronize()
    cuda.memset(y, 0, stream=stream)
    work()

    def alone():
        work()
        found.append(cuda.current_device())

    found: list[cuda.Device] = []
    thread = threading.Thread(target=alone)
    thread.start()
    thread.join()
    assert found == [device]
    assert (y.to_host() == {"checked": 12, "bound": 12, "copy": 2}.get(how, 0)).all()
    assert how != "download" or (host == 2).all()


def test_a_launch_is_no_method_and_says_what_it_launches_where_and_how_it_is_called(device, module):
    with cuda.Stream() as stream:

        class Step:
            launch = module["saxpy"][(2, 3), 32, 16, stream]

        launch = Step().launch
        assert launch.kernel is module["saxpy"]
        assert launch.stream is stream
        assert (launch.shape.grid, launch.shape.block, launch.shape.shared_bytes) == ((2, 3, 1), (32, 1, 1), 16)
    assert list(inspect.signature(launch).parameters) == ["arguments", "named"]
    assert not inspect.signature(module["saxpy"][1, 32].bind(*arguments())).parameters
    assert "Launch the kernel" in pydoc.render_doc(launch)


@pytest.mark.parametrize("key", [(3.0, 32), (3, True), ((3, 1.0), 32), (3, 32, 0.0)], ids=str)
def test_a_shape_that_equals_one_that_was_launched_is_refused_still(device, module, key):
    kernel = module["saxpy"]
    for grid, block in ((3, 32), (3, 1), ((3, 1), 32)):
        kernel[grid, block, 0]
    with pytest.raises(TypeError, match="must be an int"):
        kernel[key]


def test_a_stream_lives_no_longer_for_a_launch_that_was_asked_for(device, module):
    stream = cuda.Stream()
    alive = weakref.ref(stream)
    module["saxpy"][5, 32, 0, stream]
    del stream
    gc.collect()
    assert alive() is None


def test_a_graph_keeps_the_modules_of_its_kernels_loaded(device):
    with cuda.Stream() as stream:
        module = cuda.compile('extern "C" __global__ void add_one(float *x) { x[threadIdx.x] += 1; }')
        x = cuda.zeros(4, np.float32, stream=stream)
        stream.synchronize()
        with stream.capture() as graph:
            module["add_one"][1, 4, 0, stream](x)
        executable, alive = graph.instantiate(), weakref.ref(module)
        del module
        gc.collect()
        executable.launch(stream)
        np.testing.assert_array_equal(x.to_host(stream=stream), np.ones(4))
        alive().close()
        with pytest.raises(ValueError, match="add_one: the module is closed"):
            executable.launch(stream)
        x.close()
