from collections.abc import Iterator
from typing import Any

import pytest

from cudart_py.simulator import driver
from tests.simulator.kernels import loaded
from tests.simulator.support import HostCalls, Player, fresh_devices, ok


@pytest.fixture
def two_devices() -> Iterator[list[Any]]:
    """Yield the contexts of two new devices with 64 MiB each; the first device's context is current."""
    restore = fresh_devices(2, 64 << 20)
    handles = [ok(driver.cuDevicePrimaryCtxRetain(ordinal)) for ordinal in range(2)]
    ok(driver.cuCtxSetCurrent(handles[0]))
    yield handles
    restore()


@pytest.fixture
def context(two_devices: list[Any]) -> Any:
    return two_devices[0]


@pytest.fixture
def calls() -> HostCalls:
    return HostCalls()


@pytest.fixture
def stream(context: Any) -> Any:
    return ok(driver.cuStreamCreate(1))


@pytest.fixture
def graph(context: Any) -> Any:
    return ok(driver.cuGraphCreate(0))


@pytest.fixture
def play(context: Any, calls: HostCalls) -> Player:
    return Player(calls)


@pytest.fixture
def module(context: Any) -> Any:
    return loaded()


@pytest.fixture(params=["numpy", "native"])
def engine(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "native":
        pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", request.param)
    return str(request.param)
