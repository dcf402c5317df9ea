from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from cudart_py.driver.calls import library
from cudart_py.libraries.handles import release

Calls = list[tuple[str, tuple[Any, ...]]]


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Calls]]:
    """Yield a function that starts recording calls of some of a library's functions: their names and arguments."""
    release()

    def record_calls(name: str, *functions: str) -> Calls:
        calls: Calls = []
        module = library(name)
        for function in functions:
            original = getattr(module, function)

            def call(*arguments: Any, function: str = function, original: Any = original) -> Any:
                calls.append((function, arguments))
                return original(*arguments)

            monkeypatch.setattr(module, function, call)
        return calls

    yield record_calls
    release()  # cached objects hold the recording functions


@pytest.fixture
def numbers(rng: np.random.Generator) -> Callable[..., Any]:
    """Return a function that draws an array of normally distributed numbers, real or complex."""

    def draw(shape: Any, dtype: Any = np.float64) -> Any:
        values = rng.standard_normal(shape)
        if np.dtype(dtype).kind == "c":
            values = values + 1j * rng.standard_normal(shape)
        return values.astype(dtype)

    return draw
