from collections.abc import Iterator

import pytest

from cudart_py.simulator.checks import findings
from cudart_py.simulator.ptx import has_llvmlite
from tests.simulator.ptx.machine import Kernels


@pytest.fixture(autouse=True)
def own_findings() -> Iterator[None]:
    """Drop the findings that a test leaves, which the next driver call, in any later test, would report otherwise."""
    yield
    findings.pending.clear()


@pytest.fixture(scope="session", params=["numpy", "native"])
def engine(request: pytest.FixtureRequest) -> str:
    """Return the name of each engine; skip the native engine if llvmlite is not installed."""
    if request.param == "native" and not has_llvmlite():
        pytest.skip("llvmlite is not installed (the extra native)")
    return str(request.param)


@pytest.fixture(scope="module")
def kernels(request: pytest.FixtureRequest) -> Kernels:
    """Return the kernels in the SOURCE of the test's module."""
    return Kernels(request.module.SOURCE)


@pytest.fixture
def on_each(engine: str, kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> Kernels:
    """Return the kernels of the test's module, launched with each engine in turn."""
    monkeypatch.setattr(kernels, "engine", engine)
    return kernels
