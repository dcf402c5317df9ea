"""Mbarriers complete a phase once all expected arrivals and bytes have come."""

from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx.instructions.barriers import fields
from cudart_py.simulator.ptx.operations.mbarriers import TooManyArrivals, apply
from tests.simulator.ptx.operations.references import operation

pending_count = operation("mbarrier.pending_count.b64")


def operate(word: Any, verb: str, *values: int, parity: bool = False) -> Any:
    """Apply the operation of one lane to a barrier."""
    operands = [np.array([value], np.uint32) for value in values]
    return apply(verb, word, np.zeros(1, np.int64), operands, parity)


def barrier(needed: int) -> Any:
    """Return a barrier whose phases need the given number of arrivals."""
    word = np.zeros(1, np.uint64)
    operate(word, "init", needed)
    return word


def has_passed(word: Any, phase: int) -> bool:
    return bool(operate(word, "test_wait", phase, parity=True)[0])


@pytest.mark.parametrize("verb", ["arrive", "arrive_nocomplete"])
@pytest.mark.parametrize(("needed", "lanes", "size"), [(1, 32, 1), (16, 32, 16), (64, 96, 32), (4, 10, 2)])
def test_warps_complete_several_phases(needed: int, lanes: int, size: int, verb: str) -> None:
    word = barrier(needed)
    warps = np.arange(lanes) // size
    # The arriving warps do not include the block's first one.
    before = apply(verb, word, np.zeros(lanes, np.int64), [], parity=False, warps=warps + 1)
    phases = lanes // needed
    assert has_passed(word, 1 - phases % 2)
    assert not has_passed(word, phases % 2)
    np.testing.assert_array_equal(before >> np.uint64(63), np.arange(lanes) // needed % 2)
    earlier = warps * size if verb == "arrive" else np.arange(lanes)
    np.testing.assert_array_equal(pending_count(before), needed - earlier % needed)


def test_a_phase_needs_at_most_2_to_the_20_less_1_arrivals() -> None:
    most = (1 << 20) - 1
    assert pending_count(operate(barrier(most), "arrive", 1)).tolist() == [most]


def test_an_invalidated_barrier_is_no_barrier_until_it_is_made_anew() -> None:
    word = barrier(2)
    operate(word, "arrive", 1)
    operate(word, "inval")
    assert fields(int(word[0])) == (0, 0, 0, 0)
    operate(word, "init", 3)
    assert fields(int(word[0])) == (3, 3, 0, 0)


def test_a_state_tells_whether_its_phase_has_ended() -> None:
    word = barrier(2)
    for _ in range(2):  # two phases
        first = operate(word, "arrive", 1)
        assert not apply("test_wait", word, np.zeros(1, np.int64), [first], parity=False)[0]
        second = operate(word, "arrive", 1)
        for state in (first, second):
            assert apply("test_wait", word, np.zeros(1, np.int64), [state], parity=False)[0]


def test_lanes_of_several_barriers_are_counted_apart() -> None:
    words = np.concatenate([barrier(3), barrier(2), barrier(2)])
    index = np.array([1, 0, 1, 2, 0, 0], np.int64)
    before = apply("arrive", words, index, [], parity=False, warps=np.arange(6))
    assert pending_count(before).tolist() == [2, 3, 1, 2, 2, 1]
    assert [bool(word >> np.uint64(63)) for word in words] == [True, True, False]


@pytest.mark.parametrize(
    ("verb", "pending"), [("arrive", [5, 9, 5, 5, 5, 5, 5]), ("arrive_nocomplete", [5, 9, 3, 5, 4, 5, 2])]
)
def test_lanes_may_bring_different_numbers_of_arrivals(verb: str, pending: list[int]) -> None:
    words = np.concatenate([barrier(9), barrier(5)])
    index, warps = np.array([1, 0, 1, 0, 0, 1, 1], np.int64), np.array([0, 0, 0, 1, 1, 1, 1])
    arrivals = np.array([2, 4, 3, 1, 4, 3, 1], np.uint32)
    before = apply(verb, words, index, [arrivals], parity=False, warps=warps)
    assert pending_count(before).tolist() == pending
    # The first warp ends a phase of the second barrier, and the second warp one of the first barrier.
    assert [fields(int(word)) for word in words] == [(9, 9, 0, 1), (1, 5, 0, 1)]


# Measured on an H200 (sm_90): the arrivals that a phase needs, the earlier arrivals, the lanes, the arrivals per lane,
# and whether the instruction succeeds.
MEASURED = [
    (1, 0, 1, 1, True), (1, 0, 2, 1, False), (2, 0, 3, 1, False), (8, 0, 9, 1, False), (8, 0, 16, 1, False),
    (16, 0, 16, 1, True), (16, 0, 17, 1, False), (16, 0, 32, 1, False), (31, 0, 32, 1, False), (32, 0, 32, 1, True),
    (16, 8, 8, 1, True), (16, 8, 9, 1, False), (16, 8, 16, 1, False), (40, 8, 32, 1, True), (40, 9, 32, 1, False),
    (16, 0, 1, 16, True), (16, 0, 1, 17, False), (16, 0, 1, 32, False),
    (16, 0, 2, 8, True), (16, 0, 2, 16, False), (16, 0, 3, 8, False),
]  # fmt: skip  # rows of a table


@pytest.mark.parametrize("verb", ["arrive", "arrive_drop", "arrive_nocomplete"])
@pytest.mark.parametrize(("needed", "before", "lanes", "count", "passes"), MEASURED)
def test_a_warp_brings_no_more_arrivals_than_a_phase_lacks(
    verb: str, needed: int, before: int, lanes: int, count: int, passes: bool
) -> None:
    word = barrier(needed)
    for _ in range(before):
        operate(word, "arrive", 1)
    operands = [np.full(lanes, count, np.uint32)]
    if passes:
        states = apply(verb, word, np.zeros(lanes, np.int64), operands, parity=False)
        assert has_passed(word, 0) == (before + lanes * count == needed)
        missing = needed - before - count * np.arange(lanes) * (verb == "arrive_nocomplete")
        np.testing.assert_array_equal(pending_count(states), missing)
    else:
        with pytest.raises(TooManyArrivals, match=f"expects {needed - before} of {needed}"):
            apply(verb, word, np.zeros(lanes, np.int64), operands, parity=False)


def test_lanes_that_expect_bytes_bring_an_arrival_each() -> None:
    index, amounts = np.zeros(32, np.int64), [np.full(32, 16, np.uint32)]
    with pytest.raises(TooManyArrivals):
        apply("arrive_expect", barrier(16), index, amounts, parity=False)
    states = apply("arrive_expect", barrier(32), index, amounts, parity=False, warps=np.arange(32) // 24)
    np.testing.assert_array_equal(pending_count(states), [32] * 24 + [8] * 8)


def test_warps_that_expect_bytes_complete_a_phase_and_begin_the_next_one() -> None:
    word, warps = barrier(32), np.arange(48) // 16
    states = apply("arrive_expect", word, np.zeros(48, np.int64), [np.zeros(48, np.uint32)], False, warps)
    np.testing.assert_array_equal(pending_count(states), [32] * 16 + [16] * 16 + [32] * 16)
    assert has_passed(word, 0)
    assert fields(int(word[0])) == (16, 32, 0, 1)


def test_lanes_bring_the_bytes_of_several_phases() -> None:
    word = barrier(1)
    operate(word, "arrive_expect", 1)
    apply("complete_tx", word, np.zeros(2, np.int64), [np.ones(2, np.uint32)], parity=False)
    assert has_passed(word, 0)
    # The second byte arrived before it was expected.
    operate(word, "arrive_expect", 1)
    assert has_passed(word, 1)


def test_copies_without_receivers_change_nothing() -> None:
    word = barrier(1)
    apply("complete_tx", word, np.zeros(0, np.int64), [np.zeros(0, np.int64)], parity=False)
    assert fields(int(word[0])) == (1, 1, 0, 0)


def test_each_byte_counts_up_to_2_to_the_20_less_1_of_them_either_way() -> None:
    word, most = barrier(2), (1 << 20) - 1
    for verb, amount, expected in (
        ("complete_tx", most, (2, 2, -most, 0)),
        ("arrive_expect", most, (1, 2, 0, 0)),
        ("arrive_expect", most, (0, 2, most, 0)),
        ("complete_tx", 1, (0, 2, most - 1, 0)),
        ("complete_tx", most - 2, (0, 2, 1, 0)),
        ("expect_tx", 1, (0, 2, 2, 0)),
        ("complete_tx", 2, (2, 2, 0, 1)),
        ("arrive_drop", 1, (1, 1, 0, 1)),
    ):
        operate(word, verb, amount)
        assert fields(int(word[0])) == expected, (verb, amount)
