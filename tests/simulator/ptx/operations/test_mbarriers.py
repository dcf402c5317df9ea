"""Barriers in shared memory complete a phase when all arrivals and bytes are there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx.operations.mbarriers import apply


def operate(word: Any, verb: str, *values: int, parity: bool = False) -> Any:
    """Apply one lane's operation to a barrier."""
    operands = [np.array([value], np.uint32) for value in values]
    return apply(verb, word, np.zeros(1, np.int64), operands, parity)


def has_passed(word: Any, phase: int) -> bool:
    return bool(operate(word, "test_wait", phase, parity=True)[0])


@pytest.mark.parametrize("arrival", [("arrive_drop", 1), ("arrive_drop_expect", 0)])
def test_a_thread_that_drops_out_is_missing_from_the_next_phase(arrival: tuple[str, int]) -> None:
    word = np.zeros(1, np.uint64)
    operate(word, "init", 2)
    operate(word, *arrival)
    assert not has_passed(word, 0)
    operate(word, "arrive", 1)
    assert has_passed(word, 0)
    assert not has_passed(word, 1)
    operate(word, "arrive", 1)
    assert has_passed(word, 1)


def test_a_phase_waits_for_the_bytes_that_are_expected() -> None:
    word = np.zeros(1, np.uint64)
    operate(word, "init", 1)
    operate(word, "arrive_expect", 16)
    assert not has_passed(word, 0)
    operate(word, "complete_tx", 16)
    assert has_passed(word, 0)
