"""The places of what machine code and Python share: a launch's context, and the state of each warp.

Both are blocks of memory. The context is an array of 64-bit words, of which `Context` numbers the places. The state of
a warp begins with the words of 32 bits that `Head` numbers; behind them stand, for each basic block, the lanes that
wait at it, those that it holds back until the other members of a mask come, those that have gone back to it in a
loop that waits for other lanes, and those that wait at the barrier in front of it; then the registers.
"""

from __future__ import annotations

from enum import IntEnum

LANES = 32
# The exchange, through which values go to functions of Python's and back: its slots, the last one for the result, and
# the bytes of each.
SLOTS = 8
SLOT_BYTES = 8 * LANES


class Context(IntEnum):
    """The words of a launch's context."""

    # How far host addresses lie above device addresses, and the allocations, sorted: their number, starts and ends.
    DELTA = 0
    EXTENTS = 1
    STARTS = 2
    ENDS = 3
    # For each site of an access the bounds of the allocation that it used last.
    SITES = 4
    PARAMETERS = 5
    # The addresses of the module's variables, and the special registers that are the same in the whole launch.
    SYMBOLS = 6
    SPECIALS = 7
    # Each lane's coordinates in its block: for each warp three rows of 32 words.
    THREADS = 8
    # The shared memory of the block at hand, and where its variables end.
    SHARED = 9
    SHARED_END = 10
    SHARED_BYTES = 11
    LOCAL = 12
    LOCAL_STRIDE = 13
    LOCAL_SIZE = 14
    LOCAL_BYTES = 15
    WORKSPACE = 16
    PARAMETER_SIZE = 17
    WORKSPACE_SIZE = 18
    # The states of the warps of one block, how many there are, and the lanes that each has.
    STATES = 20
    WARPS = 21
    MEMBERS = 22
    # The block at hand, where the blocks end, the warp that goes on first, and whether the block is a new one.
    BLOCK = 23
    LAST_BLOCK = 24
    WARP = 25
    FRESH = 26
    GRID_X = 27
    GRID_Y = 28
    BLOCK_X = 29
    BLOCK_Y = 30
    BLOCK_Z = 31
    # How many instructions may be executed before machine code returns to Python.
    BUDGET = 32
    SMS = 33
    # What answers machine code, and what it asks.
    PYTHON = 19
    HOST_CALL = 34
    # How often the warps of the block at hand may yet yield in turn before machine code returns to Python.
    PATIENCE = 35
    YIELDS = 36
    # The nanoseconds that lanes have slept.
    SLEPT = 37
    FAULT = 40
    FAULT_SITE = 41
    FAULT_MASK = 42
    FAULT_ADDRESSES = 43
    WARP_AT_HAND = 44
    # The memory through which values go to functions of Python's, and back.
    EXCHANGE = 45
    # What is counted for an observer: of each basic block in the list, and of each site of an access.
    BLOCK_COUNTS = 46
    ACCESS_COUNTS = 47
    # What the checks know: of each site, of each allocation, and of the block at hand; which granules of memory are
    # saved, and where the first one begins; the time now and at the launch's begin, shifted as in records; the records
    # of shared memory, and for each warp the lanes that have written each word of local memory.
    CHECK_SITES = 48
    CHECK_EXTENTS = 49
    BLOCK_CHECKS = 50
    SAVED = 51
    SAVED_BASE = 52
    NOW = 53
    BEGIN = 54
    SHARED_WRITES = 55
    SHARED_READS = 56
    LOCAL_WRITTEN = 57
    LOCAL_WRITTEN_BYTES = 58
    # The record of each word's last asynchronous copy, and the rows of `CopyRow` for each warp.
    COPY_WORDS = 59
    COPY_ROWS = 60
    # The addresses of a strong access, which addresses may be places of releases, and what `HostCall.ORDERED` is about
    # and its answer.
    STRONG_ADDRESSES = 61
    RELEASED = 62
    RECORD = 63
    ANSWER = 64
    # Where the hardware ends the block's shared memory.
    SHARED_LIMIT = 65
    WORDS = 72


class Head(IntEnum):
    """The first words of a warp's state."""

    ALIVE = 0
    PARKED = 1
    # Set by whoever lets the lanes at barriers go on.
    RELEASE = 2
    # One more than the block whose lanes go on without those that they wait for.
    FORCED = 3
    FRESH = 4
    HELD = 5
    SPINS = 6
    NUMBER = 7
    WORDS = 16


