"""Record the conformance tests' results on a GPU.

    python tests/conformance/record.py tests/conformance/data

Each group runs in a separate process, and each case runs twice: a result that differs between the two runs is a mistake
in the case, and is reported. Failures are printed, and the results of all other cases are still written. The exit
status is the number of groups with a failure.
"""

import argparse
import concurrent.futures
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from suite import printing
from suite.frame import run
from suite.table import CASES

import cudart_py as cuda

GROUPS = (*dict.fromkeys(case.group for case in CASES), "printing")
SECONDS_A_GROUP = 120


def metadata() -> dict[str, Any]:
    """Return the GPU and the versions with which results are recorded."""
    from cuda.bindings import nvrtc

    return {
        "card": cuda.Device(0).name,
        "driver": str(cuda.driver_version()),
        "nvrtc": ".".join(map(str, cuda.check(nvrtc.nvrtcVersion()))),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def record(folder: Path, group: str) -> list[str]:
    """Record one group in this process, and return a list of failures."""
    cases = {case.id: case for case in CASES if case.group == group}
    attempts: dict[str, Callable[[], dict[str, Any]]] = {name: partial(run, case) for name, case in cases.items()}
    if group == "printing":
        attempts = {kernel: partial(printing.run, kernel) for kernel in printing.KERNELS}
    results: dict[str, Any] = {}
    digests: dict[str, int] = {}
    failures = []
    about = metadata()
    folder.mkdir(parents=True, exist_ok=True)
    for part, attempt in attempts.items():
        try:
            first, second = attempt(), attempt()
        except Exception as error:
            failures.append(f"{group}: {part}: {type(error).__name__}: {error}")
            continue
        if any(np.asarray(value).tobytes() != np.asarray(second[name]).tobytes() for name, value in first.items()):
            failures.append(f"{group}: {part} is not the same in two runs")
        # Write the results after each case, so that a kernel that never ends does not lose the earlier results.
        if group == "printing":
            results[part] = first
            text = json.dumps({"metadata": about, "results": results}, indent=1)
            (folder / "printing.json").write_text(text + "\n")
            continue
        digests[part] = cases[part].digest
        results |= {f"{part}/{name}": array for name, array in first.items()}
        text = json.dumps({**about, "digests": digests}, sort_keys=True)
        np.savez_compressed(folder / f"{group}.npz", allow_pickle=False, metadata=np.array(text), **results)
    return failures


def record_apart(folder: Path, group: str) -> bool:
    """Record a group in a separate process, print its outcome, and return whether it failed."""
    command = [sys.executable, __file__, str(folder), "--only", group, "--here"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_A_GROUP, check=False)
        failure = f"{done.stdout}{done.stderr[-3000:]}(exit status {done.returncode})" if done.returncode else ""
    except subprocess.TimeoutExpired:
        failure = f"no end after {SECONDS_A_GROUP} s"
    print(f"{group}: FAILED\n{failure}" if failure else f"{group}: recorded", flush=True)
    return bool(failure)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS), metavar="GROUP")
    parser.add_argument("--here", action="store_true", help="record in this process")
    arguments = parser.parse_args()
    if not arguments.here:
        with concurrent.futures.ThreadPoolExecutor(max(1, min(6, (os.cpu_count() or 2) - 1))) as pool:
            return sum(pool.map(partial(record_apart, arguments.folder.resolve()), arguments.only))
    with cuda.Device(0):
        failures = [failure for group in arguments.only for failure in record(arguments.folder, group)]
    print("\n".join(failures))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
