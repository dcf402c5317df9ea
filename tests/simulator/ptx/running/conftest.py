from __future__ import annotations

from collections.abc import Iterator

import pytest

from cudart_py.simulator.ptx import load_module
from tests.simulator.ptx.machine import HEAD, Kernels


@pytest.fixture(scope="module")
def kernels(request: pytest.FixtureRequest) -> Kernels:
    """The kernels of the test's module, whose source is CUDA C++ or PTX."""
    source = request.module.SOURCE
    return Kernels(load_module(source) if source.startswith(HEAD) else source)


@pytest.fixture
def on_each(engine: str, kernels: Kernels) -> Iterator[Kernels]:
    """The kernels of the test's module, launched with each engine."""
    before, kernels.engine = kernels.engine, engine
    yield kernels
    kernels.engine = before
