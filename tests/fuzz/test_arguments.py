"""Public calls with bad arguments: a small run of `python -m tests.fuzz.arguments`."""

import os
import sys
from pathlib import Path

import pytest

from tests.fuzz.arguments import __main__ as command
from tests.fuzz.arguments import targets

ROOT = Path(__file__).parents[2]
# A fixed seed, and at the exhaustive level a random one.
RUNS = [(7, 500), pytest.param(int.from_bytes(os.urandom(4)), 2000, marks=pytest.mark.exhaustive, id="fresh")]


def test_no_public_call_is_left_out():
    found = targets.find_targets()
    called = {part for name in found for part in name.split(".")[:2]}
    for module in targets.MODULES:
        for name in set(module.__all__) - called - targets.RETURNED:
            thing = getattr(module, name)
            assert not callable(thing) or issubclass(thing, BaseException), name
    assert {"memcpy", "Stream.borrow", "MemoryPool.make_current", "DeviceArray.__getitem__", "measure"} <= set(found)


def test_every_argument_of_every_public_call_has_a_good_value_with_which_it_succeeds(python):
    """Run in a new process, because a kernel of another test that calls printf would fix a limit that is set here."""
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.fuzz.arguments import cases; cases.call_all()"
    done = python(program, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("seed", "calls"), RUNS)
def test_a_bad_argument_is_named_and_changes_nothing(seed, calls, monkeypatch, capsys):
    """Run the command, which detects crashes and hangs of its child processes and prints the seed."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("CUDART_PY_CACHE", "")  # the command sets it
    monkeypatch.setattr(sys, "argv", ["arguments", "--seed", str(seed), "--calls", str(calls)])
    status, printed = command.main(), capsys.readouterr().out
    assert status == 0, printed
    assert f"{calls} calls, seed {seed}: 0 crash, 0 hang, 0 inscrutable" in printed
