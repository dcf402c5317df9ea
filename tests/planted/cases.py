"""The planted mistakes: kernels in the `.cu` files beside this one, with their launches and the tools that find them.

A line with a mistake ends in `// BUG name`. If an uninitialised value is read on an earlier line than the one where it
matters, that earlier line ends in `// READ name`. Leaked device memory and copies of unwritten memory are mistakes of
the host code: their lines are in this file and end in `# LEAK name` and `# COPY name`.
"""

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
    """A planted mistake of one kind, in a kernel of a file; `run` launches the kernel with fresh arguments.

    `finding` is a pattern for the start of the simulator's report, and `status` is the error of the launch, if any.
    `tool` is the tool of compute-sanitizer that looks for such mistakes; it is empty if there is none, or if a GPU
    would hang.
    """

    name: str
    kernel: str
    run: Run
    kind: str
    file: str
    finding: str
    tool: str = ""
    status: str = ""

    @property
    def leaks(self) -> bool:
        """Whether the mistake is leaked memory."""
        return self.finding == "leaked"

    @property
    def lines(self) -> set[int]:
        """The numbers of the lines that contain the mistake."""
        marks = marked(self.file, "LEAK" if self.leaks else "BUG" if self.file.endswith(".cu") else "COPY")
        return marks.get(self.name) or marks[self.kernel]


@cache
def marked(file: str | Path, word: str = "BUG") -> dict[str, set[int]]:
    """Return the numbers of the lines that are marked with a word in a file, as `compiled` takes it, by name."""
    found: dict[str, set[int]] = {}
    for number, line in enumerate((FOLDER / file).read_text(encoding="utf-8").splitlines(), 1):
        for name in re.findall(rf"(?://|#) {word} (\w+)", line):
            found.setdefault(name, set()).add(number)
    return found


@cache
def compiled(file: str | Path, *options: str) -> cuda.Module:
    """Compile and load a file in this folder, or a file with an absolute path, once per process."""
    return cuda.compile(FOLDER / file, options=options)


ints = partial(cuda.zeros, dtype=np.int32)
floats = partial(cuda.zeros, dtype=np.float32)
words = partial(cuda.zeros, dtype=np.uint32)
unwritten = partial(cuda.empty, dtype=np.int32)


def counted(count: int) -> cuda.DeviceArray:
    """Return a device array of the floats 0, 1, 2, ..., count - 1."""
    return cuda.to_device(np.arange(count, dtype=np.float32))


def freed(count: int) -> cuda.Pointer:
    """Return the address of memory that has been freed."""
    array = ints(count)
    address = int(array.pointer)
    array.close()
    cuda.current_device().synchronize()
    return cuda.Pointer(address)


def _two_streams(first: str, second: str) -> Run:
    """Return a function that launches two kernels on the same memory in two streams, without synchronisation."""

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


def _grid_too_small(module: cuda.Module) -> None:
    for blocks in (2, 1):  # the second array may get the memory of the first one, with the correct result
        out = unwritten(64)
        module["write_blocks"][blocks, 32](out)
        out.to_host()  # COPY grid_too_small


def _last_element_missing(module: cuda.Module) -> None:
    out = unwritten(100)
    module["write"][1, 99](out)
    out.to_host()  # COPY last_element_missing


def _every_second_element(module: cuda.Module) -> None:
    out, copy = unwritten(64), unwritten(64)
    module["write_half"][1, 32](out)
    cuda.memcpy(copy, out)
    copy.to_host()  # COPY every_second_element


Arguments = Callable[[], tuple[object, ...]]


def _case(heading: tuple[str, ...], label: str, shape: tuple[int, ...], arguments: Arguments) -> Case:
    name, _, kernel = label.partition(":")
    return Case(name, kernel or name, lambda m: m[kernel or name][shape](*arguments()), *heading)


