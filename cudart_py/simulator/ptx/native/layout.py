"""The places of what machine code and Python share: a launch's context, and the state of each warp.

Both are blocks of memory. The context is an array of 64-bit words, of which `Context` numbers the places. The state of
a warp begins with the words of 32 bits that `Head` numbers; behind them stand, for each basic block, the lanes that
wait at it, those that it holds back until the other members of a mask come, those that have gone back to it in a
loop that waits for other lanes, and those that wait at the barrier in front of it; then the registers.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["LANES", "Context", "Count", "Fault", "Head", "Status"]

LANES = 32


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
    WORDS = 64


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
