"""The layout of the data that machine code and Python share: a launch's context, and the state of each warp.

Both are blocks of memory. The context is an array of 64-bit words; `Context` gives their indices. The state of a warp
begins with 32-bit words, whose indices `Head` gives. Four arrays of 32-bit lane masks follow, each with one mask per
basic block: the lanes that wait at the block, the lanes held there until the other members of their member mask arrive,
the lanes that stand aside there because their loop waits for other lanes, and the lanes that are parked at the barrier
before it. Then come a bitmap of the blocks with ready lanes, and the registers.
"""

from __future__ import annotations

from enum import IntEnum

LANES = 32
# The exchange buffer passes registers to Python functions and back. It has this many slots, each of this size in bytes.
SLOTS = 16
SLOT_BYTES = 8 * LANES
# The number of warp instructions after which machine code returns, to let Python check signals and limits. Most kernels
# execute them in a few milliseconds.
BUDGET = 1 << 21
POLLS = 2
# The number of named barriers of a block.
BARRIERS = 16


class Context(IntEnum):
    """The words of a launch's context."""

    # The difference between host and device addresses; then the sorted allocations: their number, starts and ends.
    DELTA = 0
    EXTENTS = 1
    STARTS = 2
    ENDS = 3
    # For each site of an access, the bounds of the allocation that it used last; for a site that accesses textures or
    # surfaces, the second word is the address of the first object in its list.
    SITES = 4
    PARAMETERS = 5
    # The addresses of the module's variables, and the special registers that are the same in the whole launch.
    SYMBOLS = 6
    SPECIALS = 7
    # Each lane's thread index in its block: three rows (x, y, z) of 32 words per warp.
    THREADS = 8
    # The shared memory of the current block, the offset at which its variables end, and the offset at which it ends for
    # the hardware.
    SHARED = 9
    SHARED_END = 10
    SHARED_LIMIT = 11
    LOCAL = 12
    LOCAL_STRIDE = 13
    LOCAL_SIZE = 14
    LOCAL_BYTES = 15
    WORKSPACE = 16
    PARAMETER_SIZE = 17
    WORKSPACE_SIZE = 18
    # The states of the warps of one block, the number of warps, and the mask of each warp's lanes.
    STATES = 20
    WARPS = 21
    MEMBERS = 22
    # The current block, the end of the range of blocks to run, the warp to run next, and whether the block (or the
    # warp, if each warp runs alone) has yet to begin.
    BLOCK = 23
    LAST_BLOCK = 24
    WARP = 25
    FRESH = 26
    GRID_X = 27
    GRID_Y = 28
    BLOCK_X = 29
    BLOCK_Y = 30
    BLOCK_Z = 31
    # The number of instructions that may still be executed before machine code returns to Python.
    BUDGET = 32
    SMS = 33
    SM_NUMBERS = 38
    # The function that answers machine code's calls to Python, and the `HostCall` that it must answer.
    PYTHON = 19
    HOST_CALL = 34
    # The number of rounds with yielding warps that the current block may still run before machine code returns to
    # Python, and whether a warp has yielded in this round: 1, or `POLLS` if not only at barriers in memory.
    PATIENCE = 35
    YIELDS = 36
    # The time that lanes have slept, in nanoseconds.
    SLEPT = 37
    FAULT = 40
    FAULT_SITE = 41
    FAULT_MASK = 42
    FAULT_ADDRESSES = 43
    # The size in bytes of the access, if the fault is one of an access.
    FAULT_SIZE = 39
    WARP_AT_HAND = 44
    # The exchange buffer.
    EXCHANGE = 45
    # The counts for an observer: of each basic block in the list, and of the accesses of each site.
    BLOCK_COUNTS = 46
    ACCESS_COUNTS = 47
    # The state of the checks: for each site, for each allocation, and for the current block; flags of the granules of
    # memory that are saved, and the address of the first granule; the current time and the launch's start time, shifted
    # as in records; the records of shared memory; and, per warp, the mask of the lanes that have written each word of
    # local memory.
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
    # The addresses of a strong access; flags, indexed by the hash of an address, that say where something may have been
    # released; and the record that `HostCall.ORDERED` asks about, with the answer.
    STRONG_ADDRESSES = 61
    RELEASED = 62
    RECORD = 63
    ANSWER = 64
    # The memory in which lanes save registers during calls of shared functions.
    SAVES = 66
    # For the checks: whether all loads from global memory must be recorded, because other work may overlap the launch.
    COMPLETE = 67
    # For kernels that wait at barriers in memory: whether each wait must be told to Python, and whether any lane has
    # done something else in this round of the block's warps, or since Python last looked.
    TELL_WAITS = 70
    PROGRESS = 71
    ADVANCED = 72
    # For checked kernels with barriers in memory: the clocks of the current block (see `Clock`), the size in bytes of
    # the part of them that is cleared when a block begins, and the rows of `Readers`.
    CLOCKS = 73
    CLOCKS_BYTES = 74
    READERS = 75
    # For each named barrier of the current block, the number of threads that have arrived without waiting.
    ARRIVALS = 76
    # The number of blocks in a cluster, the cluster's extent along each axis, and the rows of `PER_BLOCK` of the blocks
    # of the cluster that runs, in a launch with clusters.
    CLUSTER = 77
    CLUSTER_X = 78
    CLUSTER_Y = 79
    CLUSTER_Z = 80
    CLUSTER_BLOCKS = 81
    # For the checks, the time of the last barrier of the cluster that runs; 0 without clusters.
    CLUSTER_TIME = 82
    # For checked kernels with bulk copies to shared memory: for each word, one more than the number of the barrier that
    # counts the bytes of the last copy to it, and the number of words; and for each warp, the lanes that have waited at
    # each barrier since its last copy.
    BULK_MARKS = 83
    BULK_WORDS = 84
    BULK_WAITED = 85
    # For the checks: whether the code follows undefined values, the lanes whose last access has loaded some, and the
    # marks of undefined bytes in shared memory (see `library/checking/undefined.py`).
    FOLLOWS = 86
    UNWRITTEN = 87
    SHARED_UNDEFINED = 88
    WORDS = 96


