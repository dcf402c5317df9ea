"""Comparison of benchmarks' counters with a stored run, which finds regressions without a GPU.

A figure is a sum over all launches of a benchmark, or a ratio of two sums:

| figure | meaning | worse |
|---|---|---|
| `instructions` | warp instructions executed | more |
| `requests` | warp-level loads and stores of global memory | more |
| `sectors` | 32-byte sectors of global memory that these requests touch | more |
| `local` | sectors of local memory that loads and stores touch | more |
| `wavefronts` | wavefronts of loads, stores and atomics of shared memory | more |
| `conflicts` | extra wavefronts due to bank conflicts, and serialized atomics on one word | more |
| `lanes` | average active lanes per instruction, out of 32 | fewer |
| `memory` | bytes of device memory that the calls allocate at most (`Measurement.memory`) | more |

Every other metric of `cuda.profile()` is a figure under its full name: a sum, or for a ratio the highest value of all
launches. Higher is worse. The exceptions are the bytes used per sector and the active lanes: lower is worse, and the
lowest value of all launches counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...base.wording import counted
from ...pages.text_tables import aligned
from ..table import markdown, markdown_table

Launches = Sequence[Mapping[str, Any]]

# Figures that are sums of all metrics whose names match.
_SUMS = {
    "instructions": r"smsp__inst_executed\.sum",
    "requests": r"l1tex__t_requests_pipe_lsu_mem_global_op_.*",
    "sectors": r"l1tex__t_sectors_pipe_lsu_mem_global_op_.*",
    "local": r"l1tex__t_sectors_pipe_lsu_mem_local_op_.*",
    "wavefronts": r"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_.*",
    "conflicts": r"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_.*",
}
_LANES, _WARPS = "smsp__thread_inst_executed.sum", "smsp__inst_executed.sum"
MEMORY = "memory"
FIGURES = (*_SUMS, "lanes", MEMORY)
# The options of pytest that guides and messages suggest for a first comparison.
SUGGESTED_LIMITS = " ".join(f"--counters-compare-fail={limit}" for limit in ("sectors:5%", "conflicts:0", "lanes:5%"))
_BETTER = r"lanes|smsp__sass_average_data_bytes_per_sector_.*|smsp__thread_inst_executed_per_inst_executed\.ratio"


class Limit(NamedTuple):
    """The maximum amount by which a figure may become worse, in percent if `relative`."""

    figure: str
    amount: float
    relative: bool

    def __str__(self) -> str:
        return f"{self.figure}:{self.amount:g}{'%' if self.relative else ''}"

    def exceeded(self, before: float, now: float) -> bool:
        """Return whether a figure has become worse by more than the limit."""
        worse = before - now if re.fullmatch(_BETTER, self.figure) else now - before
        return worse > (abs(before) * self.amount / 100 if self.relative else self.amount)


@dataclass(frozen=True)
class Change:
    """A figure of one benchmark that differs from the stored run.

    If only one of the runs has the benchmark, the figure is empty, and `only` is "new", "not run" or "gone".
    """

    benchmark: str
    figure: str = ""
    before: float = 0.0
    now: float = 0.0
    failed: bool = False
    only: str = ""


def read_limit(text: str) -> Limit:
    """Parse a limit, such as `sectors:5%` or `conflicts:0`; raise ValueError for anything else."""
    match = re.fullmatch(r"([\w.]+):(\d+(?:\.\d+)?)(%?)", text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not FIGURE:PERCENT% or FIGURE:NUMBER, such as sectors:5%")
    if "__" not in match[1] and match[1] not in FIGURES:
        raise ValueError(
            f"{match[1]!r} is not a figure: choose one of {', '.join(FIGURES)}, or a metric's full name such as "
            f"{_WARPS}"
        )
    return Limit(match[1], float(match[2]), bool(match[3]))


def launches(counted: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the launches of each test in a run's "counted" benchmarks, over all its calls of the fixture.

    The memory of a call is in a mapping of its own, which has no kernel.
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    for one in counted:
        known = [{MEMORY: one[MEMORY]}] if MEMORY in one else []
        found.setdefault(one.get("fullname", one["name"]), []).extend([*one["counters"], *known])
    return found


def figures(launches: Launches, more: Iterable[str] = ()) -> dict[str, float]:
    """Return the figures of a benchmark's launches: those in the table above, and the metrics named in `more`."""
    found: dict[str, float] = {}
    for name, pattern in _SUMS.items():
        values = [launch[metric] for launch in launches for metric in launch if re.fullmatch(pattern, metric)]
        if values:
            found[name] = sum(values)
    warps = sum(launch.get(_WARPS, 0) for launch in launches)
    if warps:
        found["lanes"] = sum(launch.get(_LANES, 0) for launch in launches) / warps
    memory = [launch[MEMORY] for launch in launches if MEMORY in launch]
    if memory:
        found[MEMORY] = sum(memory)
    for metric in more:
        values = [launch[metric] for launch in launches if metric in launch]
        if values:
            worst = min if re.fullmatch(_BETTER, metric) else max
            found[metric] = worst(values) if metric.endswith(".ratio") else sum(values)
    return found


