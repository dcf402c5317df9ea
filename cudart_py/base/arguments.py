"""Checks of the arguments of public calls, and the sentence that reports an invalid argument.

    Stream.record: argument 'event' must be an Event or None, not the int 5

The order is always the same: the call, the argument, the rule, the actual value, and the remedy if there is one. Other
arguments that the sentence mentions are in quotes too. Each check takes the name of the call, the name of the argument
and its value. It returns the value in the form in which the package uses it. It raises TypeError if the type is wrong,
and ValueError if the type is right but the value cannot be used. Exceptions of an argument's own methods, such as
`__index__`, are passed on.
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

# NumPy's maximum number of dimensions: a copy to the host is a NumPy array.
_MAX_DIMENSIONS = 64
# Sizes from here on are impossible, because no index reaches them. A smaller size may still exceed the memory.
_NO_SIZE = 2**63


# Longer values are truncated in messages, because the type is usually enough.
class _Shown(reprlib.Repr):
    """A `repr` that truncates long values, and shows NumPy's numbers like Python's."""

    def repr1(self, x: Any, level: int) -> str:
        """Return the text of a value inside `level` more levels of containers."""
        return super().repr1(x.item() if isinstance(x, np.number | np.bool_) else x, level)


_SHOWN = _Shown()
_SHOWN.maxstring = _SHOWN.maxother = 60
# The most common dtypes and their sizes in bytes, keyed by the NumPy type that callers pass.
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
    """Return the exception for an argument with a property that breaks a rule; `rule` is the text after "must".

    `actual` describes that property, such as a shape or a number of bytes; it is None if the rule already says it.
    """
    return ValueError(_sentence(call, name, rule, actual, remedy))


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to `name`, or None if none is similar."""
    import difflib  # only errors need it

    near = difflib.get_close_matches(name, tuple(known), 1)
    return near[0] if near else None


def refuse_copy(thing: Any, remedy: str) -> NoReturn:
    """Raise TypeError for an object that cannot be copied or pickled, because its handle must be released only once."""
    raise TypeError(f"this {type(thing).__name__} cannot be copied or pickled: {remedy}")


def describe(value: Any) -> str:
    """Return a short description of an argument's value, without relying on its `repr`."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, np.ndarray):
        return f"a NumPy array of dtype {value.dtype} and shape {value.shape}"
    kind = type(value).__name__
    if getattr(value, "closed", False) is True:
        return f"a closed {kind}"
    if not isinstance(value, _PLAIN):
        return f"an object of type {kind}"
    try:
        return f"the {kind} {_SHOWN.repr(value)}"
    except ValueError:  # an int with more digits than the interpreter converts to text
        return f"a huge {kind}"


def instance(call: str, name: str, value: Any, kind: type[T] | tuple[type[T], ...], wanted: str = "") -> T:
    """Return `value` if it is an instance of a class, or of one of several classes; raise TypeError otherwise.

    `wanted` describes the expected object in the error; by default, the error names the classes.
    """
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        words = " or ".join(f"{'an' if one.__name__[0] in 'AEIOU' else 'a'} {one.__name__}" for one in kinds)
        raise wrong_type(call, name, wanted or words, value)
    return value


def opened(call: str, name: str, value: Any, kind: type[T], wanted: str = "") -> T:
    """Return `value` if it is an open instance of `kind`; ValueError if it is closed, TypeError for other objects."""
    # Calling `instance` for every value would add a call to every copy and fill.
    thing: Any = value if isinstance(value, kind) else instance(call, name, value, kind, wanted)
    if thing.closed:
        how = getattr(thing, "_closed_by", str)().removeprefix(", ")
        raise wrong_value(call, name, "open", thing, how and f"it was closed {how}")
    return thing  # type: ignore[no-any-return]  # all classes passed here have `closed`, but no common base


def integer(call: str, name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """Return `value` as an int within limits. Accepts NumPy integers and objects with `__index__`, but no bool."""
    if isinstance(value, bool | np.bool_) or not hasattr(type(value), "__index__"):
        raise wrong_type(call, name, "an int", value)
    try:
        result = operator.index(value)
    except TypeError:  # an array on the device, or on the host with more than one integer or none
        raise wrong_type(call, name, "an int", value, _copied(name, value, "int")) from None
    if (least is not None and result < least) or (most is not None and result > most):
        limits = f"of at least {least}" if most is None else f"of at most {most}" if least is None else ""
        raise wrong_value(call, name, f"an int {limits or f'from {least} to {most}'}", result)
    return result


def integers(call: str, name: str, value: Any, count: int | None = None, least: int | None = None) -> tuple[int, ...]:
    """Return a tuple or list of ints as a tuple, after checking its length (`count`) and minimum value (`least`)."""
    many = "" if count is None else f"{count} "
    if not isinstance(value, tuple | list):
        raise wrong_type(call, name, f"a tuple of {many}ints", value)
    if count is not None and len(value) != count:
        raise wrong_value(call, name, f"a tuple of {many}ints", value)
    return tuple(integer(call, f"{name}[{place}]", item, least) for place, item in enumerate(value))


def number(
    call: str, name: str, value: Any, least: float = -sys.float_info.max, most: float = sys.float_info.max
) -> float:
    """Return a number within limits as a float; by default, any finite number. Accepts NumPy numbers, but no bool."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise not_a_number(call, name, value)
    try:
        result = float(value)
    except OverflowError:
        raise wrong_value(call, name, "a number that a float can hold", value) from None
    if not least <= result <= most:
        limits = f"of at least {least:g}" if most >= sys.float_info.max else f"from {least:g} to {most:g}"
        finite = (least, most) == (-sys.float_info.max, sys.float_info.max)
        raise wrong_value(call, name, "a finite number" if finite else f"a number {limits}", value)
    return result


