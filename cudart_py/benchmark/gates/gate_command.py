"""The command `cudart-py gate`: run benchmarks, compare them with a recorded baseline, fail if one became slower."""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...base.wording import counted
from ...driver.capabilities import capabilities
from ...host.output_files import STANDARD_OUTPUT, output_file
from .argument_types import count, percentage
from .counter_gate import SUGGESTED_LIMITS
from .gate_report import GateReport
from .machine import gpu_info
from .pytest_runs import NOT_INSTALLED, PytestFailedError, PytestRuns, can_run
from .time_gate import (
    Json,
    baseline_text,
    benchmarks,
    compare,
    differences,
    merge,
    refusal,
    slowdown_of_peers,
    table,
    untimed,
)
from .votes import Take, judged

SLOWER, REFUSED = 1, 2
# If at least a quarter of the peers is slower than in the baseline by more than this factor, a slower benchmark proves
# nothing.
BUSY = 1.25
# The status with which pytest reports failed tests; other statuses mean that it could not run them.
TESTS_FAILED = 1
NOTHING_TIMED = (
    "nothing was timed. Name files with benchmarks, because pytest does not collect files named bench_*.py by itself. "
    "Do not use pytest-xdist (-n), under which pytest-benchmark disables benchmarks"
)
_RUNS = 3


def add_command(commands: Any) -> None:
    """Add `gate` to the subcommands of `cudart-py`."""
    parser = commands.add_parser(
        "gate",
        help="time benchmarks on a GPU, and fail if one became slower than in a baseline",
        description="Time benchmarks on a GPU with pytest, and compare them with a baseline: a file that --record "
        "wrote, or any run that pytest-benchmark stored. Benchmarks that seem slower are run again in fresh processes "
        "before they fail. The exit status is 1 if a benchmark is slower or fails, and 2 if nothing can be compared, "
        "for example without a GPU or on a different one. The simulator does not measure times: compare its counters "
        f"with python -m pytest FILES --benchmark-compare=RUN {SUGGESTED_LIMITS}.",
    )
    parser.add_argument("--record", action="store_true", help="write the baseline")
    parser.add_argument("--add", action="store_true", help="with --record: keep the runs that the baseline already has")
    parser.add_argument("--runs", type=count, metavar="N", help=f"with --record: number of runs (default: {_RUNS})")
    parser.add_argument(
        "--limit",
        type=percentage,
        default=5,
        metavar="PERCENT",
        help="the slowdown in percent that fails (default: 5)",
    )
    parser.add_argument(
        "--stored",
        type=Path,
        action="append",
        default=[],
        metavar="RUN",
        help="use this run, which pytest-benchmark stored, instead of running benchmarks; may be repeated",
    )
    for name, form in (("json", "JSON"), ("markdown", "Markdown, for a comment on a pull request")):
        parser.add_argument(
            f"--{name}",
            type=output_file,
            metavar="FILE",
            help=f"also write the outcome as {form}; - is standard output",
        )
    parser.add_argument("baseline", type=Path, help="the baseline file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments for pytest: files, options")
    parser.set_defaults(run=gate, parser=parser)


def gate(options: argparse.Namespace) -> int:
    """Record a baseline or compare with one, print the result, and return the exit status."""
    _check(options)
    report = GateReport(str(options.baseline), options.limit / 100)
    # If a report goes to standard output, nothing else does, so that other programs can read it.
    with contextlib.redirect_stdout(sys.stderr) if _is_report_printed(options) else contextlib.nullcontext():
        try:
            with tempfile.TemporaryDirectory() as folder:
                take = _stored(options.stored) if options.stored else _measured(options, Path(folder))
                if options.record:
                    return _record(options, take)
                report.status = _compare(options, take, report)
        except _GateError as error:
            report.status, report.reason = error.status, str(error)
            _print(f"cudart-py gate: {error}")
    try:
        report.write(options.json, options.markdown)
    except OSError as error:
        _print(f"cudart-py gate: {error.filename} cannot be written: {error.strerror}")
        return report.status or REFUSED
    return report.status


