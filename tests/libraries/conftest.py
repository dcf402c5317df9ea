from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

import cudart_py as cuda
from library_tour.libraries.bindings import binding
from library_tour.libraries.handles import release


@pytest.fixture
def libraries(request: pytest.FixtureRequest, device: cuda.Device) -> SimpleNamespace | None:
    """The libraries themselves on a GPU, and those in software on the simulator, which are returned."""
    return None if "libraries" in cuda.capabilities() else request.getfixturevalue("software")


@pytest.fixture
def software(monkeypatch: pytest.MonkeyPatch, device: cuda.Device) -> Iterator[SimpleNamespace]:
    """The libraries in software, for the simulator: NumPy and SciPy behind the functions of nvmath's bindings.

    They read and write at the addresses they are given, so that layouts, leading dimensions and the order of
    arguments are what is tested.
    """
    if "interop" in cuda.capabilities():
        pytest.skip("on a GPU the libraries themselves are there")
    pytest.importorskip("scipy", reason="SciPy is not installed (the extra cpu)")
    from tests.libraries.software_cublas import Cublas
    from tests.libraries.software_cublaslt import CublasLt
    from tests.libraries.software_cufft import Cufft
    from tests.libraries.software_curand import Curand
    from tests.libraries.software_cusolver import Cusolver
    from tests.libraries.software_cusparse import Cusparse

    libraries = {
        "cublas": Cublas(),
        "cublasLt": CublasLt(),
        "cufft": Cufft(),
        "curand": Curand(),
        "cusolverDn": Cusolver(),
        "cusparse": Cusparse(),
    }
    release()
    # What is queued by these is done at once, and cannot be recorded.
    monkeypatch.setattr("library_tour.libraries.blas.REPEATS", sys.maxsize)
    warnings.filterwarnings("ignore", ".*uninitialised value")  # the simulator does not see what they write
    for name, library in libraries.items():
        monkeypatch.setitem(sys.modules, f"nvmath.bindings.{name}", library)
    binding.cache_clear()
    yield SimpleNamespace(**libraries)
    release()
    binding.cache_clear()
