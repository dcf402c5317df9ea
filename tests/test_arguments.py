"""Arguments of public calls: an error says in one sentence what is wrong, before the call has changed anything.

The fuzzer in tests/fuzz calls everything with bad arguments. These tests cover the kinds of values, and cases that the
fuzzer does not reach.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.base import arguments


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no text for this")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "not None"),
        ("x", "not the str 'x'"),
        (5, "not the int 5"),
        (np.float32(1.5), r"not the float32 1\.5$"),
        ([np.float64(1.5), np.int32(2)], r"not the list \[1\.5, 2\]"),
        (np.zeros((2, 3), np.int8), r"not a NumPy array of dtype int8 and shape \(2, 3\)"),
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


def bad_values(*cases):
    """Parametrise a test with each value of the cases: (function that takes the value, argument name, values)."""
    rows = [(take, name, value) for take, name, values in cases for value in values]
    ids = [f"{name}-{number}" for number, (_, name, _) in enumerate(rows)]  # Python refuses to format huge integers
    return pytest.mark.parametrize(("take", "name", "value"), rows, ids=ids)


@bad_values(
    (lambda n: arguments.integer("call", "n", n), "n", [True, np.True_, 1.0, "1", None, np.arange(3)]),
    (cuda.empty, "shape", ["", "3", {}, b"ab", set(), range(3), np.arange(2), 1.5, None, True]),
    (lambda kind: cuda.empty(3, kind), "dtype", [None, "x", object, "O", "S0", ">f4", "(2,)f4", {}, [], 5]),
    (lambda kind: cuda.empty(3, kind), "dtype", [("f4", (10**400,))]),
    (lambda value: cuda.full(3, value, np.dtype([("a", "i4"), ("b", "f4")])), "value", [5]),
    (lambda device: cuda.Stream.borrow(1, device=device), "device", ["x"]),
    (lambda device: cuda.MemoryPool.borrow(1, device=device), "device", ["x"]),
    (lambda _: cuda.Stream.borrow(cuda.zeros(3)), "stream", ["an array, though it has a handle"]),
    (lambda _: cuda.to_device(cuda.zeros(0)), "host", ["an empty array of a device, which would pass for a list"]),
    (cuda.register_host, "array", [np.array([None, "x"], object)]),
    (lambda stream: cuda.timed(stream).__enter__(), "stream", [0, "x", cuda.Stream, cuda.Event]),
    (cuda.check, "result", [None, (), 5, "x", (1, 2)]),
)
def test_a_value_of_the_wrong_kind_is_named(device, take, name, value):
    with pytest.raises(TypeError, match=f"argument '{name}"):
        take(value)


@bad_values(
    (lambda n: arguments.integer("call", "n", n, 0, 9), "n", [10**5000, -1]),
    (lambda x: arguments.number("call", "x", x), "x", [float("nan"), float("inf"), 10**400]),
    (cuda.empty, "shape", [(-1,), -1, (2**64,), (10**400,), (1,) * 65]),
    (cuda.Stream.borrow, "stream", [-1, 2**64]),
)
def test_an_impossible_value_is_named(take, name, value):
    with pytest.raises(ValueError, match=f"argument '{name}"):
        take(value)


def test_what_was_not_entered_is_not_left(device):
    for thing in (cuda.profile(), cuda.legacy_default.access_policy(cuda.zeros(3))):
        with pytest.raises(ValueError, match="was not entered"):
            thing.__exit__(None, None, None)


def test_a_device_that_this_thread_has_not_entered_is_not_left(device):
    with ThreadPoolExecutor(1) as threads:
        left = threads.submit(device.__exit__, None, None, None)
        assert "has not been entered by this thread" in str(left.exception())
