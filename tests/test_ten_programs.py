"""Ten programs as many people write them give NumPy's results, in machine code too, and no check warns of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import cudart_py as cuda

SCRIPTS = Path(__file__).parents[1] / "scripts"
# A test is made for each name before the script can be imported.
NAMES = (
    *("FFT", "radix sort", "SHA-256", "layer of a language model", "Jacobi solver"),
    *("attention", "bitonic sort", "bilateral filter", "breadth-first search", "Smith-Waterman"),
)


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    import ten_programs

    yield ten_programs
    for name in ("ten_programs", "program_cases", "bars"):
        del sys.modules[name]


def test_all_programs_are_run_here(script):
    assert tuple(script.CASES) == NAMES


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_a_program_gives_numpys_results(script, device, monkeypatch, name, engine):
    if engine == "native":
        pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", engine)
    case = script.CASES[name](full=False)
    with cuda.checks("off" if engine == "native" else "error"):
        script.run(case, device)
    case.check()


def test_the_table_compares_both_engines(python):
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    program = f"""
import sys
sys.path.append({str(SCRIPTS)!r})
import ten_programs
ten_programs.SECONDS = 0
ten_programs.main(["--small", "--only", "FFT"])
"""
    heading, _, line = python(program).stdout.splitlines()
    cells = [cell.strip() for cell in heading.strip("|").split("|")]
    assert cells == ["program", "size", "numpy", "native", "first", "ratio"]
    numpy, native, first, ratio = (float(cell) for cell in line.strip("|").split("|")[2:])
    assert min(numpy, native, first, ratio) > 0