FAR = 1 << 20
# The keys are the kind of mistake, the file, the start of the report, the tool and the status. Each case has a name,
# with a colon and the kernel's name if the two differ, the launch configuration, and the arguments.
PLANTED: dict[tuple[str, ...], list[tuple[str, tuple[int, ...], Arguments]]] = {
    ("out of bounds, global memory", "bounds.cu", r"a global \w+ of 4 bytes", "memcheck", "ILLEGAL_ADDRESS"): [
        ("out_of_bounds", (3, 32), lambda: (ints(64), 0)),
        ("read_past", (1, 64), lambda: (ints(64), ints(64))),
    ],
    ("use after free", "bounds.cu", r"a global \w+ of 4 bytes", "memcheck", "ILLEGAL_ADDRESS"): [
        ("write_after_free:out_of_bounds", (1, 32), lambda: (freed(64), 0)),
        ("read_after_free:read_past", (1, 32), lambda: (ints(64), freed(64))),
        ("heap_after_free", (1, 1), lambda: (ints(1),)),
    ],
    ("out of bounds, shared memory", "bounds.cu", r"a shared \w+ of 4 bytes", "memcheck", "ILLEGAL_ADDRESS"): [
        ("beyond_shared", (1, 32), lambda: (ints(64), 1)),
        ("before_shared", (1, 32, 128), lambda: (ints(64), 3)),
    ],
    ("out of bounds, local memory", "bounds.cu", r"a local \w+ of 4 bytes", "memcheck", "ILLEGAL_ADDRESS"): [
        ("beyond_local", (1, 32), lambda: (ints(32), FAR)),
        ("before_local", (1, 32), lambda: (ints(32), FAR)),
    ],
    ("out of bounds, constant memory", "bounds.cu", r"a \w+ read of 4 bytes", "memcheck", "ILLEGAL_ADDRESS"): [
        ("beyond_constant", (1, 32), lambda: (ints(32), FAR)),
        ("before_constant", (1, 32), lambda: (ints(32), FAR)),
    ],
    ("misaligned access", "bounds.cu", r"a \w+ \w+ of \d bytes", "memcheck", "MISALIGNED_ADDRESS"): [
        ("misaligned", (1, 8), lambda: (cuda.zeros(64, np.int8),)),
        ("misaligned_pair", (1, 1), lambda: (floats(8),)),
        ("misaligned_shared", (1, 32), lambda: (ints(32), 2)),
        ("misaligned_local", (1, 32), lambda: (ints(32), 2)),
    ],
    ("stack overflow", "bounds.cu", "stack overflow", "memcheck", "LAUNCH_FAILED"): [
        ("recursion", (1, 1), lambda: (ints(1), 1000)),
        ("mutual_recursion", (1, 1), lambda: (ints(1), 1000)),
    ],
    ("uninitialised global memory", "values.cu", "uninitialised value reaches", "initcheck"): [
        ("copy_uninitialised", (1, 32), lambda: (ints(32), unwritten(32))),
        ("address_from_global", (1, 32), lambda: (ints(8), unwritten(32))),
        ("heap_uninitialised", (1, 4), lambda: (ints(4),)),
    ],
    ("uninitialised shared memory", "values.cu", "uninitialised value reaches"): [
        ("branch_on_shared", (1, 64), lambda: (ints(1),)),
        ("store_from_shared", (1, 64), lambda: (cuda.zeros(64, np.uint8),)),
    ],
    ("uninitialised local memory", "values.cu", "uninitialised value reaches"): [
        ("local_to_store", (1, 32), lambda: (ints(32), 4, 9)),
        ("local_to_address", (1, 32), lambda: (ints(8), 4, 9)),
    ],
    ("divergent barrier", "barriers.cu", "divergent barrier", "synccheck"): [
        ("some_miss_a_barrier", (1, 64), lambda: (ints(64), 32)),
        ("two_barriers", (1, 64), lambda: (ints(64), 32)),
        ("barriers_in_an_unequal_loop", (1, 64), lambda: (ints(200),)),
    ],
    ("barrier in a function", "groups.cu", "divergent barrier", "synccheck"): [
        ("inlined_barriers", (1, 64), lambda: (ints(64), 32)),
        ("called_barriers", (1, 64), lambda: (ints(64), 32)),
        ("groups_sync_apart", (1, 64), lambda: (ints(64), 32)),
    ],
    ("barrier in a function", "groups.cu", "divergent barrier"): [
        ("called_by_some", (1, 64), lambda: (ints(64), 32)),
        ("called_with_unequal_counts", (1, 64), lambda: (ints(64), 32)),
        ("called_deeply_by_some", (1, 64), lambda: (ints(64), 32)),
    ],
    ("member mask", "barriers.cu", ".*member mask", "synccheck"): [
        ("lane_outside_mask", (1, 32), lambda: (ints(32),)),
    ],
    # A GPU would wait forever for the threads that the mask names.
    ("member mask", "barriers.cu", ".*member mask"): [
        ("mask_names_others", (1, 32), lambda: (ints(32),)),
    ],
    ("shuffle from an absent lane", "barriers.cu", "uninitialised value reaches a store: a shuffle", "synccheck"): [
        ("shuffle_after_return", (1, 64), lambda: (ints(64), 40)),
    ],
    ("shuffle from an absent lane", "groups.cu", "uninitialised value reaches a store: a shuffle", "synccheck"): [
        ("sum_of_half_a_warp", (1, 16), lambda: (ints(1), ints(16))),
        ("maxima_of_warps", (1, 48), lambda: (ints(2), ints(48))),
        ("neighbour_elsewhere", (1, 32), lambda: (ints(32), cuda.to_device(np.arange(32, dtype=np.int32)))),
    ],
    ("deadlock", "barriers.cu", "deadlock", "", "LAUNCH_TIMEOUT"): [
        ("waits_for_more", (1, 64), lambda: (ints(64),)),
        ("crossed_barriers", (1, 64), lambda: (ints(64),)),
    ],
    ("endless loop", "barriers.cu", "more instructions than the limit of", "", "LAUNCH_TIMEOUT"): [
        ("never_ends", (1, 32), lambda: (ints(1),)),
        ("counts_for_ever", (1, 1), lambda: (cuda.zeros(1, np.uint32),)),
    ],
    ("race in shared memory", "races.cu", "race", "racecheck"): [
        ("no_barrier", (1, 256), lambda: (floats(256), floats(256))),
        ("loop_without_second_barrier", (1, 64), lambda: (floats(64), counted(256), 4)),
        ("histogram_read_too_early", (1, 256), lambda: (ints(32), ints(256))),
        ("warp_without_sync", (1, 32), lambda: (ints(32),)),
        ("bytes_without_barrier", (1, 256), lambda: (cuda.zeros(256, np.uint8),)),
    ],
    ("cp.async without its wait", "races.cu", "race", "racecheck"): [
        ("copy_not_waited_for", (1, 64), lambda: (floats(64), floats(64))),
        ("copy_waited_for_too_little", (1, 64), lambda: (floats(64), floats(128))),
        ("copy_waited_for_behind_the_barrier", (1, 64), lambda: (floats(64), floats(64))),
    ],
    ("race in global memory", "races.cu", "race"): [
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
    ],
    ("published without a fence", "orders.cu", "race"): [
        ("all_store_without_fence", (8, 64), lambda: (floats(64), floats(512), words(1), 512)),
        ("all_store_relaxed_count", (8, 64), lambda: (floats(64), floats(512), words(1), 512)),
        ("all_store_late_fence", (8, 64), lambda: (floats(64), floats(512), words(1), 512)),
        ("warps_without_fence", (8, 64), lambda: (floats(64), floats(512), words(1), 512)),
        ("barrier_without_fence", (8, 64), lambda: (floats(64), floats(512), words(1), 512)),
        ("block_unlocks_without_fence", (4, 64), lambda: (ints(1), ints(64))),
    ],
    ("plain read of an atomic value", "orders.cu", "race"): [
        ("lock_tested_plainly", (2, 32), lambda: (ints(1), ints(1))),
        ("count_read_plainly", (4, 32), lambda: (ints(1), ints(128))),
    ],
}
BETWEEN_STREAMS = ("race between streams", "races.cu", "race")
UNWRITTEN_COPY = (
    "copy of unwritten memory to the host", "cases.py", "uninitialised value reaches the host", "initcheck",
)  # fmt: skip  # grouped by meaning
CASES = (
    *(_case(heading, *row) for heading, rows in PLANTED.items() for row in rows),
    Case("consumed_too_early", "consume", _two_streams("produce", "consume"), *BETWEEN_STREAMS),
    Case("overwritten", "produce", _two_streams("consume", "produce"), *BETWEEN_STREAMS),
    Case("grid_too_small", "write_blocks", _grid_too_small, *UNWRITTEN_COPY),
    Case("last_element_missing", "write", _last_element_missing, *UNWRITTEN_COPY),
    Case("every_second_element", "write_half", _every_second_element, *UNWRITTEN_COPY),
    Case("leaked_array", "", _leaked_array, "leaked device memory", "cases.py", "leaked", "memcheck"),
    Case("leaked_rows", "", _leaked_rows, "leaked device memory", "cases.py", "leaked", "memcheck"),
)
