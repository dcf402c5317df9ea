"""The bad values of the fuzzer by label; each of them is tried for every argument."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import cudart_py as cuda

from .world import World


class NastyError(Exception):
    """The exception that a hostile value's own methods raise; a call may let it propagate."""


def nasty(*_: object) -> Any:
    raise NastyError


class Hostile:
    """A value whose every method raises."""

    __index__ = __int__ = __float__ = __len__ = __iter__ = __bool__ = __eq__ = __getitem__ = __array__ = nasty
    __hash__ = None  # type: ignore[assignment]  # as for a list
    __repr__ = nasty


class Plain:
    """A class that is passed itself where an object is expected."""


class Interface:
    """Another library's array whose `__cuda_array_interface__` is wrong."""

    def __init__(self, **changes: Any) -> None:
        told = {"version": 3, "shape": (3,), "typestr": "<f4", "data": (0, False)} | changes
        self.__cuda_array_interface__: Any = {key: value for key, value in told.items() if value is not Plain}


class ForeignStream:
    """Another library's stream whose `__cuda_stream__` is wrong."""

    def __init__(self, told: Any) -> None:
        self.__cuda_stream__ = lambda: told


def _closed(thing: Any) -> Any:
    thing.close()
    return thing


def _on_last(make: Callable[[], Any]) -> Any:
    with cuda.devices()[-1]:
        return make()


CONSTANTS = (
    None, True, -1, 0, 1, 1.5, -0.5, float("nan"), float("inf"), 1e300, 1 + 2j, "", "x", b"ab", bytearray(b"ab"),
    [], (), {}, {1}, (1, 2), (-1, 2), ("a", None), [[1], 2], {1: 2}, ..., slice(None, None, -1), range(3),
)  # fmt: skip  # a list of numbers
POWERS = ((2, 40), (2, 63), (2, 64), (10, 400), (10, 5000))
STREAMS = (None, (0, "a"), (7, 1), (0, -1))
CLASSES = (cuda.Stream, cuda.Event, cuda.DeviceArray, cuda.Device)
INTERFACES: tuple[dict[str, Any], ...] = (
    {"data": None}, {"data": ("a", False)}, {"data": (-1, False)}, {"data": (2**64, False)}, {"shape": Plain},
    {"shape": (-1,)}, {"typestr": Plain}, {"typestr": "x"}, {"typestr": ""}, {"typestr": "|O"}, {"strides": (1, 2, 3)},
    {"stream": "x"},
)  # fmt: skip  # a list of numbers
BAD: dict[str, Callable[[World], Any]] = {
    **{repr(value): lambda w, value=value: copy.copy(value) for value in CONSTANTS},
    **{f"{base}**{power}": lambda w, value=base**power: value for base, power in POWERS},
    **{f"foreign stream {told}": lambda w, told=told: ForeignStream(told) for told in STREAMS},
    **{f"closed {kind.__name__}": lambda w, kind=kind: _closed(kind()) for kind in (*CLASSES[:2], cuda.MemoryPool)},
    **{f"class {kind.__name__}": lambda w, kind=kind: kind for kind in CLASSES},
    **{f"interface of {changes}": lambda w, changes=changes: Interface(**changes) for changes in INTERFACES},
    "np.True_": lambda w: np.True_,
    "int8": lambda w: np.int8(3),
    "float32": lambda w: np.float32(0.5),
    "tiny float64": lambda w: np.float64(1e-310),
    "datetime64": lambda w: np.datetime64("2020-01-01"),
    "NUL": lambda w: "a\0b",
    "surrogate": lambda w: "\ud800",
    "(1,) * 70": lambda w: (1,) * 70,
    "generator": lambda w: (one for one in (1,)),
    "object": lambda w: object(),
    "lambda": lambda w: lambda: None,
    "hostile": lambda w: Hostile(),
    "class": lambda w: Plain,
    "path": lambda w: Path("/nowhere/at/all"),
    "dtype": lambda w: np.dtype("f4"),
    "complex array": lambda w: np.zeros((2, 3), complex),
    "object array": lambda w: np.array([None, "x"], object),
    "0-d array": lambda w: np.array(1.5),
    "0-d int array": lambda w: np.array(2),
    "reversed": lambda w: np.zeros((2, 3), np.float32)[::-1],
    "read-only": lambda w: np.broadcast_to(np.float32(1), (2, 3)),
    "structured": lambda w: np.zeros(2, [("a", "i4"), ("b", "f4")]),
    "other endian": lambda w: np.zeros((2, 3), ">f4"),
    "empty array": lambda w: np.zeros((0, 3), np.float32),
    "vast array": lambda w: np.broadcast_to(np.int8(0), (2**20, 2**20, 2**20)),
    "device array": lambda w: cuda.zeros(5, np.int16),
    "empty device array": lambda w: cuda.zeros(0, np.float32),
    "strided device array": lambda w: cuda.zeros((4, 6), np.float32)[::2, ::2],
    "closed array": lambda w: _closed(cuda.zeros((2, 3), np.float32)),
    "stream": lambda w: cuda.Stream(),
    "event": lambda w: cuda.Event(),
    "closed graph": lambda w: _closed(w.graph()),
    "device": lambda w: w.device,
    "last device": lambda w: cuda.devices()[-1],
    "stream of the last device": lambda w: _on_last(cuda.Stream),
    "array of the last device": lambda w: _on_last(lambda: cuda.zeros((2, 3), np.float32)),
    "pool of the last device": lambda w: _on_last(cuda.MemoryPool),
}