# The words of the context that differ between the blocks of a cluster. A row of the words of one block has this length.
PER_BLOCK = (
    Context.SHARED, Context.LOCAL, Context.ARRIVALS, Context.BLOCK_CHECKS, Context.SHARED_WRITES, Context.SHARED_READS,
    Context.LOCAL_WRITTEN,
)  # fmt: skip  # grouped by meaning
ROW_BYTES = 64
# The bit of the cluster's barrier in a set of barriers, after those of the named barriers.
CLUSTER_BARRIER = BARRIERS


class Head(IntEnum):
    """The first words of a warp's state."""

    ALIVE = 0
    PARKED = 1
    # A set of the named barriers at which the parked lanes must be released, with one bit per barrier.
    RELEASE = 2
    # The lanes that continue without the missing members of their mask.
    FORCED = 3
    FRESH = 4
    SPINS = 5
    WORDS = 16


class Count(IntEnum):
    """The words of an access's counts: the number of times that a warp executed it, and two sums over these executions.

    A description of the last execution follows, because most executions are like the one before: the mask of lanes, the
    offset of the first lane's address in its sector or bank, both summands, and, from `DISTANCES` on, the distance of
    each lane's address from the first lane's address.
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


class ObjectWord(IntEnum):
    """The words that describe a texture or a surface.

    `NEXT` is the address of the next object in the list of a site; it is 0 only in the empty object that ends the list.
    `HOST` and `ADDRESS` are the address of its memory for the host and for the device, and `FETCH` is a function of the
    library. The extents and the border's color of a texture are floats; those of a surface are integers.
    """

    HANDLE = 0
    NEXT = 1
    HOST = 2
    ADDRESS = 3
    FETCH = 4
    WIDTH = 5
    HEIGHT = 6
    DEPTH = 7
    PITCH = 8
    SLICE_PITCH = 9
    BORDER = 10
    WORDS = 14


class Status(IntEnum):
    """The return value of the machine code of a warp or of a launch."""

    DONE = 0
    # The budget is used up; the next call resumes the launch.
    PAUSED = 1
    FAULT = 2
    # No lane of the block can continue until Python has examined the block's barriers.
    STUCK = 3
    # Lanes wait for other lanes, perhaps of other warps or blocks.
    YIELDED = 4


class Fault(IntEnum):
    """The reason why a warp has ended a launch."""

    ACCESS = 1
    TRAP = 2
    BRANCH = 3
    # Python raised an exception.
    RAISED = 4
    # The checks may have something to report, or need more records than they have.
    DOUBT = 5
    # Some lanes of a warp execute an instruction that all must execute together.
    PARTIAL = 6
    # A warp brings more arrivals to a barrier in memory than its phase still expects.
    ARRIVALS = 7
    # Some lanes of an instruction that accesses only shared memory give generic addresses of other memory.
    WINDOW = 8
    # Lanes call through a pointer to no function, or exceed their stack.
    CALL = 9
    STACK = 10


class SiteCheck(IntEnum):
    """The words of the checks' state for a site: the allocation that it used last, and that allocation's records.

    `MODE` says whether the site's loads from this allocation are recorded, and `RECORDS` whether its loads from all
    allocations are recorded. `FIRST` and `LAST` are the bounds of the loads that leave no records, kept only if other
    work may overlap the launch.
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
    FIRST = 9
    LAST = 10
    WORDS = 16


