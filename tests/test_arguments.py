"""What public calls are given: one sentence says what is wrong with an argument, and nothing has changed then."""

from __future__ import annotations

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import arguments


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no text for this")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "not None"),
        ("x", "not the str 'x'"),
        (5, "not the int 5"),
        (np.float32(1.5), r"not the float32 np.float32\(1.5\)"),
        (np.zeros((2, 3), np.int8), r"not a NumPy array of int8 and shape \(2, 3\)"),
        (cuda.Stream, "not the class Stream"),
        (Unprintable(), "not an object of type Unprintable"),
        ("y" * 1000, "not the str 'y.{,60}y'$"),
    ],
)
def test_the_sentence_says_what_came(value, words):
    error = arguments.wrong_type("call", "name", "a thing", value)
    assert isinstance(error, TypeError)
    with pytest.raises(TypeError, match=f"^call: argument 'name' must be a thing, {words}"):
        raise error


def test_a_closed_thing_is_called_so(device):
    array = cuda.zeros(3)
    array.close()
    with pytest.raises(ValueError, match="^memset: argument 'dst' must be open, not a closed DeviceArray$"):
        cuda.memset(array, 0)


def test_an_int_of_more_digits_than_are_written_is_huge():
    with pytest.raises(ValueError, match="from 0 to 9, not a huge int"):
        arguments.integer("call", "n", 10**5000, 0, 9)


@pytest.mark.parametrize("value", [True, np.True_, 1.0, "1", None, np.arange(3)])
def test_an_int_is_nothing_else(value):
    with pytest.raises(TypeError, match="call: argument 'n' must be an int, not"):
        arguments.integer("call", "n", value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400], ids=["nan", "inf", "huge"])
def test_a_number_is_finite(value):
    with pytest.raises(ValueError, match="argument 'x'"):
        arguments.number("call", "x", value)


@pytest.mark.parametrize("value", ["", "3", {}, b"ab", set(), range(3), np.arange(2), 1.5, None, True])
def test_a_shape_is_an_int_or_a_tuple(value):
    with pytest.raises(TypeError, match="argument 'shape"):
        cuda.empty(value)


@pytest.mark.parametrize("value", [(-1,), -1, (2**64,), (10**400,), (1,) * 65])
def test_a_shape_has_possible_sizes(value):
    with pytest.raises(ValueError, match="argument 'shape"):
        cuda.empty(value)


@pytest.mark.parametrize("value", [None, "x", object, "O", "S0", ">f4", "(2,)f4", {}, [], 5, ("f4", (10**400,))])
def test_a_dtype_is_one_that_a_device_has(value):
    with pytest.raises(TypeError, match="argument 'dtype'"):
        cuda.empty(3, value)


@pytest.mark.parametrize("value", [None, 1 + 2j, "1", [1], object(), (1, 2), np.datetime64("2020-01-01")])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, bool])
def test_a_fill_takes_one_number(device, value, dtype):
    array = cuda.full(3, 1, dtype)
    with pytest.raises((TypeError, ValueError), match="memset: argument 'value'"):
        cuda.memset(array, value)
    np.testing.assert_array_equal(array.to_host(), np.ones(3, dtype))
    with pytest.raises((TypeError, ValueError), match="full: argument 'value'"):
        cuda.full(3, value, dtype)


def test_a_number_fills_no_structure(device):
    with pytest.raises(TypeError, match="argument 'value' must be a value of"):
        cuda.full(3, 5, np.dtype([("a", "i4"), ("b", "f4")]))


@pytest.mark.parametrize("value", [-1, 1.5, "0", 2**64, None])
def test_a_borrowed_array_begins_at_an_address(device, value):
    with pytest.raises((TypeError, ValueError), match="DeviceArray.borrow: argument 'pointer' must be an int"):
        cuda.DeviceArray.borrow(value, 3, np.float32)


@pytest.mark.parametrize("value", [-1, 2**64])
def test_a_borrowed_stream_has_a_handle_of_64_bits(value):
    with pytest.raises(ValueError, match="Stream.borrow: argument 'stream' must be an int from 0 to"):
        cuda.Stream.borrow(value)


