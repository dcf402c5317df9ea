"""Print from kernels with printf: from one thread, from all threads, and from lanes that shuffle.

On the simulator, which checks results but does not measure time:

    $ library-tour run debug_print
    debug_print: printf in a kernel, and the lanes that a shuffle reads
    size 1,000: threads that print
                           lines  check
    ────────────────────────────────────
    one thread                 6  right
    every thread           1,000  right
    shuffle, width 32         32  right
    shuffle, width 16         32  right
    one line in two calls         caught
    buffer overflow               caught
    no synchronisation            caught
    shuffle, width 32: (0,2) (1,3) (13,15) (14,16) (15,17) (16,18) (17,19) (29,31)
    (30,30) (31,31)
    shuffle, width 16: (0,2) (1,3) (13,15) (14,14) (15,15) (16,18) (17,19) (29,31)
    (30,30) (31,31)
    one line in two calls: the first line is 'block 0, block 0, block 0, block 0,
    thread 0': other threads print between a thread's two calls.
    buffer overflow: only 21,845 of 32,768 lines are printed. For this row, the
    buffer is set to its smallest size, 524,288 bytes. It is circular, and new lines
    overwrite the oldest ones.
    no synchronisation: 0 lines have arrived when the launch returns, 64 after
    device.synchronize(). A program that ends without waiting prints nothing.
    Cost of printf per thread
                    registers  stack bytes
    ──────────────────────────────────────
    without printf         18            0
    with printf            27           16
    The lines of one thread arrive in order. Lines of different threads arrive in
    any order, because blocks and warps run in any order. Print the thread's index
    with each value and sort the lines, or let only one thread print.
    Each pair is a lane and the value that it reads with __shfl_down_sync(mask,
    lane, 2, width): the number of the lane two places further on, or its own number
    if that lane is outside its group of `width` lanes. 10 of the 32 pairs are
    shown.
    Calling printf takes registers and stack space in every thread of the kernel,
    even if only one thread calls it. The buffer for printed text holds 7,340,032
    bytes here (device.limits.printf_fifo_size, cudaLimitPrintfFifoSize).
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..checks import compare, poisoned
from ..counters import counted
from ..device_code import blocks_for, load
from ..printing import printed
from ..stop import Check, Result, Row, Size
from ..wrong import all_shown_wrong

TITLE = "printf in a kernel, and the lanes that a shuffle reads"
SIZE = Size("threads that print", full=1000, small=1000)
BLOCK = 64
STEPS = 6
WIDTHS = (32, 16)
INSTANCES = ("root<Quiet>", "root<Prints>", *(f"shuffle_down<{width}>" for width in WIDTHS))
# Lanes around the ends of groups of 16 and of 32 lanes, as in the lectures.
SHOWN_LANES = (0, 1, 13, 14, 15, 16, 17, 29, 30, 31)

Floats = NDArray[np.float32]


def reference(x: Floats) -> Floats:
    """Return the guesses of Newton's method for the square roots, one row per step."""
    steps = [np.ones_like(x)]
    for _ in range(STEPS):
        steps.append(np.float32(0.5) * (steps[-1] + x / steps[-1]))
    return np.array(steps[1:])


def read_by(width: int) -> list[tuple[int, int]]:
    """Return pairs of a lane and the lane that it reads: two further on, or itself at the end of its group."""
    return [(lane, lane + 2 if lane % width + 2 < width else lane) for lane in range(32)]


def run(device: cuda.Device, size: int) -> Result:
    """Print from one thread, from all, and from a warp that shuffles; then print what does not arrive as intended."""
    module = load_all()
    rows = [one_thread(module, size), every_thread(module, size), *(shuffled(module, width) for width in WIDTHS)]
    rows += all_shown_wrong(
        {"one line in two calls": in_pieces, "buffer overflow": too_much, "no synchronisation": not_waited_for}
    )
    costs = [
        Row(name, {"registers": kernel.attributes.registers, "stack bytes": kernel.attributes.local_bytes})
        for name, kernel in (("without printf", module["root<Quiet>"]), ("with printf", module["root<Prints>"]))
    ]
    notes = [
        "The lines of one thread arrive in order. Lines of different threads arrive in any order, because blocks and "
        "warps run in any order. Print the thread's index with each value and sort the lines, or let only one thread "
        "print.",
        "Each pair is a lane and the value that it reads with __shfl_down_sync(mask, lane, 2, width): the number of "
        "the lane two places further on, or its own number if that lane is outside its group of `width` lanes. 10 of "
        "the 32 pairs are shown.",
        "Calling printf takes registers and stack space in every thread of the kernel, even if only one thread calls "
        f"it. The buffer for printed text holds {device.limits.printf_fifo_size:,} bytes here "
        "(device.limits.printf_fifo_size, cudaLimitPrintfFifoSize).",
    ]
    return Result(rows, notes=notes, tables={"Cost of printf per thread": costs})