class ExtentCheck(IntEnum):
    """The words of the checks' state for an allocation.

    `READY` is 1 if the other words are valid, and 2 if the launch has also used the allocation. `WRITES` is 0 if there
    are no records, which an allocation needs only if the launch stores to it. `FLOOR` is 1 if the checks look for reads
    of unwritten memory. `LOADED` is one more than the number of a site that has loaded from the allocation without a
    record, and `STORED` says whether the launch has stored to it.
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


APART = 1 << 32


class BlockCheck(IntEnum):
    """The words of the checks' state for a block: times, shifted as in records, and barriers.

    `BEGIN` is the time at which the block began, and `BARRIER` the time of its last barrier. `WRITTEN` and `READ` are
    the value that `BARRIER` had when shared memory was last written, and last read without a record. `FULL` says
    whether all of shared memory has been written; `LOOKS` is the number of times that this was checked, and `LOOKED`
    the time of the barrier before the last check. `WAITS` is one more than the index of the barrier at which lanes
    wait, plus `APART` if others wait at another one. `PASSED` is the first word of a bitmap of the barriers that lanes
    have gone past since the block's last barrier. From `WARPS` on, there is one word per warp: the time at which its
    lanes last synchronised.

    Asynchronous copies have a clock of their own, `COPY_TIME`. The addresses written by copies that may not be complete
    for all threads are between `COPY_LOW` and `COPY_HIGH`.

    `ACQUIRED` says whether any thread has acquired what others have released, `EVENTS` whether there has been a fence
    or an acquire since the last barrier. All threads of the block have acquired what the warp whose first thread is
    `KNOWN_FIRST` had done before `KNOWN_UNTIL`. `FENCE_TIME` is the time of the block's last fence. From `FENCED` on,
    there is one word per warp: the mask of the lanes whose next strong write may release something.

    For kernels with barriers in memory, there is one more word per warp, from `KNOWN` on: the time up to which the
    accesses of all warps happen before the warp's next one.

    From `CONVERGED` on, there is one word per thread: the time at which it last synchronised with lanes of its warp.
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
    FENCE_TIME = 55
    FENCED = 56
    KNOWN = 88
    CONVERGED = 120
    WORDS = 1144


