"""Build unmodified programs of public suites with nvcc, run them with `cudart-py run`, and print a table.

    python -m tests.programs.executables --cuda-samples DIR --hecbench DIR --built DIR

A program is right if its exit status is 0 and none of its lines says that it failed. Its own checks compare its results
with a reference on the host. `docs/public-programs.md` has the suites' versions and the results.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from cudart_py.standins.library import libraries
from cudart_py.standins.library_names import DRIVER

from .suites import Program, build, cuda_samples, hecbench

# Programs report with these words even if their exit status is 0.
_FAILED = re.compile(r"FAIL(ED)?\b|\b[Tt]est failed|\bmismatch|\bincorrect\b|\b[Ee]rror:")
_FINDING = re.compile(r"^cudart-py: (?!\S+ is not supported)", re.MULTILINE)
_NOT_FAILURES = re.compile(r"\b(0|no) (fail|error|mismatch)\w*|(fail|error|mismatch)\w*\s*[:=]?\s*0\b", re.IGNORECASE)
_WAIVED = 2


def main() -> int:
    """Build and run the programs, print the table, and return how many are not right."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.programs.executables", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--cuda-samples", type=Path, metavar="DIR", help="a checkout of cuda-samples")
    parser.add_argument("--hecbench", type=Path, metavar="DIR", help="a checkout of HeCBench")
    parser.add_argument("--built", type=Path, required=True, metavar="DIR", help="where programs are built")
    parser.add_argument("--count", type=int, default=150, help="how many of HeCBench's programs are drawn")
    parser.add_argument("--seed", type=int, default=2026, help="of that draw")
    parser.add_argument("--limit", type=float, default=60, help="seconds after which a program is stopped")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results and the outputs there too")
    options = parser.parse_args()
    programs: list[Program] = []
    if options.cuda_samples:
        programs += cuda_samples(options.cuda_samples.resolve(), options.built.resolve())
    if options.hecbench:
        programs += hecbench(options.hecbench.resolve(), options.built.resolve(), options.count, options.seed)
    chosen = [program for program in programs if program.name in (options.only or [program.name])]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = []
        for program, result in zip(
            chosen, pool.map(lambda program: _result(program, options.limit), chosen), strict=True
        ):
            print(f"| {program.suite} | {program.name} | {result[0]} | {result[1]:.1f} s |", flush=True)
            results.append(result)
    counted = [result for program, result in zip(chosen, results, strict=True) if not program.needs]
    right = sum(verdict == "right" for verdict, _, _ in counted)
    print(f"\n{right} of {len(counted)} are right within {options.limit:g} s")
    if options.json:
        rows = [
            {"suite": program.suite, "name": program.name, "verdict": verdict, "seconds": seconds, "output": output}
            for program, (verdict, seconds, output) in zip(chosen, results, strict=True)
        ]
        options.json.write_text(json.dumps(rows, indent=1))
    return len(counted) - right


def _result(program: Program, limit: float) -> tuple[str, float, str]:
    """Build and run a program; return the verdict, the seconds that it ran, and its output."""
    if program.needs:
        return f"left out: needs {program.needs}", 0.0, ""
    error = build(program, libraries() / DRIVER, dict(os.environ))
    if error:
        return f"does not build: {error[:100]}", 0.0, ""
    command = program.run if program.suite == "HeCBench" else [sys.executable, "-m", "cudart_py", "run", *program.run]
    begun = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=program.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return f"did not finish in {limit:g} s", time.monotonic() - begun, output
    return _verdict(process.returncode, output), time.monotonic() - begun, output


def _verdict(status: int, output: str) -> str:
    if status == _WAIVED and "waiv" in output.lower():
        return "waived by itself"
    if status:
        return f"exit status {status}"
    lines = output.splitlines()
    wrong = next((line for line in lines if _FAILED.search(line) and not _NOT_FAILURES.search(line)), None)
    if wrong:
        return f"says: {wrong.strip()[:80]}"
    return "right, with a finding" if _FINDING.search(output) else "right"


if __name__ == "__main__":
    sys.exit(main())
