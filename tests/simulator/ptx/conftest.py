import pytest

from cudart_py.simulator.ptx import has_llvmlite


@pytest.fixture(scope="session", params=["numpy", "native"])
def engine(request: pytest.FixtureRequest) -> str:
    """Return the name of each engine; skip the native engine if llvmlite is not installed."""
    if request.param == "native" and not has_llvmlite():
        pytest.skip("llvmlite is not installed (the extra native)")
    return str(request.param)
