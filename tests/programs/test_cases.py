"""Ten programs as many people write them give NumPy's results, in machine code too, and no check warns of them."""

from __future__ import annotations

import pytest

import cudart_py as cuda
from tests.programs.cases import CASES


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_a_program_gives_numpys_results(device, monkeypatch, name, engine):
    if engine == "native":
        pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", engine)
    case = CASES[name](full=False)
    with cuda.checks("off" if engine == "native" else "error"):
        case.run()
        device.synchronize()
    case.check()
