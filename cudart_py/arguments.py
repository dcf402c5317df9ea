"""Arguments of public calls: their checks, and the one sentence that says what is wrong with one.

    Stream.record: argument 'event' must be an Event or None, not the int 5

The order is always the same: the call, the argument, the rule, what came, and the remedy where there is one. Other
arguments that the sentence mentions are in quotes too. Each check takes the name of the call, the name of the argument
and what came. It returns the value as the package works with it, or raises TypeError for what has the wrong type and
ValueError for what has the right one and cannot be used. Exceptions of an argument's own methods, such as `__index__`,
are passed on.
"""

from __future__ import annotations

import math
import operator
import reprlib
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
Word = TypeVar("Word", str, str | None)

# The most dimensions of a NumPy array, which a copy to the host is.
_MAX_DIMENSIONS = 64
# No index reaches so many elements, whereas a smaller size may only be too much for the memory.
_NO_SIZE = 2**63
# Longer values are cut: their types say enough.
_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = 60
# The commonest dtypes and their sizes, by the types that spell them.
_NUMBERS: dict[type, tuple[np.dtype[Any], int]] = {
    kind: (np.dtype(kind), np.dtype(kind).itemsize)
    for kind in (
        *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
        *(np.float16, np.float32, np.float64, np.complex64, np.complex128),
    )
}
_DTYPE_SPELLINGS: tuple[type, ...] = (str, type, np.dtype, tuple, list, dict)
_PLAIN = (bool, int, float, complex, str, bytes, tuple, list, dict, set, np.generic)


def _sentence(call: str, name: str, rule: str, actual: object, remedy: str) -> str:
    contrast = "" if actual is None else f", not {actual}"
    return f"{call}: argument {name!r} must {rule}{contrast}{remedy and f'; {remedy}'}"


def wrong_type(call: str, name: str, wanted: str, value: Any, remedy: str = "") -> TypeError:
    """Return the exception for an argument of the wrong type."""
    return TypeError(_sentence(call, name, f"be {wanted}", describe(value), remedy))


def wrong_value(call: str, name: str, wanted: str, value: Any, remedy: str = "") -> ValueError:
    """Return the exception for an argument of the right type that cannot be used."""
    return ValueError(_sentence(call, name, f"be {wanted}", describe(value), remedy))


def wrong_dtype(call: str, name: str, wanted: str, dtype: object, remedy: str = "") -> TypeError:
    """Return the exception for an array of the wrong dtype, or for an argument `dtype`; `dtype` may be its name."""
    return TypeError(_sentence(call, name, f"{'be' if name == 'dtype' else 'have dtype'} {wanted}", dtype, remedy))


def unusable(call: str, name: str, rule: str, actual: object = None, remedy: str = "") -> ValueError:
    """Return the exception for an argument one of whose properties breaks a rule, which follows the word "must".

    `actual` is that property: a shape, a number of bytes, or None where the rule says it all.
    """
    return ValueError(_sentence(call, name, rule, actual, remedy))


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like another; None where none is like it."""
    import difflib  # needed for errors alone

    near = difflib.get_close_matches(name, tuple(known), 1)
    return near[0] if near else None


def refuse_copy(thing: Any, remedy: str) -> NoReturn:
    """Raise the TypeError of an object that can be neither copied nor pickled, since its handle is given back once."""
    raise TypeError(f"this {type(thing).__name__} cannot be copied or pickled: {remedy}")


def describe(value: Any) -> str:
    """Return a few words on a value that came, without trust in its `repr`."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, np.ndarray):
        return f"a NumPy array of {value.dtype} and shape {value.shape}"
    kind = type(value).__name__
    if getattr(value, "closed", False) is True:
        return f"a closed {kind}"
    if not isinstance(value, _PLAIN):
        return f"an object of type {kind}"
    try:
        return f"the {kind} {_SHOWN.repr(value)}"
    except ValueError:  # an int of more digits than the interpreter writes
        return f"a huge {kind}"


def instance(call: str, name: str, value: Any, kind: type[T] | tuple[type[T], ...], wanted: str = "") -> T:
    """Return an object of a class or of one of several; `wanted` is how the error calls it.

    By default that is the class's name.
    """
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        words = " or ".join(f"{'an' if one.__name__[0] in 'AEIOU' else 'a'} {one.__name__}" for one in kinds)
        raise wrong_type(call, name, wanted or words, value)
    return value