def load_all() -> cuda.Module:
    """Compile all kernels of this stop."""
    return load("debug_print", names=INSTANCES)


def one_thread(module: cuda.Module, size: int) -> Row:
    """Print the steps of the last thread, whose lines arrive in order."""
    x = np.random.default_rng().uniform(1, 4, size).astype(np.float32)
    steps = reference(x)
    roots, watched = poisoned(size, np.float32), size - 1
    grid = blocks_for(size, BLOCK)
    lines, metrics = printed_and_counted(
        module["root<Prints>"][grid, BLOCK].bind(cuda.to_device(x), roots, size, watched)
    )
    expected = [f"step {step}: {guess:.7f}" for step, guess in enumerate(steps[:, watched], start=1)]
    right = compare("the roots are right", roots.to_host(), steps[-1])
    check = compare_lines("one thread prints its steps in order", lines, expected) if right.holds else right
    return Row("one thread", {"lines": len(lines)}, check, metrics=metrics)


def every_thread(module: cuda.Module, size: int) -> Row:
    """Print one line per thread; all lines arrive, in any order."""
    lines, metrics = printed_and_counted(module["every_thread"][blocks_for(size, BLOCK), BLOCK].bind(size))
    expected = [f"block {i // BLOCK}, thread {i % BLOCK}" for i in range(size)]
    check = compare_lines("every thread prints its line", sorted(lines), sorted(expected))
    return Row("every thread", {"lines": len(lines)}, check, metrics=metrics)


def shuffled(module: cuda.Module, width: int) -> Row:
    """Print the value that each lane of a warp reads from the lane two further on."""
    read = poisoned(32, np.int32)
    lines, metrics = printed_and_counted(module[f"shuffle_down<{width}>"][1, 32].bind(read))
    pairs = sorted((int(lane), int(other)) for lane, other in re.findall(r"\((\d+),(\d+)\)", "".join(lines)))
    expected = read_by(width)
    stored = compare("the values read are stored", read.to_host(), np.array([other for _, other in expected], np.int32))
    told = Check(f"lanes read the lane two further on, in groups of {width}", pairs == expected, str(pairs))
    check = told if stored.holds else stored
    shown = " ".join(f"({lane},{other})" for lane, other in pairs if lane in SHOWN_LANES)
    return Row(f"shuffle, width {width}", {"lines": len(lines)}, check, note=shown, metrics=metrics)


def printed_and_counted(launch: Callable[[], object]) -> tuple[list[str], dict[str, float]]:
    """Return the lines that a launch prints, and its counters."""
    metrics: dict[str, float] = {}
    lines = printed(lambda: metrics.update(counted(launch)))
    return lines, metrics


def compare_lines(fact: str, got: Sequence[str], expected: Sequence[str]) -> Check:
    """Check that the lines are the expected ones; the detail shows the first difference."""
    if list(got) == list(expected):
        return Check(fact, True)
    first = next((pair for pair in zip(got, expected, strict=False) if pair[0] != pair[1]), None)
    detail = f"{first[0]!r} instead of {first[1]!r}" if first else f"{len(got)} lines instead of {len(expected)}"
    return Check(fact, False, detail)


def in_pieces() -> str:
    """Print each thread's line in two calls, and report the first line."""
    lines = printed(load_all()["in_two_calls"][1, 4].bind(4))
    whole = [f"block 0, thread {i}" for i in range(4)]
    if sorted(lines) == whole:
        return ""
    return f"the first line is {lines[0]!r}: other threads print between a thread's two calls."


def too_much() -> str:
    """Print more than the smallest buffer holds, and report how many lines are left."""
    limits, size = cuda.current_device().limits, 2**15
    limits.printf_fifo_size = 0  # the driver rounds this up to its minimum
    lines = printed(load_all()["every_thread"][blocks_for(size, BLOCK), BLOCK].bind(size))
    if len(lines) == size:
        return ""
    return (
        f"only {len(lines):,} of {size:,} lines are printed. For this row, the buffer is set to its smallest size, "
        f"{limits.printf_fifo_size:,} bytes. It is circular, and new lines overwrite the oldest ones."
    )


def not_waited_for() -> str:
    """Print, and report how many lines have arrived before and after waiting."""
    with redirect_stdout(io.StringIO()) as text:
        load_all()["every_thread"][1, BLOCK](BLOCK)
        before = len(text.getvalue().splitlines())
        cuda.current_device().synchronize()
        after = len(text.getvalue().splitlines())
    if before == after:
        return ""
    return (
        f"{before} lines have arrived when the launch returns, {after} after device.synchronize(). A program that ends "
        "without waiting prints nothing."
    )
