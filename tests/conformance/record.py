"""Record the conformance tests' results on a GPU.

    python tests/conformance/record.py tests/conformance/data

Every group runs in a process of its own, twice: a result that is not the same both times is a mistake in the
case and is reported. What fails is printed and left out; the others are written all the same. The exit status
is the number of groups with a failure.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from suite import printing, random_run, store, table
from suite.frame import ROOT, Array, run
from suite.random_kernels import COUNT, WORDS

import cudart_py as cuda

CASES = table.grouped((*table.CONFORMANCE, *table.LIBRARIES))
GROUPS = (*CASES, "random", "printing")
SECONDS_A_GROUP = 120

# Writes what there is so far: a kernel that never ends must not lose the results before it.
Save = Callable[[dict[str, Array], dict[str, int]], None]


def commit() -> str:
    """Return the commit that CONFORMANCE_COMMIT names, or else the one that is checked out."""
    named = os.environ.get("CONFORMANCE_COMMIT", "")
    if named or not shutil.which("git"):
        return named or "unknown"
    done = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def metadata() -> dict[str, Any]:
    """Return what the results are recorded on."""
    from cuda.bindings import nvrtc

    return {
        "card": cuda.Device(0).name,
        "driver": str(cuda.driver_version()),
        "nvrtc": ".".join(map(str, cuda.check(nvrtc.nvrtcVersion()))),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "commit": commit(),
    }


def record_cases(group: str, save: Save) -> list[str]:
    """Run a group's cases, save their arrays and checksums, and return the failures."""
    arrays: dict[str, Array] = {}
    digests: dict[str, int] = {}
    failures = []
    for case in CASES[group]:
        try:
            first, second = run(case), run(case)
        except Exception as error:
            failures.append(f"{group}: {case.id}: {type(error).__name__}: {error}")
            continue
        for name, array in first.items():
            if array.tobytes() != second[name].tobytes():
                failures.append(f"{group}: {case.id}: {name} is not the same in two runs")
            arrays[f"{case.id}/{name}"] = array
        digests[case.id] = case.digest
        save(arrays, digests)
    return failures


def record_random(save: Save) -> list[str]:
    """Run and save the random kernels; a seed that fails leaves zeros and has no checksum."""
    words = np.zeros((COUNT, WORDS), np.uint32)
    digests: dict[str, int] = {}
    failures = []
    for seeds in random_run.batches():
        try:
            module = random_run.compiled(seeds)
        except Exception as error:
            failures.append(f"random: seeds {seeds}: {type(error).__name__}: {error}")
            continue
        for seed in seeds:
            try:
                words[seed] = random_run.result(module, seed)
                if (words[seed] != random_run.result(module, seed)).any():
                    failures.append(f"random: seed {seed} is not the same in two runs")
                digests[str(seed)] = random_run.digest(seed)
            except Exception as error:
                failures.append(f"random: seed {seed}: {type(error).__name__}: {error}")
        save({"words": words}, digests)
    return failures


def record_printing(folder: Path) -> list[str]:
    """Run the kernels that print and write `printing.json`."""
    results: dict[str, Any] = {}
    failures = []
    for kernel in printing.KERNELS:
        try:
            results[kernel] = printing.run(kernel)
        except Exception as error:
            failures.append(f"printing: {kernel}: {type(error).__name__}: {error}")
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"metadata": metadata(), "results": results}, indent=1)
    (folder / "printing.json").write_text(text + "\n")
    return failures


def record_group(folder: Path, group: str) -> list[str]:
    """Record one group in this process and return what failed."""
    with cuda.Device(0):
        if group == "printing":
            return record_printing(folder)
        about = metadata()

        def save(arrays: dict[str, Array], digests: dict[str, int]) -> None:
            store.save(folder, group, arrays, {**about, "digests": digests})

        return record_random(save) if group == "random" else record_cases(group, save)


def record_all(folder: Path, groups: list[str]) -> int:
    """Record groups, a few processes at a time, and return how many had a failure."""

    def one(group: str) -> tuple[str, int, str, float]:
        start = time.monotonic()
        command = [sys.executable, __file__, str(folder), "--only", group, "--here"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_A_GROUP, check=False)
        except subprocess.TimeoutExpired:
            return group, 1, f"{group}: no end after {SECONDS_A_GROUP} s", time.monotonic() - start
        output = f"{done.stdout}{done.stderr[-3000:]}(exit status {done.returncode})"
        return group, done.returncode, output, time.monotonic() - start

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(max(1, min(6, (os.cpu_count() or 2) - 1))) as pool:
        for group, status, output, seconds in pool.map(one, groups):
            print(f"{group}: {'FAILED' if status else 'recorded'} in {seconds:.1f} s", flush=True)
            if status:
                failed += 1
                print(output, flush=True)
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())} if folder.is_dir() else {}
    print(f"{len(sizes)} files, {sum(sizes.values()) / 1e6:.2f} MB in {folder}")
    return failed


def main() -> int:
    """Record everything, or the groups named by --only."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS), metavar="GROUP")
    parser.add_argument("--here", action="store_true", help="record in this process")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    if not arguments.here:
        return record_all(folder, arguments.only)
    failures = [failure for group in arguments.only for failure in record_group(folder, group)]
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
