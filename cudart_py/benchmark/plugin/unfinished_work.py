"""Work that a test queues and does not wait for: it runs at the end of the test, and its mistakes fail this test."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

import pytest

from ...context.capture import captures
from ...context.resetting import is_lost, reset, wait_for_devices
from ...driver.backend import in_use
from ...errors import CudaError, SimulatorWarning

_UNFINISHED = "the test did not wait for this work, which ran at its end:"


class UnfinishedWork:
    """A plugin that waits for the devices at the end of each test if the driver runs some work only during waits.

    The simulator runs work as late as possible, so a mistake in a test's work would otherwise fail a later test, or no
    test at all. If a fault has lost the context, and the driver has the capability `reset`, the driver is reset for the
    next test. On a GPU, the plugin does nothing: work runs without a wait, and a kernel may wait for the host.
    """

    @pytest.hookimpl(wrapper=True, trylast=True)  # next to the test
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Wait at the end of the test; a test that fails anyway keeps its own error."""
        try:
            result = yield
        except (Exception, pytest.fail.Exception, pytest.skip.Exception):
            with contextlib.suppress(pytest.fail.Exception):  # the test's own error says more
                _wait(item)
            raise
        _wait(item)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # after the fixtures
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        """Wait for the work of the test's fixtures, and reset a lost driver."""
        try:
            result = yield
            _wait(item)
        finally:
            backend = in_use()
            if backend is not None and backend.can_reset and not captures and is_lost():
                reset()
        return result


def _wait(item: pytest.Item) -> None:
    """Wait for the devices; fail the test if their work has failed, and issue warnings at the test's own line."""
    backend = in_use()
    if backend is None or not backend.has_unwaited() or captures:
        return
    reason = ""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", SimulatorWarning)
            wait_for_devices()
        for warning in caught:
            # A filter of the project may turn it into an error.
            item.warn(warning.message if isinstance(warning.message, Warning) else SimulatorWarning(warning.message))
    except (CudaError, SimulatorWarning) as error:
        reason = f"{_UNFINISHED}\n{error}"
    if reason:  # outside the block, so that the error is not shown twice
        pytest.fail(reason, pytrace=False)
