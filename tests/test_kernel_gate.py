"""The gate for the tour's kernels: which changes pass, which fail, and how its file is written."""

import importlib.util
import json
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def gate():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[1] / "scripts")
        patch.setenv("CUDART_PY_SANITIZER", "off")
        patch.setenv("CUDART_PY_DRIVER", "simulator")
        yield importlib.import_module("kernel_gate")


ACCEPTED = {
    "nvrtc": "13.0",
    "kernels": {
        "one: k": {"instructions": 1000, "sectors": 400, "registers": 20, "lanes": 32.0},
        "two: k": {"sectors": 1},
    },
}


@pytest.mark.parametrize(
    ("changed", "failed"),
    [
        ({}, []),
        ({"sectors": 404}, []),
        ({"sectors": 3200}, ["sectors"]),
        ({"sectors": 100}, []),
        ({"conflicts": 1}, ["conflicts"]),
        ({"registers": 21, "spills": 8}, ["registers", "spills"]),
        ({"instructions": 1100, "lanes": 16.0}, ["instructions", "lanes"]),
    ],
)
def test_a_kernel_fails_for_what_became_worse(gate, changed, failed):
    now = {"one: k": ACCEPTED["kernels"]["one: k"] | changed}
    found = gate.compare(ACCEPTED, now, "13.0", ["one"])
    assert sorted(change.figure for change in found if change.failed) == sorted(failed)


def test_another_compilers_instructions_and_registers_are_not_compared(gate):
    now = {"one: k": {"instructions": 9000, "sectors": 900, "registers": 99, "lanes": 32.0}}
    found = gate.compare(ACCEPTED, now, "13.5", ["one"])
    assert [change.figure for change in found] == ["sectors"]


def test_a_kernel_that_is_new_or_gone_has_to_be_accepted(gate):
    found = gate.compare(ACCEPTED, {"one: other": {"sectors": 1}}, "13.0", ["one"])
    assert [(change.benchmark, change.failed) for change in found] == [("one: k", True), ("one: other", True)]


def test_the_file_has_a_line_for_each_kernel(gate):
    text = gate.written("13.0", ACCEPTED["kernels"])
    assert json.loads(text) == ACCEPTED
    assert len(text.splitlines()) == 2 + len(ACCEPTED["kernels"])


def test_a_stop_is_counted_the_same_in_every_run_and_by_both_engines(gate, python, monkeypatch):
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", "native" if importlib.util.find_spec("llvmlite") else "numpy")
    found = gate.count_all(["bank_conflicts"])
    folder = str(Path(gate.__file__).parent)
    program = f"import json, sys; sys.path.insert(0, {folder!r}); import kernel_gate"
    program += "\nprint(json.dumps(kernel_gate.count('bank_conflicts')))"
    again = json.loads(python(program, CUDART_PY_SIMULATOR_ENGINE="numpy").stdout.splitlines()[-1])
    assert found == again
    kernels = {key for key in json.loads(gate.FILE.read_text())["kernels"] if key.startswith("bank_conflicts:")}
    assert found.keys() == kernels
