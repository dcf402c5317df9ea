"""An mbarrier passes on the clocks of its complete phases only."""

import numpy as np
import pytest

from cudart_py.simulator.checks.races.warp_clocks import WarpClocks
from cudart_py.simulator.ptx.operations import mbarriers

# The barriers are words in the shared memory of a block of three warps.
LANES = np.arange(96)


class Block:
    """Three warps that arrive and wait at mbarriers with a given count of arrivals."""

    def __init__(self, count: int) -> None:
        self.words = np.zeros(4, np.uint64)
        for barrier in (1, 2):
            mbarriers.apply("init", self.words, np.array([barrier]), [np.array([count])], False)
        self.clocks = WarpClocks(1, 96, self.words)

    def arrive(self, warp: int, now: int, lanes: int = 32, times: int = 1, barrier: int = 1) -> None:
        """Let `lanes` lanes arrive at time `now`, from the first lane of a warp on, `times` times each."""
        who, arrivals = LANES[32 * warp : 32 * warp + lanes], np.full(lanes, times)
        self.clocks.arrive(who, np.full(lanes, 8 * barrier), np.zeros(lanes, np.int64), now, arrivals)
        mbarriers.apply("arrive", self.words, np.full(lanes, barrier), [arrivals], False, who // 32)

    def wait(self, warp: int, barrier: int = 1) -> None:
        self.clocks.wait(LANES[32 * warp : 32 * warp + 32], np.full(32, 8 * barrier))

    def knows(self, warp: int, of: int, when: int) -> bool:
        """Return whether an access by warp `of` at time `when` happens before the next access of `warp`."""
        [known] = self.clocks.passed(np.array([32 * of + 7]), np.array([when]), np.array([32 * warp + 30]))
        return bool(known)


def test_a_wait_receives_what_the_arriving_warps_did_and_received_before_if_they_release_it() -> None:
    block = Block(32)
    block.arrive(0, 5)
    assert not block.knows(1, of=0, when=4)
    block.wait(1)
    assert block.knows(1, of=0, when=4)
    assert not block.knows(1, of=0, when=5)
    assert not block.knows(2, of=0, when=4)
    block.arrive(1, 0, barrier=2)  # releases nothing
    block.wait(2, barrier=2)
    assert not block.knows(2, of=0, when=4)
    block.arrive(1, 9)
    block.wait(2)
    assert block.knows(2, of=0, when=4)
    assert block.knows(2, of=1, when=8)


def test_a_new_barrier_does_not_change_a_used_one() -> None:
    """Lanes 32 to 63 wait at both at once."""
    block = Block(32)
    block.arrive(0, 5)
    block.clocks.wait(LANES[32:64], np.repeat([8, 16], 16))
    assert block.knows(1, of=0, when=4)


@pytest.mark.parametrize("second", [6, 0])
def test_arrivals_of_a_phase_under_way_are_not_received(second: int) -> None:
    """The second arrival completes the phase, even if it releases nothing."""
    block = Block(64)
    block.arrive(0, 5)
    block.wait(1)
    assert not block.knows(1, of=0, when=4)
    block.arrive(2, second)
    block.arrive(2, 8)
    block.wait(1)
    assert block.knows(1, of=0, when=4)
    assert block.knows(1, of=2, when=5) == bool(second)
    assert not block.knows(1, of=2, when=7)


@pytest.mark.parametrize(("count", "lanes", "times"), [(32, 64, 1), (96, 64, 3)])
def test_phases_that_end_between_warps_of_one_instruction_are_complete(count: int, lanes: int, times: int) -> None:
    """An even number of phases leaves the word unchanged. The neighbouring barriers expect other counts of arrivals."""
    block = Block(count)
    mbarriers.apply("init", block.words, np.array([0, 2, 3]), [np.full(3, 5000)], False)
    before = int(block.words[1])
    block.arrive(0, 5, lanes, times)
    assert int(block.words[1]) == before
    block.wait(1)
    assert block.knows(1, of=0, when=4)
