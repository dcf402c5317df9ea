"""Load and run damaged PTX on the simulator, and count what comes of it.

    python -m tests.fuzz.ptx_mutants --count 4000 --seed 1

Each mutant is a text of `kernels/`, of the conformance tests or of `tests/launch` with a few bytes, words or lines
changed, deleted, swapped or doubled. It is loaded, and its kernels are launched with plausible arguments, in processes
with a time limit. A module that is refused says the line, or the name of a variable that no module has; what a kernel
does wrong is a status of the driver's. Anything else, a crash, a hang or an error from inside, is a mistake of the
simulator's: there must be none, and the exit status says so.
"""

from __future__ import annotations

import argparse
import collections
import ctypes
import multiprocessing
import os
import pathlib
import random
import re
import struct
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

from cudart_py.compilation import headers
from cudart_py.compilation.programs import Program, library_path, library_version

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Larger texts only take longer.
LARGEST = 60_000
# Kernels of a mutant that are launched, and the threads of each.
MOST_LAUNCHES = 4
THREADS = 64
BUFFER = 1 << 16
SECONDS = 60
# What a kernel may do wrong, and what a launch refuses.
FAULTS = {
    "CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_MISALIGNED_ADDRESS", "CUDA_ERROR_LAUNCH_FAILED",
    "CUDA_ERROR_LAUNCH_TIMEOUT", "CUDA_ERROR_INVALID_PC", "CUDA_ERROR_INVALID_ADDRESS_SPACE", "CUDA_ERROR_ASSERT",
    "CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
    "CUDA_ERROR_INVALID_CLUSTER_SIZE", "CUDA_ERROR_ILLEGAL_INSTRUCTION", "CUDA_ERROR_NOT_SUPPORTED",
}  # fmt: skip  # a list of words


def compiled(path: pathlib.Path) -> str:
    """Return the PTX of a file of CUDA C++."""
    folders = [*headers.find(library_version(), library_path()).folders, path.parent]
    options = [
        "--gpu-architecture=compute_90",
        "-lineinfo",
        "--std=c++17",
        "--device-int128",
        *(f"-I{folder}" for folder in folders),
    ]
    with Program(path.read_text(), name=path.name, options=options) as program:
        program.compile()
        return program.ptx.decode().rstrip("\0")


def texts() -> list[str]:
    """Return the PTX that is to be damaged."""
    tests = ROOT / "tests"
    folders = (ROOT / "kernels", tests / "conformance" / "kernels", tests / "launch")
    files = sorted(path for folder in folders for path in folder.glob("*.cu"))
    recorded = [path.read_text() for path in sorted((tests / "launch" / "data").glob("*.ptx"))]
    return [text for text in [*map(compiled, files), *recorded] if len(text) < LARGEST]


