"""Building a program, running it with a time limit, and judging what it printed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from cudart_py.standins.library import libraries
from cudart_py.standins.library_names import DRIVER

from .python_suites import REFUSED
from .suites import Program

_BUILD_SECONDS = 600
# A program that waits for others may take this many times the limit by the clock.
_PATIENCE = 10
_POLL_SECONDS = 0.1
_TICKS = os.sysconf("SC_CLK_TCK")
# cuda-samples' exit status for a device that lacks something, and that of `cudart-py run` if it cannot start a program.
_WAIVED = 2
# Programs report with these words even if their exit status is 0.
_FAILED = re.compile(r"FAIL(ED)?\b|\bfailed\b|\bmismatch|\bincorrect\b|^\s*[Ee]rror:|\N{CROSS MARK}")
_NOT_FAILED = re.compile(
    r"\b(0|no) (fail|error|mismatch)\w*|(fail|error|mismatch)\w*\s*[:=]?\s*0\b|failed as expected", re.IGNORECASE
)
# Reports of the simulator, and the line for a thread that fails an assertion, are not the program's words.
_REPORT = re.compile(r"^cudart-py: |: block: \[\d+,\d+,\d+\], thread: \[\d+,\d+,\d+\] Assertion ")
# A launch that ends early leaves wrong results, which a program without checks would not notice.
_FAULT = re.compile(
    r"^cudart-py: kernel .*(out of bounds|took longer than the limit|misaligned|deadlock)", re.MULTILINE
)
_FINDING = re.compile(r"^cudart-py: (?!\S+ is not supported|the records of )|\bSimulatorWarning: kernel ", re.MULTILINE)
_UNITTEST = re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE)


class Result(NamedTuple):
    """The verdict on a program, the seconds that it ran, and its output.

    The seconds are those of the clock or of the processor, whichever are fewer: a program that runs beside others
    waits, and one with threads uses several processors.
    """

    verdict: str
    seconds: float
    output: str


def result_of(program: Program, limit: float) -> Result:
    """Build a program, run it, and judge it; it must end within `limit` seconds."""
    if program.needs:
        return Result(f"left out: needs {program.needs}", 0.0, "")
    error = _build(program)
    if error:
        return Result(f"does not build: {error[:100]}", 0.0, "")
    status, seconds, output = _run(program, limit)
    if seconds > limit:
        return Result(f"did not finish in {limit:g} s", seconds, output)
    return Result(_verdict(program, status, output), seconds, output)


def _run(program: Program, limit: float) -> tuple[int, float, str]:
    """Return a program's exit status, the seconds that it took, and its output. It is stopped soon after the limit."""
    begun = time.monotonic()
    with tempfile.TemporaryFile() as file:
        process = subprocess.Popen(
            program.run,
            cwd=program.folder,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, **program.environment},
            start_new_session=True,  # so that a program's own processes end with it
        )
        seconds = 0.0
        while process.poll() is None:
            time.sleep(_POLL_SECONDS)
            clock = time.monotonic() - begun
            seconds = min(clock, max(seconds, _processor_seconds(process.pid)))
            if seconds > limit or clock > _PATIENCE * limit:
                os.killpg(process.pid, signal.SIGKILL)
                seconds = max(seconds, limit + _POLL_SECONDS)
        file.seek(0)
        return process.returncode, seconds, file.read().decode(errors="replace")


def _processor_seconds(session: int) -> float:
    """Return the processor time of the processes of a session, and of those that they have waited for."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()  # from the third field on, the state
        except OSError:  # the process has ended
            continue
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS


def _verdict(program: Program, status: int, output: str) -> str:
    # make, which starts the programs of HeCBench, has a meaning of its own for this status.
    waived = status == _WAIVED and program.suite == "cuda-samples" and "cudart-py" not in output
    if waived or (program.suite == "Triton" and REFUSED.search(output)):
        return "left out: asks for a device with more"
    return verdict_of(status, output)


def _build(program: Program) -> str:
    """Build a program; return "", or the compiler's first error."""
    libcuda = str(libraries() / DRIVER)
    for command in program.build:
        completed = [libcuda if word == "@libcuda" else word for word in command]
        try:
            done = subprocess.run(
                completed, cwd=program.folder, capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"the compiler took more than {_BUILD_SECONDS} s"
        if done.returncode:
            lines = [line for line in (done.stderr + done.stdout).splitlines() if "rror" in line]
            return lines[0].strip() if lines else f"exit status {done.returncode}"
    return ""


def verdict_of(status: int, output: str) -> str:
    """Return "right", or what says that a program is not."""
    if status:
        return f"exit status {status}"
    lines = [line for line in output.splitlines() if not _REPORT.search(line)]
    wrong = next((line for line in lines if _FAILED.search(line) and not _NOT_FAILED.search(line)), None)
    if wrong:
        return f"says: {wrong.strip()[:80]}"
    fault = _FAULT.search(output)
    if fault:
        return f"a launch ends early: {fault[1]}"
    tests = _UNITTEST.search(output)
    verdict = f"right, {tests[1]} tests" if tests else "right"
    return f"{verdict}, with a finding" if _FINDING.search(output) else verdict
