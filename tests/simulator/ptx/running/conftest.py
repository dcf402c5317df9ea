import pytest

from tests.simulator.ptx.machine import Kernels


@pytest.fixture(scope="module")
def kernels(request: pytest.FixtureRequest) -> Kernels:
    """Return the kernels in the SOURCE of the test's module."""
    return Kernels(request.module.SOURCE)


@pytest.fixture
def on_each(engine: str, kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> Kernels:
    """Return the kernels of the test's module, launched with each engine in turn."""
    monkeypatch.setattr(kernels, "engine", engine)
    return kernels
