from collections.abc import Iterator

import pytest

from tests.simulator.ptx.machine import Kernels


@pytest.fixture(scope="module")
def kernels(request: pytest.FixtureRequest) -> Kernels:
    """The kernels of the test's module."""
    return Kernels(request.module.SOURCE)


@pytest.fixture
def on_each(engine: str, kernels: Kernels) -> Iterator[Kernels]:
    """The kernels of the test's module, launched with each engine."""
    before, kernels.engine = kernels.engine, engine
    yield kernels
    kernels.engine = before
