"""Refusals of runs whose counters are to be compared although there is nothing to compare them with.

A run with a limit or a report of the comparison must not look like a success merely because nothing was compared.
"""

from __future__ import annotations

import os
import shlex
import warnings
from typing import Any

import pytest

_OPTIONS = ("--counters-compare-fail", "--counters-json", "--counters-markdown")


def store_command(config: pytest.Config) -> str:
    """Return the command that stores the counters of this run where the comparison looks for them."""
    name = config.getoption("benchmark_compare", None) or "accepted.json"
    place = f"--benchmark-json={name}" if _is_file_name(name) else "--benchmark-autosave"
    return shlex.join(("CUDART_PY_DRIVER=simulator", "python", "-m", "pytest", *_files(config), place))


def profile_command(config: pytest.Config) -> str:
    """Return the command that shows the counters of this run line by line."""
    return shlex.join(("cudart-py", "profile", "-m", "pytest", *_files(config)))


def _files(config: pytest.Config) -> list[str]:
    return [argument for argument in config.args if argument != str(config.invocation_params.dir)]


def refuse_without_comparison(config: pytest.Config) -> None:
    """Raise UsageError, before any test runs, if the options ask for a comparison and there is nothing to compare."""
    option = _requested(config)
    if option is None or config.getoption("collectonly"):
        return
    if config.getoption("dist", "no") != "no":
        raise pytest.UsageError(
            f"{option} cannot be used with pytest-xdist (-n), under which pytest-benchmark disables benchmarks: run "
            "without it, or with -n 0"
        )
    benchmarks: Any = getattr(config, "_benchmarksession", None)
    if benchmarks is None:
        raise pytest.UsageError(f"{option} needs pytest-benchmark, which is not loaded: pip install pytest-benchmark")
    if benchmarks.disabled or benchmarks.skip:
        raise pytest.UsageError(
            f"{option} needs benchmarks, which --benchmark-disable or --benchmark-skip turns off: remove that option"
        )
    why = _why_not_stored(config, benchmarks)
    if why is not None:
        raise pytest.UsageError(f"{option} {why}")


def refuse_without_counters(config: pytest.Config, *, measured: bool, counted: bool) -> None:
    """Raise UsageError, after the tests, if the options ask for a comparison and nothing was compared.

    `measured` says whether any benchmark was measured, and `counted` whether any has counters.
    """
    option = _requested(config)
    if option is None:
        return
    if counted:
        why = f"the stored run has no benchmark of this run. Store it again: {store_command(config)}"
    elif measured:
        why = "this driver measures times and has no counters. Set CUDART_PY_DRIVER=simulator"
    else:
        why = (
            "no test used gpu_benchmark or host_benchmark. pytest does not collect files named bench_*.py by itself: "
            "name them"
        )
    raise pytest.UsageError(f"{option} compared nothing: {why}")


def _requested(config: pytest.Config) -> str | None:
    names = ((option, option.removeprefix("--").replace("-", "_")) for option in _OPTIONS)
    return next((option for option, name in names if config.getoption(name)), None)


def _is_file_name(name: object) -> bool:
    """Return whether a value of --benchmark-compare names a file, and not runs in pytest-benchmark's storage."""
    return isinstance(name, str) and (name.endswith(".json") or os.sep in name or os.path.exists(name))


def _why_not_stored(config: pytest.Config, benchmarks: Any) -> str | None:
    """Return why there is no stored run to compare with, and the remedy, or None if there is one."""
    name, store = benchmarks.compare, store_command(config)
    if not name:
        return f"needs --benchmark-compare with a stored run. Store one: {store}"
    if _is_file_name(name) and not os.path.exists(name):
        return f"needs a stored run, and {name} does not exist. Store it: {store}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a file that cannot be loaded has an error below
        stored = list(benchmarks.storage.load()) if name is True else list(benchmarks.storage.load(name))
    if not stored and _is_file_name(name):
        return f"needs a stored run, and {name} is not one. Store it: {store}"
    if not stored:
        # The storage has a separate folder for each minor version of Python.
        return (
            f"needs a stored run, and {benchmarks.storage} has none{'' if name is True else f' named {name}'} for this "
            f"Python ({benchmarks.machine_id}). Store one with --benchmark-autosave, or name the file of a run: "
            "--benchmark-compare=FILE"
        )
    compared = stored[-1:] if name is True else stored
    if not any(run.get("counted") for _, run in compared):
        return f"needs a stored run with counters, and {compared[0][0]} has none. Store it again: {store}"
    return None
