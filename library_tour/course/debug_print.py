"""Print from kernels with printf: from one thread, from all, and what a shuffle reads.

On the simulator, which checks and does not time:

    $ library-tour run debug_print
    debug_print: Printing from a kernel, and what a shuffle reads
    size 1,000: threads that print
                          lines  check
    ───────────────────────────────────
    one thread                6  right
    every thread          1,000  right
    shuffle, width 32        32  right
    shuffle, width 16        32  right
    a line in two calls          caught
    more than the buffer         caught
    no synchronisation           caught
    shuffle, width 32: (0,2) (1,3) (13,15) (14,16) (15,17) (16,18) (17,19) (29,31)
    (30,30) (31,31)
    shuffle, width 16: (0,2) (1,3) (13,15) (14,14) (15,15) (16,18) (17,19) (29,31)
    (30,30) (31,31)
    a line in two calls: the first line is 'block 0, block 0, block 0, block 0,
    thread 0': other threads print between the two calls of a thread.
    more than the buffer: of 32,768 lines 21,845 are printed: a buffer of 524,288
    bytes is written in a circle and keeps the newest ones.
    no synchronisation: 0 lines are there when the launch has returned, 64 after
    device.synchronize(). A program that ends before it waits prints nothing.
    What a printf costs each thread
                    registers  bytes of stack
    ─────────────────────────────────────────
    without printf         18               0
    with printf            27              16
    The lines of one thread come in its order, and those of different threads in any
    order, because blocks and warps run in any order. Print the thread's number with
    each value and sort the lines, or let one thread print.
    A pair is a lane and the number that it reads by __shfl_down_sync(mask, lane, 2,
    width): that of the lane two places further on, or its own where that lane is
    outside its group of `width` lanes. 10 of 32 pairs are shown.
    A printf costs every thread of the kernel registers and stack, even where only
    one thread calls it. The buffer for what is printed has 7,340,032 bytes here
    (device.limits.printf_fifo_size, cudaLimitPrintfFifoSize).
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

TITLE = "Printing from a kernel, and what a shuffle reads"
SIZE = Size("threads that print", full=1000, small=1000)
BLOCK = 64
STEPS = 6
WIDTHS = (32, 16)
INSTANCES = ("root<Quiet>", "root<Prints>", *(f"shuffle_down<{width}>" for width in WIDTHS))
# Lanes on both sides of where a group of 16 and one of 32 lanes end, as the course shows them.
SHOWN_LANES = (0, 1, 13, 14, 15, 16, 17, 29, 30, 31)

Floats = NDArray[np.float32]


def reference(x: Floats) -> Floats:
    """Return the guesses of each step of Newton's method for the square roots: a row a step."""
    steps = [np.ones_like(x)]
    for _ in range(STEPS):
        steps.append(np.float32(0.5) * (steps[-1] + x / steps[-1]))
    return np.array(steps[1:])


def read_by(width: int) -> list[tuple[int, int]]:
    """Return each lane with the lane whose number it reads, two places further on in its group of `width` lanes."""
    return [(lane, lane + 2 if lane % width + 2 < width else lane) for lane in range(32)]


def run(device: cuda.Device, size: int) -> Result:
    """Print from one thread, from all and from a warp that shuffles; then print what does not arrive as meant."""
    module = load_all()
    rows = [one_thread(module, size), every_thread(module, size), *(shuffled(module, width) for width in WIDTHS)]
    rows += all_shown_wrong(
        {"a line in two calls": in_pieces, "more than the buffer": too_much, "no synchronisation": not_waited_for}
    )
    costs = [
        Row(name, {"registers": kernel.attributes.registers, "bytes of stack": kernel.attributes.local_bytes})
        for name, kernel in (("without printf", module["root<Quiet>"]), ("with printf", module["root<Prints>"]))
    ]
    notes = [
        "The lines of one thread come in its order, and those of different threads in any order, because blocks and "
        "warps run in any order. Print the thread's number with each value and sort the lines, or let one thread "
        "print.",
        "A pair is a lane and the number that it reads by __shfl_down_sync(mask, lane, 2, width): that of the lane two "
        "places further on, or its own where that lane is outside its group of `width` lanes. 10 of 32 pairs are "
        "shown.",
        "A printf costs every thread of the kernel registers and stack, even where only one thread calls it. The "
        f"buffer for what is printed has {device.limits.printf_fifo_size:,} bytes here "
        "(device.limits.printf_fifo_size, cudaLimitPrintfFifoSize).",
    ]
    return Result(rows, notes=notes, tables={"What a printf costs each thread": costs})


