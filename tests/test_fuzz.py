"""Public calls with bad arguments, as `scripts/fuzz_arguments.py` makes them by the ten thousand."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent / "scripts"
CALLS = 800


@pytest.fixture(scope="module")
def cases():
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(SCRIPTS)
    yield importlib.import_module("fuzz_cases")
    patch.undo()
    for name in ("fuzz_bad_values", "fuzz_cases", "fuzz_good_values", "fuzz_rules", "fuzz_world"):
        del sys.modules[name]


def test_no_public_call_is_left_out(cases):
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
    program = f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); from fuzz_cases import call_all; call_all()"
    done = python(program, check=False)
    assert done.returncode == 0, done.stderr


def test_a_parameter_without_a_good_value_is_told_where_to_get_one(cases):
    target = cases.Target("describe", lambda purple: None, parameters=cases._parameters(lambda purple: None))
    with pytest.raises(LookupError, match=r"'purple' of describe: give it one in GOOD of scripts/fuzz_good_values\.py"):
        cases.good_arguments(target, None)


def test_a_class_without_a_good_object_is_told_where_to_get_one(cases):
    target = cases.Target("Mystery.solve", lambda mystery: None, owner="Mystery")
    with pytest.raises(LookupError, match=r"Mystery\.solve on: .* name Mystery in RETURNED of scripts/fuzz_cases\.py"):
        cases.good_object(target, None)


def test_a_bad_argument_is_named_and_changes_nothing(python):
    """In a process of its own, which would die of a crash, and be ended if it hung."""
    program = f"""
import json, sys
sys.path.insert(0, {str(SCRIPTS)!r})
from fuzz_cases import fuzz
print(json.dumps([finding.__dict__ for finding in fuzz(7, 0, {CALLS})]))
"""
    found = json.loads(python(program).stdout.splitlines()[-1])
    assert found == []


def test_the_command_prints_its_figures():
    printed = subprocess.run(
        [sys.executable, str(SCRIPTS / "fuzz_arguments.py"), "--calls", "40", "--batch", "20"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    ).stdout
    assert "40 calls of" in printed
    assert "0 crash, 0 hang, 0 inscrutable" in printed
