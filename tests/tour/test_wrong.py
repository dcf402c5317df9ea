import os
import time

import numpy as np
import pytest

import cudart_py as cuda
from library_tour import wrong
from library_tour.wrong import all_shown_wrong, shown_wrong

# What the tour uses, before the tests share a server that has imported more.
run = wrong.run


@pytest.fixture
def anew(monkeypatch):
    """Run programs as the tour does."""
    monkeypatch.setattr(wrong, "run", run)


def nothing_wrong() -> str:
    return ""


def faulty() -> str:
    array = cuda.zeros(4, np.int32)
    cuda.compile('extern "C" __global__ void beyond(int* x) { x[4] = 1; }')["beyond"][1, 1](array)
    array.to_host()
    return ""


def broken() -> str:
    raise RuntimeError("the wheels came off")


def test_a_fault_is_caught_with_the_drivers_report_in_its_process_and_what_is_not_wrong_or_breaks_otherwise_fails():
    fault, nothing, otherwise = all_shown_wrong({"idea": faulty, "first": nothing_wrong, "second": broken})
    assert (fault.check.holds, fault.check.word) == (True, "caught")
    assert "beyond" in fault.note
    assert "after the end of the 16-byte allocation" in fault.note
    assert cuda.zeros(1, np.int32).to_host()[0] == 0
    assert (nothing.name, nothing.check.holds) == ("first", False)
    assert (otherwise.name, otherwise.check.holds) == ("second", False)
    assert "the wheels came off" in otherwise.check.detail


def devices() -> str:
    return f"{len(cuda.devices())} devices, checks {os.environ['CUDART_PY_SANITIZER']}"


def test_the_readers_own_choices_and_files_with_names_of_modules_change_nothing(anew, monkeypatch, tmp_path):
    monkeypatch.setenv("CUDART_PY_SANITIZER", "off")
    monkeypatch.setenv("CUDART_PY_SIMULATOR_DEVICES", "3")
    (tmp_path / "random.py").write_text("raise RuntimeError('imported')")
    monkeypatch.chdir(tmp_path)
    assert shown_wrong("idea", devices, devices=2).note == "2 devices, checks warn"


def endless() -> str:
    time.sleep(30)
    return ""


def test_what_does_not_end_is_stopped_and_said(anew, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(wrong, "SECONDS", 0.2)
        row = shown_wrong("a loop", endless)
    assert not row.check.holds
    assert "stopped after 0.2 seconds" in row.check.detail
    assert shown_wrong("idea", devices).note == "1 devices, checks warn"