def not_a_number(call: str, name: str, value: Any) -> TypeError:
    """Return the exception for an argument that is not a number."""
    return wrong_type(call, name, "a number", value, _copied(name, value, "float"))


def _copied(name: str, value: Any, kind: str) -> str:
    """Return how to copy an array of one element from the device to a number, "" for other values."""
    is_one = hasattr(value, "to_host") and getattr(value, "size", 0) == 1
    return f"{kind}({name}) copies it to the host" if is_one else ""


def flag(call: str, name: str, value: Any) -> bool:
    """Return a bool. Accepts nothing else, because a number here means that arguments are in the wrong order."""
    if value is True or value is False:
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    raise wrong_type(call, name, "a bool", value)


def text(call: str, name: str, value: Any) -> str:
    """Return a str that can be passed to C: encodable as UTF-8, and without NUL, which would end the C string."""
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
    """Return `value` if it is one of `choices`, which are words and possibly None."""
    known = tuple(choices)
    is_word = isinstance(value, str) or (value is None and None in known)
    if is_word and value in known:
        return value  # type: ignore[no-any-return]  # the check above does not narrow the type
    *others, last = map(repr, known)
    rule = f"one of {', '.join(others)} or {last}" if others else last
    if not is_word:
        raise wrong_type(call, name, rule, value)
    near = nearest(value or "", [word for word in known if word])
    raise wrong_value(call, name, rule, value, f"did you mean {near!r}?" if near else "")


def function(call: str, name: str, value: Any, takes: str = "without arguments") -> Callable[..., Any]:
    """Return a callable; `takes` describes its arguments in the error."""
    if not callable(value):
        raise wrong_type(call, name, f"a function {takes}", value)
    return value  # type: ignore[no-any-return]  # callable() does not narrow the type further


