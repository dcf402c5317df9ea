"""Public calls with bad arguments: a small run of `python -m tests.fuzz.arguments`."""

import os
import random
import sys
import warnings

import pytest

from tests.fuzz.arguments import __main__ as command
from tests.fuzz.arguments import cases, targets
from tests.fuzz.arguments.world import World

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
    path = f"import sys; sys.path.insert(0, {str(command.ROOT)!r})"
    done = python(f"{path}; from tests.fuzz.arguments import cases; cases.call_all()", check=False)
    assert done.returncode == 0, done.stderr


# A program that handles a timer's signals, has NumPy raise errors, and often collects garbage.
UNUSUAL = f"""
import gc
import signal
import sys
import numpy as np

sys.path.insert(0, {str(command.ROOT)!r})
from tests.fuzz.arguments import cases

alarms = []
signal.signal(signal.SIGALRM, lambda number, frame: alarms.append(number))
signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
np.seterr(all="raise")
gc.set_threshold(50)
cases.call_all()
signal.setitimer(signal.ITIMER_REAL, 0)
sys.exit(not alarms)
"""


def test_every_public_call_succeeds_in_unusual_circumstances(python):
    """The process runs without assertions, docstrings and UTF-8."""
    environment = {"PYTHONOPTIMIZE": "2", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = python(UNUSUAL, check=False, own_imports=True, **environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("seed", "calls"), RUNS)
def test_a_bad_argument_is_named_and_changes_nothing(seed, calls, monkeypatch, capsys):
    """Run the command, which detects crashes and hangs of its child processes and prints the seed."""
    monkeypatch.setenv("CUDART_PY_CACHE", "")  # the command sets it
    monkeypatch.setattr(sys, "argv", ["arguments", "--seed", str(seed), "--calls", str(calls)])
    status, printed = command.main(), capsys.readouterr().out
    assert status == 0, printed
    assert f"{calls} calls, seed {seed}: 0 crash, 0 hang, 0 inscrutable" in printed


def test_numpys_error_settings_do_not_reach_a_call():
    """Pass a number that underflows in single precision for each argument; calls run with NumPy's errors enabled."""
    world, random_, label = World(), random.Random(1), "tiny float64"
    places = [
        (target, slot)
        for target, slot in cases.places()
        # `to_device` converts an array as NumPy does, and raises what NumPy raises.
        if label in cases.labels_for(target, slot) and (target.name, slot) != ("to_device", "host")
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as that of a matrix of zeros
        for target, slot in places:
            if target.name not in cases.NOT_CALLED:
                assert list(cases.call_with_each(target, world, slot, [label], random_)) == []
    world.device.synchronize()


@pytest.mark.needs("profile")
def test_files_that_calls_write_do_not_go_to_the_current_folder(tmp_path, monkeypatch):
    here, folder = tmp_path / "here", tmp_path / "folder"
    here.mkdir()
    folder.mkdir()
    monkeypatch.chdir(here)
    calls = [(target.name, chosen) for target, chosen in cases.every_call()]
    number = calls.index(("profile", {"trace": "'x'"}))
    assert command.run_batch(None, number, number + 1, str(folder)) == []
    assert [path.name for path in folder.iterdir()] == ["x"]
    assert list(here.iterdir()) == []
