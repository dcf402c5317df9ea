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
_MOST = 10_000


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
    if powers := _POWERS.fullmatch(part):
        numbers: Sequence[int] = [1 << power for power in range(int(powers[1]), int(powers[2]) + 1)]
    elif limits := _RANGE.fullmatch(part):
        if limits[3] and int(limits[3]) == 0:
            return []
        numbers = range(int(limits[1]), int(limits[2]) + 1, int(limits[3] or 1))
    else:
        return [re.sub(r"^2\^(\d+)$", lambda power: str(1 << int(power[1])), part)]
    if len(numbers) > _MOST:
        raise argparse.ArgumentTypeError(f"{part!r} has more than {_MOST:,} values")
    return [str(number) for number in numbers]


def _flag(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


_CONVERSIONS: dict[type, Callable[[str], Any]] = {bool: _flag, int: int, float: float, str: str}


class Axes:
    """The plugin that gives tests the values of their axes."""

    def __init__(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", _MARKER)
        given: list[AxisValues] = config.getoption("axis")
        self._values = {axis.name: axis.values for axis in given}
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
    """Convert a value to the type of the declared ones."""
    kind = type(declared[0]) if declared else str
    convert = _CONVERSIONS.get(kind)
    if convert is None:
        raise pytest.UsageError(f"--axis: the values of {name} are {kind.__name__} objects, which cannot be given here")
    try:
        return convert(text)
    except (ValueError, KeyError):
        raise pytest.UsageError(f"--axis: {name}={text!r} is not of type {kind.__name__}") from None