def mutant(text: str, rng: random.Random) -> str:
    """Return a text with one to three changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        text = rng.choice((_byte, _byte, _word, _word, _word, _number, _line, _line))(text, rng)
    return text


def _byte(text: str, rng: random.Random) -> str:
    place = rng.randrange(len(text))
    new = rng.choice(("", text[place] * 2, chr(rng.randrange(32, 127)), rng.choice(";{}[],.%:@()<>\n\x00")))
    return text[:place] + new + text[place + 1 :]


def _replaced(pattern: str, text: str, rng: random.Random, make: Callable[[list[re.Match[str]], str], str]) -> str:
    found = list(re.finditer(pattern, text))
    if not found:
        return text
    match = rng.choice(found)
    return text[: match.start()] + make(found, match[0]) + text[match.end() :]


def _word(text: str, rng: random.Random) -> str:
    """Delete or double a word or a part of an opcode, or put another one of the text in its place."""

    def make(found: list[re.Match[str]], word: str) -> str:
        return rng.choice(("", word + word, rng.choice(found)[0], rng.choice(found)[0], rng.choice(found)[0]))

    return _replaced(rng.choice((r"[.%$\w]+", r"\.\w+", r"%\w+", r"\w+")), text, rng, make)


def _number(text: str, rng: random.Random) -> str:
    numbers = (
        "0",
        "1",
        "-1",
        "3",
        "7",
        "255",
        "65536",
        "2147483648",
        "99999999999",
        "18446744073709551616",
        "0x",
        "1e9",
    )
    return _replaced(r"\b\d+\b", text, rng, lambda found, word: rng.choice(numbers))


def _line(text: str, rng: random.Random) -> str:
    """Delete, double or move a line, or swap two."""
    lines = text.split("\n")
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    what = rng.randrange(4)
    if what == 0:
        del lines[first]
    elif what == 1:
        lines.insert(second, lines[first])
    elif what == 2:
        lines.insert(second, lines.pop(first))
    else:
        lines[first], lines[second] = lines[second], lines[first]
    return "\n".join(lines)


def outcome(text: str) -> tuple[str, str]:
    """Load a text and launch its kernels in a context of its own; return what came of it, and the report."""
    from cudart_py.simulator import driver

    driver.take_report()
    driver.cuDevicePrimaryCtxReset(0)
    (_, context) = driver.cuDevicePrimaryCtxRetain(0)
    driver.cuCtxSetCurrent(context)
    status, module = driver.cuModuleLoadData(text.encode("utf-8", "replace") + b"\0")
    if status:
        report = driver.take_report() or ""
        sentences = ("line", "PTX: it has no .version", " bytes of constant ", "is external, and no module has it")
        named = any(sentence in report for sentence in sentences)
        if status.name == "CUDA_ERROR_INVALID_PTX" and not named:
            return "inscrutable", report
        expected = (
            "CUDA_ERROR_INVALID_PTX",
            "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
            "CUDA_ERROR_NOT_SUPPORTED",
            "CUDA_ERROR_OUT_OF_MEMORY",
        )
        return (f"refused, {status.name}" if status.name in expected else "inscrutable"), report
    _, count = driver.cuModuleGetFunctionCount(module)
    _, kernels = driver.cuModuleEnumerateFunctions(min(count, MOST_LAUNCHES), module)
    _, buffer = driver.cuMemAlloc(BUFFER)
    driver.cuMemsetD8(buffer, 0, BUFFER)
    for kernel in kernels[:count]:
        status = _launched(driver, kernel, int(buffer))
        if status:
            report = driver.take_report() or ""
            return (f"fault, {status.name}" if status.name in FAULTS else "inscrutable"), f"{status.name}: {report}"
    return "loaded and ran", ""


def _launched(driver: Any, kernel: Any, buffer: int) -> Any:
    """Launch a kernel with a pointer for each parameter of 8 bytes and a small number for others; return the status."""
    values = []
    while True:
        status, _, size = driver.cuFuncGetParamInfo(kernel, len(values))
        if status:
            break
        number = struct.pack("<Q", buffer) if size == 8 else struct.pack("<I", THREADS)
        values.append(ctypes.create_string_buffer(number[:size].ljust(size, b"\0"), max(size, 1)))
    pointers = (ctypes.c_void_p * max(len(values), 1))(*map(ctypes.addressof, values))
    (status,) = driver.cuLaunchKernel(kernel, 2, 1, 1, THREADS, 1, 1, 0, 0, ctypes.addressof(pointers), 0)
    return status or driver.cuCtxSynchronize()[0]


def _worker(connection: Connection) -> None:
    os.environ.setdefault("CUDART_PY_SIMULATOR_STEPS", "50000")
    warnings.simplefilter("ignore")  # the checks report what damaged kernels do, which is not counted
    with open(os.devnull, "w") as sink:
        sys.stdout = sink
        from cudart_py.simulator import driver

        driver.cuInit(0)
        while True:
            text = connection.recv()
            try:
                result = outcome(text)
            except Exception as error:
                result = "inscrutable", f"{type(error).__name__}: {error}"
            connection.send(result)


class _Process:
    """A process that runs mutants one after the other, replaced when it dies or takes too long."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, child = context.Pipe()
        self._process = context.Process(target=_worker, args=(child,), daemon=True)
        self._process.start()
        child.close()

    def run(self, text: str) -> tuple[str, str]:
        """Return what comes of a text."""
        try:
            self._connection.send(text)
            if self._connection.poll(SECONDS):
                result: tuple[str, str] = self._connection.recv()
                return result
            result = "hang", f"no end after {SECONDS} s"
        except (EOFError, OSError):
            self._process.join()
            result = "crash", f"exit status {self._process.exitcode}"
        self.close()
        self._start()
        return result

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._connection.close()


def run(sources: Sequence[str], count: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """Yield the outcome, the report and the text of each mutant."""
    rng = random.Random(seed)
    process = _Process()
    try:
        for _ in range(count):
            text = mutant(rng.choice(sources), rng)
            yield *process.run(text), text
    finally:
        process.close()


def main() -> int:
    """Run mutants, print a table of outcomes, and keep the texts of those that must not be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=4000, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="which mutants")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the texts of those that must not be")
    arguments = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    for result, report, text in run(texts(), arguments.count, arguments.seed):
        counts[result] += 1
        if result in ("crash", "hang", "inscrutable"):
            print(f"{result}: {report}", flush=True)
            if arguments.keep:
                arguments.keep.mkdir(parents=True, exist_ok=True)
                (arguments.keep / f"{result}-{counts[result]}.ptx").write_text(text)
    for result in ("crash", "hang", "inscrutable"):
        counts.setdefault(result, 0)
    for result, number in sorted(counts.items()):
        print(f"{number:6}  {result}")
    return 1 if counts["crash"] + counts["hang"] + counts["inscrutable"] else 0


if __name__ == "__main__":
    sys.exit(main())
