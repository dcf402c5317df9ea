"""The engines, and the kernels of `reentry`."""

from __future__ import annotations

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
