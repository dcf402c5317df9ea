"""Load and run damaged PTX on the simulator, and count the outcomes.

    python -m tests.fuzz.ptx_mutants --count 4000 --seed 1

Each mutant is a text from `kernels/`, the conformance tests or `tests/launch` with a few bytes, words or lines changed,
deleted, swapped or duplicated. It is loaded, and its kernels are launched with plausible arguments, in a process with a
time limit. If a module is refused, the report must name the line, or the variable that no module defines. An error in a
kernel must become a driver status. Anything else, such as a crash, a hang or an internal error, is a bug in the
simulator. The exit status is 1 if there is any.
"""

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
from typing import Any

from tests.simulator.ptx.machine import ptx_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Larger texts take longer without finding more.
LARGEST = 60_000
# The maximum number of kernels launched per mutant, and the threads per block.
MOST_LAUNCHES = 4
THREADS = 64
BUFFER = 1 << 16
SECONDS = 60
# Outcomes that no mutant may have.
MISTAKES = ("no answer", "inscrutable")
# Statuses with which a module may be refused.
REFUSED = ("INVALID_PTX", "UNSUPPORTED_PTX_VERSION", "NOT_SUPPORTED", "OUT_OF_MEMORY")
# Statuses of faults in kernels and of refused launches.
FAULTS = (
    "ILLEGAL_ADDRESS", "MISALIGNED_ADDRESS", "LAUNCH_FAILED", "LAUNCH_TIMEOUT", "INVALID_PC", "INVALID_ADDRESS_SPACE",
    "ASSERT", "OUT_OF_MEMORY", "INVALID_VALUE", "LAUNCH_OUT_OF_RESOURCES", "INVALID_CLUSTER_SIZE",
    "ILLEGAL_INSTRUCTION", "NOT_SUPPORTED",
)  # fmt: skip  # a list of words


def texts() -> list[str]:
    """Return the PTX texts to damage."""
    tests = ROOT / "tests"
    folders = (ROOT / "kernels", tests / "conformance" / "kernels", tests / "launch")
    files = sorted(path for folder in folders for path in folder.glob("*.cu"))
    compiled = [ptx_of(path.read_text(), ("--device-int128", f"-I{path.parent}")) for path in files]
    recorded = [path.read_text() for path in sorted((tests / "launch" / "data").glob("*.ptx"))]
    return [text for text in compiled + recorded if len(text) < LARGEST]


def mutant(text: str, rng: random.Random) -> str:
    """Return a text with one to three random changes."""
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
    """Delete or duplicate a word or a part of an opcode, or replace it by another one from the text."""

    def make(found: list[re.Match[str]], word: str) -> str:
        return rng.choice(("", word + word, rng.choice(found)[0], rng.choice(found)[0], rng.choice(found)[0]))

    return _replaced(rng.choice((r"[.%$\w]+", r"\.\w+", r"%\w+", r"\w+")), text, rng, make)


def _number(text: str, rng: random.Random) -> str:
    numbers = (0, 1, -1, 3, 7, 255, 65536, 2147483648, 99999999999, 18446744073709551616, "0x", "1e9")
    return _replaced(r"\b\d+\b", text, rng, lambda found, word: str(rng.choice(numbers)))


def _line(text: str, rng: random.Random) -> str:
    """Delete, duplicate or move a line, or swap two lines."""
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


def _begin() -> None:
    """Prepare a worker process: kernels print nothing, and end after a limited number of steps."""
    from cudart_py.simulator import driver

    os.environ.setdefault("CUDART_PY_SIMULATOR_STEPS", "50000")
    warnings.simplefilter("ignore")  # findings of the sanitizer in damaged kernels don't count
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # open until the process ends
    driver.cuInit(0)


def outcome(text: str) -> tuple[str, str]:
    """Load PTX and launch its kernels in a new context; return the outcome and the report."""
    from cudart_py.simulator import driver

    driver.take_report()
    driver.cuDevicePrimaryCtxReset(0)
    (_, context) = driver.cuDevicePrimaryCtxRetain(0)
    driver.cuCtxSetCurrent(context)
    status, module = driver.cuModuleLoadData(text.encode("utf-8", "replace") + b"\0")
    if status:
        report = driver.take_report() or ""
        sentences = ("line", "PTX: it has no .version", " bytes of constant ", "is external, but the image does not")
        named = status.name != "CUDA_ERROR_INVALID_PTX" or any(sentence in report for sentence in sentences)
        return _judged("refused", status, REFUSED if named else (), report)
    _, count = driver.cuModuleGetFunctionCount(module)
    _, kernels = driver.cuModuleEnumerateFunctions(min(count, MOST_LAUNCHES), module)
    _, buffer = driver.cuMemAlloc(BUFFER)
    driver.cuMemsetD8(buffer, 0, BUFFER)
    for kernel in kernels[:count]:
        status = _launched(driver, kernel, int(buffer))
        if status:
            return _judged("fault", status, FAULTS, driver.take_report() or "")
    return "loaded and ran", ""


def _judged(what: str, status: Any, expected: Sequence[str], report: str) -> tuple[str, str]:
    known = status.name.removeprefix("CUDA_ERROR_") in expected
    return f"{what}, {status.name}" if known else "inscrutable", f"{status.name}: {report}"


def _launched(driver: Any, kernel: Any, buffer: int) -> Any:
    """Launch a kernel with a pointer for each 8-byte parameter and a small number for others; return the status."""
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


def run(sources: Sequence[str], count: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """Yield the outcome, the report and the text of each mutant; the outcome of a crash or hang is "no answer"."""
    rng = random.Random(seed)
    while count:
        with multiprocessing.get_context("spawn").Pool(1, _begin) as pool:
            while count:
                count -= 1
                text = mutant(rng.choice(sources), rng)
                try:
                    yield *pool.apply_async(outcome, (text,)).get(SECONDS), text
                except multiprocessing.TimeoutError:
                    yield "no answer", f"crashed, or no end after {SECONDS} s", text
                    break
                except Exception as error:
                    yield "inscrutable", f"{type(error).__name__}: {error}", text


def main() -> int:
    """Run mutants, print a table of outcomes, and save the mutants that show mistakes; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=4000, help="number of mutants")
    parser.add_argument("--seed", type=int, default=1, help="seed of the mutants")
    parser.add_argument("--keep", type=pathlib.Path, default=".", help="the folder for the mutants that show mistakes")
    arguments = parser.parse_args()
    counts = collections.Counter(dict.fromkeys(MISTAKES, 0))
    for result, report, text in run(texts(), arguments.count, arguments.seed):
        counts[result] += 1
        if result in MISTAKES:
            path = arguments.keep / f"mutant_{arguments.seed}_{counts.total()}.ptx"
            path.write_text(text)
            print(f"{path}: {result}: {report}", flush=True)
    for result, number in sorted(counts.items()):
        print(f"{number:6}  {result}")
    return int(any(counts[result] for result in MISTAKES))


if __name__ == "__main__":
    sys.exit(main())