def _check(options: argparse.Namespace) -> None:
    """Refuse options that would have no effect, and options of this command among those of pytest."""
    own = ("--record", "--add", "--runs", "--limit", "--stored", "--json", "--markdown")
    for argument in options.arguments:
        if (name := argument.partition("=")[0]) in own:
            options.parser.error(f"{name} is an option of cudart-py gate: write it before {options.baseline}")
    if options.record and (options.json or options.markdown):
        options.parser.error("--json and --markdown write the outcome of a comparison, and --record compares nothing")
    if not options.record and (options.add or options.runs):
        options.parser.error(f"{'--add' if options.add else '--runs'} needs --record")


def _is_report_printed(options: argparse.Namespace) -> bool:
    return STANDARD_OUTPUT in (options.json, options.markdown)


class _GateError(Exception):
    """The reason why nothing can be compared or recorded."""

    def __init__(self, message: str, status: int = REFUSED) -> None:
        super().__init__(message)
        self.status = status


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201  # the command's result


def _read(path: Path, remedy: str = "record it with cudart-py gate --record") -> dict[str, Any]:
    if not path.exists():
        raise _GateError(f"{path} does not exist: {remedy} {path}")
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _GateError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise _GateError(f"{path} is not a stored run, because it is not JSON: {error}") from error
    missing = [key for key in ("benchmarks", "machine_info") if not isinstance(run, dict) or key not in run]
    if missing:
        raise _GateError(
            f"{path} is not a stored run, because it has no {missing[0]!r}: name a file that --record wrote"
        )
    return dict(run)


def _stored(paths: Sequence[Path]) -> Take:
    """Return a function that returns one stored run after another."""
    left = iter(paths)

    def take(names: Sequence[str] = ()) -> Json | None:
        path = next(left, None)
        if path is None:
            return None
        if names:
            _print(f"{counted(len(names), 'benchmark')} may be slower: comparing with {path}")
        run = _read(path, "store a run with python -m pytest FILES --benchmark-json")
        if not run["benchmarks"]:
            raise _GateError(f"{path} has no times. {_counters_instead(())}")
        return run

    return take


def _counters_instead(arguments: Sequence[str]) -> str:
    """Return the commands that store and compare the counters of benchmarks; pytest gets the arguments."""
    command = f"CUDART_PY_DRIVER=simulator python -m pytest {shlex.join(arguments) or 'FILES'}"
    return (
        "To compare counters of the simulator instead, store a run once, and compare later runs with it:\n"
        f"  {command} --benchmark-json=accepted.json\n"
        f"  {command} --benchmark-compare=accepted.json {SUGGESTED_LIMITS}"
    )


def _measured(options: argparse.Namespace, folder: Path) -> Take:
    """Return a function that runs pytest in a new process; a run of named benchmarks is silent unless it fails.

    Raises _GateError if pytest-benchmark is not installed, or if the driver does not measure times.
    """
    if not can_run():
        raise _GateError(NOT_INSTALLED)
    if "gpu_timing" not in capabilities():
        raise _GateError(
            f"the gate compares times, and this driver does not measure any: use a machine with a GPU. "
            f"{_counters_instead(options.arguments)}"
        )
    runs = PytestRuns(options.arguments, folder, to_standard_error=_is_report_printed(options))

    def take(names: Sequence[str] = ()) -> Json | None:
        more: list[str] = []
        if names:
            _print(f"{counted(len(names), 'benchmark')} may be slower: measuring again")
        elif not options.record:
            # pytest-benchmark warns about another machine even if only the processor's clock differs.
            more += [f"--benchmark-compare={options.baseline}", "-W", "ignore:Benchmark machine_info is different"]
        try:
            return runs.take(*more, names=names, silent=bool(names))
        except PytestFailedError as error:
            if error.output:
                _print(error.output)
            if not error.status:
                raise _GateError(NOTHING_TIMED) from error
            status = SLOWER if error.status == TESTS_FAILED else REFUSED
            raise _GateError("the benchmarks did not pass", status) from error

    return take


