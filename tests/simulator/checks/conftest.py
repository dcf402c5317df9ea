"""Fixtures of the tests of the checks."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["numpy", "native"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test with each engine of the simulator."""
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", request.param)