def load_all() -> cuda.Module:
    """Compile all kernels of this stop."""
    return load("debug_print", names=INSTANCES)


def one_thread(module: cuda.Module, size: int) -> Row:
    """Print the steps of the last thread; its lines come in order."""
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
    """Print a line in every thread; all of them come, whatever their order."""
    lines, metrics = printed_and_counted(module["every_thread"][blocks_for(size, BLOCK), BLOCK].bind(size))
    expected = [f"block {i // BLOCK}, thread {i % BLOCK}" for i in range(size)]
    check = compare_lines("every thread prints its line", sorted(lines), sorted(expected))
    return Row("every thread", {"lines": len(lines)}, check, metrics=metrics)


def shuffled(module: cuda.Module, width: int) -> Row:
    """Print what each lane of a warp reads from the lane two places further on."""
    read = poisoned(32, np.int32)
    lines, metrics = printed_and_counted(module[f"shuffle_down<{width}>"][1, 32].bind(read))
    pairs = sorted((int(lane), int(other)) for lane, other in re.findall(r"\((\d+),(\d+)\)", "".join(lines)))
    expected = read_by(width)
    stored = compare("what is read is stored", read.to_host(), np.array([other for _, other in expected], np.int32))
    told = Check(f"lanes read two places further on in groups of {width}", pairs == expected, str(pairs))
    check = told if stored.holds else stored
    shown = " ".join(f"({lane},{other})" for lane, other in pairs if lane in SHOWN_LANES)
    return Row(f"shuffle, width {width}", {"lines": len(lines)}, check, note=shown, metrics=metrics)


def printed_and_counted(launch: Callable[[], object]) -> tuple[list[str], dict[str, float]]:
    """Return the lines that a launch prints, and what was counted meanwhile."""
    metrics: dict[str, float] = {}
    lines = printed(lambda: metrics.update(counted(launch)))
    return lines, metrics


def compare_lines(fact: str, got: Sequence[str], expected: Sequence[str]) -> Check:
    """Check that the lines are the expected ones; the detail is the first that is not."""
    if list(got) == list(expected):
        return Check(fact, True)
    first = next((pair for pair in zip(got, expected, strict=False) if pair[0] != pair[1]), None)
    detail = f"{first[0]!r} instead of {first[1]!r}" if first else f"{len(got)} lines instead of {len(expected)}"
    return Check(fact, False, detail)


def in_pieces() -> str:
    """Print each thread's line by two calls, and return what the first line is instead."""
    lines = printed(load_all()["in_two_calls"][1, 4].bind(4))
    whole = [f"block 0, thread {i}" for i in range(4)]
    if sorted(lines) == whole:
        return ""
    return f"the first line is {lines[0]!r}: other threads print between the two calls of a thread."


def too_much() -> str:
    """Print more than the smallest buffer holds, and return how many lines are lost."""
    limits, size = cuda.current_device().limits, 2**15
    limits.printf_fifo_size = 0  # the driver takes the least that it can
    lines = printed(load_all()["every_thread"][blocks_for(size, BLOCK), BLOCK].bind(size))
    if len(lines) == size:
        return ""
    return (
        f"of {size:,} lines {len(lines):,} are printed: a buffer of {limits.printf_fifo_size:,} bytes is written in a "
        "circle and keeps the newest ones."
    )


def not_waited_for() -> str:
    """Print, and look at the output before and after waiting; return how many lines there are."""
    with redirect_stdout(io.StringIO()) as text:
        load_all()["every_thread"][1, BLOCK](BLOCK)
        before = len(text.getvalue().splitlines())
        cuda.current_device().synchronize()
        after = len(text.getvalue().splitlines())
    if before == after:
        return ""
    return (
        f"{before} lines are there when the launch has returned, {after} after device.synchronize(). A program that "
        "ends before it waits prints nothing."
    )
