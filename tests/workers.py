"""Let the workers of pytest-xdist share their work.

Each file, and each group of tests, is given to one worker, which then creates shared fixtures once.

All workers collect all tests. In a fresh clone, that compiles every file, and workers that read the files in the same
order would compile each at the same time. So every second worker begins with the last file, and by the middle finds the
bytecode of the files that are left.
"""

import os
from collections.abc import Generator

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


def _begins_with_last_file(config: pytest.Config) -> bool:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    return int(worker.removeprefix("gw")) % 2 == 1 and len(config.args) == 1


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Reverse the order of a folder's files and folders in every second worker."""
    report = yield
    if isinstance(collector, pytest.Dir) and _begins_with_last_file(collector.config):
        report.result.reverse()
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Restore the order of the files, which must be the same in all workers."""
    if _begins_with_last_file(config):
        items.sort(key=lambda item: item.path.parts)
