"""Mistakes with bulk copies are found; what is in order is no mistake."""

from __future__ import annotations

import re

import numpy as np
import pytest

import cudart_py as cuda
from tests.simulator.checks.reports import WRONG_ON_PURPOSE, compiled, found

pytestmark = WRONG_ON_PURPOSE

UNWAITED = r"fills by cp.async.bulk at .*, and no wait at the copy's barrier at 0x\w+ \(0 bytes into \w+::bar\)"
UNREAD = r"from which cp.async.bulk reads for block \(0, 0, 0\), thread \(0, 0, 0\)"
UNFENCED = r"which block \(0, 0, 0\), thread \(\d+, 0, 0\) wrote at .*, and no fence.proxy.async"
UNORDERED = "and nothing puts one before"
# The mistakes of each kernel; each bit of their number leaves out one thing.
WRONG = {
    "fetched": {1: UNWAITED, 2: UNWAITED},
    "waited_by_one": {1: UNWAITED},
    "waited_elsewhere": {1: UNWAITED},
    "waited_by_one_warp": {1: UNWAITED},
    "refilled": {1: UNORDERED},
    "stored": {1: UNFENCED, 2: UNORDERED, 4: UNREAD, 8: "and nothing puts that thread's wait"},
    "fenced_by_the_copier": {1: UNFENCED},
    "fenced_by_a_third": {1: UNFENCED, 2: UNFENCED},
    "fenced_by_one_of_a_warp": {1: UNFENCED},
    "fenced_behind_a_wait": {1: UNFENCED},
    "fenced_for_the_cluster": {1: UNFENCED},
    "announced": {1: UNORDERED},
    "alternating": {1: UNREAD},
    "through": {1: UNWAITED},
}


@pytest.mark.parametrize("name", WRONG)
def test_each_mistake_is_found_and_what_is_in_order_is_none(name):
    given = cuda.to_device(np.arange(128, dtype=np.int32))
    launch = compiled("synchronisation.cu")[name][1, 64]
    assert found(launch, cuda.zeros(6 * 64, np.int32), given, 0) == []
    for wrong, text in WRONG[name].items():
        texts = found(launch, cuda.zeros(6 * 64, np.int32), given, wrong)
        assert any(re.search(text, one) for one in texts), (wrong, texts)