def _record(options: argparse.Namespace, take: Take) -> int:
    path: Path = options.baseline
    if not path.absolute().parent.is_dir():
        # Checked before spending minutes on a baseline that could not be written.
        raise _GateError(f"the folder {path.parent} does not exist")
    known: list[Json] = [_read(path)] if options.add else []
    runs: list[Json] = []
    for _ in range(len(options.stored) or options.runs or _RUNS):
        run = take()
        if run is not None:
            _refuse(options, [*known, *runs, run][0], run)
            runs.append(run)
    merged = merge([*known, *runs])
    path.write_text(baseline_text(merged), encoding="utf-8")
    _print(f"{path}: {counted(len(runs), 'run')} of {counted(len(runs[-1]['benchmarks']), 'benchmark')}")
    timed = benchmarks(merged)
    lacking = [name for name in dict.fromkeys(name for run in runs for name in untimed(run)) if name not in timed]
    if lacking:
        _print(f"cudart-py gate: {path} lacks {counted(len(lacking), 'benchmark')} without times: {', '.join(lacking)}")
        _print("select the other benchmarks to record a baseline without them")
    return REFUSED if lacking else 0


def _refuse(options: argparse.Namespace, baseline: Json, run: Json) -> None:
    """Raise _GateError if a run cannot be compared with the baseline."""
    problem = refusal(baseline, run, "the run" if options.stored else "this machine")
    if problem is None and not run["benchmarks"]:
        problem = NOTHING_TIMED
    if problem is not None:
        raise _GateError(problem)


def _compare(options: argparse.Namespace, take: Take, report: GateReport) -> int:
    baseline, limit = _read(options.baseline), report.limit
    gpu = gpu_info()
    if not options.stored and len(set(gpu.get("devices", ()))) <= 1:
        # Fail before measuring benchmarks that cannot be compared.
        _early(baseline, gpu)
    run = take()
    assert run is not None  # there is always a first run
    _refuse(options, baseline, run)
    first = compare(baseline, run, limit)
    if not first:
        raise _GateError(f"the run has no benchmark that {options.baseline} has")
    report.differences = differences(baseline, run)
    for difference in report.differences:
        _print(difference)
    report.verdicts = judged(baseline, first, take, limit)
    report.new, report.missing = (len(each["benchmarks"]) - len(first) for each in (run, baseline))
    shown = [(one, word) for one, word in report.verdicts if word]
    if shown:
        _print("\n".join(table(shown)))
    slower = report.count("SLOWER")
    _print(
        f"{counted(len(first), 'benchmark')} compared with {options.baseline}: {slower} slower, "
        f"{report.count('faster')} faster, {report.new} new, {report.missing} not run"
    )
    wide = [one.limit for one in first if one.limit > limit]
    if wide:
        _print(
            f"{counted(len(wide), 'limit')} above {100 * limit:g} %, because times vary from run to run: at most "
            f"{100 * max(wide):.1f} %"
        )
    if not slower:
        return 0
    slowdown = slowdown_of_peers(baseline, run)
    if slowdown is not None and slowdown > BUSY:
        raise _GateError(
            f"the machine is busy or slower than the baseline's: a quarter of the peers, which are other code, take at "
            f"least {slowdown:.2f} times as long. Run the gate again, or add runs of this machine to the baseline with "
            "--record --add"
        )
    report.reason = f"{slower} of {counted(len(first), 'benchmark')} became slower by more than the limit"
    stored = [word for path in options.stored for word in ("--stored", str(path))]
    record = shlex.join(("cudart-py", "gate", "--record", *stored, str(options.baseline), *options.arguments))
    _print(f"To accept the change, record the baseline again: {record}")
    return SLOWER


def _early(baseline: Json, gpu: dict[str, Any]) -> None:
    problem = refusal(baseline, {"machine_info": {"gpu": gpu}, "benchmarks": []}, "this machine")
    if problem is not None:
        raise _GateError(problem)