def changes(
    before: Mapping[str, Launches],
    now: Mapping[str, Launches],
    limits: Sequence[Limit] = (),
    gone: Collection[str] = (),
) -> list[Change]:
    """Compare two runs, each a mapping from benchmarks' full names to their launches; return the differences.

    A benchmark that is in only one of the runs is a single change without a figure. The change fails if there are
    limits and the benchmark is in `gone`, the names of renamed or deleted benchmarks, since nothing is compared with
    its stored figures.
    """
    more = tuple(limit.figure for limit in limits if limit.figure not in FIGURES)
    found = []
    for benchmark in sorted(before.keys() | now.keys()):
        if benchmark not in before:
            found.append(Change(benchmark, only="new"))
            continue
        if benchmark not in now:
            lost = benchmark in gone
            found.append(Change(benchmark, failed=lost and bool(limits), only="gone" if lost else "not run"))
            continue
        old, new = figures(before[benchmark], more), figures(now[benchmark], more)
        if not (MEMORY in old and MEMORY in new):
            # The other run was stored by a version of this package that did not measure memory.
            old.pop(MEMORY, None)
            new.pop(MEMORY, None)
        for figure in dict.fromkeys((*old, *new)):
            was, is_now = old.get(figure, 0.0), new.get(figure, 0.0)
            if was != is_now:
                failed = any(limit.figure == figure and limit.exceeded(was, is_now) for limit in limits)
                found.append(Change(benchmark, figure, was, is_now, failed))
    return found


def table(found: Sequence[Change]) -> list[str]:
    """Return the lines of a table of changes, in which failures are marked."""
    return list(aligned(_rows(found), left=2))


def markdown_report(found: Sequence[Change], lines: Sequence[str], *, compared: bool = True) -> str:
    """Return Markdown for a comment on a pull request: a heading, the table of changes, and lines such as a verdict.

    `compared` says whether any benchmark was compared.
    """
    failed = sum(change.failed for change in found)
    every = counted(len(found), "change")
    if failed:
        outcome = f"{failed} of {every} {_exceeding(failed)}"
    elif not compared:
        outcome = "nothing was compared"
    else:
        outcome = f"{every}, and no limit is exceeded" if found else "nothing has changed"
    body = [markdown_table(_rows(found), left=2, last_left=True)] if found else []
    return "\n\n".join((f"### Counters of kernels: {outcome}", *body, *map(markdown, lines))) + "\n"


def json_report(found: Sequence[Change], limits: Sequence[Limit], *, compared: bool = True) -> str:
    """Return the changes as JSON; the number "format" changes whenever the meaning of a key changes.

    A benchmark that only one of the runs has is a change without a figure. The outcome is "failed", "passed", or
    "refused" if no benchmark was compared.
    """
    failed = any(change.failed for change in found)
    data = {
        "format": 1,
        "outcome": "failed" if failed else "passed" if compared else "refused",
        "limits": [str(limit) for limit in limits],
        "changes": [
            {
                "benchmark": change.benchmark,
                **({"figure": change.figure, "before": change.before, "now": change.now} if change.figure else {}),
                "verdict": "worse" if change.figure and change.failed else change.only,
            }
            for change in found
        ],
    }
    return json.dumps(data, indent=1) + "\n"


def _rows(found: Sequence[Change]) -> list[tuple[str, ...]]:
    return [("benchmark", "figure", "before", "now", "change", ""), *map(_row, found)]


def other_compiler(before: str, now: str) -> str:
    """Return the line for a stored run whose kernels were compiled by another version of NVRTC."""
    return (
        f"NVRTC {before} compiled the kernels of the stored run, and {now} those of this one: instructions and active "
        "lanes may differ for that reason alone"
    )


def verdict(found: Sequence[Change], limits: Sequence[Limit], *, store: str, profile: str) -> list[str]:
    """Return lines that name the exceeded limits and say how to accept the changes; none if nothing failed.

    `store` and `profile` are the commands that store the run again, and that show its counters line by line.
    """
    worse = [change for change in found if change.failed and change.figure]
    gone = [change.benchmark for change in found if change.failed and not change.figure]
    lines = []
    if worse:
        exceeded = dict.fromkeys(
            str(limit)
            for limit in limits
            if any(limit.figure == change.figure and limit.exceeded(change.before, change.now) for change in worse)
        )
        reason = f"{counted(len(worse), 'figure')} {_exceeding(len(worse))}"
        lines.append(f"The run fails because {reason} ({', '.join(exceeded)}).")
    if gone:
        lines.append(f"The run fails because benchmarks of the stored run no longer exist: {', '.join(gone)}.")
        added = {_without_folder(change.benchmark): change.benchmark for change in found if change.only == "new"}
        if other := next((added[name] for name in map(_without_folder, gone) if name in added), None):
            lines.append(f"{other} differs only in its folder: run pytest in the folder in which the run was stored.")
    if worse:
        lines.append(f"To see the counters of each line of the kernels: {profile}")
    return [*lines, f"To accept the change, store the run again: {store}"] if lines else []


def difference(change: Change) -> str:
    """Return both values of a figure, and the change, as text."""
    _, _, before, now, amount, _ = _row(change)
    return f"{before} before, {now} now ({amount})"


def _exceeding(number: int) -> str:
    return "exceeds its limit" if number == 1 else "exceed their limits"


def _without_folder(benchmark: str) -> str:
    """Return a benchmark's name without its file's folder, which depends on the directory that pytest runs in."""
    file, separator, test = benchmark.partition("::")
    return file.rpartition("/")[2] + separator + test


def _row(change: Change) -> tuple[str, ...]:
    if not change.figure:
        return change.benchmark, "", "", "", change.only, change.only.upper() if change.failed else ""
    before, now = change.before, change.now
    percent = f"{100 * (now - before) / before:+.1f} %" if before else f"{now:+,.6g}"
    return change.benchmark, change.figure, f"{before:,.6g}", f"{now:,.6g}", percent, "WORSE" if change.failed else ""
