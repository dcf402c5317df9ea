"""The script that compares machine code with C++ and PoCL: the same results at a small size, and a table."""

from __future__ import annotations

from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"


def test_all_peers_give_the_same_results(python):
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    program = f"import sys; sys.path.append({str(SCRIPTS)!r}); import simulator_peers; simulator_peers.main(scale=16)"
    heading, _, *lines = [line for line in python(program).stdout.splitlines() if line.startswith("|")]
    assert [cell.strip() for cell in heading.strip("|").split("|")][:3] == ["kernel", "simulator", "C++"]
    assert [line.split()[1] for line in lines] == ["saxpy", "collatz", "bodies", "transpose", "matmul"]
    assert all(float(line.split("|")[2]) > 0 for line in lines)
