"""The plugin's fixture for tests that provoke faults, in a pytest run of its own."""

from __future__ import annotations

import pytest

from cudart_py.benchmark import pytest_plugin

pytest_plugins = ["pytester"]

# The tests run in this order, and each may find what the one before left behind.
TESTS = """
import pytest
import cudart_py as cuda

SOURCE = 'extern "C" __global__ void wild() { *(int *)8 = 1; } extern "C" __global__ void nothing() {}'

def wild():
    cuda.compile(SOURCE)["wild"][1, 1]()

def fault():
    wild()
    with pytest.raises(cuda.IllegalAddressError):
        cuda.current_device().synchronize()

def works():
    return cuda.zeros(3).to_host().sum() == 0

@pytest.fixture(scope="module")
def shared():
    return cuda.compile(SOURCE)

def test_that_makes(shared, fresh_driver):
    shared["nothing"][1, 1]()

def test_that_uses(shared, fresh_driver):
    shared["nothing"][1, 1]()

def test_of_a_fault(fresh_driver):
    fault()

def test_behind_it():
    assert works()

def test_that_ends_the_context():
    fault()

def test_that_begins_anew(fresh_driver):
    assert works()

def test_without_the_fixture_that_never_waits():
    wild()

def test_that_begins_anew_again(fresh_driver):
    assert works()

def test_that_never_waits(fresh_driver):
    wild()

def test_behind_the_error_of_another():
    assert works()
"""


@pytest.mark.needs("reset")
def test_a_fault_ends_with_its_test_and_without_one_nothing_is_closed(pytester, monkeypatch):
    """In a process of their own."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_subprocess("-p", "cudart_py.benchmark.pytest_plugin", timeout=120)
    result.assert_outcomes(passed=10, errors=1)
    result.stdout.fnmatch_lines(["*IllegalAddressError*", "ERROR *::test_that_never_waits*"])


def test_without_the_capability_the_test_is_skipped(run, monkeypatch):
    monkeypatch.setattr(pytest_plugin, "capabilities", frozenset)
    run("def test_of_a_fault(fresh_driver):\n    raise AssertionError", benchmark=False).assert_outcomes(skipped=1)
