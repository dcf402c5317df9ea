import pytest

from cudart_py.simulator.ptx import has_llvmlite


@pytest.fixture(scope="session", params=["numpy", "native"])
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine that there is."""
    if request.param == "native" and not has_llvmlite():
        pytest.skip("llvmlite is not installed (the extra native)")
    return str(request.param)