class Clock(IntEnum):
    """The words of the vector clocks of a block (see `library/checking/clocks.py`).

    `COUNT` is the number of barriers in memory. From `KEYS` on, there are their addresses, and from `PARITIES` on the
    parities of their phases when they were last looked at. From `WARPS` on, there is a clock for each warp, and then
    two for each barrier: one for all arrivals, and one for the arrivals up to the end of the last completed phase.

    A clock has `ENTRIES` words. They are, for each warp, the time up to which its accesses happen before, and from
    `COPIES` on, for each warp, the time up to which its copies by ``cp.async`` are known to be complete.
    """

    COUNT = 0
    KEYS = 8
    PARITIES = 40
    WARPS = 72
    COPIES = 32
    ENTRIES = 64


class Readers(IntEnum):
    """The words of a row that describes reads by several warps; there are `ROWS` rows per block.

    If several warps read shared memory without an order, the record of the last read stands for all. The row of that
    record contains, from `TIMES` on, the time of the last such read by each warp, 0 for none. `KEY` is the record's
    time and warp. `MIXED` is 0 if each word has been read by the same lane of all these warps.
    """

    KEY = 0
    MIXED = 1
    TIMES = 8
    WORDS = 40
    ROWS = 256


class CopyRow(IntEnum):
    """The rows of the checks' state for a warp's asynchronous copies, each with one time per lane.

    `ISSUED` is the time of the lane's last copy. `COMPLETE`, `FOR_WARP` and `FOR_ALL` are the times up to which the
    lane's copies are complete for the lane itself, for its warp and for all threads of the block. The rows from `ENDED`
    on contain the times at which the lane's latest groups of copies ended, newest first.
    """

    ISSUED = 0
    COMPLETE = 1
    FOR_WARP = 2
    FOR_ALL = 3
    ENDED = 4
    WORDS = 12


class Doubt(IntEnum):
    """The reason why a launch that is watched by checks runs again."""

    # There may be a finding: the NumPy engine runs the launch.
    FINDING = 1
    # A load from global or shared memory should have been recorded.
    GLOBAL = 2
    SHARED = 3
    # Lanes load memory that has not been written, or store an undefined value to shared memory. That is no mistake by
    # itself, but this code doesn't follow such values.
    UNWRITTEN = 4


class HostCall(IntEnum):
    """The requests that machine code makes to Python; each is accompanied by a number."""

    # Execute an instruction. The number contains its site in its lower half, and the mask of lanes in its upper half.
    # The registers that it reads are in the exchange buffer, and afterwards those that it writes.
    EXECUTE = 1
    # For the checks: save a granule of memory, or prepare the row of an allocation. The number is its index; the upper
    # half of `PREPARE`'s says whether the allocation needs records.
    SAVE = 2
    PREPARE = 3
    # For the checks: lanes execute a fence or a strong access, a warp or a block synchronises after one, or a thread
    # makes an access that a recorded one should happen before.
    FENCE = 4
    STRONG = 5
    CONVERGE = 6
    BARRIER = 7
    ORDERED = 8
    # Describe the texture or surface whose handle is in `Context.ANSWER`. The number is like that of EXECUTE.
    OBJECT = 9
    # Read a clock register. The number contains the site in its lower half, and the register's number in `CLOCKS` in
    # its upper half.
    CLOCK = 10
    # For the checks: lanes execute an instruction whose member mask doesn't name them, continue without members of the
    # mask that never arrive, or shuffle from inactive lanes. The number is like that of EXECUTE.
    OUTSIDE = 11
    DESERTED = 12
    ABSENT = 13
    # For the checks: a barrier releases a block, whose lanes wait at several barriers in the code or have gone past it.
    # Before that, lanes go past the barrier at which others wait; the number contains the number of the basic block in
    # its lower half, and the mask of lanes in its upper half.
    DIVERGED = 14
    PASSING = 15
