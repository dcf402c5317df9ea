"""Public calls with bad arguments, as `python -m tests.fuzz.arguments` makes them by the ten thousand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.arguments import cases

ROOT = Path(__file__).parents[2]
CALLS = 800


def test_no_public_call_is_left_out():
    found = cases.find_targets()
    called = {name.partition(".")[0] for name in found}
    for module in cases.MODULES:
        for name in set(module.__all__) - called - cases.RETURNED:
            assert not callable(getattr(module, name)) or _is_error(getattr(module, name)), name
    assert {"memcpy", "Stream.borrow", "Device.memory_pool =", "DeviceArray.__getitem__", "measure"} <= set(found)


def _is_error(thing):
    return isinstance(thing, type) and issubclass(thing, BaseException)


def test_every_argument_of_every_public_call_has_a_good_value_with_which_it_succeeds(python):
    """In a process of its own: a kernel of another test that prints would have fixed a limit that is set here."""
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.fuzz.arguments import cases; cases.call_all()"
    done = python(program, check=False)
    assert done.returncode == 0, done.stderr


def test_a_parameter_without_a_good_value_is_told_where_to_get_one():
    target = cases.Target("describe", lambda purple: None, parameters=cases._parameters(lambda purple: None))
    with pytest.raises(LookupError, match=r"'purple' of describe: .*GOOD of tests/fuzz/arguments/good_values\.py"):
        cases.good_arguments(target, None)


def test_a_class_without_a_good_object_is_told_where_to_get_one():
    target = cases.Target("Mystery.solve", lambda mystery: None, owner="Mystery")
    with pytest.raises(LookupError, match=r"Mystery\.solve on: .*RETURNED of tests/fuzz/arguments/cases\.py"):
        cases.good_object(target, None)


def test_a_bad_argument_is_named_and_changes_nothing():
    """By the command, whose processes notice crashes and hangs."""
    command = [sys.executable, "-m", "tests.fuzz.arguments", "--seed", "7", "--calls", str(CALLS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stdout
    assert f"{CALLS} calls of" in done.stdout
    assert "0 crash, 0 hang, 0 inscrutable" in done.stdout