class Count(IntEnum):
    """The words of what is counted of an access: how often a warp made it, and two sums over these times.

    Behind them stands the last time, because most are like the one before: the lanes, the place of the first one in
    its sector or bank, both summands, and from `DISTANCES` on how far behind the first one each lane's address lies.
    """

    TIMES = 0
    FIRST = 1
    SECOND = 2
    LAST_MASK = 3
    LAST_PLACE = 4
    LAST_FIRST = 5
    LAST_SECOND = 6
    DISTANCES = 8
    WORDS = 40


class Status(IntEnum):
    """What a warp or a launch returns."""

    DONE = 0
    # The budget is used up; called again, it goes on.
    PAUSED = 1
    FAULT = 2
    # No lane of the block can go on by itself: Python looks at its barriers.
    STUCK = 3
    # Lanes wait for other lanes, perhaps of other warps or blocks.
    YIELDED = 4


class Fault(IntEnum):
    """Why a warp has ended a launch."""

    ACCESS = 1
    TRAP = 2
    BRANCH = 3
    # Python raised an exception.
    RAISED = 4
    # The checks may have something to report, or need more records than they have.
    DOUBT = 5


class SiteCheck(IntEnum):
    """The words of what the checks know of a site: the allocation that it used last, and its records.

    `MODE` tells whether loads of it are recorded now, `RECORDS` whether those of all allocations are.
    """

    LOW = 0
    HIGH = 1
    WRITES = 2
    READS = 3
    FLOOR = 4
    MODE = 5
    RECORDS = 6
    WRITE_LINES = 7
    READ_LINES = 8
    WORDS = 16


class ExtentCheck(IntEnum):
    """The words of what the checks know of an allocation.

    `FLOOR` is 1 where reads of what nothing has written are looked for. `LOADED` is one more than a site that has
    loaded from it without a record, and `STORED` tells whether the launch has stored to it.
    """

    READY = 0
    WRITES = 1
    READS = 2
    FLOOR = 3
    LOADED = 4
    STORED = 5
    WRITE_LINES = 6
    READ_LINES = 7
    WORDS = 8


class BlockCheck(IntEnum):
    """The words of what the checks know of a block: times, shifted as in records, and barriers.

    `WRITTEN` and `READ` are the time of the barrier behind which shared memory was written, and read without a record;
    `FULL` tells whether all of it has been written, `LOOKS` and `LOOKED` how often and when that was looked for.
    `WAITS` is one more than the barrier at which lanes wait, and from `PASSED` on stand those that lanes have gone past
    since the last one, a bit for each. From `WARPS` on stands when each warp was synchronised.

    Asynchronous copies have a time of their own, `COPY_TIME`. Those that may not be complete for all threads lie
    between `COPY_LOW` and `COPY_HIGH`.

    `ACQUIRED` tells whether any thread has acquired what others have released, `EVENTS` whether there were fences or
    that since the last barrier. All threads have acquired what the warp whose first thread is `KNOWN_FIRST` had done
    until `KNOWN_UNTIL`. From `FENCED` on stand the lanes of each warp whose next strong write may release.
    """

    BEGIN = 0
    BARRIER = 1
    WRITTEN = 2
    READ = 3
    FULL = 4
    LOOKS = 5
    LOOKED = 6
    WAITS = 7
    WARPS = 8
    PASSED = 40
    COPY_TIME = 48
    COPY_LOW = 49
    COPY_HIGH = 50
    ACQUIRED = 51
    EVENTS = 52
    KNOWN_FIRST = 53
    KNOWN_UNTIL = 54
    FENCED = 56
    WORDS = 88


class CopyRow(IntEnum):
    """The rows of what the checks know of a warp's asynchronous copies, each a number for each lane.

    They are the times of a lane's last copy, and until which its copies are complete for itself, for its warp and for
    all threads; from `ENDED` on when its last groups of copies ended, the newest first.
    """

    ISSUED = 0
    COMPLETE = 1
    FOR_WARP = 2
    FOR_ALL = 3
    ENDED = 4
    WORDS = 12


class Doubt(IntEnum):
    """Why a launch that is watched by checks runs again."""

    # There may be a finding: the NumPy engine runs the launch.
    FINDING = 1
    # A load from global or shared memory should have been recorded.
    GLOBAL = 2
    SHARED = 3


class HostCall(IntEnum):
    """What machine code asks Python; a number goes with it."""

    # A function of the system: the number of the call's site, and the lanes in the upper half.
    SYSTEM = 1
    # The checks: to save a granule of memory, and to prepare the records of an allocation, by their numbers.
    SAVE = 2
    PREPARE = 3
    # Lanes execute a fence or a strong access, come together behind that, or do what another access must precede.
    FENCE = 4
    STRONG = 5
    CONVERGE = 6
    BARRIER = 7
    ORDERED = 8
