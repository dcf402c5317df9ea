"""A variant with a wrong result is not timed: the stop fails its check, and never raises an error of its own."""

import io

import pytest
from rich.console import Console

import cudart_py as cuda
from library_tour import record, report, stops, timing, variants
from library_tour.course import nested_monte_carlo
from library_tour.runner import Outcome, run_stop
from library_tour.stop import Check
from tests.tour.outcomes import SMALL, draw

# Stops that handle a wrong variant in their own code; the others leave it to `variants.measure`.
OWN = {"vector_add", "launch_shapes", "debug_print", "copies", "variables", "texture", "local_memory", "coalescing"}
OWN |= {"bank_conflicts", "reduction", "logical_and", "events", "streams", "matmul", "monte_carlo"}
COMPARING = [name for name in stops.COURSE if name != "errors"]  # which compares nothing


@pytest.fixture
def failing(any_clock, nothing_apart, monkeypatch):
    """Return a function that runs a stop with a clock and failing comparisons.

    The function returns the outcome, and whether any comparison failed.
    """
    # Timed work takes long and is not checked, so it is skipped.
    for clock in ("median_ms", "fresh_ms", "call_ms", "waiting_ms"):
        monkeypatch.setattr(timing, clock, lambda *_, **__: 1.0)
    monkeypatch.setattr(nested_monte_carlo, "COVERED", nested_monte_carlo.Stages(40, 7))

    def run(name: str, every: int) -> tuple[Outcome, bool]:
        compared: list[str] = []

        def compare(fact, *arrays) -> Check:
            compared.append(fact)
            return Check(fact, len(compared) % every != 1 % every, "made wrong")

        for module in (variants, stops.load(name)):
            if hasattr(module, "compare"):
                monkeypatch.setattr(module, "compare", compare)
        return run_stop(name, cuda.Device(0), SMALL.get(name, 64)), bool(compared)

    return run


# Every third check fails, so that a variant may be right in one case and wrong in another; or all of a stop's checks.
@pytest.mark.parametrize(
    ("name", "every"),
    [
        *(pytest.param(name, 3, marks=() if name in OWN else pytest.mark.exhaustive) for name in COMPARING),
        *(pytest.param(name, 1, marks=pytest.mark.exhaustive) for name in COMPARING if name in OWN),
    ],
)
def test_the_stop_fails_by_its_checks_and_is_reported(failing, tmp_path, name, every):
    outcome, compared = failing(name, every)
    assert outcome.state == ("failed" if compared else "passed"), outcome.traceback
    assert bool(outcome.failed_checks) == compared
    wrong = [row for row in outcome.result.all_rows if row.check and not row.check.holds]
    here = [(row.name, column) for row in wrong for column in row.values if not column.startswith("course")]
    assert not [(name, column) for name, column in here if column.endswith("ms")]
    console = Console(file=io.StringIO(), width=80)
    console.print(report.outcome(outcome))
    console.print(report.summary([outcome]))
    assert (f"FAILED in {name}: " in console.file.getvalue()) == compared
    record.write(tmp_path / "run.json", record.record({}, [outcome]))
    draw(outcome, tmp_path)


# Runs stops with a clock on all devices, or in all ranks, and prints their states. Every comparison of arrays fails,
# unless the first argument says that all are right.
TOGETHER = """
import os, sys
import cudart_py as cuda
from library_tour import counters, limits, ranks, several, stops, timing, variants
from library_tour.runner import run_stop
from library_tour.stop import Check, Row
several.SECONDS = 0
timing.available = lambda: True
timing.median_ms = lambda *_, **__: 1.0
counters.available = lambda: False
limits.measured_ceiling = lambda device, kind: 4e12
together = ranks.world()
wrong = sys.argv[1] == "wrong" and (together is None or together.rank == together.count - 1)
for name in sys.argv[2:]:
    stop = stops.load(name)
    for module in (variants, stop):
        if wrong:
            module.compare = lambda fact, *_: Check(fact, False, "made wrong")
    stop.all_shown_wrong = lambda programs, **_: [Row(name, note="not run") for name in programs]
    outcome = run_stop(name, cuda.Device(0), 32)
    # In one piece, since ranks write at the same time.
    os.write(1, f"{name} {outcome.state} {outcome.traceback}\\n".encode())
"""


def test_stops_on_several_devices_fail_by_their_checks(python):
    names = ["peer", *stops.SEVERAL_DEVICES]
    done = python(f"import sys; sys.argv[1:] = {['wrong', *names]}\n{TOGETHER}", CUDART_PY_SIMULATOR_DEVICES="2")
    assert done.stdout.split("\n")[:-1] == [f"{name} failed " for name in names]


@pytest.mark.usefixtures("numpy_engine")
@pytest.mark.parametrize(
    ("results", "names"),
    [
        ("wrong", ["all_reduce", "monte_carlo_ranks"]),
        ("right", ["halo", "all_reduce", "monte_carlo_ranks"]),
        pytest.param("wrong", ["halo", "distributed_gemm"], marks=pytest.mark.exhaustive),
        pytest.param("right", ["distributed_gemm"], marks=pytest.mark.exhaustive),
    ],
)
def test_ranks_take_times_together_and_wait_for_one_whose_checks_fail(mpiexec, results, names):
    done = mpiexec("-c", TOGETHER, results, *names, count=2)
    assert done.returncode == 0, done.stderr
    states = sorted(line.strip() for line in done.stdout.splitlines())
    last = "failed" if results == "wrong" else "passed"
    assert states == sorted(f"{name} {state}" for name in names for state in (last, "passed"))
