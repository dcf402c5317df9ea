"""A timer for pytest-benchmark that replays samples taken before."""

from __future__ import annotations

from collections.abc import Iterator


class _Stamp:
    """A reading of the benchmark's timer; the difference of two readings is the duration of a round in seconds."""

    __slots__ = ("_seconds",)

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __sub__(self, start: _Stamp) -> float:
        return self._seconds


class Replay:
    """A timer for pytest-benchmark that replays samples taken before, as two stamps per round."""

    def __init__(self, name: str, samples: tuple[float, ...], iterations: int) -> None:
        # The JSON uses this as the name of the timer.
        self.__name__ = name
        self._stamps = _stamps(samples, iterations)

    def __call__(self) -> _Stamp:
        """Return the next reading."""
        return next(self._stamps)


def _stamps(samples: tuple[float, ...], iterations: int) -> Iterator[_Stamp]:
    for seconds in samples:
        yield _Stamp(0.0)
        yield _Stamp(seconds * iterations)
