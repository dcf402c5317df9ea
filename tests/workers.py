"""Give each file, and each group of tests, to one worker of pytest-xdist, which then creates shared fixtures once."""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling


class ByFileOrGroup(LoadGroupScheduling):
    """A scheduler of groups: tests marked `xdist_group`, such as those of a stop, and otherwise the tests of a file."""

    def _split_scope(self, nodeid: str) -> str:
        group: str = super()._split_scope(nodeid)
        return nodeid.partition("::")[0] if group == nodeid else group


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFileOrGroup | None:
    """Replace pytest-xdist's scheduler of groups, which makes each test without a mark a group of its own."""
    return ByFileOrGroup(config, log) if config.getoption("dist") == "loadgroup" else None
