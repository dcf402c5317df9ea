"""The benchmark that compares measured times with other tools'."""

from __future__ import annotations

from tests.benchmarks.peers import measuring_cases


def test_every_case_launches(device):
    for case in measuring_cases.CASES.values():
        measuring_cases.make_work(case._replace(amount=min(case.amount, 100)))()
    device.synchronize()
