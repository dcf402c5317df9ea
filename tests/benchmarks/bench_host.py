"""Host overhead per call, compared with bare driver calls, cuda.core and CuPy.

Compare the ratios within one run. The times themselves differ from machine to machine.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cudart_py as cuda
from tests.benchmarks.peers import host_calls, host_rivals
from tests.benchmarks.peers.host_things import Call, Things

NAMES = (Path(__file__).parents[2] / "docs" / "names.md").read_text()
CALLED = "".join(Path(module.__file__).read_text() for module in (host_calls, host_calls.things))


@pytest.fixture(scope="module")
def things() -> Iterator[Things]:
    with cuda.Device(0) as device:
        found = Things(device)
        yield found
        found.stream.synchronize()


@pytest.fixture(scope="module")
def rivals(things: Things) -> Iterator[dict[tuple[str, str], Call]]:
    yield host_rivals.rivals(things)
    if "cupy" in sys.modules:
        # CuPy's current stream was the one of `things`, which is about to be destroyed.
        sys.modules["cupy"].cuda.Stream.null.use()


def succeeds(found: Any) -> bool:
    return all(map(succeeds, found)) if isinstance(found[0], tuple) else cuda.check(found[:1]) is None


def of_call(rivals: dict[tuple[str, str], Call], what: str) -> dict[str, Call]:
    return {how: call for (whose, how), call in rivals.items() if whose == what}


@pytest.mark.parametrize("what", [what for what in host_calls.CALLS if what != "launch"])
@pytest.mark.benchmark(group="host")
def test_call(host_benchmark: Any, things: Things, rivals: dict[tuple[str, str], Call], what: str) -> None:
    bare, ours = host_calls.CALLS[what](things)
    things.stream.synchronize()  # a query fails while earlier work is still running
    assert succeeds(bare())
    host_benchmark(ours, beside={"bare": bare, **of_call(rivals, what)}, stream=things.stream)


@pytest.mark.parametrize("how", host_calls.LAUNCHES_BY)
@pytest.mark.benchmark(group="host")
def test_launch(host_benchmark: Any, things: Things, rivals: dict[tuple[str, str], Call], how: str) -> None:
    bare, _ = host_calls.CALLS["launch"](things)
    assert succeeds(bare())
    ours = host_calls.launches(things)[how]
    host_benchmark(ours, beside={"bare": bare, **of_call(rivals, "launch")}, stream=things.stream)


def rows() -> Iterator[tuple[str, list[str]]]:
    """Yield the rows of docs/names.md that have a wrapper, with the driver functions that it calls."""
    for line in NAMES.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and not re.match("left out|used by|done", cells[2]):
            functions = re.findall(r"`(cu[A-Z]\w*\*?)`", cells[1])
            if functions:
                yield cells[2], functions


def test_every_wrapper_is_timed_or_has_a_reason() -> None:
    timed = set(
        re.findall(r"\b(cu[A-Z]\w+)\b", CALLED.partition("UNTIMED = {")[0] + CALLED.partition("def launches")[2])
    )
    missing = [ours for ours, functions in rows() if not timed.union(host_calls.UNTIMED).intersection(functions)]
    assert not missing, f"add to CALLS or UNTIMED of peers/host_calls.py: {missing}"
    known = {function for _, functions in rows() for function in functions}
    assert set(host_calls.UNTIMED) <= known - timed