def opened(call: str, name: str, value: Any, kind: type[T], wanted: str = "") -> T:
    """Return an object of a class of things that can be closed; ValueError for one that was."""
    # `instance` would be one more call in the way of every copy and fill.
    thing: Any = value if isinstance(value, kind) else instance(call, name, value, kind, wanted)
    if thing.closed:
        how = getattr(thing, "_closed_by", str)().removeprefix(", ")
        raise wrong_value(call, name, "open", thing, how and f"it was closed {how}")
    return thing  # type: ignore[no-any-return]  # the classes that are asked for have `closed`, and no base in common


def integer(call: str, name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """Return an int within limits. Takes NumPy's integers and whatever else has `__index__`, but no bool."""
    if isinstance(value, bool | np.bool_) or not hasattr(type(value), "__index__"):
        raise wrong_type(call, name, "an int", value)
    try:
        result = operator.index(value)
    except TypeError:  # an array of more than one integer, or of none
        raise wrong_type(call, name, "an int", value) from None
    if (least is not None and result < least) or (most is not None and result > most):
        limits = f"of at least {least}" if most is None else f"of at most {most}" if least is None else ""
        raise wrong_value(call, name, f"an int {limits or f'from {least} to {most}'}", result)
    return result


def integers(call: str, name: str, value: Any, count: int | None = None, least: int | None = None) -> tuple[int, ...]:
    """Return a tuple or list of ints, of a certain number and size if `count` and `least` say so, as a tuple."""
    many = "" if count is None else f"{count} "
    if not isinstance(value, tuple | list):
        raise wrong_type(call, name, f"a tuple of {many}ints", value)
    if count is not None and len(value) != count:
        raise wrong_value(call, name, f"a tuple of {many}ints", value)
    return tuple(integer(call, f"{name}[{place}]", item, least) for place, item in enumerate(value))


def number(
    call: str, name: str, value: Any, least: float = -sys.float_info.max, most: float = sys.float_info.max
) -> float:
    """Return a number within limits as a float; without limits a finite one. Takes NumPy's, but no bool."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise wrong_type(call, name, "a number", value)
    try:
        result = float(value)
    except OverflowError:
        raise wrong_value(call, name, "a number that a float can hold", value) from None
    if not least <= result <= most:
        limits = f"of at least {least:g}" if most >= sys.float_info.max else f"from {least:g} to {most:g}"
        finite = (least, most) == (-sys.float_info.max, sys.float_info.max)
        raise wrong_value(call, name, "a finite number" if finite else f"a number {limits}", value)
    return result


def flag(call: str, name: str, value: Any) -> bool:
    """Return a bool. Nothing else passes for one, since a number in its place is a mistake of order."""
    if value is True or value is False:
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    raise wrong_type(call, name, "a bool", value)


def text(call: str, name: str, value: Any) -> str:
    """Return a str that C can read: with no NUL in it, at which C would stop, and in UTF-8."""
    if not isinstance(value, str):
        raise wrong_type(call, name, "a str", value)
    if "\0" in value:
        raise wrong_value(call, name, "without NUL characters", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise wrong_value(call, name, "text that can be encoded as UTF-8", value) from None
    return value


def choice(call: str, name: str, value: Any, choices: Iterable[Word]) -> Word:
    """Return one of a few words, of which one may be None."""
    known = tuple(choices)
    if not isinstance(value, str) and not (value is None and None in known):
        raise wrong_type(call, name, "a str or None" if None in known else "a str", value)
    if value not in known:
        raise wrong_value(call, name, f"one of {', '.join(map(repr, known))}", value)
    return value


def function(call: str, name: str, value: Any, takes: str = "without arguments") -> Callable[..., Any]:
    """Return something that can be called; `takes` says with what."""
    if not callable(value):
        raise wrong_type(call, name, f"a function {takes}", value)
    return value  # type: ignore[no-any-return]  # callable() says no more than this


def shape(call: str, name: str, value: Any) -> tuple[int, ...]:
    """Return a shape, an int or a tuple or list of ints, as a tuple of ints that are not negative."""
    if isinstance(value, tuple | list):
        sizes = tuple(integer(call, f"{name}[{axis}]", size) for axis, size in enumerate(value))
    elif isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise wrong_type(call, name, "a shape: an int or a tuple of ints", value)
    else:
        sizes = (integer(call, name, value),)
    if len(sizes) > _MAX_DIMENSIONS:
        raise wrong_value(call, name, f"a shape of at most {_MAX_DIMENSIONS} dimensions", value)
    if any(not 0 <= size < _NO_SIZE for size in sizes):
        raise wrong_value(call, name, "a shape without negative or impossible sizes", value)
    return sizes


def dtype(call: str, name: str, value: Any) -> np.dtype[Any]:
    """Return a NumPy dtype whose bytes can live on a device; TypeError for objects and the like."""
    # For None NumPy would take float64, and for an array its own dtype.
    if not isinstance(value, _DTYPE_SPELLINGS):
        raise wrong_type(call, name, "a dtype", value)
    try:
        result: np.dtype[Any] = np.dtype(value)  # type: ignore[call-overload]  # it takes more than a type can say
    except Exception as error:  # TypeError, ValueError, SyntaxError or another, as the spelling is wrong
        raise wrong_type(call, name, "a dtype", value) from error
    _check_dtype(f"{call}: argument {name!r} is the dtype", result)
    return result


def layout(call: str, shape: Any, dtype: Any) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Return the sizes, the dtype and the bytes of a contiguous array from a call's arguments `shape` and `dtype`."""
    # The commonest array.
    if type(shape) is int and 0 <= shape < _NO_SIZE and type(dtype) is type and dtype in _NUMBERS:
        kind, itemsize = _NUMBERS[dtype]
        return (shape,), kind, shape * itemsize
    sizes, kind = _shape(call, "shape", shape), _dtype(call, "dtype", dtype)
    return sizes, kind, math.prod(sizes) * kind.itemsize


# Under other names, since `layout` has parameters of these.
_shape, _dtype = shape, dtype


def _check_dtype(what: str, dtype: np.dtype[Any]) -> None:
    """Raise TypeError for a dtype whose bytes cannot live on a device; `what` begins the sentence, up to the dtype."""
    wrong = ""
    if dtype.hasobject:
        wrong = "holds Python objects, which cannot live in device memory"
    elif dtype.itemsize == 0:
        wrong = "has no size"
    elif dtype.subdtype is not None:
        wrong = "is an array itself: make its shape part of the array's shape"
    elif not dtype.isnative:
        wrong = f"is not in native byte order; use {dtype.newbyteorder('=')}"
    if wrong:
        raise TypeError(f"{what} {dtype}, which {wrong}")


def host_array(call: str, name: str, value: Any) -> NDArray[Any]:
    """Return what NumPy makes an array of, as an array whose bytes can live on a device."""
    try:
        result = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise wrong_type(call, name, "an array or an object that NumPy can convert to one", value) from error
    _check_dtype(f"{call}: argument {name!r} has the dtype", result.dtype)
    return result


def dimensions(call: str, name: str, array: Any, *counts: int) -> None:
    """Raise ValueError for an array that has none of some numbers of dimensions."""
    if len(array.shape) not in counts:
        many = f"{' or '.join(map(str, counts))} dimension{'s' * (counts[-1] != 1)}"
        raise unusable(call, name, f"have {many}", f"the shape {array.shape}")


def same_shape(call: str, name: str, array: Any, expected: tuple[int, ...], reason: str) -> None:
    """Raise ValueError for an array of another shape than the one that follows from other arguments.

    `reason` names these and follows the shape: "for 'a' of shape (4, 5)".
    """
    if array.shape != expected:
        raise unusable(call, name, f"have shape {expected} {reason}", array.shape)


def contiguous(call: str, name: str, array: Any, remedy: str = "") -> None:
    """Raise ValueError for an array with gaps, or in another order than C's; it knows whether it `is_contiguous`."""
    if not array.is_contiguous:
        raise unusable(call, name, "be contiguous", f"of shape {array.shape} with strides {array.strides}", remedy)
