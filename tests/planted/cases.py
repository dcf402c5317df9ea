"""The planted mistakes: kernels of the `.cu` files beside this one, how each is launched, and who may find it.

A line with a mistake ends in `// BUG name`; where a value that nobody wrote is read on an earlier line than the one
it does harm on, that line ends in `// READ name`. Device memory that nobody gives back is a mistake of the host's:
its lines are in this file and say `# LEAK name`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

import cudart_py as cuda

FOLDER = Path(__file__).parent
Run = Callable[[cuda.Module], object]


@dataclass(frozen=True)
class Case:
    """A planted mistake of one kind, in a kernel of a file; `run` launches it on fresh arguments.

    `finding` is how the simulator's report begins, `status` the error that the launch ends with, if any. `tool` is
    compute-sanitizer's part that looks for such mistakes; it is empty where there is none and where a GPU would hang.
    """

    name: str
    kind: str
    file: str
    finding: str
    run: Run
    kernel: str = ""
    tool: str = ""
    status: str = ""

    @property
    def lines(self) -> set[int]:
        """The lines that are marked with the mistake."""
        marks = marked(self.file, "LEAK" if self.file == "cases.py" else "BUG")
        return marks.get(self.name) or marks[self.kernel]


@cache
def marked(file: str, word: str = "BUG") -> dict[str, set[int]]:
    """Give the numbers of the lines that a file marks with a word, by name."""
    found: dict[str, set[int]] = {}
    for number, line in enumerate((FOLDER / file).read_text(encoding="utf-8").splitlines(), 1):
        for name in re.findall(rf"(?://|#) {word} (\w+)", line):
            found.setdefault(name, set()).add(number)
    return found


@cache
def compiled(file: str) -> cuda.Module:
    """Compile and load a file, once in a process."""
    return cuda.compile(FOLDER / file)


ints = partial(cuda.zeros, dtype=np.int32)
floats = partial(cuda.zeros, dtype=np.float32)
words = partial(cuda.zeros, dtype=np.uint32)
unwritten = partial(cuda.empty, dtype=np.int32)


def counted(count: int) -> cuda.DeviceArray:
    """Return 0, 1, 2 and so on, as floats."""
    return cuda.to_device(np.arange(count, dtype=np.float32))


def freed(count: int) -> cuda.Pointer:
    """Return the address of memory that has been given back."""
    array = ints(count)
    address = int(array.pointer)
    array.close()
    cuda.current_device().synchronize()
    return cuda.Pointer(address)


def _two_streams(first: str, second: str) -> Run:
    """Launch two kernels on the same memory in two streams, with nothing between them."""

    def run(module: cuda.Module) -> None:
        x, out = floats(256), floats(256)
        cuda.current_device().synchronize()
        streams = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
        for name, stream in zip((first, second), streams, strict=True):
            arguments: tuple[object, ...] = (x, 2.0) if name == "produce" else (out, x)
            module[name][4, 64, 0, stream](*arguments)
        for stream in streams:
            stream.synchronize()

    return run


_kept: list[cuda.DeviceArray] = []


def _leaked_array(module: cuda.Module) -> None:
    _kept.append(cuda.empty(1000, np.int32))  # LEAK leaked_array


def _leaked_rows(module: cuda.Module) -> None:
    for _ in range(3):
        rows = cuda.empty_pitched((4, 100), np.float32)  # LEAK leaked_rows
        _kept.append(rows[1:])


Arguments = Callable[[], tuple[object, ...]]
Row = tuple[str, tuple[int, ...], Arguments]


def _cases(kind: str, file: str, finding: str, *rows: Row, tool: str = "", status: str = "") -> list[Case]:
    """Make the cases of a kind: for each, its name and, after a colon, a kernel of another name; shape; arguments."""

    def case(label: str, shape: tuple[int, ...], arguments: Arguments) -> Case:
        name, _, kernel = label.partition(":")
        kernel = kernel or name
        return Case(name, kind, file, finding, lambda m: m[kernel][shape](*arguments()), kernel, tool, status)

    return [case(*row) for row in rows]


def _bounds() -> list[Case]:
    file, tool, beyond, wrong = "bounds.cu", "memcheck", "ILLEGAL_ADDRESS", "MISALIGNED_ADDRESS"
    far = 1 << 20
    return [
        *_cases(
            "out of bounds, global memory", file, r"a global \w+ of 4 bytes",
            ("out_of_bounds", (3, 32), lambda: (ints(64), 0)),
            ("read_past", (1, 64), lambda: (ints(64), ints(64))),
            tool=tool, status=beyond,
        ),
        *_cases(
            "use after free", file, r"a global \w+ of 4 bytes",
            ("write_after_free:out_of_bounds", (1, 32), lambda: (freed(64), 0)),
            ("read_after_free:read_past", (1, 32), lambda: (ints(64), freed(64))),
            ("heap_after_free", (1, 1), lambda: (ints(1),)),
            tool=tool, status=beyond,
        ),
        *_cases(
            "out of bounds, shared memory", file, r"a shared \w+ of 4 bytes",
            ("beyond_shared", (1, 32), lambda: (ints(64), 1)),
            ("before_shared", (1, 32, 128), lambda: (ints(64), 3)),
            tool=tool, status=beyond,
        ),
        *_cases(
            "out of bounds, local memory", file, r"a local \w+ of 4 bytes",
            ("beyond_local", (1, 32), lambda: (ints(32), far)),
            ("before_local", (1, 32), lambda: (ints(32), far)),
            tool=tool, status=beyond,
        ),
        *_cases(
            "out of bounds, constant memory", file, r"a \w+ read of 4 bytes",
            ("beyond_constant", (1, 32), lambda: (ints(32), far)),
            ("before_constant", (1, 32), lambda: (ints(32), far)),
            tool=tool, status=beyond,
        ),
        *_cases(
            "misaligned access", file, r"a \w+ \w+ of \d bytes",
            ("misaligned", (1, 8), lambda: (cuda.zeros(64, np.int8),)),
            ("misaligned_pair", (1, 1), lambda: (floats(8),)),
            ("misaligned_shared", (1, 32), lambda: (ints(32), 2)),
            ("misaligned_local", (1, 32), lambda: (ints(32), 2)),
            tool=tool, status=wrong,
        ),
        *_cases(
            "stack overflow", file, "stack overflow",
            ("recursion", (1, 1), lambda: (ints(1), 1000)),
            ("mutual_recursion", (1, 1), lambda: (ints(1), 1000)),
            tool=tool, status="LAUNCH_FAILED",
        ),
    ]  # fmt: skip  # rows of a table


def _values() -> list[Case]:
    file, finding = "values.cu", "uninitialised value reaches"
    return [
        *_cases(
            "uninitialised global memory", file, finding,
            ("copy_uninitialised", (1, 32), lambda: (ints(32), unwritten(32))),
            ("address_from_global", (1, 32), lambda: (ints(8), unwritten(32))),
            ("heap_uninitialised", (1, 4), lambda: (ints(4),)),
            tool="initcheck",
        ),
        *_cases(
            "uninitialised shared memory", file, finding,
            ("branch_on_shared", (1, 64), lambda: (ints(1),)),
            ("store_from_shared", (1, 64), lambda: (cuda.zeros(64, np.uint8),)),
        ),
        *_cases(
            "uninitialised local memory", file, finding,
            ("local_to_store", (1, 32), lambda: (ints(32), 4, 9)),
            ("local_to_address", (1, 32), lambda: (ints(8), 4, 9)),
        ),
    ]  # fmt: skip  # rows of a table


def _barriers() -> list[Case]:
    file = "barriers.cu"
    return [
        *_cases(
            "divergent barrier", file, "divergent barrier",
            ("some_miss_a_barrier", (1, 64), lambda: (ints(64), 32)),
            ("two_barriers", (1, 64), lambda: (ints(64), 32)),
            ("barriers_in_an_unequal_loop", (1, 64), lambda: (ints(200),)),
            tool="synccheck",
        ),
        *_cases(
            "barrier in a function", "groups.cu", "divergent barrier",
            ("inlined_barriers", (1, 64), lambda: (ints(64), 32)),
            ("called_barriers", (1, 64), lambda: (ints(64), 32)),
            ("groups_sync_apart", (1, 64), lambda: (ints(64), 32)),
            tool="synccheck",
        ),
        *_cases(
            "member mask", file, ".*member mask",
            ("lane_outside_mask", (1, 32), lambda: (ints(32),)),
            tool="synccheck",
        ),
        # A GPU waits for the threads that the mask names.
        *_cases("member mask", file, ".*member mask", ("mask_names_others", (1, 32), lambda: (ints(32),))),
        *_cases(
            "shuffle from an absent lane", file, "uninitialised value reaches a store: a shuffle",
            ("shuffle_after_return", (1, 64), lambda: (ints(64), 40)),
            tool="synccheck",
        ),
        *_cases(
            "shuffle from an absent lane", "groups.cu", "uninitialised value reaches a store: a shuffle",
            ("sum_of_half_a_warp", (1, 16), lambda: (ints(1), ints(16))),
            ("maxima_of_warps", (1, 48), lambda: (ints(2), ints(48))),
            ("neighbour_elsewhere", (1, 32), lambda: (ints(32), cuda.to_device(np.arange(32, dtype=np.int32)))),
            tool="synccheck",
        ),
        *_cases(
            "deadlock", file, "deadlock",
            ("waits_for_more", (1, 64), lambda: (ints(64),)),
            ("crossed_barriers", (1, 64), lambda: (ints(64),)),
            status="LAUNCH_TIMEOUT",
        ),
        *_cases(
            "endless loop", file, "limit of executed instructions",
            ("never_ends", (1, 32), lambda: (ints(1),)),
            ("counts_for_ever", (1, 1), lambda: (cuda.zeros(1, np.uint32),)),
            status="LAUNCH_TIMEOUT",
        ),
    ]  # fmt: skip  # rows of a table


def _races() -> list[Case]:
    file = "races.cu"
    return [
        *_cases(
            "race in shared memory", file, "race",
            ("no_barrier", (1, 256), lambda: (floats(256), floats(256))),
            ("loop_without_second_barrier", (1, 64), lambda: (floats(64), counted(256), 4)),
            ("histogram_read_too_early", (1, 256), lambda: (ints(32), ints(256))),
            ("warp_without_sync", (1, 32), lambda: (ints(32),)),
            ("bytes_without_barrier", (1, 256), lambda: (cuda.zeros(256, np.uint8),)),
            tool="racecheck",
        ),
        *_cases(
            "cp.async without its wait", file, "race",
            ("copy_not_waited_for", (1, 64), lambda: (floats(64), floats(64))),
            ("copy_waited_for_too_little", (1, 64), lambda: (floats(64), floats(128))),
            ("copy_waited_for_behind_the_barrier", (1, 64), lambda: (floats(64), floats(64))),
            tool="racecheck",
        ),
        *_cases(
            "race in global memory", file, "race",
            ("neighbour_block", (4, 64), lambda: (floats(256),)),
            ("same_place", (2, 64), lambda: (ints(64),)),
            ("same_instruction", (1, 64), lambda: (ints(32),)),
            ("counter_without_atomic", (4, 1), lambda: (ints(1),)),
            ("last_block_without_fence", (8, 64), lambda: (floats(1), floats(8), floats(512), words(1))),
            ("lock_without_fence", (4, 32), lambda: (ints(1), ints(1))),
            ("no_grid_sync", (4, 64), lambda: (floats(256), floats(256), 256, 3)),
            ("shorts_of_neighbours", (4, 64), lambda: (cuda.zeros(256, np.uint16),)),
            ("byte_of_a_word", (2, 64), lambda: (words(64),)),
            ("same_byte", (1, 96), lambda: (cuda.zeros(32, np.uint8),)),
        ),
        *_cases(
            "published without a fence", "orders.cu", "race",
            ("all_store_without_fence", (8, 64), lambda: (floats(64), floats(512), words(1), 512)),
            ("all_store_relaxed_count", (8, 64), lambda: (floats(64), floats(512), words(1), 512)),
            ("all_store_late_fence", (8, 64), lambda: (floats(64), floats(512), words(1), 512)),
            ("warps_without_fence", (8, 64), lambda: (floats(64), floats(512), words(1), 512)),
            ("barrier_without_fence", (8, 64), lambda: (floats(64), floats(512), words(1), 512)),
            ("block_unlocks_without_fence", (4, 64), lambda: (ints(1), ints(64))),
        ),
        *_cases(
            "plain read of what is atomic", "orders.cu", "race",
            ("lock_tested_plainly", (2, 32), lambda: (ints(1), ints(1))),
            ("count_read_plainly", (4, 32), lambda: (ints(1), ints(128))),
        ),
        Case("consumed_too_early", "race between streams", file, "race", _two_streams("produce", "consume"), "consume"),
        Case("overwritten", "race between streams", file, "race", _two_streams("consume", "produce"), "produce"),
    ]  # fmt: skip  # rows of a table


CASES: tuple[Case, ...] = (
    *_bounds(),
    *_values(),
    *_barriers(),
    *_races(),
    Case("leaked_array", "leaked device memory", "cases.py", "leaked", _leaked_array, tool="memcheck"),
    Case("leaked_rows", "leaked device memory", "cases.py", "leaked", _leaked_rows, tool="memcheck"),
)
