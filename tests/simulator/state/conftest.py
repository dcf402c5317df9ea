from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

import cudart_py as cuda

from .reentry import ENGINES, SOURCE


@pytest.fixture(params=ENGINES)
def engine(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", request.param)
    return str(request.param)


@pytest.fixture(scope="module")
def module() -> cuda.Module:
    return cuda.compile(SOURCE)


@pytest.fixture
def no_garbage() -> Iterator[None]:
    """Let nothing that earlier tests have left be freed in this one, without a full collection, which takes long."""
    gc.collect(1)
    gc.disable()
    yield
    gc.enable()