def items(call: str, name: str, value: Any, wanted: str) -> list[Any]:
    """Return the items of an iterable; TypeError for anything else, a string or a single array."""
    if isinstance(value, str | bytes | bytearray | memoryview) or hasattr(value, "shape"):
        raise wrong_type(call, name, wanted, value)
    try:
        return list(value)
    except TypeError:
        raise wrong_type(call, name, wanted, value) from None


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
    """Return a NumPy dtype whose elements can be in device memory; TypeError for others, such as Python objects."""
    # NumPy would read None as float64, and an array as the array's dtype.
    if not isinstance(value, _DTYPE_SPELLINGS):
        raise wrong_type(call, name, "a dtype", value)
    try:
        result: np.dtype[Any] = np.dtype(value)  # type: ignore[call-overload]  # accepts more than its hints say
    except Exception as error:  # TypeError, ValueError, SyntaxError or another, depending on the value
        raise wrong_type(call, name, "a dtype", value) from error
    _check_dtype(f"{call}: argument {name!r} is the dtype", result)
    return result


def layout(call: str, shape: Any, dtype: Any) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Return the shape, dtype and size in bytes of a contiguous array, from a call's arguments `shape` and `dtype`."""
    # Fast path for the most common case: one dimension, and a common NumPy type as the dtype.
    if type(shape) is int and 0 <= shape < _NO_SIZE and type(dtype) is type and dtype in _NUMBERS:
        kind, itemsize = _NUMBERS[dtype]
        return (shape,), kind, shape * itemsize
    if type(shape) is type(dtype) is int:  # as in zeros(2, 3)
        raise wrong_type(call, "dtype", "a dtype", dtype, "pass a shape of several sizes as a tuple")
    sizes, kind = _shape(call, "shape", shape), _dtype(call, "dtype", dtype)
    return sizes, kind, math.prod(sizes) * kind.itemsize


# Aliases, because `layout` has parameters with the original names.
_shape, _dtype = shape, dtype


def _check_dtype(what: str, dtype: np.dtype[Any]) -> None:
    """Raise TypeError for a dtype whose elements cannot be in device memory; `what` is the message up to the dtype."""
    wrong = ""
    if dtype.hasobject:
        wrong = "Python objects cannot be stored in device memory"
    elif dtype.itemsize == 0:
        wrong = "its elements have a size of 0 bytes"
    elif dtype.subdtype is not None:
        wrong = "make its shape part of the array's shape"
    elif not dtype.isnative:
        wrong = f"it is not in native byte order; use {dtype.newbyteorder('=')}"
    if wrong:
        raise TypeError(f"{what} {dtype}: {wrong}")


def host_array(call: str, name: str, value: Any) -> NDArray[Any]:
    """Convert a value to a NumPy array whose elements can be in device memory; TypeError if that is impossible."""
    try:
        result = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise wrong_type(call, name, "an array or an object that NumPy can convert to one", value) from error
    _check_dtype(f"{call}: argument {name!r} has the dtype", result.dtype)
    return result


def dimensions(call: str, name: str, array: Any, *counts: int, remedy: str = "") -> None:
    """Raise ValueError unless the array's number of dimensions is one of `counts`."""
    if len(array.shape) not in counts:
        many = f"{' or '.join(map(str, counts))} dimension{'s' * (counts[-1] != 1)}"
        raise unusable(call, name, f"have {many}", f"the shape {array.shape}", remedy)


def same_shape(call: str, name: str, array: Any, expected: tuple[int, ...], reason: str) -> None:
    """Raise ValueError unless the array has the shape that follows from other arguments.

    `reason` names these arguments, after the shape in the message: "for 'a' of shape (4, 5)".
    """
    if array.shape != expected:
        raise unusable(call, name, f"have shape {expected} {reason}", array.shape)


def contiguous(call: str, name: str, array: Any, remedy: str = "") -> None:
    """Raise ValueError unless `array.is_contiguous`: the elements must be in C order and without gaps.

    The remedy for an input is by default a copy.
    """
    if not array.is_contiguous:
        layout = f"of shape {array.shape} with strides {array.strides}"
        raise unusable(call, name, "be contiguous", layout, remedy or copy_of(name))


def copy_of(name: str) -> str:
    """Return the remedy for an input with an unusable layout: a copy of it. For an output, the remedy is ""."""
    return "" if name == "out" else f"pass {name}.copy()"
