"""The results of driver calls that an H200 has returned: values, and the statuses of calls that it refuses."""

import json

import pytest

from tests.driver.call_programs import RECORD, playable
from tests.forks import Forks, own_environment

AREAS = json.loads(RECORD.read_text())["areas"]


@pytest.mark.needs("sm_90a")
@pytest.mark.parametrize("area", AREAS)
def test_calls_return_what_an_h200_returned(forks: Forks, area: str) -> None:
    # In a process of its own, because the programs free nothing.
    ran = forks.run("tests.driver.call_programs:print_area", [area], own_environment())
    assert not ran.returncode, ran.stderr
    assert json.loads(ran.stdout) == playable(AREAS[area]["programs"])
