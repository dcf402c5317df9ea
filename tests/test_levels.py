"""The levels of the suite, what tests need, and interrupts of the processes that tests start."""

import signal

import pytest

import cudart_py as cuda
from tests import durations, levels
from tests.conftest import _is_missing, let_children_be_interrupted


@pytest.mark.skipif("in_process" not in cuda.capabilities(), reason="kernels take no time of this process")
def test_a_long_test_of_the_default_level_fails(request, monkeypatch):
    around = durations.pytest_runtest_call(request.node)
    next(around)
    with monkeypatch.context() as patch:
        patch.setattr(durations, "LIMIT_S", -1)
        patch.setattr(durations, "limit_here", lambda: -1)
        with pytest.raises(pytest.fail.Exception, match="default level"):
            around.send(None)


def test_each_file_with_an_exhaustive_test_contains_the_word(request):
    """Otherwise `-m exhaustive` would not collect the file."""
    assert [path for path in request.config.stash[levels.MARKED] if not levels.has_word(path)] == []


def test_children_can_be_interrupted_where_the_suite_runs_in_the_background(python):
    """A shell makes its background jobs ignore SIGINT, and their children would inherit that."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        let_children_be_interrupted()
        child = python("import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)")
    finally:
        signal.signal(signal.SIGINT, before)
    assert child.stdout == "True\n"


def test_a_test_may_need_an_architecture_or_a_later_one_or_that_one_alone(monkeypatch):
    monkeypatch.setattr(cuda.Device, "compute_capability", (9, 0))
    names = ["sm_89", "sm_90", "sm_90a", "sm_89a", "sm_100", "sm_100a", "no_such_capability"]
    assert list(map(_is_missing, names)) == [False, False, False, True, True, True, True]
