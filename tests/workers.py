"""Give each file, and each group of tests, to one worker of pytest-xdist, so that it makes what they share once."""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling


class ByFileOrGroup(LoadGroupScheduling):
    """Groups of tests marked `xdist_group`, such as those of a stop, and of other tests those of a file."""

    def _split_scope(self, nodeid: str) -> str:
        group: str = super()._split_scope(nodeid)
        return nodeid.partition("::")[0] if group == nodeid else group


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFileOrGroup | None:
    """Replace pytest-xdist's scheduler of groups, by which each test without a group is one of its own."""
    return ByFileOrGroup(config, log) if config.getoption("dist") == "loadgroup" else None
