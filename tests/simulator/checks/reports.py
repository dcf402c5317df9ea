"""Collect reports of the checks: while a program runs, or for one launch by the PTX machine without a driver."""

import contextlib
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import cudart_py as cuda
from cudart_py.simulator.checks import findings
from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.ptx.compiling.program import program_of
from tests.simulator.ptx.machine import Kernels

FOLDER = Path(__file__).parent
# The marks of tests that launch kernels with deliberate mistakes.
WRONG_ON_PURPOSE = [
    pytest.mark.needs("profile"),
    pytest.mark.unsanitized("the kernels are wrong on purpose"),
    pytest.mark.usefixtures("device"),
]


@contextlib.contextmanager
def reports() -> Iterator[list[str]]:
    """Collect the reports that appear until the current device has finished all its work."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
        cuda.current_device().synchronize()
    assert all(issubclass(warning.category, cuda.errors.SimulatorWarning) for warning in caught), caught
    texts += [str(warning.message) for warning in caught]


def found(launch: Callable[..., Any], *arguments: Any) -> list[str]:
    with reports() as texts:
        launch(*arguments)
    return texts


def take_findings() -> list[str]:
    """Return the findings of the PTX machine's launches since the last call, without addresses."""
    texts = [re.sub("0x[0-9a-f]+", "", str(finding)) for finding in findings.pending]
    findings.pending.clear()
    return texts


def watched(kernels, engine, name, grid, block, *arguments, **options):
    kernels.engine = engine
    findings.pending.clear()
    kernels.launch(name, grid, block, *arguments, **{"steps": None, "observer": LaunchChecks(), **options})
    return take_findings()


def of_both(kernels: Kernels, name: str, grid: Any, block: Any, *arguments: Any, **options: Any) -> list[str]:
    """Return the findings of a launch on fresh arrays; both engines must agree on them and on the arrays' contents."""
    earlier: list[list[str]] = []

    def observe() -> LaunchChecks:
        earlier.append(take_findings())
        return LaunchChecks()

    kernels.agree(name, grid, block, *arguments, observe=observe, steps=None, **options)
    _, exact, native = *earlier, take_findings()
    assert native == exact
    return exact


def run_natively(kernels: Kernels, name: str, grid: Any, block: Any, *arguments: Any) -> None:
    """Launch a kernel without mistakes; it must run in machine code, without findings and without raising a doubt."""
    assert of_both(kernels, name, grid, block, *arguments) == []
    known = program_of(kernels.module.entries[name]).native
    kernel = next(kernel for (_, watch, _), kernel in known.items() if watch == {"checks"})
    assert kernel is not None, name
    assert not kernel.recorded.doubts, name
