"""The plugin's fixture for tests that provoke faults, in pytest runs of their own."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import pytest
import cudart_py as cuda

SOURCE = 'extern "C" __global__ void wild() { *(int *)8 = 1; } extern "C" __global__ void nothing() {}'

@pytest.fixture(scope="module")
def shared():
    return cuda.compile(SOURCE)
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Run tests with this plugin alone in a process of their own, and return the outcome."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run(source):
        pytester.makepyfile(TESTS + source)
        return pytester.runpytest_subprocess("-p", "cudart_py.benchmark.pytest_plugin", timeout=120)

    return run


@pytest.mark.needs("reset")
def test_a_fault_ends_with_its_test(run):
    result = run("""
def test_of_a_fault(fresh_driver):
    cuda.compile(SOURCE)["wild"][1, 1]()
    with pytest.raises(cuda.IllegalAddressError):
        cuda.current_device().synchronize()

def test_behind_it():
    cuda.compile(SOURCE)["nothing"][1, 1]()
    cuda.current_device().synchronize()
""")
    result.assert_outcomes(passed=2)


@pytest.mark.needs("reset")
def test_a_fault_of_an_earlier_test_is_over(run):
    result = run("""
def test_that_ends_the_context():
    cuda.compile(SOURCE)["wild"][1, 1]()
    with pytest.raises(cuda.IllegalAddressError):
        cuda.current_device().synchronize()

def test_that_leaves_work_behind(fresh_driver):
    cuda.zeros(3).to_host()

def test_that_never_waits():
    cuda.compile(SOURCE)["wild"][1, 1]()

def test_that_begins_anew(fresh_driver):
    assert cuda.zeros(3).to_host().sum() == 0
""")
    result.assert_outcomes(passed=4)


@pytest.mark.needs("reset")
def test_an_error_of_work_that_the_test_did_not_wait_for_is_the_tests(run):
    result = run("""
def test_that_never_waits(fresh_driver):
    cuda.compile(SOURCE)["wild"][1, 1]()

def test_behind_it():
    assert cuda.zeros(3).to_host().sum() == 0
""")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*IllegalAddressError*"])


@pytest.mark.needs("reset")
def test_without_a_fault_nothing_is_closed(run):
    result = run("""
def test_that_makes(shared, fresh_driver):
    shared["nothing"][1, 1]()

def test_that_uses(shared, fresh_driver):
    shared["nothing"][1, 1]()
""")
    result.assert_outcomes(passed=2)


def test_without_the_capability_the_test_is_skipped(run):
    result = run("""
from cudart_py.benchmark import pytest_plugin
pytest_plugin.capabilities = frozenset

def test_of_a_fault(fresh_driver):
    raise AssertionError
""")
    result.assert_outcomes(skipped=1)