def test_an_array_is_no_stream_though_it_has_a_handle(device):
    with pytest.raises(TypeError, match="Stream.borrow: argument 'stream', of type DeviceArray, is no stream"):
        cuda.Stream.borrow(cuda.zeros(3))


@pytest.mark.parametrize("borrow", [cuda.Stream.borrow, cuda.MemoryPool.borrow])
def test_what_is_borrowed_is_of_a_device(device, borrow):
    with pytest.raises(TypeError, match="argument 'device' must be a Device"):
        borrow(1, device="x")


def test_a_stream_records_no_stream(device):
    with cuda.Stream() as stream, pytest.raises(TypeError, match="Stream.record: argument 'event' must be an Event"):
        stream.record(stream)


def test_an_array_of_objects_is_not_registered(device):
    with pytest.raises(TypeError, match="register_host: argument 'array' holds Python objects"):
        cuda.register_host(np.array([None, "x"], object))


@pytest.mark.parametrize("value", [-1, 1.5, None, 2**31])
def test_a_blocks_limit_is_a_number_of_threads(module, value):
    with pytest.raises((TypeError, ValueError), match="Kernel.suggested_block: argument 'limit' must be an int"):
        module["saxpy"].suggested_block(limit=value)


@pytest.mark.parametrize("value", [-1, 1.5, "x", 2**64])
def test_a_limit_is_a_size(device, value):
    before = device.limits.printf_fifo_size
    with pytest.raises((TypeError, ValueError), match="argument 'printf_fifo_size' must be an int"):
        device.limits.printf_fifo_size = value
    assert device.limits.printf_fifo_size == before


@pytest.mark.parametrize("value", [0, "x", cuda.Stream, cuda.Event])
def test_what_is_timed_is_a_stream(device, value):
    with (
        pytest.raises(TypeError, match="timed: argument 'stream' must be a cudart_py Stream or None"),
        cuda.timed(value),
    ):
        pass


@pytest.mark.parametrize("use", ["launch", "upload"])
@pytest.mark.parametrize("value", [5, "x", cuda.Stream])
def test_a_graph_is_launched_in_a_stream(device, module, use, value):
    array = cuda.zeros(64, np.int32)
    with cuda.Stream() as stream:
        with stream.capture() as graph:
            module["bounded"][1, 64, 0, stream](array)
        with pytest.raises(TypeError, match=f"ExecutableGraph.{use}: argument 'stream' must be a cudart_py Stream"):
            getattr(graph.instantiate(), use)(value)


def test_what_was_not_entered_is_not_left(device):
    for thing in (cuda.profile(), cuda.legacy_default.access_policy(cuda.zeros(3))):
        with pytest.raises(ValueError, match="was not entered"):
            thing.__exit__(None, None, None)


def test_a_device_that_was_not_entered_is_not_left(python):
    """In a process of its own, whose thread has entered none."""
    program = """
import cudart_py as cuda
try:
    cuda.Device(0).__exit__(None, None, None)
except ValueError as error:
    print(error)
"""
    assert "device 0 was not entered by this thread" in python(program).stdout


def test_a_device_array_is_no_array_of_the_host(device):
    """An empty one would pass for an empty list."""
    with pytest.raises(TypeError, match="argument 'host' must be an array of the host; use DeviceArray.copy"):
        cuda.to_device(cuda.zeros(0))


@pytest.mark.parametrize("name", [5, None, [], {}, "a\0b"])
def test_a_kernel_and_a_variable_have_names(module, name):
    for ask in (module.__getitem__, module.symbol):
        with pytest.raises((TypeError, ValueError), match="argument 'name' must be"):
            ask(name)


@pytest.mark.parametrize("result", [None, (), 5, "x", (1, 2)])
def test_check_takes_what_a_call_returned(result):
    with pytest.raises(TypeError, match="check: argument 'result' must be the tuple"):
        cuda.check(result)
