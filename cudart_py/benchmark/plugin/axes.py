"""Axes of benchmarks: parameters whose values can be replaced on pytest's command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

_MARKER = (
    "axis(name, values): run the benchmark once per value of this argument; --axis NAME=VALUES replaces the values"
)
_RANGE = re.compile(r"(\d+):(\d+)(?::(\d+))?")
_POWERS = re.compile(r"2\^(\d+):2\^(\d+)")
_POWER = re.compile(r"2\^(\d+)")
_MOST = 10_000
# No array has more elements.
_LARGEST_EXPONENT = 63


class AxisValues(NamedTuple):
    """The values of `--axis NAME=VALUES` as text, one string per value."""

    name: str
    values: list[str]


def axis_argument(text: str) -> AxisValues:
    """Parse NAME=VALUES: values separated by commas, ranges A:B or A:B:STEP with both ends, and powers 2^A:2^B."""
    name, equals, values = text.partition("=")
    found = [one for part in values.split(",") for one in _expanded(part.strip())]
    if not name.isidentifier() or not equals or not all(found) or not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE,VALUE,..., such as n=1024,4096 or n=2^10:2^20")
    return AxisValues(name, found)


def _expanded(part: str) -> list[str]:
    """Return the values of a range or of powers of 2, or the part itself, which is one value."""
    if powers := _POWERS.fullmatch(part):
        return [str(1 << power) for power in _range(part, powers[1], powers[2])]
    if limits := _RANGE.fullmatch(part):
        return [str(number) for number in _range(part, *limits.groups())]
    if power := _POWER.fullmatch(part):
        return [str(1 << exponent) for exponent in _range(part, power[1], power[1])]
    return [part]


def _range(part: str, first: str, last: str, step: str | None = None) -> range:
    """Return the numbers from `first` to `last`, both included; reject a part without a number or with too many."""
    if step is not None and not int(step):
        raise argparse.ArgumentTypeError(f"{part!r} has the step 0")
    numbers = range(int(first), int(last) + 1, int(step or 1))
    if not numbers:
        raise argparse.ArgumentTypeError(f"{part!r} has no values: its end is less than its start")
    if "^" in part and numbers[-1] > _LARGEST_EXPONENT:
        raise argparse.ArgumentTypeError(f"{part!r} has an exponent of more than {_LARGEST_EXPONENT}")
    if len(numbers) > _MOST:
        raise argparse.ArgumentTypeError(f"{part!r} has more than {_MOST:,} values")
    return numbers


def _flag(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


_CONVERSIONS: dict[type, Callable[[str], Any]] = {bool: _flag, int: int, float: float, str: str}


class Axes:
    """The plugin that gives tests the values of their axes."""

    def __init__(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", _MARKER)
        replaced: list[AxisValues] = config.getoption("axis")
        self._values = {axis.name: axis.values for axis in replaced}
        self._unknown = set(self._values)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Parametrize a test by its markers `axis`."""
        for marker in metafunc.definition.iter_markers("axis"):
            try:
                name, values = marker.args
                declared = list(values)
            except (TypeError, ValueError):
                raise pytest.UsageError(f"{metafunc.definition.nodeid}: write axis('name', [value, ...])") from None
            self._unknown.discard(name)
            if name in self._values:
                declared = [_converted(name, text, declared) for text in self._values[name]]
            metafunc.parametrize(name, declared)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Refuse values for an axis that no test has, which would otherwise have no effect."""
        if self._unknown and items:
            raise pytest.UsageError(f"--axis: no collected test has the axis {', '.join(sorted(self._unknown))}")


def _converted(name: str, text: str, declared: Sequence[Any]) -> Any:
    """Convert a value to the type of the declared values."""
    kind = type(declared[0]) if declared else str
    convert = _CONVERSIONS.get(kind)
    if convert is None:
        raise pytest.UsageError(
            f"--axis: the values of {name} are {kind.__name__} objects, which cannot be written here"
        )
    try:
        return convert(text)
    except (ValueError, KeyError):
        raise pytest.UsageError(f"--axis: {name}={text!r} is not of type {kind.__name__}") from None
