"""The options of the pytest plugin for benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...host.output_files import output_file
from ..gates import counter_gate
from ..gates.argument_types import counter_limit
from ..stopping import STOPS
from .axes import axis_argument
from .session_clocks import clock_argument
from .written_results import add_written_options


def add_benchmark_options(group: Any) -> None:
    """Add the options that choose benchmarks, say how to measure them, write the results and limit their counters."""
    group.addoption(
        "--benchmark-select",
        type=Path,
        metavar="FILE",
        help="run only the tests whose full names this file lists, one per line, as `cudart-py gate` does",
    )
    group.addoption(
        "--benchmark-stop",
        choices=STOPS,
        default=STOPS[0],
        help="end each measurement of gpu_benchmark and host_benchmark when its median is precise, or when the entropy "
        "of its times has settled (default: precision)",
    )
    group.addoption(
        "--benchmark-profile",
        action="store_true",
        help="run each function of gpu_benchmark and host_benchmark once, without times or peers, while the profiler "
        "records: ncu --profile-from-start off, nsys --capture-range=cudaProfilerApi",
    )
    group.addoption(
        "--lock-clocks",
        type=clock_argument,
        metavar="CLOCK",
        help="from the first test with gpu_benchmark, lock the clocks of all devices to 'base' or a number of MHz; a "
        "line at the end says if this is not allowed",
    )
    group.addoption(
        "--axis",
        action="append",
        default=[],
        type=axis_argument,
        metavar="NAME=VALUES",
        help="replace the values of an axis, which a test has by @pytest.mark.axis(NAME, VALUES): n=1024,4096, "
        "n=10:50:10 or n=2^10:2^20; may be repeated",
    )
    add_written_options(group)
    group.addoption(
        "--counters-compare-fail",
        action="append",
        default=[],
        type=counter_limit,
        metavar="FIGURE:LIMIT",
        help="fail if a counter is worse than in the run of --benchmark-compare, by more than a percentage "
        "('sectors:5%%') or a number ('conflicts:0'); may be repeated. Figures: "
        f"{', '.join(counter_gate.FIGURES)}, or a metric's full name",
    )
    for name, form in (("json", "JSON"), ("markdown", "Markdown, for a comment on a pull request")):
        group.addoption(
            f"--counters-{name}",
            type=output_file,
            metavar="FILE",
            help=f"write the comparison of counters as {form}; - is standard output",
        )
